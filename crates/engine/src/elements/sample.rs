//! A timing as it was taken: nothing is averaged or fitted here.

use ioscape_model::ElementName;

/// How much one operation was about.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// Bytes that it moved.
    pub bytes: f64,
    /// Pages that were dirty, cached or mapped.
    pub pages: f64,
    /// Pieces that these lay in.
    pub extents: f64,
}

impl Shape {
    /// An operation that is about nothing but itself.
    pub const NONE: Self = Self { bytes: 0.0, pages: 0.0, extents: 0.0 };

    /// One that moves bytes.
    pub fn bytes(bytes: usize) -> Self {
        Self { bytes: bytes as f64, ..Self::NONE }
    }

    /// One about pages in so many pieces.
    pub fn pages(pages: usize, extents: usize) -> Self {
        Self { pages: pages as f64, extents: extents as f64, ..Self::NONE }
    }
}

/// Operations of one shape, done in a row in one round. The first shape that is taken of a name is
/// the usual one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which operation.
    pub name: ElementName,
    /// How much each was about.
    pub shape: Shape,
    /// How many.
    pub calls: u64,
    /// What all of them took, seconds.
    pub time_s: f64,
}
