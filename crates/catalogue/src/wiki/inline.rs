//! Markup within running text: links become what they show, and the rest goes.

use super::markup::Names;
use super::structure::{HIDDEN, Next, run, tag_name};

/// Links within links that are followed; files with captions have two or three.
const DEEPEST: usize = 32;

/// Elements that may stand in running text; anything else after `<` is a comparison.
const TAGS: &str = "abbr b bdi bdo big blockquote br center cite code data dd del dfn div dl dt em font hr i includeonly \
                    ins kbd li mark noinclude nowiki ol onlyinclude p poem q rb rp rt ruby s samp section small span \
                    strike strong sub sup td th time tr tt u ul var wbr";

/// Elements that part words.
const BREAKS: [&str; 9] = ["br", "p", "div", "li", "tr", "td", "th", "dd", "dt"];

/// What may begin an address in single brackets.
const SCHEMES: [&str; 5] = ["http://", "https://", "//", "ftp://", "mailto:"];

/// A link whose end has not come yet.
struct Link {
    /// Where it begins in what was written.
    start: usize,
    /// The first bar, before which its target stands.
    bar: Option<usize>,
    /// Addresses that were open when it began.
    addresses: usize,
}

pub(super) fn without_inline(text: &str, names: &Names) -> String {
    let mut inline = Inline {
        text,
        names,
        written: String::with_capacity(text.len()),
        links: Vec::new(),
        addresses: 0,
        tags: Next::new(text, b'>'),
        variants: Next::new(text, b'}'),
    };
    let bytes = text.as_bytes();
    let special = |byte: &u8| b"[]<'|\n{}-_".contains(byte);
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(special) {
        inline.written.push_str(&text[at..at + found]);
        at = inline.step(at + found);
    }
    inline.written.push_str(&text[at..]);
    inline.written
}

struct Inline<'a> {
    text: &'a str,
    names: &'a Names,
    written: String,
    links: Vec<Link>,
    /// Addresses in single brackets that are open.
    addresses: usize,
    tags: Next<'a>,
    variants: Next<'a>,
}

