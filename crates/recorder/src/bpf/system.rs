//! The system call `bpf`: maps, programs, and tracepoints that they are attached to.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::asm::Instruction;
use crate::error::Error;

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const MAP_DELETE: libc::c_long = 3;
const PROGRAM_LOAD: libc::c_long = 5;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
const PROGRAM_RAW_TRACEPOINT: u32 = 17;
/// The kernel lends its helpers for reading memory to licences compatible with its own.
const LICENCE: &std::ffi::CStr = c"Dual MIT/GPL";
/// The verifier's log of a program of ours takes tens of kilobytes.
const LOG_BYTES: usize = 1 << 20;
/// How much of its end is worth showing.
const LOG_SHOWN: usize = 600;

/// Kinds of maps; the values are those of `enum bpf_map_type`.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum MapKind {
    /// By any key.
    Hash = 1,
    /// By number.
    Array = 2,
    /// By number, each processor has its own.
    PerProcessor = 6,
    /// A ring of records, read by one reader.
    Ring = 27,
}

/// A map in the kernel, gone when dropped and used by no program.
#[derive(Debug)]
pub(crate) struct Map {
    descriptor: OwnedFd,
}

/// A loaded program that runs at a tracepoint until this is dropped.
#[derive(Debug)]
pub(crate) struct Attached {
    _program: OwnedFd,
    _link: OwnedFd,
}

#[repr(C)]
#[derive(Default)]
struct MapCreate {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
}

#[repr(C)]
#[derive(Default)]
struct MapElement {
    map: u32,
    padding: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Default)]
struct ProgramLoad {
    kind: u32,
    count: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

#[repr(C)]
#[derive(Default)]
struct RawTracepoint {
    name: u64,
    program: u32,
    padding: u32,
}

/// Asks the kernel; `A` is the part of `union bpf_attr` that the command reads.
fn bpf<A>(command: libc::c_long, attributes: &mut A) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads as many bytes as are said, of a plain structure whose pointers the
    // callers below keep alive during the call; it writes only where those point.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<A>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn owned(descriptor: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel just made this descriptor for us, and nobody else knows it.
    unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }
}

fn address<T: ?Sized>(of: &T) -> u64 {
    std::ptr::from_ref(of).cast::<u8>() as u64
}

impl Map {
    /// Makes a map; of a ring, `entries` is its length in bytes.
    pub(crate) fn create(
        kind: MapKind,
        (key_bytes, value_bytes): (u32, u32),
        entries: u32,
    ) -> Result<Self, Error> {
        let mut asked = MapCreate { kind: kind as u32, key_bytes, value_bytes, entries };
        let made = bpf(MAP_CREATE, &mut asked);
        let made = made.map_err(|source| Error::Kernel {
            attempt: format!("make a {kind:?} map for eBPF"),
            source,
        })?;
        Ok(Self { descriptor: owned(made) })
    }

    /// What programs call it.
    pub(crate) fn descriptor(&self) -> RawFd {
        self.descriptor.as_raw_fd()
    }

    fn element<K, V: ?Sized>(&self, key: &K, value: &V) -> MapElement {
        MapElement {
            map: self.descriptor() as u32,
            key: address(key),
            value: address(value),
            ..MapElement::default()
        }
    }

    /// Stores a value. Key and value are plain numbers or arrays of the map's sizes.
    pub(crate) fn store<V: ?Sized>(&self, key: u32, value: &V) -> Result<(), Error> {
        let stored = bpf(MAP_UPDATE, &mut self.element(&key, value));
        stored.map(drop).map_err(|source| Error::Kernel {
            attempt: "store in a map of eBPF".to_owned(),
            source,
        })
    }

    /// Removes what is stored under a key, if anything is.
    pub(crate) fn remove(&self, key: u32) {
        // The kernel refuses a request with a value.
        let mut element = MapElement { value: 0, ..self.element(&key, &()) };
        bpf(MAP_DELETE, &mut element).ok();
    }

    /// The number stored under a key, 0 where there is none.
    pub(crate) fn number(&self, key: u32) -> u64 {
        let mut value = 0_u64;
        let mut element = self.element(&key, &0_u64);
        element.value = std::ptr::from_mut(&mut value) as u64;
        bpf(MAP_LOOKUP, &mut element).map_or(0, |_| value)
    }
}

/// Loads a program and has it run at a tracepoint.
pub(crate) fn attach(tracepoint: &str, code: &[Instruction]) -> Result<Attached, Error> {
    let program = load(tracepoint, code)?;
    let name = CString::new(tracepoint).expect("names of tracepoints have no zero byte");
    let mut asked = RawTracepoint {
        name: name.as_ptr() as u64,
        program: program.as_raw_fd() as u32,
        padding: 0,
    };
    let link = bpf(RAW_TRACEPOINT_OPEN, &mut asked).map_err(|source| Error::Kernel {
        attempt: format!("attach to the tracepoint {tracepoint}"),
        source,
    })?;
    Ok(Attached { _program: program, _link: owned(link) })
}

fn load(tracepoint: &str, code: &[Instruction]) -> Result<OwnedFd, Error> {
    let mut asked = ProgramLoad {
        kind: PROGRAM_RAW_TRACEPOINT,
        count: code.len() as u32,
        instructions: code.as_ptr() as u64,
        licence: LICENCE.as_ptr() as u64,
        ..ProgramLoad::default()
    };
    if let Ok(program) = bpf(PROGRAM_LOAD, &mut asked) {
        return Ok(owned(program));
    }
    // Once more, for the reason.
    let mut log = vec![0_u8; LOG_BYTES];
    asked.log_level = 1;
    asked.log_bytes = LOG_BYTES as u32;
    asked.log = log.as_mut_ptr() as u64;
    bpf(PROGRAM_LOAD, &mut asked).map(owned).map_err(|source| {
        let length = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
        let shown = &log[length.saturating_sub(LOG_SHOWN)..length];
        let log = String::from_utf8_lossy(shown).trim().replace('\n', " | ");
        Error::Verifier { tracepoint: tracepoint.to_owned(), source, log }
    })
}
