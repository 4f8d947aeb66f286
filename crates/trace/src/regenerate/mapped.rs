//! Mappings: as many as the model has, which together touch as many pages.

/// Mappings that are still to be made.
#[derive(Debug, Default)]
pub(super) struct Mapped {
    /// Pages to touch through them.
    pub(super) pages: f64,
    calls: f64,
    /// Mapped files.
    pub(super) files: Vec<u32>,
}

impl Mapped {
    pub(super) fn add(&mut self, pages: f64, calls: f64) {
        self.pages += pages;
        self.calls += calls;
    }

    /// Pages of the next one.
    pub(super) fn next(&mut self) -> Option<u64> {
        let pages = (self.pages / self.calls.max(1.0)).ceil();
        self.calls -= 1.0;
        (pages >= 1.0).then_some(pages as u64)
    }
}
