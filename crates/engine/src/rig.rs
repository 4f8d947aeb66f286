//! What the measuring loop drives: something that can be prepared for a workload, runs it, and
//! is looked at window by window. A directory on a real kernel is one, the simulated device
//! another; the loop cannot tell them apart.

use hdrhistogram::Histogram;
use ioscape_model::{Failed, Hints, Ranks, Spent, Warning, Workload};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::placement::Ahead;

/// The four classes of requests, in the order of every array that is indexed by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// A read that starts where the previous request ended.
    ReadSeq = 0,
    /// A read elsewhere.
    ReadRand = 1,
    /// A write that starts where the previous request ended.
    WriteSeq = 2,
    /// A write elsewhere.
    WriteRand = 3,
}

impl Class {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::ReadSeq, Self::ReadRand, Self::WriteSeq, Self::WriteRand];

    /// Whether it reads.
    #[inline]
    pub fn is_read(self) -> bool {
        matches!(self, Self::ReadSeq | Self::ReadRand)
    }

    /// Whether it starts where the previous request ended.
    #[inline]
    pub fn is_sequential(self) -> bool {
        matches!(self, Self::ReadSeq | Self::WriteSeq)
    }

    /// The class of a request.
    pub fn new(read: bool, sequential: bool) -> Self {
        match (read, sequential) {
            (true, true) => Self::ReadSeq,
            (true, false) => Self::ReadRand,
            (false, true) => Self::WriteSeq,
            (false, false) => Self::WriteRand,
        }
    }
}

/// Requests of one class in one window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassCount {
    /// Requests.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their response times added up, seconds.
    pub time_s: f64,
}

/// What happened since the previous window ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// How long it was.
    pub length_s: f64,
    /// Requests by class.
    pub classes: [ClassCount; 4],
    /// Bytes fetched from storage for this process (`read_bytes` of /proc/self/io).
    pub device_read_bytes: Option<u64>,
    /// Bytes of pages made dirty that were clean (`write_bytes` of /proc/self/io).
    pub dirtied_bytes: Option<u64>,
    /// Share of the requested pages that were resident, as far as the page cache says.
    pub hit_fraction: Option<f64>,
    /// Resident part of the data touched, bytes.
    pub resident_bytes: Option<u64>,
    /// Dirty pages of the machine at the end.
    pub dirty_bytes: Option<u64>,
    /// Pages under write-back at the end.
    pub writeback_bytes: Option<u64>,
    /// Processor time of this process.
    pub cpu_s: Option<f64>,
    /// Share of the processors' time that the hypervisor gave to others.
    pub stolen_fraction: Option<f64>,
}

impl Window {
    /// Requests of all classes.
    pub fn ops(&self) -> u64 {
        self.classes.iter().map(|class| class.ops).sum()
    }

    /// Bytes of all classes.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.bytes).sum()
    }
}

/// What preparing a workload took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Prepared {
    /// `layout`, `quiesce` and `warm_up` are filled in.
    pub spent_s: Spent,
    /// Doubts that arose.
    pub warnings: Vec<Warning>,
}

/// What is left to say when a workload was stopped.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Response times in nanoseconds by class, since the last [`Rig::mark`].
    pub response_ns: [Histogram<u64>; 4],
    /// Open loop: nanoseconds from when requests were to begin to their ends, since the last
    /// [`Rig::mark`].
    pub latency_ns: Option<Histogram<u64>>,
    /// Doubts that arose on the way.
    pub warnings: Vec<Warning>,
    /// Seconds that the final fdatasync of everything took, where one was asked for.
    pub sync_s: Option<f64>,
    /// Requests that failed since the workers began.
    pub failed: Vec<Failed>,
    /// Bytes whose content was checked, where that was asked for.
    pub verified_bytes: Option<u64>,
    /// When the first and the last of the workers ran after they were let go, by `CLOCK_MONOTONIC`;
    /// `None` where time is simulated.
    pub began_ns: Option<(i64, i64)>,
    /// Figures of each rank, where there were several.
    pub ranks: Option<Ranks>,
}

/// Something a workload can be run on.
pub trait Rig {
    /// `psync`, `uring`, `threads`, `null`, `sim`: what makes the requests of the latest workload.
    fn engine(&self) -> &'static str;

    /// What is known beforehand.
    fn hints(&self) -> Hints;

    /// Seconds since the run began; simulated ones on a simulated device.
    fn now_s(&self) -> f64;

    /// Lays out what is missing, waits for earlier dirty data, brings the cache into the state
    /// the workload asks for.
    ///
    /// # Errors
    /// When the files cannot be made or the run was interrupted; [`Error::MaxWritten`], before
    /// anything is written, when more than may be written would have to be laid out.
    ///
    /// [`Error::MaxWritten`]: crate::Error::MaxWritten
    fn prepare(&mut self, work: &Workload) -> Result<Prepared>;

    /// Sets the workers going. Requests are drawn from `seed`.
    ///
    /// # Errors
    /// When the workers cannot be made.
    fn start(&mut self, work: &Workload, seed: u64) -> Result<()>;

    /// Makes the workers, and sets them going when `wait` returns. What it returns is dropped as soon as
    /// they were let go: this thread is not ahead of theirs for longer.
    ///
    /// # Errors
    /// When the workers cannot be made, or what `wait` says; nothing runs then.
    fn start_when(
        &mut self,
        work: &Workload,
        seed: u64,
        wait: &mut dyn FnMut() -> Result<Ahead>,
    ) -> Result<()> {
        drop(wait()?);
        self.start(work, seed)
    }

    /// Lets `length_s` pass and says what happened in it.
    ///
    /// # Errors
    /// When none of many requests succeeded any more, one failed in a way that is no result, or the
    /// run was interrupted; the workers have been stopped then. [`Error::MaxWritten`] when no more
    /// may be written: the workers have stopped, and what they did before this window counts.
    ///
    /// [`Error::MaxWritten`]: crate::Error::MaxWritten
    fn window(&mut self, length_s: f64) -> Result<Window>;

    /// Forgets the response times so far: the windows begin to count.
    fn mark(&mut self);

    /// Stops the workers; with `sync`, times an fdatasync of everything they wrote.
    ///
    /// # Errors
    /// When a request or the fdatasync failed.
    fn finish(&mut self, sync: bool) -> Result<Finished>;

    /// Bytes written so far, layout included.
    fn written_bytes(&self) -> u64;

    /// Bytes that the device counted since the rig was made, those of other programs included;
    /// `None` where no device is known.
    fn device_written_bytes(&self) -> Option<u64> {
        None
    }

    /// Why requests cannot go around the page cache here, where they cannot and that is known.
    fn refuses_direct(&self) -> Option<String> {
        None
    }

    /// From now on at most so many bytes reach storage, all since the rig was made. A rig that
    /// writes nothing has nothing to do for that.
    fn limit_written(&mut self, _most_bytes: u64) {}

    /// What of that is left once all that is dirty has been written back.
    fn may_write_bytes(&self) -> u64 {
        u64::MAX
    }
}
