//! The operations of the tape, one file each: what it computes, what it saves, its backward pass, and
//! a check of its gradient by finite differences.

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
pub use self::linear::Affine;
pub use self::norm::LayerNorm;
