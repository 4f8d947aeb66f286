//! A storage system whose laws are known in, sentences and figures out.

#![expect(clippy::float_cmp, reason = "these figures are passed on, not computed")]

use std::collections::BTreeMap;

use ioscape_model::units::{GIB, KIB, MIB};
use ioscape_model::{
    Access, Border, BorderUniqueBytes, Curve, Estimate, Finding, FoundBy, Host, Interval, Layer,
    Point, Region, RegionKind, RegionUniqueBytes, ResponseTime, Role, Target, Workload, word,
};

use super::family::{Effect, size};
use super::{Evidence, findings};
use crate::visit::visit;

/// Everything a finding can look at, owned.
#[derive(Clone)]
struct World {
    estimates: Vec<Estimate>,
    all_estimates: Vec<Estimate>,
    points: Vec<Point>,
    borders: Vec<Border>,
    regions: Vec<Region>,
    host: Host,
    target: Target,
}

const CACHE_BYTES: u64 = 240 * MIB;
const FOCAL_BYTES: [u64; 2] = [40 * MIB, 600 * MIB];

impl World {
    /// Measures `law`, bytes per second of a workload, in two regions with a family each and a
    /// read-only and a write-only curve over `unique_bytes`.
    fn with_law(law: impl Fn(&Workload) -> f64) -> Self {
        let mut works = Vec::new();
        let regions: Vec<Region> = FOCAL_BYTES.iter().map(|bytes| region(*bytes)).collect();
        for region in &regions {
            works.extend(family(&region.focal));
        }
        for unique_bytes in [16, 64, 160, 480, 960, 1920].map(|mib| mib * MIB) {
            for read_frac in [0.0, 1.0] {
                works.push(Workload { unique_bytes, read_frac, ..regions[0].focal.clone() });
            }
        }
        works.dedup();
        Self {
            estimates: works.iter().map(|work| estimate(work, law(work))).collect(),
            all_estimates: vec![],
            points: vec![],
            borders: vec![border(Curve::Read, CACHE_BYTES as f64, 40.0)],
            regions,
            host: Host {
                memory_bytes: 8 * GIB,
                memory_limit_bytes: Some(256 * MIB),
                llc_bytes: Some(32 * MIB),
                dirty_limit_bytes: 100 * MIB,
                ..Host::default()
            },
            target: Target { filesystem: "ext4".into(), ..Target::default() },
        }
    }

    fn findings(&self) -> Vec<Finding> {
        let evidence = Evidence {
            estimates: &self.estimates,
            points: &self.points,
            borders: &self.borders,
            regions: &self.regions,
            host: &self.host,
            target: &self.target,
            all_estimates: &self.all_estimates,
        };
        findings(&evidence, 7)
    }

    /// The findings with this code.
    fn about(&self, code: &str) -> Vec<Finding> {
        self.findings().into_iter().filter(|finding| word(finding.code) == code).collect()
    }

    #[track_caller]
    fn only(&self, code: &str) -> Finding {
        let mut found = self.about(code);
        assert_eq!(found.len(), 1, "{code}: {found:?}");
        found.remove(0)
    }

    /// Says of every visit to write-only workloads what share of the pages was dirty already.
    fn with_redirtied(mut self, fraction: f64) -> Self {
        let writes = self.estimates.iter().filter(|x| x.workload.read_frac <= 0.0);
        self.points = writes.map(|x| absorbing(&x.workload, fraction)).collect();
        self
    }
}

fn region(focal_bytes: u64) -> Region {
    let (name, from, to) = if focal_bytes < CACHE_BYTES {
        (RegionKind::Cache, 8 * MIB, CACHE_BYTES)
    } else {
        (RegionKind::Storage, CACHE_BYTES, 2 * GIB)
    };
    let focal = Workload { unique_bytes: focal_bytes, ..Workload::default() };
    let extent = RegionUniqueBytes { from: from as f64, to: to as f64, focal: focal_bytes as f64 };
    Region { name: name.into(), unique_bytes: extent, focal, layer: Layer::default(), revision: 0 }
}

