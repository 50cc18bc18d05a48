//! Natural language inference: does a hypothesis follow from a premise?
//!
//! The two stand in one input, `[CLS] premise [SEP] hypothesis [SEP]` or what the vocabulary has for these,
//! and a linear classifier reads the first token (Devlin et al. 2019, §4.1). A pair that is too long loses
//! tokens at the end of its longer sentence, and is counted.

mod read;
mod score;

use std::path::Path;

pub use self::read::{NliFile, NliPair};
pub use self::score::{NliScore, score};

use crate::error::Result;
use crate::features::TokenSource;
use crate::finetune::{FinetuneRecipe, LrSchedule};
use crate::labelled::{
    Annotation, Example, LabelSet, LabelledFile, PreparedInputs, item_labels, select,
};
use crate::registry::{ScoreResult, ScoringRules, TaskDefinition};

/// Natural language inference.
pub(crate) struct NliTask;

impl TaskDefinition for NliTask {
    fn read(&self, path: &Path, _: &str, _: ScoringRules) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(NliFile::read(path)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, _: ScoringRules) -> Result<ScoreResult> {
        let (gold, predicted) = (NliFile::read(gold)?, NliFile::read(predicted)?);
        gold.check_same(&predicted)?;
        let both = gold.pairs.iter().zip(&predicted.pairs);
        Ok(score(both.map(|(a, b)| (&*a.label, &*b.label))).into())
    }

    /// The grid of Conneau et al. 2020.
    fn paper_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe {
            batch: vec![4, 8],
            lr: vec![1.25e-6, 2.5e-6, 5e-6],
            head_lr: vec![5e-6, 2.5e-5, 1.25e-4],
            epochs: 200,
            schedule: LrSchedule::Constant,
            dropout: 0.1,
            restarts: 0,
        }
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(10)
    }

    fn chance(&self, labels: &LabelSet) -> f64 {
        1.0 / labels.len() as f64
    }
}

impl LabelledFile for NliFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn items(&self) -> usize {
        self.pairs.len()
    }

    fn unit(&self) -> &'static str {
        "pairs"
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.pairs, items);
    }

    fn texts(&self) -> Vec<String> {
        self.pairs.iter().map(|pair| format!("{}\t{}", pair.premise, pair.hypothesis)).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        self.pairs.iter().map(|pair| (pair.label.clone(), pair.line)).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let mut prepared = PreparedInputs::default();
        let (start, end) = source.special_tokens();
        let room = source.longest() - 3;
        for (item, pair) in self.pairs.iter().enumerate() {
            let mut premise = source.encode_text(language, &pair.premise);
            let mut hypothesis = source.encode_text(language, &pair.hypothesis);
            prepared.truncated += usize::from(premise.len() + hypothesis.len() > room);
            while premise.len() + hypothesis.len() > room {
                let longer =
                    if premise.len() > hypothesis.len() { &mut premise } else { &mut hypothesis };
                longer.pop();
            }
            let tokens = [&[start][..], &premise, &[end], &hypothesis, &[end]].concat();
            let gold = vec![Annotation::of_label(labels.id(&pair.label))];
            prepared.examples.push(Example { tokens, positions: vec![0], gold, item });
        }
        prepared
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let gold = self.pairs.iter().map(|pair| pair.label.as_str());
        score(gold.zip(item_labels(labels, predictions))).into()
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        self.render(item_labels(labels, predictions))
    }

    fn truncation(&self) -> &'static str {
        "too long, the end of the longer sentence cut"
    }
}
