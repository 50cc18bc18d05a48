//! Lines of UTF-8 text from plain, gzip or zstd files, one or many, or standard input, with at most
//! one line and one buffer in memory.
//!
//! Compression is recognised by a file's first bytes, not by its name, so that standard input and
//! files of any name work.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::{Error, Result};
use files::{At, STANDARD_INPUT, ScratchFolder, limits};
use flate2::bufread::MultiGzDecoder;
use serde::{Deserialize, Serialize};
use terms::display_name;

/// One language's text: the files that hold it, in the order in which they are read.
#[derive(Debug)]
pub struct TextSource {
    language: String,
    files: Vec<NamedFile>,
    columns: TsvColumns,
}

/// Which columns of a `.tsv` file hold sentences, counted from 1: the first, where nothing else is said.
///
/// This is the one rule by which every command reads such files (XNLI's have premise, hypothesis and
/// label): the sentences of the named columns follow one another, row by row. Other files have no
/// columns, and a line of theirs is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TsvColumns(Vec<usize>);

impl Default for TsvColumns {
    fn default() -> Self {
        Self(vec![1])
    }
}

impl FromStr for TsvColumns {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let parse = |column: &str| column.trim().parse().ok().filter(|&column| column > 0);
        let columns: Option<Vec<usize>> = text.split(',').map(parse).collect();
        let columns =
            columns.ok_or_else(|| "write columns such as 1,2; the first is 1".to_owned())?;
        let repeated = (1..columns.len()).find(|&at| columns[..at].contains(&columns[at]));
        match repeated {
            Some(at) => Err(format!("column {} is named twice", columns[at])),
            None => Ok(Self(columns)),
        }
    }
}

impl fmt::Display for TsvColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&columns.join(","))
    }
}

#[derive(Debug)]
struct NamedFile {
    path: PathBuf,
    name: String,
    /// Standard input and pipes can be read once only, so they are copied to a temporary file.
    _spooled: Option<ScratchFolder>,
}

impl TextSource {
    /// Finds the files behind paths and globs; `-` is standard input, and a pipe such as `/dev/stdin`
    /// is read to its end.
    pub fn new(language: &str, patterns: &[String]) -> Result<Self> {
        let mut files = Vec::new();
        for pattern in patterns {
            match pattern.as_str() {
                "-" => files.push(spool_standard_input()?),
                pattern => files.extend(find(pattern)?),
            }
        }
        if files.is_empty() {
            let remedy = format!("give at least one file, as {language}=FILE");
            return Err(Error::request(format!("no text for language `{language}`"), remedy));
        }
        Ok(Self { language: language.to_owned(), files, columns: TsvColumns::default() })
    }

    /// The same files, of whose `.tsv` files these columns are read.
    pub fn with_columns(self, columns: &TsvColumns) -> Self {
        Self { columns: columns.clone(), ..self }
    }

    /// The language that the text is in.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|file| file.name.as_str())
    }

    /// Bytes on disk, compressed as they are.
    pub fn size(&self) -> Result<u64> {
        let size = |file: &NamedFile| Ok(file.path.metadata().at(&file.name, "look at")?.len());
        self.files.iter().map(size).sum()
    }

    /// A BLAKE3 hash of every byte of every file, and of the columns where they are not the first alone.
    /// Names and dates do not count: the same text copied elsewhere is the same text.
    pub fn fingerprint(&self) -> Result<blake3::Hash> {
        let mut whole = blake3::Hasher::new();
        if self.columns != TsvColumns::default() {
            whole.update(self.columns.to_string().as_bytes());
        }
        for file in &self.files {
            let mut hasher = blake3::Hasher::new();
            let opened = File::open(&file.path).at(&file.name, "open")?;
            hasher.update_reader(opened).at(&file.name, "read")?;
            whole.update(hasher.finalize().as_bytes());
        }
        Ok(whole.finalize())
    }

    /// Starts reading from the first line of the first file.
    pub fn lines(&self, rules: LineRules) -> LineReader<'_> {
        self.read(rules, false)
    }

    /// Starts reading likewise, but keeps blank lines and white space: for files that are parallel line
    /// by line.
    pub fn raw_lines(&self, rules: LineRules) -> LineReader<'_> {
        self.read(rules, true)
    }

    fn read(&self, rules: LineRules, raw: bool) -> LineReader<'_> {
        LineReader {
            files: self.files.iter(),
            current: None,
            columns: &self.columns,
            column: 0,
            rules,
            raw,
            line: Vec::new(),
            skipped: SkipCounts::default(),
            bytes: Arc::default(),
        }
    }
}

