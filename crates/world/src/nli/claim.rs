//! A claim: a sentence of the fragment whose logic is known.

use crate::grammar::{Phrases, Relation, Tree, Upos};
use crate::meaning::{EntityType, Frame, MeaningId, World, words};

/// Who does or does not do what, to what, where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) subject: Subject,
    /// A verb, as an index.
    pub(crate) verb: usize,
    pub(crate) past: bool,
    pub(crate) object: Option<Thing>,
    pub(crate) adjunct: Option<Adjunct>,
}

/// Whom a claim is about. Only named subjects have a negated verb, so that there is never a
/// question which of two operators applies first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Named { kind: EntityType, entity: usize, negated: bool },
    Quantified { quantifier: Quantifier, kind: Kind },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    All,
    Some,
    No,
}

/// Something of a kind: a noun at any height of the taxonomy, perhaps with a quality.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) noun: MeaningId,
    /// The class the noun is in or above, as an index.
    pub(crate) class: usize,
    pub(crate) adjective: Option<MeaningId>,
}

/// What a deed is done to or where: a named entity, or one thing of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Thing {
    Named(EntityType, usize),
    Kind(Kind),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adjunct {
    pub(crate) adposition: MeaningId,
    pub(crate) thing: Thing,
}

impl Claim {
    /// The claim as a sentence.
    pub(crate) fn tree(&self, world: &World) -> Tree {
        let mut tree = Tree::default();
        let verb = &world.verbs[self.verb];
        let root = tree.start(verb.id, Upos::Verb);
        tree.node(root).past = self.past;
        let mut phrases = Phrases { world, tree: &mut tree };
        match &self.subject {
            Subject::Named { kind, entity, negated } => {
                phrases.name(root, Relation::Subject, *kind, *entity, false);
                if *negated {
                    phrases.negation(root);
                }
            }
            Subject::Quantified { quantifier, kind } => {
                let (word, plural) = match quantifier {
                    Quantifier::All => (words::ALL, true),
                    Quantifier::Some => (words::SOME, true),
                    Quantifier::No => (words::NO, false),
                };
                let subject = kind.attach(&mut phrases, root, Relation::Subject, word);
                phrases.tree.node(subject).plural = plural;
                phrases.agree(root, subject);
            }
        }
        if let Some(object) = &self.object {
            match verb.frame {
                Frame::Oblique(adposition) => {
                    let object = object.attach(&mut phrases, root, Relation::Argument);
                    phrases.adposition(object, adposition);
                }
                _ => {
                    object.attach(&mut phrases, root, Relation::Object);
                }
            }
        }
        if let Some(adjunct) = &self.adjunct {
            let thing = adjunct.thing.attach(&mut phrases, root, Relation::Adjunct);
            phrases.adposition(thing, adjunct.adposition);
        }
        phrases.stop();
        tree
    }
}

impl Kind {
    fn attach(
        &self,
        phrases: &mut Phrases<'_>,
        head: usize,
        relation: Relation,
        determiner: MeaningId,
    ) -> usize {
        let noun = phrases.tree.attach(head, relation, self.noun, Upos::Noun);
        phrases.determiner(noun, determiner);
        if let Some(adjective) = self.adjective {
            phrases.adjective(noun, adjective);
        }
        noun
    }
}

impl Thing {
    fn attach(&self, phrases: &mut Phrases<'_>, head: usize, relation: Relation) -> usize {
        match self {
            Thing::Named(kind, entity) => phrases.name(head, relation, *kind, *entity, false),
            Thing::Kind(kind) => kind.attach(phrases, head, relation, words::A),
        }
    }
}
