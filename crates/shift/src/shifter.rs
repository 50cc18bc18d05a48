//! What is added to the hidden states of one language to shift them to another's: the mean difference
//! shift of Liu et al. 2020, and variants of it.
//!
//! Most kinds add the same vector to every state, or to every state of a class of subwords. Two depend on the state
//! itself: they also remove its components in some directions.

use std::path::PathBuf;

use geometry::language_id::subspace_of_means;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::{Device, Indices, Tensor};

use crate::classes::SubwordClasses;
use crate::error::{Error, Result};
use crate::means::{DIRECTIONS, LanguageMean, MeanVectors};

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
    /// The component in the subspace of all languages' means is replaced by the target's: the low-rank removal
    /// of language identity (LSAR, Xie et al. 2022), with the target's identity in its place.
    Lsar,
    /// The difference of means, and deviations from the mean in the directions in which states differ most within a
    /// language are removed: so many of them (after Mu & Viswanath 2018).
    Principal(usize),
}

impl ShiftKind {
    /// Its name, as it is typed.
    pub fn name(self) -> String {
        match self {
            ShiftKind::Mean => "mean".to_owned(),
            ShiftKind::Sharing => "sharing".to_owned(),
            ShiftKind::Bands => "bands".to_owned(),
            ShiftKind::Without(directions) => format!("without-{directions}"),
            ShiftKind::Lsar => "lsar".to_owned(),
            ShiftKind::Principal(directions) => format!("principal-{directions}"),
        }
    }

