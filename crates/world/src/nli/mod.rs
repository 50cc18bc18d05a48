//! Inference: pairs of claims whose label follows from what they mean.

mod claim;
mod judge;
mod sample;

pub use judge::Label;
pub(crate) use sample::{Item, Sampler};
