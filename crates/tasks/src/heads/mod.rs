//! What turns vectors into answers.

mod classifier;
mod parser;

use tensor::random::{Draws, Key};
use tensor::{Affine, ParamId, Params, Spans, Tape, Tensor, Var};

pub use self::classifier::Classifier;
pub use self::parser::{Parser, ParserSizes};

use crate::labelled::{Answer, Example};

/// A head: trained by the loss of its answers, asked for answers.
pub trait Head: Sync {
    /// The loss of a batch, whose wanted vectors are given. The result is 1 x 2: the sum of the
    /// losses, and how many answers were right. When training, gradients of the mean loss go onto
    /// the tape.
    fn loss(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Tensor;

    /// The answers for each example of a batch.
    fn answer(&self, tape: &mut Tape<'_>, vectors: Var, examples: &[&Example]) -> Vec<Vec<Answer>>;
}

/// Where each example's wanted rows lie.
fn spans(examples: &[&Example]) -> Spans {
    Spans::of_lengths(examples.iter().map(|example| example.wanted.len()))
}

/// Adds the weights of a head: each draws from a stream of its own name.
struct Maker<'a> {
    params: &'a mut Params,
    seed: u64,
}

impl Maker<'_> {
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
        Affine { weight, bias }
    }
}

/// The number of the highest score; the first of several.
fn highest(scores: &[f32]) -> u32 {
    let better = |best: usize, at: usize| if scores[at] > scores[best] { at } else { best };
    (0..scores.len()).reduce(better).unwrap_or(0) as u32
}
