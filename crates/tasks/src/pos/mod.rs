//! Part-of-speech tagging: the universal part of speech (Petrov et al. 2012) of every word.
//!
//! Files are CoNLL-U, of which the column UPOS is read and predicted, or `word⇥tag`. A linear classifier reads
//! each word at its first subword, as for NER.

mod score;

use std::path::{Path, PathBuf};

pub use self::score::{PosScore, score};

use crate::conllu::{COLUMNS, Treebank, UPOS};
use crate::error::{Error, Result};
use crate::features::TokenSource;
use crate::finetune::FinetuneRecipe;
use crate::labelled::{Annotation, LabelSet, LabelledFile, PreparedInputs, select};
use crate::lines::NumberedLines;
use crate::registry::{ScoreResult, ScoringRules, TaskDefinition};
use crate::segments::tagged_inputs;
use crate::tagged::{TagFormat, TaggedFile, TaggedSentence};

pub(crate) struct PosTask;

impl TaskDefinition for PosTask {
    fn read(&self, path: &Path, _: &str, _: ScoringRules) -> Result<Box<dyn LabelledFile>> {
        Ok(Box::new(PosFile::read(path)?))
    }

    fn compare(&self, gold: &Path, predicted: &Path, _: ScoringRules) -> Result<ScoreResult> {
        let (gold, predicted) = (PosFile::read(gold)?, PosFile::read(predicted)?);
        gold.check_same(&predicted)?;
        Ok(score(gold.sentences.iter().zip(&predicted.sentences).map(|(gold, predicted)| {
            (gold.tags.as_slice(), predicted.tags.iter().map(String::as_str).collect())
        }))
        .into())
    }

    fn paper_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::tagging()
    }

    fn quick_recipe(&self) -> FinetuneRecipe {
        FinetuneRecipe::quick(3)
    }

    fn chance(&self, labels: &LabelSet) -> f64 {
        1.0 / labels.len() as f64
    }
}

/// A file of words with parts of speech.
pub struct PosFile {
    path: PathBuf,
    sentences: Vec<TaggedSentence<String>>,
    format: PosFormat,
}

/// What the file looks like, for writing it again.
enum PosFormat {
    Treebank(Treebank),
    Columns(TaggedFile<String>),
}

impl PosFile {
    /// Reads a file. It is CoNLL-U if its name ends so, or if its first line that is no comment has ten
    /// columns.
    pub fn read(path: &Path) -> Result<Self> {
        if is_conllu(path)? {
            let bank = Treebank::read_words(path)?;
            let sentences = tagged_sentences(&bank)?;
            let path = path.to_owned();
            return Ok(Self { path, sentences, format: PosFormat::Treebank(bank) });
        }
        let file = read_tagged(path)?;
        let (path, sentences) = (path.to_owned(), file.sentences.clone());
        Ok(Self { path, sentences, format: PosFormat::Columns(file) })
    }

    fn check_same(&self, predicted: &Self) -> Result<()> {
        match (&self.format, &predicted.format) {
            (PosFormat::Treebank(gold), PosFormat::Treebank(predicted)) => {
                gold.check_same(predicted)
            }
            (PosFormat::Columns(gold), PosFormat::Columns(predicted)) => gold.check_same(predicted),
            _ => Err(Error::file(
                &predicted.path,
                "is in another format than the gold file",
                "give both as CoNLL-U, or both as word and tag",
            )),
        }
    }
}

/// Reads words with parts of speech, one on each line.
pub(crate) fn read_tagged(path: &Path) -> Result<TaggedFile<String>> {
    let format = TagFormat { parse, remedy: "write a word, a tab and its part of speech" };
    TaggedFile::read(path, &format)
}

/// Whether a file is CoNLL-U, by its name or its first line.
pub(crate) fn is_conllu(path: &Path) -> Result<bool> {
    let name = path.display().to_string();
    if text::plain_name(&name).ends_with(".conllu") {
        return Ok(true);
    }
    let lines = NumberedLines::read(path)?;
    let first = lines.full().find(|(_, line)| !line.starts_with('#'));
    Ok(first.is_some_and(|(_, line)| line.split('\t').count() == COLUMNS))
}

fn parse(tag: &str) -> std::result::Result<String, String> {
    match tag {
        "" | "_" => Err("the word has no part of speech".to_owned()),
        tag => Ok(tag.to_owned()),
    }
}

fn tagged_sentences(bank: &Treebank) -> Result<Vec<TaggedSentence<String>>> {
    let mut sentences = Vec::new();
    for of_bank in &bank.sentences {
        let mut sentence = TaggedSentence::new();
        for word in &of_bank.words {
            let tag = parse(&word.upos).map_err(|reason| {
                Error::line(&bank.path, word.line, reason, "fill in the fourth column, UPOS")
            })?;
            sentence.words.push(word.form.clone());
            sentence.tags.push(tag);
            sentence.lines.push(word.line);
        }
        sentences.push(sentence);
    }
    Ok(sentences)
}

