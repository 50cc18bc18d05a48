//! `isogloss words`: the vectors that an encoder gives to words.

use std::path::{Path, PathBuf};

use clap::Args;
use models::PretrainedModel;
use models::words::{
    ContextMeans, WordsResult, corpus, embeddings, frequent, from_subwords, read_list,
};
use serde::Serialize;
use text::{Corpus, TextSource};
use vectors::WordVectors;
use vectors::formats::{ReadOptions, read, write};

use super::models::{Compute, Layers};
use super::texts::{ColumnsFlag, parse_text, watch};
use super::vectors::FormatFlag;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::{Request, one_or_more};

const EXAMPLES: &str = "Examples:
  Words that are one subword of the vocabulary, from the embedding table:
    isogloss words --model run --lang fr --embeddings --out fr.vec
  The mean over all contexts of the 20,000 most frequent words, a file for each layer:
    isogloss words --model run --text fr=fr.txt.zst --limit 500000 --out fr-words
    isogloss align words --source fr-words/layer-4.vec --target en-words/layer-4.vec \\
      --dictionary fr-en.0-5000.txt --test-dictionary fr-en.5000-6500.txt
  Static vectors of the model's subwords, averaged to words:
    isogloss vectors word2vec --model run --out subwords.vec
    isogloss words --model run --text fr=fr.txt.zst --static subwords.vec --out fr.vec";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Words {
    /// The folder of a run, or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR", help_heading = "Input")]
    pub model: PathBuf,

    /// Text with its language, in which the words occur; repeat for more files of the language. `-` is
    /// standard input.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text,
        required_unless_present = "embeddings", help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Take the words that are one subword of the vocabulary, and their rows of the embedding table.
    #[arg(long, requires = "lang", conflicts_with_all = ["texts", "words", "layers", "limit", "lines"],
        help_heading = "Input")]
    pub embeddings: bool,

    /// The language of the words, with --embeddings.
    #[arg(long, value_name = "LANG", conflicts_with = "texts", help_heading = "Input")]
    pub lang: Option<String>,

    /// Take static vectors of the model's subwords, such as `vectors word2vec --model` learns; a word is
    /// the mean of its subwords.
    #[arg(long = "static", value_name = "FILE", conflicts_with_all = ["embeddings", "layers"],
        help_heading = "Input")]
    pub subwords: Option<PathBuf>,

    /// Take a line as a sentence, rather than split lines into sentences.
    #[arg(long, help_heading = "Input")]
    pub lines: bool,

    /// Read at most the first N sentences.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
        help_heading = "Input")]
    pub limit: Option<u64>,

    /// Take the N most frequent words.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = one_or_more(),
        help_heading = "Input")]
    pub max_vocab: usize,

    /// Take these words, one a line, rather than the most frequent.
    #[arg(long, value_name = "FILE", conflicts_with = "max_vocab", help_heading = "Input")]
    pub words: Option<PathBuf>,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings with their positions.
    #[arg(long, default_value = "all", help_heading = "Input")]
    pub layers: Layers,

    /// The format of the vectors.
    #[arg(long, value_enum, default_value_t = FormatFlag::Text, help_heading = "Output")]
    pub format: FormatFlag,

    /// The folder to make, with a file for each layer; with --embeddings or --static, the file.
    #[arg(short, long, value_name = "PATH", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace what exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub compute: Compute,
}

impl Request for Words {
    const NAME: &str = "words";
    const REVISION: u32 = 1;
    const LAST: &[&str] = &["texts", "lines", "limit", "embeddings", "out"];
}

impl Words {
    pub fn run(self) -> Result<Outcome, Failure> {
        if self.embeddings || self.subwords.is_some() {
            files::check_new_file(&self.out, self.force)?;
        } else {
            files::check_new_folder(&self.out, self.force)?;
        }
        let language = self.language()?;
        let mut model = self.compute.open(&self.model)?;
        let result = match &self.subwords {
            Some(subwords) => self.vectors_of_subwords(&model, language, subwords)?,
            None if self.embeddings => self.embedding_table(&model, language)?,
            None => self.in_context(&mut model, language)?,
        };
        let mut text = format!("{} words of {} dimensions", result.words, result.dim);
        if let Some(sentences) = result.sentences {
            text += &format!(", means over {sentences} sentences");
        }
        if result.missing > 0 {
            let reason = match self.subwords {
                Some(_) => "have a subword without a vector",
                None => "did not occur",
            };
            text += &format!("; {} of the words asked for {reason}", result.missing);
        }
        for file in &result.files {
            text += &format!("\n{}", file.display());
        }
        Ok(Outcome::new(text, &result))
    }

