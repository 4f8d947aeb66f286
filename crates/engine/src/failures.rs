//! Requests that failed. Errors of the device are results: they are counted by class and kind, beside
//! the requests that were done and never among them. Errors that say something about the target as a
//! whole (it is full, or may not be written any more) or about us end the visit.

use std::io;

use ioscape_model::{Failed, Failure, RequestClass};

use crate::request::Op;
use crate::rig::Class;

/// How one request failed; `None` where that is no result but the end.
pub(crate) fn kind(error: &io::Error) -> Option<Failure> {
    match error.raw_os_error() {
        Some(libc::ETIMEDOUT) => Some(Failure::TimedOut),
        Some(
            libc::EIO
            | libc::ENODATA
            | libc::EREMOTEIO
            | libc::EILSEQ
            | libc::EBADMSG
            | libc::ENOLINK
            | libc::ENXIO
            | libc::ENODEV
            | libc::EUCLEAN,
        ) => Some(Failure::Io),
        Some(_) => None,
        None => match error.kind() {
            io::ErrorKind::UnexpectedEof => Some(Failure::Short),
            io::ErrorKind::InvalidData => Some(Failure::Mismatch),
            _ => None,
        },
    }
}

/// Those of a worker, or of all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Failures {
    all: Vec<Failed>,
}

impl Failures {
    /// One more. `offset` is where it began, or where the first wrong block lies.
    #[cold]
    pub(crate) fn enter(&mut self, op: &Op, failure: Failure, offset: u64, text: &str) {
        self.add(&Failed {
            class: class(op.class),
            failure,
            count: 1,
            first_offset: offset,
            text: text.to_owned(),
        });
    }

    /// Some more of one kind. The first of each kind is kept.
    pub(crate) fn add(&mut self, more: &Failed) {
        let alike =
            |known: &&mut Failed| (known.class, known.failure) == (more.class, more.failure);
        match self.all.iter_mut().find(alike) {
            Some(known) => known.count += more.count,
            None => self.all.push(more.clone()),
        }
    }

    /// Another worker's.
    pub(crate) fn merge(&mut self, other: &Self) {
        for failed in &other.all {
            self.add(failed);
        }
    }

    /// All, as a point holds them.
    pub(crate) fn into_all(self) -> Vec<Failed> {
        self.all
    }

    /// The first that there was.
    pub(crate) fn first(&self) -> Option<&Failed> {
        self.all.first()
    }
}

pub(crate) fn class(class: Class) -> RequestClass {
    match class {
        Class::ReadSeq => RequestClass::ReadSeq,
        Class::ReadRand => RequestClass::ReadRand,
        Class::WriteSeq => RequestClass::WriteSeq,
        Class::WriteRand => RequestClass::WriteRand,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_device_are_results_and_those_of_the_target_are_the_end() {
        let of = |number: i32| kind(&io::Error::from_raw_os_error(number));
        assert_eq!(of(libc::EIO), Some(Failure::Io));
        assert_eq!(of(libc::ETIMEDOUT), Some(Failure::TimedOut));
        for number in [libc::ENOSPC, libc::EDQUOT, libc::EROFS, libc::EINVAL, libc::EBADF] {
            assert_eq!(of(number), None, "{number}");
        }
    }

    #[test]
    fn failures_are_counted_by_class_and_kind_and_the_first_of_each_is_kept() {
        let op = |class| Op { offset: 4096, length: 4096, class, due_ns: 0 };
        let mut failures = Failures::default();
        for offset in [4096, 8192, 12_288] {
            failures.enter(&op(Class::ReadRand), Failure::Io, offset, "first");
        }
        failures.enter(&op(Class::WriteSeq), Failure::Io, 0, "other");
        let mut all = Failures::default();
        all.merge(&failures);
        all.merge(&failures);
        let all = all.into_all();
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].count, all[0].first_offset), (6, 4096));
        assert_eq!((all[1].class, all[1].count), (RequestClass::WriteSeq, 2));
    }
}
