//! Bringing the ranks together: are all of one kind, what is where, do they see one directory.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_cluster::Group;
use ioscape_engine::error::Result;
use ioscape_engine::file_rig::Part;
use ioscape_engine::target::open_directory;
use ioscape_engine::{EngineKind, Error, RunId, Scratch};
use ioscape_model::{Code, Hints, Hosts, RankPlace, Severity, Warning, Words};
use serde::{Deserialize, Serialize};

use super::crew::Other;
use super::rig::RanksRig;
use super::serve::{Left, Nothing, serve};
use crate::bench::{Bench, Restraint};

/// Number of the directory by which ranks see whether they see one target: far above any test file.
const BEACON: usize = 999_999_999;

/// Ranks that found each other, on rank 0. Dropped before a target was opened, it lets them go.
pub struct Party {
    group: Option<Box<dyn Group>>,
    /// The launcher that started them.
    pub launcher: String,
    /// The version that the MPI library gives.
    pub mpi: String,
}

/// The run, as a rank is told of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Path of the target, on every host.
    pub target: PathBuf,
    /// The run's name.
    pub run: String,
    /// The engine that makes the requests.
    pub engine: EngineKind,
    /// Limits to put in force.
    pub restraint: Restraint,
}

/// A rank, as it describes itself once it has opened the target.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Joined {
    place: RankPlace,
    sees_beacon: bool,
    /// Two ranks with one kernel running say the same.
    kernel_identity: String,
    clock_identity: String,
    process: u32,
    process_space: String,
    hints: Hints,
    warnings: Vec<Warning>,
}

impl Joined {
    fn new(bench: &Bench, group: &dyn Group, sees_beacon: bool) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processors = |stat: &str| {
            let is_one = |line: &&str| {
                line.strip_prefix("cpu")
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            };
            stat.lines().filter(is_one).count() as u32
        };
        let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
        let hints = bench.rig.hints();
        Self {
            place: RankPlace {
                rank: group.rank(),
                host: 0,
                cpus: processors(&read("/proc/stat")).max(bench.host.cpus),
                cpus_allowed: bench.host.cpus,
                cache_bytes: hints.read_cache_bytes.unwrap_or(0.0) as u64,
                kernel: bench.host.kernel.clone(),
                filesystem: bench.target.filesystem.clone(),
            },
            sees_beacon,
            kernel_identity: read("/proc/sys/kernel/random/boot_id"),
            clock_identity: group.clock().identity(),
            process: std::process::id(),
            process_space: space.display().to_string(),
            hints,
            warnings: bench.warnings.clone(),
        }
    }
}

impl Party {
    /// The ranks of a group, after each has said what program and command it is.
    pub fn new(group: Box<dyn Group>, launcher: String, mpi: String) -> Self {
        Self { group: Some(group), launcher, mpi }
    }

    /// The part of each workload that rank 0 runs.
    pub fn part(&self) -> Part {
        Part { rank: 0, ranks: self.group.as_ref().map_or(1, |group| group.size()) }
    }
}

impl Drop for Party {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            // Nothing is to be measured. Whoever is gone by now need not hear it.
            tell(&*group, None::<&Setup>).ok();
            group.barrier().ok();
        }
    }
}

/// Refuses ranks that do not run one program and command: on all of them, with one text.
///
/// # Errors
/// The difference, where there is one.
pub fn check_alike(group: &dyn Group, version: &str, command_line: &[String]) -> Result<()> {
    let ours = serde_json::to_vec(&(version, command_line)).expect("texts are plain data");
    let all = group.gather(&ours).map_err(|error| gone(&error))?;
    let other = all.iter().position(|theirs| *theirs != ours);
    let text = other.map_or_else(String::new, |rank| {
        format!(
            "rank {rank} runs another version or command than rank 0 ({} against {}): start all \
             ranks by one command, with one ioscape",
            String::from_utf8_lossy(&all[rank]),
            String::from_utf8_lossy(&ours)
        )
    });
    let verdict = group.broadcast(text.as_bytes()).map_err(|error| gone(&error))?;
    if verdict.is_empty() {
        return Ok(());
    }
    Err(Error::Refused(String::from_utf8_lossy(&verdict).into_owned()))
}