/// Whether a file has columns separated by tabs, by its name.
pub fn is_tsv(file: &str) -> bool {
    plain_name(file).ends_with(".tsv")
}

/// Refuses files of records by their names: every line of one would be taken for a sentence, field names and all.
fn refuse_records(path: &Path) -> Result<()> {
    let name = path.to_string_lossy().to_lowercase();
    let (what, remedy) = match plain_name(&name).rsplit_once('.').map(|(_, end)| end) {
        Some("jsonl" | "json" | "ndjson") => (
            "JSON",
            "write one sentence a line into a .txt, as in `jq -r .sentence FILE.jsonl > FILE.txt`",
        ),
        Some("csv") => (
            "a table with commas",
            "write it with tabs as .tsv, or the column of sentences as .txt",
        ),
        Some("parquet" | "arrow" | "xlsx") => {
            ("a table that is no text", "write the column of sentences as .txt, one a line")
        }
        _ => return Ok(()),
    };
    Err(Error::file(path, format!("is {what} by its name, and not a sentence a line"), remedy))
}

/// What the columns of a `.tsv` file are called in its header, beside the codes of languages.
const COLUMN_NAMES: &str = "sentence sentence1 sentence2 sentence_1 sentence_2 text text1 text2 source target src tgt \
                            source_sentence target_sentence translation premise hypothesis hypo label gold_label score \
                            id language";

/// Whether the first line of a `.tsv` file names its columns, and is no row.
fn is_header(line: &str) -> bool {
    let names = |cell: &str| COLUMN_NAMES.split(' ').any(|name| cell.trim().to_lowercase() == name);
    line.contains('\t') && line.split('\t').all(names)
}

/// The name that a file has when it is unpacked.
pub fn plain_name(file: &str) -> &str {
    file.trim_end_matches(".gz").trim_end_matches(".zst")
}

/// All that a file holds, unpacked: for files that are small enough.
pub fn read_whole(path: &Path) -> Result<Vec<u8>> {
    let name = display_name(path);
    let mut bytes = Vec::new();
    let mut reader = open_file(path)?;
    reader.read_to_end(&mut bytes).map_err(|error| unreadable(&name, error))?;
    Ok(bytes)
}

fn find(pattern: &str) -> Result<Vec<NamedFile>> {
    let named = |path: PathBuf| {
        let name = path.display().to_string();
        NamedFile { path, name, _spooled: None }
    };
    // A name that exists is that file, even if it holds a character that a glob would interpret.
    let path = Path::new(pattern);
    refuse_records(path)?;
    if path.is_file() {
        return Ok(vec![named(pattern.into())]);
    }
    if path.is_dir() {
        let remedy = "name a file in it, or all of them by a glob in quotes, as in 'FOLDER/*.txt'";
        return Err(Error::file(path, "is a folder, not a file", remedy));
    }
    if path.exists() {
        return Ok(vec![spool(pattern, File::open(path).at(path, "open")?)?]);
    }
    let matches = glob::glob(pattern).map_err(|error| {
        Error::request(
            format!("`{pattern}`: {error}"),
            "quote `[`, `*` and `?` or mend the pattern",
        )
    })?;
    let mut found = Vec::new();
    for path in matches {
        let path = path.map_err(io::Error::from).at(pattern, "list")?;
        if path.is_file() {
            refuse_records(&path)?;
            found.push(named(path));
        }
    }
    if found.is_empty() {
        let remedy = "check the path, and quote a glob so that the shell leaves it alone";
        return Err(Error::file(Path::new(pattern), "no such file, and no file matches", remedy));
    }
    Ok(found)
}

/// Whether standard input was read, which can be done once.
static SPOOLED: AtomicBool = AtomicBool::new(false);

