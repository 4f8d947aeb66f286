//! Bytes of unknown origin: every importer reads or refuses them, and none panics.

use ioscape_trace::import::{Columns, Format, Input, Preset, import};
use ioscape_trace::{Event, FileEntry, Sink, StreamEntry, TraceInfo};
use proptest::prelude::*;

use crate::collected::fixture;

/// Takes events until there are too many: counters may promise any number of calls.
#[derive(Default)]
struct Impatient(u32);

impl Sink for Impatient {
    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        assert!(event.offset.checked_add(event.length).is_some(), "{event:?}");
        self.0 += 1;
        if self.0 > 20_000 { Err(std::io::Error::other("enough")) } else { Ok(()) }
    }

    fn file(&mut self, _: FileEntry) -> std::io::Result<()> {
        Ok(())
    }

    fn stream(&mut self, stream: StreamEntry) -> std::io::Result<()> {
        assert!(stream.start_ns <= stream.end_ns || stream.end_ns == 0, "{stream:?}");
        Ok(())
    }

    fn finish(&mut self, _: &TraceInfo) -> std::io::Result<()> {
        Ok(())
    }
}

fn formats() -> Vec<(Format, Vec<Vec<u8>>)> {
    let columns =
        Columns::parse("op=1,off=2B,len=3sec,t=4ms,dur=5s,stream=6,vol=7").expect("a map");
    let of = |names: &[&str]| names.iter().map(|name| fixture(name)).collect::<Vec<_>>();
    let binary = |magic: &[u8]| vec![magic.iter().copied().cycle().take(480).collect()];
    vec![
        (Format::Strace, of(&["strace-old.txt", "strace.txt"])),
        (Format::PerfBlock, of(&["perf-block.txt"])),
        (Format::PerfSyscalls, of(&["perf-syscalls.txt", "perf-raw.txt"])),
        (Format::Blktrace, binary(b"\x07\x74\x61\x65\0\0\0\0\x01\0\0\0\x07\0\x01\0")),
        (Format::Blkparse, of(&["blkparse.txt"])),
        (Format::Iolog, of(&["iolog2.txt", "iolog3.txt"])),
        (Format::Darshan, of(&["darshan.txt"])),
        (Format::Dxt, of(&["dxt.txt"])),
        (Format::Vscsi, binary(b"\x28\0\0\x02\x28\0\0\x01")),
        (Format::Oracle, binary(&[0; 24])),
        (Format::Csv(columns), vec![b"r,0,8,1,2,3,4\n".repeat(20)]),
        (Format::Preset(Preset::Msr), of(&["msr.csv", "msr.csv.gz", "msr.csv.zst"])),
        (Format::Preset(Preset::Systor), of(&["systor.csv"])),
        (Format::Preset(Preset::Fiu), of(&["fiu.txt"])),
        (Format::Clf, of(&["access.log"])),
    ]
}

fn try_one(format: &Format, bytes: &[u8]) {
    let half = bytes.len() / 2;
    let inputs = vec![
        Input { name: "one".to_owned(), bytes: Box::new(bytes) },
        Input { name: "two".to_owned(), bytes: Box::new(&bytes[half..]) },
    ];
    let _ = import(format, inputs, &mut Impatient::default());
}

/// Pieces that readers trip over.
const PIECES: [&str; 16] = [
    "18446744073709551615",
    "-1",
    "\n",
    " ",
    ",",
    "\"",
    ">",
    "<",
    "(",
    ")",
    "\t",
    "/../..",
    "=",
    "{",
    "\\",
    "1e308",
];

fn mutated(mut bytes: Vec<u8>, changes: &[(usize, usize, u8)]) -> Vec<u8> {
    for &(at, kind, byte) in changes {
        let at = at % (bytes.len() + 1);
        let end = (at + usize::from(byte % 32)).min(bytes.len());
        match kind % 5 {
            0 if at < bytes.len() => bytes[at] = byte,
            1 => drop(bytes.drain(at..end)),
            2 => bytes.truncate(at),
            3 => {
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => drop(bytes.splice(at..end, PIECES[usize::from(byte) % PIECES.len()].bytes())),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        for (format, _) in formats() {
            try_one(&format, &bytes);
        }
    }

    #[test]
    fn changed_files_never_panic(
        changes in proptest::collection::vec((any::<usize>(), any::<usize>(), any::<u8>()), 1..12),
        which in any::<usize>(),
    ) {
        for (format, files) in formats() {
            let file = files[which % files.len()].clone();
            try_one(&format, &mutated(file, &changes));
        }
    }
}
