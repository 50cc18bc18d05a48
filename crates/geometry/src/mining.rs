//! Bitext mining: translation pairs between two texts of unequal size, by margins (Artetxe and Schwenk 2019).
//!
//! The k nearest neighbours of either side are searched exactly, a block of rows against a block of rows at a time, so
//! that memory holds two blocks and the neighbours whatever the texts' size; the state after any block can be saved
//! and continued. A margin relates the cosine of two sentences to the mean cosine of each to its own nearest, and the
//! best candidates of one or both directions become pairs, as in LASER's program. F1 is that of BUCC (Zweigenbaum
//! et al. 2017): of all pairs above a threshold against gold pairs.

mod state;

use arrays::{Matrix, Stack};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use tensor::Device;

use crate::search::{LEAST, Measure, Neighbours, Scores, Watch, unwatched};
use crate::{Error, Result};
pub use state::NearestState;

/// Values of a block of rows: 256 MiB.
const BLOCK_VALUES: usize = 1 << 26;
/// The most rows of a block, however short they are: what is saved between blocks is worth a minute, not an hour.
const BLOCK_ROWS: usize = 1 << 17;

/// How two sentences are scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Margin {
    /// Their cosine, divided by the mean cosine of both to their nearest neighbours.
    Ratio,
    /// Their cosine, less that mean.
    Distance,
    /// Their cosine alone.
    Absolute,
}

terms::named!(Margin { Ratio => "ratio", Distance => "distance", Absolute => "absolute" });

impl Margin {
    fn of(self, cosine: f32, mean: f32) -> f32 {
        match self {
            Margin::Ratio => cosine / mean.max(LEAST),
            Margin::Distance => cosine - mean,
            Margin::Absolute => cosine,
        }
    }
}

/// Which candidates become pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MiningDirection {
    /// The best target of each source.
    Forward,
    /// The best source of each target.
    Backward,
    /// Pairs that are the best in both directions.
    Intersection,
    /// The best of both directions, highest score first, each sentence at most once.
    Max,
}

terms::named!(MiningDirection {
    Forward => "forward",
    Backward => "backward",
    Intersection => "intersection",
    Max => "max",
});

/// A mined pair of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinedPair {
    /// The row of the source.
    pub source: u32,
    /// The row of the target.
    pub target: u32,
    /// Its margin.
    pub score: f32,
}

/// The nearest neighbours of both sides by cosine, and where the search for them stands.
pub struct NeighbourSearch<'a> {
    source: &'a Stack,
    target: &'a Stack,
    means: Option<[Vec<f64>; 2]>,
    device: Device,
    blocks: [usize; 2],
}

impl<'a> NeighbourSearch<'a> {
    /// A search of two sides of one layer each; `center` subtracts the mean vector of either side first.
    ///
    /// # Errors
    /// Where a side has no row or more than one layer, the two differ in dimension, or a file cannot be read.
    pub fn new(
        source: &'a Stack,
        target: &'a Stack,
        center: bool,
        device: &Device,
    ) -> Result<Self> {
        for side in [source, target] {
            if side.layers() != 1 || side.rows() == 0 {
                let reason = format!("has {} layers of {} rows", side.layers(), side.rows());
                return Err(Error::input(side.name(), reason, "give the vectors of one layer"));
            }
        }
        if source.dim(0) != target.dim(0) {
            let reason =
                format!("{} columns, and {}: {}", source.dim(0), target.name(), target.dim(0));
            return Err(Error::input(source.name(), reason, "give vectors of one space"));
        }
        let rows = (BLOCK_VALUES / source.dim(0).max(1)).clamp(1, BLOCK_ROWS);
        let mut search =
            Self { source, target, means: None, device: device.clone(), blocks: [rows, rows] };
        if center {
            search.means = Some([search.mean(source)?, search.mean(target)?]);
        }
        Ok(search)
    }

    /// The same, in blocks of so many rows; for tests.
    #[must_use]
    pub fn in_blocks(self, source: usize, target: usize) -> Self {
        Self { blocks: [source, target], ..self }
    }

