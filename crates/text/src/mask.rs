//! Which tokens are hidden, and what stands in their place, as XLM does it.
//!
//! Training: 15 % of positions, each by itself or (with a power) exactly so many with rare tokens
//! likelier; of these 80 % become the mask, 10 % stay, 10 % become a random subword. The first
//! position of a stream is never chosen. Evaluation: always the mask, never the first or last
//! position, one at least, and the same positions every time.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::random::RandomStream;
use crate::vocabulary::Vocabulary;

/// How tokens are hidden in training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskSettings {
    /// The share of positions to predict.
    pub rate: f64,
    /// 0 chooses every position with the same chance. Above it, a position's weight is its
    /// token's count to the power of minus this, and special tokens are left alone; XLM's authors
    /// used 0.5.
    pub alpha: f64,
    /// Of the chosen positions, the share that becomes the mask.
    pub hide: f64,
    /// Of the chosen positions, the share that stays as it is; the rest becomes random.
    pub keep: f64,
    /// Where random subwords come from.
    pub replacements: Replacements,
}

/// Where random subwords come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Replacements {
    /// The whole vocabulary, foreign subwords and special ones included.
    All,
    /// The language's own subwords, as separate embeddings demand.
    Own,
}

impl Default for MaskSettings {
    fn default() -> Self {
        Self { rate: 0.15, alpha: 0.0, hide: 0.8, keep: 0.1, replacements: Replacements::All }
    }
}

impl MaskSettings {
    fn check(&self) -> Result<()> {
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let fault = if !(share(self.rate) && self.rate > 0.0) {
            "the rate of masking is a share above 0, at most 1"
        } else if !(share(self.hide) && share(self.keep) && self.hide + self.keep <= 1.0) {
            "the shares hidden and kept are at least 0, and at most 1 together"
        } else if !(self.alpha.is_finite() && self.alpha >= 0.0) {
            "the power of frequency is a number from 0 up"
        } else {
            return Ok(());
        };
        Err(Error::request(fault, "0.15, 0.8, 0.1 and 0 are the papers' choice"))
    }
}

/// What is to be predicted: positions in a batch, and what stood there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskedPositions {
    pub(crate) positions: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

/// Hides tokens of one language.
#[derive(Clone, Debug)]
pub(crate) struct Masker {
    settings: MaskSettings,
    mask: u32,
    /// For each subword, how readily it is chosen; none where all are alike.
    weights: Option<Vec<f64>>,
    /// The subwords to draw random ones from; none for all ids below `size`.
    pool: Option<Vec<u32>>,
    size: u64,
}

impl Masker {
    pub(crate) fn new(
        settings: MaskSettings,
        vocabulary: &Vocabulary,
        language: usize,
        counts: &[u64],
    ) -> Result<Self> {
        settings.check()?;
        let weigh = |id: usize| match vocabulary.is_special(id as u32) {
            true => 0.0,
            false => (counts[id].max(1) as f64).powf(-settings.alpha),
        };
        let own = settings.replacements == Replacements::Own;
        Ok(Self {
            settings,
            mask: vocabulary.specials().mask,
            weights: (settings.alpha > 0.0).then(|| (0..counts.len()).map(weigh).collect()),
            pool: own.then(|| vocabulary.language_ids(language).to_vec()),
            size: vocabulary.len() as u64,
        })
    }

    /// Hides tokens in place. `heads` are the first positions of the streams, in order.
    pub(crate) fn hide(
        &self,
        tokens: &mut [u32],
        heads: &[u32],
        chance: &mut RandomStream,
    ) -> MaskedPositions {
        let mut positions = match &self.weights {
            None => self.choose_evenly(tokens.len(), chance),
            Some(weights) => self.choose_by_weight(tokens, weights, chance),
        };
        positions.retain(|position| heads.binary_search(position).is_err());
        if positions.is_empty() {
            // A loss is a mean over what was hidden, so a batch too small for chance gets one.
            let eligible = |position: &u32| heads.binary_search(position).is_err();
            let eligible: Vec<_> = (0..tokens.len() as u32).filter(eligible).collect();
            if !eligible.is_empty() {
                positions.push(eligible[chance.below(eligible.len() as u64) as usize]);
            }
        }
        let targets = positions.iter().map(|&position| tokens[position as usize]).collect();
        for &position in &positions {
            self.replace(&mut tokens[position as usize], chance);
        }
        MaskedPositions { positions, targets }
    }

    fn choose_evenly(&self, length: usize, chance: &mut RandomStream) -> Vec<u32> {
        (0..length as u32).filter(|_| chance.unit() < self.settings.rate).collect()
    }

    /// Exactly so many without repetition: each position waits for a time that is exponential
    /// with its weight as rate, and the first to come are taken.
    fn choose_by_weight(
        &self,
        tokens: &[u32],
        weights: &[f64],
        chance: &mut RandomStream,
    ) -> Vec<u32> {
        let wanted = (self.settings.rate * tokens.len() as f64).ceil() as usize;
        let mut times = Vec::with_capacity(tokens.len());
        for (position, &token) in (0u32..).zip(tokens) {
            let waited = -(1.0 - chance.unit()).ln();
            let weight = weights[token as usize];
            if weight > 0.0 {
                times.push((waited / weight, position));
            }
        }
        if wanted < times.len() {
            times.select_nth_unstable_by(wanted, |one, other| {
                one.partial_cmp(other).expect("finite")
            });
            times.truncate(wanted);
        }
        let mut positions: Vec<_> = times.into_iter().map(|(_, position)| position).collect();
        positions.sort_unstable();
        positions
    }

    fn replace(&self, token: &mut u32, chance: &mut RandomStream) {
        let draw = chance.unit();
        if draw < self.settings.hide {
            *token = self.mask;
        } else if draw >= self.settings.hide + self.settings.keep {
            *token = match &self.pool {
                Some(pool) => pool[chance.below(pool.len() as u64) as usize],
                None => chance.below(self.size) as u32,
            };
        }
    }
}

/// Hides tokens of one sequence for evaluation; `offset` is the sequence's place in its batch.
pub(crate) fn hide_for_evaluation(
    sequence: &mut [u32],
    offset: u32,
    rate: f64,
    mask: u32,
    chance: &mut RandomStream,
) -> MaskedPositions {
    let mut hidden = MaskedPositions::default();
    let inner = 1..sequence.len().saturating_sub(1);
    let mut chosen: Vec<usize> = inner.clone().filter(|_| chance.unit() < rate).collect();
    if chosen.is_empty() && !inner.is_empty() {
        chosen.push(inner.start + chance.below(inner.len() as u64) as usize);
    }
    for position in chosen {
        hidden.positions.push(offset + position as u32);
        hidden.targets.push(std::mem::replace(&mut sequence[position], mask));
    }
    hidden
}
