//! Retrieval of translations among sentences: raw, mean-centred, and after Procrustes alignment learned
//! from other pairs.
//!
//! Equal sentences are one candidate, since nothing could tell their vectors apart: a row counts as right
//! where the sentence that is found equals its own translation, on whatever row that stands.
//!
//! Pairs that a map was learned from are no test of it: they are counted, and left to the caller to remark on.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use arrays::{Matrix, Stack};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use serde::{Deserialize, Serialize};
use tensor::Device;
use terms::RowCounts;

use crate::map::Map;
use crate::normalize::{Step, describe, normalize};
use crate::predictions::{Prediction, RetrievalDirection, RetrievalSpace};
use crate::search::{Measure, Neighbours, Scores, unwatched};
use crate::{Error, Result};

/// Retrieval accuracy (P@1): the share of sentences whose best match is their translation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalAccuracy {
    /// From the source side to the target side.
    pub forward: f64,
    /// From the target side to the source side.
    pub backward: f64,
    /// The mean of both directions.
    pub mean: f64,
}

impl RetrievalAccuracy {
    /// From the accuracy of each direction.
    pub fn new(forward: f64, backward: f64) -> Self {
        Self { forward, backward, mean: (forward + backward) / 2.0 }
    }
}

/// Retrieval accuracy at one layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayerRetrieval {
    /// The layer; 0 is the embeddings.
    pub layer: usize,
    /// Its name, where the file gives it one that is not numeric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// With the vectors as they are.
    pub raw: RetrievalAccuracy,
    /// With the vectors of each side mean-centred.
    pub centered: RetrievalAccuracy,
    /// After Procrustes alignment learned from other pairs, where there are some.
    pub aligned: Option<RetrievalAccuracy>,
}

/// What came of a retrieval of translations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RetrievalResult {
    /// Pairs of sentences, and what became of them.
    #[serde(flatten)]
    pub counts: RowCounts,
    /// Different sentences to choose from on the source side and on the target side.
    pub candidates: [usize; 2],
    /// The accuracy of random choice, the mean of both directions.
    pub chance: f64,
    /// The pairs that the maps were learned from.
    pub train: Option<RowCounts>,
    /// Test pairs that are among them; none where no map was learned.
    #[serde(default)]
    pub train_overlap: Option<usize>,
    /// Test pairs whose source sentence, and whose target sentence, stands there, in whatever pair: half of what is asked was
    /// learned from.
    #[serde(default)]
    pub train_overlap_sides: Option<[usize; 2]>,
    /// The accuracy at each layer.
    pub layers: Vec<LayerRetrieval>,
    /// Names every convention that a number depends on.
    pub signature: String,
}

/// Which rows of two sides belong together, each pair once, and which rows of a side are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct RowPairs {
    /// The rows of each side that equal no earlier one.
    candidates: [Vec<usize>; 2],
    /// For each pair, the numbers of its two candidates.
    pairs: Vec<(u32, u32)>,
    /// For each pair, the first row that holds it.
    rows: Vec<usize>,
    /// For each row of a side, the number of its candidate.
    of_rows: [Vec<u32>; 2],
    /// For each pair, hashes of its keys, by which it is found among other rows; none of arrays, whose vectors tell.
    hashes: Option<Vec<[u64; 2]>>,
    /// How many rows there were, and what became of them.
    pub counts: RowCounts,
}

impl RowPairs {
    /// Row i belongs to row i; rows of a side with equal keys (such as their sentences) are one candidate.
    ///
    /// # Panics
    /// Where there are not as many keys on either side.
    pub fn of_keys<K: Hash + Eq>(source: &[K], target: &[K]) -> Self {
        let pairs = Self::of_equal(source, target);
        let hash = |key: &K| {
            // The same in every run, whatever the rows beside it.
            let mut hasher = DefaultHasher::new();
            key.hash(&mut hasher);
            hasher.finish()
        };
        let hashes = pairs.rows.iter().map(|&row| [hash(&source[row]), hash(&target[row])]);
        Self { hashes: Some(hashes.collect()), ..pairs }
    }