    fn mean(&self, side: &Stack) -> Result<Vec<f64>> {
        let mut sums = vec![0.0; side.dim(0)];
        for start in (0..side.rows()).step_by(self.blocks[0]) {
            let block = side.read(0, start..side.rows().min(start + self.blocks[0]))?;
            for row in block.iter() {
                sums.iter_mut().zip(row).for_each(|(sum, &x)| *sum += f64::from(x));
            }
        }
        sums.iter_mut().for_each(|sum| *sum /= side.rows() as f64);
        Ok(sums)
    }

    fn block(&self, side: usize, start: usize) -> Result<Matrix> {
        let stack = [self.source, self.target][side];
        let rows = start..stack.rows().min(start + self.blocks[side]);
        let mut block = stack.read(0, rows.clone())?;
        block.check(stack.name(), |row| format!("row {}", rows.start + row))?;
        if let Some(means) = &self.means {
            for row in block.values_mut().chunks_exact_mut(means[side].len()) {
                row.iter_mut().zip(&means[side]).for_each(|(x, &mean)| *x -= mean as f32);
            }
        }
        Ok(block)
    }

    /// A search for `k` neighbours of every row that has not begun; `key` tells its input from any other.
    pub fn start(&self, k: usize, key: &str) -> NearestState {
        let rows = [self.source.rows(), self.target.rows()];
        NearestState::new(key, rows, k.max(1))
    }

    /// How many blocks there are against blocks.
    pub fn steps(&self) -> u64 {
        let blocks = |side: usize, stack: &Stack| stack.rows().div_ceil(self.blocks[side]) as u64;
        blocks(0, self.source) * blocks(1, self.target)
    }

    /// Searches to the end from where the state stands; `save` is called with the state after every block against a
    /// block, and `watch` as rows of a block are done, counted over all.
    ///
    /// # Errors
    /// Where a file cannot be read, or the first error of `save`.
    pub fn run(
        &self,
        mut state: NearestState,
        mut save: impl FnMut(&NearestState) -> Result<()>,
        watch: Watch<'_>,
    ) -> Result<[Neighbours; 2]> {
        let steps = self.steps();
        let mut source: Option<(usize, Matrix)> = None;
        let across = self.target.rows().div_ceil(self.blocks[1]) as u64;
        while state.done() < steps {
            let starts = [state.done() / across, state.done() % across];
            let starts = [0, 1].map(|side| starts[side] as usize * self.blocks[side]);
            if source.as_ref().is_none_or(|(start, _)| *start != starts[0]) {
                source = Some((starts[0], self.block(0, starts[0])?));
            }
            let rows = source.as_ref().expect("a block was just read").1.clone();
            let targets = self.block(1, starts[1])?;
            let scores = Scores::new(rows, targets, Measure::Cosine, &self.device, &unwatched);
            let done = state.done();
            let (forward, backward) = scores.both_ways(state.k(), &|strip, strips| {
                watch(done * 1000 + strip * 1000 / strips.max(1), steps * 1000);
            });
            state.add(starts, [&forward, &backward]);
            save(&state)?;
        }
        Ok(state.finish())
    }
}

/// Mines pairs from the neighbours of both sides, the highest score first; of equal scores the lower rows first.
pub fn mine(
    [forward, backward]: [&Neighbours; 2],
    margin: Margin,
    direction: MiningDirection,
) -> Vec<MinedPair> {
    let means = [forward.means(), backward.means()];
    let score = |source: u32, target: u32, cosine: f32| {
        let mean = (means[0][source as usize] + means[1][target as usize]) / 2.0;
        MinedPair { source, target, score: margin.of(cosine, mean) }
    };
    let best = |neighbours: &Neighbours, row: usize, pair: &dyn Fn(u32, f32) -> MinedPair| {
        let candidates = neighbours.ids(row).iter().zip(neighbours.scores(row));
        let scored = candidates.map(|(&id, &cosine)| pair(id, cosine));
        scored.reduce(|best, one| if one.score > best.score { one } else { best })
    };
    let of_source =
        |row: usize| best(forward, row, &|target, cosine| score(row as u32, target, cosine));
    let of_target =
        |row: usize| best(backward, row, &|source, cosine| score(source, row as u32, cosine));
    let forward_best: Vec<MinedPair> = (0..forward.rows()).filter_map(of_source).collect();
    let backward_best: Vec<MinedPair> = (0..backward.rows()).filter_map(of_target).collect();
    match direction {
        MiningDirection::Forward => ordered(forward_best),
        MiningDirection::Backward => ordered(backward_best),
        MiningDirection::Intersection => {
            let back = |pair: &MinedPair| backward_best[pair.target as usize].source == pair.source;
            ordered(forward_best.into_iter().filter(back).collect())
        }
        MiningDirection::Max => {
            let (mut sources, mut targets) = (FxHashSet::default(), FxHashSet::default());
            let mut pairs = ordered(forward_best.into_iter().chain(backward_best).collect());
            pairs.retain(|pair| {
                let free = !sources.contains(&pair.source) && !targets.contains(&pair.target);
                if free {
                    sources.insert(pair.source);
                    targets.insert(pair.target);
                }
                free
            });
            pairs
        }
    }
}

