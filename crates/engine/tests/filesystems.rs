//! Targets on real filesystems, made here on loop devices. Needs root and the mkfs programs;
//! without them the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail as loudly as they do")]
#![expect(clippy::print_stderr, reason = "what was skipped has to be seen")]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::cachestat::{drop_cache, resident};
use ioscape_engine::files::TestFiles;
use ioscape_engine::target::{Directory, open_directory};
use ioscape_engine::{
    Clock, EngineKind, Error, FileRig, Rig, RunId, UringOptions, Window, extents, host,
};
use ioscape_model::Workload;
use ioscape_model::warning::Code;
use ioscape_test_support::{Mount, run, skipped};

const MIB: u64 = 1 << 20;

/// A filesystem of its own, gone when dropped.
struct Mounted {
    mount: Mount,
    _place: tempfile::TempDir,
}

impl Mounted {
    /// On a loop device over a sparse image; `tmpfs` needs none. `None`, with the reason on
    /// stderr, where it cannot be made here.
    fn make(filesystem: &str, options: &str) -> Option<Self> {
        let place = tempfile::tempdir().unwrap();
        let point = place.path().join("mounted here");
        let made = if filesystem == "tmpfs" {
            Mount::tmpfs(&point, options)
        } else {
            Mount::of_image(&point, filesystem, options)
        };
        let mount =
            made.map_err(|why| skipped(format_args!("no {filesystem} here: {why}"))).ok()?;
        Some(Self { mount, _place: place })
    }

    fn point(&self) -> PathBuf {
        self.mount.point().to_owned()
    }

    fn image(&self) -> PathBuf {
        Mount::image(self.mount.point())
    }

    fn open(&self) -> Arc<Directory> {
        Arc::new(open_directory(self.point()).unwrap())
    }
}

fn lay_out(directory: Arc<Directory>, length: u64) -> TestFiles {
    let quiet = Arc::new(AtomicBool::new(false));
    let mut files = TestFiles::new(directory, RunId::random().unwrap(), quiet).unwrap();
    files.get(0, length / 3).unwrap();
    files.get(0, length).unwrap();
    files
}

fn names(path: &Path) -> Vec<PathBuf> {
    let found = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    found.filter(|path| !path.ends_with("lost+found")).collect()
}

fn check_layout(filesystem: &str, options: &str) {
    let Some(mounted) = Mounted::make(filesystem, options) else { return };
    let directory = mounted.open();
    let target = directory.describe();
    assert_eq!(target.filesystem, filesystem);
    assert!(target.device.as_ref().is_some_and(|name| name.starts_with("loop")), "{target:?}");
    // Where the image lies is nobody else's business.
    let image = mounted.image();
    let name = image.file_name().and_then(|name| name.to_str());
    assert_eq!(target.loop_backing.as_deref(), name);
    assert!(target.queue_depth.is_some() && target.read_ahead_bytes.is_some());
    assert!(target.write_cache.is_some() && target.rotational.is_some());
    assert!(directory.counters_trusted());

    let length = 24 * MIB;
    let mut files = lay_out(directory, length);
    let file = files.get(0, length).unwrap();
    let extents = extents::read_extents(file, length).unwrap();
    eprintln!("{filesystem} ({options}): {extents:?}");
    assert_eq!((extents.unwritten_bytes, extents.encoded_bytes), (0, 0));
    if resident(file, 0..1).is_some() {
        assert_eq!(drop_cache(file, 0..length).unwrap().unwrap().resident_bytes, 0);
    }
    drop(files);
    assert_eq!(names(&mounted.point()), Vec::<PathBuf>::new());
}

#[test]
fn layout_on_ext4_is_written_and_can_be_dropped() {
    check_layout("ext4", "noatime");
}

#[test]
fn layout_on_ext4_with_synchronous_writes_is_written_and_can_be_dropped() {
    check_layout("ext4", "sync");
}

#[test]
fn layout_on_xfs_is_written_and_can_be_dropped() {
    check_layout("xfs", "noatime");
}

#[test]
fn layout_on_btrfs_is_written_and_can_be_dropped() {
    check_layout("btrfs", "noatime");
}

