//! Reading parallel text: two columns of a file, or two files that are parallel line by line.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use text::{LineReader, LineRules, Preparation, Preparer, TextSource, TokenizerChoice};

use crate::bitext::{Bitext, BitextBuilder, LONGEST, PairBlock};
use crate::score::rest;
use crate::words::WordIndex;
use crate::{Error, Result};

/// Bytes of text in a block, and blocks that are processed in parallel.
const BLOCK: usize = 1 << 19;
const BLOCKS: usize = 16;

/// Where parallel text is.
pub enum ParallelText {
    /// A pair on each line, with `|||` or a tab between; the first line decides which.
    Pairs(TextSource),
    /// Two files, or two lists of files, that are parallel line by line (of `.tsv` files, their columns of sentences).
    Parallel(TextSource, TextSource),
}

/// How the two sides are preprocessed. A saved model records it, as new text must be preprocessed alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BitextPreparation {
    /// Lowercase, after tokenization: a full stop is recognised by the capital after it.
    pub lowercase: bool,
    /// The languages, source and target; empty where they are unknown.
    pub languages: [String; 2],
    /// How words are tokenized; without it, they are split at ASCII whitespace.
    pub tokenizer: Option<TokenizerChoice>,
}

impl BitextPreparation {
    /// Which languages have no tokenization rules of their own, though rules were asked for.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let rules = matches!(self.tokenizer, Some(TokenizerChoice::Auto | TokenizerChoice::Moses));
        let unknown = |language: &&String| rules && !text::has_tokenizer_rules(language);
        let warn = |language: &String| {
            format!(
                "no tokenization rules for `{language}`: those common to all languages are used"
            )
        };
        self.languages.iter().filter(unknown).map(warn).collect()
    }
}

/// Which pairs are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairRules {
    /// Keep pairs with an empty side, without links, rather than refuse them.
    pub allow_empty: bool,
    /// At most the first so many.
    pub limit: Option<usize>,
}

/// How parallel text is read.
#[derive(Default)]
pub struct BitextReader {
    rules: PairRules,
    preparation: BitextPreparation,
    preparers: Option<[Preparer; 2]>,
}

/// Is called with the two sides of a pair.
pub type PairCallback<'a> = dyn FnMut(&str, &str) + 'a;

/// Callbacks while parallel text is read.
pub struct BitextObserver<'a> {
    /// Bytes read so far.
    pub bytes: &'a mut dyn FnMut(u64),
    /// The two sides of a pair, preprocessed.
    pub pair: Option<&'a mut PairCallback<'a>>,
}

impl BitextReader {
    /// A reader with this preprocessing, of the pairs that the rules name.
    pub fn new(preparation: BitextPreparation, rules: PairRules) -> Result<Self> {
        let preparer = |language: &String, choice: TokenizerChoice| {
            let words = choice.for_language(language);
            let plain = Preparation::for_language(language);
            Preparer::new(language, Preparation { split: false, words, ..plain }, None)
        };
        let preparers = match (preparation.tokenizer, &preparation.languages) {
            (Some(choice), [source, target]) => {
                Some([preparer(source, choice)?, preparer(target, choice)?])
            }
            (None, _) => None,
        };
        Ok(Self { rules, preparation, preparers })
    }

    /// Reads the whole text and assigns ids to its words: new ones, or those of two known vocabularies.
    pub fn read(
        &self,
        input: &ParallelText,
        known: Option<(&WordIndex, &WordIndex)>,
        heard: &mut BitextObserver,
    ) -> Result<Bitext> {
        let mut reading = match known {
            Some((source, target)) => BitextBuilder::knowing(source, target),
            None => BitextBuilder::learning(),
        };
        let mut pairs = PairReader::new(input);
        let mut left = self.rules.limit.unwrap_or(usize::MAX);
        loop {
            let blocks = self.read_blocks(&mut pairs, &mut left)?;
            if blocks.is_empty() {
                return Ok(reading.finish(self.preparation.clone()));
            }
            let blocks = self.prepare(blocks);
            if let Some(hear) = &mut heard.pair {
                blocks
                    .iter()
                    .flat_map(PairBlock::pairs)
                    .for_each(|(source, target)| hear(source, target));
            }
            (heard.bytes)(pairs.bytes());
            reading.add(&blocks).map_err(|_| {
                let reason = "holds more than 2^32 words".to_owned();
                Error::file(pairs.name(), reason, "align it in parts")
            })?;
        }
    }

