//! Geometry of vector spaces: what two of them have in common, and what a map between them recovers.
//!
//! - [`Step`], [`normalize()`]: length normalisation, centring and iterative normalisation.
//! - [`Map`]: the orthogonal map of one space onto another (Procrustes).
//! - [`search`]: nearest neighbours by cosine, CSLS or margin, never holding all scores at once.
//! - [`lexicon`]: bilingual dictionaries as pairs of rows, and the accuracy of lookups.
//! - [`learn`]: refinement of a map, and unsupervised learning without a dictionary.
//! - [`joint`]: maps of many languages into one space, learned together (generalised Procrustes).
//! - [`align`]: the whole alignment of word vectors, and of the layers of contextual vectors.
//! - [`retrieval`]: translations retrieved among sentences: raw, mean-centred, Procrustes-aligned.
//! - [`mining`]: translation pairs mined between two texts of unequal size.
//! - [`predictions`]: what a retrieval or a lookup found, query by query.
//! - [`neighbours`]: the nearest neighbours of words and sentences across languages.
//! - [`projection`]: planes to draw spaces on, and the share of variance between languages.
//! - [`cka`]: linear CKA of all layers of two stacks.
//! - [`language_id`]: what a linear probe tells of the language, before and after its removal.
//! - [`similarity`]: measures of the similarity of the same layers, each beside its chance level.
//!
//! ```
//! use geometry::{Map, Matrix};
//!
//! // Four points, and the same rotated by a right angle.
//! let source = Matrix::new(4, 2, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, -1.0]);
//! let target = Matrix::new(4, 2, vec![0.0, 1.0, -1.0, 0.0, -1.0, 1.0, 1.0, 2.0]);
//! let map = Map::procrustes(&source, &target);
//! for (mapped, wanted) in map.apply(&source).values().iter().zip(target.values()) {
//!     assert!((mapped - wanted).abs() < 1e-6);
//! }
//! ```

pub mod align;
pub mod cka;
pub mod joint;
pub mod language_id;
pub mod learn;
pub mod lexicon;
mod map;
mod matmul;
pub mod mining;
pub mod neighbours;
mod normalize;
pub mod predictions;
mod products;
pub mod projection;
pub mod retrieval;
pub mod search;
pub mod similarity;

pub use arrays::{Matrix, Stack};

pub use crate::map::Map;
pub use crate::normalize::{Step, describe, normalize};
pub use terms::{Error, Result};
