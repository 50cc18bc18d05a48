//! Single-sentence classification: one label for a sentence, such as its topic, sentiment or language.
//!
//! A sentence is one input, `[CLS] sentence [SEP]` or what the vocabulary has for these, and a linear
//! classifier reads the first token (Devlin et al. 2019, §4.1). A sentence that is too long loses its end, and
//! is counted.

mod read;
mod score;

use std::path::Path;

pub use self::read::{ClassifyFile, LabelledSentence};
pub use self::score::{ClassifyScore, score};

use crate::error::Result;
use crate::features::TokenSource;
use crate::finetune::FinetuneRecipe;
use crate::labelled::{
    Annotation, Example, LabelSet, LabelledFile, PreparedInputs, item_labels, select,
};
use crate::registry::{ScoreResult, ScoringRules, TaskDefinition};

pub(crate) struct ClassifyTask;

impl TaskDefinition for ClassifyTask {
    fn read(&self, path: &Path, _: &str, _: ScoringRules) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(ClassifyFile::read(path)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, _: ScoringRules) -> Result<ScoreResult> {
        let (gold, predicted) = (ClassifyFile::read(gold)?, ClassifyFile::read(predicted)?);
        gold.check_same(&predicted)?;
        let both = gold.sentences.iter().zip(&predicted.sentences);
        Ok(score(both.map(|(a, b)| (&*a.label, &*b.label))).into())
    }

    /// The grid of Devlin et al. 2019 (A.3), at the largest of its numbers of epochs.
    fn paper_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe { epochs: 4, ..FinetuneRecipe::tagging() }
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(5)
    }

    fn chance(&self, labels: &LabelSet) -> f64 {
        1.0 / labels.len() as f64
    }
}

impl LabelledFile for ClassifyFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn items(&self) -> usize {
        self.sentences.len()
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.sentences, items);
    }

    fn texts(&self) -> Vec<String> {
        self.sentences.iter().map(|sentence| sentence.text.clone()).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        self.sentences.iter().map(|sentence| (sentence.label.clone(), sentence.line)).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let mut prepared = PreparedInputs::default();
        let (start, end) = source.special_tokens();
        let room = source.longest() - 2;
        for (item, sentence) in self.sentences.iter().enumerate() {
            let mut ids = source.encode_text(language, &sentence.text);
            prepared.truncated += usize::from(ids.len() > room);
            ids.truncate(room);
            let tokens = [&[start][..], &ids, &[end]].concat();
            let gold = vec![Annotation::of_label(labels.id(&sentence.label))];
            prepared.examples.push(Example { tokens, positions: vec![0], gold, item });
        }
        prepared
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let gold = self.sentences.iter().map(|sentence| sentence.label.as_str());
        score(gold.zip(item_labels(labels, predictions))).into()
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        self.render(item_labels(labels, predictions))
    }

    fn truncation(&self) -> &'static str {
        "too long, the end cut"
    }
}
