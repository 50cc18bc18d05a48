//! The Transformer encoder of the papers, and what of it each language has for itself.
//!
//! - [`EncoderConfig`] says what the encoder looks like; [`Plan`] says which of its parts are
//!   separate for each language. Both are checked once, by [`EncoderConfig::check`].
//! - [`Encoder`] is the model: the names of its weights and the way forward over a
//!   [`tensor::Tape`], on any device.
//! - [`archive`] keeps weights on disk: whole or not at all, and never altered unnoticed.

pub mod archive;
mod config;
mod init;
mod model;
mod parts;
mod plan;

pub use crate::config::{ConfigError, EncoderConfig, NormPlace, PositionStart, Vocabulary};
pub use crate::model::{Batch, Encoded, Encoder, Masked, Request, Shift};
pub use crate::parts::{Part, PerLanguage, Place};
pub use crate::plan::Plan;
