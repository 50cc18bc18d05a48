//! Word alignment of parallel text: trained on the text alone, or from the hidden states of an encoder.
//!
//! The trained model is IBM model 2 (Brown et al. 1993) with its table of positions replaced by a distance from
//! the diagonal, as in fast_align (Dyer, Chahuneau and Smith 2013): a [`Bitext`] is read, [`train`] makes an
//! [`AlignmentModel`] with one [`DirectionModel`] for each [`AlignmentDirection`], each of which links a
//! word to one word of the other sentence or to null, and [`symmetrize`](fn@symmetrize) combines both into
//! one set of [`WordLinks`]. [`align_text`] does all that from file to files, and [`compare`] evaluates
//! links against gold annotations. [`align_with_encoder`] takes links from a [`SimilarityMatrix`] of hidden states
//! instead (SimAlign, awesome-align).
//!
//! ```
//! use align::{AlignmentConfig, Bitext, Symmetrization, train};
//!
//! let bitext = Bitext::new([
//!     ("the house", "la maison"),
//!     ("the blue house", "la maison bleue"),
//!     ("the flower", "la fleur"),
//!     ("the blue flower", "la fleur bleue"),
//!     ("a flower", "une fleur"),
//!     ("a house", "une maison"),
//! ]);
//! let model = train(&bitext, &AlignmentConfig::default(), &mut |_, _| {})?;
//! let posteriors = model.explain_text("the blue house", "la maison bleue");
//! let links = posteriors.links(Symmetrization::GrowDiagFinalAnd);
//! assert_eq!(links.to_string(), "0-0 1-2 2-1");
//! # Ok::<(), align::Error>(())
//! ```

mod bitext;
mod compat;
mod diagonal;
mod dictionary;
mod disk;
mod extraction;
mod input;
mod job;
mod learn;
mod lexicon;
mod links;
mod model;
mod score;
mod special;
mod states;
mod symmetrize;
mod table;
mod view;
mod words;

pub use bitext::{Bitext, BitextSide};
pub use dictionary::LinkedPair;
pub use extraction::{LinkExtraction, SimilarityMatrix, UnitLink};
pub use input::{
    BitextObserver, BitextPreparation, BitextReader, PairCallback, PairRules, ParallelText,
};
pub use job::{
    AlignedBitext, AlignmentObserver, AlignmentOutputs, AlignmentRequest, WordAlignResult,
    align_bitext, align_text,
};
pub use learn::{AlignmentConfig, DirectionalLinks, EmIteration, train_direction};
pub use lexicon::DirectionModel;
pub use links::WordLinks;
pub use model::{AlignmentModel, PairPosteriors, train};
pub use score::{AlignmentScore, GoldLinks, LinkCounts, compare};
pub use states::{
    AlignmentUnit, EncoderAlignOutputs, EncoderAlignRequest, EncoderAlignResult, LayerLinks,
    ReferenceLinks, align_with_encoder,
};
pub use symmetrize::{Symmetrization, symmetrize};
pub use terms::{Error, Result};
pub use view::AlignmentDirection;
pub use words::WordIndex;