fn ordered(mut pairs: Vec<MinedPair>) -> Vec<MinedPair> {
    pairs.sort_by(|a, b| {
        b.score.total_cmp(&a.score).then((a.source, a.target).cmp(&(b.source, b.target)))
    });
    pairs
}

/// Mined pairs above a threshold against gold pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MiningScore {
    /// The least score of a pair.
    pub threshold: f64,
    /// Pairs of that score or more.
    pub predicted: usize,
    /// Those of them that are gold.
    pub correct: usize,
    /// Gold pairs.
    pub gold: usize,
    /// The share of predicted pairs that are gold.
    pub precision: f64,
    /// The share of gold pairs that are predicted.
    pub recall: f64,
    /// The harmonic mean of both.
    pub f1: f64,
    /// The F1 that as many pairs drawn at random would get.
    pub f1_chance: f64,
}

impl MiningScore {
    fn new(threshold: f64, [predicted, correct, gold]: [usize; 3], rows: [usize; 2]) -> Self {
        let f1 = |correct: f64| 2.0 * correct / ((predicted + gold) as f64).max(1.0);
        let drawn = predicted as f64 * gold as f64 / (rows[0] as f64 * rows[1] as f64).max(1.0);
        Self {
            threshold,
            predicted,
            correct,
            gold,
            precision: correct as f64 / predicted.max(1) as f64,
            recall: correct as f64 / gold.max(1) as f64,
            f1: f1(correct as f64),
            f1_chance: f1(drawn),
        }
    }

    /// Evaluates pairs of at least a threshold; `rows` are those of either side.
    pub fn at(
        threshold: f64,
        pairs: &[MinedPair],
        gold: &FxHashSet<(u32, u32)>,
        rows: [usize; 2],
    ) -> Self {
        let kept = pairs.iter().filter(|pair| f64::from(pair.score) >= threshold);
        let (mut predicted, mut correct) = (0, 0);
        for pair in kept {
            predicted += 1;
            correct += usize::from(gold.contains(&(pair.source, pair.target)));
        }
        Self::new(threshold, [predicted, correct, gold.len()], rows)
    }

    /// The threshold with the highest F1, halfway to the next lower score as in LASER; pairs are ordered as
    /// [`mine`](fn@mine) returns them. None where there are none.
    pub fn best(
        pairs: &[MinedPair],
        gold: &FxHashSet<(u32, u32)>,
        rows: [usize; 2],
    ) -> Option<Self> {
        let (mut correct, mut best) = (0, None::<Self>);
        for (number, pair) in pairs.iter().enumerate() {
            correct += usize::from(gold.contains(&(pair.source, pair.target)));
            let next = pairs.get(number + 1).map_or(pair.score, |next| next.score);
            // Equal scores are on one side of any threshold.
            if number + 1 < pairs.len() && next == pair.score {
                continue;
            }
            let threshold = (f64::from(pair.score) + f64::from(next)) / 2.0;
            let here = Self::new(threshold, [number + 1, correct, gold.len()], rows);
            if best.is_none_or(|best| here.f1 > best.f1) {
                best = Some(here);
            }
        }
        best
    }

    /// The score of every second source sentence at the threshold that suits the others best: what is reported was not
    /// chosen on. None where a half has no gold pair, or nothing was mined of the half that chooses.
    pub fn held_out(
        pairs: &[MinedPair],
        gold: &FxHashSet<(u32, u32)>,
        rows: [usize; 2],
    ) -> Option<Self> {
        let half = |odd: u32| {
            let own: Vec<MinedPair> =
                pairs.iter().copied().filter(|pair| pair.source % 2 == odd).collect();
            let gold: FxHashSet<(u32, u32)> =
                gold.iter().copied().filter(|pair| pair.0 % 2 == odd).collect();
            (own, gold, [(rows[0] + 1 - odd as usize) / 2, rows[1]])
        };
        let ((dev, dev_gold, dev_rows), (test, test_gold, test_rows)) = (half(0), half(1));
        if dev_gold.is_empty() || test_gold.is_empty() {
            return None;
        }
        let chosen = Self::best(&dev, &dev_gold, dev_rows)?;
        Some(Self::at(chosen.threshold, &test, &test_gold, test_rows))
    }
}

