//! BIO tags (Ramshaw and Marcus 1995), and the spans that they stand for.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The tag of one word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BioTag {
    /// In no entity.
    Outside,
    /// The first word of an entity of this type.
    Begin(String),
    /// A further word of an entity of this type.
    Inside(String),
}

impl FromStr for BioTag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kind = |kind: &str| (!kind.is_empty()).then(|| kind.to_owned());
        let tag = match text.split_once('-') {
            None if text == "O" => Some(BioTag::Outside),
            Some(("B", name)) => kind(name).map(BioTag::Begin),
            Some(("I", name)) => kind(name).map(BioTag::Inside),
            _ => None,
        };
        tag.ok_or_else(|| format!("`{text}` is no tag: O, B-TYPE or I-TYPE"))
    }
}

impl fmt::Display for BioTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BioTag::Outside => f.write_str("O"),
            BioTag::Begin(kind) => write!(f, "B-{kind}"),
            BioTag::Inside(kind) => write!(f, "I-{kind}"),
        }
    }
}

/// What becomes of tag sequences that are no valid spans: an entity that does not begin, or changes its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// `B-X I-Y I-Z` is one entity of the last type, as in Conneau et al. 2020.
    #[default]
    Paper,
    /// `I-Y` after another type begins an entity of its own, as in `conlleval` and `seqeval`.
    Conventional,
}

/// An entity: words `start..end` of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntitySpan {
    /// Its first word.
    pub start: usize,
    /// The word after its last.
    pub end: usize,
    /// Its type.
    pub kind: String,
}

/// The entities of a sentence, in their order.
pub fn spans<'a>(tags: impl IntoIterator<Item = &'a BioTag>, repair: Repair) -> Vec<EntitySpan> {
    let mut spans: Vec<EntitySpan> = Vec::new();
    // The entity under way ends where the tag read last stood.
    let mut open = false;
    for (at, tag) in tags.into_iter().enumerate() {
        let (kind, begins) = match tag {
            BioTag::Outside => {
                open = false;
                continue;
            }
            BioTag::Begin(kind) => (kind, true),
            BioTag::Inside(kind) => (kind, false),
        };
        match spans.last_mut().filter(|_| open && !begins) {
            Some(last) if repair == Repair::Paper || last.kind == *kind => {
                last.end = at + 1;
                last.kind.clone_from(kind);
            }
            _ => spans.push(EntitySpan { start: at, end: at + 1, kind: kind.clone() }),
        }
        open = true;
    }
    spans
}

/// The tags of a sentence of so many words with these entities.
pub fn tags(spans: &[EntitySpan], words: usize) -> Vec<BioTag> {
    let mut tags = vec![BioTag::Outside; words];
    for span in spans {
        tags[span.start] = BioTag::Begin(span.kind.clone());
        tags[span.start + 1..span.end].fill(BioTag::Inside(span.kind.clone()));
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(text: &str, repair: Repair) -> String {
        let read: Vec<BioTag> = text.split(' ').map(|tag| tag.parse().unwrap()).collect();
        let repaired = tags(&spans(&read, repair), read.len());
        repaired.iter().map(BioTag::to_string).collect::<Vec<_>>().join(" ")
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
            assert_eq!(text.parse::<BioTag>().unwrap().to_string(), text);
        }
        for text in ["", "B", "B-", "E-PER", "o", "BPER"] {
            assert!(text.parse::<BioTag>().unwrap_err().contains("is no tag"));
        }
    }
}