fn border(curve: Curve, capacity: f64, step: f64) -> Border {
    let at = BorderUniqueBytes {
        onset: capacity * 0.95,
        capacity,
        low: capacity * 0.97,
        high: capacity * 1.03,
    };
    Border {
        unique_bytes: at,
        curve,
        found_by: FoundBy::Timing,
        step,
        layer: Layer::default(),
        revision: 0,
    }
}

fn family(focal: &Workload) -> Vec<Workload> {
    let mut works = vec![focal.clone()];
    for read_frac in [0.0, 0.25, 0.75, 1.0] {
        works.push(Workload { read_frac, ..focal.clone() });
    }
    for seq_frac in [0.0, 1.0] {
        works.push(Workload { seq_frac, ..focal.clone() });
    }
    for process_num in [2, 4] {
        works.push(Workload { process_num, ..focal.clone() });
    }
    for size_mean in [4, 64, 256, 1024].map(|kib| kib * KIB) {
        works.push(Workload { size_mean, ..focal.clone() });
    }
    works
}

/// Known to 2 %.
fn estimate(work: &Workload, bytes_per_s: f64) -> Estimate {
    let known = Interval { mean: bytes_per_s, low: bytes_per_s * 0.98, high: bytes_per_s / 0.98 };
    let bare = Estimate::bare(work.clone(), 3, known);
    let mean = f64::from(work.process_num) / bare.ops_per_s.mean;
    Estimate {
        response_time_s: ResponseTime { mean, p50: mean, ..ResponseTime::default() },
        ..bare
    }
}

fn absorbing(work: &Workload, write_absorbed_fraction: f64) -> Point {
    Point {
        role: Role::WriteBorder,
        write_absorbed_fraction: Some(write_absorbed_fraction),
        ..visit(work.clone(), 1.0)
    }
}

/// 200 MB/s on the storage, reads 40 times and writes 20 times as fast in the cache.
fn write_back(work: &Workload) -> f64 {
    if work.unique_bytes > CACHE_BYTES { 200e6 } else { 4e9 + 4e9 * work.read_frac }
}

/// Bytes per second where every write waits for the storage, and large data are slow either way.
fn write_through(work: &Workload) -> f64 {
    if work.unique_bytes > CACHE_BYTES || work.read_frac < 1.0 { 200e6 } else { 8e9 }
}

#[test]
fn the_effective_cache_stands_beside_the_limit_and_the_memory() {
    let mut world = World::with_law(write_back);
    let found = world.only("read_cache");
    assert!(found.text.contains("94 % of the memory limit of 256 MiB"), "{}", found.text);
    assert!(found.text.contains("2.9 % of the memory of 8 GiB"), "{}", found.text);
    assert!(
        found
            .text
            .contains("with 1.88 GiB of data a request takes 40.0 times as long as with 16 MiB")
    );
    assert!((found.figures["memory_limit_share"] - 0.9375).abs() < 1e-9);
    assert_eq!(found.figures["capacity_bytes"], CACHE_BYTES as f64);

    world.host.memory_limit_bytes = Some(u64::MAX / 4096 * 4096);
    let found = world.only("read_cache");
    assert!(!found.text.contains("limit"), "no limit at all: {}", found.text);
    world.target.kind = ioscape_model::TargetKind::Sim;
    assert!(!world.only("read_cache").text.contains("memory"), "not this machine's");
    world.borders.clear();
    assert!(world.about("read_cache").is_empty());
}

