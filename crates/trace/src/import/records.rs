//! Fields of binary records, in either order of bytes.

/// The order of bytes in a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

/// A record of bytes that is long enough for its fields.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) endian: Endian,
}

impl<'a> Fields<'a> {
    pub(crate) fn little(bytes: &'a [u8]) -> Self {
        Self { bytes, endian: Endian::Little }
    }

    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let mut field = [0; N];
        field.copy_from_slice(&self.bytes[at..at + N]);
        if self.endian == Endian::Big {
            field.reverse();
        }
        field
    }

    pub(crate) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(crate) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(crate) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }
}
