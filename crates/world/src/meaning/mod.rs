//! The shared world: what can be spoken of, in any language.

mod domain;
mod entities;
mod latent;
mod stock;
mod taxonomy;
mod vocabulary;
pub(crate) mod words;

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub(crate) use domain::{Domain, Subject};
pub(crate) use entities::Entity;
pub use entities::EntityType;
pub(crate) use stock::Stock;
pub(crate) use taxonomy::{Class, Noun};
pub(crate) use vocabulary::{Adjective, Frame, Verb};

use crate::config::Plan;
use crate::grammar::Upos;
use crate::random::Streams;
use latent::Latents;

/// A meaning: what a word stands for in every language. Ids count from 0 without gaps.
pub type MeaningId = u32;

/// What is known of a meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meaning {
    /// A name for people to read.
    pub gloss: String,
    /// Its part of speech, the same in every language.
    pub upos: Upos,
    /// The meaning one step more general, for nouns that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypernym: Option<MeaningId>,
}

/// The world of meaning: things in a taxonomy, deeds with preferences, named entities, topics.
#[derive(Debug)]
pub struct World {
    meanings: Vec<Meaning>,
    pub(crate) nouns: Vec<Noun>,
    pub(crate) classes: Vec<Class>,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) adjectives: Vec<Adjective>,
    pub(crate) entities: [Vec<Entity>; 3],
    pub(crate) domains: Vec<Domain>,
    pub(crate) recurrence: f64,
    pub(crate) facts: f64,
    pub(crate) punctuation: bool,
}

impl World {
    /// Invents the world of a plan.
    pub fn new(plan: &Plan) -> Self {
        let config = plan.config();
        let streams = Streams::new(config.seed, "meaning");
        let shape = &config.meaning;
        let stock = Stock::new(shape);
        let mut maker = Maker { meanings: words::fixed(), rng: streams.at(0) };
        let latents = Latents::new(shape, &mut maker.rng);
        let (nouns, classes) = taxonomy::invent(shape, &stock, &latents, &mut maker);
        let verbs = vocabulary::verbs(shape, &stock, &latents, &classes, &mut maker);
        let adjectives = vocabulary::adjectives(shape, &stock, &latents, &mut maker);
        let entities = entities::invent(shape, &stock, &latents, &classes, &mut maker);
        let mut world = Self {
            meanings: maker.meanings,
            nouns,
            classes,
            verbs,
            adjectives,
            entities,
            domains: Vec::new(),
            recurrence: shape.recurrence,
            facts: shape.facts,
            punctuation: config.punctuation,
        };
        world.domains =
            config.domain.iter().map(|d| Domain::new(&world, shape, d, config.seed)).collect();
        world
    }

    /// Every meaning, by id.
    pub fn meanings(&self) -> &[Meaning] {
        &self.meanings
    }

    /// The named entities of one type, each as the meanings of its words.
    pub fn names(&self, kind: EntityType) -> impl Iterator<Item = &[MeaningId]> {
        self.entities[kind as usize].iter().map(|entity| entity.words.as_slice())
    }

    /// Whether `general` is `special` or a hypernym of it, at any remove.
    pub fn is_a(&self, special: MeaningId, general: MeaningId) -> bool {
        let hypernym = |&id: &MeaningId| self.meanings[id as usize].hypernym;
        std::iter::successors(Some(special), hypernym).any(|id| id == general)
    }
}

/// Hands out ids and chance while a world is made.
pub(crate) struct Maker {
    meanings: Vec<Meaning>,
    pub(crate) rng: ChaCha8Rng,
}

impl Maker {
    pub(crate) fn word(
        &mut self,
        gloss: String,
        upos: Upos,
        hypernym: Option<MeaningId>,
    ) -> MeaningId {
        self.meanings.push(Meaning { gloss, upos, hypernym });
        (self.meanings.len() - 1) as MeaningId
    }
}
