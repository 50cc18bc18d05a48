//! A trained encoder, opened for use: its weights, its vocabulary, and the token ids of either.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use encoder::archive::{self, Archive};
use encoder::{Batch, Encoder, EncoderConfig, SharingPlan, VocabularySize};
use files::NewFolder;
use serde::{Deserialize, Serialize};
use tensor::{Device, Indices, Params, Spans};
use text::{SentenceReader, Vocabulary};

use crate::error::OpenError;
use crate::location::ModelLocation;
use crate::pooling::{Pooling, SentenceVectors};
use crate::saved::{SavedStates, StateReader};
use crate::token_ids::TokenIdMap;

/// The file of a run that holds its best weights.
pub const MODEL_FILE: &str = "model.safetensors";
/// The folder of a run that holds its vocabulary.
pub const VOCABULARY_FOLDER: &str = "vocabulary";

/// What the weights' file says of itself.
#[derive(Serialize, Deserialize)]
struct WeightsMetadata {
    encoder: EncoderConfig,
    vocabulary: String,
    /// Left out where it is true.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    has_mlm_head: bool,
    /// Left out where it is false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    predicts_next: bool,
}

fn yes() -> bool {
    true
}

/// A trained encoder with its weights and its vocabulary.
pub struct PretrainedModel {
    /// The encoder.
    pub encoder: Encoder,
    /// Its weights.
    pub params: Params,
    /// The vocabulary that it was trained with.
    pub vocabulary: Vocabulary,
    /// What tells these weights from any other: a digest of their file.
    pub fingerprint: String,
    /// Whether it predicts masked tokens: a checkpoint from elsewhere may lack the head for that.
    pub has_mlm_head: bool,
    /// Whether it predicts the next token, as a decoder with its head does.
    pub predicts_next: bool,
    /// Which vector stands for a sentence, where vectors of sentences are made.
    pub sentence_vectors: SentenceVectors,
    /// Its states, where they were computed elsewhere.
    saved: Option<Arc<SavedStates>>,
    /// Where it was read from.
    source: PathBuf,
    token_ids: TokenIdMap,
}

/// The architecture of a model, without its weights.
pub fn architecture(folder: &Path) -> Result<EncoderConfig, OpenError> {
    match ModelLocation::find(folder)? {
        ModelLocation::Run { weights, .. } => {
            Ok(Archive::open(&weights)?.metadata::<WeightsMetadata>()?.encoder)
        }
        ModelLocation::HuggingFace(folder) => Ok(hub::architecture(&folder)?),
        ModelLocation::States(folder) => Err(OpenError::StatesAlone(folder)),
    }
}

/// Every token id that the vocabulary gives has a row in the embedding table.
fn check_rows(
    path: &Path,
    config: &EncoderConfig,
    needed: &VocabularySize,
) -> Result<(), OpenError> {
    for (number, language) in config.languages.iter().enumerate() {
        let needed = match needed {
            VocabularySize::Size(size) => *size,
            VocabularySize::Sizes(sizes) => sizes.get(language).copied().unwrap_or(0),
        };
        let rows = config.entries(number);
        if rows < needed {
            let reason =
                format!("has {rows} embeddings for the {needed} subwords of its vocabulary");
            let remedy = "put the weights and the vocabulary of one run in one folder";
            return Err(text::Error::file(path, reason, remedy).into());
        }
    }
    Ok(())
}

impl From<hub::Checkpoint> for PretrainedModel {
    fn from(checkpoint: hub::Checkpoint) -> Self {
        let hub::Checkpoint { model, params, vocabulary, fingerprint, summary } = checkpoint;
        let token_ids = TokenIdMap::new(&vocabulary, &SharingPlan::none());
        Self {
            encoder: model,
            params,
            vocabulary,
            fingerprint,
            has_mlm_head: summary.has_mlm_head,
            predicts_next: summary.encoder.parts.attention.causal && summary.missing.is_empty(),
            sentence_vectors: SentenceVectors::default(),
            saved: None,
            source: summary.folder,
            token_ids,
        }
    }
}

impl PretrainedModel {
    /// Opens the model of a run's folder, a snapshot of a run (`RUN@STEP`), or a Hugging Face checkpoint.
    pub fn open(name: &Path, device: &Device) -> Result<Self, OpenError> {
        match ModelLocation::find(name)? {
            ModelLocation::Run { folder, weights } => Self::open_run(&folder, &weights, device),
            ModelLocation::HuggingFace(folder) => Ok(hub::open(&folder, device)?.into()),
            ModelLocation::States(folder) => Err(OpenError::StatesAlone(folder)),
        }
    }

