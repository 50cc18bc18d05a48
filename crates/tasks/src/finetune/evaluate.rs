//! Answers for a whole set, and their score.

use tensor::{Indices, Mode, Params, Tape, Var};

use super::sets::Set;
use super::shifted::Shift;
use crate::features::{Features, Input, Midway};
use crate::heads::Head;
use crate::labelled::{Answer, Example, Labels, Score};

/// Tokens that are evaluated at once: enough for large products, few enough for the caches.
const TOKENS: usize = 2048;

/// What reads words, and what answers.
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// Where vectors come from.
    pub features: &'a dyn Features,
    /// What reads them.
    pub head: &'a dyn Head,
}

impl Model<'_> {
    /// The vectors that the head reads of a batch.
    pub(crate) fn vectors(
        &self,
        tape: &mut Tape<'_>,
        language: usize,
        examples: &[&Example],
    ) -> Var {
        self.features.vectors(tape, &Laid::new(language, examples).input(None))
    }

    /// The answers for every item of a set. Inputs of like length are read together.
    pub fn answers(&self, params: &mut Params, set: &Set, labels: &Labels) -> Vec<Vec<Answer>> {
        let mut answers: Vec<Vec<Answer>> = vec![Vec::new(); set.examples.len()];
        for batch in batches(&set.examples) {
            let chosen: Vec<&Example> = batch.iter().map(|&at| &set.examples[at]).collect();
            let input = Laid::new(set.language, &chosen);
            let found = self.answer(params, &input.input(None), &chosen);
            batch.iter().zip(found).for_each(|(&at, answer)| answers[at] = answer);
        }
        join(set, labels, &answers)
    }

    /// The answers for every item of a set at each weight of a shift. What lies below the shifted
    /// layer is computed once; a weight of 0 is the model as it is.
    pub fn shifted(
        &self,
        params: &mut Params,
        set: &Set,
        labels: &Labels,
        shift: &Shift,
        weights: &[f64],
    ) -> Vec<Vec<Vec<Answer>>> {
        let Shift { layer, shifter } = shift;
        let mut answers = vec![vec![Vec::new(); set.examples.len()]; weights.len()];
        for batch in batches(&set.examples) {
            let chosen: Vec<&Example> = batch.iter().map(|&at| &set.examples[at]).collect();
            let input = Laid::new(set.language, &chosen);
            let ids = input.sequences.concat();
            let mut tape = Tape::new(params, Mode::Evaluate);
            let below = self.features.states(&mut tape, &input.input(None), *layer);
            drop(tape);
            for (&weight, answers) in weights.iter().zip(&mut answers) {
                let mut states = below.clone(); // tokens x dim
                shifter.apply(&ids, weight as f32, &mut states);
                let midway = (weight != 0.0).then_some(Midway { layer: *layer, states: &states });
                let found = self.answer(params, &input.input(midway), &chosen);
                batch.iter().zip(found).for_each(|(&at, answer)| answers[at] = answer);
            }
        }
        answers.iter().map(|answers| join(set, labels, answers)).collect()
    }

    fn answer(
        &self,
        params: &mut Params,
        input: &Input<'_>,
        examples: &[&Example],
    ) -> Vec<Vec<Answer>> {
        let mut tape = Tape::new(params, Mode::Evaluate);
        let vectors = self.features.vectors(&mut tape, input);
        self.head.answer(&mut tape, vectors, examples)
    }

    /// The answers for a set, and their score.
    pub fn evaluate(
        &self,
        params: &mut Params,
        set: &Set,
        labels: &Labels,
    ) -> (Vec<Vec<Answer>>, Score) {
        let device = params.device().clone();
        let answers = device.run(|| self.answers(params, set, labels));
        let score = set.labelled.score(labels, &answers);
        (answers, score)
    }
}

/// Examples laid together as the features read them.
struct Laid<'a> {
    language: usize,
    sequences: Vec<&'a [u32]>,
    /// Wanted rows, counted over all sequences.
    rows: Indices,
}

impl<'a> Laid<'a> {
    fn new(language: usize, examples: &[&'a Example]) -> Self {
        let sequences = examples.iter().map(|example| example.tokens.as_slice()).collect();
        let mut start = 0;
        let mut rows = Vec::new();
        for example in examples {
            rows.extend(example.wanted.iter().map(|position| start + position));
            start += example.tokens.len() as u32;
        }
        Self { language, sequences, rows: rows.into() }
    }

    fn input<'b>(&'b self, midway: Option<Midway<'b>>) -> Input<'b> {
        let Self { language, sequences, rows } = self;
        Input { language: *language, sequences, rows: rows.clone(), midway }
    }
}

/// Cuts examples into batches of like length.
fn batches(examples: &[Example]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..examples.len()).collect();
    order.sort_by_key(|&at| examples[at].tokens.len());
    let (mut rest, mut batches) = (order.as_slice(), Vec::new());
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(fitting(examples, rest));
        batches.push(batch.to_vec());
        rest = others;
    }
    batches
}

/// How many of the next examples fit into a batch: at least one.
fn fitting(examples: &[Example], order: &[usize]) -> usize {
    let mut tokens = 0;
    let fits = order.iter().take_while(|&&at| {
        tokens += examples[at].tokens.len();
        tokens <= TOKENS
    });
    fits.count().max(1)
}

/// The answers of items, from those of their inputs.
fn join(set: &Set, labels: &Labels, answers: &[Vec<Answer>]) -> Vec<Vec<Answer>> {
    let mut items: Vec<Vec<&[Answer]>> = vec![Vec::new(); set.labelled.items()];
    for (example, answers) in set.examples.iter().zip(answers) {
        items[example.item].push(answers);
    }
    items.iter().map(|parts| set.labelled.join(labels, parts)).collect()
}
