//! What is added to the states of one language to make them another's.

use serde::{Deserialize, Serialize};

use crate::classes::Classes;
use crate::error::{Error, Result};
use crate::means::{DIRECTIONS, Means};

/// States of a class that must have been seen on both sides before its own difference is trusted.
const ENOUGH: u64 = 100;

/// How the shift is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Kind {
    /// One difference of means for all pieces, as in paper 2.
    Mean,
    /// One for pieces that languages share, and one for those they do not.
    Sharing,
    /// One for each band of frequency.
    Bands,
    /// The difference of means without its part in the directions in which states differ most
    /// within a language: so many of them.
    Without(usize),
}

impl Kind {
    /// Its name, as it is typed.
    pub fn name(self) -> String {
        match self {
            Kind::Mean => "mean".to_owned(),
            Kind::Sharing => "sharing".to_owned(),
            Kind::Bands => "bands".to_owned(),
            Kind::Without(directions) => format!("without-{directions}"),
        }
    }

    /// Reads what was typed.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let without = || text.strip_prefix("without-")?.parse().ok();
        match text {
            "mean" => Ok(Kind::Mean),
            "sharing" => Ok(Kind::Sharing),
            "bands" => Ok(Kind::Bands),
            _ => match without() {
                Some(number @ 1..=DIRECTIONS) => Ok(Kind::Without(number)),
                _ => Err(format!("mean, sharing, bands, or without-1 to without-{DIRECTIONS}")),
            },
        }
    }
}

impl From<Kind> for String {
    fn from(kind: Kind) -> Self {
        kind.name()
    }
}

impl TryFrom<String> for Kind {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<Self, String> {
        Self::parse(&text)
    }
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
    pub fn new(means: &Means, from: usize, to: usize, layer: usize, kind: Kind) -> Result<Self> {
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
        // Classes as the means were taken by: among all languages of the file.
        let counts: Vec<Vec<u64>> =
            means.languages.iter().map(|language| language.subwords.clone()).collect();
        let classes = || Classes::new(&counts, from);
        let (vectors, class) = match kind {
            Kind::Mean => (difference(0), Vec::new()),
            Kind::Without(directions) => {
                (without(difference(0), &means.directions[layer], directions), Vec::new())
            }
            Kind::Sharing => {
                let shared = classes().shared;
                (trusted(1).into_iter().chain(trusted(2)).collect(), as_classes(shared))
            }
            Kind::Bands => {
                let vectors = (3..6).flat_map(trusted).collect();
                (vectors, classes().band)
            }
        };
        Ok(Self { dim, vectors, class })
    }

    /// A vector that was made elsewhere, the same for all pieces.
    pub fn of_vector(vector: Vec<f32>) -> Self {
        Self { dim: vector.len(), vectors: vector, class: Vec::new() }
    }

    /// The difference for a piece: dim.
    pub fn vector(&self, id: u32) -> &[f32] {
        let class = self.class.get(id as usize).copied().unwrap_or(0);
        &self.vectors[usize::from(class) * self.dim..][..self.dim]
    }

    /// Adds `alpha` times the difference to the states of these pieces: ids x dim.
    pub fn apply(&self, ids: &[u32], alpha: f32, states: &mut [f32]) {
        for (&id, state) in ids.iter().zip(states.chunks_mut(self.dim)) {
            state.iter_mut().zip(self.vector(id)).for_each(|(x, step)| *x += alpha * step);
        }
    }
}

fn as_classes(flags: Vec<bool>) -> Vec<u8> {
    flags.into_iter().map(u8::from).collect()
}

/// A vector less its parts in the first `count` of some directions, each of length 1.
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
        for kind in [Kind::Mean, Kind::Sharing, Kind::Bands, Kind::Without(3)] {
            assert_eq!(Kind::parse(&kind.name()), Ok(kind));
        }
        assert!(Kind::parse("without-0").is_err() && Kind::parse("without-99").is_err());
    }
}
