//! `isogloss align words`: the orthogonal map of one language's word vectors onto another's.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::measured::Extractor;
use clap::{Args, ValueEnum};
use geometry::align::{AlignObserver, AlignWordsConfig, MapInit, align_words};
use serde::Serialize;
use tensor::Device;
use vectors::formats;

use super::words_report::in_words;
use crate::failure::Failure;
use crate::models::{Compute, Normalize, steps};
use crate::outcome::Outcome;
use crate::progress::{Waiting, counted};
use crate::record::RecordFlags;
use crate::request::{Request, one_or_more};

pub(super) const EXAMPLES: &str = "Examples:
  Learn from one dictionary, look up another:
    isogloss align words --source fr.vec --target en.vec \\
      --dictionary fr-en.0-5000.txt --test-dictionary fr-en.5000-6500.txt
  Without a dictionary (unsupervised), and refined; save the map and the mapped vectors:
    isogloss align words --source fr.vec --target en.vec --init unsupervised --refine 5 \\
      --save-map w.npy --out fr-in-en.vec --test-dictionary fr-en.5000-6500.txt
  What was found for each word, and the induced lexicon (mutual nearest neighbours by CSLS):
    isogloss align words --source fr.vec --target en.vec --dictionary fr-en.0-5000.txt \\
      --test-dictionary fr-en.5000-6500.txt --predictions found.tsv --lexicon fr-en.tsv
  Vectors of one common space (no map is learned):
    isogloss align words --source fr.vec --target en.vec --retrieval nn \\
      --normalize none --test-dictionary fr-en.txt
  Map new vectors with a map that was saved:
    isogloss align words --source new.vec --map w.npy --out new-in-en.vec

Translations are looked up by the conventions of MUSE: pairs without a vector on one side are
left out, a source word is one query, and any of its translations is right. Beside it stands the
word retrieval of Liu et al. 2020: every pair a query, by cosine, among the translations that the
dictionary lists. Both are given again over the words none of whose translations is spelled like
them (`different`): names and loans are found by any two languages that share subwords.";

#[derive(Args, Serialize)]
pub struct Words {
    /// Vectors to map: Word2Vec's text or binary, fastText's .vec, GloVe's text, .npy with .vocab;
    /// plain, gzip or zstd.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub source: PathBuf,

    /// Vectors to map onto.
    #[arg(long, value_name = "FILE", required_unless_present = "map", help_heading = "Input")]
    pub target: Option<PathBuf>,

    /// The dictionary to learn from.
    #[arg(long, value_name = "FILE", requires = "target", help_heading = "Input")]
    pub dictionary: Option<PathBuf>,

    /// The dictionary to look up.
    #[arg(long, value_name = "FILE", requires = "target", help_heading = "Input")]
    pub test_dictionary: Option<PathBuf>,

    /// The dictionaries go from --target to --source: read their columns the other way round.
    #[arg(long, requires = "target", help_heading = "Input")]
    pub reversed: bool,

    /// Read the N most frequent words of each side, which stand first.
    #[arg(long, value_name = "N", default_value_t = 200_000, help_heading = "Input", value_parser = one_or_more())]
    max_vocab: usize,

    /// Of the source words, take only those that this file has too: vectors (.vec, .bin, .glove, .npy), or
    /// a word a line. So that vectors of different vocabularies are compared on a common one.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub source_words: Option<PathBuf>,

    /// The same of the target words.
    #[arg(long, value_name = "FILE", requires = "target", help_heading = "Input")]
    pub target_words: Option<PathBuf>,

    /// Leave out vectors of zeros, rather than stop at the first.
    #[arg(long, help_heading = "Input")]
    tolerant: bool,

    /// What the map is first learned from [default: dictionary where one is given, else none].
    #[arg(long, value_enum, conflicts_with = "map", help_heading = "Training")]
    pub init: Option<Init>,

    /// Use this map, rather than learn one.
    #[arg(long, value_name = "FILE.npy", conflicts_with = "dictionary", help_heading = "Training")]
    map: Option<PathBuf>,

    /// Rounds of refinement from mutual nearest neighbours by CSLS.
    #[arg(
        long,
        value_name = "ROUNDS",
        default_value_t = 0,
        requires = "target",
        conflicts_with = "map",
        help_heading = "Training"
    )]
    refine: usize,

    /// The most frequent words of each side that take part in refinement and unsupervised learning.
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Training",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..))]
    cutoff: usize,

    /// What is done to both sides first; several steps with commas between.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "iterative",
        help_heading = "Training"
    )]
    pub normalize: Vec<Normalize>,

    /// Seed of the stochastic dropout in unsupervised learning.
    #[arg(long, default_value_t = 1, help_heading = "Training")]
    seed: u64,

    /// How translations are looked up.
    #[arg(long, value_enum, default_value_t = Retrieval::Csls, help_heading = "Evaluation")]
    pub retrieval: Retrieval,

    /// Neighbours of CSLS.
    #[arg(long, value_name = "K", default_value_t = 10, help_heading = "Evaluation", value_parser = one_or_more())]
    neighbors: usize,

    /// Save the map: W of W x, dimension x dimension.
    #[arg(long, value_name = "FILE.npy", help_heading = "Output")]
    save_map: Option<PathBuf>,

    /// Write the mapped source vectors.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Write the normalised target vectors, which belong to the mapped ones.
    #[arg(long, value_name = "FILE", requires = "target", help_heading = "Output")]
    out_target: Option<PathBuf>,

    /// Write what was found for each word of --test-dictionary: the word, its translations, the nearest
    /// target words and their scores. Tab-separated (.tsv, a line for each neighbour) or JSON lines
    /// (.jsonl, a line for each word).
    #[arg(
        long,
        value_name = "FILE.tsv|FILE.jsonl",
        requires = "test_dictionary",
        help_heading = "Output"
    )]
    predictions: Option<PathBuf>,

    /// How many neighbours --predictions lists for each word.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Output", value_parser = one_or_more())]
    top: usize,

    /// Write the lexicon that the map induces: words that are each other's nearest, by --retrieval, with
    /// their score. Tab-separated (.tsv) or JSON lines (.jsonl).
    #[arg(long, value_name = "FILE.tsv|FILE.jsonl", requires = "target", help_heading = "Output")]
    lexicon: Option<PathBuf>,

    /// Replace files that exist.
    #[arg(short, long, help_heading = "Output")]
    force: bool,

    #[command(flatten)]
    record: RecordFlags,

    #[command(flatten)]
    compute: Compute,
}

