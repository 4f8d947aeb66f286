//! Runs over many ranks: by whatever MPI launchers are installed, and refused where a launch is none.

use std::path::Path;
use std::process::{Command, Output};

use ioscape_test_support::skipped;
use serde_json::Value;

use crate::workdir::{Workdir, record};

const WORK: &str = "unique_bytes=8MiB,process_num=4,read_frac=0.5";

/// Launchers that are installed: program, and what it needs to start more ranks than there are
/// processors.
fn launchers() -> Vec<(&'static str, &'static [&'static str])> {
    const KNOWN: [(&str, &[&str]); 2] =
        [("mpirun.openmpi", &["--oversubscribe", "--bind-to", "none"]), ("mpiexec.hydra", &[])];
    let is_there = |program: &str| {
        let search = std::env::var("PATH").unwrap_or_default();
        search.split(':').any(|folder| Path::new(folder).join(program).is_file())
    };
    let found: Vec<_> = KNOWN.into_iter().filter(|(program, _)| is_there(program)).collect();
    if found.is_empty() {
        skipped("neither mpirun.openmpi nor mpiexec.hydra is installed");
    }
    found
}

fn launched(
    (program, options): (&str, &[&str]),
    ranks: u32,
    work: &Workdir,
    arguments: &[&str],
) -> Output {
    Command::new(program)
        .args(options)
        .args(["-n", &ranks.to_string(), env!("CARGO_BIN_EXE_ioscape")])
        .args(arguments)
        .current_dir(work.path("."))
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .unwrap()
}

#[test]
fn all_ranks_of_a_launcher_are_one_measurement() {
    for launcher in launchers() {
        let work = Workdir::new();
        let target = work.target();
        let mut arguments = vec!["measure", target.to_str().unwrap(), "-w", WORK, "--rounds", "1"];
        arguments.extend(["--precision", "50%", "--json", "--out", "ranks.jsonl"]);
        let output = launched(launcher, 2, &work, &arguments);
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{launcher:?}: {shown}");
        // One answer and nothing else, however many ranks there are.
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(answer["throughput_bytes_per_s"]["mean"].as_f64().unwrap() > 0.0);
        let record = record(&work.path("ranks.jsonl"));
        let hosts = record.header.hosts.as_ref().unwrap();
        assert_eq!((hosts.ranks.len(), hosts.hosts, hosts.is_one_directory), (2, 1, true));
        let ranks = record.points[0].ranks.as_ref().unwrap();
        assert_eq!(ranks.each.iter().map(|rank| rank.processes).collect::<Vec<_>>(), [2, 2]);
        let shares: f64 = ranks.each.iter().map(|rank| rank.share).sum();
        assert!((shares - 1.0).abs() < 1e-9 && ranks.each.iter().all(|rank| rank.bytes > 0));
        assert_eq!(work.left_behind(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn commands_for_one_host_are_refused_below_a_launcher_and_said_once() {
    for launcher in launchers() {
        let work = Workdir::new();
        let target = work.target();
        let output = launched(launcher, 2, &work, &["vector", target.to_str().unwrap()]);
        let shown = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success());
        assert_eq!(shown.matches("only run, measure and validate").count(), 1, "{shown}");
    }
}

#[test]
fn broken_launches_are_refused_and_nothing_is_measured() {
    let broken: [&[(&str, &str)]; 8] = [
        &[("OMPI_COMM_WORLD_SIZE", "2")],
        &[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "5")],
        &[("PMI_SIZE", "2")],
        &[("PMI_SIZE", "two"), ("PMI_RANK", "0")],
        &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "0")],
        &[("PMIX_RANK", "x"), ("PMIX_NAMESPACE", "job")],
        // As a launcher leaves it, but there is none: the library finds itself alone, or there is none.
        &[("PMI_SIZE", "2"), ("PMI_RANK", "0")],
        &[("PMI_SIZE", "2"), ("PMI_RANK", "0"), ("OMPI_COMM_WORLD_RANK", "1")],
    ];
    for variables in broken {
        let work = Workdir::new();
        let target = work.target();
        let output = work
            .command(&["measure", target.to_str().unwrap(), "-w", WORK])
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let shown = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{variables:?}: {shown}");
        assert_eq!(shown.lines().filter(|line| line.starts_with("ioscape:")).count(), 1, "{shown}");
        assert!(output.stdout.is_empty(), "{variables:?}");
    }
}

/// A shell by the name of a launcher stands for one whose variables `sudo` took away.
#[test]
fn a_rank_whose_environment_was_emptied_is_refused() {
    let work = Workdir::new();
    let (launcher, target) = (work.path("mpirun"), work.target());
    // By another process: a program cannot be run while a child of this one still has it open for writing.
    assert!(Command::new("cp").arg("/bin/sh").arg(&launcher).status().unwrap().success());
    let below = |command: &str| {
        let line = format!("{} {command}; exit $?", env!("CARGO_BIN_EXE_ioscape"));
        Command::new(&launcher).args(["-c", &line]).output().unwrap()
    };
    let measure = format!("measure {} -w {WORK}", target.display());
    let output = below(&measure);
    let shown = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{shown}");
    assert!(
        shown.contains("mpirun started this") && shown.contains("put `sudo` before"),
        "{shown}"
    );
    assert!(output.stdout.is_empty() && shown.lines().count() == 1, "{shown}");
    for command in ["vector", "suite iostone", "replay tar", "compare --live sim:nvme"] {
        let refused = below(&format!("{command} {}", target.display()));
        let shown = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{command}: {shown}");
        let is_told = shown.contains("mpirun started this") && shown.contains("start it once");
        assert!(is_told, "{command}: {shown}");
    }
    // `--mpi off` and commands that load nothing are not refused.
    let quickly = format!("measure sim:nvme -w {WORK} --rounds 1 --json --quiet --mpi off");
    assert!(below(&quickly).status.success());
    assert!(below("--version").status.success());
}

#[test]
fn a_library_without_a_launcher_is_refused_and_off_heeds_no_launcher() {
    let work = Workdir::new();
    let target = work.target();
    let target = target.to_str().unwrap();
    let text = work.refusal(&["measure", target, "-w", WORK, "--mpi", "/lib/libmpi.so"]);
    assert!(text.contains("no launcher started this"), "{text}");
    let arguments = ["measure", "sim:nvme", "-w", WORK, "--json", "--mpi", "off"];
    let output =
        work.command(&arguments).env("PMI_SIZE", "2").env("PMI_RANK", "1").output().unwrap();
    assert!(output.status.success() && !output.stdout.is_empty());
}
