use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::atomic::Ordering;

use super::*;
use crate::cachestat::{Pieces, counted, drop_cache, read_in, resident};
use crate::target::open_directory;

const MIB: u64 = 1 << 20;

fn quiet() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

fn test_files(place: &tempfile::TempDir) -> TestFiles {
    interruptible(place, &quiet())
}

fn interruptible(place: &tempfile::TempDir, interrupt: &Arc<AtomicBool>) -> TestFiles {
    let directory = Arc::new(open_directory(place.path()).unwrap());
    TestFiles::new(directory, RunId::random().unwrap(), Arc::clone(interrupt)).unwrap()
}

fn names(place: &tempfile::TempDir) -> Vec<String> {
    let entries = fs::read_dir(place.path()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_file_is_fully_written_private_and_gone_when_dropped() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    let file = files.get(0, 5 * MIB + 1).unwrap();
    let metadata = file.metadata().unwrap();
    assert_eq!(metadata.len(), 5 * MIB + 4096);
    assert!(metadata.blocks() * 512 >= 5 * MIB);
    assert_eq!(metadata.permissions().mode() & 0o7777, 0o600);
    assert_eq!(names(&place).len(), 1);
    drop(files);
    assert_eq!(names(&place), Vec::<String>::new());
}

#[test]
fn growing_keeps_what_was_there_and_writes_only_what_is_missing() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    files.get(0, MIB).unwrap().write_all_at(b"changed", 4096).unwrap();
    files.get(0, 3 * MIB).unwrap();
    files.get(0, 2 * MIB).unwrap();
    assert_eq!(files.written_bytes(), 3 * MIB);
    assert_eq!((files.length(0), files.length(1)), (3 * MIB, 0));
    let mut kept = [0; 7];
    files.get(0, 0).unwrap().read_exact_at(&mut kept, 4096).unwrap();
    assert_eq!(&kept, b"changed");
}

#[test]
fn what_is_laid_out_again_is_as_it_was_at_first_and_counts_as_written() {
    let place = tempfile::tempdir().unwrap();
    let interrupt = quiet();
    let mut files = interruptible(&place, &interrupt);
    let content = |files: &mut TestFiles| {
        let mut bytes = vec![0; 3 * MIB as usize];
        files.get(0, 3 * MIB).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    let at_first = content(&mut files);
    let change = |files: &mut TestFiles, at| {
        files.get(0, 0).unwrap().write_all_at(b"changed", at).unwrap();
    };
    change(&mut files, MIB);
    files.lay_out_again(0, 2 * MIB - 1).unwrap();
    assert!(content(&mut files) == at_first);
    assert_eq!((files.length(0), files.written_bytes()), (3 * MIB, 5 * MIB));
    change(&mut files, 2 * MIB);
    files.lay_out_again(0, 2 * MIB).unwrap();
    assert!(content(&mut files) != at_first, "what is beyond stays");
    interrupt.store(true, Ordering::Relaxed);
    assert!(matches!(files.lay_out_again(0, MIB), Err(Error::Interrupted)));
    assert_eq!(files.written_bytes(), 7 * MIB);
}

#[test]
fn no_two_blocks_are_alike_and_all_look_like_noise() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    let mut blocks = HashSet::new();
    for number in 0..2 {
        let mut bytes = vec![0; 3 * MIB as usize];
        files.get(number, 3 * MIB).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        for block in bytes.chunks(4096) {
            let ones: u32 = block.iter().map(|byte| byte.count_ones()).sum();
            assert!((15_000..17_800).contains(&ones), "{ones} of 32768 bits are set");
            assert!(blocks.insert(block.to_vec()), "a block occurs twice");
        }
    }
    assert_eq!(blocks.len(), 2 * 3 * 256);
}

#[test]
fn more_than_half_of_what_was_free_is_refused_before_anything_is_written() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    let too_much = files.room_bytes() + 4096;
    match files.get(0, too_much) {
        Err(Error::NoRoom { wanted_bytes, .. }) => assert!(wanted_bytes >= too_much),
        other => panic!("expected no room, got {other:?}"),
    }
    assert_eq!(names(&place), Vec::<String>::new());
}

#[test]
fn an_interrupted_layout_stops_and_goes_on_later() {
    let place = tempfile::tempdir().unwrap();
    let interrupt = quiet();
    let mut files = interruptible(&place, &interrupt);
    interrupt.store(true, Ordering::Relaxed);
    assert!(matches!(files.get(0, MIB), Err(Error::Interrupted)));
    assert_eq!(files.length(0), 0);
    interrupt.store(false, Ordering::Relaxed);
    files.get(0, MIB).unwrap();
    assert_eq!(files.length(0), MIB);
}

#[test]
fn a_file_that_somebody_put_in_our_place_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    files.get(0, 4096).unwrap();
    let path = files.path(0);
    fs::rename(&path, place.path().join("taken")).unwrap();
    fs::write(&path, "mine").unwrap();
    assert!(matches!(files.open_again(0, OpenAccess::Buffered), Err(Error::Refused(_))));
    drop(files);
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
}

