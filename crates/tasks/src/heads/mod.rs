//! What predicts from vectors.

mod classifier;
mod parser;

use tensor::random::{Draws, Key};
use tensor::{Affine, ParamId, Params, Spans, Tape, Tensor, Var};

pub use self::classifier::Classifier;
pub use self::parser::{Parser, ParserSizes};

use crate::labelled::{Annotation, Example};

/// A task's own layers above the features.
pub trait Head: Sync {
    /// The loss of a batch, given the vectors at the examples' positions: rows x dim. The result is 1 x 2:
    /// the sum of the losses, and how many predictions were correct. When training, gradients of the mean
    /// loss go onto the tape.
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor;

    /// The predictions for each example of a batch.
    fn predict(
        &self,
        tape: &mut Tape<'_>,
        vectors: Var,
        examples: &[&Example],
    ) -> Vec<Vec<Annotation>>;
}

/// Which rows of the vectors belong to each example.
fn spans(examples: &[&Example]) -> Spans {
    Spans::of_lengths(examples.iter().map(|example| example.positions.len()))
}

/// Adds the weights of a head, each drawn from the stream of its own name.
struct HeadWeights<'a> {
    params: &'a mut Params,
    seed: u64,
}

impl HeadWeights<'_> {
    fn weight(&mut self, name: &str, rows: usize, cols: usize, deviation: f32) -> ParamId {
        let name = format!("task.{name}");
        let mut draws = Draws::new(Key::named(self.seed, &name));
        let elements: Vec<f32> = (0..rows * cols).map(|_| deviation * draws.normal()).collect();
        let value = self.params.device().tensor(rows, cols, &elements);
        self.params.add(name, value)
    }

    /// An affine map whose bias starts at 0.
    fn affine(&mut self, name: &str, inputs: usize, outputs: usize, deviation: f32) -> Affine {
        let weight = self.weight(&format!("{name}.weight"), inputs, outputs, deviation);
        let bias = self.weight(&format!("{name}.bias"), 1, outputs, 0.0);
        Affine { weight, bias: Some(bias) }
    }
}

/// The index of the highest score; the first of several.
fn argmax(scores: &[f32]) -> u32 {
    let better = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
    (0..scores.len()).reduce(better).unwrap_or(0) as u32
}
