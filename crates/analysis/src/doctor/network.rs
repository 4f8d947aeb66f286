//! Filesystems of other machines: who caches what, when data written here are on the server, what
//! `fsync` and locks mean there. From the manual pages nfs(5), mount.cifs(8), sshfs(1) and the kernel's
//! documentation of 9p, fuse and virtiofs.

use ioscape_model::checkup::Facts;
use ioscape_model::units::show_size;
use ioscape_model::{Code, Severity, Warning, Words};

/// Programs that copy often ask for so much at a time: a mount that cuts it into pieces pays more round trips.
const USUAL_MOST_BYTES: u64 = 1 << 20;
const ALIKE: &str = "compare only with what is mounted alike";

pub(super) fn doubts(facts: &Facts) -> Vec<Warning> {
    let target = &facts.target;
    if !target.is_served() {
        return Vec::new();
    }
    let options: Vec<&str> = target.mount_options.split(',').collect();
    let mut all = vec![note(
        format!("{}: {}", target.filesystem, semantics(&target.filesystem)),
        "a map shows both caches where the server's is the larger and is outgrown: `--memory-limit` makes \
         this machine's smaller",
    )];
    all.extend(OPTIONS.iter().filter_map(|(names, severity, means, remedy)| {
        let option = options.iter().find(|option| names.contains(option))?;
        Some(super::mounted_with(option, means, remedy, (Code::MountOptions, *severity)))
    }));
    all.extend(short_requests(&options));
    all
}

fn note(text: impl Into<Words>, remedy: &str) -> Warning {
    Warning::new(Code::MountOptions, text, remedy).with_severity(Severity::Note)
}

/// How data are cached, when the server has what was written, how far `fsync` and locks reach.
fn semantics(filesystem: &str) -> &'static str {
    match filesystem {
        "nfs" | "nfs4" => {
            "writes wait in this machine's memory until the file is closed or synced at the latest; opening \
             a file asks the server whether its pages are still good; fsync waits for the server, whose \
             export option `async` answers before data are safe and cannot be seen from here"
        }
        "cifs" | "smb3" | "smbfs" => {
            "this machine caches a file while the server grants it a lease, which ends when another client \
             writes it"
        }
        "fuse.sshfs" => {
            "opening a file may drop its pages; writes return once they are handed to sshfs, which sends \
             them without waiting, so that errors come at fsync or close; locks hold on this machine only"
        }
        "9p" => {
            "without `cache=` no data are cached on this side and each read goes to the host, whose page \
             cache answers"
        }
        "virtiofs" => "the host's page cache answers what this machine's does not hold",
        "ceph" | "lustre" => {
            "this machine caches what the servers' locks let it keep: another client that writes the same \
             files takes that away"
        }
        _ if filesystem.starts_with("fuse.") => {
            "opening a file may drop its pages; a write goes to the filesystem's own process before it \
             returns, unless that asks for write-back caching"
        }
        _ => "a server has a cache of its own behind this machine's",
    }
}

/// Options, how much they matter, what they mean, what to do.
type Meaning = (&'static [&'static str], Severity, &'static str, &'static str);

const OPTIONS: [Meaning; 6] = [
    (
        &["noac", "acregmax=0"],
        Severity::Warning,
        "attributes are not cached, so that each stat and open asks the server, and with noac each \
         write waits for it",
        ALIKE,
    ),
    (&["cache=none"], Severity::Warning, "no data are cached on this machine", ALIKE),
    (
        &["nostrictsync"],
        Severity::Warning,
        "fsync does not ask the server to flush: durable rates are not durable",
        "mount it with strictsync",
    ),
    (
        &["nolock", "local_lock=all", "local_lock=flock", "local_lock=posix", "nobrl"],
        Severity::Note,
        "locks hold on this machine only",
        ALIKE,
    ),
    (&["udp", "proto=udp"], Severity::Note, "lost packets are sent again after time-outs", ALIKE),
    (&["sec=krb5i", "sec=krb5p"], Severity::Note, "each request is signed or encrypted", ALIKE),
];

/// `rsize=` and `wsize=` below what programs ask for.
fn short_requests(options: &[&str]) -> Option<Warning> {
    let bytes = |option: &&str| option.split_once('=').and_then(|(_, value)| value.parse().ok());
    let is_size = |option: &&&str| option.starts_with("rsize=") || option.starts_with("wsize=");
    let least: u64 = options.iter().filter(is_size).filter_map(bytes).min()?;
    (least < USUAL_MOST_BYTES).then(|| {
        let text =
            Words::new("requests longer than {least} are cut into pieces of that (rsize, wsize)")
                .name("least", show_size(least as f64))
                .figure("request_bytes", least as f64);
        note(text, "mount it with rsize=1048576,wsize=1048576 where the server allows it")
    })
}

#[cfg(test)]
mod tests {
    use ioscape_model::Target;

    use super::*;

    fn doubted(filesystem: &str, mount_options: &str) -> Vec<Warning> {
        let target = Target {
            filesystem: filesystem.into(),
            mount_options: mount_options.into(),
            ..Target::default()
        };
        let facts = Facts { target, ..Facts::default() };
        doubts(&facts)
    }

    fn said(filesystem: &str, mount_options: &str) -> Vec<String> {
        doubted(filesystem, mount_options).into_iter().map(|doubt| doubt.text).collect()
    }

    #[test]
    fn a_filesystem_of_another_machine_is_explained_and_one_of_this_is_not() {
        for (filesystem, means) in [
            ("nfs4", "until the file is closed or synced"),
            ("cifs", "lease"),
            ("fuse.sshfs", "errors come at fsync or close"),
            ("9p", "each read goes to the host"),
            ("fuse.rclone", "the filesystem's own process"),
        ] {
            let all = said(filesystem, "rw");
            assert!(all.len() == 1 && all[0].contains(means), "{filesystem}: {all:?}");
        }
        assert!(said("ext4", "rw,noac").is_empty());
        assert!(said("fuse.bindfs", "rw").is_empty());
    }

    #[test]
    fn options_that_change_what_is_measured_are_named() {
        let all =
            doubted("nfs4", "rw,noac,vers=4.2,rsize=32768,wsize=1048576,local_lock=none,hard");
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all[1].text.contains("`noac`") && all[2].text.contains("32 KiB"), "{all:?}");
        assert_eq!(all[2].figures.get("request_bytes"), Some(&32768.0));
        assert_eq!(said("nfs4", "rw,rsize=1048576,wsize=1048576,hard").len(), 1);
    }
}
