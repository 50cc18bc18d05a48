//! What a file or folder holds, without changing anything.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use arrays::Stack;
use encoder::EncoderConfig;
use encoder::archive::Archive;
use files::At;
use hub::CheckpointSummary;
use serde::{Deserialize, Serialize};
use tensor::Device;
use text::{LineRules, TextSource, Vocabulary};
use vectors::formats::{self, ReadOptions};

use crate::error::{Error, OpenError, Result};
use crate::location::ModelLocation;
use crate::pretrained::VOCABULARY_FOLDER;

/// What a path holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Inspection {
    /// A run of pretraining, or a model that was imported as one.
    Run {
        /// The folder.
        path: PathBuf,
        /// The architecture.
        encoder: EncoderConfig,
        /// The step of the weights, where they were trained here.
        step: Option<u64>,
        /// Subwords of the vocabulary.
        subwords: usize,
        /// What tells these weights from any other.
        fingerprint: String,
    },
    /// A Hugging Face checkpoint.
    HuggingFace {
        /// What was found in the folder.
        #[serde(flatten)]
        summary: CheckpointSummary,
        /// What tells these weights from any other.
        fingerprint: String,
    },
    /// Hidden states that were computed before.
    States {
        /// The folder.
        path: PathBuf,
        /// The languages of the sentences.
        languages: Vec<String>,
        /// Layers above the first.
        layers: usize,
        /// Columns.
        dim: usize,
    },
    /// A vocabulary.
    Vocabulary {
        /// The folder.
        path: PathBuf,
        /// Its languages.
        languages: Vec<String>,
        /// Its subwords.
        subwords: usize,
        /// What tells it from any other.
        fingerprint: String,
    },
    /// Language mean vectors.
    LanguageMeans {
        /// The file.
        path: PathBuf,
        /// The languages.
        languages: Vec<String>,
        /// Layers above the embeddings.
        layers: usize,
        /// The fingerprint of the model that they belong to.
        model: String,
    },
    /// Matrices: NumPy's arrays, or safetensors.
    Arrays {
        /// The file.
        path: PathBuf,
        /// The name and the columns of each layer.
        layers: Vec<(String, usize)>,
        /// Rows of every layer.
        rows: usize,
    },
    /// Text.
    Text {
        /// The file.
        path: PathBuf,
        /// Lines that are not blank.
        lines: usize,
        /// Words between white space.
        words: usize,
    },
    /// Word vectors.
    WordVectors {
        /// The file.
        path: PathBuf,
        /// Words.
        words: usize,
        /// Columns.
        dim: usize,
    },
}

/// The metadata of a run's weights that is shown.
#[derive(Deserialize)]
struct RunMetadata {
    encoder: EncoderConfig,
    step: Option<u64>,
}

/// The metadata of a file of language mean vectors that is shown.
#[derive(Deserialize)]
struct MeansMetadata {
    model: String,
    languages: Vec<String>,
    layers: usize,
}

/// Looks into a file or folder.
///
/// # Errors
/// Where it cannot be read, or holds nothing that is known.
pub fn inspect(path: &Path, device: &Device) -> Result<Inspection> {
    match ModelLocation::find(path) {
        Err(OpenError::Nothing(_)) if !path.is_dir() => file(path),
        location => folder(path, location, device),
    }
}

/// The vocabulary in a folder: of a run, of a Hugging Face checkpoint, or by itself.
///
/// # Errors
/// Where it cannot be read.
pub fn vocabulary(folder: &Path) -> Result<Vocabulary> {
    let location = ModelLocation::find(folder);
    let folder = location.as_ref().map_or(folder, ModelLocation::folder);
    let of_run = folder.join(VOCABULARY_FOLDER);
    Ok(match hub::is_checkpoint(folder) {
        _ if of_run.is_dir() => Vocabulary::load(&of_run)?,
        true => hub::vocabulary(folder)?,
        false => Vocabulary::load(folder)?,
    })
}

