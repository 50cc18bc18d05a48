//! A label for each vector: dropout and one linear map, BERT's head for tagging and classification (Devlin et
//! al. 2019) without its pooler.

use tensor::{Activation, Affine, Indices, Params, Tape, Tensor, Var};

use super::{Head, HeadWeights, argmax};
use crate::labelled::{Annotation, Example};
use crate::registry::HeadShape;

/// A linear classifier.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    /// dim x labels.
    output: Affine,
    labels: usize,
    dropout: f32,
}

impl Classifier {
    /// Adds the weights of a classifier.
    pub fn new(params: &mut Params, shape: &HeadShape<'_>) -> Self {
        let mut weights = HeadWeights { params, seed: shape.seed };
        let labels = shape.labels.len();
        let output = weights.affine("classifier", shape.dim, labels, 0.02);
        Self { output, labels, dropout: shape.dropout }
    }

    fn logits(&self, tape: &mut Tape<'_>, vectors: Var) -> Var {
        let vectors = tape.drop(vectors, self.dropout);
        tape.linear(vectors, self.output, Activation::None) // rows x labels
    }
}

impl Head for Classifier {
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor {
        let logits = self.logits(tape, vectors);
        let gold = examples.iter().flat_map(|example| &example.gold);
        let gold: Indices = gold.map(|annotation| annotation.label).collect();
        let widths = std::iter::repeat_n(self.labels as u32, gold.len()).collect();
        let weight = 1.0 / gold.len().max(1) as f32;
        tape.cross_entropy(logits, &widths, &gold, weight)
    }

    fn predict(
        &self,
        tape: &mut Tape<'_>,
        vectors: Var,
        examples: &[&Example],
    ) -> Vec<Vec<Annotation>> {
        let logits = self.logits(tape, vectors);
        let logits = tape.value(logits).to_vec();
        let mut rows = logits.chunks(self.labels);
        let mut next = || Annotation::of_label(rows.next().map_or(0, argmax));
        let each = |example: &&Example| example.positions.iter().map(|_| next()).collect();
        examples.iter().map(each).collect()
    }
}
