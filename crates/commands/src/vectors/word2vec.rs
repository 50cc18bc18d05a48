//! `isogloss vectors word2vec`.

use std::io::Read as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use files::{At, limits};
use serde::{Serialize, Serializer};
use vectors::TrainingResult;
use vectors::word2vec::{self, Architecture, NGrams, Word2VecConfig};

use super::input::Input;
use super::shown::TrainingDisplay;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

pub(super) const EXAMPLES: &str = "Examples:
  Vectors of English words:
    isogloss vectors word2vec --out en.vec --text en=en.txt.zst
  Of two languages together, on a vocabulary's subwords:
    isogloss vectors word2vec --out joint.vec --dim 768 \\
      --tokenizer joint --text en=en.txt --text fr=fr.txt
  Of the very sentences that an encoder was trained on:
    isogloss vectors word2vec --out run.vec --model run
  As fastText does it, with character n-grams:
    isogloss vectors word2vec --out fr.vec --ngrams 3-6 \\
      --text fr=fr.txt";

#[derive(Args, Serialize)]
pub struct Word2vec {
    /// CBOW: predict a word from the mean of its context, in place of skip-gram.
    #[arg(long, help_heading = "Training")]
    pub cbow: bool,

    /// Represent a word by itself and its character n-grams of these lengths, as fastText does.
    #[arg(long, value_name = "SHORTEST-LONGEST", value_parser = parse_ngrams, conflicts_with = "cbow",
        help_heading = "Training")]
    #[serde(serialize_with = "typed_ngrams")]
    pub ngrams: Option<(usize, usize)>,

    /// With --ngrams, also write vectors of these words, one a line, though they are not in the text.
    /// Those that share no n-gram with the text have none, and are named.
    #[arg(long, value_name = "FILE", requires = "ngrams", help_heading = "Input")]
    pub also: Option<PathBuf>,

    /// The dimension of the vectors.
    #[arg(long, value_name = "N", default_value_t = 100, help_heading = "Training")]
    pub dim: usize,

    /// The largest window.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Training")]
    pub window: usize,

    /// Negative samples for each positive example.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Training")]
    pub negative: usize,

    /// Epochs.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Training")]
    pub epochs: usize,

    /// The initial learning rate [default: 0.025, or 0.05 with --cbow].
    #[arg(long, help_heading = "Training")]
    pub lr: Option<f32>,

    /// The relative frequency above which words are subsampled (`-sample` of the original program); 0
    /// keeps all. To draw a sample of sentences, see --sample-size [default: 0.001; 0 for text of fewer
    /// than 10,000 types, of which most would be subsampled].
    #[arg(long, value_name = "SHARE", help_heading = "Training")]
    pub subsample: Option<f64>,

    #[command(flatten)]
    pub input: Input,
}

fn typed_ngrams<S: Serializer>(lengths: &Option<(usize, usize)>, to: S) -> Result<S::Ok, S::Error> {
    lengths.map(|(shortest, longest)| format!("{shortest}-{longest}")).serialize(to)
}

fn parse_ngrams(text: &str) -> Result<(usize, usize), String> {
    let lengths = text.split_once('-');
    let lengths = lengths.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    lengths.ok_or_else(|| "write the shortest and the longest, such as 3-6".to_owned())
}

impl Request for Word2vec {
    const NAME: &str = "vectors word2vec";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["dim", "texts", "lines", "tokenizer", "seed", "out"];
    const ON_DEVICE: bool = false;

    fn is_spelt(&self, field: &str) -> bool {
        field == "seed" && self.input.is_placed()
    }
}

impl Word2vec {
    pub fn run(self) -> Result<Outcome, Failure> {
        let config = self.config()?;
        config.check()?;
        self.input.check()?;
        let sentences = self.input.sentences()?;
        let started = Instant::now();
        let mut shown = TrainingDisplay::new("words");
        let state = self.input.state_file();
        let trained = word2vec::train(&sentences, &config, Some(&state), &mut shown)?;
        drop(shown);
        let Some(trained) = trained else { return Err(self.input.stopped()) };
        let seconds = started.elapsed().as_secs_f64();
        let out = self.input.out();
        let result = TrainingResult::new("word2vec", &config, &sentences, &trained, out, seconds);
        self.input.finish(&trained, result, &config.also)
    }

    fn also(&self) -> Result<Vec<String>, Failure> {
        let Some(path) = &self.also else { return Ok(Vec::new()) };
        let mut text = String::new();
        let size = path.metadata().map_or(0, |file| file.len());
        limits::bounded(files::open(path)?, size).read_to_string(&mut text).at(path, "read")?;
        let mut words = Vec::new();
        for (number, line) in text.lines().enumerate() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                [] => {}
                [word] => words.push(word.to_owned()),
                _ => {
                    return Err(Failure::Usage(format!(
                        "{}:{}: `{}` is more than one word; write one a line",
                        path.display(),
                        number + 1,
                        line.trim()
                    )));
                }
            }
        }
        Ok(words)
    }

    fn config(&self) -> Result<Word2VecConfig, Failure> {
        let ngrams = |(shortest, longest)| NGrams { shortest, longest, ..NGrams::default() };
        Ok(Word2VecConfig {
            architecture: if self.cbow { Architecture::Cbow } else { Architecture::SkipGram },
            dim: self.dim,
            window: self.window,
            negative: self.negative,
            epochs: self.epochs,
            lr: self.lr,
            subsample: self.subsample,
            ngrams: self.ngrams.map(ngrams),
            also: self.also()?,
            seed: self.input.seed(),
            threads: self.input.threads(),
            ..Word2VecConfig::default()
        })
    }
}