fn folder(
    path: &Path,
    location: std::result::Result<ModelLocation, OpenError>,
    device: &Device,
) -> Result<Inspection> {
    if let Ok(ModelLocation::Run { folder, weights }) = &location {
        let archive = Archive::open(weights).map_err(crate::OpenError::from)?;
        let RunMetadata { encoder, step } = archive.metadata().map_err(crate::OpenError::from)?;
        let vocabulary = Vocabulary::load(&folder.join(VOCABULARY_FOLDER))?;
        return Ok(Inspection::Run {
            path: path.to_owned(),
            encoder,
            step,
            subwords: vocabulary.len(),
            fingerprint: archive.digest().to_owned(),
        });
    }
    if let Ok(ModelLocation::States(folder)) = &location {
        let model = crate::PretrainedModel::open_states(folder, device)?;
        let (path, config) = (folder.clone(), model.encoder.config());
        let (languages, layers, dim) = (config.languages.clone(), config.layers, config.dim);
        return Ok(Inspection::States { path, languages, layers, dim });
    }
    // A model of the hub's cache goes by its name.
    let found = location.as_ref().ok().map(|location| location.folder().to_owned());
    if let Err(error @ OpenError::NoSnapshot { .. }) = location {
        return Err(error.into());
    }
    let path = found.as_deref().unwrap_or(path);
    if hub::is_checkpoint(path) {
        let hub::Checkpoint { summary, fingerprint, .. } = hub::open(path, device)?;
        return Ok(Inspection::HuggingFace { summary, fingerprint });
    }
    match Vocabulary::load(path) {
        Ok(vocabulary) => Ok(Inspection::Vocabulary {
            path: path.to_owned(),
            languages: vocabulary.languages().map(str::to_owned).collect(),
            subwords: vocabulary.len(),
            fingerprint: vocabulary.fingerprint().to_owned(),
        }),
        Err(_) => Err(Error::input(
            path.display(),
            "holds neither a run, a Hugging Face checkpoint nor a vocabulary",
            "name such a folder, or a file of arrays, word vectors or language mean vectors",
        )),
    }
}

/// Lines and words of a file of text whose first line is neither a header of word vectors nor one of them.
fn as_text(path: &Path) -> Option<(usize, usize)> {
    let source = TextSource::new("text", &[path.display().to_string()]).ok()?;
    let mut reader = source.lines(LineRules::default());
    let (mut lines, mut words) = (0, 0);
    while let Some(line) = reader.next_line().ok()? {
        let mut values = line.split_whitespace().skip(1).peekable();
        if lines == 0 && values.peek().is_some() && values.all(|value| value.parse::<f32>().is_ok())
        {
            return None;
        }
        lines += 1;
        words += line.split_whitespace().count();
    }
    Some((lines, words))
}

fn file(path: &Path) -> Result<Inspection> {
    let mut head = [0; 4];
    let read = File::open(path).at(path, "open")?.read(&mut head).at(path, "read")?;
    let array = head[..read].starts_with(b"\x93NUM") || head[..read].starts_with(b"PK");
    let named = |name: &str| path.extension().is_some_and(|extension| extension == name);
    if named("safetensors")
        && let Ok(archive) = Archive::open(path)
        && let Ok(MeansMetadata { model, languages, layers }) = archive.metadata()
    {
        return Ok(Inspection::LanguageMeans { path: path.to_owned(), languages, layers, model });
    }
    if array || named("safetensors") {
        let stack = Stack::open(path)?;
        let layer = |layer| (stack.layer_name(layer).to_owned(), stack.dim(layer));
        let layers = (0..stack.layers()).map(layer).collect();
        return Ok(Inspection::Arrays { path: path.to_owned(), layers, rows: stack.rows() });
    }
    if let Some((lines, words)) = as_text(path) {
        return Ok(Inspection::Text { path: path.to_owned(), lines, words });
    }
    let vectors = formats::read(path, ReadOptions::default())?;
    let (words, dim) = (vectors.len(), vectors.dim());
    Ok(Inspection::WordVectors { path: path.to_owned(), words, dim })
}
