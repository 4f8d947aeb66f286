use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

use super::*;

fn refusal(path: impl AsRef<Path>) -> String {
    match open_directory(path) {
        Err(Error::Refused(reason)) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

#[test]
fn a_directory_is_opened_and_has_room() {
    let directory = open_directory(std::env::temp_dir()).unwrap();
    assert!(directory.free_bytes().unwrap() > 0);
    assert!(directory.path().is_absolute());
    let target = directory.describe();
    assert_eq!(target.kind, ioscape_model::TargetKind::Directory);
    assert!(!target.filesystem.is_empty() && !target.mount_options.is_empty());
}

#[test]
fn a_link_to_a_directory_is_resolved_and_remembered() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let directory = open_directory(&link).unwrap();
    assert_eq!(directory.path(), fs::canonicalize(&real).unwrap());
    assert_eq!(directory.given(), link);
}

#[test]
fn what_is_no_directory_is_refused_in_one_line_that_says_why() {
    let file = tempfile::NamedTempFile::new().unwrap();
    assert!(refusal(file.path()).contains("is a regular file"));
    assert!(refusal("/dev/null").contains("character device"));
    assert!(!refusal("/dev/null").contains('\n'));
    let reason = refusal("/nonexistent/x");
    assert!(reason.contains("/nonexistent/x") && reason.contains("No such file"), "{reason}");
}

#[test]
fn what_cannot_be_opened_is_said_with_what_would_help() {
    let said = |number: i32| {
        let error = io::Error::from_raw_os_error(number);
        cannot_open(Path::new("place"), error).to_string()
    };
    assert!(said(libc::ENOENT).contains("that exists"), "{}", said(libc::ENOENT));
    let denied = said(libc::EACCES);
    assert!(denied.contains("this user may enter") && !denied.contains("exists"), "{denied}");
    assert!(said(libc::EMFILE).contains("ulimit -n"), "{}", said(libc::EMFILE));
    assert!(!said(libc::EIO).contains("exists"), "{}", said(libc::EIO));
}

#[test]
fn a_block_device_where_a_directory_is_needed_is_refused_with_the_commands_for_one() {
    let device = fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path()).find(|path| {
        fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_block_device())
    });
    let Some(device) = device else {
        ioscape_test_support::skipped("no block device in /dev");
        return;
    };
    let reason = refusal(&device);
    assert!(reason.contains("--destroy"), "{reason}");
}

#[test]
fn filesystems_that_the_kernel_makes_up_are_refused() {
    for path in ["/proc", "/proc/self/fd", "/sys", "/sys/kernel"] {
        assert!(refusal(path).contains("makes up"), "{path}");
    }
}

#[test]
fn a_directory_that_cannot_be_written_is_refused() {
    if rustix::process::geteuid().is_root() {
        ioscape_test_support::skipped("root may write everywhere");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o500)).unwrap();
    assert!(refusal(place.path()).contains("cannot be written"));
}

#[test]
fn memory_is_named_as_memory_and_its_counters_are_not_trusted() {
    let Ok(directory) = open_directory("/dev/shm") else {
        ioscape_test_support::skipped("no /dev/shm that can be written");
        return;
    };
    assert!(directory.is_memory() && !directory.counters_trusted());
    assert_eq!(directory.warnings()[0].code, Code::MemoryFilesystem);
}

#[test]
fn what_hides_devices_is_not_trusted() {
    for filesystem in ["nfs4", "fuse.sshfs", "fuseblk", "overlay", "zfs"] {
        assert!(is_indirect(filesystem), "{filesystem}");
    }
    for filesystem in ["ext4", "xfs", "btrfs", "tmpfs"] {
        assert!(!is_indirect(filesystem), "{filesystem}");
    }
}

#[test]
fn of_the_files_that_are_there_the_largest_that_storage_has_in_full_is_read() {
    let place = tempfile::tempdir().unwrap();
    let refusal = || match open_existing(place.path()) {
        Err(Error::Refused(reason)) => reason,
        other => panic!("expected a refusal, got {other:?}"),
    };
    if open_directory(place.path()).unwrap().is_memory() {
        assert!(refusal().contains("files live in memory"));
        ioscape_test_support::skipped("the rest needs a disk");
        return;
    }
    let with_data = |name: &str, length: u64| {
        let path = fs::canonicalize(place.path()).unwrap().join(name);
        let noise = (0..length / 8).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23));
        fs::write(&path, noise.flat_map(u64::to_le_bytes).collect::<Vec<u8>>()).unwrap();
        File::open(&path).unwrap().sync_all().unwrap();
        path
    };
    with_data("small", 1 << 20);
    assert!(refusal().contains("holds no file of 64.0 MiB"), "{}", refusal());
    let sparse = File::create(place.path().join("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    assert!(refusal().contains("is sparse"), "{}", refusal());
    fs::create_dir(place.path().join("below")).unwrap();
    let large = with_data("below/large", 65 << 20);
    symlink(&large, place.path().join("link")).unwrap();
    let existing = match open_existing(place.path()) {
        Ok(existing) => existing,
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("direct access") || text.contains("page cache"), "{text}");
            ioscape_test_support::skipped("this directory has no direct access");
            return;
        }
    };
    assert_eq!((existing.path(), existing.length_bytes()), (large.as_path(), 65 << 20));
    let target = existing.describe();
    assert_eq!(target.kind, ioscape_model::TargetKind::File);
    assert_eq!(target.path, large.display().to_string());
    // Named itself it is found, too, and what is no file is not.
    assert_eq!(open_existing(&large).unwrap().path(), large);
    assert!(open_existing("/dev/null").is_err());
}
