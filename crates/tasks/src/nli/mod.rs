//! Natural language inference: does a hypothesis follow from a premise?
//!
//! The two stand in one input, `</s> premise </s> hypothesis </s>`, and the first token is read. A
//! pair that is too long loses tokens at the end of its longer sentence, and is counted.

mod read;
mod score;

use std::path::Path;

pub use self::read::{Pair, Pairs};
pub use self::score::{NliScore, score};

use crate::features::Features;
use crate::labelled::{Answer, Example, Labelled, Labels, Prepared, Score};

impl Labelled for Pairs {
    fn path(&self) -> &Path {
        &self.path
    }

    fn items(&self) -> usize {
        self.pairs.len()
    }

    fn called(&self) -> &'static str {
        "pairs"
    }

    fn truncate(&mut self, items: usize) {
        self.pairs.truncate(items);
    }

    fn labels(&self) -> Vec<(String, usize)> {
        self.pairs.iter().map(|pair| (pair.label.clone(), pair.line)).collect()
    }

    fn prepare(&self, features: &dyn Features, language: usize, labels: &Labels) -> Prepared {
        let mut prepared = Prepared::default();
        let (start, end) = features.frame();
        let room = features.longest() - 3;
        for (item, pair) in self.pairs.iter().enumerate() {
            let mut premise = features.encode_text(language, &pair.premise);
            let mut hypothesis = features.encode_text(language, &pair.hypothesis);
            prepared.cut += usize::from(premise.len() + hypothesis.len() > room);
            while premise.len() + hypothesis.len() > room {
                let longer =
                    if premise.len() > hypothesis.len() { &mut premise } else { &mut hypothesis };
                longer.pop();
            }
            let tokens = [&[start][..], &premise, &[end], &hypothesis, &[end]].concat();
            let targets = vec![Answer { class: labels.id(&pair.label), head: 0 }];
            prepared.examples.push(Example { tokens, wanted: vec![0], targets, item });
        }
        prepared
    }

    fn score(&self, labels: &Labels, answers: &[Vec<Answer>]) -> Score {
        let given = answers.iter().map(|answers| labels.name(answers[0].class));
        Score::Nli(score(self.pairs.iter().map(|pair| pair.label.as_str()).zip(given)))
    }

    fn render(&self, labels: &Labels, answers: &[Vec<Answer>]) -> String {
        self.render(answers.iter().map(|answers| labels.name(answers[0].class)))
    }
}
