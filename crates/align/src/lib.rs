//! Word alignment: which word of a sentence stands for which word of its translation, learned from
//! parallel text alone.
//!
//! The model is IBM model 2 with its table of positions replaced by a distance from the diagonal
//! (Dyer, Chahuneau and Smith 2013): a [`Bitext`] is read, [`train`] learns a [`Model`] with one
//! [`Lexicon`] for each [`Direction`], each of which links a word to one word of the other sentence
//! or to none, and [`symmetrise`](fn@symmetrise) makes one set of [`Links`] of both.

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
mod symmetrise;
mod table;
mod view;
mod words;

pub use bitext::{Bitext, Side};
pub use error::{Error, Result};
pub use input::{HearPair, Heard, Input, Preparing, Reader};
pub use learn::{Config, OneWay, Pass, train_direction};
pub use lexicon::Lexicon;
pub use links::Links;
pub use model::{Explained, Model, train};
pub use score::{Gold, Score, Tally, compare};
pub use symmetrise::{Symmetry, symmetrise};
pub use view::Direction;
pub use words::Words;
