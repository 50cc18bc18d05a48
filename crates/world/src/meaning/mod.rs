//! The shared meaning: taxonomy, verbs with selectional preferences, named entities, topics.

mod domain;
mod entities;
mod latent;
mod lemma_counts;
mod lemmas;
mod taxonomy;
mod vocabulary;
pub(crate) mod words;

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub(crate) use domain::{Domain, SubjectType};
pub(crate) use entities::Entity;
pub use entities::EntityType;
pub(crate) use lemma_counts::LemmaCounts;
pub(crate) use taxonomy::{Noun, NounClass};
pub(crate) use vocabulary::{Adjective, Verb, VerbFrame};

use crate::config::WorldPlan;
use crate::grammar::Upos;
use crate::random::NamedStreams;
use latent::LatentVectors;
use lemmas::Lemmas;

/// The id of a meaning, shared by all languages. Ids count from 0 without gaps.
pub type MeaningId = u32;

/// A meaning that every language has a word for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Meaning {
    /// An English lemma for people to read; no two meanings have the same.
    pub gloss: String,
    /// Its part of speech, the same in every language.
    pub upos: Upos,
    /// The meaning one step more general, for nouns that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypernym: Option<MeaningId>,
}

/// The meanings that all languages share: nouns in a taxonomy, verbs with selectional preferences, named
/// entities, topics.
#[derive(Debug)]
pub struct World {
    meanings: Vec<Meaning>,
    pub(crate) nouns: Vec<Noun>,
    pub(crate) classes: Vec<NounClass>,
    pub(crate) verbs: Vec<Verb>,
    pub(crate) adjectives: Vec<Adjective>,
    pub(crate) entities: [Vec<Entity>; 3],
    pub(crate) domains: Vec<Domain>,
    pub(crate) recurrence: f64,
    pub(crate) facts: f64,
    pub(crate) punctuation: bool,
}

impl World {
    /// Generates the world of a plan.
    pub fn new(plan: &WorldPlan) -> Self {
        let config = plan.config();
        let streams = NamedStreams::new(config.seed, "meaning");
        let shape = &config.meaning;
        let stock = LemmaCounts::new(shape);
        let mut maker =
            MeaningBuilder { meanings: words::fixed(), lemmas: Lemmas::new(), rng: streams.at(0) };
        let latents = LatentVectors::new(shape, &mut maker.rng);
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

/// Assigns ids, and holds the random stream, while a world is generated.
pub(crate) struct MeaningBuilder {
    meanings: Vec<Meaning>,
    lemmas: Lemmas,
    pub(crate) rng: ChaCha8Rng,
}

impl MeaningBuilder {
    /// A meaning whose lemma is the next of a kind.
    fn word(&mut self, kind: &str, upos: Upos, hypernym: Option<MeaningId>) -> MeaningId {
        let gloss = self.lemmas.next(kind);
        self.named(gloss, upos, hypernym)
    }

    fn named(&mut self, gloss: String, upos: Upos, hypernym: Option<MeaningId>) -> MeaningId {
        self.meanings.push(Meaning { gloss, upos, hypernym });
        (self.meanings.len() - 1) as MeaningId
    }
}
