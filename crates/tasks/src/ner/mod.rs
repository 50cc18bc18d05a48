//! Named entity recognition: which words name persons, places, organisations?
//!
//! Every word has a BIO tag of its own, predicted by a linear classifier over its first subword (Devlin et
//! al. 2019, §5.3). Where a Chinese file has one character on each line, the characters are joined into words
//! first, and predictions spread over the characters again.

mod read;
mod realign;
mod score;
mod spans;

use std::path::Path;

use terms::is_chinese;

use self::realign::{SegmentedSentence, realign, spread};

pub use self::read::read_entities;
pub use self::score::{NerScore, score};
pub use self::spans::{BioTag, EntitySpan, Repair, spans, tags};

use crate::error::Result;
use crate::features::TokenSource;
use crate::finetune::FinetuneRecipe;
use crate::labelled::{Annotation, LabelSet, LabelledFile, PreparedInputs, select};
use crate::registry::{ScoreResult, ScoringRules, TaskDefinition};
use crate::segments::tagged_inputs;
use crate::tagged::{TaggedFile, TaggedSentence};

/// The share of lines that hold one character, from which on a Chinese file is one of characters.
const CHARACTERS: f64 = 0.9;

pub(crate) struct NerTask;

impl TaskDefinition for NerTask {
    fn read(
        &self,
        path: &Path,
        language: &str,
        rules: ScoringRules,
    ) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(NerFile::read(path, language, rules.repair)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, rules: ScoringRules) -> Result<ScoreResult> {
        let (gold, predicted) = (read_entities(gold)?, read_entities(predicted)?);
        gold.check_same(&predicted)?;
        let both = gold.sentences.iter().zip(&predicted.sentences);
        let tags = both.map(|(a, b)| (a.tags.as_slice(), b.tags.as_slice()));
        Ok(score(tags, rules.repair).into())
    }

    fn paper_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::tagging()
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(3)
    }

    /// A random sequence of tags has hardly an entity right.
    fn chance(&self, _: &LabelSet) -> f64 {
        0.0
    }
}

/// A file of named entities, and how its tags are repaired.
pub struct NerFile {
    file: TaggedFile<BioTag>,
    /// The words of each sentence, where the file has characters.
    segmented: Option<Vec<SegmentedSentence>>,
    repair: Repair,
}

impl NerFile {
    /// Reads a file in a language. Chinese characters, one on each line, are joined into words.
    pub fn read(path: &Path, language: &str, repair: Repair) -> Result<Self> {
        let file = read_entities(path)?;
        let segmented = (is_chinese(language) && is_of_characters(&file))
            .then(|| file.sentences.iter().map(realign).collect());
        Ok(Self { file, segmented, repair })
    }

    fn sentences(&self) -> impl Iterator<Item = &TaggedSentence<BioTag>> {
        let words = self.segmented.iter().flatten().map(|segmented| &segmented.sentence);
        let plain = self.segmented.is_none().then_some(&self.file.sentences);
        words.chain(plain.into_iter().flatten())
    }

    /// The tags that are predicted for a sentence, repaired into valid spans.
    fn tags(&self, labels: &LabelSet, predictions: &[Annotation]) -> Vec<BioTag> {
        let tag = |one: &Annotation| labels.name(one.label).parse().unwrap_or(BioTag::Outside);
        let predicted: Vec<BioTag> = predictions.iter().map(tag).collect();
        tags(&spans(&predicted, self.repair), predicted.len())
    }

    /// The tags that are predicted for every line of the file.
    fn line_tags(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> Vec<Vec<BioTag>> {
        let of = |(number, predictions): (usize, &Vec<Annotation>)| {
            let tags = self.tags(labels, predictions);
            match &self.segmented {
                Some(segmented) => spread(&tags, &segmented[number].lengths),
                None => tags,
            }
        };
        predictions.iter().enumerate().map(of).collect()
    }
}

fn is_of_characters(file: &TaggedFile<BioTag>) -> bool {
    let words = || file.sentences.iter().flat_map(|sentence| &sentence.words);
    let single = words().filter(|word| word.chars().count() == 1).count();
    single as f64 >= CHARACTERS * words().count() as f64
}

impl LabelledFile for NerFile {
    fn path(&self) -> &Path {
        &self.file.path
    }

    fn items(&self) -> usize {
        self.file.sentences.len()
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.file.sentences, items);
        if let Some(segmented) = &mut self.segmented {
            select(segmented, items);
        }
    }

    fn texts(&self) -> Vec<String> {
        self.file.sentences.iter().map(TaggedSentence::text).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        let of = |sentence: &TaggedSentence<BioTag>| {
            let tags = sentence.tags.iter().map(BioTag::to_string);
            tags.zip(sentence.lines.iter().copied()).collect::<Vec<_>>()
        };
        self.sentences().flat_map(of).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let sentences = self.sentences().map(TaggedSentence::words_and_tags);
        tagged_inputs(source, language, labels, sentences)
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let predicted: Vec<Vec<BioTag>> =
            predictions.iter().map(|item| self.tags(labels, item)).collect();
        let gold = self.sentences().map(|sentence| sentence.tags.as_slice());
        let mut result = score(gold.zip(predicted.iter().map(Vec::as_slice)), self.repair);
        if self.segmented.is_some() {
            let predicted = self.line_tags(labels, predictions);
            let gold = self.file.sentences.iter().map(|sentence| sentence.tags.as_slice());
            let characters = score(gold.zip(predicted.iter().map(Vec::as_slice)), self.repair);
            result.characters = Some(characters.micro);
        }
        result.into()
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        let tags = self.line_tags(labels, predictions);
        self.file.render(tags.iter().map(Vec::as_slice))
    }

    fn segmented_words(&self) -> Option<usize> {
        let words = |segmented: &Vec<SegmentedSentence>| {
            segmented.iter().map(|sentence| sentence.lengths.len()).sum()
        };
        self.segmented.as_ref().map(words)
    }
}
