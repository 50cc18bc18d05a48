//! Tags, and the spans that they mean.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A tag of one word. Types are told by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tag {
    /// Of no entity.
    Outside,
    /// The first word of an entity of this type.
    Begin(String),
    /// A further word of an entity of this type.
    Inside(String),
}

impl FromStr for Tag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |kind: &str| (!kind.is_empty()).then(|| kind.to_owned());
        let tag = match text.split_once('-') {
            None if text == "O" => Some(Tag::Outside),
            Some(("B", name)) => kind(name).map(Tag::Begin),
            Some(("I", name)) => kind(name).map(Tag::Inside),
            _ => None,
        };
        tag.ok_or_else(|| format!("`{text}` is no tag: O, B-TYPE or I-TYPE"))
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tag::Outside => f.write_str("O"),
            Tag::Begin(kind) => write!(f, "B-{kind}"),
            Tag::Inside(kind) => write!(f, "I-{kind}"),
        }
    }
}

/// What becomes of tags that mean no span: an entity that does not begin, or changes its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// `B-X I-Y I-Z` is one entity of the last type, as in paper 1.
    #[default]
    Paper,
    /// `I-Y` after another type begins an entity of its own, as `seqeval` and `conlleval` have it.
    Conventional,
}

/// An entity: words `start..end` of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Its first word.
    pub start: usize,
    /// The word after its last.
    pub end: usize,
    /// Its type.
    pub kind: String,
}

/// The entities of a sentence, in their order.
pub fn spans<'a>(tags: impl IntoIterator<Item = &'a Tag>, repair: Repair) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    // The entity under way ends where the tag read last stood.
    let mut open = false;
    for (at, tag) in tags.into_iter().enumerate() {
        let (kind, begins) = match tag {
            Tag::Outside => {
                open = false;
                continue;
            }
            Tag::Begin(kind) => (kind, true),
            Tag::Inside(kind) => (kind, false),
        };
        match spans.last_mut().filter(|_| open && !begins) {
            Some(last) if repair == Repair::Paper || last.kind == *kind => {
                last.end = at + 1;
                last.kind.clone_from(kind);
            }
            _ => spans.push(Span { start: at, end: at + 1, kind: kind.clone() }),
        }
        open = true;
    }
    spans
}

/// The tags of a sentence of so many words with these entities.
pub fn tags(spans: &[Span], words: usize) -> Vec<Tag> {
    let mut tags = vec![Tag::Outside; words];
    for span in spans {
        tags[span.start] = Tag::Begin(span.kind.clone());
        tags[span.start + 1..span.end].fill(Tag::Inside(span.kind.clone()));
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str, repair: Repair) -> String {
        let read: Vec<Tag> = text.split(' ').map(|tag| tag.parse().unwrap()).collect();
        let mended = tags(&spans(&read, repair), read.len());
        mended.iter().map(Tag::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_two_rules() {
        for (text, paper, conventional) in [
            ("B-X I-Y I-Z", "B-Z I-Z I-Z", "B-X B-Y B-Z"),
            ("I-X I-X O", "B-X I-X O", "B-X I-X O"),
            ("O I-X I-Y O I-Z", "O B-Y I-Y O B-Z", "O B-X B-Y O B-Z"),
            ("B-X I-X B-X I-Y", "B-X I-X B-Y I-Y", "B-X I-X B-X B-Y"),
            ("B-X B-X O B-Y I-Y", "B-X B-X O B-Y I-Y", "B-X B-X O B-Y I-Y"),
        ] {
            assert_eq!(repaired(text, Repair::Paper), paper);
            assert_eq!(repaired(text, Repair::Conventional), conventional);
        }
    }

    #[test]
    fn tags_are_read_and_written() {
        for text in ["O", "B-PER", "I-work-of-art"] {
            assert_eq!(text.parse::<Tag>().unwrap().to_string(), text);
        }
        for text in ["", "B", "B-", "E-PER", "o", "BPER"] {
            assert!(text.parse::<Tag>().unwrap_err().contains("is no tag"));
        }
    }
}
