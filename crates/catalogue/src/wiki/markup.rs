//! Wiki text in, paragraphs out.

use std::collections::HashSet;

use quick_xml::escape::resolve_html5_entity;

use super::inline::without_inline;
use super::structure::{lines, restore, without_blocks, without_hidden};

/// Names of namespaces whose links show no text: files and categories.
#[derive(Clone, Debug)]
pub struct Names {
    hidden: HashSet<String>,
}

impl Default for Names {
    /// The English names, which hold on every Wikipedia.
    fn default() -> Self {
        let english = ["file", "image", "media", "category"];
        Self { hidden: english.map(str::to_owned).into() }
    }
}

impl Names {
    /// Adds the name in the language of a dump.
    pub fn hide(&mut self, name: &str) {
        self.hidden.insert(name.trim().to_lowercase());
    }

    pub(super) fn is_hidden(&self, name: &str) -> bool {
        self.hidden.contains(&name.to_lowercase())
    }
}

/// The paragraphs of an article, each with its end of line. Headings, lists, tables, templates,
/// references, files and categories are left out; links show their text.
pub fn paragraphs(text: &str, names: &Names) -> String {
    let text = without_inline(&without_blocks(&without_hidden(text)), names);
    let mut paragraphs = String::with_capacity(text.len() + 1);
    for line in lines(&text).filter(|line| is_prose(line)) {
        let start = paragraphs.len();
        tidy(line, &mut paragraphs);
        match paragraphs[start..].contains(char::is_alphabetic) {
            true => paragraphs.push('\n'),
            false => paragraphs.truncate(start),
        }
    }
    paragraphs
}

/// Whether a line is running text, and not a list, a heading, or what is left of a table.
fn is_prose(line: &str) -> bool {
    let trimmed = line.trim();
    let heading = trimmed.starts_with('=') && trimmed.ends_with('=');
    let other = trimmed.starts_with(['*', '#', ':', ';', '|', '!']) || trimmed.starts_with("{|");
    !heading && !other && !trimmed.is_empty()
}

/// Writes a line with its entities resolved, single spaces, and no brackets round nothing.
fn tidy(line: &str, paragraphs: &mut String) {
    let mut tidy = Tidy {
        start: paragraphs.len(),
        written: paragraphs,
        bracket: None,
        space: false,
        removed: false,
    };
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        match entity(&line[at..]) {
            Some((text, length)) => {
                text.chars().for_each(|c| tidy.push(c));
                at += length;
            }
            None => {
                tidy.push(restore(c));
                at += c.len_utf8();
            }
        }
    }
}

struct Tidy<'a> {
    start: usize,
    written: &'a mut String,
    /// An opening bracket in which nothing has been said yet, and whether a space comes before.
    bracket: Option<(char, bool)>,
    /// Whether a space was seen since the last character.
    space: bool,
    /// Whether a bracket was taken away since then.
    removed: bool,
}

impl Tidy<'_> {
    fn push(&mut self, c: char) {
        match c {
            // Marks of direction and possible breaks are no part of a word.
            '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => {}
            _ if c.is_whitespace() || c.is_control() => self.space = true,
            '(' | '（' => {
                self.open();
                self.bracket = Some((c, self.space));
                self.space = false;
            }
            ')' | '）' if self.bracket.is_some() => {
                self.space = self.bracket.take().is_some_and(|(_, space)| space);
                self.removed = true;
            }
            // Templates that are gone leave their commas behind.
            ',' | ';' | '，' | '；' | '、' | '/' if self.bracket.is_some() => {}
            _ => {
                self.open();
                self.write(c);
            }
        }
    }

    /// Writes the bracket in which something is said after all.
    fn open(&mut self) {
        if let Some((bracket, space)) = self.bracket.take() {
            self.space = space;
            self.write(bracket);
        }
    }

    fn write(&mut self, c: char) {
        let close = c == ',' || (self.removed && matches!(c, '.' | ';' | ':'));
        if self.space && !close && self.written.len() > self.start {
            self.written.push(' ');
        }
        (self.space, self.removed) = (false, false);
        self.written.push(c);
    }
}

/// The text of an entity at the beginning, and its length there.
fn entity(text: &str) -> Option<(String, usize)> {
    if !text.starts_with('&') {
        return None;
    }
    let end = text.bytes().take(34).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let text = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?.to_string()
        }
        None => resolve_html5_entity(name)?.to_owned(),
    };
    Some((text, end + 1))
}
