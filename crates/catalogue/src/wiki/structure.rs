//! What is not shown as running text is taken away whole: comments, references, templates, tables.
//!
//! Markup of this kind may be nested, crossed and left open. Every opening is looked at once and
//! kept on a stack until something closes it; what is never closed is no markup. So time is linear
//! whatever the text.

use memchr::{memchr, memchr_iter, memchr3_iter, memmem};

/// Elements whose content is no running text.
pub(super) const HIDDEN: [&str; 24] = [
    "ref",
    "references",
    "math",
    "chem",
    "ce",
    "gallery",
    "timeline",
    "syntaxhighlight",
    "source",
    "score",
    "imagemap",
    "hiero",
    "templatedata",
    "graph",
    "mapframe",
    "maplink",
    "indicator",
    "table",
    "style",
    "script",
    "categorytree",
    "inputbox",
    "nowiki",
    "pre",
];

/// Characters that mean something to a parser, and what stands for them where they must not.
const SPECIAL: &str = "[]{}'|<=*#:;!_-";
const FIRST_STAND_IN: u32 = 0xE000;

/// Lets markup characters pass for plain ones until [`restore`].
fn protect(c: char) -> char {
    let place = SPECIAL.chars().position(|special| special == c);
    place.and_then(|place| char::from_u32(FIRST_STAND_IN + place as u32)).unwrap_or(c)
}

/// The character that a stand-in stands for.
pub(super) fn restore(c: char) -> char {
    let place = (c as u32).checked_sub(FIRST_STAND_IN);
    place.and_then(|place| SPECIAL.chars().nth(place as usize)).unwrap_or(c)
}

/// The name of a tag that begins at `<` or `</`, and whether it closes.
pub(super) fn tag_name(text: &str) -> (&str, bool) {
    let text = &text[1..];
    let (text, closes) = match text.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (text, false),
    };
    let end = text.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(text.len());
    (&text[..end], closes)
}

/// Finds the next of something, and remembers that there is none after the first miss.
pub(super) struct Next<'a> {
    text: &'a str,
    found: Option<usize>,
    byte: u8,
    over: bool,
}

impl<'a> Next<'a> {
    pub(super) fn new(text: &'a str, byte: u8) -> Self {
        Self { text, found: None, byte, over: false }
    }

    /// The first place at `from` or later.
    pub(super) fn after(&mut self, from: usize) -> Option<usize> {
        if self.over || self.found.is_some_and(|found| found >= from) {
            return self.found.filter(|_| !self.over);
        }
        self.found = memchr(self.byte, &self.text.as_bytes()[from..]).map(|at| from + at);
        self.over = self.found.is_none();
        self.found
    }
}

/// The text without comments and without elements whose content is hidden.
pub(super) fn without_hidden(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut ends, mut closed) =
        (Next::new(text, b'>'), Closers { text, over: [false; HIDDEN.len()] });
    let mut at = 0;
    while let Some(found) = memchr(b'<', &text.as_bytes()[at..]) {
        let start = at + found;
        shown.push_str(&text[at..start]);
        let rest = &text[start..];
        if rest.starts_with("<!--") {
            // One that is left open hides the rest, as it does on the site.
            at = memmem::find(&rest.as_bytes()[4..], b"-->")
                .map_or(text.len(), |end| start + 4 + end + 3);
            continue;
        }
        let (name, closes) = tag_name(rest);
        let known = HIDDEN.iter().position(|hidden| hidden.eq_ignore_ascii_case(name));
        let (Some(which), false, Some(end)) = (known, closes, ends.after(start)) else {
            shown.push('<');
            at = start + 1;
            continue;
        };
        at = end + 1;
        if text[..end].ends_with('/') {
            continue;
        }
        if let Some((content_end, after)) = closed.after(which, at) {
            if matches!(HIDDEN[which], "nowiki" | "pre") {
                shown.extend(text[at..content_end].chars().map(protect));
            }
            at = after;
        }
    }
    shown.push_str(&text[at..]);
    shown
}

struct Closers<'a> {
    text: &'a str,
    over: [bool; HIDDEN.len()],
}