impl LabelledFile for PosFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn items(&self) -> usize {
        self.sentences.len()
    }

    fn select(&mut self, items: &[usize]) {
        select(&mut self.sentences, items);
        match &mut self.format {
            PosFormat::Treebank(bank) => select(&mut bank.sentences, items),
            PosFormat::Columns(file) => select(&mut file.sentences, items),
        }
    }

    fn texts(&self) -> Vec<String> {
        self.sentences.iter().map(TaggedSentence::text).collect()
    }

    fn labels(&self) -> Vec<(String, usize)> {
        let of = |sentence: &TaggedSentence<String>| {
            sentence.tags.iter().cloned().zip(sentence.lines.iter().copied()).collect::<Vec<_>>()
        };
        self.sentences.iter().flat_map(of).collect()
    }

    fn prepare(
        &self,
        source: &dyn TokenSource,
        language: usize,
        labels: &LabelSet,
    ) -> PreparedInputs {
        let sentences = self.sentences.iter().map(TaggedSentence::words_and_tags);
        tagged_inputs(source, language, labels, sentences)
    }

    fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let sentences = self.sentences.iter().zip(predictions);
        score(sentences.map(|(gold, predicted)| {
            let tags = predicted.iter().map(|word| labels.name(word.label)).collect();
            (gold.tags.as_slice(), tags)
        }))
        .into()
    }

    fn render(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> String {
        let tag = |word: &Annotation| labels.name(word.label).to_owned();
        match &self.format {
            PosFormat::Treebank(bank) => {
                bank.render(|sentence, word| [(UPOS, tag(&predictions[sentence][word]).into())])
            }
            PosFormat::Columns(file) => {
                let tags: Vec<Vec<String>> =
                    predictions.iter().map(|item| item.iter().map(tag).collect()).collect();
                file.render(tags.iter().map(Vec::as_slice))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BANK: &str = "# sent_id = 1
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t_\t_\t_\t_
2\tle\tle\tDET\t_\t_\t_\t_\t_\t_
3\tvin\tvin\tNOUN\t_\t_\t_\t_\t_\t_

1\tBois\tboire\tVERB\t_\t_\t0\troot\t_\t_
2\t!\t!\tPUNCT\t_\t_\t1\tpunct\t_\t_

";

    fn read(name: &str, text: &str) -> Result<PosFile> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        PosFile::read(&path)
    }

    fn predicted(labels: &LabelSet, sentences: &[&str]) -> Vec<Vec<Annotation>> {
        let word = |tag: &str| Annotation::of_label(labels.id(tag));
        sentences.iter().map(|tags| tags.split(' ').map(word).collect()).collect()
    }

    #[test]
    fn upos_is_read_and_replaced_in_treebanks_without_trees() {
        for name in ["bank.conllu", "bank.txt"] {
            let file = read(name, BANK).unwrap();
            let labels = LabelSet::new(file.labels().iter().map(|(label, _)| label.as_str()));
            assert_eq!(labels.names(), ["ADP", "DET", "NOUN", "PUNCT", "VERB"]);
            let gold = predicted(&labels, &["ADP DET NOUN", "VERB PUNCT"]);
            assert_eq!(file.render(&labels, &gold), BANK);
            let wrong = predicted(&labels, &["ADP ADP NOUN", "VERB PUNCT"]);
            let text = file.render(&labels, &wrong);
            assert_eq!(text, BANK.replace("\tDET\t", "\tADP\t"));
            assert_eq!(file.score(&labels, &wrong).value(), 0.8);
        }
    }

    #[test]
    fn words_and_tags_are_read_too() {
        let text = "de\tADP\nvin\tNOUN\n\n!\tPUNCT\n\n";
        let mut file = read("words.tsv", text).unwrap();
        assert_eq!((file.items(), file.labels()[2].clone()), (2, ("PUNCT".to_owned(), 4)));
        let labels = LabelSet::new(["ADP", "NOUN", "PUNCT"]);
        let gold = predicted(&labels, &["ADP NOUN", "PUNCT"]);
        assert_eq!(file.render(&labels, &gold), text);
        file.select(&[1]);
        assert_eq!(file.render(&labels, &gold[1..]), "!\tPUNCT\n\n");
    }

    #[test]
    fn what_has_no_part_of_speech_is_named() {
        let refused = |name, text: &str| read(name, text).err().unwrap().to_string();
        let text = refused("bank.conllu", &BANK.replace("\tDET\t", "\t_\t"));
        assert!(text.contains("bank.conllu:4: the word has no part of speech"), "{text}");
        let text = refused("words.tsv", "de\tADP\nvin\t_\n");
        assert!(text.contains("words.tsv:2: the word has no part of speech"), "{text}");
        let text = refused("bank.conllu", "de\tADP\n");
        assert!(text.contains("bank.conllu:1: 2 columns, not 10"), "{text}");
    }
}
