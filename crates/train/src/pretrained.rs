//! A trained encoder, opened for use: weights, vocabulary, and how the one numbers the pieces of the
//! other.

use std::path::{Path, PathBuf};

use encoder::archive::{self, Archive, ArchiveError};
use encoder::{Batch, ConfigError, Encoder, EncoderConfig};
use files::NewFolder;
use serde::{Deserialize, Serialize};
use tensor::{Device, Indices, Params, Spans};
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
    #[error(
        "{0} holds no model; name a folder that `isogloss pretrain` has made, or one of Hugging \
         Face's with its config.json"
    )]
    Nothing(PathBuf),
    /// The weights could not be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The vocabulary could not be read, or is not the one that the model was trained with.
    #[error(transparent)]
    Text(#[from] text::Error),
    /// The folder could not be written.
    #[error(transparent)]
    Files(#[from] files::Error),
    /// The encoder's configuration makes no sense.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What the weights' file says of itself.
#[derive(Serialize, Deserialize)]
struct Facts {
    encoder: EncoderConfig,
    vocabulary: String,
    /// Left out where it is so.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    guesses: bool,
}

fn yes() -> bool {
    true
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
    /// Whether it was trained to guess masked tokens: a checkpoint from elsewhere may have lost what
    /// that takes.
    pub guesses: bool,
    numbering: Numbering,
}

impl From<hub::Checkpoint> for Pretrained {
    fn from(checkpoint: hub::Checkpoint) -> Self {
        let hub::Checkpoint { model, params, vocabulary, fingerprint, summary } = checkpoint;
        let numbering = Numbering::new(&vocabulary, false);
        Self { model, params, vocabulary, fingerprint, guesses: summary.has_mlm_head, numbering }
    }
}

impl Pretrained {
    /// Opens the model of a run's folder, or a checkpoint of Hugging Face's.
    pub fn open(folder: &Path, device: &Device) -> Result<Self, OpenError> {
        let path = folder.join(MODEL);
        if path.is_file() && folder.join(VOCABULARY).is_dir() {
            return Self::open_run(folder, device);
        }
        if hub::is_checkpoint(folder) {
            return Ok(hub::open(folder, device)?.into());
        }
        Err(OpenError::Nothing(folder.to_owned()))
    }

    fn open_run(folder: &Path, device: &Device) -> Result<Self, OpenError> {
        let path = folder.join(MODEL);
        let archive = Archive::open(&path)?;
        let facts: Facts = archive.metadata()?;
        let vocabulary = Vocabulary::load(&folder.join(VOCABULARY))?;
        vocabulary.check_fingerprint(&facts.vocabulary, &path.display().to_string())?;
        let mut params = Params::new(device);
        let model = Encoder::empty(facts.encoder, &mut params)?;
        let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
        let values = params.iter_mut().map(|(_, value, _)| value);
        archive.load(names.into_iter().zip(values).collect())?;
        let numbering = Numbering::new(&vocabulary, model.config().separate.tokens);
        let fingerprint = archive.digest().to_owned();
        Ok(Self { model, params, vocabulary, fingerprint, guesses: facts.guesses, numbering })
    }

    /// Writes the model as a folder of ours, which must not exist yet.
    pub fn save(&self, folder: &Path) -> Result<(), OpenError> {
        let draft = NewFolder::new(folder)?;
        self.vocabulary.save(&draft.path().join(VOCABULARY))?;
        let facts = Facts {
            encoder: self.model.config().clone(),
            vocabulary: self.vocabulary.fingerprint().to_owned(),
            guesses: self.guesses,
        };
        let matrices = self.params.ids();
        let matrices = matrices.map(|id| (self.params.name(id).to_owned(), self.params.value(id)));
        archive::write(&draft.path().join(MODEL), matrices, &facts)?;
        Ok(draft.finish()?)
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
        let segments = (self.model.config().segments > 1).then(|| self.segments(&ids, &spans));
        let tokens = self.numbering.to_encoder(language, &ids);
        Batch { language, tokens, spans, segments }
    }

    /// The second sentence of a pair, behind the first mark of an end, is the second segment.
    fn segments(&self, ids: &[u32], spans: &Spans) -> Indices {
        let (_, end) = self.vocabulary.frame();
        let mut segments = vec![0; ids.len()];
        for span in spans.iter() {
            let first = ids[span.clone()].iter().position(|&id| id == end);
            let second = first.map_or(span.end, |at| span.start + at + 1);
            segments[second..span.end].fill(1);
        }
        segments.into()
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
