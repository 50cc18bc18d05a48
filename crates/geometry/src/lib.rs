//! What is common to two spaces of vectors, and what a map between them can recover.
//!
//! - [`Matrix`], [`Step`]: vectors in rows, and how they are normalised before anything is learned.
//! - [`Map`]: the orthogonal map of one space onto another.
//! - [`search`]: neighbours by cosine, CSLS or margin, never holding all scores at once.
//! - [`lexicon`]: dictionaries as pairs of rows, and how well translations are found.
//! - [`learn`]: maps from a dictionary, from equal strings, or from nothing at all.
//! - [`sentences`]: translations found among sentences, layer by layer.
//! - [`cka`]: how similar two sets of vectors are up to a rotation.
//! - [`arrays`]: stacks of layers on disk, read and written piece by piece.
//! - [`states`], [`words`], [`links`]: the vectors that a trained encoder gives to sentences, to
//!   words, and to pairs of words in translated sentences.

pub mod arrays;
pub mod cka;
mod error;
pub mod learn;
pub mod lexicon;
pub mod links;
mod map;
mod matrix;
mod normalize;
mod products;
pub mod search;
pub mod sentences;
pub mod states;
pub mod words;

pub use crate::error::{Error, Result};
pub use crate::map::Map;
pub use crate::matrix::Matrix;
pub use crate::normalize::{Step, describe, normalize};
