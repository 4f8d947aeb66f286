//! Ranks of a run over many hosts: was this process launched as one of several, by whom, and what of.
//! The environment is read here.

use ioscape_cluster::{Environment, Group, Launch, detect, join, launcher_above};
use ioscape_engine::{Clock, RunId};
use ioscape_experiment::bench::{self, Bench, RunMode};
use ioscape_experiment::ranks::{Left, Party, check_alike, take_part};

use crate::command::{Cli, Command};
use crate::company::Company;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::origin;
use crate::output::say;

/// Switches MPI off.
const OFF: &str = "off";

/// As what this process takes part.
pub(crate) enum Role {
    /// It does what was typed, with the others where there are any.
    First(Company),
    /// It does what rank 0 says.
    Other(Box<dyn Group>),
}

fn environment() -> impl Fn(&str) -> Option<String> {
    |name: &str| std::env::var(name).ok()
}

/// Whether this process is another rank than the one that speaks.
pub(crate) fn is_silent() -> bool {
    let is_off = origin::command_line().windows(2).any(|pair| pair[0] == "--mpi" && pair[1] == OFF);
    let launch = detect(&environment() as &Environment<'_>);
    !is_off && matches!(launch, Ok(Some(Launch { rank: 1.., .. })))
}

/// Keeps a silent rank alive for half a second. MPICH's launcher sometimes dies of SIGPIPE before it passes on what
/// rank 0 said, if all ranks end as soon as they began: in up to 3 % of launches on busy processors, and of any program;
/// in none of 600 if one rank stayed for 0.3 s.
pub(crate) fn let_first_be_heard(clock: Clock) {
    const LINGER_NS: u64 = 500_000_000;
    clock.sleep_until(clock.now_ns() + LINGER_NS);
}

/// Joins the other ranks, where a launcher started several.
pub(crate) fn role(typed: &Cli) -> anyhow::Result<Role> {
    let named = typed.mpi.as_deref();
    let alone = || Ok(Role::First(Company::default()));
    if named == Some(OFF) {
        return alone();
    }
    let environment = environment();
    let environment = &environment as &Environment<'_>;
    let launch = match detect(environment).map_err(|error| refused(&error))? {
        None => {
            refuse_unannounced(&typed.command)?;
            return match named {
                None => alone(),
                Some(named) => Err(usage(format!(
                    "--mpi {named}: no launcher started this: start it by mpirun, mpiexec or srun"
                ))),
            };
        }
        Some(launch) if launch.is_alone() => return alone(),
        Some(launch) => launch,
    };
    refuse_command(&typed.command, launch)?;
    let give_up = |error| {
        say(&format!("ioscape: {error}"));
        Exit::Usage.code()
    };
    let mpi = join(&launch, named, environment, give_up).map_err(|error| refused(&error))?;
    let (launcher, version) = (launch.launcher.name().to_owned(), mpi.version().to_owned());
    let group: Box<dyn Group> = Box::new(mpi);
    check_alike(
        &*group,
        env!("CARGO_PKG_VERSION"),
        origin::command_line().get(1..).unwrap_or(&[]),
    )?;
    if group.rank() > 0 {
        return Ok(Role::Other(group));
    }
    Ok(Role::First(Company::led(Party::new(group, launcher, version))))
}

/// Ranks do these commands together.
fn is_for_many(command: &Command) -> bool {
    matches!(command, Command::Run(_) | Command::Measure(_) | Command::Validate(_))
}

/// A command loads storage: started by each rank for itself, it would disturb the others.
fn loads_storage(command: &Command) -> bool {
    match command {
        Command::Suite(_) | Command::Replay(_) | Command::Vector(_) => true,
        Command::Compare(args) => args.live,
        _ => is_for_many(command),
    }
}

/// Refuses ranks whose launcher is there and whose environment is not: each would take itself for the
/// only one.
fn refuse_unannounced(command: &Command) -> anyhow::Result<()> {
    if !loads_storage(command) {
        return Ok(());
    }
    let Some(launcher) = launcher_above() else { return Ok(()) };
    let remedy = if is_for_many(command) {
        "put `sudo` before the launcher"
    } else {
        "start it once, without a launcher"
    };
    Err(usage(format!(
        "{} started this, and its variables are not in the environment (`sudo` and `env -i` empty \
         it), so that ranks cannot find each other: {remedy}, or add `--mpi off` where this is to \
         measure by itself",
        launcher.display()
    )))
}

/// Refuses what would be done by each rank for itself.
fn refuse_command(command: &Command, launch: Launch) -> anyhow::Result<()> {
    if is_for_many(command) {
        return Ok(());
    }
    let size = launch.size.map_or_else(|| "several".to_owned(), |size| size.to_string());
    Err(usage(format!(
        "{} started this {size} times, and only run, measure and validate work over many ranks: \
         start it once, without a launcher, or with `--mpi off` to have each rank do it by itself",
        launch.launcher.name()
    )))
}

fn refused(error: &ioscape_cluster::Error) -> anyhow::Error {
    usage(error.to_string())
}

/// Does what rank 0 says, until it lets this rank go.
pub(crate) fn serve(group: &dyn Group, clock: Clock) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::catch()?;
    let left = take_part(group, &interrupt.flag(), |setup, part| {
        Bench::open(bench::Request {
            target: &setup.target,
            run: &RunId::parse(&setup.run).expect("rank 0 has named the run"),
            engine: setup.engine,
            verify: false,
            restraint: setup.restraint,
            consent: None,
            mode: RunMode::Measure { probe_max_bytes: 0 },
            clock,
            interrupt: interrupt.flag(),
            part,
        })
    });
    Ok(match left {
        Left::InOrder => Exit::Fine,
        Left::Abandoned => Exit::Failed,
    })
}