    /// The same of keys that are comparable among these rows alone.
    fn of_equal<K: Hash + Eq>(source: &[K], target: &[K]) -> Self {
        assert_eq!(source.len(), target.len(), "row i belongs to row i");
        let (source, target) = (numbers(source), numbers(target));
        let mut seen = FxHashSet::default();
        let (mut pairs, mut rows) = (Vec::new(), Vec::new());
        for (row, pair) in source.of.iter().copied().zip(target.of.iter().copied()).enumerate() {
            if seen.insert(pair) {
                pairs.push(pair);
                rows.push(row);
            }
        }
        let (all, used) = (source.of.len(), pairs.len());
        let counts = RowCounts { rows: all, repeated: all - used, too_long: 0, used };
        Self {
            candidates: [source.first, target.first],
            pairs,
            rows,
            of_rows: [source.of, target.of],
            hashes: None,
            counts,
        }
    }

    /// The same of arrays, where rows are equal if their vectors are, at every layer.
    pub fn of_vectors(source: &Stack, target: &Stack) -> Result<Self> {
        check(source, target)?;
        Ok(Self::of_equal(&row_keys(source)?, &row_keys(target)?))
    }

    /// One layer of a side: the vectors of its candidates.
    fn candidates(&self, matrix: Matrix, side: usize) -> Matrix {
        select(matrix, &self.candidates[side])
    }
}

/// The rows in this order; the matrix itself, where these are all.
fn select(matrix: Matrix, rows: &[usize]) -> Matrix {
    match rows.len() == matrix.rows() {
        true => matrix,
        false => matrix.select(rows.iter().copied()),
    }
}

struct NumberedRows {
    /// The number of each row.
    of: Vec<u32>,
    /// The first row of each number.
    first: Vec<usize>,
}

fn numbers<K: Hash + Eq>(keys: &[K]) -> NumberedRows {
    let mut known: FxHashMap<&K, u32> = FxHashMap::default();
    let (mut of, mut first) = (Vec::new(), Vec::new());
    for (row, key) in keys.iter().enumerate() {
        let number = *known.entry(key).or_insert_with(|| {
            first.push(row);
            first.len() as u32 - 1
        });
        of.push(number);
    }
    NumberedRows { of, first }
}

/// What a row holds over all layers: a hash, and a digest where another row has the same hash.
type RowKey = (u64, Option<blake3::Hash>);

/// Values at the beginning of a row that nearly always tell it from all others: one line of a cache.
const TELLING: usize = 16;

/// Keys of all rows, equal where their vectors are. A hash of the first values tells nearly all rows apart without reading
/// the rest; of those that it does not, one of all values, and of those that are then left a digest.
fn row_keys(stack: &Stack) -> Result<Vec<RowKey>> {
    let mut keys: Vec<RowKey> = vec![(0, None); stack.rows()];
    let mut alike: Vec<usize> = (0..stack.rows()).collect();
    for values in [TELLING, usize::MAX] {
        let hashers = vec![FxHasher::default(); alike.len()];
        let hashers = over_layers(stack, &alike, hashers, |hasher, row| {
            hasher.write(bytemuck::cast_slice(&row[..row.len().min(values)]));
        })?;
        // What came before stays in the hash: rows that it told apart must not meet again.
        alike.iter().zip(&hashers).for_each(|(&row, hasher)| {
            let mut hash = hasher.clone();
            hash.write_u64(keys[row].0);
            keys[row].0 = hash.finish();
        });
        let mut rows_of: FxHashMap<u64, u32> = FxHashMap::default();
        keys.iter().for_each(|(hash, _)| *rows_of.entry(*hash).or_default() += 1);
        alike = (0..stack.rows()).filter(|&row| rows_of[&keys[row].0] > 1).collect();
    }
    let hashers = vec![blake3::Hasher::new(); alike.len()];
    let hashers = over_layers(stack, &alike, hashers, |hasher, row| {
        hasher.update(bytemuck::cast_slice(row));
    })?;
    alike.iter().zip(&hashers).for_each(|(&row, hash)| keys[row].1 = Some(hash.finalize()));
    Ok(keys)
}

/// Gives each hasher its row, layer after layer.
fn over_layers<H: Send>(
    stack: &Stack,
    rows: &[usize],
    mut hashers: Vec<H>,
    add: impl Fn(&mut H, &[f32]) + Sync,
) -> Result<Vec<H>> {
    let layers = if rows.is_empty() { 0 } else { stack.layers() };
    for layer in 0..layers {
        let (values, dim) = (stack.unchecked(layer, 0..stack.rows())?, stack.dim(layer));
        hashers.par_iter_mut().zip(rows).with_min_len(64).for_each(|(hasher, row)| {
            add(hasher, &values[row * dim..(row + 1) * dim]);
        });
    }
    Ok(hashers)
}