fn spool_standard_input() -> Result<NamedFile> {
    if SPOOLED.swap(true, Ordering::Relaxed) {
        let reason = "standard input can be one text only, and is read once";
        return Err(Error::request(reason, "give a file in place of `-`"));
    }
    spool(STANDARD_INPUT, io::stdin().lock())
}

/// Copies what can be read once only to a temporary file.
fn spool(name: &str, reader: impl Read) -> Result<NamedFile> {
    let folder = ScratchFolder::new()?;
    let path = folder.path().join("text");
    let mut file = File::create_new(&path).at(&path, "make")?;
    let mut reader = BufReader::with_capacity(1 << 16, reader);
    // What has no end has lines at least, where it is text; `/dev/zero` would fill the disk.
    let (mut line, longest) = (0, limits::most_unpacked(0));
    loop {
        let buffer = reader.fill_buf().at(name, "read")?;
        if buffer.is_empty() {
            break;
        }
        file.write_all(buffer).at(&path, "copy standard input or a pipe to")?;
        let read = buffer.len();
        line = match memchr::memrchr(b'\n', buffer) {
            Some(end) => (read - end) as u64,
            None => line + read as u64,
        };
        if line > longest {
            let reason = format!("has a line of more than {} MB", longest >> 20);
            let remedy = "give text, or raise the limit by ISOGLOSS_MAX_BYTES, as 8G";
            return Err(Error::file(Path::new(name), reason, remedy));
        }
        reader.consume(read);
    }
    Ok(NamedFile { path, name: name.to_owned(), _spooled: Some(folder) })
}

/// Which lines are accepted, and what becomes of those that are not.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct LineRules {
    /// The longest line that is read, in bytes.
    pub longest: usize,
    /// Count and skip bad lines and empty files rather than stop.
    pub tolerant: bool,
    /// Whether the caller lets its user set `tolerant` and `longest_line`, which messages may then
    /// name.
    #[serde(skip)]
    pub adjustable: bool,
}

impl Default for LineRules {
    fn default() -> Self {
        Self { longest: 1 << 20, tolerant: false, adjustable: false }
    }
}

/// What a tolerant reader left out.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct SkipCounts {
    /// Lines that are not UTF-8.
    pub invalid: u64,
    /// Lines longer than allowed.
    pub too_long: u64,
    /// Files without a single line of text.
    pub empty_files: u64,
}

impl SkipCounts {
    /// How many things were left out in all.
    pub fn total(&self) -> u64 {
        self.invalid + self.too_long + self.empty_files
    }
}

/// Reads line after line. Blank lines only separate paragraphs and are skipped, unless lines are read
/// raw.
pub struct LineReader<'a> {
    files: std::slice::Iter<'a, NamedFile>,
    current: Option<OpenFile<'a>>,
    columns: &'a TsvColumns,
    /// How many of the columns of the line in hand were read already; 0 once all were.
    column: usize,
    rules: LineRules,
    /// Whether blank lines count and white space stays.
    raw: bool,
    line: Vec<u8>,
    skipped: SkipCounts,
    bytes: Arc<AtomicU64>,
}

struct OpenFile<'a> {
    name: &'a str,
    reader: Box<dyn BufRead + Send>,
    number: u64,
    holds_text: bool,
}

/// The outcome of reading up to the next line feed.
enum LineStatus {
    Line,
    TooLong,
    End,
}

