//! What training and conversion report.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sentences::IndexedSentences;
use crate::table::WordVectors;

/// Vectors as they were trained.
#[derive(Debug)]
pub struct TrainedVectors {
    /// The vectors, words by decreasing frequency.
    pub vectors: WordVectors,
    /// The loss of each epoch, as it was during training: for Word2Vec the mean over examples (a
    /// positive with its negative samples) in nats, for GloVe the mean over pairs of half the weighted
    /// squared error.
    pub losses: Vec<f64>,
}

/// The result of training word vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingResult {
    /// `word2vec` or `glove`.
    pub method: String,
    /// The file of vectors.
    pub file: PathBuf,
    /// Words with a vector.
    pub words: usize,
    /// Columns.
    pub dim: usize,
    /// Words of the training text.
    pub tokens: u64,
    /// Sentences of the training text.
    pub sentences: u64,
    /// Sentences that were longer than the inputs of the run that they are of, and were cut as these were.
    pub cut: u64,
    /// The loss of each epoch.
    pub losses: Vec<f64>,
    /// Seconds of training, without reading and writing.
    pub seconds: f64,
    /// Words asked for that have no vector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// How the vectors were trained.
    pub signature: String,
}

impl TrainingResult {
    /// Describes vectors that were written to a file.
    pub fn new(
        method: &str,
        config: &impl Serialize,
        sentences: &IndexedSentences,
        trained: &TrainedVectors,
        file: &Path,
        seconds: f64,
    ) -> Self {
        let config = serde_json::to_vec(config).expect("plain data");
        let config = blake3::hash(&config).to_hex();
        let signature = format!(
            "vectors|{method}|config:{}|text:{}|v:{}",
            &config[..12],
            &sentences.fingerprint()[..12],
            env!("CARGO_PKG_VERSION")
        );
        Self {
            method: method.to_owned(),
            file: file.to_owned(),
            words: trained.vectors.len(),
            dim: trained.vectors.dim(),
            tokens: sentences.total(),
            sentences: sentences.sentences(),
            cut: sentences.cut(),
            losses: trained.losses.clone(),
            seconds,
            without: Vec::new(),
            signature,
        }
    }
}

/// The result of converting a file of vectors.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionResult {
    /// The file that was written.
    pub file: PathBuf,
    /// Words.
    pub words: usize,
    /// Columns.
    pub dim: usize,
}
