//! From meaning to sentence: unordered dependency trees, which each language then linearises.

mod discourse;
mod paraphrase;
mod phrases;
mod tree;

pub(crate) use discourse::Discourse;
pub(crate) use phrases::PhraseBuilder;
pub use tree::{Node, Relation, Tree, Upos};
