//! Verbs and adjectives, with the classes they go with.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::latent::LatentVectors;
use super::taxonomy::NounClass;
use super::{EntityType, LemmaCounts, MeaningBuilder, MeaningId, words};
use crate::config::MeaningConfig;
use crate::grammar::Upos;
use crate::random::{WeightedChoice, bernoulli, choose, shuffle};

/// What a verb needs besides its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VerbFrame {
    Transitive,
    Intransitive,
    /// Governs a preposition.
    Oblique(MeaningId),
}

#[derive(Clone, Debug)]
pub(crate) struct Verb {
    pub(crate) id: MeaningId,
    pub(crate) frame: VerbFrame,
    /// Weight of each class as its subject.
    pub(crate) subjects: Vec<f64>,
    /// Weight of each class as its object.
    pub(crate) objects: Vec<f64>,
    /// Weight of named persons as its subject.
    pub(crate) persons: f64,
    /// The type of named entity that is its object half of the time.
    pub(crate) named_object: Option<EntityType>,
    pub(crate) frequency: f64,
    pub(crate) topics: Vec<f64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Adjective {
    pub(crate) id: MeaningId,
    pub(crate) classes: Vec<f64>,
    pub(crate) frequency: f64,
    pub(crate) topics: Vec<f64>,
}

pub(super) fn verbs(
    shape: &MeaningConfig,
    stock: &LemmaCounts,
    latents: &LatentVectors,
    classes: &[NounClass],
    maker: &mut MeaningBuilder,
) -> Vec<Verb> {
    let animate: Vec<usize> = (0..classes.len()).filter(|&c| classes[c].animate).collect();
    let every: Vec<usize> = (0..classes.len()).collect();
    let frames = WeightedChoice::new(vec![0.55, 0.2, 0.25]);
    let verb = |k| {
        let rng = &mut maker.rng;
        let frame = match frames.draw(rng) {
            0 => VerbFrame::Transitive,
            1 => VerbFrame::Intransitive,
            _ => VerbFrame::Oblique(*choose(rng, &words::PREPOSITIONS)),
        };
        let agents = if bernoulli(rng, 0.7) { &animate } else { &every };
        let subjects = preferences(shape, agents, 1..=3, shape.preference, rng);
        let objects = preferences(shape, &every, 1..=3, shape.preference, rng);
        let persons = *choose(rng, &[0.0, 0.3, 1.0, 2.0]);
        let named_object = match rng.random_range(0..6) {
            kind @ 0..3 => Some(EntityType::ALL[kind]),
            _ => None,
        };
        let frequency = (k as f64 + 3.0).powf(-shape.zipf);
        let topics = latents.affinity(&latents.vector(rng), 0.8);
        let kind = match frame {
            VerbFrame::Transitive => "transitive",
            VerbFrame::Intransitive => "intransitive",
            VerbFrame::Oblique(_) => "oblique",
        };
        let id = maker.word(kind, Upos::Verb, None);
        Verb { id, frame, subjects, objects, persons, named_object, frequency, topics }
    };
    (0..stock.verbs).map(verb).collect()
}

pub(super) fn adjectives(
    shape: &MeaningConfig,
    stock: &LemmaCounts,
    latents: &LatentVectors,
    maker: &mut MeaningBuilder,
) -> Vec<Adjective> {
    let every: Vec<usize> = (0..shape.classes).collect();
    let adjective = |k| {
        let id = maker.word("adjective", Upos::Adjective, None);
        let classes = preferences(shape, &every, 2..=4, 0.7, &mut maker.rng);
        let frequency = (k as f64 + 2.0).powf(-shape.zipf);
        let topics = latents.affinity(&latents.vector(&mut maker.rng), 0.6);
        Adjective { id, classes, frequency, topics }
    };
    (0..stock.adjectives).map(adjective).collect()
}

/// Full weight for a first class out of `pool`, less for the next ones, almost none for the rest.
fn preferences(
    shape: &MeaningConfig,
    pool: &[usize],
    count: std::ops::RangeInclusive<usize>,
    sharpness: f64,
    rng: &mut ChaCha8Rng,
) -> Vec<f64> {
    let mut chosen = pool.to_vec();
    shuffle(rng, &mut chosen);
    let mut weights = vec![shape.off_preference; shape.classes];
    for (rank, &class) in chosen.iter().take(rng.random_range(count)).enumerate() {
        weights[class] = (rank as f64 + 1.0).powf(-sharpness);
    }
    weights
}
