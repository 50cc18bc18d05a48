//! Retrieval of translations among sentences: raw, mean-centred, and after Procrustes alignment learned
//! from other pairs.

use arrays::{Matrix, Stack};
use serde::{Deserialize, Serialize};
use tensor::Device;

use crate::error::{Error, Result};
use crate::map::Map;
use crate::normalize::{Step, describe, normalize};
use crate::search::{Measure, Neighbours, Scores, unwatched};

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
    /// Sentences to choose from.
    pub sentences: usize,
    /// The accuracy of random choice.
    pub chance: f64,
    /// Pairs that the maps were learned from.
    pub train_pairs: Option<usize>,
    /// Sentences that were too long for the model and truncated.
    pub truncated: usize,
    /// The accuracy at each layer.
    pub layers: Vec<LayerRetrieval>,
    /// Names every convention that a number depends on.
    pub signature: String,
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
}

/// Retrieves the translation of every row at every layer. Row i of one side belongs to row i of the
/// other; `train` are other such pairs, to learn a map from, and each layer's map comes with the result.
pub fn retrieve(
    source: &Stack,
    target: &Stack,
    train: Option<(&Stack, &Stack)>,
    search: &RetrievalSearch,
) -> Result<(RetrievalResult, Vec<Map>)> {
    check(source, target)?;
    if let Some((a, b)) = train {
        check(a, b)?;
        check_layers(source, a)?;
    }
    let mut maps = Vec::new();
    let retrieve = |layer: usize| {
        let (x, y) = (checked(source, layer)?, checked(target, layer)?);
        let map = match train {
            None => None,
            Some((a, b)) => Some(learn(a.whole(layer)?, b.whole(layer)?, &search.steps)),
        };
        let aligned = map.as_ref().map(|map| {
            let (mut x, mut y) = (x.clone(), y.clone());
            normalize(&mut x, &search.steps);
            normalize(&mut y, &search.steps);
            found(map.apply(&x), y, search)
        });
        let (mut centered_x, mut centered_y) = (x.clone(), y.clone());
        normalize(&mut centered_x, &[Step::Center]);
        normalize(&mut centered_y, &[Step::Center]);
        let centered = found(centered_x, centered_y, search);
        let raw = found(x, y, search);
        maps.extend(map);
        let name = source.layer_name(layer);
        let (layer, name) = match name.parse() {
            Ok(number) => (number, None),
            Err(_) => (layer, Some(name.to_owned())),
        };
        Ok(LayerRetrieval { layer, name, raw, centered, aligned })
    };
    let layers = (0..source.layers()).map(retrieve).collect::<Result<_>>()?;
    let result = RetrievalResult {
        sentences: source.rows(),
        chance: 1.0 / source.rows() as f64,
        train_pairs: train.map(|(a, _)| a.rows()),
        truncated: 0,
        layers,
        signature: signature(search, train.is_some()),
    };
    Ok((result, maps))
}

/// Names every convention that a number depends on.
fn signature(search: &RetrievalSearch, aligned: bool) -> String {
    let map = match aligned {
        true => format!("procrustes,norm:{},each-set-by-itself", describe(&search.steps)),
        false => "none".to_owned(),
    };
    format!(
        "retrieval:{}|centered:own-mean|map:{map}|ties:lower-row|v{}",
        search.measure.describe(),
        env!("CARGO_PKG_VERSION"),
    )
}

fn learn(mut source: Matrix, mut target: Matrix, steps: &[Step]) -> Map {
    normalize(&mut source, steps);
    normalize(&mut target, steps);
    Map::procrustes(&source, &target)
}

/// A layer without zero rows, which no cosine is defined for.
fn checked(stack: &Stack, layer: usize) -> Result<Matrix> {
    let matrix = stack.whole(layer)?;
    let name = |row: usize| format!("layer {}, row {}", stack.layer_name(layer), row + 1);
    matrix.check(stack.name(), name)?;
    Ok(matrix)
}

/// Refuses sides that do not belong together.
fn check(a: &Stack, b: &Stack) -> Result<()> {
    if a.rows() != b.rows() {
        let reason = format!("has {} rows, {} has {}", b.rows(), a.name(), a.rows());
        let remedy = "give translations of one another, line by line";
        return Err(Error::input(b.name(), reason, remedy));
    }
    check_layers(a, b)
}

fn check_layers(a: &Stack, b: &Stack) -> Result<()> {
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

/// The retrieval accuracy (P@1) of two sides in both directions: how often the best match of row i is
/// row i.
pub fn accuracy(
    source: Matrix,
    target: Matrix,
    measure: Measure,
    ties: Ties,
    device: &Device,
) -> RetrievalAccuracy {
    let scores = Scores::new(source, target, measure, device, &unwatched);
    let (forward, backward) = scores.both_ways(if ties == Ties::Wrong { 2 } else { 1 }, &unwatched);
    let share = |neighbours: &Neighbours| {
        let right = |&row: &usize| {
            let tied = matches!(neighbours.scores(row), [best, next] if best == next);
            neighbours.ids(row)[0] as usize == row && !tied
        };
        (0..neighbours.rows()).filter(right).count() as f64 / neighbours.rows().max(1) as f64
    };
    RetrievalAccuracy::new(share(&forward), share(&backward))
}

fn found(source: Matrix, target: Matrix, search: &RetrievalSearch) -> RetrievalAccuracy {
    accuracy(source, target, search.measure, Ties::LowerRow, &search.device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, cols: usize, seed: u64) -> Matrix {
        let mut stream = text::RandomStreams::new(seed, "test").stream(0);
        Matrix::new(rows, cols, (0..rows * cols).map(|_| stream.unit() as f32 - 0.5).collect())
    }

    fn plain() -> RetrievalSearch {
        RetrievalSearch { measure: Measure::Cosine, steps: vec![], device: Device::cpu(1).unwrap() }
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
        let train = Some((&learned.0, &learned.1));
        let (mut found, maps) = retrieve(&sides.0, &sides.1, train, &search).unwrap();
        let found = found.layers.remove(0);
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
        let refused = |a: &Stack, b: &Stack| retrieve(a, b, None, &search).unwrap_err().to_string();
        assert!(refused(&stack(5, 3), &stack(4, 3)).contains("has 4 rows, s has 5"));
        assert!(refused(&stack(5, 3), &stack(5, 2)).contains("dimension 2"));
        let zero = Stack::of("z", vec![Matrix::new(2, 1, vec![1.0, 0.0])]);
        assert!(refused(&zero, &zero).contains("z: layer 0, row 2: is a vector of zeros"));
    }
}
