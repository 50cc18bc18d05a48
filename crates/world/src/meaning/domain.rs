//! A domain: the distributions from which topics and words are drawn there.
//!
//! A noun's weight is a product of a factor of the noun and a factor of its class, so it is drawn in
//! two steps, class then noun, from tables that stay small however large the lexicon.

use rand::rngs::ChaCha8Rng;

use super::{EntityType, World};
use crate::config::{DomainConfig, MeaningConfig};
use crate::random::{NamedStreams, WeightedChoice, bernoulli, shuffle};

/// The type of a subject: a noun of some class, or a named entity.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SubjectType {
    NounClass(usize),
    Person,
    Organisation,
}

#[derive(Clone, Debug)]
pub(crate) struct Domain {
    pub(crate) style: DomainConfig,
    topic: WeightedChoice,
    topics: Vec<TopicTables>,
}

#[derive(Clone, Debug)]
struct TopicTables {
    /// A class, for a noun that only the topic suggests.
    class: WeightedChoice,
    /// A noun, by class.
    noun: Vec<WeightedChoice>,
    /// A verb, by subject.
    verb: Vec<WeightedChoice>,
    /// A class of object, by verb.
    object: Vec<WeightedChoice>,
    /// An adjective, by class.
    adjective: Vec<WeightedChoice>,
    /// An entity, by type.
    entity: [WeightedChoice; 3],
}

/// How common each word is in this domain, whatever the topic.
struct WordWeights {
    nouns: Vec<f64>,
    verbs: Vec<f64>,
    adjectives: Vec<f64>,
    entities: [Vec<f64>; 3],
}

impl Domain {
    pub(crate) fn new(
        world: &World,
        shape: &MeaningConfig,
        style: &DomainConfig,
        seed: u64,
    ) -> Self {
        let mut rng = NamedStreams::new(seed, &format!("domain/{}", style.name)).at(0);
        let weights = WordWeights::new(world, style, &mut rng);
        let usual = |t: usize| (t as f64 + 2.0).powf(-shape.topic_skew);
        let topic =
            |t: usize| (1.0 - style.shift) * usual(t) + style.shift * usual(shape.topics - 1 - t);
        Self {
            style: style.clone(),
            topic: WeightedChoice::new((0..shape.topics).map(topic).collect()),
            topics: (0..shape.topics).map(|t| TopicTables::new(world, &weights, t)).collect(),
        }
    }

    pub(crate) fn topic(&self, rng: &mut ChaCha8Rng) -> usize {
        self.topic.draw(rng)
    }

    pub(crate) fn noun(&self, world: &World, topic: usize, rng: &mut ChaCha8Rng) -> usize {
        let class = self.topics[topic].class.draw(rng);
        self.member(world, topic, class, rng)
    }

    /// A noun that fits the topic and a verb that it is the object of.
    pub(crate) fn object(
        &self,
        world: &World,
        topic: usize,
        verb: usize,
        rng: &mut ChaCha8Rng,
    ) -> usize {
        let class = self.topics[topic].object[verb].draw(rng);
        self.member(world, topic, class, rng)
    }

    /// A noun of a class.
    pub(crate) fn member(
        &self,
        world: &World,
        topic: usize,
        class: usize,
        rng: &mut ChaCha8Rng,
    ) -> usize {
        world.classes[class].nouns[self.topics[topic].noun[class].draw(rng)]
    }

    pub(crate) fn verb(&self, topic: usize, subject: SubjectType, rng: &mut ChaCha8Rng) -> usize {
        let tables = &self.topics[topic].verb;
        let classes = tables.len() - 2;
        let table = match subject {
            SubjectType::NounClass(class) => class,
            SubjectType::Person => classes,
            SubjectType::Organisation => classes + 1,
        };
        tables[table].draw(rng)
    }

    pub(crate) fn adjective(&self, topic: usize, class: usize, rng: &mut ChaCha8Rng) -> usize {
        self.topics[topic].adjective[class].draw(rng)
    }

    pub(crate) fn entity(&self, topic: usize, kind: EntityType, rng: &mut ChaCha8Rng) -> usize {
        self.topics[topic].entity[kind as usize].draw(rng)
    }
}

impl TopicTables {
    fn new(world: &World, weights: &WordWeights, t: usize) -> Self {
        let noun_weight = |&n: &usize| weights.nouns[n] * world.nouns[n].topics[t];
        let by_class: Vec<Vec<f64>> =
            world.classes.iter().map(|c| c.nouns.iter().map(noun_weight).collect()).collect();
        let mass: Vec<f64> = by_class.iter().map(|nouns| nouns.iter().sum()).collect();
        let pull = |c: usize| world.classes[c].topics[t];
        let classes = world.classes.len();
        let verb_weight = |v: usize| weights.verbs[v] * world.verbs[v].topics[t];
        let verbs_by = |fit: &dyn Fn(usize) -> f64| {
            let weight = |v| verb_weight(v) * (fit(v) + 1e-4);
            WeightedChoice::new((0..world.verbs.len()).map(weight).collect())
        };
        let mut verb: Vec<WeightedChoice> =
            (0..classes).map(|c| verbs_by(&|v| world.verbs[v].subjects[c])).collect();
        verb.push(verbs_by(&|v| world.verbs[v].persons * 0.6));
        verb.push(verbs_by(&|v| world.verbs[v].persons * 0.15));
        let object = |v: &super::Verb| {
            let weight = |c: usize| mass[c] * pull(c).sqrt() * v.objects[c];
            WeightedChoice::new((0..classes).map(weight).collect())
        };
        let adjective = |c: usize| {
            let fit = world.adjectives.iter().zip(&weights.adjectives);
            WeightedChoice::new(
                fit.map(|(a, weight)| weight * a.classes[c] * a.topics[t]).collect(),
            )
        };
        let entity = |kind: EntityType| {
            let all = world.entities[kind as usize].iter().zip(&weights.entities[kind as usize]);
            WeightedChoice::new(all.map(|(e, weight)| weight * e.topics[t]).collect())
        };
        Self {
            class: WeightedChoice::new((0..classes).map(|c| mass[c] * pull(c)).collect()),
            noun: by_class.into_iter().map(WeightedChoice::new).collect(),
            verb,
            object: world.verbs.iter().map(object).collect(),
            adjective: (0..classes).map(adjective).collect(),
            entity: EntityType::ALL.map(entity),
        }
    }
}

impl WordWeights {
    fn new(world: &World, style: &DomainConfig, rng: &mut ChaCha8Rng) -> Self {
        let mut moved = |usual: Vec<f64>| -> Vec<f64> {
            let mut own = usual.clone();
            shuffle(rng, &mut own);
            let between = |(u, o): (f64, f64)| u.powf(1.0 - style.shift) * o.powf(style.shift);
            let shown = |w: f64| if bernoulli(rng, style.hidden) { 0.0 } else { w };
            usual.into_iter().zip(own).map(between).map(shown).collect()
        };
        let mut nouns = vec![0.0; world.nouns.len()];
        for class in &world.classes {
            let usual = class.nouns.iter().map(|&n| world.nouns[n].frequency).collect();
            for (&n, weight) in class.nouns.iter().zip(moved(usual)) {
                nouns[n] = weight;
            }
        }
        Self {
            nouns,
            verbs: moved(world.verbs.iter().map(|v| v.frequency).collect()),
            adjectives: moved(world.adjectives.iter().map(|a| a.frequency).collect()),
            entities: EntityType::ALL.map(|kind| {
                moved(world.entities[kind as usize].iter().map(|e| e.frequency).collect())
            }),
        }
    }
}
