//! From meaning to sentence: dependency trees without order, which each language then arranges.

mod phrases;
mod scene;
mod tree;

pub(crate) use phrases::Phrases;
pub(crate) use scene::Scene;
pub use tree::{Node, Relation, Tree, Upos};