#[test]
fn the_write_cache_is_named_where_there_is_one() {
    let mut world = World::with_law(write_back);
    assert!(world.about("write_cache").is_empty());
    world.borders.insert(0, border(Curve::Write, 90.0 * MIB as f64, 20.0));
    let found = world.only("write_cache");
    assert!(found.text.contains("about 90 MiB"), "{}", found.text);
    let near = "near the kernel's limit on dirty data of 100 MiB";
    assert!(found.text.contains(near), "{}", found.text);
    assert!((found.figures["dirty_limit_share"] - 0.9).abs() < 1e-9);

    world.host.dirty_background_bytes = 32 * MIB;
    world.borders.insert(0, border(Curve::Write, 26.0 * MIB as f64, 5.0));
    let text = world.only("write_cache").text;
    let first = text.find("about 26 MiB").unwrap();
    let background = text.find("near the kernel's background limit of 32 MiB").unwrap();
    let second = text.find("slow down again at about 90 MiB").unwrap();
    assert!(first < background && background < second && second < text.find(near).unwrap());
}

#[test]
fn the_border_that_was_counted_is_the_file_caches_and_slopes_have_no_confidence() {
    let mut world = World::with_law(write_back);
    world.borders.push(border(Curve::Read, 900.0 * MIB as f64, 90.0));
    world.borders[0].found_by = FoundBy::Counters;
    assert_eq!(world.only("read_cache").figures["capacity_bytes"], CACHE_BYTES as f64);
    world.borders.pop();
    assert!(world.only("read_cache").text.contains("(95 %: "));
    world.borders[0].found_by = FoundBy::Slope;
    let text = world.only("read_cache").text;
    assert!(text.contains("(between 233 MiB and 247 MiB)") && !text.contains("(95 %: "), "{text}");
}

/// Reads from this machine's memory, from the server's and from its disk; writes always alike.
fn served(work: &Workload) -> f64 {
    match work.unique_bytes {
        _ if work.read_frac < 1.0 => 150e6,
        bytes if bytes <= CACHE_BYTES => 5e9,
        bytes if bytes <= SERVER_BYTES => 60e6,
        _ => 9e6,
    }
}

const SERVER_BYTES: u64 = 800 * MIB;

#[test]
fn before_a_server_both_caches_are_named_whichever_step_is_larger() {
    for step in [7.0, 70.0] {
        let mut world = World::with_law(served);
        world.borders.push(border(Curve::Read, SERVER_BYTES as f64, step));
        assert!(world.about("server_cache").is_empty(), "this machine's own disk has no server");
        world.target.filesystem = "fuse.sshfs".into();
        let ours = world.only("read_cache");
        assert!(ours.text.starts_with("Reads are served from this machine's"), "{}", ours.text);
        assert_eq!(ours.figures["capacity_bytes"], CACHE_BYTES as f64);
        let found = world.only("server_cache");
        let said = "from the server's, up to about 800 MiB (95 %: 776 MiB to 824 MiB) of data: 60.0 MB/s over \
                    600 MiB, of which this machine holds 240 MiB; beyond it from the server's storage: \
                    9.00 MB/s over 1.88 GiB";
        assert!(found.text.contains(said), "{}", found.text);
        assert_eq!(found.figures["client_capacity_bytes"], CACHE_BYTES as f64);
        world.borders.pop();
        assert!(world.only("server_cache").text.contains("served alike up to 1.88 GiB"));
    }
}

#[test]
fn where_this_machine_keeps_no_pages_the_cache_is_the_servers() {
    let mut world = World::with_law(served);
    world.target = Target { filesystem: "9p".into(), ..Target::default() };
    assert!(world.only("read_cache").text.starts_with("Reads are served from the server's cache"));
    assert!(world.about("server_cache").is_empty());
    world.target.mount_options = "rw,cache=mmap".into();
    assert!(world.only("read_cache").text.starts_with("Reads are served from this machine's"));
}