    fn open_run(folder: &Path, path: &Path, device: &Device) -> Result<Self, OpenError> {
        let archive = Archive::open(path)?;
        let metadata: WeightsMetadata = archive.metadata()?;
        let vocabulary = Vocabulary::load(&folder.join(VOCABULARY_FOLDER))?;
        vocabulary.check_fingerprint(&metadata.vocabulary, &path.display().to_string())?;
        metadata.encoder.check()?;
        archive.check_holds(metadata.encoder.least_weights())?;
        let mut params = Params::new(device);
        let encoder = Encoder::empty(metadata.encoder.clone(), &mut params)?;
        let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
        let values = params.iter_mut().map(|(_, value, _)| value);
        archive.load(names.into_iter().zip(values).collect())?;
        let token_ids = TokenIdMap::new(&vocabulary, &encoder.config().separate);
        check_rows(path, encoder.config(), &token_ids.entries(&vocabulary))?;
        let fingerprint = archive.digest().to_owned();
        let WeightsMetadata { has_mlm_head, predicts_next, .. } = metadata;
        Ok(Self {
            encoder,
            params,
            vocabulary,
            fingerprint,
            has_mlm_head,
            predicts_next,
            sentence_vectors: SentenceVectors::default(),
            saved: None,
            source: folder.to_owned(),
            token_ids,
        })
    }

    /// States that were computed elsewhere, behind an encoder that is never run.
    pub(crate) fn of_saved(
        encoder: Encoder,
        params: Params,
        vocabulary: Vocabulary,
        saved: SavedStates,
    ) -> Self {
        let token_ids = TokenIdMap::new(&vocabulary, &SharingPlan::none());
        Self {
            encoder,
            params,
            vocabulary,
            fingerprint: saved.fingerprint().to_owned(),
            has_mlm_head: false,
            predicts_next: false,
            sentence_vectors: SentenceVectors::default(),
            source: saved.folder().to_owned(),
            saved: Some(Arc::new(saved)),
            token_ids,
        }
    }

    /// Has sentences read, and their vectors made, in another way: as its own files of sentence-transformers say where no
    /// pooling is given. A prompt, or the name of one of the model's, is put before every sentence.
    ///
    /// # Errors
    /// Where the model does not say how, or does something that is not known here.
    pub fn set_sentence_vectors(
        &mut self,
        pooling: Option<Pooling>,
        prompt: Option<&str>,
    ) -> crate::Result<()> {
        if self.saved.is_some() && (prompt.is_some() || pooling.is_none()) {
            let reason = "holds states that were computed before";
            let remedy =
                "compute them with the prompt, and pool them by mean, first, last or weighted";
            return Err(crate::Error::input(self.source.display(), reason, remedy));
        }
        let Some(pooling) = pooling else {
            let Some(modules) = hub::sentence_modules(&self.source)? else {
                let remedy = "take another --pool";
                let reason =
                    "does not say how vectors of sentences are made (it has no modules.json)";
                return Err(crate::Error::input(self.source.display(), reason, remedy));
            };
            let prompt = modules.prompt(prompt);
            let mut skipped = 0;
            if let Some(language) = self
                .vocabulary
                .languages()
                .next()
                .filter(|_| !prompt.is_empty() && !modules.include_prompt)
            {
                let mut reader = self.reader(language)?;
                let end = usize::from(self.vocabulary.frame().1.is_some());
                skipped = reader.sentence(&prompt).ids.len() - end;
            }
            let own = Some(modules);
            self.sentence_vectors =
                SentenceVectors { own, prompt, skipped, pooling: Pooling::Mean };
            return Ok(());
        };
        let prompt = prompt.unwrap_or_default().to_owned();
        self.sentence_vectors = SentenceVectors { prompt, ..pooling.into() };
        Ok(())
    }

    /// Reads sentences of a language for their states.
    pub fn sentences(&self, language: &str) -> text::Result<StateReader> {
        let SentenceVectors { own, prompt, .. } = &self.sentence_vectors;
        let longest = own.as_ref().and_then(|own| own.longest).unwrap_or(usize::MAX);
        let longest = longest.min(self.encoder.config().positions);
        let frame = self.vocabulary.frame();
        let reader = self.vocabulary.reader(language, longest.max(frame.count() + 1))?;
        let lowercase = own.as_ref().is_some_and(|own| own.lowercase);
        Ok(StateReader { reader, prompt: prompt.clone(), lowercase, saved: self.saved.clone() })
    }

