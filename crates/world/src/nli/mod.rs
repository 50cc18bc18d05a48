//! NLI: pairs of propositions whose label follows from their meaning.

mod entailment;
mod proposition;
mod sample;

pub use entailment::NliLabel;
pub(crate) use sample::{NliItem, NliSampler};