/// The space that the vectors of a side are of. A threshold that was chosen in one space says nothing of scores in another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiningSpace {
    /// The fingerprint of the model; none of given vectors, which do not say.
    pub model: Option<String>,
    /// The layer of the model, or of an array of several.
    pub layer: Option<usize>,
    /// The dimension.
    pub dim: usize,
}

impl MiningSpace {
    /// How this space differs from another in which a threshold was chosen; none where nothing is known to differ.
    pub fn difference(&self, chosen: &Self) -> Option<String> {
        let short = |model: &str| model.chars().take(12).collect::<String>();
        if let (Some(theirs), Some(ours)) = (&chosen.model, &self.model)
            && theirs != ours
        {
            return Some(format!("with the model {} and not {}", short(theirs), short(ours)));
        }
        // An array of one layer does not say which layer of a model it is.
        if let (Some(theirs), Some(ours)) = (chosen.layer, self.layer)
            && theirs != ours
        {
            return Some(format!("at layer {theirs} and not {ours}"));
        }
        let (theirs, ours) = (chosen.dim, self.dim);
        (theirs != ours).then(|| format!("in {theirs} dimensions and not {ours}"))
    }

    /// Whether it is known which model and layer both are of.
    pub fn is_comparable(&self, chosen: &Self) -> bool {
        [self, chosen].iter().all(|space| space.model.is_some() && space.layer.is_some())
    }
}

/// What came of mining two texts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MiningResult {
    /// The layer; none of given vectors.
    pub layer: Option<usize>,
    /// Sentences of source and target that were searched.
    pub rows: [usize; 2],
    /// Sentences of either that repeat an earlier one and were left out.
    pub repeated: [usize; 2],
    /// Sentences of either that were too long for the model and truncated.
    pub truncated: [usize; 2],
    /// Pairs before the threshold.
    pub candidates: usize,
    /// Pairs that were written.
    pub pairs: usize,
    /// The least score of a pair that was written; none where all were.
    pub threshold: Option<f64>,
    /// Those pairs against gold ones.
    pub score: Option<MiningScore>,
    /// At the threshold that suits these gold pairs best: for a development text, whose threshold is then used elsewhere.
    /// As a score of this text it is too high, since it was chosen here.
    pub best: Option<MiningScore>,
    /// Of every second source sentence, at the threshold that suits the others best; none where a threshold was given.
    pub held_out: Option<MiningScore>,
    /// The spaces of the source's vectors and of the target's, which a threshold belongs to; none in results of earlier
    /// versions.
    #[serde(default)]
    pub spaces: Option<[MiningSpace; 2]>,
    /// Seconds of the search alone.
    pub seconds: f64,
    /// How pairs were mined.
    pub signature: String,
}

impl MiningResult {
    /// Completes what is known of the search by what comes of its pairs: those above the threshold, and their scores
    /// against gold ones.
    pub fn keep(
        self,
        pairs: Vec<MinedPair>,
        gold: Option<&FxHashSet<(u32, u32)>>,
    ) -> (Self, Vec<MinedPair>) {
        let (rows, threshold) = (self.rows, self.threshold);
        let at = threshold.zip(gold);
        let result = Self {
            candidates: pairs.len(),
            score: at.map(|(threshold, gold)| MiningScore::at(threshold, &pairs, gold, rows)),
            best: gold.and_then(|gold| MiningScore::best(&pairs, gold, rows)),
            held_out: gold
                .filter(|_| threshold.is_none())
                .and_then(|gold| MiningScore::held_out(&pairs, gold, rows)),
            ..self
        };
        let enough = |pair: &MinedPair| threshold.is_none_or(|x| f64::from(pair.score) >= x);
        let kept: Vec<MinedPair> = pairs.into_iter().filter(enough).collect();
        (Self { pairs: kept.len(), ..result }, kept)
    }
}

