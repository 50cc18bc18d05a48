//! A document: one topic, recurring entities and nouns, and sentences about them.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::{PhraseBuilder, Relation, Tree, Upos};
use crate::meaning::{Domain, EntityType, MeaningId, SubjectType, VerbFrame, World, words};
use crate::random::{bernoulli, choose};

/// How strongly a verb must prefer a class for a recurring noun to be its object.
const FITTING: f64 = 0.3;

/// The topic and the recurring referents of a document.
pub(crate) struct Discourse<'a> {
    world: &'a World,
    domain: &'a Domain,
    topic: usize,
    /// The person, the place and the organisation.
    cast: [usize; 3],
    nouns: [usize; 3],
}

impl<'a> Discourse<'a> {
    /// Opens a document about a topic as frequent as the domain has it.
    pub(crate) fn open(world: &'a World, domain: &'a Domain, rng: &mut ChaCha8Rng) -> Self {
        Self::about(world, domain, domain.topic(rng), rng)
    }

    pub(crate) fn about(
        world: &'a World,
        domain: &'a Domain,
        topic: usize,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let person = domain.entity(topic, EntityType::Person, rng);
        let facts = world.entities[EntityType::Person as usize][person].person;
        let known = |fact: Option<usize>, kind, rng: &mut ChaCha8Rng| match fact {
            Some(fact) if bernoulli(rng, world.facts) => fact,
            _ => domain.entity(topic, kind, rng),
        };
        let place = known(facts.map(|f| f.home), EntityType::Place, rng);
        let organisation = known(facts.map(|f| f.employer), EntityType::Organisation, rng);
        let nouns = std::array::from_fn(|_| domain.noun(world, topic, rng));
        Self { world, domain, topic, cast: [person, place, organisation], nouns }
    }

    /// How many sentences a document of this domain has.
    pub(crate) fn length(&self, rng: &mut ChaCha8Rng) -> usize {
        let [least, most] = self.domain.style.document;
        rng.random_range(least..=most)
    }

    /// Draws a sentence, which replaces the content of `tree`.
    pub(crate) fn sentence(&self, tree: &mut Tree, rng: &mut ChaCha8Rng) {
        if bernoulli(rng, 0.07) {
            self.statement(tree, rng);
        } else {
            self.clause(tree, rng);
        }
        PhraseBuilder { world: self.world, tree }.stop();
    }

    /// A copular sentence: the class of a noun, the role of a person, or a property.
    fn statement(&self, tree: &mut Tree, rng: &mut ChaCha8Rng) {
        let kind = rng.random::<f64>();
        let negated = bernoulli(rng, self.domain.style.negation);
        let world = self.world;
        if kind < 0.4 {
            let noun = self.domain.noun(world, self.topic, rng);
            let class = &world.classes[world.nouns[noun].class];
            let kind = if bernoulli(rng, 0.65) { class.id } else { class.superclass };
            tree.start(kind, Upos::Noun);
            self.noun_phrase(tree, 0, Relation::Subject, noun, false, rng);
        } else if kind < 0.7 {
            let [person, ..] = self.cast;
            let facts = world.entities[EntityType::Person as usize][person].person;
            let role = facts.map_or(self.nouns[0], |facts| facts.role);
            tree.start(world.nouns[role].id, Upos::Noun);
            let mut phrases = PhraseBuilder { world, tree };
            phrases.name(0, Relation::Subject, EntityType::Person, person, false);
        } else {
            let noun = *choose(rng, &self.nouns);
            tree.start(self.adjective(world.nouns[noun].class, rng), Upos::Adjective);
            let subject = tree.attach(0, Relation::Subject, world.nouns[noun].id, Upos::Noun);
            PhraseBuilder { world, tree }.determiner(subject, words::THE);
        }
        let mut phrases = PhraseBuilder { world, tree };
        phrases.copula(0);
        if phrases.tree.nodes()[0].upos == Upos::Noun {
            phrases.determiner(0, words::A);
        }
        if negated {
            phrases.negation(0);
        }
    }