/// Has every rank open the target that rank 0 has opened, and makes one rig of all.
///
/// # Errors
/// When a rank cannot.
pub fn assemble(
    mut party: Party,
    mut bench: Bench,
    setup: &Setup,
    interrupt: Arc<AtomicBool>,
) -> Result<Bench> {
    let directory = Arc::new(open_directory(&setup.target)?);
    let run = RunId::parse(&setup.run).expect("a run has a name");
    let beacon = Scratch::new(directory, &run, BEACON)?;
    let group = party.group.take().expect("a party assembles once");
    tell(&*group, Some(setup)).map_err(|error| gone(&error))?;
    let ours = Joined::new(&bench, &*group, true);
    let all = group.gather(&to_bytes(&Ok::<_, String>(ours))).map_err(|error| gone(&error))?;
    drop(beacon);
    let mut joined: Vec<Joined> = Vec::new();
    let mut refusal = None;
    for (rank, bytes) in all.iter().enumerate() {
        let theirs: std::result::Result<Joined, String> = serde_json::from_slice(bytes)
            .map_err(|error| Error::Refused(format!("rank {rank} says nonsense: {error}")))?;
        match theirs {
            Ok(theirs) => joined.push(theirs),
            Err(why) => refusal = refusal.or(Some(format!("rank {rank}: {why}"))),
        }
    }
    if let Some(refusal) = refusal {
        bench.rig = Box::new(RanksRig::dismissing(group, bench.rig));
        return Err(Error::Refused(refusal));
    }
    let others = others(&joined);
    let hosts = hosts(&joined, &party);
    let hints = hints(&joined, &hosts);
    let (own, warnings) = (bench.rig, warnings(&joined, &hosts));
    let rig = RanksRig::new((group, own), others, (hosts.clone(), hints), interrupt);
    bench.rig = Box::new(rig);
    if setup.restraint.dirty_limit_bytes.is_some() && hosts.hosts > 1 {
        return Err(Error::Refused(
            "--dirty-limit bounds the dirty data of one machine, and the ranks are on several: \
             leave it out"
                .to_owned(),
        ));
    }
    bench.warnings = super::merged::warnings(
        std::iter::once(bench.warnings)
            .chain(joined.into_iter().skip(1).map(|joined| joined.warnings))
            .collect(),
    );
    bench.warnings.extend(warnings);
    bench.hosts = Some(hosts);
    Ok(bench)
}

/// On any rank but 0: opens the target when told to, and obeys until told to leave.
pub fn take_part(
    group: &dyn Group,
    interrupt: &AtomicBool,
    open: impl FnOnce(&Setup, Part) -> Result<Bench>,
) -> Left {
    let left = open_and_serve(group, interrupt, open);
    // Files are removed by now: rank 0 waits for that.
    if left == Left::InOrder {
        group.barrier().ok();
    } else {
        group.abandon();
    }
    left
}

fn open_and_serve(
    group: &dyn Group,
    interrupt: &AtomicBool,
    open: impl FnOnce(&Setup, Part) -> Result<Bench>,
) -> Left {
    let Ok(setup) = group.broadcast(&[]) else { return Left::Abandoned };
    let setup: Option<Setup> = serde_json::from_slice(&setup).unwrap_or_default();
    let Some(setup) = setup else { return Left::InOrder };
    let run = RunId::parse(&setup.run).expect("rank 0 has named the run");
    let sees_beacon = setup.target.join(run.file_name(BEACON)).is_dir();
    let part = Part { rank: group.rank(), ranks: group.size() };
    let mut opened = open(&setup, part).map_err(|error| error.to_string());
    let said = match &opened {
        Ok(bench) => Ok(Joined::new(bench, group, sees_beacon)),
        Err(why) => Err(why.clone()),
    };
    if group.gather(&to_bytes(&said)).is_err() {
        return Left::Abandoned;
    }
    match &mut opened {
        Ok(bench) => serve(group, &mut *bench.rig, interrupt),
        Err(_) => serve(group, &mut Nothing, interrupt),
    }
}