#[test]
fn direct_writes_tell_whether_the_cache_before_a_server_absorbs_writes() {
    let mut world = World::with_law(served);
    world.target.filesystem = "fuse.sshfs".into();
    let fits = |one: &Estimate| one.workload.unique_bytes < CACHE_BYTES;
    world.estimates.retain(|one| one.workload.read_frac >= 1.0 || fits(one));
    assert!(world.about("write_policy").is_empty());
    for (rate, size_mean, policy) in [
        (140e6, 16 * KIB, "write-through"),
        (20e6, 16 * KIB, "write-back"),
        (5e6, 4 * KIB, "write-back"),
        (1e3, 64 * KIB, ""),
        (1e9, KIB, ""),
    ] {
        let read_frac = 0.0;
        let direct =
            Workload { access: Access::Direct, read_frac, size_mean, ..Workload::default() };
        let mut world = World { all_estimates: vec![estimate(&direct, rate)], ..world.clone() };
        let text = world.about("write_policy").pop().map_or_else(String::new, |one| one.text);
        let is_told = text.contains(policy) && text.contains("past the cache");
        assert!(if policy.is_empty() { text.is_empty() } else { is_told }, "{text}");
        world.target.filesystem = "ext4".into();
        assert!(world.about("write_policy").is_empty());
    }
}

#[test]
fn rates_stand_in_the_order_of_the_sentence() {
    let world = World::with_law(|work| if work.read_frac > 0.5 { 1e8 } else { 4e8 });
    let text = &world.about("read_write_ratio")[0].text;
    assert!(text.contains("writes run 4.00 times") && text.contains("400 MB/s against 100 MB/s"));
}

#[test]
fn peaks_and_bounds_are_named_within_the_cache_and_beyond_it() {
    let mut world = World::with_law(write_back).with_redirtied(0.9);
    let peaks = world.only("peak_rates");
    assert_eq!(peaks.figures["peak_cached_bytes_per_s"], 8e9);
    assert_eq!(peaks.figures["peak_storage_bytes_per_s"], 2e8);
    world.regions[1].focal.size_mean = world.regions[0].focal.size_mean;
    let bounds: Vec<String> = world.about("bound").into_iter().map(|x| x.text).collect();
    assert!(bounds[0].contains("reads run at the speed of copying in memory"), "{bounds:?}");
    assert!(bounds[0].contains("the page cache absorbs writes"), "{bounds:?}");
    assert!(bounds[1].contains("reads wait for the storage"), "{bounds:?}");
    assert!(bounds[1].contains("writes wait for the write-back"), "{bounds:?}");
    let through = World::with_law(write_through).about("bound").remove(0).text;
    assert!(through.contains("because the cache writes through"), "{through}");
}

#[test]
fn a_border_of_the_papers_plan_says_nothing_about_writes_alone() {
    let mut world = World::with_law(write_back);
    world.borders[0].curve = Curve::Mixed;
    assert_eq!(world.about("write_cache").len(), 1, "both curves agree");
    world.borders[0].found_by = FoundBy::Slope;
    assert!(world.about("write_cache").is_empty(), "one curve, of reads and writes mixed");
    world.only("read_cache");
}

#[test]
fn where_memory_is_seen_to_answer_a_border_is_the_processors_whatever_its_size() {
    let mut world = World::with_law(write_back);
    let law = |work: &Workload| if work.unique_bytes <= 8 * MIB { 11e9 } else { 2.5e9 };
    for estimate in &mut world.estimates {
        *estimate = self::estimate(&estimate.workload, law(&estimate.workload));
    }
    world.borders = vec![border(Curve::Write, 5.0 * MIB as f64, 4.3)];
    assert!(world.about("processor_cache").is_empty(), "nothing says that memory takes the writes");
    assert_eq!(world.about("write_cache").len(), 1);
    let visit = |absorbed: f64| {
        let workload = Workload { unique_bytes: 64 * MIB, read_frac: 0.0, ..Workload::default() };
        let bare = Point::bare(workload, "test", ioscape_model::Interval::exact(2.5e9));
        Point { write_absorbed_fraction: Some(absorbed), ..bare }
    };
    // A visit that is cut short writes most pages once.
    world.points = [1.0, 0.99, 0.7].map(visit).to_vec();
    assert!(world.only("processor_cache").text.contains("last level has 32 MiB"));
    assert!(world.about("write_cache").is_empty(), "writers wait for nobody");
    let points = world.points.clone();
    world.borders[0] = border(Curve::Write, 70.0 * MIB as f64, 4.3);
    world.points.iter_mut().for_each(|point| point.workload.unique_bytes = 300 * MIB);
    assert!(world.about("processor_cache").is_empty(), "no processor's cache is that large");
    world.borders[0] = border(Curve::Write, 5.0 * MIB as f64, 4.3);
    world.points = points;
    world.points.iter_mut().for_each(|point| point.workload.fsync_every = 1);
    assert!(world.about("processor_cache").is_empty(), "commits say nothing");
    world.points = [1.0, 0.5, 0.5].map(visit).to_vec();
    assert!(world.about("processor_cache").is_empty(), "storage had the pages in between");
}