#[test]
fn a_filesystem_that_compresses_all_it_can_finds_nothing_to_compress() {
    check_layout("btrfs", "compress-force=zstd");
    let Some(mounted) = Mounted::make("btrfs", "compress-force=zstd") else { return };
    let directory = mounted.open();
    let warnings = directory.warnings();
    assert_eq!(warnings[0].code, Code::CopyOnWrite);
    assert!(warnings[0].text.contains("compress-force=zstd"), "{}", warnings[0].text);

    // Written again like any file: laying out reserves blocks, which alone keeps them as they are.
    let mut files = lay_out(directory, MIB);
    let mut bytes = vec![0; MIB as usize];
    let encoded_bytes = |bytes: &[u8], name: &str| {
        let path = mounted.point().join(name);
        fs::write(&path, bytes).unwrap();
        let file = File::open(path).unwrap();
        file.sync_all().unwrap();
        extents::read_extents(&file, MIB).unwrap().encoded_bytes
    };
    assert_eq!(encoded_bytes(&bytes, "zeros"), MIB, "the filesystem does compress");
    files.get(0, MIB).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(encoded_bytes(&bytes, "ours"), 0);
}

/// Overwrites a block in every `step` of the first `length` bytes, each apart on storage where the
/// filesystem gives it a new place.
fn write_here_and_there(file: &File, length: u64, step: usize) {
    for offset in (0..length).step_by(step) {
        file.write_all_at(&[7; 4096], offset).unwrap();
    }
    rustix::fs::fdatasync(file).unwrap();
}

#[test]
fn a_file_that_overwriting_broke_up_is_laid_out_in_large_pieces_again() {
    for options in ["noatime", "compress-force=zstd"] {
        let Some(mounted) = Mounted::make("btrfs", options) else { return };
        let (length, used) = (48 * MIB, 16 * MIB);
        let mut files = lay_out(mounted.open(), length);
        let pieces = |files: &mut TestFiles| {
            extents::count(files.get(0, 0).unwrap(), 0..used, u64::MAX).unwrap()
        };
        assert!(!files.is_broken_up(0, used) && !files.is_broken_up(0, length));
        for _ in 0..2 {
            write_here_and_there(files.get(0, length).unwrap(), used, 8192);
            let broken = pieces(&mut files);
            assert!(broken > 3000, "{options}: {broken}");
            assert!(files.is_broken_up(0, used), "{options}");
            assert!(files.is_broken_up(0, length), "{options}");
            let written_bytes = files.written_bytes();
            files.lay_out_again(0, used).unwrap();
            assert_eq!(files.written_bytes() - written_bytes, used);
            assert!(pieces(&mut files) < broken / 4, "{options}: {}", pieces(&mut files));
            assert!(!files.is_broken_up(0, used), "{options}");
        }
        assert_eq!(files.length(0), length);
        // Growing does not make what was broken up before the measure of what is fresh.
        write_here_and_there(files.get(0, length).unwrap(), length, 128 << 10);
        files.get(0, length + 16 * MIB).unwrap();
        assert!(files.is_broken_up(0, used), "{options}");
    }
}

#[test]
fn filesystems_that_write_in_place_break_nothing_up() {
    for filesystem in ["ext4", "xfs"] {
        let Some(mounted) = Mounted::make(filesystem, "noatime") else { continue };
        let mut files = lay_out(mounted.open(), 24 * MIB);
        write_here_and_there(files.get(0, 0).unwrap(), 24 * MIB, 8192);
        assert!(!files.is_broken_up(0, 24 * MIB), "{filesystem}");
    }
}

#[test]
fn a_visit_that_only_reads_storage_begins_with_files_in_large_pieces_whatever_ran_before() {
    let Some(mounted) = Mounted::make("btrfs", "noatime") else { return };
    let mut rig = rig(&mounted, EngineKind::default());
    let work = |text: &str| Workload::parse(text).unwrap();
    rig.prepare(&work("unique_bytes=24MiB,size_mean=64KiB")).unwrap();
    let path = names(&mounted.point()).pop().unwrap();
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let pieces = || extents::read_extents(&file, 24 * MIB).unwrap().count;
    let fresh = pieces();
    write_here_and_there(&file, 24 * MIB, 8192);
    for left_alone in ["read_frac=0.5", "read_frac=0.5,access=direct", "read_frac=1"] {
        rig.prepare(&work(&format!("unique_bytes=24MiB,size_mean=64KiB,{left_alone}"))).unwrap();
        assert!(pieces() > fresh + 4000, "{left_alone}: {} pieces", pieces());
    }
    let reads = |mib: u64| format!("unique_bytes={mib}MiB,size_mean=64KiB,read_frac=1,state=cold");
    rig.prepare(&work(&reads(8))).unwrap();
    assert!(pieces() > fresh + 2500, "the rest is left for those that use it");
    let prepared = rig.prepare(&work(&reads(24))).unwrap();
    if let Some(note) = prepared.warnings.iter().find(|note| note.code == Code::CopyOnWrite) {
        skipped(&note.text);
        return;
    }
    assert!(pieces() < fresh + 40, "{} pieces, {fresh} at first", pieces());
}