fn to_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("what ranks say is plain data")
}

fn tell(group: &dyn Group, setup: Option<&Setup>) -> ioscape_cluster::Result<()> {
    group.broadcast(&to_bytes(&setup)).map(drop)
}

fn gone(error: &ioscape_cluster::Error) -> Error {
    Error::Refused(format!("the ranks cannot be brought together: {error}"))
}

fn others(joined: &[Joined]) -> Vec<Other> {
    let Some((first, others)) = joined.split_first() else { return Vec::new() };
    let other = |theirs: &Joined| Other {
        rank: theirs.place.rank,
        process: (theirs.kernel_identity == first.kernel_identity
            && theirs.process_space == first.process_space)
            .then_some(theirs.process),
        has_our_clock: theirs.clock_identity == first.clock_identity,
        ..Other::default()
    };
    others.iter().map(other).collect()
}

fn hosts(joined: &[Joined], party: &Party) -> Hosts {
    let mut kernels: Vec<&str> = Vec::new();
    let mut ranks = Vec::new();
    for theirs in joined {
        let found = kernels.iter().position(|kernel| *kernel == theirs.kernel_identity);
        let host = found.unwrap_or(kernels.len()) as u32;
        if found.is_none() {
            kernels.push(&theirs.kernel_identity);
        }
        ranks.push(RankPlace { host, ..theirs.place.clone() });
    }
    Hosts {
        hosts: kernels.len() as u32,
        launcher: party.launcher.clone(),
        mpi: party.mpi.clone(),
        is_one_directory: joined.iter().all(|theirs| theirs.sees_beacon),
        ranks,
    }
}

/// All that is known beforehand of all hosts together.
fn hints(joined: &[Joined], hosts: &Hosts) -> Hints {
    let firsts: Vec<u32> = hosts.firsts().map(|place| place.rank).collect();
    let of_hosts = || joined.iter().filter(|theirs| firsts.contains(&theirs.place.rank));
    let mut hints = joined[0].hints.clone();
    hints.read_cache_bytes = of_hosts().map(|theirs| theirs.hints.read_cache_bytes).sum();
    hints.write_cache_bytes = of_hosts().map(|theirs| theirs.hints.write_cache_bytes).sum();
    hints.counters = joined.iter().all(|theirs| theirs.hints.counters);
    hints.in_memory = joined.iter().all(|theirs| theirs.hints.in_memory);
    hints
}

fn warnings(joined: &[Joined], hosts: &Hosts) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let is_bound = |place: &&RankPlace| place.cpus_allowed < place.cpus;
    if let Some(bound) = hosts.ranks.iter().find(is_bound) {
        let count = hosts.ranks.iter().filter(is_bound).count();
        let text = Words::new(
            "{bound_ranks} of {ranks} ranks may use a part of their processors only (rank {rank}: \
             {cpus_allowed} of {cpus}): all their processes run on these",
        )
        .figure("bound_ranks", count as f64)
        .figure("ranks", joined.len() as f64)
        .figure("rank", f64::from(bound.rank))
        .figure("cpus_allowed", f64::from(bound.cpus_allowed))
        .figure("cpus", f64::from(bound.cpus));
        let remedy = "launchers bind ranks: `mpirun --bind-to none`, `srun --cpu-bind=none`";
        warnings.push(Warning::new(Code::Throttled, text, remedy));
    }
    if !hosts.is_one_directory {
        let text = "the ranks do not see one directory: each measures storage of its own, and \
                    throughput is the sum";
        let remedy = "name a directory that all hosts mount, where shared storage is meant";
        let warning = Warning::new(Code::Ranks, text, remedy);
        warnings.push(warning.with_severity(Severity::Note));
    }
    warnings
}
