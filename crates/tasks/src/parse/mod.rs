//! Dependency parsing: which word is the head of which, and by what relation?
//!
//! A biaffine parser (Dozat and Manning 2017) reads each word at its first subword and the root at the first
//! token. A sentence that is too long is parsed in segments: in training, words whose head lies in another
//! segment are left out of the loss; in the result, the roots of later segments are attached to that of the
//! first.

mod score;
mod tree;

use std::path::Path;

use tensor::Params;

pub use self::score::{AttachmentScore, ParseScore, RelationLabels, compare, score};
pub use self::tree::{ArcScores, is_tree};

use crate::conllu::{DEPREL, HEAD, Treebank, TreebankSentence};
use crate::error::Result;
use crate::features::TokenSource;
use crate::finetune::FinetuneRecipe;
use crate::heads::{Head, Parser};
use crate::labelled::{Annotation, Example, LabelSet, LabelledFile, NONE, PreparedInputs, select};
use crate::registry::{HeadShape, ScoreResult, ScoringRules, TaskDefinition};
use crate::segments::{Segment, segments};

pub(crate) const ROOT: &str = "root";
/// The relation by which the root of a later segment is attached: clauses side by side.
const PARATAXIS: &str = "parataxis";

pub(crate) struct ParseTask;

impl TaskDefinition for ParseTask {
    fn read(&self, path: &Path, _: &str, rules: ScoringRules) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(ParseFile::read(path, rules.relations)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, rules: ScoringRules) -> Result<ScoreResult> {
        let (gold, predicted) = (Treebank::read(gold)?, Treebank::read(predicted)?);
        Ok(compare(&gold, &predicted, rules.relations)?.into())
    }

    fn paper_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe { dropout: 0.33, ..FinetuneRecipe::tagging() }
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(5)
    }

    fn head(&self, params: &mut Params, shape: &HeadShape<'_>) -> Box<dyn Head> {
        Box::new(Parser::new(params, shape))
    }

    /// A random head is hardly ever the right one.
    fn chance(&self, _: &LabelSet) -> f64 {
        0.0
    }

    fn is_labelling(&self) -> bool {
        false
    }
}

/// A treebank, and which part of a relation's name counts.
pub struct ParseFile {
    bank: Treebank,
    relations: RelationLabels,
}

impl ParseFile {
    /// Reads a treebank.
    pub fn read(path: &Path, relations: RelationLabels) -> Result<Self> {
        Ok(Self { bank: Treebank::read(path)?, relations })
    }

    fn example(&self, labels: &LabelSet, item: usize, segment: Segment) -> Example {
        let words = &self.bank.sentences[item].words;
        let annotation = |at: usize| {
            let word = &words[at];
            let inside = (word.head as usize).wrapping_sub(segment.words.start + 1);
            let head = match word.head {
                0 => 0,
                _ if inside < segment.words.len() => inside as u32 + 1,
                _ => NONE,
            };
            Annotation { label: labels.id(self.relations.of(&word.relation)), head }
        };
        let gold = segment.words.clone().map(annotation).collect();
        let positions = std::iter::once(0).chain(segment.places).collect();
        Example { tokens: segment.tokens, positions, gold, item }
    }
}

impl LabelledFile for ParseFile {
    fn path(&self) -> &Path {
        &self.bank.path
    }

    fn items(&self) -> usize {
        self.bank.sentences.len()
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.bank.sentences, items);
    }

    fn texts(&self) -> Vec<String> {
        let text = |sentence: &TreebankSentence| {
            let forms: Vec<&str> = sentence.words.iter().map(|word| word.form.as_str()).collect();
            forms.join("\n")
        };
        self.bank.sentences.iter().map(text).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        let words = self.bank.sentences.iter().flat_map(|sentence| &sentence.words);
        words.map(|word| (self.relations.of(&word.relation).to_owned(), word.line)).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let mut prepared = PreparedInputs::default();
        for (item, sentence) in self.bank.sentences.iter().enumerate() {
            let forms = sentence.words.iter().map(|word| word.form.as_str());
            let (segments, truncated) = segments(source, language, forms, true);
            prepared.truncated += usize::from(truncated);
            prepared.split += usize::from(segments.len() > 1);
            let examples = segments.into_iter().map(|segment| self.example(labels, item, segment));
            prepared.examples.extend(examples);
        }
        prepared
    }

    fn join(&self, labels: &LabelSet, segments: &[&[Annotation]]) -> Vec<Annotation> {
        let root_of = |segment: &[Annotation]| segment.iter().position(|word| word.head == 0);
        let root = segments.first().and_then(|first| root_of(first)).map_or(0, |at| at as u32 + 1);
        let parataxis = labels.id(PARATAXIS);
        let mut joined: Vec<Annotation> = Vec::new();
        for (number, segment) in segments.iter().enumerate() {
            let before = joined.len() as u32;
            joined.extend(segment.iter().map(|word| match word.head {
                0 if number > 0 => {
                    let label = if parataxis == NONE { word.label } else { parataxis };
                    Annotation { label, head: root }
                }
                0 => *word,
                head => Annotation { head: head + before, ..*word },
            }));
        }
        joined
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let predicted = |sentence: usize, word: usize| {
            let predicted = predictions[sentence][word];
            (predicted.head, labels.name(predicted.label))
        };
        score(&self.bank, self.relations, predicted).into()
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        self.bank.render(|sentence, word| {
            let predicted = predictions[sentence][word];
            let relation = labels.name(predicted.label);
            [(HEAD, predicted.head.to_string().into()), (DEPREL, relation.into())]
        })
    }
}
