//! Requests that do not begin with a page, and so reach into one page more than they need: as many as the
//! model's touches tell, of which its sizes explain only part.

use ioscape_model::app::Behaviour;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::bags::SizeBag;
use super::places::PAGE_BYTES;
use super::timing::transfers;
use crate::caches::pages_of;

/// Share of the requests that may reach into one page more than the model has it.
const SPARE_SHARE: f64 = 0.01;

/// Requests that reach into one page more than they would if they began with a page.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crossings {
    /// Crossings still to come.
    left: f64,
    /// Requests still to come.
    requests: f64,
    /// Pages that a request touches, mean.
    request_pages: f64,
    /// Crossings beyond `left` that are allowed where a request goes on where another ended.
    spare: f64,
}

impl Crossings {
    /// Adds a pass: its requests, their touches, and how many of these are crossings.
    pub(super) fn add(&mut self, extra: f64, (requests, touches): (f64, f64)) {
        self.left += extra;
        self.requests += requests;
        self.request_pages = touches / requests.max(1.0);
        self.spare = SPARE_SHARE * requests;
    }

    fn count(offset: u64, bytes: u64) -> f64 {
        let (_, pages) = pages_of(offset, bytes);
        pages.saturating_sub(bytes.div_ceil(PAGE_BYTES)) as f64
    }

    pub(super) fn take(&mut self, offset: u64, bytes: u64) {
        self.left -= Self::count(offset, bytes);
        self.requests -= 1.0;
    }

    /// Touches of the requests to come.
    pub(super) fn touches_left(&self) -> f64 {
        self.requests * self.request_pages
    }

    /// True if a request may begin there.
    pub(super) fn allows(&self, offset: u64, bytes: u64) -> bool {
        let crossed = Self::count(offset, bytes);
        crossed == 0.0 || self.left + self.spare >= crossed
    }

    /// Offset within its first page of a request that is to reach into one more; `None` for one that is not
    /// to. The share of requests that follows others crosses by itself.
    pub(super) fn wants(
        &self,
        bytes: u64,
        follows: f64,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Option<u64> {
        let follows = follows.clamp(0.0, 1.0) * self.requests;
        let share = (self.left - follows) / (self.requests - follows).max(1.0);
        if bytes == 0 || chance.random::<f64>() >= share {
            return None;
        }
        let room = bytes.next_multiple_of(PAGE_BYTES) - bytes;
        (room + 1 < PAGE_BYTES).then(|| chance.random_range(room + 1..PAGE_BYTES))
    }
}

/// Pages of the requests of a stretch, if each begins with a page.
pub(super) fn aligned_pages(behaviour: &Behaviour, at: usize) -> f64 {
    let law = [&behaviour.sizes.read, &behaviour.sizes.write][at];
    SizeBag::new(law, (transfers(behaviour)[at], behaviour.five.size_mean), 1.0).pages()
}
