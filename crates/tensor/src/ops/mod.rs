//! The operations of the tape, one file each: what it computes, what it saves, its backward pass, and
//! a check of its gradient by finite differences.

mod attention;
mod block_dots;
mod classes;
mod cross_entropy;
mod drop;
mod embed;
mod gate;
mod linear;
mod norm;
mod pair_scores;
mod scale;
mod select;
#[cfg(test)]
mod testing;
mod turn;

pub use self::embed::EmbedTables;
pub use self::linear::Affine;
pub use self::norm::Norm;
pub use self::turn::Turn;
