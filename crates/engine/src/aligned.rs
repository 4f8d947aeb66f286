//! Memory at an address that direct access takes: a page satisfies all devices.

const PAGE: usize = 4096;

/// So many bytes that begin a page.
#[derive(Debug)]
pub(crate) struct Aligned {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Aligned {
    /// All of them zero.
    pub(crate) fn new(length: usize) -> Self {
        let memory = vec![0; length + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        Self { memory, start, length }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}