    /// Reads what was typed.
    pub fn parse(text: &str) -> std::result::Result<Self, String> {
        let number = |start: &str| match text.strip_prefix(start)?.parse() {
            Ok(number @ 1..=DIRECTIONS) => Some(number),
            _ => None,
        };
        let numbered = || {
            let without = number("without-").map(ShiftKind::Without);
            without.or_else(|| number("principal-").map(ShiftKind::Principal))
        };
        match text {
            "mean" => Ok(ShiftKind::Mean),
            "sharing" => Ok(ShiftKind::Sharing),
            "bands" => Ok(ShiftKind::Bands),
            "lsar" => Ok(ShiftKind::Lsar),
            _ => numbered().ok_or_else(|| {
                format!(
                    "mean, sharing, bands, lsar, without-1 to without-{DIRECTIONS}, or principal-1 to \
                     principal-{DIRECTIONS}"
                )
            }),
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
    /// Directions of length 1, at right angles, in which the components of a state are removed: one after another.
    removed: Vec<f32>,
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
        let mut removed = Vec::new();
        let (vectors, class) = match kind {
            ShiftKind::Lsar => {
                removed = language_subspace(means, layer);
                (along(&means.languages[to].layers[layer][..dim], &removed), Vec::new())
            }
            ShiftKind::Principal(directions) => {
                removed = means.directions[layer][..directions.min(dim) * dim].to_vec();
                let kept = along(&means.languages[from].layers[layer][..dim], &removed);
                let moved = difference(0).into_iter().zip(kept).map(|(step, kept)| step + kept);
                (moved.collect(), Vec::new())
            }
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
        Ok(Self { dim, vectors, class, removed })
    }

    /// A vector that was made elsewhere, the same for all subwords.
    pub fn of_vector(vector: Vec<f32>) -> Self {
        Self { dim: vector.len(), vectors: vector, class: Vec::new(), removed: Vec::new() }
    }

    /// The difference for a subword: dim.
    pub fn vector(&self, id: u32) -> &[f32] {
        let class = self.class.get(id as usize).copied().unwrap_or(0);
        &self.vectors[usize::from(class) * self.dim..][..self.dim]
    }

    /// What is added to the states of some subwords (rows x dim), in a device's memory: vectors, and which of them belongs
    /// to each row.
    pub fn additions(&self, device: &Device, states: &Tensor, ids: &[u32]) -> (Tensor, Indices) {
        if self.removed.is_empty() {
            let table = device.tensor(self.vectors.len() / self.dim, self.dim, &self.vectors);
            let row = |&id: &u32| self.class.get(id as usize).copied().map_or(0, u32::from);
            return (table, ids.iter().map(row).collect());
        }
        let own: Vec<f32> = states
            .to_vec()
            .par_chunks(self.dim)
            .flat_map_iter(|state| self.of_state(state))
            .collect();
        let rows = own.len() / self.dim;
        (device.tensor(rows, self.dim, &own), (0..rows as u32).collect())
    }

    /// What is added to one state, where that depends on it: dim.
    fn of_state(&self, state: &[f32]) -> Vec<f32> {
        let removed = along(state, &self.removed);
        self.vectors.iter().zip(removed).map(|(add, part)| add - part).collect()
    }
}

/// The subspace of the languages' means at a layer: directions of length 1, one after another.
fn language_subspace(means: &MeanVectors, layer: usize) -> Vec<f32> {
    let of = |language: &LanguageMean| -> Vec<f64> {
        language.layers[layer][..means.dim()].iter().map(|&x| f64::from(x)).collect()
    };
    let means: Vec<Vec<f64>> = means.languages.iter().map(of).collect();
    subspace_of_means(&means).concat().iter().map(|&x| x as f32).collect()
}

/// The part of a vector that lies in some directions, each of length 1 and at right angles to the others.
fn along(vector: &[f32], directions: &[f32]) -> Vec<f32> {
    let mut part = vec![0.0; vector.len()];
    for direction in directions.chunks(vector.len()) {
        let length: f32 = direction.iter().zip(vector).map(|(a, b)| a * b).sum();
        part.iter_mut().zip(direction).for_each(|(sum, step)| *sum += length * step);
    }
    part
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

    /// By hand: means (1, 2, 0) and (4, 6, 0), whose difference has the direction (0.6, 0.8, 0).
    #[test]
    fn components_of_the_language_are_replaced() {
        let means = MeanVectors::of_means(&[&[1.0, 2.0, 0.0], &[4.0, 6.0, 0.0]], &[0.0, 0.0, 1.0]);
        let device = Device::cpu(1).unwrap();
        let states = device.tensor(2, 3, &[3.0, -1.0, 5.0, 0.0, 0.0, 0.0]);
        let shifted = |kind: ShiftKind| {
            let shifter = Shifter::new(&means, 0, 1, 0, kind).unwrap();
            let (table, rows) = shifter.additions(&device, &states, &[0, 0]);
            device.add_rows(&states, &table, &rows, &[1.0]).to_vec()
        };
        // 3 · 0.6 - 1 · 0.8 = 1 and 0 become 4 · 0.6 + 6 · 0.8 = 7.2; the rest stays.
        let expected = [3.0 + 6.2 * 0.6, -1.0 + 6.2 * 0.8, 5.0, 7.2 * 0.6, 7.2 * 0.8, 0.0];
        for (ours, wanted) in shifted(ShiftKind::Lsar).iter().zip(expected) {
            assert!((ours - wanted).abs() < 1e-5, "{ours} {wanted}");
        }
        // The leading direction is the third: what deviates from the mean there, 5, goes; the difference is added.
        let expected = [6.0, 3.0, 0.0, 3.0, 4.0, 0.0];
        for (ours, wanted) in shifted(ShiftKind::Principal(1)).iter().zip(expected) {
            assert!((ours - wanted).abs() < 1e-5, "{ours} {wanted}");
        }
    }

    #[test]
    fn kinds_have_names() {
        use ShiftKind::{Bands, Lsar, Mean, Principal, Sharing, Without};
        for kind in [Mean, Sharing, Bands, Without(3), Lsar, Principal(2)] {
            assert_eq!(ShiftKind::parse(&kind.name()), Ok(kind));
        }
        assert!(ShiftKind::parse("principal-9").is_err());
        assert!(ShiftKind::parse("without-0").is_err() && ShiftKind::parse("without-99").is_err());
    }
}