#[test]
fn the_processors_cache_is_not_taken_for_the_file_cache() {
    let mut world = World::with_law(write_back);
    world.borders.insert(0, border(Curve::Mixed, 30.0 * MIB as f64, 2.0));
    assert!(world.only("processor_cache").text.contains("last level has 32 MiB"));
    assert_eq!(world.only("read_cache").figures["capacity_bytes"], CACHE_BYTES as f64);
    world.borders.pop();
    assert!(world.about("read_cache").is_empty());
    for (capacity, is_processors) in [(7.0, false), (13.0, true), (60.0, true), (70.0, false)] {
        world.borders[0] = border(Curve::Mixed, capacity * MIB as f64, 2.0);
        assert_eq!(!world.about("processor_cache").is_empty(), is_processors, "{capacity}");
    }
    world.borders[0] = border(Curve::Write, 30.0 * MIB as f64, 2.0);
    assert!(!world.about("processor_cache").is_empty());
    world.host.dirty_limit_bytes = 40 * MIB;
    assert!(world.about("processor_cache").is_empty(), "writers wait at the limit on dirty data");
    world.host.dirty_limit_bytes = 0;
    world.borders[0] = border(Curve::Mixed, 30.0 * MIB as f64, 2.0);
    world.borders[0].found_by = FoundBy::Counters;
    assert!(world.about("processor_cache").is_empty(), "what was counted is the file cache");
    world.borders[0].found_by = FoundBy::Timing;
    world.host.memory_limit_bytes = Some(31 * MIB);
    assert!(world.about("processor_cache").is_empty(), "all memory fits the processor's cache");
    let mut slow = World::with_law(|_| 2e8);
    slow.borders = vec![border(Curve::Mixed, 30.0 * MIB as f64, 2.0)];
    assert!(slow.about("processor_cache").is_empty(), "memory is faster than that");
}

#[test]
fn write_back_and_write_through_are_told_apart() {
    let check = |world: World, expected: &str| {
        let text = world.about("write_policy").first().map_or(String::new(), |x| x.text.clone());
        assert_eq!(text.contains("write-back"), expected == "write-back", "{expected}: {text}");
        assert_eq!(
            text.contains("write-through"),
            expected == "write-through",
            "{expected}: {text}"
        );
    };
    check(World::with_law(write_back), "write-back");
    check(World::with_law(write_back).with_redirtied(0.97), "write-back");
    check(World::with_law(write_through), "write-through");
    check(World::with_law(write_through).with_redirtied(0.0), "write-through");
    // Reads just above three times as fast, as far as the intervals tell.
    check(World::with_law(|work| write_through(work).min(6.1e8)), "write-through");
    check(World::with_law(|work| write_through(work).min(5.8e8)), "none");
    // A storage so fast that speed alone would mislead: the counters know better.
    check(World::with_law(write_through).with_redirtied(0.97), "write-back");
    // Everything at one speed, and nothing counted: no claim.
    check(World::with_law(|_| 200e6), "none");
    // Speed and counters against one another: no claim.
    check(World::with_law(write_back).with_redirtied(0.0), "none");
}

