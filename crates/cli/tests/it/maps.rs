//! Maps of simulated devices, each made once for all tests that only read it.

use std::sync::LazyLock;

use crate::workdir::Workdir;

/// A quick drive under a page cache.
pub(crate) static NVME: LazyLock<Vec<u8>> = LazyLock::new(|| explored("sim:nvme"));

/// A volume whose limits on requests and bytes per second are reached.
pub(crate) static VOLUME: LazyLock<Vec<u8>> = LazyLock::new(|| explored("sim:cloud-volume"));

/// A hard disk under 512 MiB of page cache.
pub(crate) static HDD: LazyLock<Vec<u8>> = LazyLock::new(|| explored("sim:hdd"));

fn explored(device: &str) -> Vec<u8> {
    let work = Workdir::new();
    let run = ["run", device, "--out", "r.jsonl", "--seed", "7", "--report", "none", "--quiet"];
    work.stdout(&run);
    std::fs::read(work.path("r.jsonl")).unwrap()
}

/// A directory with that map as `r.jsonl`.
pub(crate) fn beside(map: &[u8]) -> Workdir {
    let work = Workdir::new();
    std::fs::write(work.path("r.jsonl"), map).unwrap();
    work
}
