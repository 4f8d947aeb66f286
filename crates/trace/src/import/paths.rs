//! Paths of files: what they tell of the file, and one form for each.

use crate::event::{FileEntry, FileKind};

/// As much of a file as its path tells.
pub(crate) fn described(path: &[u8]) -> FileEntry {
    let kind = kind(path);
    let depth = match path {
        [b'/', ..] => memchr::memchr_iter(b'/', path).count(),
        _ => 0,
    };
    let depth = u16::try_from(depth).unwrap_or(u16::MAX);
    let path = Some(String::from_utf8_lossy(path).into_owned());
    FileEntry { kind, depth, path, ..FileEntry::default() }
}

fn kind(path: &[u8]) -> FileKind {
    let is_below = |directory: &[u8]| path.starts_with(directory);
    if is_below(b"/proc/") || is_below(b"/sys/") {
        FileKind::Pseudo
    } else if is_below(b"/dev/shm/") {
        FileKind::Regular
    } else if is_below(b"/dev/") || is_anonymous(path) {
        FileKind::Other
    } else {
        FileKind::Regular
    }
}

/// `pipe:[123]`, `socket:[123]`, `anon_inode:[eventfd]`, `TCP:[…]`: no file has such a name.
fn is_anonymous(path: &[u8]) -> bool {
    path.first() != Some(&b'/') && memchr::memmem::find(path, b":[").is_some()
        || path.starts_with(b"anon_inode:")
        || path.starts_with(b"/memfd:")
}

/// The directory of an absolute path; `None` for the root and for what is no path.
pub(crate) fn parent(path: &[u8]) -> Option<&[u8]> {
    let cut = memchr::memrchr(b'/', path)?;
    match cut {
        _ if path == b"/" || path[0] != b'/' => None,
        0 => Some(b"/"),
        _ => Some(&path[..cut]),
    }
}

/// Puts `name` below `directory` into `path`, without `.`, `..` and doubled slashes.
pub(crate) fn join(path: &mut Vec<u8>, directory: Option<&[u8]>, name: &[u8]) {
    path.clear();
    if name.first() != Some(&b'/') {
        path.extend_from_slice(directory.unwrap_or_default());
    }
    let is_plain = !name.windows(2).any(|two| matches!(two, b"//" | b"/." | b"./" | b".."));
    if is_plain && name != b"." {
        if !path.is_empty() && !name.is_empty() && path.last() != Some(&b'/') {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        return;
    }
    let is_absolute = path.first() == Some(&b'/') || name.first() == Some(&b'/');
    for part in name.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if is_absolute => {
                let cut = memchr::memrchr(b'/', path).unwrap_or(0);
                path.truncate(cut);
            }
            _ => {
                if is_absolute || !path.is_empty() {
                    path.push(b'/');
                }
                path.extend_from_slice(part);
            }
        }
    }
    if is_absolute && path.is_empty() {
        path.push(b'/');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_form() {
        let check = |directory: Option<&str>, name: &str, expected: &str| {
            let mut path = vec![];
            join(&mut path, directory.map(str::as_bytes), name.as_bytes());
            assert_eq!(String::from_utf8(path).unwrap(), expected, "{name}");
        };
        check(Some("/root"), "a", "/root/a");
        check(Some("/root"), "/etc/passwd", "/etc/passwd");
        check(Some("/root"), "./a/../b", "/root/b");
        check(Some("/root"), "../../..", "/");
        check(Some("/"), "a", "/a");
        check(Some("/root"), ".", "/root");
        check(Some("/root"), "", "/root");
        check(None, "a/b", "a/b");
        check(None, "/x//y/.", "/x/y");
        check(Some("/root"), ".hidden", "/root/.hidden");
    }

    #[test]
    fn names_tell_the_kind() {
        let check = |path: &str, kind| assert_eq!(described(path.as_bytes()).kind, kind, "{path}");
        check("/var/log/a.log", FileKind::Regular);
        check("/proc/self/maps", FileKind::Pseudo);
        check("/dev/null", FileKind::Other);
        check("/dev/shm/a", FileKind::Regular);
        check("pipe:[77]", FileKind::Other);
        check("data/a", FileKind::Regular);
        assert_eq!(parent(b"/a/b"), Some(&b"/a"[..]));
        assert_eq!(parent(b"/a"), Some(&b"/"[..]));
        assert_eq!((parent(b"/"), parent(b"a/b"), parent(b"")), (None, None, None));
    }
}
