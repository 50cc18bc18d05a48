//! Several processes that train one encoder: how this one finds the others, and how it ends when one of them is lost.

use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::process::exit;
use std::sync::Arc;

use ranks::{LocalRanks, OnLoss, Placement, RankError, Ranks};
use tensor::DeviceFault;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::{host, invocation, say};

/// How many processes a core may have at most: more only wait for one another.
const RANKS_OF_A_CORE: usize = 8;

pub(super) struct Together {
    ranks: Arc<Ranks>,
    /// The others, where this one has started them: they are waited for in the end.
    _local: Option<LocalRanks>,
}

impl Together {
    /// Finds the others: those of the launcher, or as many on this machine as are asked for; none where this process is by
    /// itself. The folder is the run's.
    pub(super) fn find(asked: Option<usize>, folder: &Path) -> Result<Option<Self>, Failure> {
        let launched = Placement::from_environment()?;
        match (launched, asked) {
            (_, Some(0)) => Err(Failure::Usage("--ranks 0: give at least one".to_owned())),
            (Some(placement), Some(asked)) if placement.count != asked => {
                Err(Failure::Usage(format!(
                    "--ranks {asked}: the launcher has started {}; leave the flag out",
                    placement.count
                )))
            }
            (Some(placement), asked) if placement.count > 1 || asked.is_some() => {
                if placement.rank > 0 {
                    say::be_quiet();
                }
                let ranks = Ranks::meet(placement, folder, on_loss())?;
                Ok(Some(Self { ranks: Arc::new(ranks), _local: None }))
            }
            (_, None) => Ok(None),
            (_, Some(count)) => Self::start(count).map(Some),
        }
    }

    fn start(count: usize) -> Result<Self, Failure> {
        let typed = invocation::typed();
        if count > 1 && (host::current().is_some() || typed.is_empty()) {
            let message = "--ranks: processes can be started from the command line alone; or start this program \
                           by torchrun or srun";
            return Err(Failure::Usage(message.to_owned()));
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        if count > cores * RANKS_OF_A_CORE {
            return Err(Failure::Usage(format!(
                "--ranks {count}: this machine has {cores} cores, enough for {} processes; give fewer",
                cores * RANKS_OF_A_CORE
            )));
        }
        let words = typed.get(1..).unwrap_or_default();
        let mut local = LocalRanks::start(count, invocation::program(), words)?;
        let ranks = Ranks::meet_local(&mut local, on_loss())?;
        Ok(Self { ranks: Arc::new(ranks), _local: Some(local) })
    }

    /// Runs this process's part, and tells the others how it ended.
    pub(super) fn run(
        self,
        work: impl FnOnce(&Arc<Ranks>) -> Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        // A GPU that fails unwinds: the others are to know.
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(&self.ranks)));
        let result = result.unwrap_or_else(|payload| match payload.downcast::<DeviceFault>() {
            Ok(fault) => Err((*fault).into()),
            Err(payload) => {
                self.ranks.leave(Some("a fault of the program"));
                panic::resume_unwind(payload)
            }
        });
        let reported = self.ranks.leave(result.as_ref().err().map(Failure::message));
        match result {
            Err(failure) if reported => Err(Failure::Reported(failure.message().to_owned())),
            result => result,
        }
    }
}

/// Ends the process where it has lost a rank and cannot end by itself, since its GPU waits for the one that is gone.
fn on_loss() -> OnLoss {
    Box::new(|error| {
        if matches!(error, RankError::Lost { ours_to_report: true, .. }) {
            complain!("error: {error}{}", super::RESUME);
        }
        files::remove_drafts();
        exit(1);
    })
}
