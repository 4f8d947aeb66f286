//! What compiles in place of a real compiler, which no two machines have in common: reads a source,
//! works on each byte, writes an object; then reads all objects and writes a
//! program.

use std::path::Path;
use std::process::{Command, Stdio};

use ioscape_engine::error::{Error, Result};

use super::BLOCK_BYTES;
use super::tree::Tree;
use crate::handle::Handle;
use crate::meter::Meter;

/// Rounds over a text. One round costs about a nanosecond for each byte; a compiler of today takes
/// about a microsecond.
const ROUNDS: u32 = 400;
/// Numbers of files of ours begin behind those of sources and copies.
const OBJECTS: u32 = 1 << 24;

/// Compiles all sources below `copy`.
pub(super) fn stand_in(meter: &mut Meter, tree: &Tree, copy: &Path) -> Result<()> {
    let mut program = Vec::new();
    for (number, file) in tree.files.iter().enumerate().filter(|(_, file)| file.is_source()) {
        let number = number as u32;
        let text = read(meter, &copy.join(&file.path), number * 2 + 1)?;
        let object = work(&text);
        let path = copy.join(file.object());
        let mut handle = Handle::create(meter, &path, OBJECTS + number)?;
        handle.write(meter, &object)?;
        handle.close(meter)?;
    }
    for (number, file) in tree.files.iter().enumerate().filter(|(_, file)| file.is_source()) {
        program.extend(read(meter, &copy.join(file.object()), OBJECTS + number as u32)?);
    }
    let mut handle = Handle::create(meter, &copy.join("program"), OBJECTS - 1)?;
    handle.write(meter, &program)?;
    handle.close(meter)
}

fn read(meter: &mut Meter, path: &Path, number: u32) -> Result<Vec<u8>> {
    let mut handle = Handle::read_only(meter, path, number)?;
    let (mut text, mut buffer) = (Vec::new(), vec![0; BLOCK_BYTES]);
    loop {
        let count = handle.read(meter, &mut buffer)?;
        if count == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..count]);
    }
    handle.close(meter)?;
    Ok(text)
}

/// An object as long as its source, in which each byte depends on all before it.
fn work(text: &[u8]) -> Vec<u8> {
    let mut object = text.to_vec();
    let mut state = 2_166_136_261_u32;
    for _ in 0..ROUNDS {
        for byte in &mut object {
            state = (state ^ u32::from(*byte)).wrapping_mul(16_777_619);
            *byte = (state >> 24) as u8;
        }
    }
    object
}

/// Refuses a program that cannot be run.
pub(super) fn check(program: &str) -> Result<()> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map(|_| ()).map_err(|error| {
        Error::Refused(format!("{program} cannot be run ({error}): name another program"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_source_gives_the_same_object_and_another_one_another() {
        assert_eq!(work(b"int x;"), work(b"int x;"));
        let (one, other) = (work(b"int x;"), work(b"int y;"));
        assert!(one[4] != other[4] && one[5] != other[5]);
    }
}
