//! A run on several ranks: rank 0 prepares, measures, prints and writes, as a process by itself does; the others
//! compute their share of every update. Before each update they agree on what it consists of, and on whether to go on.
//!
//! All ranks read the run's folder (the vocabulary, tokenised text, the checkpoint), which lies where all can; only rank 0 writes in it.

use std::path::Path;
use std::sync::Arc;

use encoder::{Batch, ConfigError, MaskedTokens};
use files::checkpoints;
use ranks::{RankError, Ranks};
use serde::{Deserialize, Serialize};
use tensor::Device;
use toml::Table;

use super::config::PretrainConfig;
use super::data::{BatchFeed, RunData};
use super::run::{STATE, mlm_share, new_trainer};
use super::summary::RunState;
use super::{PretrainError, init};
use crate::trainer::{PendingStep, Trainer};

/// The language of a micro-batch, its targets and its tokens.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(super) struct MicroBatchSize {
    pub(super) language: usize,
    pub(super) targets: usize,
    pub(super) tokens: u64,
}

/// The micro-batches of an update: this rank's, and the sizes of all.
pub(super) struct Update {
    pub(super) own: Vec<(Batch, MaskedTokens)>,
    pub(super) sizes: Vec<MicroBatchSize>,
}

impl Update {
    /// Of a process by itself.
    pub(super) fn of(own: Vec<(Batch, MaskedTokens)>) -> Self {
        let sizes = sizes(&own);
        Self { own, sizes }
    }

    pub(super) fn targets(&self) -> usize {
        self.sizes.iter().map(|size| size.targets).sum()
    }
}

fn sizes(micro_batches: &[(Batch, MaskedTokens)]) -> Vec<MicroBatchSize> {
    let size = |(batch, masked): &(Batch, MaskedTokens)| MicroBatchSize {
        language: batch.language,
        targets: masked.rows.len(),
        tokens: batch.tokens.len() as u64,
    };
    micro_batches.iter().map(size).collect()
}

#[derive(Serialize, Deserialize)]
struct StepMessage {
    stop: bool,
    /// Of rank 0: the run has come to its end.
    finished: bool,
    sizes: Vec<MicroBatchSize>,
}

/// The next update, as all ranks have it; none where one of them was asked to stop, or the run is at its end.
pub(super) fn next_update(
    ranks: &Ranks,
    feed: &mut BatchFeed,
    data: &RunData,
    finished: bool,
    stop: bool,
) -> Result<Option<Update>, PretrainError> {
    let own = if finished { Vec::new() } else { feed.next_step(data)? };
    let message = StepMessage { stop, finished, sizes: sizes(&own) };
    let message = serde_json::to_vec(&message).expect("plain data");
    let messages: Vec<StepMessage> = gather(ranks, &message)?;
    if messages[0].finished || messages.iter().any(|message| message.stop) {
        return Ok(None);
    }
    // The first of every rank, then the second of every rank: their order in one process.
    let each = 0..own.len();
    let sizes = each.flat_map(|number| messages.iter().filter_map(move |m| m.sizes.get(number)));
    let sizes = sizes.copied().collect();
    Ok(Some(Update { own, sizes }))
}

/// The messages of all ranks.
fn gather<T: for<'a> Deserialize<'a>>(
    ranks: &Ranks,
    message: &[u8],
) -> Result<Vec<T>, PretrainError> {
    let parse = |(rank, message): (usize, Vec<u8>)| {
        serde_json::from_slice(&message).map_err(|_| {
            let message = format!("rank {rank} says what this version does not understand");
            RankError::Failed(message).into()
        })
    };
    ranks.gather(message)?.into_iter().enumerate().map(parse).collect()
}

/// Refuses numbers of micro-batches that so many ranks cannot share equally.
pub(super) fn check(
    config: &PretrainConfig,
    ranks: Option<&Arc<Ranks>>,
) -> Result<(), ConfigError> {
    let Some(count) = ranks.map(|ranks| ranks.count()) else { return Ok(()) };
    let stages = config.stages.iter().filter_map(|stage| stage.accumulate);
    match stages.chain([config.accumulate]).find(|accumulate| accumulate % count != 0) {
        None => Ok(()),
        Some(accumulate) => Err(ConfigError::new(
            "accumulate",
            format!(
                "an update of {accumulate} micro-batches cannot be shared by {count} ranks; make it a multiple of \
                 {count} (and batch.sequences smaller, to keep the tokens of an update), or take fewer ranks"
            ),
        )),
    }
}

/// Rank 0 has prepared the run's folder: gives the others its configuration.
pub(super) fn announce(ranks: &Ranks, config: &PretrainConfig) -> Result<(), PretrainError> {
    ranks.gather(config.to_toml().as_bytes())?;
    Ok(())
}

/// Joins the devices and makes sure that all ranks have the same weights; then every step is shared. Says what joins them.
pub(super) fn join(ranks: &Arc<Ranks>, trainer: &mut Trainer) -> Result<String, PretrainError> {
    let device = trainer.params().device().clone();
    let joined = ranks.join(&device)?;
    let own = format!("step {}, weights {}", trainer.steps(), trainer.digest());
    let all = ranks.gather(own.as_bytes())?;
    if let Some(other) = all.iter().position(|of| *of != all[0]) {
        let message = format!(
            "rank {other} has begun with other weights than rank 0: is its folder of the run the same?"
        );
        return Err(RankError::Failed(message).into());
    }
    trainer.share(Arc::clone(ranks));
    Ok(joined)
}

/// Trains as any rank but 0, until rank 0 or a stop ends it. Nothing is written and nothing measured.
pub fn follow(
    folder: &Path,
    device: &Device,
    ranks: &Arc<Ranks>,
    stop: &dyn Fn() -> bool,
) -> Result<(), PretrainError> {
    match follow_to_the_end(folder, device, ranks, stop) {
        Err(error) if matches!(error.of_ranks(), Some(RankError::Over)) => Ok(()),
        result => result,
    }
}

fn follow_to_the_end(
    folder: &Path,
    device: &Device,
    ranks: &Arc<Ranks>,
    stop: &dyn Fn() -> bool,
) -> Result<(), PretrainError> {
    let config = ranks.gather(&[])?.swap_remove(0);
    let table: Table = String::from_utf8_lossy(&config).parse().map_err(|_| {
        RankError::Failed("rank 0 has a configuration that cannot be read".to_owned())
    })?;
    let config = PretrainConfig::from_table(table)?;
    let checkpoint = folder.join(STATE);
    let resumed = checkpoints::exists(&checkpoint);
    let init = config.init.as_deref().filter(|_| !resumed);
    let init = init.map(|from| init::open(from, device)).transpose()?;
    let data = RunData::prepare(&config, folder, &mut |_| {})?;
    let (model, params) = init::encoder(&config, folder, &data, init, device)?;
    let mut trainer = new_trainer(&config, &model, params)?;
    if resumed {
        let _: RunState = trainer.resume_newest(&checkpoint, &mut |_| {})?;
    }
    join(ranks, &mut trainer)?;
    let first = trainer.steps();
    let mut feed = data.feed_rank(first, ranks.rank(), ranks.count());
    let mut begun: Option<PendingStep> = None;
    while let Some(update) = next_update(ranks, &mut feed, &data, false, stop())? {
        trainer.set_schedule(config.schedule_at(trainer.steps() + 1));
        let next = mlm_share(&mut trainer, &model, &update.own, update.targets());
        if let Some(begun) = begun.replace(next) {
            trainer.finish(begun)?;
        }
    }
    begun.map_or(Ok(()), |begun| trainer.finish(begun).map(drop))?;
    Ok(())
}
