//! What a visit says about data: what was checked (`--verify`), what failed, what is not safe.

use std::sync::Arc;

use ioscape_model::{Code, Severity, Warning, Workload};

use super::{EngineKind, FileRig};
use crate::error::{Error, Result};
use crate::files::BLOCK_BYTES;
use crate::rig::Finished;
use crate::run_id::RunId;
use crate::tally::Together;
use crate::verify::{Ledger, Tag};

/// What each test file should hold.
#[derive(Debug)]
pub(super) struct Ledgers {
    tag: Tag,
    pub(super) files: Vec<Arc<Ledger>>,
}

impl FileRig {
    /// Stamps blocks when they are written and checks them when they are read.
    /// To be asked for before anything is laid out.
    ///
    /// # Errors
    /// On a device that is only read: nothing on it was stamped.
    pub fn with_verification(mut self, run: &RunId) -> Result<Self> {
        if self.ground.is_read_only() {
            let path = self.ground.path().display();
            return Err(Error::Refused(format!(
                "--verify checks what this run wrote itself, and {path} is only read: leave it out"
            )));
        }
        let tag = Tag::from_run(run);
        self.files.stamp_with(tag);
        self.ledgers = Some(Ledgers { tag, files: Vec::new() });
        Ok(self)
    }

    /// Refuses a workload whose blocks cannot be recognised.
    pub(super) fn check_verifiable(&self, work: &Workload) -> Result<()> {
        if self.ledgers.is_none() {
            return Ok(());
        }
        let refused = |text: String| Err(Error::Refused(text));
        if self.engine == EngineKind::Null {
            return refused("--verify has nothing to check without I/O: leave it out".to_owned());
        }
        if !work.align.is_multiple_of(BLOCK_BYTES) {
            return refused(format!(
                "--verify stamps blocks of {BLOCK_BYTES} bytes, and align is {}: take align=4KiB",
                work.align
            ));
        }
        Ok(())
    }

    /// A ledger for every file, as long as the file is.
    pub(super) fn open_ledgers(&mut self) {
        let Some(ledgers) = &mut self.ledgers else { return };
        for number in 0..self.files.count() {
            let length = self.files.length(number);
            if let Some(ledger) = ledgers.files.get_mut(number) {
                *ledger = Arc::new(ledger.grown(length.max(ledger.length_bytes())));
            } else {
                let ledger = Ledger::new(ledgers.tag.file(number), length);
                ledgers.files.push(Arc::new(ledger));
            }
        }
    }

    pub(super) fn finished(
        &self,
        times: Together,
        warnings: Vec<Warning>,
        sync_s: Option<f64>,
    ) -> Finished {
        let Together { response, latency, failures, verified_bytes, began_ns } = times;
        Finished {
            response_ns: response,
            latency_ns: latency,
            warnings,
            sync_s,
            failed: failures.into_all(),
            verified_bytes: self.ledgers.is_some().then_some(verified_bytes),
            began_ns,
            ranks: None,
        }
    }
}

/// The device would not take what it had seemed to take: a result, and a grave one.
pub(super) fn not_durable(error: rustix::io::Errno) -> Warning {
    let text = format!("the final fdatasync failed ({error}): what was written is not safe");
    let remedy = "look at the kernel's log (dmesg), and at the device's health (smartctl)";
    Warning::new(Code::RequestErrors, text, remedy).with_severity(Severity::Serious)
}
