//! Word alignment: which word of a sentence stands for which word of its translation, learned from
//! parallel text alone.
//!
//! The model is IBM model 2 with its table of positions replaced by a distance from the diagonal
//! (Dyer, Chahuneau and Smith 2013): a [`Bitext`] is read, [`train`] learns a [`AlignmentModel`] with one
//! [`DirectionModel`] for each [`AlignmentDirection`], each of which links a word to one word of the other sentence
//! or to none, and [`symmetrize`](fn@symmetrize) makes one set of [`WordLinks`] of both.

mod bitext;
mod compat;
mod diagonal;
mod disk;
mod error;
mod input;
mod learn;
mod lexicon;
mod links;
mod model;
mod score;
mod special;
mod symmetrize;
mod table;
mod view;
mod words;

pub use bitext::{Bitext, BitextSide};
pub use error::{Error, Result};
pub use input::{BitextObserver, BitextPreparation, BitextReader, PairCallback, ParallelText};
pub use learn::{AlignmentConfig, DirectionalLinks, EmIteration, train_direction};
pub use lexicon::DirectionModel;
pub use links::WordLinks;
pub use model::{AlignmentModel, PairPosteriors, train};
pub use score::{AlignmentScore, GoldLinks, LinkCounts, compare};
pub use symmetrize::{Symmetrization, symmetrize};
pub use view::AlignmentDirection;
pub use words::WordIndex;
