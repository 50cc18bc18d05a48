//! Pictures of representation spaces: how a shared space emerges while an encoder is trained ([`emergence()`]), what its
//! layers do ([`layers()`]), what adding the difference of two mean vectors does ([`shift()`]), and maps of any words or sentences
//! ([`map()`]).
//!
//! Such pictures persuade more than they prove: any two clouds overlap in some plane. So each panel has its measures beside it,
//! lines join translations, chance and the untrained encoder are drawn, an axis that was chosen by labels is called
//! supervised, and titles are sentences computed from the numbers, which say so where nothing was found.

mod curves;
mod emergence;
mod findings;
mod layers;
mod map;
mod scatter;
mod shift;
mod view;

pub use emergence::{emergence, emergence_of, plane_at, training_finding};
pub use layers::{LayeredSpace, layers};
pub use map::{MapLabel, MapPanel, SpaceMap, map};
pub use shift::shift;
pub use view::SpaceView;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{ColourScheme, Figure, LegendEntry, SeriesMark};

/// The colour of raw retrieval; centred and aligned retrieval have the next two.
pub const RAW_COLOUR: usize = 2;
/// Translation pairs that lines join.
const JOINED: usize = 16;

/// A picture of a space: the drawing, and what a reader has to know to read it.
#[derive(Clone, Debug, PartialEq)]
pub struct SpaceFigure {
    /// The drawing; its title is the finding.
    pub figure: Figure,
    /// What the panels, axes and marks are.
    pub caption: String,
}

impl SpaceFigure {
    /// As a file of its own, with its caption.
    pub fn svg_in(&self, scheme: ColourScheme) -> String {
        self.figure.svg_with_caption(scheme, &self.caption)
    }
}

/// A language as a reader knows it: invented ones by letter (their codes, qaa to qtz, are reserved for
/// private use), others by their code.
pub fn language_name(code: &str) -> String {
    let (base, copy) = match code.strip_suffix(terms::SECOND_COPY) {
        Some(base) => (base, ", second copy"),
        None => (code, ""),
    };
    match language_letter(base) {
        Some(letter) => format!("language {letter}{copy}"),
        None => format!("{base}{copy}"),
    }
}

/// The letter of an invented language: `B` of `qab`.
pub fn language_letter(code: &str) -> Option<char> {
    let rest = code.strip_prefix("qa").filter(|rest| rest.len() == 1)?;
    rest.chars().next().filter(char::is_ascii_lowercase).map(|letter| letter.to_ascii_uppercase())
}

fn language_legend(languages: &[String]) -> Vec<LegendEntry> {
    let entry = |(colour, code): (usize, &String)| LegendEntry {
        name: language_name(code),
        mark: SeriesMark::Dot(colour),
    };
    languages.iter().enumerate().map(entry).collect()
}

/// A share as per cent: whole numbers, and one digit below ten and where a whole number would say all.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    match percent {
        p if p < 0.05 => "0\u{a0}%".to_owned(),
        p if p < 9.95 => format!("{p:.1}\u{a0}%"),
        p if (99.5..99.95).contains(&p) => format!("{p:.1}\u{a0}%"),
        p => format!("{p:.0}\u{a0}%"),
    }
}

/// A whole number with commas between thousands.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FigureResult {
    pub out: PathBuf,
    /// Which figure: `emergence`, `layers`, `shift` or `map`.
    pub figure: String,
    pub title: String,
    pub caption: String,
}

pub fn layer_name(layer: usize) -> String {
    if layer == 0 { "embeddings".to_owned() } else { format!("layer {layer}") }
}

/// Rows of pairs that are joined, spread over all of them.
pub fn joined_rows(pairs: usize) -> Vec<usize> {
    let count = JOINED.min(pairs);
    (0..count).map(|number| number * pairs / count).collect()
}

#[cfg(test)]
mod tests;
