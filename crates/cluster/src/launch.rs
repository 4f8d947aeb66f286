//! The launch of this process, as one of how many: from the environment that each launcher
//! leaves, before any library is loaded.

use crate::error::{Error, Result};

/// Looks up a variable of the environment.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// More ranks than this are a mistake.
const SIZE_MAX: u32 = 1 << 20;

/// By which protocol ranks find each other: a library has to speak it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `mpirun` of Open MPI.
    OpenMpi,
    /// `mpiexec` of MPICH and its relatives (Intel, MVAPICH, Cray), and `srun --mpi=pmi2`.
    Pmi,
    /// `srun --mpi=pmix`, and others that set no size.
    Pmix,
}

impl Launcher {
    /// In words, for messages and the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "mpirun of Open MPI",
            Self::Pmi => "mpiexec of the MPICH family (PMI)",
            Self::Pmix => "a launcher that speaks PMIx",
        }
    }
}

/// A launch, as the launcher told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Its kind.
    pub launcher: Launcher,
    /// Of how many, where that is said.
    pub size: Option<u32>,
    /// The number of this rank.
    pub rank: u32,
}

impl Launch {
    /// Whether there is anybody else.
    pub fn is_alone(&self) -> bool {
        self.size == Some(1)
    }
}

/// The launch that the environment tells of; none where this process was started by itself. The order
/// matters: below Slurm, other launchers leave Slurm's variables of their own helpers in place.
///
/// # Errors
/// When what is said cannot be, or leaves ranks no way to find each other.
pub fn detect(environment: &Environment<'_>) -> Result<Option<Launch>> {
    let launched = |launcher, size: &str, rank: &str| -> Result<Option<Launch>> {
        let Some((size, rank)) = size_and_rank(environment, size, rank)? else { return Ok(None) };
        Ok(Some(Launch { launcher, size: Some(size), rank }))
    };
    if let Some(launch) =
        launched(Launcher::OpenMpi, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK")?
    {
        return Ok(Some(launch));
    }
    if let Some(launch) = launched(Launcher::Pmi, "PMI_SIZE", "PMI_RANK")? {
        return Ok(Some(launch));
    }
    // Not SLURM_NTASKS: a plain command in a batch script has that as well.
    let slurm = launched(Launcher::Pmix, "SLURM_STEP_NUM_TASKS", "SLURM_PROCID");
    let slurm = match environment("SLURM_STEP_NUM_TASKS") {
        Some(_) => slurm?,
        None => None,
    };
    let has_pmix = environment("PMIX_RANK").is_some() && environment("PMIX_NAMESPACE").is_some();
    match slurm {
        Some(launch) if launch.is_alone() || has_pmix => return Ok(Some(launch)),
        Some(Launch { size, rank, .. }) => {
            return Err(Error::Refused(format!(
                "srun started {} tasks and gave them no way to find each other (this is task \
                 {rank}): start them by `srun --mpi=pmix` or `srun --mpi=pmi2` (`srun --mpi=list` \
                 names what there is)",
                size.unwrap_or(0)
            )));
        }
        None => {}
    }
    match environment("PMIX_RANK").filter(|_| has_pmix) {
        Some(rank) => {
            let rank = number("PMIX_RANK", &rank)?;
            Ok(Some(Launch { launcher: Launcher::Pmix, size: None, rank }))
        }
        None => Ok(None),
    }
}

fn size_and_rank(
    environment: &Environment<'_>,
    size_name: &str,
    rank_name: &str,
) -> Result<Option<(u32, u32)>> {
    let (size, rank) = match (environment(size_name), environment(rank_name)) {
        (None, None) => return Ok(None),
        (Some(size), Some(rank)) => (number(size_name, &size)?, number(rank_name, &rank)?),
        (Some(_), None) => return Err(by_half(size_name, rank_name)),
        (None, Some(_)) => return Err(by_half(rank_name, size_name)),
    };
    if size == 0 || size > SIZE_MAX || rank >= size {
        return Err(Error::Refused(format!(
            "{size_name}={size} and {rank_name}={rank} in the environment are no launch: start all \
             ranks by one mpirun, or leave the environment as it is{OFF}"
        )));
    }
    Ok(Some((size, rank)))
}

/// A way out where there is no launch after all.
const OFF: &str = " (`--mpi off`: one host, whatever the environment says)";

fn by_half(is_set: &str, is_missing: &str) -> Error {
    Error::Refused(format!(
        "{is_set} is in the environment and {is_missing} is not: a launcher sets both, so start all \
         ranks by one mpirun{OFF}"
    ))
}

fn number(name: &str, text: &str) -> Result<u32> {
    text.trim().parse().map_err(|_| {
        Error::Refused(format!("{name}={text} in the environment is no number of a rank{OFF}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(variables: &[(&str, &str)]) -> Result<Option<Launch>> {
        detect(&|name| {
            variables.iter().find(|(set, _)| *set == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[track_caller]
    fn is_launch(variables: &[(&str, &str)], launcher: Launcher, size: Option<u32>, rank: u32) {
        assert_eq!(detected(variables), Ok(Some(Launch { launcher, size, rank })), "{variables:?}");
    }

    const OPEN_MPI: [(&str, &str); 2] =
        [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3")];
    const PMI: [(&str, &str); 2] = [("PMI_SIZE", "4"), ("PMI_RANK", "2")];
    const PMIX: [(&str, &str); 2] = [("PMIX_RANK", "1"), ("PMIX_NAMESPACE", "slurm.pmix.1.0")];
    const SLURM: [(&str, &str); 3] =
        [("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "1"), ("SLURM_NTASKS", "4")];

    #[test]
    fn each_launcher_is_known_by_what_it_leaves() {
        is_launch(&OPEN_MPI, Launcher::OpenMpi, Some(4), 3);
        is_launch(&[&OPEN_MPI[..], &PMIX].concat(), Launcher::OpenMpi, Some(4), 3);
        is_launch(&PMI, Launcher::Pmi, Some(4), 2);
        is_launch(&[&SLURM[..], &PMI].concat(), Launcher::Pmi, Some(4), 2);
        is_launch(&[&SLURM[..], &PMIX].concat(), Launcher::Pmix, Some(4), 1);
        is_launch(&PMIX, Launcher::Pmix, None, 1);
        // Below hydra in a Slurm job, Slurm speaks of hydra's helpers.
        let helpers = [("SLURM_STEP_NUM_TASKS", "1"), ("SLURM_PROCID", "0")];
        is_launch(&[&helpers[..], &PMI].concat(), Launcher::Pmi, Some(4), 2);
    }

    #[test]
    fn what_is_no_launch_is_none() {
        for variables in [
            &[][..],
            &[("SLURM_NTASKS", "4"), ("SLURM_PROCID", "0")],
            &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_MCA_btl", "tcp,self")],
            &[("I_MPI_ROOT", "/opt/intel/mpi")],
            &[("PMIX_RANK", "0")],
        ] {
            assert_eq!(detected(variables), Ok(None), "{variables:?}");
        }
        assert!(detected(&[("PMI_SIZE", "1"), ("PMI_RANK", "0")]).unwrap().unwrap().is_alone());
    }

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        for variables in [
            &[("OMPI_COMM_WORLD_SIZE", "4")][..],
            &[("OMPI_COMM_WORLD_RANK", "0")],
            &[("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "2")],
            &[("OMPI_COMM_WORLD_SIZE", "two"), ("OMPI_COMM_WORLD_RANK", "0")],
            &[("OMPI_COMM_WORLD_SIZE", ""), ("OMPI_COMM_WORLD_RANK", "")],
            &[("PMI_SIZE", "2")],
            &[("PMI_RANK", "1")],
            &[("PMI_SIZE", "0"), ("PMI_RANK", "0")],
            &[("PMI_SIZE", "-1"), ("PMI_RANK", "0")],
            &[("PMI_SIZE", "4"), ("PMI_RANK", "7")],
            &[("PMI_SIZE", "4000000000"), ("PMI_RANK", "7")],
            &[("PMI_SIZE", "4"), ("PMI_RANK", "0x1")],
            &[("PMIX_RANK", "first"), ("PMIX_NAMESPACE", "job")],
            &[("SLURM_STEP_NUM_TASKS", "4")],
            &[("SLURM_STEP_NUM_TASKS", "4"), ("SLURM_PROCID", "9")],
            &SLURM,
            &[&SLURM[..], &[("PMIX_RANK", "1")]].concat(),
            &[&PMI[..1], &SLURM].concat(),
        ] {
            let Err(Error::Refused(text)) = detected(variables) else {
                panic!("{variables:?}: {:?}", detected(variables))
            };
            assert!(
                !text.contains('\n') && text.contains(" by ") | text.contains("--mpi off"),
                "{text}"
            );
        }
    }
}