    /// A sentence with a verb.
    fn clause(&self, tree: &mut Tree, rng: &mut ChaCha8Rng) {
        let style = &self.domain.style;
        let who = rng.random::<f64>();
        let (kind, noun) = if who < 0.34 {
            (SubjectType::Person, 0)
        } else if who < 0.44 {
            (SubjectType::Organisation, 0)
        } else {
            let noun = self.recalled_noun(0.45, rng);
            (SubjectType::NounClass(self.world.nouns[noun].class), noun)
        };
        let verb = self.domain.verb(self.topic, kind, rng);
        let root = tree.start(self.world.verbs[verb].id, Upos::Verb);
        tree.node(root).past = bernoulli(rng, 0.4);
        let subject = match kind {
            SubjectType::Person if bernoulli(rng, 2.0 * style.pronouns) => {
                tree.attach(root, Relation::Subject, words::HE, Upos::Pronoun)
            }
            SubjectType::Person => {
                let short = bernoulli(rng, 0.4);
                self.entity(tree, root, Relation::Subject, EntityType::Person, (0.7, short), rng)
            }
            SubjectType::Organisation => {
                let kind = EntityType::Organisation;
                self.entity(tree, root, Relation::Subject, kind, (0.6, false), rng)
            }
            SubjectType::NounClass(_) if bernoulli(rng, style.pronouns) => {
                tree.attach(root, Relation::Subject, words::IT, Upos::Pronoun)
            }
            SubjectType::NounClass(_) => {
                self.noun_phrase(tree, root, Relation::Subject, noun, true, rng)
            }
        };
        let mut phrases = PhraseBuilder { world: self.world, tree };
        phrases.agree(root, subject);
        if bernoulli(rng, style.negation) {
            phrases.negation(root);
        }
        self.complement(tree, root, verb, true, rng);
        if bernoulli(rng, style.adjuncts) {
            self.adjunct(tree, root, rng);
        }
    }

    /// The complement of a verb; only a main clause has names and long phrases there.
    fn complement(
        &self,
        tree: &mut Tree,
        head: usize,
        verb: usize,
        main: bool,
        rng: &mut ChaCha8Rng,
    ) {
        let verb_entry = &self.world.verbs[verb];
        let (relation, adposition) = match verb_entry.frame {
            VerbFrame::Intransitive => return,
            VerbFrame::Transitive => (Relation::Object, None),
            VerbFrame::Oblique(adposition) => (Relation::Argument, Some(adposition)),
        };
        let named = verb_entry.named_object.filter(|_| main && bernoulli(rng, 0.5));
        let object = if let Some(kind) = named {
            self.entity(tree, head, relation, kind, (0.5, false), rng)
        } else {
            let fits = |n: &&usize| verb_entry.objects[self.world.nouns[**n].class] > FITTING;
            let fitting: Vec<usize> = self.nouns.iter().filter(fits).copied().collect();
            let again = main && bernoulli(rng, 0.35 * self.world.recurrence);
            let noun = if again && !fitting.is_empty() {
                *choose(rng, &fitting)
            } else {
                self.domain.object(self.world, self.topic, verb, rng)
            };
            self.noun_phrase(tree, head, relation, noun, main, rng)
        };
        if let Some(adposition) = adposition {
            PhraseBuilder { world: self.world, tree }.adposition(object, adposition);
        }
    }

    fn adjunct(&self, tree: &mut Tree, head: usize, rng: &mut ChaCha8Rng) {
        let kind = rng.random::<f64>();
        let usual = bernoulli(rng, 0.6);
        let (phrase, adposition) = if kind < 0.55 {
            let place = EntityType::Place;
            let phrase = self.entity(tree, head, Relation::Adjunct, place, (0.6, false), rng);
            let other = if bernoulli(rng, 0.5) { words::FROM } else { words::TO };
            (phrase, if usual { words::IN } else { other })
        } else if kind < 0.8 {
            let organisation = EntityType::Organisation;
            let phrase =
                self.entity(tree, head, Relation::Adjunct, organisation, (0.6, false), rng);
            (phrase, if usual { words::AT } else { words::FOR })
        } else {
            let noun = self.domain.noun(self.world, self.topic, rng);
            let phrase = self.noun_phrase(tree, head, Relation::Adjunct, noun, false, rng);
            (phrase, if usual { words::WITH } else { words::UNDER })
        };
        PhraseBuilder { world: self.world, tree }.adposition(phrase, adposition);
    }

