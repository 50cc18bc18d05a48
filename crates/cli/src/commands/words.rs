//! `isogloss words`: the vectors that an encoder gives to words.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use models::PretrainedModel;
use models::words::{ContextMeans, embeddings, frequent, from_subwords};
use serde::Serialize;
use text::{
    Corpus, LineRules, Preparation, Preparer, Selection, Subset, TextSource, WordTokenizer as Cut,
};
use vectors::WordVectors;
use vectors::formats::{ReadOptions, VectorFormat, read, write};

use super::models::{Layers, Place};
use super::texts::watch;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  Words that are one piece of the vocabulary, from the embedding table:
    isogloss words --model run --lang fr --embeddings --out fr.vec
  The mean of every context of the 20,000 most frequent words, a file for each layer:
    isogloss words --model run --lang fr --text fr.txt.zst --first 500000 --out fr-words
    isogloss align words --source fr-words/layer-4.vec --target en-words/layer-4.vec \\
      --train fr-en.0-5000.txt --test fr-en.5000-6500.txt
  Static vectors of the model's pieces, put together to words:
    isogloss vectors word2vec --run run --out pieces.vec
    isogloss words --model run --lang fr --text fr.txt.zst --static pieces.vec --out fr.vec";

/// Flags of `words`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Words {
    /// The folder of a trained run.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,

    /// The language of the words.
    #[arg(long, value_name = "LANG")]
    lang: String,

    /// Take the words that are one piece of the vocabulary, and their rows of the embedding table.
    #[arg(long, conflicts_with_all = ["texts", "words", "layers", "first", "lines"])]
    embeddings: bool,

    /// Take static vectors of the model's pieces, such as `vectors word2vec --run` learns; a word is the
    /// mean of its pieces.
    #[arg(long = "static", value_name = "FILE", conflicts_with_all = ["embeddings", "layers"])]
    pieces: Option<PathBuf>,

    /// Text to look for words in; repeat for more files.
    #[arg(long = "text", value_name = "FILE", required_unless_present = "embeddings")]
    texts: Vec<String>,

    /// Take a line as a sentence, rather than split lines into sentences.
    #[arg(long)]
    lines: bool,

    /// Read the first N sentences.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,

    /// Take the N most frequent words.
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    top: usize,

    /// Take these words, one a line, rather than the most frequent.
    #[arg(long, value_name = "FILE", conflicts_with = "top")]
    words: Option<PathBuf>,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings with their positions.
    #[arg(long, default_value = "all")]
    layers: Layers,

    /// How vectors are written.
    #[arg(long, value_enum, default_value_t = FormatFlag::Vec)]
    format: FormatFlag,

    /// The folder to make, with a file for each layer; with --embeddings or --static, the file.
    #[arg(long, value_name = "PATH")]
    out: PathBuf,

    #[command(flatten)]
    place: Place,
}

/// How vectors are written.
#[derive(Clone, Copy, ValueEnum)]
enum FormatFlag {
    /// Text with a header, as Word2Vec and fastText write it.
    #[value(alias = "text")]
    Vec,
    /// Word2Vec's binary.
    #[value(alias = "binary")]
    Bin,
    /// Text without a header.
    Glove,
    /// An array of NumPy, and a file of the words.
    Npy,
}

impl FormatFlag {
    fn format(self) -> (VectorFormat, &'static str) {
        match self {
            FormatFlag::Vec => (VectorFormat::Text, "vec"),
            FormatFlag::Bin => (VectorFormat::Binary, "bin"),
            FormatFlag::Glove => (VectorFormat::Glove, "glove"),
            FormatFlag::Npy => (VectorFormat::Npy, "npy"),
        }
    }
}

/// What `words` says when done.
#[derive(Serialize)]
struct Written {
    files: Vec<PathBuf>,
    words: usize,
    dim: usize,
    /// Sentences that were encoded.
    sentences: Option<u64>,
    /// Words of the list that did not occur, or that have a piece without a static vector.
    missing: usize,
    model: String,
}

