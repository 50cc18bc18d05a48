//! Text for training without the sentences of tests.
//!
//! Parallel test sets are drawn from the same collections as text to train on, such as Tatoeba. An encoder that was trained on
//! the sentences whose translations it is to find has seen half of the answer; so they are left out, and counted.
//!
//! Two sentences are the same where their letters and digits are, upper and lower case alike. A row of a test that has several
//! sentences is found as a run of them within a line.

use std::io::Write;
use std::path::PathBuf;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

use crate::corpus::hash;
use crate::prepare::{Preparation, Preparer};
use crate::reader::{LineRules, TextSource, TsvColumns};
use crate::{Error, Result};

/// Which text is written without which sentences.
#[derive(Clone, Debug)]
pub struct ExclusionConfig {
    /// The language of all files.
    pub language: String,
    /// The text.
    pub texts: Vec<String>,
    /// The tests.
    pub exclude: Vec<String>,
    /// The columns of sentences of `.tsv` files of tests.
    pub columns: TsvColumns,
    /// The file to write, compressed by zstd where it ends in `.zst`.
    pub out: PathBuf,
}

/// What was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionResult {
    /// The file: lines as they were or, where a sentence of a line was left out, its others, one a line.
    pub out: PathBuf,
    /// The language.
    pub language: String,
    /// Different sentences of the tests.
    pub tests: usize,
    /// Sentences of the text.
    pub rows: u64,
    /// How many of these stand in the tests, and were left out.
    pub in_tests: u64,
    /// Sentences that were written.
    pub used: u64,
}

/// Writes text without the sentences of tests.
///
/// # Errors
/// Where files cannot be read or written, or no sentence is left.
pub fn exclude_tests(config: &ExclusionConfig) -> Result<ExclusionResult> {
    let tests = TestSentences::read(&config.language, &config.exclude, &config.columns)?;
    let mut text = Vec::new();
    let [rows, in_tests] = match config.out.extension().is_some_and(|ending| ending == "zst") {
        true => {
            // Into memory, which no error interrupts.
            let mut packed = zstd::Encoder::new(Vec::new(), 3).expect("a known level");
            let counts = tests.write(&config.language, &config.texts, &mut packed)?;
            text = packed.finish().expect("memory takes every byte");
            counts
        }
        false => tests.write(&config.language, &config.texts, &mut text)?,
    };
    if rows == in_tests {
        let reason = format!("all {rows} sentences stand in the tests");
        return Err(Error::input(config.texts.join(", "), reason, "give other text"));
    }
    files::write(&config.out, text)?;
    Ok(ExclusionResult {
        out: config.out.clone(),
        language: config.language.clone(),
        tests: tests.rows.len(),
        rows,
        in_tests,
        used: rows - in_tests,
    })
}

/// How many sentences of some text stand in no test, up to a number: as many as are read from the file that
/// [`exclude_tests`] writes.
///
/// # Errors
/// Where files cannot be read.
pub fn count_without_tests(
    language: &str,
    [texts, exclude]: [&[String]; 2],
    columns: &TsvColumns,
    most: u64,
) -> Result<u64> {
    let tests = TestSentences::read(language, exclude, columns)?;
    let mut left = 0;
    tests.read_lines(language, texts, |_, counts| {
        left += counts[0] - counts[1];
        left < most
    })?;
    Ok(left.min(most))
}