    fn language(&self) -> Result<&str, Failure> {
        let mut languages = self.texts.iter().map(|(language, _)| language.as_str());
        let first = self.lang.as_deref().or_else(|| languages.next());
        let first = first.ok_or_else(|| Failure::Usage("give --text LANG=FILE".to_owned()))?;
        match languages.find(|other| *other != first) {
            None => Ok(first),
            Some(other) => Err(Failure::Usage(format!(
                "--text names {first} and {other}; give text of one language"
            ))),
        }
    }

    fn embedding_table(
        &self,
        model: &PretrainedModel,
        language: &str,
    ) -> Result<WordsResult, Failure> {
        let vectors = embeddings(model, language, self.max_vocab)?;
        write(&self.out, &vectors, Some(self.format.format()))?;
        Ok(result(vec![self.out.clone()], &vectors, model))
    }

    fn vectors_of_subwords(
        &self,
        model: &PretrainedModel,
        language: &str,
        subwords: &Path,
    ) -> Result<WordsResult, Failure> {
        let subwords = read(subwords, ReadOptions::default())?;
        let words = self.chosen(&self.corpus(model, language)?)?;
        let (vectors, missing) = from_subwords(&model.vocabulary, language, &words, &subwords)?;
        write(&self.out, &vectors, Some(self.format.format()))?;
        Ok(WordsResult { missing, ..result(vec![self.out.clone()], &vectors, model) })
    }

    fn chosen(&self, corpus: &Corpus) -> Result<Vec<String>, Failure> {
        let mut counting = watch("counting words, MiB".to_owned());
        match &self.words {
            Some(path) => Ok(read_list(path)?),
            None => Ok(frequent(corpus, self.max_vocab, &mut counting)?),
        }
    }

    fn in_context(
        &self,
        model: &mut PretrainedModel,
        language: &str,
    ) -> Result<WordsResult, Failure> {
        let layers = self.layers.of(model.encoder.config().layers)?;
        let corpus = self.corpus(model, language)?;
        let words = self.chosen(&corpus)?;
        let mut means = ContextMeans::new(model, language, &words, &layers)?;
        let bytes = ContextMeans::bytes(words.len(), layers.len(), model.encoder.config().dim);
        let megabytes = bytes as f64 / f64::from(1 << 20);
        say!("{} words at {} layers: sums of {megabytes:.1} MB", words.len(), layers.len());
        means.add(model, &corpus, &mut watch("encoding, MiB".to_owned()))?;
        let sentences = means.sentences;
        let (means, missing) = means.finish()?;
        let folder = files::NewFolder::with_force(&self.out, self.force)?;
        let (format, extension) = (self.format.format(), self.format.ending());
        let name = |layer: &usize| format!("layer-{layer}.{extension}");
        for (vectors, layer) in means.iter().zip(&layers) {
            write(&folder.path().join(name(layer)), vectors, Some(format))?;
        }
        folder.finish()?;
        let files = layers.iter().map(|layer| self.out.join(name(layer))).collect();
        let sentences = Some(sentences);
        Ok(WordsResult { sentences, missing, ..result(files, &means[0], model) })
    }

    fn corpus(&self, model: &PretrainedModel, language: &str) -> Result<Corpus, Failure> {
        let files: Vec<String> = self.texts.iter().map(|(_, file)| file.clone()).collect();
        let source = TextSource::new(language, &files)?.with_columns(&self.columns.columns);
        Ok(corpus(&model.vocabulary, source, self.lines, self.limit)?)
    }
}

fn result(files: Vec<PathBuf>, vectors: &WordVectors, model: &PretrainedModel) -> WordsResult {
    let (words, dim) = (vectors.len(), vectors.dim());
    WordsResult { files, words, dim, sentences: None, missing: 0, model: model.fingerprint.clone() }
}
