//! A label for each vector: one linear map, for tags of words and for pairs of sentences.

use tensor::{Activation, Affine, Indices, Params, Tape, Tensor, Var};

use super::{Head, Maker, highest};
use crate::labelled::{Answer, Example};

/// A linear classifier over dropped-out vectors.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    output: Affine,
    classes: usize,
    dropout: f32,
}

impl Classifier {
    /// Adds the weights of a classifier of vectors of this width into so many classes.
    pub fn new(params: &mut Params, seed: u64, dim: usize, classes: usize, dropout: f32) -> Self {
        let mut maker = Maker { params, seed };
        Self { output: maker.affine("classifier", dim, classes, 0.02), classes, dropout }
    }

    fn scores(&self, tape: &mut Tape<'_>, vectors: Var) -> Var {
        let vectors = tape.drop(vectors, self.dropout);
        tape.linear(vectors, self.output, Activation::None) // rows x classes
    }
}

impl Head for Classifier {
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor {
        let scores = self.scores(tape, vectors);
        let targets: Indices = targets(examples).map(|answer| answer.class).collect();
        let widths = std::iter::repeat_n(self.classes as u32, targets.len()).collect();
        let weight = 1.0 / targets.len().max(1) as f32;
        tape.cross_entropy(scores, &widths, &targets, weight)
    }

    fn answer(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Vec<Vec<Answer>> {
        let scores = self.scores(tape, vectors);
        let scores = tape.value(scores).to_vec();
        let mut rows = scores.chunks(self.classes);
        let mut next = || Answer { class: rows.next().map_or(0, highest), head: 0 };
        let each = |example: &&Example| example.wanted.iter().map(|_| next()).collect();
        examples.iter().map(each).collect()
    }
}

fn targets<'a>(examples: &'a [&Example]) -> impl Iterator<Item = &'a Answer> {
    examples.iter().flat_map(|example| &example.targets)
}
