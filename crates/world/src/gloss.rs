//! Sentences glossed word by word: the form, its meaning, and its place in the dependency tree.

use serde::{Deserialize, Serialize};

use crate::grammar::Tree;
use crate::language::Language;
use crate::meaning::World;

/// A sentence of one language, a word an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlossedSentence {
    /// The language's code.
    pub language: String,
    /// The words, in order.
    pub words: Vec<String>,
    /// The meaning of each.
    pub meanings: Vec<String>,
    /// The dependency relation of each, with the number of its head, counted from 1.
    pub relations: Vec<String>,
}

impl GlossedSentence {
    /// A dependency tree as a language says it.
    pub fn new(world: &World, language: &Language, tree: &Tree) -> Self {
        let order = language.linearize(tree);
        let nodes = tree.nodes();
        let place = |node: usize| order.iter().position(|&n| n == node).map_or(0, |at| at + 1);
        let relation = |&n: &usize| match n {
            0 => "root".to_owned(),
            _ => format!("{}:{}", nodes[n].relation.label(), place(nodes[n].head)),
        };
        let gloss = |&n: &usize| world.meanings()[nodes[n].meaning as usize].gloss.clone();
        Self {
            language: language.code().to_owned(),
            words: order.iter().map(|&n| language.form(tree, n).to_owned()).collect(),
            meanings: order.iter().map(gloss).collect(),
            relations: order.iter().map(relation).collect(),
        }
    }
}