    /// Writes the model as the folder of a run, which must not exist yet unless `force` is set; it has its place once it is
    /// finished.
    pub fn draft(&self, folder: &Path, force: bool) -> Result<NewFolder, OpenError> {
        let draft = NewFolder::with_force(folder, force)?;
        self.vocabulary.save(&draft.path().join(VOCABULARY_FOLDER), false)?;
        let metadata = WeightsMetadata {
            encoder: self.encoder.config().clone(),
            vocabulary: self.vocabulary.fingerprint().to_owned(),
            has_mlm_head: self.has_mlm_head,
            predicts_next: self.predicts_next,
        };
        let matrices = self.params.ids();
        let matrices = matrices.map(|id| (self.params.name(id).to_owned(), self.params.value(id)));
        archive::write(&draft.path().join(MODEL_FILE), matrices, &metadata)?;
        Ok(draft)
    }

    /// What the loop over text needs.
    pub fn parts(&mut self) -> EncoderParts<'_> {
        let Self { encoder, params, vocabulary, token_ids, saved, .. } = self;
        EncoderParts { encoder, params, vocabulary, token_ids, saved: saved.as_deref() }
    }

    /// Sequences of vocabulary ids, special tokens included, as a batch for the encoder.
    pub fn batch<'a>(
        &self,
        language: usize,
        sequences: impl IntoIterator<Item = &'a [u32], IntoIter: Clone>,
    ) -> Batch {
        batch(self.encoder.config(), &self.vocabulary, &self.token_ids, language, sequences)
    }

    /// Tokenizes lines of a language into sequences that the encoder can take.
    pub fn reader(&self, language: &str) -> text::Result<SentenceReader> {
        self.vocabulary.reader(language, self.encoder.config().positions)
    }

    /// The vocabulary id that a row of a language's softmax stands for.
    pub fn id(&self, language: usize, row: u32) -> u32 {
        self.token_ids.to_vocabulary(&self.vocabulary, language, row)
    }
}

/// An encoder with what turns text into its input: borrowed from a model that was opened, or from a run
/// that is still being trained.
pub struct EncoderParts<'a> {
    /// The encoder.
    pub encoder: &'a Encoder,
    /// Its weights; a tape borrows them even where it changes none.
    pub params: &'a mut Params,
    /// The vocabulary whose ids sentences are made of.
    pub vocabulary: &'a Vocabulary,
    /// From these ids to those of the encoder.
    pub token_ids: &'a TokenIdMap,
    /// States that stand in place of the encoder's; ids are then their rows.
    pub saved: Option<&'a SavedStates>,
}

impl EncoderParts<'_> {
    /// Sequences of vocabulary ids, special tokens included, as a batch for the encoder.
    pub fn batch<'a>(
        &self,
        language: usize,
        sequences: impl IntoIterator<Item = &'a [u32], IntoIter: Clone>,
    ) -> Batch {
        batch(self.encoder.config(), self.vocabulary, self.token_ids, language, sequences)
    }
}

fn batch<'a>(
    config: &EncoderConfig,
    vocabulary: &Vocabulary,
    token_ids: &TokenIdMap,
    language: usize,
    sequences: impl IntoIterator<Item = &'a [u32], IntoIter: Clone>,
) -> Batch {
    let sequences = sequences.into_iter();
    let spans = Spans::of_lengths(sequences.clone().map(<[u32]>::len));
    let ids: Vec<u32> = sequences.flatten().copied().collect();
    let (_, end) = vocabulary.bos_eos();
    let segments = (config.segments > 1).then(|| segments(&ids, &spans, end));
    let tokens = token_ids.to_encoder(language, &ids);
    Batch { language, tokens, spans, segments }
}

/// The second sentence of a pair, behind the first separator, is the second segment.
fn segments(ids: &[u32], spans: &Spans, end: u32) -> Indices {
    let mut segments = vec![0; ids.len()];
    for span in spans.iter() {
        let first = ids[span.clone()].iter().position(|&id| id == end);
        let second = first.map_or(span.end, |at| span.start + at + 1);
        segments[second..span.end].fill(1);
    }
    segments.into()
}