    /// A named entity: the recurring one with the given probability, else one drawn from the topic.
    fn entity(
        &self,
        tree: &mut Tree,
        head: usize,
        relation: Relation,
        kind: EntityType,
        (again, short): (f64, bool),
        rng: &mut ChaCha8Rng,
    ) -> usize {
        let entity = if bernoulli(rng, again * self.world.recurrence) {
            self.cast[kind as usize]
        } else {
            self.domain.entity(self.topic, kind, rng)
        };
        PhraseBuilder { world: self.world, tree }.name(head, relation, kind, entity, short)
    }

    /// A noun with its determiner and perhaps an adjective; a `full` phrase can also have a relative
    /// clause or a genitive.
    fn noun_phrase(
        &self,
        tree: &mut Tree,
        head: usize,
        relation: Relation,
        noun: usize,
        full: bool,
        rng: &mut ChaCha8Rng,
    ) -> usize {
        let style = &self.domain.style;
        let class = self.world.nouns[noun].class;
        let (determiner, plural) = determiner(rng);
        let node = tree.attach(head, relation, self.world.nouns[noun].id, Upos::Noun);
        tree.node(node).plural = bernoulli(rng, plural);
        let mut phrases = PhraseBuilder { world: self.world, tree };
        if let Some(determiner) = determiner {
            phrases.determiner(node, determiner);
        }
        if bernoulli(rng, style.adjectives) {
            phrases.adjective(node, self.adjective(class, rng));
        }
        let more = rng.random::<f64>();
        if full && more < style.relatives {
            self.relative_clause(tree, node, class, rng);
        } else if full && more < style.relatives + style.genitives {
            let owner = self.domain.noun(self.world, self.topic, rng);
            let owner = self.noun_phrase(tree, node, Relation::Genitive, owner, false, rng);
            PhraseBuilder { world: self.world, tree }.adposition(owner, words::OF);
        }
        node
    }

    fn relative_clause(&self, tree: &mut Tree, noun: usize, class: usize, rng: &mut ChaCha8Rng) {
        let verb = self.domain.verb(self.topic, SubjectType::NounClass(class), rng);
        let id = self.world.verbs[verb].id;
        let node = tree.attach(noun, Relation::RelativeClause, id, Upos::Verb);
        tree.node(node).past = bernoulli(rng, 0.4);
        tree.attach(node, Relation::Relativizer, words::WHICH, Upos::Pronoun);
        PhraseBuilder { world: self.world, tree }.agree(node, noun);
        self.complement(tree, node, verb, false, rng);
    }

    fn recalled_noun(&self, again: f64, rng: &mut ChaCha8Rng) -> usize {
        if bernoulli(rng, again * self.world.recurrence) {
            *choose(rng, &self.nouns)
        } else {
            self.domain.noun(self.world, self.topic, rng)
        }
    }

    fn adjective(&self, class: usize, rng: &mut ChaCha8Rng) -> MeaningId {
        self.world.adjectives[self.domain.adjective(self.topic, class, rng)].id
    }
}

/// A determiner, and how often a noun with it is plural.
fn determiner(rng: &mut ChaCha8Rng) -> (Option<MeaningId>, f64) {
    match rng.random::<f64>() {
        u if u < 0.40 => (Some(words::THE), 0.25),
        u if u < 0.65 => (Some(words::A), 0.0),
        u if u < 0.70 => (Some(words::ALL), 1.0),
        u if u < 0.75 => (Some(words::SOME), 0.5),
        u if u < 0.79 => (Some(words::MANY), 1.0),
        u if u < 0.81 => (Some(words::NO), 0.25),
        _ => (None, 0.4),
    }
}
