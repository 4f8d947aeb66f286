use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::files::leftovers;
use crate::run_id::RunId;
use crate::target::{Directory, open_directory};

fn file(directory: u32, bytes: u64) -> StageFile {
    let at_start = Some(AtStart { bytes, has_data: true, is_cached: true, is_written: false });
    StageFile { shape: Shape::File, directory, at_start }
}

fn directory() -> StageFile {
    let at_start = Some(AtStart::default());
    StageFile { shape: Shape::Directory, directory: 0, at_start }
}

/// A file that is not there yet.
fn later(directory: u32) -> StageFile {
    StageFile { directory, ..StageFile::default() }
}

fn set_up(files: &[StageFile]) -> (tempfile::TempDir, Arc<Directory>, Stage) {
    let parent = tempfile::tempdir().unwrap();
    let target = Arc::new(open_directory(parent.path()).unwrap());
    let run = RunId::random().unwrap();
    let interrupt = AtomicBool::new(false);
    let stage = Stage::new(&target, (&run, 0), files, &interrupt, &mut |_| {}).unwrap();
    (parent, target, stage)
}

fn action(kind: Kind, file: u32, handle: u32) -> Action {
    Action { kind, file, handle, other: 0, offset: 0, length: 0, how: How(0) }
}

#[track_caller]
fn done(performer: &mut Performer<'_>, action: Action) -> u64 {
    let outcome = performer.perform(&action);
    assert_eq!(outcome.error, 0, "{action:?}");
    outcome.bytes
}

#[test]
fn files_have_their_lengths_and_are_gone_with_the_stage() {
    let sparse = AtStart { bytes: 1 << 40, has_data: false, is_cached: true, is_written: false };
    let large = StageFile { at_start: Some(sparse), ..StageFile::default() };
    let files = [StageFile::default(), directory(), file(1, 12_345), later(1), large];
    let (parent, target, stage) = set_up(&files);
    let length = |name: &str| stage.path().join(name).metadata().map(|found| found.len()).ok();
    assert_eq!(length("f1/f2"), Some(12_345));
    assert_eq!(length("f1/f3"), None);
    assert_eq!(length("f4"), Some(1 << 40));
    assert_eq!(stage.laid_out_bytes(), 12_345);
    let found = leftovers(&target).unwrap();
    assert!(found.len() == 1 && found[0].live, "clean knows it");
    drop(stage);
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
}

#[test]
fn more_than_half_of_the_room_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let target = Arc::new(open_directory(parent.path()).unwrap());
    let files = [StageFile::default(), file(0, 1 << 60)];
    let run = RunId::random().unwrap();
    let interrupt = AtomicBool::new(false);
    let refused = Stage::new(&target, (&run, 0), &files, &interrupt, &mut |_| {}).unwrap_err();
    assert!(refused.to_string().contains("more room"), "{refused}");
    assert_eq!(parent.path().read_dir().unwrap().count(), 0);
}

#[test]
fn calls_do_what_they_are_called() {
    let files = [StageFile::default(), directory(), file(1, 10_000), later(1), later(1), later(0)];
    let (_parent, _target, stage) = set_up(&files);
    let mut one = Performer::new(&stage);
    let mut two = Performer::new(&stage);
    assert_eq!(one.perform(&action(Kind::LookUp, 3, 0)).error, libc::ENOENT);
    done(&mut one, action(Kind::Open, 2, 7));
    let read = Action { offset: 9_000, length: 4_096, ..action(Kind::Read, 2, 7) };
    assert_eq!(done(&mut two, read), 1_000, "streams share handles");
    done(&mut one, Action { how: How::EXCL, ..action(Kind::Create, 3, 8) });
    let write = Action { length: 5 << 20, ..action(Kind::Write, 3, 8) };
    assert_eq!(done(&mut one, write), 5 << 20, "in one call, however large");
    assert_eq!(done(&mut one, Action { kind: Kind::Read, ..write }), 5 << 20);
    for kind in [Kind::Sync, Kind::DataSync, Kind::Stat, Kind::Touch, Kind::Lock, Kind::Attribute] {
        done(&mut one, action(kind, 3, 8));
    }
    done(&mut one, Action { length: 100, ..action(Kind::Truncate, 3, 8) });
    done(&mut one, action(Kind::Close, 3, 8));
    done(&mut one, action(Kind::Close, 3, 8));
    done(&mut one, Action { other: 2, ..action(Kind::Rename, 3, 0) });
    let now_called = stage.path().join("f1/f2").metadata().unwrap();
    assert_eq!(now_called.len(), 100);
    done(&mut one, Action { other: 4, ..action(Kind::Link, 3, 0) });
    done(&mut one, action(Kind::MakeDirectory, 5, 0));
    done(&mut one, action(Kind::RemoveDirectory, 5, 0));
    done(&mut one, action(Kind::Open, 1, 9));
    assert_eq!(done(&mut one, action(Kind::List, 1, 9)), 4, "., .., two names");
    done(&mut one, action(Kind::Unlink, 3, 0));
    done(&mut one, action(Kind::Unlink, 4, 0));
    assert!(stage.path().join("f1").read_dir().unwrap().next().is_none());
}

#[test]
fn mapped_pages_are_touched_and_pages_beyond_the_end_are_errors() {
    let (_parent, _target, stage) = set_up(&[StageFile::default(), file(0, 65_536)]);
    let mut performer = Performer::new(&stage);
    done(&mut performer, action(Kind::Open, 1, 1));
    done(&mut performer, Action { length: 65_536, ..action(Kind::Map, 1, 1) });
    let fault = Action { offset: 8_192, length: 4_096, ..action(Kind::FaultWrite, 1, 0) };
    done(&mut performer, fault);
    done(&mut performer, Action { kind: Kind::SyncMap, ..fault });
    done(&mut performer, Action { length: 4_096, ..action(Kind::Truncate, 1, 1) });
    let gone = performer.perform(&Action { kind: Kind::FaultRead, ..fault });
    assert_ne!(gone.error, 0, "no signal");
    done(&mut performer, action(Kind::Unmap, 1, 1));
}

#[test]
fn the_kernel_counts_for_a_thread_what_it_moved() {
    let (_parent, _target, stage) = set_up(&[StageFile::default(), file(0, 100_003)]);
    let counted = std::thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let before = ThreadIo::look()?;
            let mut performer = Performer::new(&stage);
            let read = Action { length: 7_919, ..action(Kind::Read, 1, 1) };
            let write = Action { length: 1_009, ..action(Kind::Write, 1, 1) };
            for _ in 0..13 {
                done(&mut performer, read);
                done(&mut performer, write);
            }
            Some(ThreadIo::look()?.since(&before))
        });
        counting.join().unwrap()
    });
    let Some(counted) = counted else { return };
    assert_eq!((counted.read_bytes, counted.written_bytes), (13 * 7_919, 13 * 1_009));
}
