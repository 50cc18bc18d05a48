//! Processes ("ranks") that train one model together, one for each GPU, or several on CPUs.
//!
//! - [`Placement`] says which rank this process is, of how many, and where rank 0 is: from the environment that
//!   `torchrun` or `srun` makes, or as [`LocalRanks`] starts them on one machine.
//! - [`Ranks`] is what they have in common: messages from all to all ([`Ranks::gather`]) and sums of matrices
//!   ([`Ranks::sum`]). Sums go from GPU to GPU by NCCL; those of CPUs go through rank 0 over TCP, which adds them up in the
//!   order of the ranks, so that the same number of ranks gives the same bits.
//! - A rank that dies closes its connection, and every other is given one [`RankError`] that names it, within seconds also
//!   where it waits for its GPU.
//!
//! TCP is needed anyway, to hand NCCL's id around and to notice a death, which NCCL does not. Who comes to rank 0 must
//! know the secret of the run.

mod greeting;
mod local;
mod placement;
mod secret;
mod tcp;

use std::path::Path;
use std::sync::OnceLock;

use tensor::kernels::DeviceGroup;
use tensor::{Device, DeviceError, Tensor};
use terms::Fault;

pub use crate::local::LocalRanks;
pub use crate::placement::Placement;
use crate::secret::SecretSource;
use crate::tcp::TcpLink;

/// Why ranks cannot go on together.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RankError {
    /// The environment or the request makes no sense.
    #[error("{0}")]
    Request(String),
    /// A rank is gone, or has failed; the message names it.
    #[error("{message}")]
    Lost {
        /// Which one, and why.
        message: String,
        /// Whether this rank is the one to report it.
        ours_to_report: bool,
    },
    /// Rank 0 has come to its end.
    #[error("rank 0 has ended")]
    Over,
    /// They did not find each other, do not train the same thing, or their GPUs could not be joined.
    #[error("{0}")]
    Failed(String),
}

impl Fault for RankError {
    fn is_usage(&self) -> bool {
        matches!(self, Self::Request(_))
    }
}

impl From<DeviceError> for RankError {
    fn from(error: DeviceError) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Called where a rank was lost and this process has not ended by itself soon after: it may wait for its GPU for ever.
pub type OnLoss = Box<dyn Fn(&RankError) + Send + Sync>;

/// So many ranks, as one says it.
fn in_words(ranks: usize) -> String {
    if ranks == 1 { "1 rank".to_owned() } else { format!("{ranks} ranks") }
}

/// All ranks, seen from this one.
pub struct Ranks {
    placement: Placement,
    link: TcpLink,
    group: OnceLock<Box<dyn DeviceGroup>>,
}

impl Ranks {
    /// Meets the others, at the address of rank 0. All can read the run's folder, in which rank 0 keeps the run's secret meanwhile.
    pub fn meet(placement: Placement, folder: &Path, on_loss: OnLoss) -> Result<Self, RankError> {
        let secret = SecretSource::of_run(folder)?;
        let link = TcpLink::meet(&placement, None, &secret, &mut || Ok(()), on_loss)?;
        Ok(Self { placement, link, group: OnceLock::new() })
    }

    /// Meets the ranks that rank 0, which is this process, has started on this machine.
    pub fn meet_local(local: &mut LocalRanks, on_loss: OnLoss) -> Result<Self, RankError> {
        let (placement, listener) = (local.placement().clone(), local.listener()?);
        let secret = SecretSource::Known(local.secret());
        let check = &mut || local.check();
        let link = TcpLink::meet(&placement, Some(listener), &secret, check, on_loss)?;
        Ok(Self { placement, link, group: OnceLock::new() })
    }

    /// Which one this is.
    pub fn rank(&self) -> usize {
        self.placement.rank
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.placement.count
    }

    /// Where this one is.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// From now on matrices of this device are summed. Every rank calls this. Says what joins the devices.
    pub fn join(&self, device: &Device) -> Result<String, RankError> {
        let kinds = self.gather(format!("{device:?}").as_bytes())?;
        let is_gpu = |kind: &Vec<u8>| kind.starts_with(b"cuda");
        if let Some(other) = kinds.iter().position(|kind| is_gpu(kind) != is_gpu(&kinds[0])) {
            let [first, other_kind] = [0, other].map(|rank| String::from_utf8_lossy(&kinds[rank]));
            return Err(RankError::Failed(format!(
                "rank 0 computes on {first} and rank {other} on {other_kind}; give all of them a GPU, or none"
            )));
        }
        let id = match self.rank() {
            0 => device.kernels().group_id()?.unwrap_or_default(),
            _ => Vec::new(),
        };
        let id = self.gather(&id)?.swap_remove(0);
        let group = match id.is_empty() {
            true => None,
            false => device.kernels().join(&id, self.rank(), self.count())?,
        };
        Ok(match group {
            None => format!("TCP, {}", in_words(self.count())),
            Some(group) => {
                let by = self.group.get_or_init(|| group).description();
                format!("{by}, {}", in_words(self.count()))
            }
        })
    }

    /// The messages of all ranks, in their order. Every rank calls this.
    pub fn gather(&self, message: &[u8]) -> Result<Vec<Vec<u8>>, RankError> {
        self.link.gather(message)
    }

    /// Replaces every matrix by its sum over all ranks. Every rank calls this with matrices of the same shapes in the
    /// same order. A GPU goes on with other work meanwhile; nothing may be done with the matrices before
    /// [`Ranks::settle`].
    pub fn sum(&self, matrices: &mut [&mut Tensor]) -> Result<(), RankError> {
        match self.group.get() {
            Some(group) => group.sum(matrices),
            None => self.link.sum(matrices)?,
        }
        Ok(())
    }

    /// What is asked of the device from now on comes after all sums.
    pub fn settle(&self) {
        if let Some(group) = self.group.get() {
            group.settle();
        }
    }

    /// Leaves the others: for good where there is no failure, else with what there is to say, which rank 0 reports. Says
    /// whether somebody else reports it.
    pub fn leave(&self, failure: Option<&str>) -> bool {
        self.link.leave(failure)
    }
}
