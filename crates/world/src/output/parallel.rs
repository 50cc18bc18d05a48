//! Parallel text in all languages: retrieval pairs, parallel lines with gold word alignments, a parallel
//! treebank; and, of the retrieval pairs and the training lines, another wording in the same language.
//!
//! All of it is one sample of sentences that differ in every language, cut into parts, so that
//! nothing of one part is in another.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::documents::scan;
use super::treebank::conllu;
use super::{FileRecord, WorldWriter};
use crate::error::{self, Error};
use crate::gloss::GlossedSentence;
use crate::grammar::{Tree, Upos};
use crate::language::Language;

/// Shorter sentences are too ambiguous to be retrieved among a thousand.
const LEAST_WORDS: usize = 4;
/// How many documents in a row may bring nothing new before the search is given up.
const PATIENCE: usize = 2000;

struct ParallelSentence {
    tree: Tree,
    texts: Vec<String>,
}

impl WorldWriter<'_> {
    /// Writes all of it; returns the test sentences of each language.
    pub(super) fn parallel(&mut self) -> Result<Vec<HashSet<String>>, Error> {
        let config = self.plan.config();
        let (tatoeba, treebank) = (config.tatoeba, config.treebank.parallel);
        let splits = config.parallel.named();
        let total = tatoeba + treebank + splits.iter().map(|(_, size)| size).sum::<usize>();
        let lines = self.lines(total)?;
        let (pairs, rest) = lines.split_at(tatoeba);
        let (trees, mut rest) = rest.split_at(treebank);
        let mut tests: Vec<&ParallelSentence> = pairs.iter().chain(trees).collect();
        self.tatoeba(pairs)?;
        self.glosses(pairs)?;
        self.paraphrases("paraphrase", "test", pairs)?;
        self.parallel_treebank(trees)?;
        for (split, size) in splits {
            let (part, others) = rest.split_at(size);
            rest = others;
            self.lines_of_all(split, part)?;
            match split {
                "train" => {
                    self.bitext(part)?;
                    self.paraphrases("paraphrase-train", "train", part)?;
                }
                "test" => tests.extend(part),
                _ => {}
            }
        }
        let texts = |column: usize| tests.iter().map(|line| line.texts[column].clone()).collect();
        Ok((0..self.languages.len()).map(texts).collect())
    }

    /// So many sentences, no two alike in any language.
    fn lines(&mut self, wanted: usize) -> Result<Vec<ParallelSentence>, Error> {
        let documents = self.documents(0, "parallel");
        let languages = self.languages;
        let make = |index: u64| -> Vec<ParallelSentence> {
            let said = |tree: &Tree| languages.iter().map(|l| l.realize(tree)).collect();
            let line = |tree: Tree| ParallelSentence { texts: said(&tree), tree };
            let long = |tree: &Tree| words(tree) >= LEAST_WORDS;
            documents.document(index).into_iter().filter(long).map(line).collect()
        };
        let mut seen: Vec<HashSet<String>> = vec![HashSet::new(); languages.len()];
        let mut lines = Vec::new();
        let mut barren = 0;
        scan(wanted / 4, make, |made| {
            let before = lines.len();
            for line in made {
                let known = line.texts.iter().zip(&seen).any(|(text, seen)| seen.contains(text));
                if !known && lines.len() < wanted {
                    for (text, seen) in line.texts.iter().zip(&mut seen) {
                        seen.insert(text.clone());
                    }
                    lines.push(line);
                }
            }
            barren = if lines.len() > before { 0 } else { barren + 1 };
            Ok(lines.len() < wanted && barren < PATIENCE)
        })?;
        if lines.len() < wanted {
            let key = "parallel, tatoeba and treebank.parallel together";
            return Err(error::exhausted("parallel sentences", key, wanted, lines.len()));
        }
        self.progress.add(wanted * languages.len(), "parallel");
        Ok(lines)
    }

    /// `tatoeba/tatoeba.LANG-FIRST.{LANG,FIRST}`.
    fn tatoeba(&mut self, lines: &[ParallelSentence]) -> Result<(), Error> {
        let first = &self.languages[0];
        for (index, language) in self.languages.iter().enumerate().skip(1) {
            let pair = format!("{}-{}", language.code(), first.code());
            for (column, code) in [(index, language.code()), (0, first.code())] {
                let path = format!("tatoeba/tatoeba.{pair}.{code}");
                self.put_lines("tatoeba", path, Some("test"), &[code], lines, |line, text| {
                    text.push_str(&line.texts[column]);
                })?;
            }
        }
        Ok(())
    }

    /// `tatoeba/gloss.LANG.txt`: the meaning of each word of line i of the language's side of `tatoeba/`.
    fn glosses(&mut self, lines: &[ParallelSentence]) -> Result<(), Error> {
        let world = self.world;
        for language in self.languages {
            let code = language.code();
            let path = format!("tatoeba/gloss.{code}.txt");
            self.put_lines("gloss", path, Some("test"), &[code], lines, |line, text| {
                text.push_str(
                    &GlossedSentence::new(world, language, &line.tree).meanings.join(" "),
                );
            })?;
        }
        Ok(())
    }

    /// `parallel/NAME.LANG.txt`: line i is another wording of line i of the language's side of `tatoeba/`,
    /// or of `parallel/train.LANG.txt`.
    fn paraphrases(
        &mut self,
        name: &str,
        split: &'static str,
        lines: &[ParallelSentence],
    ) -> Result<(), Error> {
        for language in self.languages {
            let code = language.code();
            let path = format!("parallel/{name}.{code}.txt");
            self.put_lines("paraphrase", path, Some(split), &[code], lines, |line, text| {
                language.realize_into(&line.tree.paraphrase(), text);
            })?;
        }
        Ok(())
    }

    /// `ud/LANG_pud-ud-test.conllu`.
    fn parallel_treebank(&mut self, lines: &[ParallelSentence]) -> Result<(), Error> {
        for language in self.languages {
            let mut text = String::new();
            for (number, line) in (1..).zip(lines) {
                conllu(language, &line.tree, &format!("pud-{number}"), &mut text);
            }
            let path = format!("ud/{}_pud-ud-test.conllu", language.code());
            let record = FileRecord::of("treebank", path, &[language.code()], Some("parallel"));
            self.folder.put(record, &text, lines.len())?;
        }
        Ok(())
    }

    /// `parallel/SPLIT.LANG.txt`, line i the same in all.
    fn lines_of_all(
        &mut self,
        split: &'static str,
        lines: &[ParallelSentence],
    ) -> Result<(), Error> {
        for (column, language) in self.languages.iter().enumerate() {
            let code = language.code();
            let path = format!("parallel/{split}.{code}.txt");
            self.put_lines("parallel", path, Some(split), &[code], lines, |line, text| {
                text.push_str(&line.texts[column]);
            })?;
        }
        Ok(())
    }

    /// `bitext/bitext.FIRST-LANG.tsv`, and `.align` with the word pairs that mean the same.
    fn bitext(&mut self, lines: &[ParallelSentence]) -> Result<(), Error> {
        let first = &self.languages[0];
        for (column, language) in self.languages.iter().enumerate().skip(1) {
            let codes = [first.code(), language.code()];
            let stem = format!("bitext/bitext.{}-{}", codes[0], codes[1]);
            let path = format!("{stem}.tsv");
            self.put_lines("bitext", path, None, &codes, lines, |line, text| {
                let _ = write!(text, "{}\t{}", line.texts[0], line.texts[column]);
            })?;
            let path = format!("{stem}.align");
            self.put_lines("alignment", path, None, &codes, lines, |line, text| {
                align(first, language, &line.tree, text);
            })?;
        }
        Ok(())
    }

    fn put_lines(
        &mut self,
        kind: &'static str,
        path: String,
        split: Option<&'static str>,
        codes: &[&str],
        lines: &[ParallelSentence],
        write: impl Fn(&ParallelSentence, &mut String),
    ) -> Result<(), Error> {
        let mut text = String::new();
        for line in lines {
            write(line, &mut text);
            text.push('\n');
        }
        self.folder.put(FileRecord::of(kind, path, codes, split), &text, lines.len())
    }
}

/// The words of a sentence, its full stop not counted.
pub(super) fn words(tree: &Tree) -> usize {
    tree.nodes().iter().filter(|node| node.upos != Upos::Punctuation).count()
}

/// `i-j` pairs counted from 0 over words and full stops, as treebanks count them.
fn align(from: &Language, to: &Language, tree: &Tree, text: &mut String) {
    let mut place = vec![0; tree.nodes().len()];
    for (at, node) in to.linearize(tree).into_iter().enumerate() {
        place[node] = at;
    }
    for (at, node) in from.linearize(tree).into_iter().enumerate() {
        let space = if at > 0 { " " } else { "" };
        let _ = write!(text, "{space}{at}-{}", place[node]);
    }
}
