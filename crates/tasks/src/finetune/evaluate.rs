//! Predictions for a whole set, and their score.

use tensor::{Device, Indices, Mode, Params, Tape, Var};

use super::sets::LabelledSet;
use super::shift::LayerShift;
use crate::features::{FeatureInput, Features, ShiftedStates};
use crate::heads::Head;
use crate::labelled::{Annotation, Example, LabelSet};
use crate::registry::ScoreResult;

/// Tokens that are evaluated at once on the CPU: enough for large matmuls, few enough for the caches.
const TOKENS: usize = 2048;
/// The same on a GPU, which fewer leave idle between kernels.
const TOKENS_ON_GPU: usize = 16384;

#[derive(Clone, Copy)]
pub(super) struct TaskModel<'a> {
    pub(super) features: &'a dyn Features,
    pub(super) head: &'a dyn Head,
}

impl TaskModel<'_> {
    /// The vectors that the head reads of a batch.
    pub(super) fn vectors(
        &self,
        tape: &mut Tape<'_>,
        language: usize,
        examples: &[&Example],
    ) -> Var {
        self.features.vectors(tape, &ExampleBatch::new(language, examples).input(None))
    }

    /// The predictions for every item of a set. Inputs of like length are read together.
    fn predictions(
        &self,
        params: &mut Params,
        set: &LabelledSet,
        labels: &LabelSet,
    ) -> Vec<Vec<Annotation>> {
        let mut predictions: Vec<Vec<Annotation>> = vec![Vec::new(); set.examples.len()];
        for batch in batches(&set.examples, params.device()) {
            let examples: Vec<&Example> = batch.iter().map(|&at| &set.examples[at]).collect();
            let input = ExampleBatch::new(set.language, &examples);
            let predicted = self.predict(params, &input.input(None), &examples);
            batch.iter().zip(predicted).for_each(|(&at, one)| predictions[at] = one);
        }
        set.join(labels, &predictions)
    }

    /// The predictions for every item of a set at each weight of a shift. What lies below the shifted
    /// layer is computed once; a weight of 0 is the model without a shift.
    pub(super) fn shifted_predictions(
        &self,
        params: &mut Params,
        set: &LabelledSet,
        labels: &LabelSet,
        shift: &LayerShift,
        alphas: &[f64],
    ) -> Vec<Vec<Vec<Annotation>>> {
        let LayerShift { layer, shifter } = shift;
        let mut predictions = vec![vec![Vec::new(); set.examples.len()]; alphas.len()];
        for batch in batches(&set.examples, params.device()) {
            let examples: Vec<&Example> = batch.iter().map(|&at| &set.examples[at]).collect();
            let input = ExampleBatch::new(set.language, &examples);
            let mut tape = Tape::new(params, Mode::Evaluate);
            let below = self.features.states(&mut tape, &input.input(None), *layer);
            drop(tape);
            let ids = input.sequences.concat();
            let (table, classes) = shifter.additions(params.device(), &below, &ids);
            for (&alpha, predictions) in alphas.iter().zip(&mut predictions) {
                let shifted = ShiftedStates {
                    layer: *layer,
                    states: &below,
                    table: &table,
                    classes: &classes,
                    alpha: alpha as f32,
                };
                let start = (alpha != 0.0).then_some(shifted);
                let predicted = self.predict(params, &input.input(start), &examples);
                batch.iter().zip(predicted).for_each(|(&at, one)| predictions[at] = one);
            }
        }
        predictions.iter().map(|predictions| set.join(labels, predictions)).collect()
    }

    fn predict(
        &self,
        params: &mut Params,
        input: &FeatureInput<'_>,
        examples: &[&Example],
    ) -> Vec<Vec<Annotation>> {
        let mut tape = Tape::new(params, Mode::Evaluate);
        let vectors = self.features.vectors(&mut tape, input);
        self.head.predict(&mut tape, vectors, examples)
    }

    /// The predictions for a set, and their score.
    pub(super) fn evaluate(
        &self,
        params: &mut Params,
        set: &LabelledSet,
        labels: &LabelSet,
    ) -> (Vec<Vec<Annotation>>, ScoreResult) {
        let device = params.device().clone();
        let predictions = device.run(|| self.predictions(params, set, labels));
        let score = set.labelled.score(labels, &predictions);
        (predictions, score)
    }
}

/// Examples laid one after another, as the features read them.
struct ExampleBatch<'a> {
    language: usize,
    sequences: Vec<&'a [u32]>,
    /// The rows that are read, counted over all sequences.
    rows: Indices,
}

impl<'a> ExampleBatch<'a> {
    fn new(language: usize, examples: &[&'a Example]) -> Self {
        let sequences = examples.iter().map(|example| example.tokens.as_slice()).collect();
        let mut start = 0;
        let mut rows = Vec::new();
        for example in examples {
            rows.extend(example.positions.iter().map(|position| start + position));
            start += example.tokens.len() as u32;
        }
        Self { language, sequences, rows: rows.into() }
    }

    fn input<'b>(&'b self, start: Option<ShiftedStates<'b>>) -> FeatureInput<'b> {
        let Self { language, sequences, rows } = self;
        FeatureInput { language: *language, sequences, rows: rows.clone(), start }
    }
}

/// Cuts examples into batches of like length.
fn batches(examples: &[Example], device: &Device) -> Vec<Vec<usize>> {
    let most = if device.is_gpu() { TOKENS_ON_GPU } else { TOKENS };
    let mut order: Vec<usize> = (0..examples.len()).collect();
    order.sort_by_key(|&at| examples[at].tokens.len());
    let (mut rest, mut batches) = (order.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(fitting(examples, rest, most));
        batches.push(batch.to_vec());
        rest = others;
    }
    batches
}

/// How many of the next examples fit into a batch of so many tokens: at least one.
fn fitting(examples: &[Example], order: &[usize], most: usize) -> usize {
    let mut tokens = 0;
    let fits = order.iter().take_while(|&&at| {
        tokens += examples[at].tokens.len();
        tokens <= most
    });
    fits.count().max(1)
}
