//! The phrases that sentences are composed of.

use super::{Relation, Tree, Upos};
use crate::meaning::{EntityType, MeaningId, World, words};

pub(crate) struct PhraseBuilder<'a> {
    pub(crate) world: &'a World,
    pub(crate) tree: &'a mut Tree,
}

impl PhraseBuilder<'_> {
    /// A name; `short` leaves out a person's first name.
    pub(crate) fn name(
        &mut self,
        head: usize,
        relation: Relation,
        kind: EntityType,
        entity: usize,
        short: bool,
    ) -> usize {
        let mut name = self.world.entities[kind as usize][entity].words.as_slice();
        if short && kind == EntityType::Person {
            name = &name[name.len() - 1..];
        }
        let node = self.tree.attach(head, relation, name[0], Upos::ProperNoun);
        self.tree.node(node).entity = Some(kind);
        for &word in &name[1..] {
            let part = self.tree.attach(node, Relation::Flat, word, Upos::ProperNoun);
            self.tree.node(part).entity = Some(kind);
        }
        node
    }

    pub(crate) fn determiner(&mut self, noun: usize, word: MeaningId) {
        self.tree.attach(noun, Relation::Determiner, word, Upos::Determiner);
    }

    pub(crate) fn adposition(&mut self, noun: usize, word: MeaningId) {
        self.tree.attach(noun, Relation::Case, word, Upos::Adposition);
    }

    pub(crate) fn adjective(&mut self, noun: usize, word: MeaningId) {
        self.tree.attach(noun, Relation::Adjective, word, Upos::Adjective);
    }

    pub(crate) fn negation(&mut self, head: usize) {
        self.tree.attach(head, Relation::Negation, words::NOT, Upos::Particle);
    }

    pub(crate) fn copula(&mut self, head: usize) {
        self.tree.attach(head, Relation::Copula, words::BE, Upos::Auxiliary);
    }

    /// The full stop, in worlds that have one.
    pub(crate) fn stop(&mut self) {
        if self.world.punctuation {
            self.tree.attach(0, Relation::Punctuation, words::STOP, Upos::Punctuation);
        }
    }

    pub(crate) fn agree(&mut self, verb: usize, subject: usize) {
        self.tree.node(verb).plural = self.tree.nodes()[subject].plural;
    }
}
