//! Lines and fixed records of a stream of bytes, in one buffer that does not grow with the file.

use std::io::{self, Read};

/// Read at a time.
const BUFFER_BYTES: usize = 256 << 10;
/// A line that is longer is cut off here: no format has such lines.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Hands out what is in a stream, piece by piece.
pub(crate) struct Lines<'a> {
    input: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that have not been handed out.
    start: usize,
    end: usize,
    is_over: bool,
    /// The number of the line that was handed out last, 1 and up.
    pub(crate) number: u64,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(input: Box<dyn Read + 'a>) -> Self {
        let buffer = vec![0; BUFFER_BYTES];
        Self { input, buffer, start: 0, end: 0, is_over: false, number: 0 }
    }

    /// The next line without its end; `None` where there is no more.
    pub(crate) fn line(&mut self) -> io::Result<Option<&[u8]>> {
        let mut searched = 0;
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]);
            if let Some(at) = found {
                let (from, to) = (self.start, self.start + searched + at);
                self.start = to + 1;
                return Ok(Some(self.handed_out(from, to)));
            }
            searched = self.end - self.start;
            if searched >= LINE_BYTES_MAX {
                let from = self.start;
                self.start = self.end;
                return Ok(Some(self.handed_out(from, from + searched)));
            }
            if self.is_over {
                let from = self.start;
                self.start = self.end;
                let rest = (searched > 0).then(|| self.handed_out(from, from + searched));
                return Ok(rest);
            }
            self.read_on()?;
        }
    }

    fn handed_out(&mut self, from: usize, to: usize) -> &[u8] {
        self.number += 1;
        let line = &self.buffer[from..to];
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Looks at the next `length` bytes, fewer at the end, without taking them.
    pub(crate) fn peek(&mut self, length: usize) -> io::Result<&[u8]> {
        while self.end - self.start < length && !self.is_over {
            self.read_on()?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + length)])
    }

    /// Takes `length` bytes that were looked at, as one record.
    pub(crate) fn take(&mut self, length: usize) {
        self.start = self.end.min(self.start + length);
        self.number += 1;
    }

    fn read_on(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.is_over = count == 0;
        self.end += count;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives so many bytes at a time.
    struct Slow<'a>(&'a [u8], usize);

    impl Read for Slow<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(into.len());
            into[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn all(text: &[u8], step: usize) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(Box::new(Slow(text, step)));
        let mut found = vec![];
        while let Some(line) = lines.line().unwrap() {
            found.push(line.to_vec());
        }
        assert_eq!(lines.number, found.len() as u64);
        found
    }

    #[test]
    fn lines_do_not_depend_on_how_the_bytes_come() {
        let text = b"one\ntwo\r\n\nlast";
        let expected: Vec<&[u8]> = vec![b"one", b"two", b"", b"last"];
        for step in 1..=text.len() {
            assert_eq!(all(text, step), expected, "{step} bytes at a time");
        }
        assert_eq!(all(b"", 1).len(), 0);
        assert_eq!(all(b"\n", 1), [b""]);
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let text = vec![b'x'; 3 * LINE_BYTES_MAX + 5];
        let lines = all(&text, 100_000);
        assert_eq!(lines.iter().map(Vec::len).sum::<usize>(), text.len());
        assert!(lines.iter().all(|line| line.len() <= 2 * LINE_BYTES_MAX), "{}", lines.len());
    }

    #[test]
    fn records_are_looked_at_before_they_are_taken() {
        let mut lines = Lines::new(Box::new(Slow(b"abcdefgh", 3)));
        assert_eq!(lines.peek(5).unwrap(), b"abcde");
        lines.take(5);
        assert_eq!(lines.peek(5).unwrap(), b"fgh");
        lines.take(5);
        assert_eq!(lines.peek(1).unwrap(), b"");
    }
}