#[test]
fn without_a_border_only_counters_show_the_policy() {
    let without_border = |mut world: World| {
        world.borders.clear();
        world.about("write_policy").into_iter().map(|x| x.text).collect::<String>()
    };
    assert_eq!(without_border(World::with_law(write_through)), "");
    assert_eq!(without_border(World::with_law(write_back)), "");
    let through = without_border(World::with_law(write_through).with_redirtied(0.0));
    assert!(through.contains("write-through"), "{through}");
    let back = without_border(World::with_law(write_back).with_redirtied(0.9));
    assert!(back.contains("write-back"), "{back}");
}

#[test]
fn a_small_write_cache_is_no_write_through() {
    // Writes are absorbed up to 90 MiB, reads cached up to 240 MiB.
    let mut world = World::with_law(|work| match work.unique_bytes / MIB {
        0..=90 => 4e9,
        91..=240 if work.read_frac >= 1.0 => 8e9,
        _ => 200e6,
    });
    world.borders.insert(0, border(Curve::Write, 90.0 * MIB as f64, 20.0));
    assert!(world.only("write_policy").text.contains("write-back"));
}

#[test]
fn write_through_has_no_write_cache_and_names_the_mount_option() {
    let mut world = World::with_law(write_through);
    world.borders.push(border(Curve::Write, 90.0 * MIB as f64, 20.0));
    world.target.mount_options = "rw,relatime,sync".into();
    assert!(world.about("write_cache").is_empty());
    assert!(world.only("write_policy").text.contains("mounted with `sync`"));
    world.target.mount_options = "rw,nosync".into();
    assert!(!world.only("write_policy").text.contains("mounted"));
}

#[test]
fn memory_filesystems_are_named_and_have_no_policy() {
    let mut world = World::with_law(|_| 4e9).with_redirtied(0.97);
    world.target.filesystem = "tmpfs".into();
    assert!(world.only("memory_filesystem").text.contains("tmpfs"));
    assert!(world.about("write_policy").is_empty());
}

#[test]
fn each_effect_is_stated_with_its_ratio_or_as_not_shown() {
    let world = World::with_law(|work| {
        let storage = work.unique_bytes > CACHE_BYTES;
        let sequence = if storage { 1.0 + 9.0 * work.seq_frac } else { 1.0 };
        let concurrency = if storage { f64::from(work.process_num).sqrt() } else { 1.0 };
        1e8 * sequence * concurrency * (1.0 + work.read_frac)
    });
    for (code, cache, storage) in
        [("read_write_ratio", 2.0, 2.0), ("sequentiality", 1.0, 10.0), ("concurrency", 1.0, 2.0)]
    {
        let found = world.about(code);
        assert_eq!(found.len(), 2, "{code}: one for each region");
        for (finding, expected) in found.iter().zip([cache, storage]) {
            assert!((finding.figures["ratio"] - expected).abs() < 1e-9, "{finding:?}");
            let not_shown = expected == 1.0;
            assert_eq!(finding.text.contains("no effect shown"), not_shown, "{}", finding.text);
        }
    }
}