#[test]
fn memory_has_room_for_half_and_leaves_nothing() {
    let Some(mounted) = Mounted::make("tmpfs", "size=32m") else { return };
    let directory = mounted.open();
    assert!(directory.is_memory());
    assert_eq!(directory.describe().device, None);
    let mut files = lay_out(directory, 12 * MIB);
    assert_eq!(files.room_bytes(), 16 * MIB);
    assert!(matches!(files.get(1, 5 * MIB), Err(Error::NoRoom { .. })));
    drop(files);
    assert_eq!(names(&mounted.point()), Vec::<PathBuf>::new());
}

#[test]
fn a_filesystem_that_is_mounted_read_only_is_refused() {
    let Some(mounted) = Mounted::make("ext4", "ro") else { return };
    let refused = open_directory(mounted.point());
    assert!(
        matches!(&refused, Err(Error::Refused(why)) if why.contains("read-only")),
        "{refused:?}"
    );
}

#[test]
fn a_disk_that_fills_up_meanwhile_is_said_to_be_full() {
    let Some(mounted) = Mounted::make("ext4", "noatime") else { return };
    let directory = mounted.open();
    let mut files = lay_out(directory.clone(), MIB);
    let wanted = files.room_bytes() / MIB * MIB;
    let other = File::create(mounted.point().join("other")).unwrap();
    let taken = directory.free_bytes().unwrap() - 8 * MIB;
    rustix::fs::fallocate(&other, rustix::fs::FallocateFlags::empty(), 0, taken).unwrap();
    match files.get(0, wanted) {
        Err(error @ Error::Path { .. }) => {
            assert!(error.to_string().contains("No space left"), "{error}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(files.length(0), MIB, "what was there stays");
    assert!(directory.free_bytes().unwrap() > 4 * MIB, "what was reserved is given back");
}

/// Writes to a filesystem wait while it is frozen.
struct Frozen<'a>(&'a Path);

impl<'a> Frozen<'a> {
    fn freeze(point: &'a Path) -> Result<Self, String> {
        run("fsfreeze", &["-f", point.to_str().unwrap()]).map(|_| Self(point))
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        run("fsfreeze", &["-u", self.0.to_str().unwrap()]).ok();
    }
}

fn rig(mounted: &Mounted, engine: EngineKind) -> FileRig {
    rig_on(&mounted.point()).with_engine(engine)
}

fn rig_on(point: &Path) -> FileRig {
    let clock = Clock::start();
    let directory = open_directory(point).unwrap();
    let quiet = Arc::new(AtomicBool::new(false));
    let run = RunId::random().unwrap();
    FileRig::new(directory, run, &host::describe(&clock), clock, quiet).unwrap()
}

/// How a freeze is watched: windows of so many seconds, for so long.
const FREEZE_WINDOW_S: f64 = 0.02;
const FREEZE_WATCHED_S: f64 = 1.5;
const FREEZE_RATE: f64 = 500.0;

/// Seconds for which no request was done, at most: the longest row of windows without one, and the
/// windows at its ends.
fn longest_idle_s(windows: &[Window]) -> f64 {
    let is_idle = |window: &Window| window.classes.iter().all(|class| class.ops == 0);
    let rows = windows.split(|window| !is_idle(window)).map(<[Window]>::len);
    // Windows last as long as they are found to.
    let longest_s = windows.iter().map(|window| window.length_s).fold(0.0, f64::max);
    (rows.max().unwrap_or(0) + 2) as f64 * longest_s.max(FREEZE_WINDOW_S)
}

/// Runs direct writes at a fixed rate, the filesystem frozen for half a second of them, and holds
/// the freeze against its analytic latencies.
#[track_caller]
fn check_freeze(engine: EngineKind, depth: u32) {
    const FROZEN_NS: u64 = 500_000_000;
    let Some(mounted) = Mounted::make("ext4", "noatime") else { return };
    let mut rig = rig(&mounted, engine);
    let work = Workload::parse(&format!(
        "unique_bytes=16MiB,size_mean=4k,size_dist=fixed,read_frac=0,seq_frac=0,access=direct,\
         rate={FREEZE_RATE},depth={depth}"
    ));
    let work = work.unwrap();
    if let Err(error) = rig.prepare(&work).and_then(|_| rig.start(&work, 1)) {
        return skipped(error);
    }
    rig.window(0.2).unwrap();
    rig.mark();
    let point = mounted.point();
    let clock = Clock::start();
    let (freezing, windows) = std::thread::scope(|scope| {
        let freezing = scope.spawn(|| {
            clock.sleep_until(FROZEN_NS / 2);
            let frozen = Frozen::freeze(&point)?;
            let from_ns = clock.now_ns();
            clock.sleep_until(from_ns + FROZEN_NS);
            let until_ns = clock.now_ns();
            drop(frozen);
            Ok::<_, String>((until_ns - from_ns) as f64 * 1e-9)
        });
        let count = (FREEZE_WATCHED_S / FREEZE_WINDOW_S) as usize;
        let windows: Vec<Window> =
            (0..count).map(|_| rig.window(FREEZE_WINDOW_S).unwrap()).collect();
        (freezing.join().unwrap(), windows)
    });
    let finished = rig.finish(false).unwrap();
    let frozen_s = match freezing {
        Ok(frozen_s) => frozen_s,
        Err(why) => return skipped(why),
    };
    let latency = finished.latency_ns.unwrap();
    for quantile in [0.99, 0.999] {
        let before_s = (1.0 - quantile) * latency.len() as f64 / FREEZE_RATE;
        // At the soonest writes wait when all is frozen. At the latest they wait when nothing is
        // done any more; whatever else holds them up shows in the windows too.
        let felt_s = 0.95 * (frozen_s - before_s)..1.05 * longest_idle_s(&windows);
        let seen_s = latency.value_at_quantile(quantile) as f64 * 1e-9;
        let which = format!("{engine:?} depth {depth}, {quantile}");
        assert!(felt_s.contains(&seen_s), "{which}: {seen_s} in {felt_s:?}");
        eprintln!("{which}: {seen_s:.3} s, analytic {:.3} s", frozen_s - before_s);
    }
}

#[test]
fn a_frozen_filesystem_is_felt_by_all_who_would_have_written() {
    check_freeze(EngineKind::Psync, 1);
}

#[test]
fn a_frozen_filesystem_is_felt_through_a_ring() {
    check_freeze(EngineKind::Uring(UringOptions::default()), 1);
}

#[test]
fn a_frozen_filesystem_is_felt_by_many_requests_in_flight() {
    check_freeze(EngineKind::Auto, 32);
}

fn visit(rig: &mut FileRig, text: &str) -> (Vec<Window>, ioscape_engine::Finished) {
    let work = Workload::parse(text).unwrap();
    rig.prepare(&work).unwrap();
    rig.start(&work, 1).unwrap();
    let windows = (0..5).map(|_| rig.window(0.1).unwrap()).collect();
    (windows, rig.finish(false).unwrap())
}

/// What the device of a mounted filesystem has taken in its life, by the kernel's own count.
fn device_bytes(mounted: &Mounted) -> u64 {
    rustix::fs::syncfs(File::open(mounted.point()).unwrap()).unwrap();
    let device = mounted.open().describe().device.unwrap();
    let stat = fs::read_to_string(format!("/sys/class/block/{device}/stat")).unwrap();
    stat.split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
}

/// Visits one workload after the other until no more may be written; says how many that were.
fn write_all(rig: &mut FileRig, works: &[&str]) -> usize {
    for (visits, text) in works.iter().cycle().enumerate() {
        let work = Workload::parse(text).unwrap();
        let begun = rig.prepare(&work).and_then(|_| rig.start(&work, visits as u64));
        let ended = begun.err().or_else(|| (0..5).find_map(|_| rig.window(0.1).err()));
        rig.finish(ended.is_none()).unwrap();
        match ended {
            Some(Error::MaxWritten) => return visits,
            Some(error) => panic!("{error}"),
            None => assert!(visits < 1000, "there is no end to it"),
        }
    }
    unreachable!("works are visited again and again")
}

#[test]
fn no_more_reaches_a_device_of_ext4_than_may_be_written_whatever_writes_it() {
    // Nothing is written behind our backs.
    check_written("ext4", "noinit_itable");
}

#[test]
fn no_more_reaches_a_device_of_xfs_than_may_be_written_whatever_writes_it() {
    check_written("xfs", "noatime");
}

#[test]
fn no_more_reaches_a_device_of_btrfs_than_may_be_written_whatever_writes_it() {
    check_written("btrfs", "noatime");
}

#[track_caller]
fn check_written(filesystem: &str, options: &str) {
    const MOST: u64 = 160 * MIB;
    let works = [
        "unique_bytes=24MiB,read_frac=0,size_mean=4KiB,seq_frac=0",
        "unique_bytes=24MiB,read_frac=0.5,process_num=2,fsync_every=8",
        "unique_bytes=16MiB,read_frac=0,size_mean=1MiB,seq_frac=1",
        "unique_bytes=24MiB,read_frac=0,size_mean=4KiB,fsync_every=1",
        "unique_bytes=16MiB,read_frac=0,process_num=2,access=direct",
    ];
    let Some(mounted) = Mounted::make(filesystem, options) else { return };
    for from in [0, 3] {
        let before_bytes = device_bytes(&mounted);
        let mut rig = rig(&mounted, EngineKind::default());
        rig.limit_written(MOST);
        let visits = write_all(&mut rig, &[&works[from..], &works[..from]].concat());
        let (counted, own) = (rig.device_written_bytes().unwrap(), rig.written_bytes());
        drop(rig);
        let taken = device_bytes(&mounted) - before_bytes;
        let shown = format!(
            "{filesystem} from {from}: {visits} visits, {} of {} MiB, {} by the rig's count, \
                 {} of its own",
            taken / MIB,
            MOST / MIB,
            counted / MIB,
            own / MIB
        );
        eprintln!("{shown}");
        assert!(taken <= MOST / 100 * 102, "{shown}");
        assert!(taken >= MOST / 2, "{shown}");
    }
}

#[test]
fn direct_requests_leave_the_page_cache_alone_and_come_from_storage() {
    let Some(mounted) = Mounted::make("ext4", "noatime") else { return };
    let mut rig = rig(&mounted, EngineKind::Psync);
    let text = "unique_bytes=16MiB,read_frac=0.7,access=direct";
    let (windows, finished) = visit(&mut rig, text);
    assert!(finished.warnings.iter().all(|warning| warning.code != Code::DirectNotDirect));
    let last = windows.last().unwrap();
    assert_eq!(last.hit_fraction, Some(0.0));
    assert!(last.resident_bytes.is_none_or(|bytes| bytes < MIB), "{last:?}");
    let fetched: u64 = windows.iter().filter_map(|window| window.device_read_bytes).sum();
    let asked: u64 = windows.iter().map(|w| w.classes[0].bytes + w.classes[1].bytes).sum();
    assert!(fetched as f64 > 0.9 * asked as f64, "{fetched} of {asked}");
}

#[test]
fn a_filesystem_that_caches_direct_requests_is_found_out() {
    // Requests on a file with a checksum for every block of data it holds in memory are buffered:
    // btrfs does that to compressed files, and the flag is taken all the same.
    let Some(mounted) = Mounted::make("btrfs", "compress-force=zstd") else { return };
    let mut rig = rig(&mounted, EngineKind::Psync);
    let text = "unique_bytes=16MiB,read_frac=1,access=direct";
    let (windows, finished) = visit(&mut rig, text);
    let resident = windows.last().unwrap().resident_bytes.unwrap_or(0);
    let is_doubted = finished.warnings.iter().any(|warning| warning.code == Code::DirectNotDirect);
    assert_eq!(is_doubted, resident > 2 * MIB, "{resident} {:?}", finished.warnings);
}

#[test]
fn direct_access_to_files_in_memory_is_refused() {
    let Some(mounted) = Mounted::make("tmpfs", "size=64m") else { return };
    let mut rig = rig(&mounted, EngineKind::Psync);
    let work = Workload::parse("unique_bytes=8MiB,access=direct").unwrap();
    let message = rig.prepare(&work).unwrap_err().to_string();
    assert!(message.contains("files live in memory here"), "{message}");
}

#[test]
fn psync_refuses_more_than_one_request_in_flight() {
    let Some(mounted) = Mounted::make("tmpfs", "size=64m") else { return };
    let mut rig = rig(&mounted, EngineKind::Psync);
    let work = Workload::parse("unique_bytes=8MiB,depth=2").unwrap();
    let message = rig.prepare(&work).unwrap_err().to_string();
    assert!(message.contains("one request in flight per process"), "{message}");
}

/// Bytes that the servers of a mounted directory have read so far.
fn served_bytes(source: &Path) -> u64 {
    let is_server = |process: &PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&*source.to_string_lossy())
    };
    let read_bytes = |process: PathBuf| -> Option<u64> {
        let counts = fs::read_to_string(process.join("io")).ok()?;
        counts.lines().find_map(|line| line.strip_prefix("rchar: ")?.parse().ok())
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.filter(is_server).filter_map(read_bytes).sum()
}

#[test]
fn on_fuse_a_visit_finds_its_data_cached_after_others_have_written() {
    const DATA_BYTES: u64 = 64 * MIB;
    let place = tempfile::tempdir().unwrap();
    let (source, point) = (place.path().join("served"), place.path().join("mounted"));
    fs::create_dir(&source).unwrap();
    let server = format!("bindfs#{}", source.display());
    let _mount = match Mount::make(&point, &["-t", "fuse", &server]) {
        Ok(mount) => mount,
        Err(why) => return skipped(format_args!("no bindfs here: {why}")),
    };
    let mut rig = rig_on(&point);
    for _ in 0..2 {
        visit(&mut rig, &format!("unique_bytes={DATA_BYTES},read_frac=0,seq_frac=0"));
        let work = Workload::parse(&format!("unique_bytes={DATA_BYTES},read_frac=1")).unwrap();
        rig.prepare(&work).unwrap();
        rig.start(&work, 1).unwrap();
        let before = served_bytes(&source);
        for _ in 0..5 {
            rig.window(0.1).unwrap();
        }
        let served = served_bytes(&source) - before;
        rig.finish(false).unwrap();
        assert!(served < DATA_BYTES / 10, "{served} bytes came from the server");
    }
}

#[test]
fn behind_a_network_a_visit_finds_its_data_in_the_memory_of_the_server() {
    const DATA_BYTES: u64 = 32 * MIB;
    let place = tempfile::tempdir().unwrap();
    let (source, point) = (place.path().join("served"), place.path().join("mounted"));
    fs::create_dir(&source).unwrap();
    let programs = ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server"];
    let Some(program) = programs.iter().find(|program| Path::new(program).exists()) else {
        return skipped(format_args!("no sftp-server here"));
    };
    // In place of ssh: the server by itself, which takes no argument of ssh's.
    let command = place.path().join("connect");
    fs::write(&command, format!("#!/bin/sh\nexec {program}\n")).unwrap();
    run("chmod", &["755", &command.to_string_lossy()]).unwrap();
    let server = format!("sshfs#server:{}", source.display());
    let options = format!("ssh_command={}", command.display());
    let _mount = match Mount::make(&point, &["-t", "fuse", "-o", &options, &server]) {
        Ok(mount) => mount,
        Err(why) => return skipped(format_args!("no sshfs here: {why}")),
    };
    let mut rig = rig_on(&point);
    let work = |bytes: u64| {
        Workload::parse(&format!("unique_bytes={bytes},read_frac=1,access=direct")).unwrap()
    };
    rig.prepare(&work(DATA_BYTES)).unwrap();
    rig.prepare(&work(DATA_BYTES / 4)).unwrap();
    let files =
        fs::read_dir(&source).unwrap().map(|entry| File::open(entry.unwrap().path()).unwrap());
    let file = files.max_by_key(|file| file.metadata().unwrap().len()).unwrap();
    file.sync_all().unwrap();
    drop_cache(&file, 0..DATA_BYTES).unwrap();
    let held_bytes = || resident(&file, 0..DATA_BYTES).map(|held| held.resident_bytes);
    let dropped = held_bytes().is_some_and(|held| held < DATA_BYTES / 4);
    if !dropped {
        return skipped(format_args!("pages of the server's file cannot be dropped here"));
    }
    let before = served_bytes(&source);
    rig.prepare(&work(DATA_BYTES)).unwrap();
    assert!(held_bytes() > Some(DATA_BYTES / 10 * 9), "{:?} in memory", held_bytes());
    let served = served_bytes(&source) - before;
    assert!(served > 2 * DATA_BYTES, "{served} bytes came from the server: not all of them twice");
    drop_cache(&file, 0..DATA_BYTES).unwrap();
    rig.prepare(&work(DATA_BYTES)).unwrap();
    let again = held_bytes().unwrap();
    assert!(
        again < DATA_BYTES / 4,
        "{again} read once more, though the visit before left them there"
    );
}