impl LineReader<'_> {
    /// The next line that holds text, without its end.
    pub fn next_line(&mut self) -> Result<Option<&str>> {
        loop {
            if self.current.is_none() && !self.open_next()? {
                return Ok(None);
            }
            let open = self.current.as_mut().expect("a file was just opened");
            open.number += 1;
            let taken = take_line(&mut *open.reader, &mut self.line, self.rules.longest)
                .map_err(|error| unreadable(open.name, error))?;
            match taken {
                LineStatus::End => self.close()?,
                LineStatus::TooLong => self.refuse_long()?,
                LineStatus::Line if self.is_header() => {}
                LineStatus::Line if self.judge_line()? => break,
                LineStatus::Line => {}
            }
        }
        let text = std::str::from_utf8(&self.line).expect("just judged to be UTF-8");
        let whole = text.trim_start_matches('\u{feff}').trim_end_matches('\r');
        Ok(Some(if self.raw { whole } else { trim_line(text) }))
    }

    /// The next sentence: a line that holds text, or one of the columns of a line of a `.tsv` file
    /// ([`TsvColumns`]). Read raw, it keeps its white space, and a blank line has a blank sentence for
    /// each column.
    pub fn next_sentence(&mut self) -> Result<Option<&str>> {
        if self.column == 0 && self.next_line()?.is_none() {
            return Ok(None);
        }
        let text = std::str::from_utf8(&self.line).expect("just judged to be UTF-8");
        let text = text.trim_start_matches('\u{feff}').trim_end_matches('\r');
        let columns = &self.columns.0;
        let sentence = match is_tsv(self.name()) {
            false => text,
            true => {
                let column = columns[self.column];
                self.column = (self.column + 1) % columns.len();
                let blank = text.trim().is_empty().then_some("");
                text.split('\t').nth(column - 1).or(blank).ok_or_else(|| {
                    let columns = text.split('\t').count();
                    let reason =
                        format!("has {columns} columns, and column {column} is to be read");
                    let remedy = "name columns that every line has, with tabs between";
                    Error::line(self.name(), self.number(), reason, remedy)
                })?
            }
        };
        Ok(Some(if self.raw { sentence } else { sentence.trim() }))
    }

    /// Whether the line last read holds nothing but white space.
    pub fn line_is_blank(&self) -> bool {
        std::str::from_utf8(&self.line).is_ok_and(|text| trim_line(text).is_empty())
    }

    /// The name of the file that the line last read is in.
    pub fn name(&self) -> &str {
        self.current.as_ref().map_or("", |open| open.name)
    }

    /// The number of the line last read, in its file.
    pub fn number(&self) -> u64 {
        self.current.as_ref().map_or(0, |open| open.number)
    }

    /// What was left out so far.
    pub fn skipped(&self) -> SkipCounts {
        self.skipped
    }

    /// Bytes on disk read so far; the counter can be watched from elsewhere.
    pub fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn open_next(&mut self) -> Result<bool> {
        let Some(file) = self.files.next() else { return Ok(false) };
        let opened = File::open(&file.path).at(&file.name, "open")?;
        let size = opened.metadata().map_or(0, |metadata| metadata.len());
        let counted = ByteCounter { inner: opened, bytes: Arc::clone(&self.bytes) };
        let reader = decompress(&file.name, BufReader::with_capacity(1 << 16, counted), size)?;
        self.current = Some(OpenFile { name: &file.name, reader, number: 0, holds_text: false });
        Ok(true)
    }

    fn close(&mut self) -> Result<()> {
        let Some(open) = self.current.take() else { return Ok(()) };
        if open.holds_text {
            return Ok(());
        }
        if !self.rules.tolerant {
            let remedy = match self.rules.adjustable {
                true => "leave the file out, or set `tolerant` to skip it",
                false => "give a file that holds some",
            };
            return Err(Error::file(Path::new(open.name), "holds no text", remedy));
        }
        self.skipped.empty_files += 1;
        Ok(())
    }

    /// Whether the line in hand is the first of a `.tsv` file and names its columns, which is said and not read.
    fn is_header(&self) -> bool {
        let Some(open) = self.current.as_ref().filter(|open| open.number == 1) else {
            return false;
        };
        let header = is_tsv(open.name)
            && std::str::from_utf8(&self.line).is_ok_and(|line| is_header(trim_line(line)));
        if header {
            files::warn(&format!("{}:1: names columns, and is left out", open.name));
        }
        header
    }

    /// Whether the line in hand holds text; a line that is not UTF-8 is an error or is counted.
    fn judge_line(&mut self) -> Result<bool> {
        let open = self.current.as_mut().expect("a line comes from an open file");
        match std::str::from_utf8(&self.line) {
            Ok(text) => {
                let text = trim_line(text);
                open.holds_text |= !text.is_empty();
                Ok(self.raw || !text.is_empty())
            }
            Err(error) => {
                let reason = format!("not UTF-8 at byte {}", error.valid_up_to() + 1);
                let remedy = match self.rules.adjustable {
                    true => {
                        "convert the file (`iconv -t UTF-8`), or set `tolerant` to skip such lines"
                    }
                    false => "convert the file (`iconv -t UTF-8`)",
                };
                self.refuse(reason, remedy)?;
                self.skipped.invalid += 1;
                Ok(false)
            }
        }
    }

    fn refuse_long(&mut self) -> Result<()> {
        let reason = format!("a line longer than {} bytes", self.rules.longest);
        let remedy = match self.rules.adjustable {
            true => "break the line up, raise `longest_line`, or set `tolerant` to skip it",
            false => "break the line up",
        };
        self.refuse(reason, remedy)?;
        self.skipped.too_long += 1;
        Ok(())
    }

    fn refuse(&mut self, reason: String, remedy: &'static str) -> Result<()> {
        let open = self.current.as_mut().expect("a line comes from an open file");
        open.holds_text = true;
        if self.rules.tolerant {
            return Ok(());
        }
        Err(Error::line(open.name, open.number, reason, remedy))
    }
}