#[test]
fn sizes_are_good_from_three_quarters_of_the_best_on() {
    // 4 KiB 100, 16 KiB 300, 64 KiB 380, 256 KiB 400, 1 MiB `last` MB/s.
    let world = |last: f64| {
        World::with_law(move |work| match work.size_mean / KIB {
            4 => 1e8,
            16 => 3e8,
            64 => 3.8e8,
            256 => 4e8,
            _ => last,
        })
    };
    let check = |last: f64, code: &str, figures: &[(&str, u64)], words: &str| {
        let found = &world(last).about(code)[1];
        for (name, bytes) in figures {
            assert_eq!(found.figures[*name], *bytes as f64, "{name}: {}", found.text);
        }
        assert!(found.text.contains(words), "{}", found.text);
    };
    let good = [("smallest_good_size_bytes", 16 * KIB), ("largest_good_size_bytes", MIB)];
    check(4e8, "good_sizes", &good, "16 KiB to 1 MiB, the largest tried");
    let good = [("smallest_good_size_bytes", 16 * KIB), ("largest_good_size_bytes", 256 * KIB)];
    check(2e8, "good_sizes", &good, "16 KiB to 256 KiB");
    check(
        9e8,
        "good_sizes",
        &[("smallest_good_size_bytes", MIB)],
        "only good request size is 1 MiB, the largest tried",
    );
    check(4e8, "saturation", &[("saturation_size_bytes", 64 * KIB)], "saturates at requests of 64");
    check(2e8, "saturation", &[("saturation_size_bytes", 64 * KIB)], "falls again");
    check(9e8, "saturation", &[("saturation_size_bytes", MIB)], "still rises at the largest");
    check(4.45e8, "saturation", &[("saturation_size_bytes", MIB)], "still rises at the largest");
    let flat = &World::with_law(|_| 1e9).about("good_sizes")[0];
    assert!(flat.text.contains("every request size tried, 4 KiB to 1 MiB"), "{}", flat.text);
    assert!(World::with_law(|_| 1e9).about("saturation")[0].text.contains("no effect"));
}

#[test]
fn a_peak_in_the_middle_of_the_processes_is_named() {
    let world = World::with_law(|work| if work.process_num == 2 { 3e8 } else { 1e8 });
    let found = &world.about("concurrency")[0];
    assert!(found.text.contains("no effect shown") && found.text.contains("with 2 processes"));
    assert_eq!(found.figures["process_num_best"], 2.0);
}

#[test]
fn levels_are_counted_with_their_speeds() {
    let mut world = World::with_law(write_back);
    world.regions.push(region(1900 * MIB)); // without a family
    let found = world.only("levels");
    assert!(found.text.contains("not measured at its focal point"), "{}", found.text);
    world.regions.pop();
    let found = world.only("levels");
    assert_eq!(found.figures["levels_count"], 2.0);
    assert_eq!(found.figures["level_1_bytes_per_s"], 6e9);
    assert_eq!(found.figures["level_2_bytes_per_s"], 2e8);
    assert!((found.figures["first_over_last_ratio"] - 30.0).abs() < 1e-9);
}

#[test]
fn a_tail_declines_only_where_misses_get_slower() {
    // The time of a request from its parts: hits and misses, as many as the cache allows.
    let law = |growth: f64| {
        move |work: &Workload| {
            let unique_bytes = work.unique_bytes as f64;
            let hits = (CACHE_BYTES as f64 / unique_bytes).min(1.0);
            let far = (unique_bytes / CACHE_BYTES as f64).max(1.0);
            work.size_mean as f64 / (hits * 2e-6 + (1.0 - hits) * 100e-6 * far.powf(growth))
        }
    };
    assert!(
        World::with_law(law(0.0)).about("declining_tail").is_empty(),
        "fewer hits are no decline"
    );
    let mut world = World::with_law(law(0.5));
    let tail = [480, 960, 1440, 1920].map(|mib| Workload {
        unique_bytes: mib * MIB,
        read_frac: 1.0,
        seq_frac: 0.0,
        ..Workload::default()
    });
    let cached = Workload { unique_bytes: 16 * MIB, ..tail[0].clone() };
    world.estimates.push(estimate(&cached, law(0.5)(&cached)));
    world.estimates.retain(|x| !tail.contains(&x.workload));
    world.estimates.extend(tail.iter().map(|work| estimate(work, law(0.5)(work))));
    let found = world.only("declining_tail");
    assert!((found.figures["rise_ratio"] - 2.0).abs() < 0.01, "{found:?}");
    assert!(found.text.contains("metadata"), "{}", found.text);
    world.borders[0].unique_bytes.low /= 4.0;
    world.borders[0].unique_bytes.high *= 1.9;
    assert!(world.about("declining_tail").is_empty(), "the cache may be larger than it seems");
}