    fn read_blocks(&self, pairs: &mut PairReader, left: &mut usize) -> Result<Vec<PairBlock>> {
        let allow_empty = self.rules.allow_empty;
        let mut blocks = Vec::new();
        while blocks.len() < BLOCKS {
            let mut block = PairBlock::default();
            while *left > 0 && block.size() < BLOCK && pairs.next(allow_empty, &mut block)? {
                *left -= 1;
            }
            if block.is_empty() {
                break;
            }
            blocks.push(block);
        }
        Ok(blocks)
    }

    fn prepare(&self, blocks: Vec<PairBlock>) -> Vec<PairBlock> {
        let lowercase = self.preparation.lowercase;
        if !lowercase && self.preparers.is_none() {
            return blocks;
        }
        let prepare = |text: &str, side: usize| match &self.preparers {
            Some(preparers) => {
                let mut words = String::new();
                preparers[side].prepare(text, &mut words);
                if lowercase { words.to_lowercase() } else { words }
            }
            None => text.to_lowercase(),
        };
        let prepare_block = |block: PairBlock| {
            let mut prepared = PairBlock::default();
            for (source, target) in block.pairs() {
                prepared.push(&prepare(source, 0), &prepare(target, 1));
            }
            prepared
        };
        blocks.into_par_iter().map(prepare_block).collect()
    }
}

