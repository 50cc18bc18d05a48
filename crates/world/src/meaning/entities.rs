//! Named persons, places and organisations, and the profiles that tie them together.

use rand::RngExt;
use serde::Serialize;

use super::latent::LatentVectors;
use super::taxonomy::NounClass;
use super::{LemmaCounts, MeaningBuilder, MeaningId, words};
use crate::config::MeaningConfig;
use crate::grammar::Upos;
use crate::random::{bernoulli, choose};

/// The type of a named entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum EntityType {
    /// A person: a first and a last name.
    Person,
    /// A place: one word, or two.
    Place,
    /// An organisation: one word, or two.
    Organisation,
}

impl EntityType {
    /// All three, in the order of their indices.
    pub const ALL: [EntityType; 3] =
        [EntityType::Person, EntityType::Place, EntityType::Organisation];

    /// The tag used in data sets.
    pub fn tag(self) -> &'static str {
        ["PER", "LOC", "ORG"][self as usize]
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Entity {
    pub(crate) words: Vec<MeaningId>,
    pub(crate) frequency: f64,
    pub(crate) topics: Vec<f64>,
    pub(crate) person: Option<PersonProfile>,
}

/// Where a person lives and works, and as what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PersonProfile {
    pub(crate) home: usize,
    pub(crate) employer: usize,
    /// A noun, as an index.
    pub(crate) role: usize,
}

pub(super) fn invent(
    shape: &MeaningConfig,
    stock: &LemmaCounts,
    latents: &LatentVectors,
    classes: &[NounClass],
    maker: &mut MeaningBuilder,
) -> [Vec<Entity>; 3] {
    let mut coin = |kind: &str, count: usize| -> Vec<MeaningId> {
        (0..count).map(|_| maker.word(kind, Upos::ProperNoun, None)).collect()
    };
    let first_names = coin("first", stock.first_names);
    let last_names = coin("last", stock.last_names);
    let place_names = coin("place", stock.places);
    let organisation_names = coin("organisation", stock.organisations);
    let rng = &mut maker.rng;
    let entity = |words, weight: f64, rank: usize, rng: &mut _| Entity {
        words,
        frequency: weight * (rank as f64 + 1.5).powf(-shape.zipf),
        topics: latents.affinity(&latents.vector(rng), 1.0),
        person: None,
    };
    let mut places = Vec::new();
    for (rank, &name) in place_names.iter().enumerate() {
        places.push(entity(vec![name], 1.0, rank, rng));
        if bernoulli(rng, 0.3) {
            let longer = vec![*choose(rng, &words::PLACE_PARTS), name];
            places.push(entity(longer, 0.5, rank, rng));
        }
    }
    let mut organisations = Vec::new();
    for (rank, &name) in organisation_names.iter().enumerate() {
        let mut words = vec![name];
        if bernoulli(rng, 0.5) {
            words.push(*choose(rng, &words::ORGANISATION_PARTS));
        }
        organisations.push(entity(words, 1.0, rank, rng));
    }
    let animate: Vec<&NounClass> = classes.iter().filter(|class| class.animate).collect();
    let mut persons = Vec::new();
    for rank in 0..last_names.len() * 3 / 2 {
        // Some first names are far more common than others.
        let first = (first_names.len() as f64 * rng.random::<f64>().powf(1.6)) as usize;
        let words = vec![first_names[first], last_names[rank % last_names.len()]];
        let class = choose(rng, &animate);
        let mut person = entity(words, 1.0, rank, rng);
        person.person = Some(PersonProfile {
            home: rng.random_range(0..places.len()),
            employer: rng.random_range(0..organisations.len()),
            role: *choose(rng, &class.nouns),
        });
        persons.push(person);
    }
    [persons, places, organisations]
}