/// What tells the rows of a stack from those of any other: digests of their vectors at the last layer. At the first, vectors of
/// `[CLS]` are the same in all sentences.
pub(crate) fn row_digests(stack: &Stack) -> Result<Vec<blake3::Hash>> {
    let last = stack.layers() - 1;
    let (values, dim) = (stack.unchecked(last, 0..stack.rows())?, stack.dim(last));
    let rows = values.par_chunks_exact(dim).with_min_len(64);
    Ok(rows.map(|row| blake3::hash(bytemuck::cast_slice(row))).collect())
}

/// How many rows of two arrays equal an earlier row on both sides.
pub fn repeated_rows(source: &Stack, target: &Stack) -> Result<usize> {
    Ok(RowPairs::of_equal(&row_keys(source)?, &row_keys(target)?).counts.repeated)
}

/// Vectors of translations: two sides, and which of their rows belong together.
#[derive(Clone, Copy)]
pub struct TranslatedRows<'a> {
    /// Vectors of one side: layers of rows x dim.
    pub source: &'a Stack,
    /// Vectors of the other.
    pub target: &'a Stack,
    /// Which rows belong together.
    pub pairs: &'a RowPairs,
}

impl TranslatedRows<'_> {
    /// How many of its pairs are among other pairs, and how many have a source or a target that some other pair has: by their
    /// sentences where both have some, else by their vectors.
    fn overlap(&self, other: &Self) -> Result<(usize, [usize; 2])> {
        if let (Some(own), Some(others)) = (&self.pairs.hashes, &other.pairs.hashes) {
            return Ok(shared(own, others));
        }
        Ok(shared(&self.digests()?, &other.digests()?))
    }

    /// What tells each pair from any other by its vectors.
    fn digests(&self) -> Result<Vec<[blake3::Hash; 2]>> {
        let (source, target) = (row_digests(self.source)?, row_digests(self.target)?);
        Ok(self.pairs.rows.iter().map(|&row| [source[row], target[row]]).collect())
    }
}

/// How many pairs are among others, and how many have a side that some other pair has.
fn shared<K: Hash + Eq>(own: &[[K; 2]], others: &[[K; 2]]) -> (usize, [usize; 2]) {
    let pairs: FxHashSet<&[K; 2]> = others.iter().collect();
    let of_side = |side: usize| {
        let known: FxHashSet<&K> = others.iter().map(|pair| &pair[side]).collect();
        own.iter().filter(|pair| known.contains(&pair[side])).count()
    };
    (own.iter().filter(|pair| pairs.contains(pair)).count(), [of_side(0), of_side(1)])
}

/// How translations are searched.
#[derive(Clone, Debug)]
pub struct RetrievalSearch {
    /// How two sentences are scored.
    pub measure: Measure,
    /// What is done to both sides before the map is learned and applied.
    pub steps: Vec<Step>,
    /// Where large searches run.
    pub device: Device,
    /// Of each sentence, so many of the nearest are kept, to be looked through.
    pub keep: usize,
}

/// A retrieval: its scores, and what can be saved of it.
#[derive(Debug)]
pub struct RetrievalOutput {
    /// The scores.
    pub result: RetrievalResult,
    /// Each layer's map, where maps were learned.
    pub maps: Vec<Map>,
    /// The nearest of every sentence at each layer and in each space, where they were to be kept.
    pub kept: Vec<KeptNeighbours>,
}

/// The nearest of every sentence, in one space of one layer.
#[derive(Debug)]
pub struct KeptNeighbours {
    layer: usize,
    space: RetrievalSpace,
    /// From the source side to the target side, and back.
    directions: [Neighbours; 2],
}

impl KeptNeighbours {
    /// The layer; 0 is the embeddings.
    pub fn layer(&self) -> usize {
        self.layer
    }

    /// What was done to the vectors.
    pub fn space(&self) -> RetrievalSpace {
        self.space
    }

    /// The nearest rows of the other side of every row of a side (0 is the source), best first, with their scores: rows x kept
    /// each. Of equal rows the first stands for all.
    pub fn of_side(&self, pairs: &RowPairs, side: usize) -> (Vec<u32>, Vec<f32>) {
        let (nearest, there) = (&self.directions[side], &pairs.candidates[1 - side]);
        let (mut rows, mut scores) = (Vec::new(), Vec::new());
        for &candidate in &pairs.of_rows[side] {
            let candidate = candidate as usize;
            rows.extend(nearest.ids(candidate).iter().map(|&id| there[id as usize] as u32));
            scores.extend_from_slice(nearest.scores(candidate));
        }
        (rows, scores)
    }