impl Words {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if self.embeddings || self.pieces.is_some() {
            files::check_new_file(&self.out, true)?;
        } else {
            files::check_new_folder(&self.out, false)?;
        }
        let mut model = self.place.open(&self.model)?;
        let written = match &self.pieces {
            Some(pieces) => self.of_pieces(&model, pieces)?,
            None if self.embeddings => self.of_table(&model)?,
            None => self.in_context(&mut model)?,
        };
        let mut text = format!("{} words of {} dimensions", written.words, written.dim);
        if let Some(sentences) = written.sentences {
            text += &format!(", means over {sentences} sentences");
        }
        if written.missing > 0 {
            let reason = match self.pieces {
                Some(_) => "have a piece without a vector",
                None => "did not occur",
            };
            text += &format!("; {} of the words asked for {reason}", written.missing);
        }
        for file in &written.files {
            text += &format!("\n{}", file.display());
        }
        Ok(Outcome::new(text, &written))
    }

    fn of_table(&self, model: &PretrainedModel) -> Result<Written, Failure> {
        let vectors = embeddings(model, &self.lang, self.top)?;
        write(&self.out, &vectors, Some(self.format.format().0))?;
        Ok(self.written(vec![self.out.clone()], &vectors, model))
    }

    fn of_pieces(&self, model: &PretrainedModel, pieces: &Path) -> Result<Written, Failure> {
        let pieces = read(pieces, ReadOptions::default())?;
        let words = self.chosen(&self.corpus(model)?)?;
        let (vectors, missing) = from_subwords(&model.vocabulary, &self.lang, &words, &pieces)?;
        write(&self.out, &vectors, Some(self.format.format().0))?;
        let written = self.written(vec![self.out.clone()], &vectors, model);
        Ok(Written { missing, ..written })
    }

    /// The words that were asked for.
    fn chosen(&self, corpus: &Corpus) -> Result<Vec<String>, Failure> {
        match &self.words {
            Some(path) => read_words(path),
            None => Ok(frequent(corpus, self.top, &mut watch("counting words, MiB".to_owned()))?),
        }
    }

    fn in_context(&self, model: &mut PretrainedModel) -> Result<Written, Failure> {
        let layers = self.layers.of(model.encoder.config().layers)?;
        let corpus = self.corpus(model)?;
        let words = self.chosen(&corpus)?;
        let mut means = ContextMeans::new(model, &self.lang, &words, &layers)?;
        let bytes = ContextMeans::bytes(words.len(), layers.len(), model.encoder.config().dim);
        let megabytes = bytes as f64 / f64::from(1 << 20);
        say!("{} words at {} layers: sums of {megabytes:.1} MB", words.len(), layers.len());
        means.add(model, &corpus, &mut watch("encoding, MiB".to_owned()))?;
        let sentences = means.sentences;
        let (means, missing) = means.finish()?;
        let folder = files::NewFolder::new(&self.out)?;
        let (format, extension) = self.format.format();
        let name = |layer: &usize| format!("layer-{layer}.{extension}");
        for (vectors, layer) in means.iter().zip(&layers) {
            write(&folder.path().join(name(layer)), vectors, Some(format))?;
        }
        folder.finish()?;
        let files = layers.iter().map(|layer| self.out.join(name(layer))).collect();
        let written = self.written(files, &means[0], model);
        Ok(Written { sentences: Some(sentences), missing, ..written })
    }

    fn written(
        &self,
        files: Vec<PathBuf>,
        vectors: &WordVectors,
        model: &PretrainedModel,
    ) -> Written {
        let (words, dim) = (vectors.len(), vectors.dim());
        Written { files, words, dim, sentences: None, missing: 0, model: model.fingerprint.clone() }
    }

    fn corpus(&self, model: &PretrainedModel) -> Result<Corpus, Failure> {
        let preparer = model.vocabulary.preparer(model.vocabulary.language(&self.lang)?);
        // Text that a tokenizer takes as it stands has no words until it is cut.
        let preparation = match preparer.preparation() {
            Preparation { words: Cut::Raw, .. } => Preparation::for_language(&self.lang),
            preparation => preparation,
        };
        let preparation = Preparation { split: preparation.split && !self.lines, ..preparation };
        let simplified = preparer.simplified().cloned().map(std::sync::Arc::new);
        let take = self.first.map_or(Subset::All, Subset::First);
        Ok(Corpus {
            source: TextSource::new(&self.lang, &self.texts)?,
            preparer: Preparer::new(&self.lang, preparation, simplified)?,
            rules: LineRules::default(),
            selection: Selection { take, distinct: false, dev: 0, test: 0, seed: 0 },
        })
    }
}

/// Reads a list of words, one a line, each once.
fn read_words(path: &Path) -> Result<Vec<String>, Failure> {
    let source = TextSource::new("words", &[path.display().to_string()])?;
    let mut lines = source.lines(LineRules::default());
    let mut words: Vec<String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    while let Some(line) = lines.next_line()? {
        if seen.insert(line.to_owned()) {
            words.push(line.to_owned());
        }
    }
    Ok(words)
}
