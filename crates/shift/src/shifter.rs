//! What is added to the hidden states of one language to shift them to another's: the mean difference
//! shift of Liu et al. 2020, and variants of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tensor::{Device, Indices, Tensor};

use crate::classes::SubwordClasses;
use crate::error::{Error, Result};
use crate::means::{DIRECTIONS, MeanVectors};

/// States of a class that must have been seen on both sides before its own difference is trusted.
const ENOUGH: u64 = 100;

/// How the shift is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ShiftKind {
    /// One difference of means for all subwords, as in Liu et al. 2020.
    Mean,
    /// One for subwords that languages share, and one for those they do not.
    Sharing,
    /// One for each band of frequency.
    Bands,
    /// The difference of means without its part in the directions in which states differ most
    /// within a language: so many of them.
    Without(usize),
}

impl ShiftKind {
    /// Its name, as it is typed.
    pub fn name(self) -> String {
        match self {
            ShiftKind::Mean => "mean".to_owned(),
            ShiftKind::Sharing => "sharing".to_owned(),
            ShiftKind::Bands => "bands".to_owned(),
            ShiftKind::Without(directions) => format!("without-{directions}"),
        }
    }

    /// Reads what was typed.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let without = || text.strip_prefix("without-")?.parse().ok();
        match text {
            "mean" => Ok(ShiftKind::Mean),
            "sharing" => Ok(ShiftKind::Sharing),
            "bands" => Ok(ShiftKind::Bands),
            _ => match without() {
                Some(number @ 1..=DIRECTIONS) => Ok(ShiftKind::Without(number)),
                _ => Err(format!("mean, sharing, bands, or without-1 to without-{DIRECTIONS}")),
            },
        }
    }
}

impl From<ShiftKind> for String {
    fn from(kind: ShiftKind) -> Self {
        kind.name()
    }
}

impl TryFrom<String> for ShiftKind {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        Self::parse(&text)
    }
}

/// A difference of mean vectors that was written to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DifferenceResult {
    /// The file.
    pub out: PathBuf,
    /// The language that is shifted.
    pub from: String,
    /// The language that it is shifted to.
    pub to: String,
    /// After which layer.
    pub layer: usize,
    /// How the shift is made.
    pub kind: ShiftKind,
    /// The length of the vector.
    pub length: f64,
}

/// The shift from one language to another at one layer.
#[derive(Clone, Debug)]
pub struct Shifter {
    dim: usize,
    /// Differences, one after another.
    vectors: Vec<f32>,
    /// For each id, which of them; empty where all have the first.
    class: Vec<u8>,
}

impl Shifter {
    /// From language `from` to language `to` (their places in the means), after layer `layer`.
    pub fn new(
        means: &MeanVectors,
        from: usize,
        to: usize,
        layer: usize,
        kind: ShiftKind,
    ) -> Result<Self> {
        let dim = means.dim();
        if layer >= means.directions.len() {
            let last = means.directions.len() - 1;
            return Err(Error::request(format!(
                "there is no layer {layer}; they go from 0 to {last}"
            )));
        }
        let difference = |class: usize| -> Vec<f32> {
            let side = |language: usize| &means.languages[language].layers[layer][class * dim..];
            side(to).iter().zip(side(from)).take(dim).map(|(to, from)| to - from).collect()
        };
        let enough = |class: usize| {
            [from, to].iter().all(|&side| means.languages[side].counts[class] >= ENOUGH)
        };
        // Where a class was hardly seen, the difference of all serves it better than its own.
        let trusted = |class: usize| difference(if enough(class) { class } else { 0 });
        // SubwordClasses as the means were taken by: among all languages of the file.
        let counts: Vec<Vec<u64>> =
            means.languages.iter().map(|language| language.subwords.clone()).collect();
        let classes = || SubwordClasses::new(&counts, from);
        let (vectors, class) = match kind {
            ShiftKind::Mean => (difference(0), Vec::new()),
            ShiftKind::Without(directions) => {
                (without(difference(0), &means.directions[layer], directions), Vec::new())
            }
            ShiftKind::Sharing => {
                let shared = classes().shared;
                (trusted(1).into_iter().chain(trusted(2)).collect(), as_classes(shared))
            }
            ShiftKind::Bands => {
                let vectors = (3..6).flat_map(trusted).collect();
                (vectors, classes().band)
            }
        };
        Ok(Self { dim, vectors, class })
    }

    /// A vector that was made elsewhere, the same for all subwords.
    pub fn of_vector(vector: Vec<f32>) -> Self {
        Self { dim: vector.len(), vectors: vector, class: Vec::new() }
    }

    /// The difference for a subword: dim.
    pub fn vector(&self, id: u32) -> &[f32] {
        let class = self.class.get(id as usize).copied().unwrap_or(0);
        &self.vectors[usize::from(class) * self.dim..][..self.dim]
    }

    /// All differences in a device's memory: classes x dim.
    pub fn table(&self, device: &Device) -> Tensor {
        device.tensor(self.vectors.len() / self.dim, self.dim, &self.vectors)
    }

    /// The row of the table that is added for each of some subwords.
    pub fn rows(&self, ids: &[u32]) -> Indices {
        let row = |&id: &u32| self.class.get(id as usize).copied().map_or(0, u32::from);
        ids.iter().map(row).collect()
    }
}

fn as_classes(flags: Vec<bool>) -> Vec<u8> {
    flags.into_iter().map(u8::from).collect()
}

/// A vector without its components in the first `count` of some directions, each of length 1.
fn without(mut vector: Vec<f32>, directions: &[f32], count: usize) -> Vec<f32> {
    let dim = vector.len();
    for direction in directions.chunks(dim).take(count) {
        let part: f32 = direction.iter().zip(&vector).map(|(a, b)| a * b).sum();
        vector.iter_mut().zip(direction).for_each(|(x, step)| *x -= part * step);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_has_no_part_in_the_directions() {
        let directions = [1.0, 0.0, 0.0, 0.0, 0.6, 0.8];
        let left = without(vec![3.0, 1.0, 2.0], &directions, 2);
        for direction in directions.chunks(3) {
            let part: f32 = direction.iter().zip(&left).map(|(a, b)| a * b).sum();
            assert!(part.abs() < 1e-6, "{left:?}");
        }
        assert_eq!(without(vec![3.0, 1.0, 2.0], &directions, 0), [3.0, 1.0, 2.0]);
    }

    #[test]
    fn kinds_have_names() {
        for kind in [ShiftKind::Mean, ShiftKind::Sharing, ShiftKind::Bands, ShiftKind::Without(3)] {
            assert_eq!(ShiftKind::parse(&kind.name()), Ok(kind));
        }
        assert!(ShiftKind::parse("without-0").is_err() && ShiftKind::parse("without-99").is_err());
    }
}
