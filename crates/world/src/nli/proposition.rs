//! A proposition: a sentence of the fragment whose entailments can be decided.

use crate::grammar::{PhraseBuilder, Relation, Tree, Upos};
use crate::meaning::{EntityType, MeaningId, VerbFrame, World, words};

/// Subject, verb, object and adjunct, with quantifier or negation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proposition {
    pub(crate) subject: PropositionSubject,
    /// A verb, as an index.
    pub(crate) verb: usize,
    pub(crate) past: bool,
    pub(crate) object: Option<Participant>,
    pub(crate) adjunct: Option<Adjunct>,
}

/// The subject. Only named subjects have a negated verb, so that scope is never ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PropositionSubject {
    Named { kind: EntityType, entity: usize, negated: bool },
    Quantified { quantifier: Quantifier, kind: Concept },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantifier {
    All,
    Some,
    No,
}

/// A noun at any height of the taxonomy, with an optional adjective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Concept {
    pub(crate) noun: MeaningId,
    /// The class the noun is in or above, as an index.
    pub(crate) class: usize,
    pub(crate) adjective: Option<MeaningId>,
}

/// An object or the noun phrase of an adjunct: a named entity, or an indefinite concept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Participant {
    Named(EntityType, usize),
    Concept(Concept),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Adjunct {
    pub(crate) adposition: MeaningId,
    pub(crate) thing: Participant,
}

impl Proposition {
    pub(crate) fn tree(&self, world: &World) -> Tree {
        let mut tree = Tree::default();
        let verb = &world.verbs[self.verb];
        let root = tree.start(verb.id, Upos::Verb);
        tree.node(root).past = self.past;
        let mut phrases = PhraseBuilder { world, tree: &mut tree };
        match &self.subject {
            PropositionSubject::Named { kind, entity, negated } => {
                phrases.name(root, Relation::Subject, *kind, *entity, false);
                if *negated {
                    phrases.negation(root);
                }
            }
            PropositionSubject::Quantified { quantifier, kind } => {
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
                VerbFrame::Oblique(adposition) => {
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

impl Concept {
    fn attach(
        &self,
        phrases: &mut PhraseBuilder<'_>,
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

impl Participant {
    fn attach(&self, phrases: &mut PhraseBuilder<'_>, head: usize, relation: Relation) -> usize {
        match self {
            Participant::Named(kind, entity) => phrases.name(head, relation, *kind, *entity, false),
            Participant::Concept(kind) => kind.attach(phrases, head, relation, words::A),
        }
    }
}