/// Opens one file, plain, gzip or zstd, for its bytes; `-` is standard input.
pub fn open_file(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let reader = files::open(path)?;
    // Of standard input nothing is known.
    let size =
        if files::is_standard(path) { 0 } else { path.metadata().map_or(0, |file| file.len()) };
    decompress(&display_name(path), BufReader::with_capacity(1 << 18, reader), size)
}

/// An error while reading: the system's, which has a number, or a decompressor's, which has none.
pub fn unreadable(name: &str, source: io::Error) -> Error {
    match source.raw_os_error() {
        Some(_) => files::Error::Io { doing: "read", path: name.into(), source }.into(),
        None if limits::is_too_large(&source) => {
            Error::caused(format!("{name}: the compressed file holds too much"), source)
        }
        None => {
            let message = format!(
                "{name}: the compressed file is cut short or damaged (download or make it again, and \
                 test it with `gzip -t` or `zstd -t`)"
            );
            Error::caused(message, source)
        }
    }
}

/// Removes the byte-order mark and white space around a line, as neither is text.
fn trim_line(text: &str) -> &str {
    text.trim_start_matches('\u{feff}').trim()
}

/// Reads up to the next line feed. The rest of a line that is too long is skipped without being kept
/// in memory.
fn take_line(
    reader: &mut dyn BufRead,
    line: &mut Vec<u8>,
    longest: usize,
) -> io::Result<LineStatus> {
    line.clear();
    let (mut started, mut too_long) = (false, false);
    loop {
        let buffer = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            break;
        }
        started = true;
        let feed = memchr::memchr(b'\n', buffer);
        let chunk = &buffer[..feed.unwrap_or(buffer.len())];
        too_long |= line.len() + chunk.len() > longest;
        if !too_long {
            line.extend_from_slice(chunk);
        }
        let used = chunk.len() + usize::from(feed.is_some());
        reader.consume(used);
        if feed.is_some() {
            break;
        }
    }
    Ok(match (started, too_long) {
        (false, _) => LineStatus::End,
        (true, true) => LineStatus::TooLong,
        (true, false) => LineStatus::Line,
    })
}

/// Decompresses a reader of `size` bytes whose first are those of gzip or zstd, as far as
/// [`limits`] allow.
fn decompress<R>(name: &str, mut reader: R, size: u64) -> Result<Box<dyn BufRead + Send>>
where
    R: BufRead + Send + 'static,
{
    let start = reader.fill_buf().map_err(|error| unreadable(name, error))?;
    files::refuse_pointer(Path::new(name), start)?;
    refuse_unknown_compression(name, start)?;
    refuse_utf16(name, start)?;
    let decoder: Box<dyn Read + Send> = if start.starts_with(&[0x1f, 0x8b]) {
        Box::new(MultiGzDecoder::new(reader))
    } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let decoder = zstd::stream::read::Decoder::with_buffer(reader);
        Box::new(decoder.map_err(|error| unreadable(name, error))?)
    } else {
        return Ok(Box::new(reader));
    };
    Ok(Box::new(BufReader::with_capacity(1 << 17, limits::bounded(decoder, size))))
}

