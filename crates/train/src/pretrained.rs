//! A trained encoder, opened for use: weights, vocabulary, and how the one numbers the pieces of the
//! other.

use std::path::{Path, PathBuf};

use encoder::archive::{Archive, ArchiveError};
use encoder::{Batch, ConfigError, Encoder, EncoderConfig};
use serde::Deserialize;
use tensor::{Device, Params, Spans};
use text::{SentenceReader, Vocabulary};

use crate::pretrain::numbering::Numbering;

/// The file of a run that holds its best weights.
pub(crate) const MODEL: &str = "model.safetensors";
/// The folder of a run that holds its vocabulary.
pub(crate) const VOCABULARY: &str = "vocabulary";

/// Why a model could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is no model there.
    #[error("{0} holds no model; name a folder that `isogloss pretrain` has made")]
    Nothing(PathBuf),
    /// The weights could not be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The vocabulary could not be read, or is not the one that the model was trained with.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// The encoder's configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What the weights' file says of itself.
#[derive(Deserialize)]
struct Facts {
    encoder: EncoderConfig,
    vocabulary: String,
}

/// A trained encoder with its vocabulary.
pub struct Pretrained {
    /// The encoder.
    pub model: Encoder,
    /// Its weights.
    pub params: Params,
    /// The vocabulary that it was trained with.
    pub vocabulary: Vocabulary,
    /// What tells these weights from any other: a digest of their file.
    pub fingerprint: String,
    numbering: Numbering,
}

impl Pretrained {
    /// Opens the model of a run's folder.
    pub fn open(folder: &Path, device: &Device) -> Result<Self, OpenError> {
        let path = folder.join(MODEL);
        if !path.is_file() {
            return Err(OpenError::Nothing(folder.to_owned()));
        }
        let archive = Archive::open(&path)?;
        let facts: Facts = archive.facts()?;
        let vocabulary = Vocabulary::load(&folder.join(VOCABULARY))?;
        vocabulary.check_fingerprint(&facts.vocabulary, &path.display().to_string())?;
        let mut params = Params::new(device);
        let model = Encoder::new(facts.encoder, &mut params, 0)?;
        let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
        let values = params.iter_mut().map(|(_, value, _)| value);
        archive.load(names.into_iter().zip(values).collect())?;
        let numbering = Numbering::new(&vocabulary, model.config().separate.tokens);
        let fingerprint = archive.digest().to_owned();
        Ok(Self { model, params, vocabulary, fingerprint, numbering })
    }

    /// Sequences of ids of the vocabulary, frame and all, as a batch for the encoder.
    pub fn batch<'a>(
        &self,
        language: usize,
        sequences: impl IntoIterator<Item = &'a [u32], IntoIter: Clone>,
    ) -> Batch {
        let sequences = sequences.into_iter();
        let spans = Spans::of_lengths(sequences.clone().map(<[u32]>::len));
        let ids: Vec<u32> = sequences.flatten().copied().collect();
        Batch { language, tokens: self.numbering.to_encoder(language, &ids), spans }
    }

    /// Turns lines of a language into sequences that the encoder can take.
    pub fn reader(&self, language: &str) -> text::Result<SentenceReader> {
        self.vocabulary.reader(language, self.model.config().positions)
    }

    /// The id of the vocabulary that a row of a language's softmax stands for.
    pub fn id(&self, language: usize, row: u32) -> u32 {
        self.numbering.to_vocabulary(&self.vocabulary, language, row)
    }
}
