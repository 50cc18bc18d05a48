//! Conversion of data sets to the formats that the other crates read, a line at a time.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use files::At;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::unpack::damaged;
use crate::{DownloadObserver, panlex, wiki};

/// How a file is converted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conversion {
    /// Copied.
    #[default]
    AsItIs,
    /// Copied, and every line is verified to be a word and its translation.
    Dictionary,
    /// Copied, and every word of a treebank is verified to have ten columns.
    Treebank,
    /// Copied, and lines are counted, since the files of a language are parallel.
    Parallel,
    /// NLI pairs as JSON lines (MultiNLI, XNLI) become premise, hypothesis and label; pairs of other
    /// languages, and those without a gold label, are left out.
    Pairs,
    /// XNLI's translated pairs lose their heading, and `contradictory` becomes `contradiction`.
    TranslatedPairs,
    /// `fr:word⇥tag` becomes `word⇥tag`.
    WithoutPrefix,
    /// A dump of Wikipedia becomes paragraphs.
    Wikipedia,
    /// The tables of a snapshot of PanLex become a dictionary from English, with weights.
    Panlex,
}

/// A file in the making.
pub(crate) struct ConversionJob<'a> {
    pub(crate) from: &'a Path,
    pub(crate) to: &'a Path,
    pub(crate) language: &'a str,
}

/// Lines (or paragraphs) kept, and lines (or pages) left out, where they were counted.
pub(crate) type LineCounts = Option<[u64; 2]>;

impl Conversion {
    /// Whether what is written is what was read.
    pub(crate) fn is_copy(self) -> bool {
        use Conversion::{AsItIs, Dictionary, Parallel, Treebank};
        matches!(self, AsItIs | Dictionary | Treebank | Parallel)
    }

    pub(crate) fn run(
        self,
        job: &ConversionJob,
        reader: &mut dyn Read,
        writer: &mut dyn Write,
        watch: &mut DownloadObserver,
    ) -> Result<LineCounts> {
        match self {
            Conversion::AsItIs => copy(job, reader, writer).map(|()| None),
            Conversion::Dictionary => checked_copy(job, reader, writer, is_entry),
            Conversion::Treebank => checked_copy(job, reader, writer, is_of_treebank),
            Conversion::Parallel => checked_copy(job, reader, writer, |_| Ok(())),
            Conversion::Pairs => each_line(job, reader, writer, pair),
            Conversion::TranslatedPairs => each_line(job, reader, writer, translated_pair),
            Conversion::WithoutPrefix => each_line(job, reader, writer, without_prefix),
            Conversion::Panlex => panlex::dictionary(job.from, job.language, job.to, writer),
            Conversion::Wikipedia => {
                let done = wiki::extract(reader, job.from, job.to, writer, watch)?;
                Ok(Some([done.paragraphs, done.left_out]))
            }
        }
    }
}

fn copy(job: &ConversionJob, reader: &mut dyn Read, writer: &mut dyn Write) -> Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = reader.read(&mut buffer).map_err(|error| damaged(job.from, &error))?;
        if read == 0 {
            return Ok(());
        }
        writer.write_all(&buffer[..read]).at(job.to, "write")?;
    }
}

/// Says what a line should have been, where it is not.
type Check = fn(&str) -> std::result::Result<(), String>;

/// Copies a file while every line is looked at, and counts the lines.
fn checked_copy(
    job: &ConversionJob,
    reader: &mut dyn Read,
    writer: &mut dyn Write,
    check: Check,
) -> Result<LineCounts> {
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let (mut line, mut number) = (Vec::new(), 0);
    while next_line(job, &mut reader, &mut line, number + 1)? {
        number += 1;
        let wrong = |reason: String| Error::line(job.from, number, reason, AS_IT_LIES);
        let text = std::str::from_utf8(&line).map_err(|_| wrong("is not UTF-8".into()))?;
        check(text.trim_end_matches(['\n', '\r'])).map_err(wrong)?;
        writer.write_all(&line).at(job.to, "write")?;
    }
    Ok(Some([number as u64, 0]))
}

const LONGEST_LINE: u64 = 16 << 20;

/// Reads the next line with its end; false where there is none.
pub(crate) fn next_line(
    job: &ConversionJob,
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    number: usize,
) -> Result<bool> {
    line.clear();
    let read = reader.take(LONGEST_LINE).read_until(b'\n', line);
    let read = read.map_err(|error| damaged(job.from, &error))?;
    if read as u64 == LONGEST_LINE {
        let reason = format!("a line longer than {} MB", LONGEST_LINE >> 20);
        return Err(Error::line(job.from, number, reason, AS_IT_LIES));
    }
    Ok(read > 0)
}

