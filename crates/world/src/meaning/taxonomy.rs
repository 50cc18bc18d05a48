//! Nouns in classes, classes in superclasses, uneven on purpose so that no two look alike.

use rand_distr::{Distribution, LogNormal};

use super::latent::LatentVectors;
use super::lemma_counts::{LemmaCounts, NOUNS_A_CLASS};
use super::{MeaningBuilder, MeaningId};
use crate::config::MeaningConfig;
use crate::grammar::Upos;

/// A noun at the bottom of the taxonomy.
#[derive(Clone, Debug)]
pub(crate) struct Noun {
    pub(crate) id: MeaningId,
    pub(crate) class: usize,
    pub(crate) frequency: f64,
    /// Factor of frequency by topic.
    pub(crate) topics: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct NounClass {
    /// The word for any of its members.
    pub(crate) id: MeaningId,
    /// The word one step more general.
    pub(crate) superclass: MeaningId,
    pub(crate) animate: bool,
    pub(crate) nouns: Vec<usize>,
    /// Factor of frequency by topic.
    pub(crate) topics: Vec<f64>,
}

pub(super) fn invent(
    shape: &MeaningConfig,
    stock: &LemmaCounts,
    latents: &LatentVectors,
    maker: &mut MeaningBuilder,
) -> (Vec<Noun>, Vec<NounClass>) {
    let animate = (shape.superclasses / 3).max(2);
    let supers: Vec<(MeaningId, String, Vec<f64>)> = (0..shape.superclasses)
        .map(|s| {
            let name = maker.lemmas.superclass(s < animate);
            let id = maker.named(name.clone(), Upos::Noun, None);
            (id, name, latents.vector(&mut maker.rng))
        })
        .collect();
    // The lemmas that each class takes its nouns from.
    let mut kinds = Vec::new();
    let mut classes: Vec<NounClass> = superclass_of_each(shape.classes, shape.superclasses)
        .into_iter()
        .map(|s| {
            let (superclass, above, parent) = &supers[s];
            let own = latents.child(parent, &mut maker.rng);
            let vector = latents.child(&own, &mut maker.rng);
            let (kind, name) = maker.lemmas.class(above, s < animate);
            kinds.push(kind);
            let id = maker.named(name, Upos::Noun, Some(*superclass));
            let topics = latents.affinity(&vector, 1.0).iter().map(|f| f.powf(0.7)).collect();
            NounClass {
                id,
                superclass: *superclass,
                animate: s < animate,
                nouns: Vec::new(),
                topics,
            }
        })
        .collect();
    let mut nouns = Vec::new();
    for (c, size) in sizes(shape, stock.nouns, maker).into_iter().enumerate() {
        for k in 0..size {
            let id = maker.word(&kinds[c], Upos::Noun, Some(classes[c].id));
            let vector = latents.vector(&mut maker.rng);
            let topics = latents.affinity(&vector, 1.0);
            let frequency = (k as f64 + 1.5).powf(-shape.zipf);
            classes[c].nouns.push(nouns.len());
            nouns.push(Noun { id, class: c, frequency, topics });
        }
    }
    (nouns, classes)
}

/// The s-th superclass holds a share of the classes in proportion to 1 / (s + 1.5), at least one.
fn superclass_of_each(classes: usize, superclasses: usize) -> Vec<usize> {
    let shares: Vec<f64> = (0..superclasses).map(|s| 1.0 / (s as f64 + 1.5)).collect();
    let counts = apportion(classes, 1, &shares);
    counts.iter().enumerate().flat_map(|(s, &count)| std::iter::repeat_n(s, count)).collect()
}

fn sizes(shape: &MeaningConfig, nouns: usize, maker: &mut MeaningBuilder) -> Vec<usize> {
    let spread = LogNormal::new(0.0, shape.class_spread).expect("a checked spread");
    let shares: Vec<f64> = (0..shape.classes).map(|_| spread.sample(&mut maker.rng)).collect();
    apportion(nouns, NOUNS_A_CLASS, &shares)
}

/// Divides `total` by shares, so that each part has at least `least` and nothing is left over.
fn apportion(total: usize, least: usize, shares: &[f64]) -> Vec<usize> {
    let spare = total - least * shares.len();
    let sum: f64 = shares.iter().sum();
    let mut given = 0;
    let mut upto = 0.0;
    shares
        .iter()
        .map(|share| {
            upto += share / sum;
            let target = ((spare as f64 * upto).round() as usize).min(spare);
            let part = target - given;
            given = target;
            least + part
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_add_up_and_none_is_empty() {
        for total in [12, 13, 59, 1000] {
            let parts = apportion(total, 1, &[3.0, 0.001, 1.0, 1.0, 5.0, 0.5]);
            assert_eq!(parts.iter().sum::<usize>(), total);
            assert!(parts.iter().all(|&part| part >= 1), "{parts:?}");
        }
        assert!(superclass_of_each(12, 6).windows(2).all(|pair| pair[1] - pair[0] <= 1));
    }
}