/// Names the compressions that are often met and not read.
fn refuse_unknown_compression(name: &str, start: &[u8]) -> Result<()> {
    // After its size, a first block; or, of nothing, the end.
    let blocks: [&[u8]; 2] = [b"1AY&SY", b"\x17rE8P\x90"];
    let bzip2 = start.starts_with(b"BZh")
        && start.get(4..).is_some_and(|rest| blocks.iter().any(|block| rest.starts_with(block)));
    let (by, remedy) = if start.starts_with(b"\xfd7zXZ\0") {
        ("xz", "unpack it with `xz -d`, or pack it with gzip or zstd")
    } else if bzip2 {
        ("bzip2", "unpack it with `bzip2 -d`, or pack it with gzip or zstd")
    } else {
        return Ok(());
    };
    let reason = format!("is compressed by {by}, which is not read");
    Err(Error::file(Path::new(name), reason, remedy))
}

/// Names UTF-16, which Windows programs write, instead of complaining about its first byte.
fn refuse_utf16(name: &str, start: &[u8]) -> Result<()> {
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        let remedy = "convert it with `iconv -f UTF-16 -t UTF-8`";
        return Err(Error::file(Path::new(name), "is UTF-16 text, not UTF-8", remedy));
    }
    Ok(())
}

/// Counts the bytes that pass, so that progress is known even through a decompressor.
struct ByteCounter<R> {
    inner: R,
    bytes: Arc<AtomicU64>,
}

