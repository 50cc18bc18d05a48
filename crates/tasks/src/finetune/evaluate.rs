//! Answers for a whole set, and their score.

use tensor::{Indices, Mode, Params, Tape, Var};

use super::sets::Set;
use crate::features::{Features, Input, Shift};
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
        shift: Option<&Shift>,
    ) -> Var {
        let sequences: Vec<&[u32]> =
            examples.iter().map(|example| example.tokens.as_slice()).collect();
        let mut start = 0;
        let mut rows = Vec::new();
        for example in examples {
            rows.extend(example.wanted.iter().map(|position| start + position));
            start += example.tokens.len() as u32;
        }
        let rows = Indices::from(rows);
        self.features.vectors(tape, &Input { language, sequences: &sequences, rows, shift })
    }

    /// The answers for every item of a set. Inputs of like length are read together.
    pub fn answers(&self, params: &mut Params, set: &Set, labels: &Labels) -> Vec<Vec<Answer>> {
        let examples = &set.examples;
        let mut order: Vec<usize> = (0..examples.len()).collect();
        order.sort_by_key(|&at| examples[at].tokens.len());
        let mut answers: Vec<Vec<Answer>> = vec![Vec::new(); examples.len()];
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(fitting(examples, rest));
            rest = others;
            let chosen: Vec<&Example> = batch.iter().map(|&at| &examples[at]).collect();
            let mut tape = Tape::new(params, Mode::Evaluate);
            let vectors = self.vectors(&mut tape, set.language, &chosen, set.shift.as_ref());
            for (&at, answer) in batch.iter().zip(self.head.answer(&mut tape, vectors, &chosen)) {
                answers[at] = answer;
            }
        }
        join(set, labels, &answers)
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