    /// What was found for every pair, in both directions; `name` gives the sentence of a row of a side (0 is
    /// the source).
    pub fn predictions<'a>(
        &'a self,
        pairs: &'a RowPairs,
        name: &'a dyn Fn(usize, usize) -> String,
    ) -> impl Iterator<Item = Prediction> + 'a {
        let ways = [(0, RetrievalDirection::Forward), (1, RetrievalDirection::Backward)];
        ways.into_iter().flat_map(move |(side, direction)| {
            let name = move |side: usize, candidate: u32| {
                name(side, pairs.candidates[side][candidate as usize])
            };
            pairs.pairs.iter().map(move |&(a, b)| {
                let (query, gold) = if side == 0 { (a, b) } else { (b, a) };
                let nearest = &self.directions[side];
                let found = nearest.ids(query as usize).iter().zip(nearest.scores(query as usize));
                let asked = Prediction {
                    layer: Some(self.layer),
                    space: self.space,
                    direction,
                    query: name(side, query),
                    gold: vec![name(1 - side, gold)],
                    rank: None,
                    neighbors: Vec::new(),
                };
                asked.with(found.map(|(&id, &score)| (name(1 - side, id), score, id == gold)))
            })
        })
    }
}

/// Retrieves the translation of every row at every layer. `train` are other translations, to learn a map
/// from.
pub fn retrieve(
    test: TranslatedRows<'_>,
    train: Option<TranslatedRows<'_>>,
    search: &RetrievalSearch,
) -> Result<RetrievalOutput> {
    let TranslatedRows { source, target, pairs } = test;
    check(source, target)?;
    if let Some(train) = train {
        check(train.source, train.target)?;
        check_layers(source, train.source)?;
    }
    let (mut maps, mut kept) = (Vec::new(), Vec::new());
    let retrieve = |layer: usize| {
        let (number, name) = source.layer_number(layer);
        let mut found = |space: RetrievalSpace, source: Matrix, target: Matrix| {
            let directions = nearest(source, target, search);
            let accuracy = share_of_pairs(&pairs.pairs, &directions, Ties::LowerRow);
            if search.keep > 0 {
                kept.push(KeptNeighbours { layer: number, space, directions });
            }
            accuracy
        };
        let x = pairs.candidates(checked(source, layer)?, 0);
        let y = pairs.candidates(checked(target, layer)?, 1);
        let map = train.map(|train| learn(train, layer, &search.steps)).transpose()?;
        let aligned = map.as_ref().map(|map| {
            let (mut x, mut y) = (x.clone(), y.clone());
            normalize(&mut x, &search.steps);
            normalize(&mut y, &search.steps);
            found(RetrievalSpace::Aligned, map.apply(&x), y)
        });
        let (mut centered_x, mut centered_y) = (x.clone(), y.clone());
        normalize(&mut centered_x, &[Step::Center]);
        normalize(&mut centered_y, &[Step::Center]);
        let centered = found(RetrievalSpace::Centered, centered_x, centered_y);
        let raw = found(RetrievalSpace::Raw, x, y);
        maps.extend(map);
        Ok(LayerRetrieval { layer: number, name, raw, centered, aligned })
    };
    let layers = (0..source.layers()).map(retrieve).collect::<Result<_>>()?;
    let candidates = [0, 1].map(|side: usize| pairs.candidates[side].len());
    let overlap = train.map(|train| test.overlap(&train)).transpose()?;
    let result = RetrievalResult {
        counts: pairs.counts,
        candidates,
        chance: candidates.iter().map(|&count| 0.5 / count as f64).sum(),
        train: train.map(|train| train.pairs.counts),
        train_overlap: overlap.map(|(pairs, _)| pairs),
        train_overlap_sides: overlap.map(|(_, sides)| sides),
        layers,
        signature: signature(search, train.is_some()),
    };
    Ok(RetrievalOutput { result, maps, kept })
}

/// The nearest of both sides: as many as are kept, and one at least.
fn nearest(source: Matrix, target: Matrix, search: &RetrievalSearch) -> [Neighbours; 2] {
    let scores = Scores::new(source, target, search.measure, &search.device, &unwatched);
    scores.both_ways(search.keep.max(1), &unwatched).into()
}