#[test]
fn a_name_that_exists_is_never_opened() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    fs::write(files.path(0), "precious").unwrap();
    assert!(matches!(files.get(0, 4096), Err(Error::Path { operation: "create", .. })));
    let path = files.path(0);
    drop(files);
    assert_eq!(fs::read_to_string(path).unwrap(), "precious");
}

#[test]
fn live_files_are_told_from_leftovers_by_their_lock() {
    let place = tempfile::tempdir().unwrap();
    let mut live = test_files(&place);
    live.get(0, MIB).unwrap();
    let mut killed = test_files(&place);
    killed.get(3, 2 * MIB).unwrap();
    let killed_path = killed.path(3);
    // As after SIGKILL: descriptors are closed, nothing is removed.
    killed.files.clear();

    let found = leftovers(live.ground().directory().unwrap()).unwrap();
    assert_eq!(found.len(), 2);
    for leftover in &found {
        assert_eq!(leftover.live, leftover.path != killed_path);
    }
    let other = RunId::random().unwrap();
    let directory = open_directory(place.path()).unwrap();
    assert_eq!(remove_leftovers(&directory, Some(&other)).unwrap(), Removed::default());
    let removed = remove_leftovers(&directory, None).unwrap();
    assert_eq!(removed.files, 1);
    assert!(removed.bytes >= 2 * MIB);
    assert_eq!(names(&place), [live.path(0).file_name().unwrap().to_str().unwrap()]);
}

#[test]
fn runs_in_one_directory_name_each_other_while_they_last() {
    let place = tempfile::tempdir().unwrap();
    let mut files = [test_files(&place), test_files(&place)];
    for files in &mut files {
        files.get(0, MIB).unwrap();
    }
    let directory = open_directory(place.path()).unwrap();
    let runs = files.each_ref().map(|files| files.run().clone());
    for (run, other) in [(&runs[0], &runs[1]), (&runs[1], &runs[0])] {
        let doubt = neighbours(&directory, run).unwrap().unwrap();
        assert!(doubt.text.contains(other.as_str()), "{}", doubt.text);
        assert!(!doubt.text.contains(run.as_str()), "{}", doubt.text);
    }
    let [mut killed, _live] = files;
    // As after SIGKILL: what is left behind measures nothing.
    killed.files.clear();
    assert_eq!(neighbours(&directory, &runs[1]).unwrap(), None);
}

#[test]
fn files_that_only_look_like_leftovers_are_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let directory = open_directory(place.path()).unwrap();
    let at = |name: &str| place.path().join(name);
    let private = fs::Permissions::from_mode(0o600);
    fs::write(at(".ioscape-0123abcd-1"), "wrong mode").unwrap();
    fs::set_permissions(at(".ioscape-0123abcd-1"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(at(".ioscape-notes-1"), "wrong name").unwrap();
    fs::set_permissions(at(".ioscape-notes-1"), private.clone()).unwrap();
    fs::write(at("kept"), "linked").unwrap();
    fs::set_permissions(at("kept"), private).unwrap();
    fs::hard_link(at("kept"), at(".ioscape-0123abcd-2")).unwrap();
    std::os::unix::fs::symlink(at("kept"), at(".ioscape-0123abcd-3")).unwrap();
    fs::create_dir(at(".ioscape-0123abcd-4")).unwrap();
    assert_eq!(leftovers(&directory).unwrap(), []);
    assert_eq!(remove_leftovers(&directory, None).unwrap(), Removed::default());
    assert_eq!(names(&place).len(), 6);
}

#[test]
fn descriptors_that_are_opened_again_see_the_same_file() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    files.get(0, MIB).unwrap().write_all_at(b"here", 8192).unwrap();
    let again = files.open_again(0, OpenAccess::Buffered).unwrap();
    let mut bytes = [0; 4];
    again.read_exact_at(&mut bytes, 8192).unwrap();
    assert_eq!(&bytes, b"here");
    drop(again);
    assert!(
        leftovers(files.ground().directory().unwrap()).unwrap()[0].live,
        "the lock went with the descriptor"
    );
}

#[test]
fn what_is_dropped_from_the_cache_is_gone_and_what_is_read_in_is_there() {
    let place = tempfile::tempdir().unwrap();
    let mut files = test_files(&place);
    let in_memory = files.ground().is_memory();
    let file = files.get(0, 8 * MIB).unwrap();
    let range = 0..8 * MIB;
    let Some(written) = counted(file, range.clone()) else {
        ioscape_test_support::skipped("this kernel has no cachestat");
        return;
    };
    assert_eq!(written.dirty_bytes, Some(0), "layout ends on storage");
    if in_memory {
        ioscape_test_support::skipped("nothing can be dropped from an in-memory filesystem");
        return;
    }
    let left = drop_cache(file, range.clone()).unwrap().unwrap();
    assert_eq!(left.resident_bytes, 0);
    assert_eq!(read_in(file, range.clone(), Pieces::Pages, &quiet()).unwrap(), 8 * MIB);
    assert_eq!(resident(file, range.clone()).unwrap().resident_bytes, 8 * MIB);
    assert_eq!(read_in(file, range, Pieces::Stream, &quiet()).unwrap(), 0, "it was there already");
}