impl Inline<'_> {
    /// Handles the character at a place, and says where to go on.
    fn step(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let next = bytes.get(at + 1).copied();
        match (bytes[at], next) {
            (b'[', Some(b'[')) => self.open_link(at),
            (b'[', _) => self.open_address(at),
            (b']', _) if self.addresses > self.links.last().map_or(0, |link| link.addresses) => {
                self.addresses -= 1;
                at + 1
            }
            (b']', Some(b']')) => {
                self.close_link();
                at + 2
            }
            (b'|', _) => {
                let place = self.written.len();
                if let Some(link) = self.links.last_mut() {
                    link.bar.get_or_insert(place);
                }
                self.keep(at)
            }
            (b'\n', Some(b'\n')) => {
                // No link goes on in another paragraph.
                self.links.clear();
                self.addresses = 0;
                self.keep(at)
            }
            (b'\n', _) if self.links.is_empty() => {
                self.addresses = 0;
                self.keep(at)
            }
            (b'\'', Some(b'\'')) => self.quotes(at),
            (b'<', _) => self.tag(at),
            (b'{', Some(b'{')) | (b'}', Some(b'}')) => at + run(bytes, at),
            (b'-', Some(b'{')) => self.variant(at),
            (b'_', Some(b'_')) => self.switch(at),
            _ => self.keep(at),
        }
    }

    /// Writes a character of one byte.
    fn keep(&mut self, at: usize) -> usize {
        self.written.push_str(&self.text[at..at + 1]);
        at + 1
    }

    fn open_link(&mut self, at: usize) -> usize {
        if self.links.len() < DEEPEST {
            let (start, addresses) = (self.written.len(), self.addresses);
            self.links.push(Link { start, bar: None, addresses });
        }
        at + 2
    }

    fn close_link(&mut self) {
        let Some(Link { start, bar, addresses }) = self.links.pop() else { return };
        self.addresses = addresses;
        let target = &self.written[start..bar.unwrap_or(self.written.len())];
        let (target, plain) = match target.trim_start().strip_prefix(':') {
            Some(rest) => (rest, true),
            None => (target, false),
        };
        let space = target.split_once(':').map(|(space, _)| space.trim());
        let hidden =
            |space: &str| self.names.is_hidden(space) || (bar.is_none() && is_language(space));
        if !plain && space.is_some_and(hidden) {
            self.written.truncate(start);
            return;
        }
        match bar {
            Some(bar) if self.written.len() > bar + 1 => drop(self.written.drain(start..=bar)),
            Some(bar) => self.written.truncate(bar),
            None => {
                let colon = self.written[start..].len() - self.written[start..].trim_start().len();
                if plain {
                    self.written.drain(start..=start + colon);
                }
            }
        }
    }

    /// `[http://… shown]` becomes what is shown.
    fn open_address(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 1..];
        if !SCHEMES.iter().any(|scheme| rest.starts_with(scheme)) {
            return self.keep(at);
        }
        self.addresses += 1;
        let end = rest.find([' ', ']', '\n', '\t']).unwrap_or(rest.len());
        at + 1 + end + usize::from(rest[end..].starts_with(' '))
    }

    /// Two quotes are italic, three bold, five both; any more are shown.
    fn quotes(&mut self, at: usize) -> usize {
        let run = run(self.text.as_bytes(), at);
        let shown = match run {
            2 | 3 | 5 => 0,
            4 => 1,
            _ => run - 5,
        };
        self.written.extend(std::iter::repeat_n('\'', shown));
        at + run
    }

    fn tag(&mut self, at: usize) -> usize {
        let (name, _) = tag_name(&self.text[at..]);
        let is = |known: &str| known.eq_ignore_ascii_case(name);
        // A lonely tag of an element whose content is hidden is no text either.
        let known = TAGS.split(' ').chain(HIDDEN).any(is);
        let Some(end) = self.tags.after(at).filter(|_| known) else { return self.keep(at) };
        if BREAKS.into_iter().any(is) {
            self.written.push(' ');
        }
        end + 1
    }

    /// `-{zh-hans:A; zh-hant:B}-` becomes A, and `-{A}-` too.
    fn variant(&mut self, at: usize) -> usize {
        let Some(end) = self.variants.after(at) else { return self.keep(at) };
        let inside = &self.text[at + 2..end];
        if !self.text[end..].starts_with("}-") || inside.len() > 400 {
            return self.keep(at);
        }
        let (flags, inside) = inside.split_once('|').unwrap_or(("", inside));
        // Rules for the rest of the page, and for its title, show nothing.
        if !flags.contains(['H', 'T']) {
            let mut variants = inside.split(';').filter_map(|variant| variant.split_once(':'));
            let simplified = |(name, _): &(&str, &str)| {
                matches!(name.trim(), "zh-hans" | "zh-cn" | "zh" | "zh-sg")
            };
            let shown = variants.clone().find(simplified).or_else(|| variants.next());
            let shown = shown.map_or(inside, |(_, shown)| shown.trim());
            self.written.extend(shown.chars().filter(|c| !"[]{}|".contains(*c)));
        }
        end + 2
    }

    /// `__NOTOC__`, in any language.
    fn switch(&mut self, at: usize) -> usize {
        let rest = &self.text[at + 2..];
        let end = rest.bytes().take(60).position(|byte| byte.is_ascii_whitespace() || byte == b'_');
        match end {
            Some(end) if end > 0 && rest[end..].starts_with("__") => at + 2 + end + 2,
            _ => self.keep(at),
        }
    }
}

/// Whether a link without a text of its own leads to another language's Wikipedia: `de`,
/// `zh-min-nan`.
fn is_language(space: &str) -> bool {
    let mut parts = space.split('-');
    let plain = |part: &str| part.bytes().all(|byte| byte.is_ascii_lowercase());
    let code = |part: &str| (2..=3).contains(&part.len()) && plain(part);
    parts.next().is_some_and(code) && parts.all(plain)
}