/// Names every convention that the numbers depend on.
pub fn signature((margin, direction): (Margin, MiningDirection), k: usize, center: bool) -> String {
    let center = if center { "own-mean" } else { "none" };
    format!(
        "mine|margin:{},k={k}|{}|centered:{center}|exact|equal:one-candidate|ties:lower-row|v{}",
        margin.name(),
        direction.name(),
        env!("CARGO_PKG_VERSION"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(source: u32, target: u32, score: f32) -> MinedPair {
        MinedPair { source, target, score }
    }

    #[test]
    fn a_threshold_belongs_to_a_space() {
        let space = |model: Option<&str>, layer, dim| MiningSpace {
            model: model.map(str::to_owned),
            layer,
            dim,
        };
        let chosen = space(Some("one"), Some(4), 8);
        let differs = |here: MiningSpace| here.difference(&chosen).unwrap_or_default();
        assert_eq!(differs(chosen.clone()), "");
        assert_eq!(differs(space(Some("two"), Some(4), 8)), "with the model one and not two");
        assert_eq!(differs(space(Some("one"), Some(3), 8)), "at layer 4 and not 3");
        assert_eq!(differs(space(None, None, 9)), "in 8 dimensions and not 9");
        assert_eq!(differs(space(None, None, 8)), "");
        assert!(chosen.is_comparable(&chosen) && !chosen.is_comparable(&space(None, None, 8)));
    }

    /// Worked by hand: two of three predicted pairs are gold at the best threshold, which lies halfway to the next.
    #[test]
    fn thresholds_by_hand() {
        let pairs =
            [pair(0, 0, 1.5), pair(1, 2, 1.4), pair(2, 1, 1.3), pair(3, 3, 1.1), pair(4, 4, 1.0)];
        let gold: FxHashSet<(u32, u32)> = [(0, 0), (2, 1), (9, 9)].into_iter().collect();
        let best = MiningScore::best(&pairs, &gold, [10, 20]).unwrap();
        assert_eq!((best.predicted, best.correct, best.gold), (3, 2, 3));
        assert!((best.threshold - 1.2).abs() < 1e-6 && (best.f1 - 2.0 / 3.0).abs() < 1e-12);
        // Three random pairs of 200 meet three gold ones 9/200 times.
        assert!((best.f1_chance - 2.0 * (9.0 / 200.0) / 6.0).abs() < 1e-12);
        let all = MiningScore::at(0.0, &pairs, &gold, [10, 20]);
        assert_eq!((all.predicted, all.correct), (5, 2));
        assert_eq!(MiningScore::at(9.0, &pairs, &gold, [10, 20]).f1, 0.0);
        assert!(MiningScore::best(&[], &gold, [10, 20]).is_none());
    }

    /// Worked by hand: even sources choose a threshold of 1.2, halfway between 1.3 and 1.1; of the odd ones the pair above it is
    /// wrong and two gold pairs lie below, though a lower threshold would find both.
    #[test]
    fn a_threshold_is_not_chosen_on_what_is_reported() {
        let pairs = [
            pair(0, 0, 1.5),
            pair(1, 2, 1.4),
            pair(2, 1, 1.3),
            pair(4, 5, 1.1),
            pair(3, 3, 1.0),
            pair(5, 4, 0.9),
        ];
        let gold: FxHashSet<(u32, u32)> = [(0, 0), (2, 1), (3, 3), (5, 4)].into_iter().collect();
        let held_out = MiningScore::held_out(&pairs, &gold, [7, 6]).unwrap();
        assert!((held_out.threshold - 1.2).abs() < 1e-6, "{held_out:?}");
        assert_eq!((held_out.predicted, held_out.correct, held_out.gold), (1, 0, 2));
        // One random pair of 3 x 6 meets two gold ones 2/18 times.
        assert!((held_out.f1_chance - 2.0 * (2.0 / 18.0) / 3.0).abs() < 1e-12);
        let best = MiningScore::best(&pairs, &gold, [7, 6]).unwrap();
        assert!(best.f1 > 0.7, "{best:?}");
        let of_one_half: FxHashSet<(u32, u32)> = [(0, 0), (2, 1)].into_iter().collect();
        assert!(MiningScore::held_out(&pairs, &of_one_half, [7, 6]).is_none());
    }
}