fn is_entry(line: &str) -> std::result::Result<(), String> {
    let tabs: Vec<&str> = line.split('\t').collect();
    let pair = match tabs[..] {
        [word, translation] => !word.trim().is_empty() && !translation.trim().is_empty(),
        _ => line.split_whitespace().count() == 2,
    };
    let shown: String = line.chars().take(40).collect();
    (pair || line.trim().is_empty())
        .then_some(())
        .ok_or_else(|| format!("`{shown}` is no word with its translation"))
}

fn is_of_treebank(line: &str) -> std::result::Result<(), String> {
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(());
    }
    match line.split('\t').count() {
        10 => Ok(()),
        other => Err(format!("a word of a treebank has ten columns, and this has {other}")),
    }
}

enum LineFate {
    Kept(String),
    LeftOut,
    /// It is no line of this file: a heading, or of another language.
    Passed,
}

type EachLine = fn(&ConversionJob, usize, &str) -> Result<LineFate>;

fn each_line(
    job: &ConversionJob,
    reader: &mut dyn Read,
    writer: &mut dyn Write,
    each: EachLine,
) -> Result<LineCounts> {
    let (mut kept, mut left_out) = (0, 0);
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    let (mut line, mut number) = (Vec::new(), 0);
    while next_line(job, &mut reader, &mut line, number + 1)? {
        number += 1;
        let text = std::str::from_utf8(&line).map_err(|_| {
            Error::line(job.from, number, "is not UTF-8", "download the archive again")
        })?;
        let text = text.strip_suffix('\n').unwrap_or(text);
        match each(job, number, text.trim_end_matches('\r'))? {
            LineFate::Kept(text) => {
                writer.write_all(text.as_bytes()).at(job.to, "write")?;
                kept += 1;
            }
            LineFate::LeftOut => left_out += 1,
            LineFate::Passed => {}
        }
    }
    if kept == 0 {
        let reason = format!("holds nothing of `{}`", job.language);
        return Err(Error::file(job.from, reason, "ask for a language that it has"));
    }
    Ok(Some([kept, left_out]))
}

#[derive(Deserialize)]
struct NliRecord {
    sentence1: String,
    sentence2: String,
    gold_label: String,
    language: Option<String>,
}

const AS_IT_LIES: &str = "give the file as it lies on the server";

const LABELS: [&str; 3] = ["entailment", "neutral", "contradiction"];

fn pair(job: &ConversionJob, number: usize, line: &str) -> Result<LineFate> {
    if line.trim().is_empty() {
        return Ok(LineFate::Passed);
    }
    let pair: NliRecord = serde_json::from_str(line).map_err(|error| {
        let reason = format!("is no NLI pair: {error}");
        Error::line(job.from, number, reason, "give the archive as it lies on the server")
    })?;
    if pair.language.is_some_and(|language| language != job.language) {
        return Ok(LineFate::Passed);
    }
    if pair.gold_label == "-" {
        return Ok(LineFate::LeftOut);
    }
    row(job, number, &pair.sentence1, &pair.sentence2, &pair.gold_label)
}

fn translated_pair(job: &ConversionJob, number: usize, line: &str) -> Result<LineFate> {
    if line.trim().is_empty() || (number == 1 && line.starts_with("premise\t")) {
        return Ok(LineFate::Passed);
    }
    let columns: Vec<&str> = line.split('\t').collect();
    let [premise, hypothesis, label] = columns[..] else {
        let reason = format!("{} columns, not three", columns.len());
        let remedy = "give the archive as it lies on the server";
        return Err(Error::line(job.from, number, reason, remedy));
    };
    let label = if label.trim() == "contradictory" { "contradiction" } else { label.trim() };
    row(job, number, premise, hypothesis, label)
}

/// Three columns. A pair that lacks a sentence is left out: nothing can be inferred from it.
fn row(
    job: &ConversionJob,
    number: usize,
    premise: &str,
    hypothesis: &str,
    label: &str,
) -> Result<LineFate> {
    if !LABELS.contains(&label) {
        let reason = format!("`{label}` is no label");
        return Err(Error::line(job.from, number, reason, "labels are entailment and so on"));
    }
    let [premise, hypothesis] = [premise, hypothesis].map(one_line);
    if premise.is_empty() || hypothesis.is_empty() {
        return Ok(LineFate::LeftOut);
    }
    Ok(LineFate::Kept(format!("{premise}\t{hypothesis}\t{label}\n")))
}

