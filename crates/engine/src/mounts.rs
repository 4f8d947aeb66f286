//! Which mount a directory lies on, from `/proc/self/mountinfo`.

use std::fs;
use std::os::fd::{AsRawFd, BorrowedFd};

/// One line of mountinfo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the words of mountinfo itself")]
pub(crate) struct Mount {
    /// Device number of the filesystem, `major:minor`.
    pub device_number: String,
    /// What of the filesystem is mounted: its root, or a directory in it.
    pub root: String,
    /// Where.
    pub mount_point: String,
    /// Options of this mount.
    pub mount_options: String,
    /// Filesystem type.
    pub filesystem: String,
    /// Mount source: a device, or what stands for one.
    pub source: String,
    /// Options of the filesystem itself.
    pub super_options: String,
}

/// The mount that an open file lies on. Goes by the mount's number, so that paths that are
/// mounted over, or bound elsewhere, do not mislead.
pub(crate) fn mount_of(file: BorrowedFd<'_>) -> Option<Mount> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let id = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let table = table("/proc/self/mountinfo")?;
    table.lines().find(|line| line.split(' ').next() == Some(id)).and_then(parse)
}

/// All mounts this process sees.
pub(crate) fn all() -> Vec<Mount> {
    table("/proc/self/mountinfo").unwrap_or_default().lines().filter_map(parse).collect()
}

/// A table of the kernel that holds paths. They may be no text, which must not hide all others.
pub(super) fn table(path: &str) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// `22 27 0:21 / /proc rw,relatime shared:1 - proc proc rw`; see `proc_pid_mountinfo(5)`.
fn parse(line: &str) -> Option<Mount> {
    let (mount, filesystem) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2).map(unescape);
    let mut filesystem = filesystem.split(' ').map(unescape);
    Some(Mount {
        device_number: mount.next()?,
        root: mount.next()?,
        mount_point: mount.next()?,
        mount_options: mount.next()?,
        filesystem: filesystem.next()?,
        source: filesystem.next()?,
        super_options: filesystem.next().unwrap_or_default(),
    })
}

/// The kernel writes space, tab, newline and backslash as three octal digits behind a backslash.
fn unescape(field: &str) -> String {
    let mut parts = field.split('\\');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(byte) = part.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            text.push(char::from(byte));
            text.push_str(&part[3..]);
        } else {
            text.push('\\');
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_line_of_mountinfo_is_taken_apart() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue";
        let mount = parse(line).unwrap();
        assert_eq!(mount.device_number, "98:0");
        assert_eq!(mount.root, "/mnt1");
        assert_eq!(mount.mount_point, "/mnt 2");
        assert_eq!(mount.mount_options, "rw,noatime");
        assert_eq!(mount.filesystem, "ext3");
        assert_eq!(mount.source, "/dev/root");
        assert_eq!(mount.super_options, "rw,errors=continue");
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn proc_lies_on_proc() {
        let file = fs::File::open("/proc/self/status").unwrap();
        assert_eq!(mount_of(file.as_fd()).unwrap().filesystem, "proc");
    }
}