/// The letters and digits of a sentence, in lower case: sentences that differ in punctuation and case alone have the same.
pub fn letters(sentence: &str) -> String {
    sentence.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The rows of tests, by hashes of their letters.
struct TestSentences {
    rows: FxHashSet<u64>,
    /// Bytes of the letters of the longest.
    longest: usize,
}

impl TestSentences {
    fn read(language: &str, files: &[String], columns: &TsvColumns) -> Result<Self> {
        let source = TextSource::new(language, files)?.with_columns(columns);
        let mut lines = source.lines(LineRules::default());
        let mut tests = Self { rows: FxHashSet::default(), longest: 0 };
        while let Some(row) = lines.next_sentence()? {
            let letters = composed_letters(row);
            if !letters.is_empty() {
                tests.longest = tests.longest.max(letters.len());
                tests.rows.insert(hash(&letters));
            }
        }
        Ok(tests)
    }

    /// Writes what is left of a text; the numbers of its sentences, and of those that were left out.
    fn write(&self, language: &str, texts: &[String], out: &mut impl Write) -> Result<[u64; 2]> {
        let mut all = [0, 0];
        self.read_lines(language, texts, |kept, counts| {
            for line in kept {
                // Into memory, which no error interrupts.
                writeln!(out, "{line}").expect("memory takes every byte");
            }
            all = [all[0] + counts[0], all[1] + counts[1]];
            true
        })?;
        Ok(all)
    }

    /// Passes on what is left of each line, and the numbers of its sentences and of those that were left out, while more is
    /// wanted.
    fn read_lines(
        &self,
        language: &str,
        texts: &[String],
        mut each: impl FnMut(&[&str], [u64; 2]) -> bool,
    ) -> Result<()> {
        let source = TextSource::new(language, texts)?;
        // Sentences as training reads them, in the words of the file.
        let split = Preparer::new(language, Preparation::raw(), None)?;
        let mut lines = source.lines(LineRules::default());
        while let Some(line) = lines.next_sentence()? {
            let mut sentences: Vec<String> = Vec::new();
            split.sentences(line, |sentence| {
                let sentence = sentence.trim();
                if !sentence.is_empty() {
                    sentences.push(sentence.to_owned());
                }
            });
            let found = self.found(&sentences);
            let left_out = found.iter().filter(|found| **found).count();
            let kept: Vec<&str> = match left_out {
                0 => vec![line],
                _ => {
                    let others = sentences.iter().zip(&found).filter(|(_, found)| !**found);
                    others.map(|(sentence, _)| sentence.as_str()).collect()
                }
            };
            if !each(&kept, [sentences.len(), left_out].map(|count| count as u64)) {
                break;
            }
        }
        Ok(())
    }

    /// Which sentences of a line are rows of tests, or parts of such a row.
    fn found(&self, sentences: &[String]) -> Vec<bool> {
        let (mut joined, mut ends) = (String::new(), vec![0]);
        for sentence in sentences {
            joined += &composed_letters(sentence);
            ends.push(joined.len());
        }
        let mut found = vec![false; sentences.len()];
        for first in 0..sentences.len() {
            for last in first..sentences.len() {
                let run = &joined[ends[first]..ends[last + 1]];
                if run.len() > self.longest {
                    break;
                }
                if !run.is_empty() && self.rows.contains(&hash(run)) {
                    found[first..=last].fill(true);
                }
            }
        }
        found
    }
}

/// The same of letters with accents, however these are written.
fn composed_letters(sentence: &str) -> String {
    letters(&sentence.nfc().collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_tests_are_left_out_and_counted() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let text = "It rains. We stay at home. Why not?\n\nNobody knows.\nYes! No?\nThe cafe\u{301} is shut.\n";
        let texts = vec![file("text.txt", text)];
        let exclude = vec![
            file("tatoeba.txt", "it rains!\nYes. No.\nWhy should we?\nThe caf\u{e9} is shut\n"),
            file("xnli.tsv", "Something else.\tWhy not\tneutral\n"),
        ];
        let columns: TsvColumns = "1,2".parse().unwrap();
        let out = folder.path().join("out.txt.zst");
        let config =
            ExclusionConfig { language: "en".into(), texts, exclude, columns, out: out.clone() };
        let result = exclude_tests(&config).unwrap();
        assert_eq!((result.tests, result.rows, result.in_tests, result.used), (6, 7, 5, 2));
        let left = zstd::decode_all(std::fs::File::open(&out).unwrap()).unwrap();
        assert_eq!(String::from_utf8(left).unwrap(), "We stay at home.\nNobody knows.\n");
        let files = [&config.texts[..], &config.exclude[..]];
        let count = |most| count_without_tests("en", files, &config.columns, most).unwrap();
        assert_eq!((count(9), count(1)), (2, 1));
        let all = ExclusionConfig { exclude: config.texts.clone(), ..config };
        let refused = exclude_tests(&all).unwrap_err().to_string();
        assert!(refused.contains("all 7 sentences stand in the tests"), "{refused}");
    }
}