impl Closers<'_> {
    /// Where the next closing tag of a kind begins, and where it ends.
    fn after(&mut self, which: usize, from: usize) -> Option<(usize, usize)> {
        if self.over[which] {
            return None;
        }
        let name = HIDDEN[which];
        for found in memmem::find_iter(&self.text.as_bytes()[from..], b"</") {
            let start = from + found;
            if tag_name(&self.text[start..]).0.eq_ignore_ascii_case(name) {
                let end = memchr(b'>', &self.text.as_bytes()[start..]);
                return end.map(|end| (start, start + end + 1));
            }
        }
        self.over[which] = true;
        None
    }
}

/// What can be opened and closed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Template,
    Table,
}

pub(super) fn without_blocks(text: &str) -> String {
    let mut blocks = Blocks::default();
    let bytes = text.as_bytes();
    let mut passed = 0;
    for at in memchr3_iter(b'{', b'}', b'|', bytes) {
        if at < passed {
            continue;
        }
        passed = at + 1;
        match bytes[at] {
            b'{' => {
                let run = run(bytes, at);
                if run == 1 && bytes.get(at + 1) == Some(&b'|') && begins_line(bytes, at) {
                    blocks.open(Block::Table, at);
                }
                (0..run / 2).for_each(|pair| blocks.open(Block::Template, at + 2 * pair));
                passed = at + run;
            }
            b'}' => passed = blocks.close_templates(at, run(bytes, at)),
            _ if bytes.get(at + 1) == Some(&b'}') && begins_line(bytes, at) => {
                // `|}}` is the end of a template whose last parameter is empty.
                let run = run(bytes, at + 1);
                if run != 2 {
                    blocks.close(Block::Table, at + 2);
                    passed = blocks.close_templates(at + 2, run - 1);
                }
            }
            _ => {}
        }
    }
    blocks.cut(text)
}

/// How often a character follows itself.
pub(super) fn run(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|&&byte| byte == bytes[at]).count()
}

/// Whether nothing but indentation stands before.
fn begins_line(bytes: &[u8], at: usize) -> bool {
    let before = bytes[at.saturating_sub(16)..at].iter().rev();
    let mut before = before.skip_while(|byte| matches!(byte, b' ' | b':' | b'*' | b'\t'));
    before.next().map_or(at <= 16, |&byte| byte == b'\n')
}

/// What is open, and what was opened and closed.
#[derive(Default)]
struct Blocks {
    open: Vec<(Block, usize)>,
    /// How many of each kind are open.
    counts: [usize; 2],
    closed: Vec<(usize, usize)>,
}

impl Blocks {
    fn open(&mut self, block: Block, at: usize) {
        self.counts[block as usize] += 1;
        self.open.push((block, at));
    }

    /// Closes the innermost of a kind, and whatever was left open in it.
    fn close(&mut self, block: Block, end: usize) {
        if self.counts[block as usize] == 0 {
            return;
        }
        while let Some((kind, start)) = self.open.pop() {
            self.counts[kind as usize] -= 1;
            if kind == block {
                self.closed.push((start, end));
                return;
            }
        }
    }

    /// Closes as many templates as there are pairs of braces; a third brace is a parameter's.
    fn close_templates(&mut self, at: usize, run: usize) -> usize {
        for pair in 1..=run / 2 {
            let end = if pair == run / 2 { at + run } else { at + 2 * pair };
            self.close(Block::Template, end);
        }
        at + run
    }

    /// The text outside of everything that was closed.
    fn cut(mut self, text: &str) -> String {
        self.closed.sort_unstable();
        let mut kept = String::with_capacity(text.len());
        let mut at = 0;
        for (start, end) in self.closed {
            if start >= at {
                kept.push_str(&text[at..start]);
                at = end;
            }
        }
        kept.push_str(&text[at..]);
        kept
    }
}

pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let ends = memchr_iter(b'\n', text.as_bytes()).chain([text.len()]);
    let mut at = 0;
    ends.map(move |end| {
        let line = &text[at.min(end)..end];
        at = end + 1;
        line
    })
}
