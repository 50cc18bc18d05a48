//! Translations found among sentences: as the vectors are, after each side's mean was taken away,
//! and after an orthogonal map that was learned from other pairs.

use arrays::{Matrix, Stack};
use serde::Serialize;
use tensor::Device;

use crate::error::{Error, Result};
use crate::map::Map;
use crate::normalize::{Step, normalize};
use crate::search::{Measure, Neighbours, Scores, unwatched};

/// The share of sentences whose best match is their translation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Found {
    /// Targets looked for from the source side.
    pub forward: f64,
    /// Sources looked for from the target side.
    pub backward: f64,
}

impl Found {
    /// The mean of both directions.
    pub fn mean(self) -> f64 {
        (self.forward + self.backward) / 2.0
    }
}

/// What was found at one layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Layer {
    /// The layer.
    pub layer: String,
    /// As the vectors are.
    pub raw: Found,
    /// After the mean of each side was taken away.
    pub shifted: Found,
    /// After a map learned from other pairs, where there are some.
    pub aligned: Option<Found>,
}

/// How translations are looked for.
#[derive(Clone, Debug)]
pub struct Search {
    /// How two sentences are scored.
    pub measure: Measure,
    /// What is done to both sides before the map is learned and applied.
    pub steps: Vec<Step>,
    /// Where large searches are made.
    pub device: Device,
}

/// Looks for the translation of every row at every layer. Row i of one side belongs to row i of the
/// other; `train` are other such pairs, to learn a map from. Hands each layer's map to `keep`.
pub fn retrieve(
    source: &Stack,
    target: &Stack,
    train: Option<(&Stack, &Stack)>,
    search: &Search,
    mut keep: impl FnMut(usize, Map) -> Result<()>,
) -> Result<Vec<Layer>> {
    check(source, target)?;
    if let Some((a, b)) = train {
        check(a, b)?;
        check_layers(source, a)?;
    }
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
        let (mut shifted_x, mut shifted_y) = (x.clone(), y.clone());
        normalize(&mut shifted_x, &[Step::Center]);
        normalize(&mut shifted_y, &[Step::Center]);
        let shifted = found(shifted_x, shifted_y, search);
        let raw = found(x, y, search);
        if let Some(map) = map {
            keep(layer, map)?;
        }
        Ok(Layer { layer: source.layer_name(layer).to_owned(), raw, shifted, aligned })
    };
    (0..source.layers()).map(retrieve).collect()
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
) -> Found {
    let scores = Scores::new(source, target, measure, device, &unwatched);
    let (forward, backward) = scores.both_ways(if ties == Ties::Wrong { 2 } else { 1 }, &unwatched);
    let share = |neighbours: &Neighbours| {
        let right = |&row: &usize| {
            let tied = matches!(neighbours.scores(row), [best, next] if best == next);
            neighbours.ids(row)[0] as usize == row && !tied
        };
        (0..neighbours.rows()).filter(right).count() as f64 / neighbours.rows().max(1) as f64
    };
    Found { forward: share(&forward), backward: share(&backward) }
}

fn found(source: Matrix, target: Matrix, search: &Search) -> Found {
    accuracy(source, target, search.measure, Ties::LowerRow, &search.device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(rows: usize, cols: usize, seed: u64) -> Matrix {
        let mut stream = text::RandomStreams::new(seed, "test").stream(0);
        Matrix::new(rows, cols, (0..rows * cols).map(|_| stream.unit() as f32 - 0.5).collect())
    }

    fn plain() -> Search {
        Search { measure: Measure::Cosine, steps: vec![], device: Device::cpu(1).unwrap() }
    }

    /// The second side is the first, turned and moved: cosine finds little, a shift does not undo
    /// the turn, a map does.
    #[test]
    fn a_map_undoes_what_a_shift_cannot() {
        let turn = Map::procrustes(&numbers(30, 6, 5), &numbers(30, 6, 6));
        let turned = |matrix: &Matrix| {
            let mut turned = turn.apply(matrix);
            crate::normalize::subtract(&mut turned, &[3.0; 6]);
            Stack::of("turned", vec![turned])
        };
        let (test, train) = (numbers(200, 6, 1), numbers(300, 6, 2));
        let search = Search { steps: vec![Step::Center], ..plain() };
        let sides = (Stack::of("test", vec![test.clone()]), turned(&test));
        let learned = (Stack::of("train", vec![train.clone()]), turned(&train));
        let mut maps = Vec::new();
        let keep = |_, map| {
            maps.push(map);
            Ok(())
        };
        let found = retrieve(&sides.0, &sides.1, Some((&learned.0, &learned.1)), &search, keep);
        let found = found.unwrap().remove(0);
        assert!(found.raw.mean() < 0.1 && found.shifted.mean() < 0.2, "{found:?}");
        assert!(found.aligned.unwrap().mean() > 0.99, "{found:?}");
        for (a, b) in maps[0].values().iter().zip(turn.values()) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn sides_that_do_not_belong_together_are_refused() {
        let stack = |rows, dim| Stack::of("s", vec![numbers(rows, dim, 1)]);
        let search = plain();
        let refused = |a: &Stack, b: &Stack| {
            retrieve(a, b, None, &search, |_, _| Ok(())).unwrap_err().to_string()
        };
        assert!(refused(&stack(5, 3), &stack(4, 3)).contains("has 4 rows, s has 5"));
        assert!(refused(&stack(5, 3), &stack(5, 2)).contains("dimension 2"));
        let zero = Stack::of("z", vec![Matrix::new(2, 1, vec![1.0, 0.0])]);
        assert!(refused(&zero, &zero).contains("z: layer 0, row 2: is a vector of zeros"));
    }
}