/// Names every convention that a number depends on.
fn signature(search: &RetrievalSearch, aligned: bool) -> String {
    let map = match aligned {
        true => format!("procrustes,norm:{},each-set-by-itself", describe(&search.steps)),
        false => "none".to_owned(),
    };
    format!(
        "retrieval:{}|centered:own-mean|map:{map}|equal:one-candidate|ties:lower-row|v{}",
        search.measure.describe(),
        env!("CARGO_PKG_VERSION"),
    )
}

/// The map of a layer from pairs of rows, each pair once.
fn learn(train: TranslatedRows<'_>, layer: usize, steps: &[Step]) -> Result<Map> {
    let mut source = select(train.source.whole(layer)?, &train.pairs.rows);
    let mut target = select(train.target.whole(layer)?, &train.pairs.rows);
    normalize(&mut source, steps);
    normalize(&mut target, steps);
    Ok(Map::procrustes(&source, &target))
}

/// A layer without zero rows, which no cosine is defined for.
pub(crate) fn checked(stack: &Stack, layer: usize) -> Result<Matrix> {
    let matrix = stack.whole(layer)?;
    let name = |row: usize| format!("layer {}, row {row}", stack.layer_name(layer));
    matrix.check(stack.name(), name)?;
    Ok(matrix)
}

fn check(a: &Stack, b: &Stack) -> Result<()> {
    if a.rows() != b.rows() {
        let reason = format!("has {} rows, {} has {}", b.rows(), a.name(), a.rows());
        let remedy = "give translations of one another, line by line";
        return Err(Error::input(b.name(), reason, remedy));
    }
    check_layers(a, b)
}

pub(crate) fn check_layers(a: &Stack, b: &Stack) -> Result<()> {
    let shape =
        |stack: &Stack| (0..stack.layers()).map(|layer| stack.dim(layer)).collect::<Vec<_>>();
    if shape(a) == shape(b) {
        return Ok(());
    }
    let describe =
        |stack: &Stack| format!("{} layers of dimension {}", stack.layers(), stack.dim(0));
    let reason = format!("has {}, {} has {}", describe(b), a.name(), describe(a));
    Err(Error::input(b.name(), reason, "give layers that can be compared one by one"))
}

/// What a row counts as whose best score another row reaches too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The lower row is the best match.
    LowerRow,
    /// It has no best match.
    Wrong,
}

/// The retrieval accuracy (P@1) of two sides in both directions: for how many pairs of rows the best
/// match of the one is the other.
pub fn accuracy(
    source: Matrix,
    target: Matrix,
    pairs: &[(u32, u32)],
    measure: Measure,
    ties: Ties,
    device: &Device,
) -> RetrievalAccuracy {
    let scores = Scores::new(source, target, measure, device, &unwatched);
    let nearest = scores.both_ways(if ties == Ties::Wrong { 2 } else { 1 }, &unwatched);
    share_of_pairs(pairs, &nearest.into(), ties)
}

