//! The operations of the tape, one file each: what it computes, what it remembers, how it is
//! walked back, and a check of its gradient by finite differences.

mod add_row;
mod attention;
mod block_dots;
mod classes;
mod cross_entropy;
mod drop;
mod embed;
mod linear;
mod norm;
mod pair_scores;
mod select;
#[cfg(test)]
mod testing;

pub use self::embed::EmbedTables;
pub use self::linear::{Activation, Affine};
pub use self::norm::LayerNorm;
