//! Which rank a process is, from what a launcher puts into its environment.

use std::env;

use crate::RankError;

/// The port of rank 0 under Slurm is this, plus the last digits of the job's number.
const SLURM_PORT: u64 = 15_000;
/// The port of rank 0 where nothing says another: that of torchrun.
const USUAL_PORT: u16 = 29_500;

/// Which rank this process is, and where rank 0 is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Which one, counted from 0.
    pub rank: usize,
    /// How many there are.
    pub count: usize,
    /// Which one on this machine: the number of its GPU.
    pub local_rank: usize,
    /// How many there are on this machine.
    pub local_count: usize,
    /// The machine of rank 0.
    pub host: String,
    /// The port that rank 0 listens at.
    pub port: u16,
}

impl Placement {
    /// What the launcher says; none where there is none. `torchrun` and everything that follows it sets `RANK`, `WORLD_SIZE`,
    /// `LOCAL_RANK`, `MASTER_ADDR` and `MASTER_PORT`; `srun` and Open MPI's `mpirun` have variables of their own.
    pub fn from_environment() -> Result<Option<Self>, RankError> {
        Self::from(&|name| env::var(name).ok().filter(|value| !value.is_empty()))
    }

    fn from(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, RankError> {
        let placement = if get("RANK").is_some() && get("WORLD_SIZE").is_some() {
            Self::of_torchrun(get)?
        } else if get("SLURM_PROCID").is_some() && get("SLURM_STEP_NUM_TASKS").is_some() {
            // The second is set by srun alone: the script of a job is no rank, however many tasks the job has.
            Self::of_srun(get)?
        } else if get("OMPI_COMM_WORLD_RANK").is_some() {
            Self::of_mpirun(get)?
        } else {
            return Ok(None);
        };
        if placement.rank >= placement.count {
            return Err(RankError::Request(format!(
                "the launcher's environment has rank {} of {} ranks, counted from 0",
                placement.rank, placement.count
            )));
        }
        Ok(Some(placement))
    }

    fn of_torchrun(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let (rank, count) = (number(get, "RANK")?, number(get, "WORLD_SIZE")?);
        let local_rank = get("LOCAL_RANK").map_or(Ok(rank), |_| number(get, "LOCAL_RANK"))?;
        let local_count =
            get("LOCAL_WORLD_SIZE").map_or(Ok(count), |_| number(get, "LOCAL_WORLD_SIZE"))?;
        let (host, port) = match get("MASTER_ADDR") {
            // One by itself meets nobody.
            None if count == 1 => ("127.0.0.1".to_owned(), USUAL_PORT),
            host => (host.ok_or_else(|| missing("MASTER_ADDR"))?, number(get, "MASTER_PORT")?),
        };
        // torchrun itself listens at the port then.
        let taken = get("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value == "True");
        let port = if taken { port.wrapping_add(1).max(1024) } else { port };
        Ok(Self { rank, count, local_rank, local_count, host, port })
    }

    fn of_mpirun(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let of = |name: &str| number(get, &format!("OMPI_COMM_WORLD_{name}"));
        let (rank, count, local_rank, local_count) =
            (of("RANK")?, of("SIZE")?, of("LOCAL_RANK")?, of("LOCAL_SIZE")?);
        let host = match get("MASTER_ADDR") {
            None if local_count == count => "127.0.0.1".to_owned(),
            host => host.ok_or_else(|| missing("MASTER_ADDR"))?,
        };
        let port = get("MASTER_PORT").map_or(Ok(USUAL_PORT), |_| number(get, "MASTER_PORT"))?;
        Ok(Self { rank, count, local_rank, local_count, host, port })
    }

    fn of_srun(get: &dyn Fn(&str) -> Option<String>) -> Result<Self, RankError> {
        let (rank, count) = (number(get, "SLURM_PROCID")?, number(get, "SLURM_STEP_NUM_TASKS")?);
        let local_rank = number(get, "SLURM_LOCALID")?;
        // Such as 4, or 4(x2),3: of the first node, which is as good a guess as any.
        let tasks = get("SLURM_STEP_TASKS_PER_NODE").unwrap_or_default();
        let digits: String = tasks.chars().take_while(char::is_ascii_digit).collect();
        let local_count = digits.parse::<usize>().unwrap_or(local_rank + 1).max(local_rank + 1);
        let nodes = get("SLURM_STEP_NODELIST").or_else(|| get("SLURM_JOB_NODELIST"));
        let host = match get("MASTER_ADDR") {
            Some(host) => host,
            None => first_host(&nodes.ok_or_else(|| missing("SLURM_JOB_NODELIST"))?),
        };
        let port = match get("MASTER_PORT") {
            Some(_) => number(get, "MASTER_PORT")?,
            None => (SLURM_PORT + number::<u64>(get, "SLURM_JOB_ID")? % 10_000) as u16,
        };
        Ok(Self { rank, count, local_rank, local_count, host, port })
    }
}

fn missing(name: &str) -> RankError {
    RankError::Request(format!(
        "the launcher's environment names ranks, but has no {name}; set it, or unset RANK and WORLD_SIZE"
    ))
}

fn number<T: std::str::FromStr>(
    get: &dyn Fn(&str) -> Option<String>,
    name: &str,
) -> Result<T, RankError> {
    let value = get(name).ok_or_else(|| missing(name))?;
    value.trim().parse().map_err(|_| {
        RankError::Request(format!(
            "the launcher's environment has {name}={value}, which is not an integer"
        ))
    })
}

/// The first of Slurm's nodes: `node07` of `node[07-09,12],gpu1`.
fn first_host(nodes: &str) -> String {
    let end = nodes.find([',', '[']).unwrap_or(nodes.len());
    let (prefix, rest) = nodes.split_at(end);
    let Some(ranges) = rest.strip_prefix('[') else { return prefix.to_owned() };
    let first: String = ranges.chars().take_while(|c| !",-]".contains(*c)).collect();
    format!("{prefix}{first}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> Result<Option<Placement>, RankError> {
        let get = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        Placement::from(&get)
    }

    #[test]
    fn torchrun_and_srun_say_who_a_process_is() {
        assert_eq!(from(&[]).unwrap(), None);
        let torchrun = [
            ("RANK", "5"),
            ("WORLD_SIZE", "8"),
            ("LOCAL_RANK", "1"),
            ("LOCAL_WORLD_SIZE", "4"),
            ("MASTER_ADDR", "node1"),
            ("MASTER_PORT", "29500"),
        ];
        let expected = Placement {
            rank: 5,
            count: 8,
            local_rank: 1,
            local_count: 4,
            host: "node1".to_owned(),
            port: 29500,
        };
        assert_eq!(from(&torchrun).unwrap(), Some(expected.clone()));
        let agent = [&torchrun[..], &[("TORCHELASTIC_USE_AGENT_STORE", "True")]].concat();
        assert_eq!(from(&agent).unwrap().unwrap().port, 29501);
        let srun = [
            ("SLURM_PROCID", "5"),
            ("SLURM_STEP_NUM_TASKS", "8"),
            ("SLURM_LOCALID", "1"),
            ("SLURM_STEP_TASKS_PER_NODE", "4(x2)"),
            ("SLURM_JOB_NODELIST", "node[1-2]"),
            ("SLURM_JOB_ID", "1234567"),
        ];
        assert_eq!(from(&srun).unwrap(), Some(Placement { port: 19567, ..expected.clone() }));
        let mpirun = [
            ("OMPI_COMM_WORLD_RANK", "5"),
            ("OMPI_COMM_WORLD_SIZE", "8"),
            ("OMPI_COMM_WORLD_LOCAL_RANK", "1"),
            ("OMPI_COMM_WORLD_LOCAL_SIZE", "4"),
            ("MASTER_ADDR", "node1"),
        ];
        assert_eq!(from(&mpirun).unwrap(), Some(expected));
        // The script of a job with many tasks is no rank of them.
        assert_eq!(from(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")]).unwrap(), None);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let refused = |variables: &[(&str, &str)]| from(variables).unwrap_err().to_string();
        assert!(refused(&[("RANK", "0"), ("WORLD_SIZE", "2")]).contains("no MASTER_ADDR"));
        assert!(refused(&[("RANK", "a"), ("WORLD_SIZE", "2")]).contains("RANK=a"));
        let beyond =
            [("RANK", "2"), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "a"), ("MASTER_PORT", "1")];
        assert!(refused(&beyond).contains("rank 2 of 2"));
    }

    #[test]
    fn the_first_of_the_nodes() {
        for (nodes, first) in [
            ("node[07-09,12],gpu1", "node07"),
            ("node3", "node3"),
            ("a,b[1-2]", "a"),
            ("a[5,7]", "a5"),
        ] {
            assert_eq!(first_host(nodes), first);
        }
    }
}
