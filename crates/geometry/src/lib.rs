//! What is common to two spaces of vectors, and what a map between them can recover.
//!
//! - [`Matrix`], [`Step`]: vectors in rows, and how they are normalised before anything is learned.
//! - [`Map`]: the orthogonal map of one space onto another.
//! - [`search`]: neighbours by cosine, CSLS or margin, never holding all scores at once.
//! - [`lexicon`]: dictionaries as pairs of rows, and how well translations are found.
//! - [`learn`]: maps from a dictionary, from equal strings, or from nothing at all.
//! - [`sentences`]: translations found among sentences, layer by layer.
//! - [`cka`]: how similar two sets of vectors are up to a rotation.

pub mod cka;
mod error;
pub mod learn;
pub mod lexicon;
mod map;
mod matmul;
mod normalize;
mod products;
pub mod search;
pub mod sentences;

pub use arrays::{Matrix, Stack};

pub use crate::error::{Error, Result};
pub use crate::map::Map;
pub use crate::normalize::{Step, describe, normalize};
