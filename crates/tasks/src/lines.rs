//! The lines of a labelled file, blank ones and all: in these formats a blank line means something.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The numbered lines of a text file that was read whole.
pub(crate) struct NumberedLines {
    path: PathBuf,
    text: String,
}

impl NumberedLines {
    /// Reads a file of UTF-8, compressed or not, that holds something.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        if path.is_dir() {
            let remedy = "name one labelled file in it";
            return Err(Error::file(path, "is a folder, not a labelled file", remedy));
        }
        let bytes = text::read_whole(path)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            Error::line(path, line, "not UTF-8", "convert the file (`iconv -t UTF-8`)")
        })?;
        // A byte order mark is no part of the first word.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        if text.trim().is_empty() {
            return Err(Error::file(path, "holds nothing", "name the file that was meant"));
        }
        Ok(Self { path: path.to_owned(), text })
    }

    /// Every line with its number, counted from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// Every line that is not blank, with its number.
    pub(crate) fn full(&self) -> impl Iterator<Item = (usize, &str)> {
        self.numbered().filter(|(_, line)| !line.trim().is_empty())
    }

    /// Runs of lines between blank ones.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = Vec<(usize, &str)>> {
        let mut lines = self.numbered().peekable();
        std::iter::from_fn(move || {
            while lines.next_if(|(_, line)| line.trim().is_empty()).is_some() {}
            let mut block = Vec::new();
            while let Some(line) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
                block.push(line);
            }
            (!block.is_empty()).then_some(block)
        })
    }

    /// The complaint about one of the lines.
    pub(crate) fn wrong(&self, line: usize, reason: impl Display, remedy: impl Display) -> Error {
        Error::line(&self.path, line, reason, remedy)
    }
}

/// Labels from which on a file whose column of labels holds sentences is told from one of few items.
const MANY_LABELS: usize = 20;
/// Characters from which on a label in a script without spaces is a sentence.
const LONG_LABEL: usize = 24;

/// Refuses a column of labels that holds sentences: nearly as many different ones as lines, and most of several words.
pub(crate) fn check_labels<'a>(
    path: &Path,
    column: usize,
    labels: impl Iterator<Item = &'a str>,
    remedy: impl Display,
) -> Result<()> {
    let (mut items, mut different) = (0, BTreeSet::new());
    labels.for_each(|label| {
        items += 1;
        different.insert(label);
    });
    let is_sentence = |label: &&&str| label.contains(' ') || label.chars().count() > LONG_LABEL;
    let sentences = different.iter().filter(is_sentence).count();
    let count = different.len();
    if count <= MANY_LABELS || 2 * count <= items || 2 * sentences <= count {
        return Ok(());
    }
    let reason = format!(
        "{count} different labels in {items} lines, such as `{}`: is the label in column {column}?",
        shortened(different.first().expect("there are some"))
    );
    Err(Error::file(path, reason, remedy))
}

/// The start of a text that a message quotes.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// What the column of labels may be called in the header of a file of columns.
const HEADERS: [&str; 4] = ["label", "gold_label", "class", "category"];

/// Whether the label of a file's first line is the name of the column: the line is a header then.
pub(crate) fn is_header(label: &str) -> bool {
    HEADERS.contains(&label.to_lowercase().as_str())
}
