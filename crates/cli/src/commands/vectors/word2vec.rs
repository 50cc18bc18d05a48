//! `isogloss vectors word2vec`.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use files::At;
use vectors::word2vec::{self, Architecture, NGrams, UpdateMode, Word2VecConfig};

use super::input::Input;
use super::shown::Shown;
use crate::failure::Failure;
use crate::outcome::Outcome;

pub(super) const EXAMPLES: &str = "Examples:
  Vectors of English words:
    isogloss vectors word2vec --out en.vec --text en=en.txt.zst
  Of two languages together, on an encoder's own subwords:
    isogloss vectors word2vec --out joint.vec --dim 768 \\
      --tokenizer joint --text en=en.txt --text fr=fr.txt
  Of the very sentences that an encoder was trained on:
    isogloss vectors word2vec --out run.vec --run run
  As fastText does it, with character n-grams:
    isogloss vectors word2vec --out fr.vec --ngrams 3-6 \\
      --text fr=fr.txt";

/// Flags of `vectors word2vec`.
#[derive(Args)]
pub(crate) struct Word2vec {
    /// Tell the word from the mean of its neighbours, rather than from each by itself.
    #[arg(long)]
    cbow: bool,

    /// Let a word be the mean of itself and its character n-grams of these lengths, as fastText does.
    #[arg(long, value_name = "SHORTEST-LONGEST", value_parser = parse_ngrams, conflicts_with = "cbow")]
    ngrams: Option<(usize, usize)>,

    /// With --ngrams, write vectors of these words too, one a line, though the text lacks them. Those
    /// that share no n-gram with the text have none, and are named.
    #[arg(long, value_name = "FILE", requires = "ngrams")]
    also: Option<PathBuf>,

    /// Columns.
    #[arg(long, value_name = "N", default_value_t = 100)]
    dim: usize,

    /// The farthest neighbour.
    #[arg(long, value_name = "N", default_value_t = 5)]
    window: usize,

    /// False words drawn for each true one.
    #[arg(long, value_name = "N", default_value_t = 5)]
    negative: usize,

    /// Times to go through the text.
    #[arg(long, value_name = "N", default_value_t = 5)]
    epochs: usize,

    /// The learning rate at the start [default: 0.025, or 0.05 with --cbow].
    #[arg(long)]
    rate: Option<f32>,

    /// Leave out words of a greater share than this now and then; 0 for never.
    #[arg(long, value_name = "SHARE", default_value_t = 1e-3)]
    subsample: f64,

    /// Let threads overwrite each other rather than wait: not the same vectors twice.
    #[arg(long)]
    hogwild: bool,

    /// Threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    #[command(flatten)]
    input: Input,
}

fn parse_ngrams(text: &str) -> Result<(usize, usize), String> {
    let lengths = text.split_once('-');
    let lengths = lengths.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    lengths.ok_or_else(|| "write the shortest and the longest, such as 3-6".to_owned())
}

impl Word2vec {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let config = self.config()?;
        config.check()?;
        self.input.check()?;
        let sentences = self.input.sentences()?;
        let started = Instant::now();
        let mut shown = Shown::new("words");
        let trained = word2vec::train(&sentences, &config, Some(&self.input.keep()), &mut shown)?;
        drop(shown);
        let Some(trained) = trained else { return Err(self.input.stopped()) };
        let seconds = started.elapsed().as_secs_f64();
        self.input.write(&trained.vectors)?;
        let mut learned = self.input.learned(&sentences, &trained.vectors, trained.losses, seconds);
        let lacks = |word: &&String| trained.vectors.position(word).is_none();
        learned.without = config.also.iter().filter(lacks).cloned().collect();
        Ok(Outcome::new(learned.describe(), &learned))
    }

    /// The words of `--also`, one a line.
    fn also(&self) -> Result<Vec<String>, Failure> {
        let Some(path) = &self.also else { return Ok(Vec::new()) };
        let text = fs::read_to_string(path).at(path, "read")?;
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
        let (cbow, hogwild) = (self.cbow, self.hogwild);
        let ngrams = |(shortest, longest)| NGrams { shortest, longest, ..NGrams::default() };
        Ok(Word2VecConfig {
            architecture: if cbow { Architecture::Cbow } else { Architecture::SkipGram },
            dim: self.dim,
            window: self.window,
            negative: self.negative,
            epochs: self.epochs,
            rate: self.rate,
            sample: self.subsample,
            ngrams: self.ngrams.map(ngrams),
            also: self.also()?,
            seed: self.input.seed(),
            mode: if hogwild { UpdateMode::Hogwild } else { UpdateMode::Deterministic },
            threads: self.threads,
            ..Word2VecConfig::default()
        })
    }
}