/// For how many pairs of rows the best match of the one is the other.
fn share_of_pairs(
    pairs: &[(u32, u32)],
    [forward, backward]: &[Neighbours; 2],
    ties: Ties,
) -> RetrievalAccuracy {
    let right = |neighbours: &Neighbours, query: u32, gold: u32| {
        let query = query as usize;
        let tied = matches!(neighbours.scores(query), [best, next, ..] if best == next);
        neighbours.ids(query)[0] == gold && !(tied && ties == Ties::Wrong)
    };
    let share = |count: usize| count as f64 / pairs.len().max(1) as f64;
    let there = pairs.iter().filter(|&&(a, b)| right(forward, a, b)).count();
    let back = pairs.iter().filter(|&&(a, b)| right(backward, b, a)).count();
    RetrievalAccuracy::new(share(there), share(back))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, cols: usize, seed: u64) -> Matrix {
        let mut stream = text::RandomStreams::new(seed, "test").stream(0);
        Matrix::new(rows, cols, (0..rows * cols).map(|_| stream.unit() as f32 - 0.5).collect())
    }

    fn plain() -> RetrievalSearch {
        let device = Device::cpu(1).unwrap();
        RetrievalSearch { measure: Measure::Cosine, steps: vec![], device, keep: 0 }
    }

    fn by_row(rows: usize) -> RowPairs {
        let keys: Vec<usize> = (0..rows).collect();
        RowPairs::of_keys(&keys, &keys)
    }

    /// A text against itself in which every sentence stands three times, as XNLI's premises do: every
    /// row is right, and there are as many candidates and pairs as different sentences.
    #[test]
    fn equal_sentences_are_one_candidate() {
        let once = numbers(40, 5, 3);
        let thrice = once.select((0..120).map(|row| row / 3));
        let keys: Vec<usize> = (0..120).map(|row| row / 3).collect();
        let stack = Stack::of("xnli", vec![thrice]);
        let of_keys = RowPairs::of_keys(&keys, &keys);
        let of_vectors = RowPairs::of_vectors(&stack, &stack).unwrap();
        assert_eq!(RowPairs { hashes: None, ..of_keys.clone() }, of_vectors);
        let test = TranslatedRows { source: &stack, target: &stack, pairs: &of_keys };
        for measure in [Measure::Cosine, Measure::Csls { k: 5 }] {
            let search = RetrievalSearch { measure, ..plain() };
            let found = retrieve(test, Some(test), &search).unwrap().result;
            let counts = RowCounts { rows: 120, repeated: 80, too_long: 0, used: 40 };
            assert_eq!((found.counts, found.train), (counts, Some(counts)));
            assert_eq!((found.candidates, found.chance), ([40, 40], 1.0 / 40.0));
            let layer = &found.layers[0];
            for accuracy in [layer.raw, layer.centered, layer.aligned.unwrap()] {
                assert_eq!((accuracy.forward, accuracy.backward), (1.0, 1.0), "{layer:?}");
            }
            // What is left is what the sentences give by themselves.
            let alone = Stack::of("once", vec![once.clone()]);
            let (pairs, source, target) = (&by_row(40), &alone, &alone);
            let one = TranslatedRows { source, target, pairs };
            assert_eq!(retrieve(one, Some(one), &search).unwrap().result.layers, found.layers);
        }
    }

    /// Pairs that the maps were learned from are counted, by sentences and by vectors; a sentence with another translation is
    /// another pair.
    #[test]
    fn pairs_of_training_and_test_are_counted() {
        let all = [numbers(50, 4, 1), numbers(50, 4, 2)];
        let stacks = |rows: std::ops::Range<usize>| {
            [0, 1].map(|side: usize| Stack::of("s", vec![all[side].select(rows.clone())]))
        };
        let overlap = |test: std::ops::Range<usize>, train: std::ops::Range<usize>, text: bool| {
            let pairs = |rows: std::ops::Range<usize>, [source, target]: &[Stack; 2]| {
                let keys: Vec<usize> = rows.collect();
                match text {
                    true => RowPairs::of_keys(&keys, &keys),
                    false => RowPairs::of_vectors(source, target).unwrap(),
                }
            };
            let (own, other) = (stacks(test.clone()), stacks(train.clone()));
            let (own_pairs, other_pairs) = (pairs(test, &own), pairs(train, &other));
            let test = TranslatedRows { source: &own[0], target: &own[1], pairs: &own_pairs };
            let train =
                TranslatedRows { source: &other[0], target: &other[1], pairs: &other_pairs };
            retrieve(test, Some(train), &plain()).unwrap().result.train_overlap
        };
        for text in [true, false] {
            assert_eq!(overlap(0..20, 20..50, text), Some(0));
            assert_eq!(overlap(0..20, 15..50, text), Some(5));
            assert_eq!(overlap(0..20, 0..50, text), Some(20));
        }
        let of = |target: &[&'static str]| RowPairs::of_keys(&["a", "b"], target);
        let [test, train] = [of(&["x", "y"]), of(&["x", "z"])];
        let sides = stacks(0..2);
        let rows = |pairs| TranslatedRows { source: &sides[0], target: &sides[1], pairs };
        // `b` was learned from with another translation, which is no pair of the test.
        assert_eq!(rows(&test).overlap(&rows(&train)).unwrap(), (1, [2, 1]));
    }

    /// Worked by hand: two sentences have one translation, and one sentence has two.
    #[test]
    fn a_sentence_that_translates_two_is_right_for_both() {
        let source = Matrix::new(4, 2, vec![1.0, 0.0, 0.9, 0.1, 0.0, 1.0, 0.0, 1.0]);
        let target = Matrix::new(4, 2, vec![1.0, 0.05, 1.0, 0.05, 0.1, 1.0, 0.5, 1.0]);
        let pairs = RowPairs::of_keys(&["a", "b", "c", "c"], &["x", "x", "y", "z"]);
        let (source, target) = (Stack::of("s", vec![source]), Stack::of("t", vec![target]));
        let test = TranslatedRows { source: &source, target: &target, pairs: &pairs };
        let search = RetrievalSearch { keep: 2, ..plain() };
        let RetrievalOutput { result: found, kept, .. } = retrieve(test, None, &search).unwrap();
        assert_eq!((found.counts.used, found.candidates), (4, [3, 3]));
        // a and b find x; c finds y, which is right for one of its rows. Back: x finds a, which is right
        // for one of its rows; y and z find c.
        assert_eq!((found.layers[0].raw.forward, found.layers[0].raw.backward), (0.75, 0.75));
        // The same, query by query.
        let raw = kept.iter().find(|kept| kept.space == RetrievalSpace::Raw).unwrap();
        let texts = [["a", "b", "c", "c"], ["x", "x", "y", "z"]];
        let name = |side: usize, row: usize| texts[side][row].to_owned();
        let predictions: Vec<Prediction> = raw.predictions(&pairs, &name).collect();
        let asked = |at: usize| {
            let Prediction { query, gold, rank, neighbors, .. } = &predictions[at];
            let found: Vec<&str> = neighbors.iter().map(|one| one.text.as_str()).collect();
            (query.as_str(), gold[0].as_str(), *rank, found)
        };
        assert_eq!(predictions.len(), 8);
        assert_eq!(asked(1), ("b", "x", Some(1), vec!["x", "z"]));
        assert_eq!(asked(2), ("c", "y", Some(1), vec!["y", "z"]));
        assert_eq!(asked(3), ("c", "z", Some(2), vec!["y", "z"]));
        assert_eq!(asked(5), ("x", "b", Some(2), vec!["a", "b"]));
        assert_eq!(predictions[5].direction, RetrievalDirection::Backward);
    }

    /// The second side is the first, rotated and moved: cosine finds little, centring does not undo
    /// the rotation, a map does.
    #[test]
    fn a_map_undoes_what_centring_cannot() {
        let rotation = Map::procrustes(&numbers(30, 6, 5), &numbers(30, 6, 6));
        let rotated = |matrix: &Matrix| {
            let mut moved = rotation.apply(matrix);
            crate::normalize::subtract(&mut moved, &[3.0; 6]);
            Stack::of("rotated", vec![moved])
        };
        let (test, train) = (numbers(200, 6, 1), numbers(300, 6, 2));
        let search = RetrievalSearch { steps: vec![Step::Center], ..plain() };
        let sides = (Stack::of("test", vec![test.clone()]), rotated(&test));
        let learned = (Stack::of("train", vec![train.clone()]), rotated(&train));
        let (pairs, train_pairs) = (by_row(200), by_row(300));
        let test = TranslatedRows { source: &sides.0, target: &sides.1, pairs: &pairs };
        let train = TranslatedRows { source: &learned.0, target: &learned.1, pairs: &train_pairs };
        let RetrievalOutput { mut result, maps, .. } =
            retrieve(test, Some(train), &search).unwrap();
        let found = result.layers.remove(0);
        assert!(found.raw.mean < 0.1 && found.centered.mean < 0.2, "{found:?}");
        assert!(found.aligned.unwrap().mean > 0.99, "{found:?}");
        for (a, b) in maps[0].values().iter().zip(rotation.values()) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn sides_that_do_not_belong_together_are_refused() {
        let stack = |rows, dim| Stack::of("s", vec![numbers(rows, dim, 1)]);
        let search = plain();
        let refused = |source: &Stack, target: &Stack| {
            let pairs = by_row(source.rows());
            let test = TranslatedRows { source, target, pairs: &pairs };
            retrieve(test, None, &search).unwrap_err().to_string()
        };
        assert!(refused(&stack(5, 3), &stack(4, 3)).contains("has 4 rows, s has 5"));
        assert!(refused(&stack(5, 3), &stack(5, 2)).contains("dimension 2"));
        let zero = Stack::of("z", vec![Matrix::new(2, 1, vec![1.0, 0.0])]);
        assert!(refused(&zero, &zero).contains("z: layer 0, row 1: is a vector of zeros"));
    }
}