impl<R: Read> Read for ByteCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    use tempfile::NamedTempFile;

    fn file(bytes: &[u8]) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    fn read(bytes: &[u8], rules: LineRules) -> Result<(Vec<String>, SkipCounts)> {
        let file = file(bytes);
        let source = TextSource::new("en", &[file.path().display().to_string()])?;
        let mut lines = source.lines(rules);
        let mut read = Vec::new();
        while let Some(line) = lines.next_line()? {
            read.push(line.to_owned());
        }
        Ok((read, lines.skipped()))
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const TOLERANT: LineRules = LineRules { longest: 64, tolerant: true, adjustable: true };

    #[test]
    fn what_has_no_end_and_no_lines_is_not_copied_for_ever() {
        let error = spool("zeros", io::repeat(0)).unwrap_err().to_string();
        assert!(error.contains("has a line of more than 64 MB"), "{error}");
    }

    #[test]
    fn every_compression_reads_the_same() {
        let text = "\u{feff}one\r\n\n  two  \nthree".as_bytes();
        let expected = vec!["one".to_owned(), "two".to_owned(), "three".to_owned()];
        let mut two_members = gzip(text);
        two_members.extend(gzip(b"\nfour\n"));
        assert_eq!(read(text, LineRules::default()).unwrap().0, expected);
        assert_eq!(read(&gzip(text), LineRules::default()).unwrap().0, expected);
        let zstd = zstd::encode_all(text, 1).unwrap();
        assert_eq!(read(&zstd, LineRules::default()).unwrap().0, expected);
        assert_eq!(read(&two_members, LineRules::default()).unwrap().0[3], "four");
    }

    #[test]
    fn raw_lines_keep_their_places() {
        let file = file("\u{feff}one \r\n\n\ttwo\n".as_bytes());
        let source = TextSource::new("en", &[file.path().display().to_string()]).unwrap();
        let mut lines = source.raw_lines(LineRules::default());
        for (number, expected) in [(1, "one "), (2, ""), (3, "\ttwo")] {
            assert_eq!(lines.next_line().unwrap(), Some(expected));
            assert_eq!(lines.number(), number);
        }
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn columns_follow_row_by_row() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xnli.tsv").display().to_string();
        let plain = folder.path().join("more.txt").display().to_string();
        std::fs::write(&path, "a man\ta boy \tneutral\n\nit rains\tit pours\tneutral\n").unwrap();
        std::fs::write(&plain, "one\ttwo\n").unwrap();
        let read = |columns: &str, raw: bool| -> Result<Vec<String>> {
            let files = [path.clone(), plain.clone()];
            let source = TextSource::new("en", &files)?.with_columns(&columns.parse().unwrap());
            let rules = LineRules::default();
            let mut lines = if raw { source.raw_lines(rules) } else { source.lines(rules) };
            let mut read = Vec::new();
            while let Some(sentence) = lines.next_sentence()? {
                read.push(sentence.to_owned());
            }
            Ok(read)
        };
        assert_eq!(read("1", false).unwrap(), ["a man", "it rains", "one\ttwo"]);
        let both = ["a man", "a boy", "it rains", "it pours", "one\ttwo"];
        assert_eq!(read("1,2", false).unwrap(), both);
        let raw = ["a boy ", "a man", "", "", "it pours", "it rains", "one\ttwo"];
        assert_eq!(read("2,1", true).unwrap(), raw);
        let error = read("4", false).unwrap_err().to_string();
        assert!(error.contains("xnli.tsv:1: has 3 columns, and column 4"), "{error}");
        for wrong in ["", "0", "a", "1,1"] {
            assert!(wrong.parse::<TsvColumns>().is_err(), "{wrong}");
        }
        let source = || TextSource::new("en", std::slice::from_ref(&path)).unwrap();
        let other = source().with_columns(&"2".parse().unwrap()).fingerprint().unwrap();
        assert_ne!(source().fingerprint().unwrap(), other);
    }

    #[test]
    fn bad_lines_are_named_or_counted() {
        let text = b"good\nbad \xff\nfine\n";
        let error = read(text, LineRules::default()).unwrap_err().to_string();
        assert!(error.contains(":2: not UTF-8 at byte 5"), "{error}");
        assert!(!error.contains("`tolerant`"), "a key that not every caller has: {error}");
        let adjustable = LineRules { adjustable: true, ..LineRules::default() };
        assert!(read(text, adjustable).unwrap_err().to_string().contains("set `tolerant`"));
        let (lines, skipped) = read(text, TOLERANT).unwrap();
        assert_eq!(lines, ["good", "fine"]);
        assert_eq!(skipped, SkipCounts { invalid: 1, ..SkipCounts::default() });
    }

    #[test]
    fn a_long_line_is_refused_without_being_held() {
        let mut text = vec![b'x'; 10 << 20];
        text.extend_from_slice(b"\nshort\n");
        let error = read(&text, LineRules::default()).unwrap_err().to_string();
        assert!(error.contains(":1: a line longer than 1048576 bytes"), "{error}");

        let file = file(&text);
        let source = TextSource::new("en", &[file.path().display().to_string()]).unwrap();
        let mut lines = source.lines(LineRules { tolerant: true, ..LineRules::default() });
        assert_eq!(lines.next_line().unwrap(), Some("short"));
        assert_eq!(lines.skipped().too_long, 1);
        assert!(lines.line.capacity() <= 2 << 20, "held {}", lines.line.capacity());
    }

    #[test]
    fn an_empty_file_and_a_missing_one_are_errors() {
        let error = read(b"\n \n", LineRules::default()).unwrap_err().to_string();
        assert!(error.contains("holds no text"), "{error}");
        assert_eq!(read(b"", TOLERANT).unwrap().1.empty_files, 1);
        let error = TextSource::new("en", &["no/such*file".into()]).unwrap_err().to_string();
        assert!(error.contains("no/such*file"), "{error}");
        assert!(TextSource::new("en", &[]).unwrap_err().to_string().contains("`en`"));
    }

    #[test]
    fn a_cut_archive_is_an_error() {
        let text = "many different words in a row, so that it is cut within".as_bytes();
        for whole in [gzip(text), zstd::encode_all(text, 1).unwrap()] {
            let error = read(&whole[..whole.len() / 2], LineRules::default()).unwrap_err();
            let error = error.to_string();
            assert!(error.contains("cut short") && error.contains("again"), "{error}");
            assert!(!error.contains("disk"), "{error}");
        }
    }

    /// Half a gigabyte of nothing in half a megabyte.
    #[test]
    fn a_bomb_is_refused_with_the_limit_and_how_to_raise_it() {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let line = [&[b'x'; 63][..], b"\n"].concat().repeat(1 << 14);
        (0..160).for_each(|_| gzip.write_all(&line).unwrap());
        let bomb = gzip.finish().unwrap();
        let error = read(&bomb, TOLERANT).unwrap_err();
        assert!(error.to_string().contains("holds too much"), "{error:?}");
        let error = std::error::Error::source(&error).unwrap().to_string();
        assert!(
            error.contains("unpacks to more than") && error.contains("ISOGLOSS_MAX_BYTES"),
            "{error}"
        );
        let bomb = file(&bomb);
        let error = read_whole(bomb.path()).unwrap_err().to_string();
        assert!(error.contains("holds too much"), "{error}");
    }

    #[test]
    fn other_compressions_are_named() {
        let starts: [(&[u8], &str); 3] = [
            (b"\xfd7zXZ\0\0\x04\xe6\xd6\xb4F", "by xz, which is not read; unpack it with `xz -d`"),
            (
                b"BZh91AY&SY\xb6\xd5\xc7\x10",
                "by bzip2, which is not read; unpack it with `bzip2 -d`",
            ),
            (b"BZh9\x17rE8P\x90\0\0\0\0", "by bzip2"),
        ];
        for (start, expected) in starts {
            let error = read(start, TOLERANT).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert_eq!(read(b"BZh9 is a word", LineRules::default()).unwrap().0, ["BZh9 is a word"]);
    }

    #[test]
    fn utf16_is_named() {
        let error = read(b"\xff\xfec\0a\0t\0", TOLERANT).unwrap_err().to_string();
        assert!(error.contains("is UTF-16 text") && error.contains("iconv -f UTF-16"), "{error}");
    }

    #[test]
    fn a_folder_is_called_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display().to_string();
        let error = TextSource::new("en", &[path]).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
    }

    #[test]
    fn the_system_s_own_words_are_left_to_the_chain_of_causes() {
        let source = io::Error::from_raw_os_error(2);
        let words = source.to_string();
        let error = unreadable("file", source);
        assert!(!error.to_string().contains(&words), "{error}");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), words);
    }

    #[test]
    fn globs_read_in_order_and_fingerprints_follow_content() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("b.txt", "second\n"), ("a.txt", "first\n")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let glob = folder.path().join("*.txt").display().to_string();
        let source = TextSource::new("en", &[glob]).unwrap();
        let mut lines = source.lines(LineRules::default());
        assert_eq!(lines.next_line().unwrap(), Some("first"));
        assert_eq!(lines.next_line().unwrap(), Some("second"));
        let before = source.fingerprint().unwrap();
        assert_eq!(before, source.fingerprint().unwrap());
        std::fs::write(folder.path().join("b.txt"), "changed\n").unwrap();
        assert_ne!(before, source.fingerprint().unwrap());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn any_bytes_are_read_or_counted(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            // Bytes that happen to start like an archive are damaged archives: an error, no panic.
            if let Ok((lines, skipped)) = read(&bytes, TOLERANT) {
                let expected = bytes.split(|&byte| byte == b'\n');
                let expected: Vec<_> = expected
                    .filter(|line| line.len() <= TOLERANT.longest)
                    .filter_map(|line| std::str::from_utf8(line).ok())
                    .map(trim_line)
                    .filter(|line| !line.is_empty())
                    .collect();
                prop_assert_eq!(&lines, &expected);
                let bad = bytes.split(|&byte| byte == b'\n').filter(|line| {
                    line.len() > TOLERANT.longest || std::str::from_utf8(line).is_err()
                });
                prop_assert_eq!(skipped.invalid + skipped.too_long, bad.count() as u64);
            }
            let _ = read(&bytes, LineRules::default());
        }

        #[test]
        fn any_text_survives_compression(text in "\\PC{0,80}(\n\\PC{0,80}){0,5}") {
            let plain = read(text.as_bytes(), LineRules { tolerant: true, ..LineRules::default() });
            let packed = read(&gzip(text.as_bytes()), LineRules { tolerant: true, ..LineRules::default() });
            prop_assert_eq!(plain.unwrap().0, packed.unwrap().0);
        }
    }
}
