//! The Transformer encoder of Conneau et al. 2020 and Liu et al. 2020, and which of its parts each language
//! has for itself.
//!
//! - [`EncoderConfig`] is the architecture; [`SharingPlan`] says which parts are separate for each
//!   language. Both are checked once, by [`EncoderConfig::check`].
//! - [`Encoder`] is the model: its weights by role ([`EncoderParam`]) and the forward pass over a
//!   [`tensor::Tape`], on any device.
//! - [`archive`] keeps weights on disk: whole or not at all, and never altered unnoticed.
//!
//! ```
//! use encoder::{Batch, Encoder, EncoderConfig, ParamRole, Request, VocabularySize};
//! use tensor::{Device, Mode, Params, Spans, Tape};
//!
//! let config = EncoderConfig {
//!     languages: vec!["en".to_owned(), "fr".to_owned()],
//!     vocabulary: VocabularySize::Size(100),
//!     layers: 2,
//!     heads: 2,
//!     dim: 8,
//!     hidden: 32,
//!     positions: 16,
//!     separate: "1".parse().unwrap(), // the first layer, for each language
//!     ..EncoderConfig::default()
//! };
//! let mut params = Params::new(&Device::cpu(1).unwrap());
//! let model = Encoder::new(config, &mut params, 1).unwrap();
//! assert!(model.param(ParamRole::TokenEmbedding, None).is_some(), "embeddings are shared");
//!
//! let spans = Spans::of_lengths([3, 2]);
//! let batch = Batch { language: 1, tokens: vec![5, 7, 6, 5, 6].into(), spans, segments: None };
//! let mut tape = Tape::new(&mut params, Mode::Evaluate);
//! let encoded = model.encode(&mut tape, &batch, Request::default());
//! assert_eq!(encoded.hidden.len(), 3, "embeddings and two layers");
//! assert_eq!(tape.value(encoded.output).shape(), (5, 8));
//! ```

pub mod archive;
mod config;
mod init;
mod model;
mod params;
mod parts;
mod plan;

pub use crate::config::{
    ConfigError, EncoderConfig, HiddenActivation, NormPlace, PositionStart, VocabularySize,
};
pub use crate::model::{Batch, Encoder, EncoderOutput, MaskedTokens, Request};
pub use crate::params::{AffinePart, EncoderParam, LayerRole, NormPart, ParamGroup, ParamRole};
pub use crate::parts::{AttentionParts, Biases, Parts, Positions, Rotary, Stretch, Window};
pub use crate::plan::SharingPlan;