/// The pairs of an input, one after the other.
enum PairReader<'a> {
    OnOneLine { lines: LineReader<'a>, separator: Option<Separator> },
    OnTwo { source: LineReader<'a>, target: LineReader<'a>, names: [&'a str; 2], read: u64 },
}

/// What stands between the two sides.
#[derive(Clone, Copy)]
enum Separator {
    Bars,
    Tab,
}

impl<'a> PairReader<'a> {
    fn new(input: &'a ParallelText) -> Self {
        let rules = LineRules::default();
        match input {
            ParallelText::Pairs(source) => {
                PairReader::OnOneLine { lines: source.raw_lines(rules), separator: None }
            }
            ParallelText::Parallel(source, target) => PairReader::OnTwo {
                source: source.raw_lines(rules),
                target: target.raw_lines(rules),
                names: [source, target].map(|side| side.names().next().unwrap_or_default()),
                read: 0,
            },
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            PairReader::OnOneLine { lines, .. } => lines.bytes_read(),
            PairReader::OnTwo { source, target, .. } => source.bytes_read() + target.bytes_read(),
        }
    }

    fn name(&self) -> &str {
        match self {
            PairReader::OnOneLine { lines, .. } => lines.name(),
            PairReader::OnTwo { names, .. } => names[0],
        }
    }

    /// Puts the next pair into the block; false at the end.
    fn next(&mut self, allow_empty: bool, block: &mut PairBlock) -> Result<bool> {
        match self {
            PairReader::OnOneLine { lines, separator } => {
                let Some(line) = lines.next_line()? else { return Ok(false) };
                let pair = split(line, separator).and_then(|pair| {
                    check(pair.0, allow_empty)
                        .map_err(|reason| format!("the first side {reason}"))?;
                    check(pair.1, allow_empty)
                        .map_err(|reason| format!("the second side {reason}"))?;
                    Ok(pair)
                });
                let done = pair.map(|(source, target)| block.push(source, target));
                done.map_err(|reason| refuse(lines, reason))?;
            }
            PairReader::OnTwo { source, target, names, read } => {
                let (a, b) = match (source.next_sentence()?, target.next_sentence()?) {
                    (None, None) => return Ok(false),
                    (Some(a), Some(b)) => (a, b),
                    (Some(_), None) => {
                        return Err(unequal(names, [*read + rest(source)?, *read]));
                    }
                    (None, Some(_)) => {
                        return Err(unequal(names, [*read, *read + rest(target)?]));
                    }
                };
                let checked = [check(a, allow_empty), check(b, allow_empty)];
                block.push(a, b);
                *read += 1;
                for (checked, lines) in checked.into_iter().zip([&*source, &*target]) {
                    checked.map_err(|reason| refuse(lines, format!("the line {reason}")))?;
                }
            }
        }
        Ok(true)
    }
}

fn split<'a>(
    line: &'a str,
    separator: &mut Option<Separator>,
) -> std::result::Result<(&'a str, &'a str), String> {
    if line.trim().is_empty() {
        return Ok(("", ""));
    }
    let guess = if line.contains("|||") { Separator::Bars } else { Separator::Tab };
    let mark = match *separator.get_or_insert(guess) {
        Separator::Bars => "|||",
        Separator::Tab => "\t",
    };
    let shown = if mark == "\t" { "tab" } else { mark };
    match line.split_once(mark) {
        None => Err(format!("no {shown} between two sides")),
        Some((_, rest)) if rest.contains(mark) => Err(format!("more than one {shown}")),
        Some(pair) => Ok(pair),
    }
}

fn check(side: &str, allow_empty: bool) -> std::result::Result<(), String> {
    if !allow_empty && side.trim_ascii().is_empty() {
        return Err("is empty".to_owned());
    }
    if side.len() > LONGEST && side.split_ascii_whitespace().count() > LONGEST {
        return Err(format!("has more than {LONGEST} words"));
    }
    // Where words are yet to be cut, as in Chinese, each character may become one.
    if side.len() > LONGEST && side.chars().filter(|c| !c.is_ascii()).count() > LONGEST {
        return Err(format!("has so many characters that they could be more than {LONGEST} words"));
    }
    Ok(())
}

fn refuse(lines: &LineReader, reason: String) -> Error {
    let remedy = if reason.ends_with("is empty") {
        "remove the pair, or set `allow_empty` to keep it without links"
    } else if reason.ends_with("words") {
        "break it up"
    } else {
        "write `source words ||| target words`, or the two with a tab between, on every line"
    };
    Error::line(lines.name(), lines.number(), reason, remedy)
}

fn unequal(names: &[&str; 2], counts: [u64; 2]) -> Error {
    let reason = format!("has {} lines, and {} has {}", counts[0], names[1], counts[1]);
    Error::file(names[0], reason, "line i of one must be the translation of line i of the other")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    fn source(text: &str) -> (NamedTempFile, TextSource) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let source = TextSource::new("x", &[file.path().display().to_string()]).unwrap();
        (file, source)
    }

    fn read(input: &ParallelText, reader: &BitextReader) -> Result<Bitext> {
        reader.read(input, None, &mut BitextObserver { bytes: &mut |_| {}, pair: None })
    }

    fn pairs(text: &str) -> Result<Bitext> {
        let (_file, source) = source(text);
        read(&ParallelText::Pairs(source), &BitextReader::default())
    }

    #[test]
    fn the_first_pairs_are_read() {
        let rules = PairRules { limit: Some(2), ..PairRules::default() };
        let reader = BitextReader::new(BitextPreparation::default(), rules).unwrap();
        let (_file, one) = source("a ||| b\nc ||| d\ne ||| f\n");
        assert_eq!(read(&ParallelText::Pairs(one), &reader).unwrap().len(), 2);
        // What comes after is not read.
        let ((_a, a), (_b, b)) = (source("a\nc\ne\n"), source("b\nd\n"));
        assert_eq!(read(&ParallelText::Parallel(a, b), &reader).unwrap().len(), 2);
    }

    #[test]
    fn every_form_reads_the_same() {
        let expected = pairs("the house ||| la maison\na ||| une\n").unwrap();
        for text in ["the house|||la maison\r\na|||une", "the house\tla maison\na\tune\n"] {
            let read = pairs(text).unwrap();
            assert_eq!(read.source().tokens(), expected.source().tokens());
            assert_eq!(read.target().words(), expected.target().words());
        }
        let (_a, a) = source("the house\na\n");
        let (_b, b) = source("la maison\nune\n");
        let two = read(&ParallelText::Parallel(a, b), &BitextReader::default()).unwrap();
        assert_eq!(two.target().tokens(), expected.target().tokens());
        // Of a table, the first column.
        let table = |text: &str| {
            let mut file = tempfile::Builder::new().suffix(".tsv").tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let source = TextSource::new("x", &[file.path().display().to_string()]).unwrap();
            (file, source)
        };
        let (_a, a) = table("the house\tno house\tneutral\na\tb\tneutral\n");
        let (_b, b) = table("la maison\tpas de maison\tneutral\nune\tb\tneutral\n");
        let first = read(&ParallelText::Parallel(a, b), &BitextReader::default()).unwrap();
        assert_eq!(first.source().words(), expected.source().words());
        assert_eq!(first.target().words(), expected.target().words());
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, expected) in [
            ("a ||| b\nc d\n", ":2: no ||| between two sides"),
            ("a\tb\nc d\n", ":2: no tab between two sides"),
            ("a ||| b ||| c\n", ":1: more than one |||"),
            ("a\tb\tc\n", ":1: more than one tab"),
            ("a ||| b\n\nc ||| d\n", ":2: the first side is empty"),
            ("a ||| \n", ":1: the second side is empty"),
        ] {
            let error = pairs(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    #[test]
    fn unequal_sides_are_counted() {
        let (_a, a) = source("1\n2\n3\n4\n");
        let (_b, b) = source("1\n2\n");
        let error =
            read(&ParallelText::Parallel(a, b), &BitextReader::default()).unwrap_err().to_string();
        assert!(error.contains("has 4 lines, and") && error.contains("has 2;"), "{error}");
        let (_a, a) = source("1\n");
        let (_b, b) = source("1\n\n2\n");
        let error =
            read(&ParallelText::Parallel(a, b), &BitextReader::default()).unwrap_err().to_string();
        assert!(error.contains("has 1 lines, and") && error.contains("has 3;"), "{error}");
    }

    #[test]
    fn empty_sides_can_be_kept() {
        let (_file, source) = source("a ||| b\n||| c\n\nd ||| \n");
        let reader = BitextReader::new(
            BitextPreparation::default(),
            PairRules { allow_empty: true, ..PairRules::default() },
        )
        .unwrap();
        let bitext = read(&ParallelText::Pairs(source), &reader).unwrap();
        assert_eq!(bitext.len(), 4);
        assert_eq!(bitext.target().sentence(2), [0_u32; 0]);
    }

    #[test]
    fn words_are_lowercased_and_tokenized_on_request() {
        let (_file, text) = source("The House. ||| La Maison.\n");
        let small = BitextPreparation { lowercase: true, ..BitextPreparation::default() };
        let bitext = read(
            &ParallelText::Pairs(text),
            &BitextReader::new(small, PairRules::default()).unwrap(),
        )
        .unwrap();
        assert_eq!(bitext.source().words().iter().collect::<Vec<_>>(), ["the", "house."]);
        let cut = BitextPreparation {
            lowercase: false,
            languages: ["en", "fr"].map(String::from),
            tokenizer: Some(TokenizerChoice::Auto),
        };
        let (_file, text) = source("The House. ||| La Maison.\n");
        let bitext = read(
            &ParallelText::Pairs(text),
            &BitextReader::new(cut, PairRules::default()).unwrap(),
        )
        .unwrap();
        assert_eq!(bitext.target().words().iter().collect::<Vec<_>>(), ["La", "Maison", "."]);
    }

    /// Lowercased first, every full stop in mid-line would look like that of an abbreviation.
    #[test]
    fn full_stops_in_mid_line_are_separated_before_lowercasing() {
        let (_file, text) = source("He left. She stayed. ||| Il partit. Elle resta.\n");
        let preparation = BitextPreparation {
            lowercase: true,
            languages: ["en", "fr"].map(String::from),
            tokenizer: Some(TokenizerChoice::Auto),
        };
        let reader = BitextReader::new(preparation, PairRules::default()).unwrap();
        let bitext = read(&ParallelText::Pairs(text), &reader).unwrap();
        let words: Vec<_> = bitext.source().words().iter().collect();
        assert_eq!(words, [".", "he", "left", "she", "stayed"]);
    }
}