flag_values! {
    /// What a map is first learned from.
    pub enum Init => MapInit {
        /// The dictionary given by --dictionary.
        Dictionary,
        /// Words that are spelled alike in both languages.
        Identical,
        /// No dictionary: similarity distributions and self-learning (Artetxe et al. 2018).
        Unsupervised,
        /// No map is learned: the spaces are one already.
        None,
    }
}

/// How translations are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Retrieval {
    /// CSLS (Lample et al. 2018).
    Csls,
    /// Cosine.
    Nn,
}

/// Shows on standard error what an alignment is doing.
#[derive(Default)]
pub(super) struct Shown(Mutex<Option<Waiting>>);

impl AlignObserver for Shown {
    fn stage(&self, name: &str) {
        let mut waiting = self.0.lock().expect("nothing panics while it is held");
        *waiting = None;
        *waiting = Some(Waiting::new(name));
    }

    fn remark(&self, text: &str) {
        say!("{text}");
    }
}

impl Request for Words {
    const NAME: &str = "align words";
    const REVISION: u32 = 2;
    const LAST: &[&str] =
        &["dictionary", "test_dictionary", "reversed", "source_words", "target_words"];
}

impl Words {
    pub fn run(self) -> Result<Outcome, Failure> {
        for path in self.outputs() {
            files::check_new_file(path, self.force)?;
        }
        let outputs = [&self.save_map, &self.out, &self.out_target];
        outputs.into_iter().flatten().try_for_each(|path| formats::check_name(path))?;
        let tables = [&self.predictions, &self.lexicon].into_iter().flatten();
        tables.into_iter().try_for_each(|path| text::check_table_name(path))?;
        let asked = self.test_dictionary.is_some() || self.lexicon.is_some();
        if !asked && outputs.iter().all(|path| path.is_none()) {
            let message =
                "nothing is asked for: give --test-dictionary, --save-map, --lexicon or --out";
            return Err(Failure::Usage(message.to_owned()));
        }
        self.compute.run(|device| self.align(device))?
    }

    fn align(&self, device: &Device) -> Result<Outcome, Failure> {
        let shown = Shown::default();
        let watch = counted("looking up, strips");
        let aligned = align_words(&self.config(), device, &shown, &watch)?;
        drop(shown);
        let _together = files::lock_outputs(self.outputs());
        if let Some(path) = &self.save_map {
            aligned.map.save(path)?;
        }
        if let Some(path) = &self.out {
            aligned.source.write(path, &aligned.mapped)?;
        }
        if let (Some(path), Some(target)) = (&self.out_target, &aligned.target) {
            target.write(path, &target.matrix)?;
        }
        if let Some(path) = &self.predictions {
            text::write_table(path, aligned.predictions)?;
        }
        if let Some(path) = &self.lexicon {
            text::write_table(path, aligned.induced)?;
        }
        let outcome = Outcome::new(in_words(&aligned.result), &aligned.result);
        let tables = [&self.predictions, &self.lexicon].into_iter().flatten();
        let outcome = tables.fold(outcome, |outcome, path| outcome.beside(path));
        let unmapped = aligned.result.init == MapInit::None;
        let extractor = if unmapped { Extractor::WordRetrieval } else { Extractor::AlignWords };
        Ok(self.record.keep(outcome, extractor, 1, []))
    }

    fn outputs(&self) -> impl Iterator<Item = &Path> {
        let all = [&self.save_map, &self.out, &self.out_target, &self.predictions, &self.lexicon];
        all.into_iter().flatten().map(PathBuf::as_path)
    }

    fn config(&self) -> AlignWordsConfig {
        AlignWordsConfig {
            source: self.source.clone(),
            target: self.target.clone(),
            dictionary: self.dictionary.clone(),
            test_dictionary: self.test_dictionary.clone(),
            reversed: self.reversed,
            init: self.init.map(MapInit::from),
            map: self.map.clone(),
            refine: self.refine,
            cutoff: self.cutoff,
            normalize: steps(&self.normalize),
            csls: self.retrieval == Retrieval::Csls,
            neighbours: self.neighbors,
            max_vocab: self.max_vocab,
            source_words: self.source_words.clone(),
            target_words: self.target_words.clone(),
            skip_zero_vectors: self.tolerant,
            seed: self.seed,
            keep: if self.predictions.is_some() { self.top } else { 0 },
            induce: self.lexicon.is_some(),
        }
    }
}