#[test]
fn nothing_measured_nothing_said() {
    let mut world = World::with_law(write_back);
    world.estimates.clear();
    world.borders.clear();
    assert!(world.findings().is_empty());
}

#[test]
fn every_finding_has_finite_figures_with_units_and_one_sentence_or_more() {
    let mut world = World::with_law(write_back).with_redirtied(0.9);
    world.borders.insert(0, border(Curve::Write, 90.0 * MIB as f64, 20.0));
    world.estimates[3].throughput_bytes_per_s.low = 0.0; // an interval that reaches zero
    let found = world.findings();
    let codes: BTreeMap<String, usize> =
        found.iter().fold(BTreeMap::new(), |mut counts, finding| {
            *counts.entry(word(finding.code)).or_default() += 1;
            counts
        });
    assert_eq!(codes["good_sizes"], 2);
    let regions: Vec<u32> = found.iter().filter_map(|finding| finding.region).collect();
    assert!(regions.contains(&1) && regions.contains(&2) && regions.is_sorted(), "{regions:?}");
    for finding in &found {
        let region = finding.region.map(|number| &world.regions[number as usize - 1]);
        let said = region.zip(finding.clause.as_ref()).map(|(region, said)| region.sentence(said));
        assert_eq!(finding.region.is_some(), finding.figures.contains_key("region_from_bytes"));
        assert_eq!(said, finding.region.map(|_| finding.text.clone()));
        assert_eq!(finding.revision, 7);
        assert!(finding.text.ends_with('.') && !finding.text.contains("NaN"), "{}", finding.text);
        assert!(finding.figures.values().all(|value| value.is_finite()), "{finding:?}");
        let units = ["_bytes", "_bytes_per_s", "_s", "_share", "_fraction", "_ratio", "_count"];
        for name in finding.figures.keys() {
            let plain = ["ratio", "ratio_low", "ratio_high", "reads_read_frac", "writes_read_frac"];
            let has_unit = units.iter().any(|unit| name.ends_with(unit));
            let counted = name.starts_with("process_num");
            assert!(has_unit || counted || plain.contains(&name.as_str()), "{name} has no unit");
        }
    }
}

#[test]
fn intervals_of_ratios_add_in_squares() {
    let known = |mean: f64, width: f64| Interval { mean, low: mean / width, high: mean * width };
    let both = known(6.0, 1.1).over(&known(2.0, 1.1));
    let width = (1.1f64.ln() * 2f64.sqrt()).exp();
    assert!((both.mean - 3.0).abs() < 1e-12 && (both.high - 3.0 * width).abs() < 1e-12);
    assert!((both.low - 3.0 / width).abs() < 1e-12);
    let boundless = known(6.0, 1.1).over(&Interval { mean: 2.0, low: 0.0, high: 4.0 });
    assert_eq!((boundless.low, boundless.high), (0.0, f64::INFINITY));
    for (interval, expected) in [
        (known(1.2, 1.1), Effect::Gain),
        (known(1.2, 1.3), Effect::NotShown),
        (known(0.8, 1.1), Effect::Loss),
        (known(1.02, 1.001), Effect::NotShown),
        (boundless, Effect::NotShown),
    ] {
        assert_eq!(interval.effect(), expected, "{interval:?}");
    }
}

#[test]
fn sizes_and_places_are_shown_short() {
    let mut whole = region(FOCAL_BYTES[0]);
    assert_eq!(whole.place(), "the cache region (8 MiB to 240 MiB)");
    whole.name = RegionKind::WholeRange.into();
    assert_eq!(whole.place(), "the whole range (8 MiB to 240 MiB)");
    for (bytes, text) in [(4096.0, "4 KiB"), (1_048_576.0, "1 MiB"), (1.5e9, "1.40 GiB")] {
        assert_eq!(size(bytes), text);
    }
}