/// A sentence without tabs and ends of line, which would be read as columns and rows.
fn one_line(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ").trim().to_owned()
}

fn without_prefix(job: &ConversionJob, number: usize, line: &str) -> Result<LineFate> {
    if line.trim().is_empty() {
        return Ok(LineFate::Kept("\n".into()));
    }
    let wrong = |reason: &str| {
        let remedy = "give the archive as it lies on the server";
        Error::line(job.from, number, reason, remedy)
    };
    let (word, tag) = line.split_once('\t').ok_or_else(|| wrong("a word without a tag"))?;
    let (_, word) = word.split_once(':').ok_or_else(|| wrong("a word without a language"))?;
    Ok(LineFate::Kept(format!("{word}\t{}\n", tag.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(conversion: Conversion, text: &str) -> Result<(String, LineCounts)> {
        let (from, to) = (Path::new("a.zip!b"), Path::new("out"));
        let job = ConversionJob { from, to, language: "fr" };
        let mut written = Vec::new();
        let mut reader = text.as_bytes();
        let lines = conversion.run(&job, &mut reader, &mut written, &mut |_, _, _| {})?;
        Ok((String::from_utf8(written).unwrap(), lines))
    }

    #[test]
    fn what_is_only_copied_is_looked_at() {
        let text = "le the\r\nNew York\tNew York\nchat cat";
        assert_eq!(run(Conversion::Dictionary, text).unwrap(), (text.to_owned(), Some([3, 0])));
        let error =
            run(Conversion::Dictionary, "le the\nNot Found here\n").unwrap_err().to_string();
        assert!(error.contains("a.zip!b:2: `Not Found here` is no word with its"), "{error}");
        let row = "# text = a\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n\n";
        assert_eq!(run(Conversion::Treebank, row).unwrap(), (row.to_owned(), Some([3, 0])));
        let error = run(Conversion::Treebank, "404: Not Found").unwrap_err().to_string();
        assert!(
            error.contains(":1: a word of a treebank has ten columns, and this has 1"),
            "{error}"
        );
    }

    #[test]
    fn pairs_of_one_language_with_a_label() {
        let text = concat!(
            r#"{"language":"fr","gold_label":"neutral","sentence1":"Un\tchat.","sentence2":"Il dort."}"#,
            "\n",
            r#"{"language":"en","gold_label":"neutral","sentence1":"A cat.","sentence2":"It sleeps."}"#,
            "\n",
            r#"{"gold_label":"-","sentence1":"A","sentence2":"B","genre":"x"}"#,
            "\n",
            r#"{"gold_label":"entailment","sentence1":"A","sentence2":""}"#,
            "\n",
        );
        let (written, lines) = run(Conversion::Pairs, text).unwrap();
        assert_eq!(written, "Un chat.\tIl dort.\tneutral\n");
        assert_eq!(lines, Some([1, 2]));
        let error = run(Conversion::Pairs, "{\"gold_label\":1}\n").unwrap_err().to_string();
        assert!(error.contains("a.zip!b:1: is no NLI pair"), "{error}");
        let error = run(Conversion::Pairs, &text.replace("fr", "de")).unwrap_err().to_string();
        assert!(error.contains("holds nothing of `fr`"), "{error}");
    }

    #[test]
    fn translated_pairs_lose_their_heading() {
        let text = "premise\thypo\tlabel\nUn \"chat\".\tNon.\tcontradictory\r\n";
        let (written, lines) = run(Conversion::TranslatedPairs, text).unwrap();
        assert_eq!(written, "Un \"chat\".\tNon.\tcontradiction\n");
        assert_eq!(lines, Some([1, 0]));
        let error = run(Conversion::TranslatedPairs, "a\tb\tmaybe\n").unwrap_err().to_string();
        assert!(error.contains(":1: `maybe` is no label"), "{error}");
    }

    #[test]
    fn words_lose_their_language() {
        let text = "fr:Paris\tB-LOC\nfr::\tO\n\nfr:Ada\tB-PER\n";
        let (written, _) = run(Conversion::WithoutPrefix, text).unwrap();
        assert_eq!(written, "Paris\tB-LOC\n:\tO\n\nAda\tB-PER\n");
        let error = run(Conversion::WithoutPrefix, "Paris\n").unwrap_err().to_string();
        assert!(error.contains(":1: a word without a tag"), "{error}");
    }
}
