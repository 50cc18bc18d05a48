//! `isogloss align words`: word vectors of two languages, a map, and translations looked up.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use geometry::learn::{Induction, Round, from_nothing, identical, refine};
use geometry::lexicon::Lexicon;
use geometry::search::Measure;
use geometry::{Map, Matrix, describe, normalize};
use tensor::Device;
use vectors::WordVectors;
use vectors::formats::{self as vector_files, ReadOptions};

use super::aligned::Aligned;
use crate::commands::models::{Normalize, Place, steps};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::{Waiting, counted};

pub(super) const EXAMPLES: &str = "Examples:
  Learn from one dictionary, look up another:
    isogloss align words --source fr.vec --target en.vec \\
      --train fr-en.0-5000.txt --test fr-en.5000-6500.txt
  Without a dictionary, and refined; keep the map and the mapped vectors:
    isogloss align words --source fr.vec --target en.vec --start nothing --refine 5 \\
      --save-map w.npy --out fr-in-en.vec --test fr-en.5000-6500.txt
  Vectors of one common space, as they are (no map is learned):
    isogloss align words --source fr.vec --target en.vec --retrieval nn \\
      --normalize none --test fr-en.txt
  Map new vectors with a map that was kept:
    isogloss align words --source new.vec --map w.npy --out new-in-en.vec

Translations are looked up by the conventions of MUSE: pairs without a vector on one
side are left out, a source word is one query, and any of its translations is right.
Beside it stands the retrieval of \"A Study of Cross-Lingual Ability\": every pair a
query, by cosine, among the translations that the dictionary lists.";

/// Flags of `align words`.
#[derive(Args)]
pub(crate) struct Words {
    /// Vectors to map: Word2Vec's text or binary, fastText's .vec, GloVe's text, .npy with .vocab;
    /// plain, gzip or zstd.
    #[arg(long, value_name = "FILE")]
    source: PathBuf,

    /// Vectors to map onto.
    #[arg(long, value_name = "FILE", required_unless_present = "map")]
    target: Option<PathBuf>,

    /// The dictionary to learn from.
    #[arg(long, value_name = "DICT", requires = "target")]
    train: Option<PathBuf>,

    /// The dictionary to look up.
    #[arg(long, value_name = "DICT", requires = "target")]
    test: Option<PathBuf>,

    /// What the map is first learned from [default: the dictionary, where there is one, else none].
    #[arg(long, value_enum, conflicts_with = "map")]
    start: Option<Start>,

    /// Learn anew from mutual nearest neighbours, so many times.
    #[arg(
        long,
        value_name = "ROUNDS",
        default_value_t = 0,
        requires = "target",
        conflicts_with = "map"
    )]
    refine: usize,

    /// Words of each side that take part in refining and in learning from nothing.
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(2..))]
    cutoff: usize,

    /// What is done to both sides first; several steps with commas between.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "iterative")]
    normalize: Vec<Normalize>,

    /// How translations are looked up.
    #[arg(long, value_enum, default_value_t = Retrieval::Csls)]
    retrieval: Retrieval,

    /// Neighbours that CSLS takes the mean of.
    #[arg(long, value_name = "K", default_value_t = 10,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    neighbours: usize,

    /// Read the first N words of each side.
    #[arg(long, value_name = "N", default_value_t = 200_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    most: usize,

    /// Leave out vectors of zeros, rather than stop at the first.
    #[arg(long)]
    tolerant: bool,

    /// Take this map, rather than learn one.
    #[arg(long, value_name = "FILE.npy", conflicts_with = "train")]
    map: Option<PathBuf>,

    /// Keep the map: W of W x, dimension x dimension.
    #[arg(long, value_name = "FILE.npy")]
    save_map: Option<PathBuf>,

    /// Write the mapped source vectors.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Write the normalised target vectors, which belong to the mapped ones.
    #[arg(long, value_name = "FILE", requires = "target")]
    out_target: Option<PathBuf>,

    /// Decides the chance in learning from nothing.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    place: Place,
}

/// What a map is first learned from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Start {
    /// The dictionary given by --train.
    Dictionary,
    /// Words that are written alike on both sides.
    Identical,
    /// Nothing but the two spaces (self-learning).
    Nothing,
    /// No map is learned: the spaces are one already.
    None,
}

/// How translations are looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Retrieval {
    /// Cosine, less what either word is close to anyway.
    Csls,
    /// Cosine.
    Nn,
}

/// One side: its words, and its vectors after normalisation.
struct Side {
    words: WordVectors,
    matrix: Matrix,
}

impl Words {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        self.check()?;
        self.place.run(|device| self.align(device))?
    }

    /// What can be refused before anything is read.
    fn check(&self) -> Result<(), Failure> {
        let usage = |message: &str| Err(Failure::Usage(message.to_owned()));
        if self.start == Some(Start::Dictionary) && self.train.is_none() {
            return usage("--start dictionary needs one: give it by --train");
        }
        if self.train.is_some() && !matches!(self.start, None | Some(Start::Dictionary)) {
            return usage("--train is for --start dictionary; leave one of them out");
        }
        let outputs = [&self.save_map, &self.out, &self.out_target];
        for path in outputs.into_iter().flatten() {
            ::files::check_new_file(path, true)?;
            vector_files::check_name(path)?;
        }
        if self.test.is_none() && outputs.iter().all(|path| path.is_none()) {
            return usage("nothing is asked for: give --test, --save-map or --out");
        }
        Ok(())
    }

    fn align(&self, device: &Device) -> Result<Outcome, Failure> {
        let source = self.side(&self.source)?;
        let target = self.target.as_deref().map(|path| self.side(path)).transpose()?;
        if let Some(target) = &target {
            check_dims(
                source.matrix.cols(),
                target.matrix.cols(),
                &self.source,
                self.target.as_deref(),
            )?;
        }
        let k = self.neighbours(&source, target.as_ref());
        let mut aligned = Aligned {
            found: None,
            coverage: None,
            words: None,
            pairs: None,
            pair_coverage: None,
            candidates: None,
            signature: self.signature(k),
            start: self.start_name(),
            train_pairs: None,
            rounds: Vec::new(),
            source_words: source.words.len(),
            target_words: target.as_ref().map(|target| target.words.len()),
            dim: source.matrix.cols(),
        };
        let map = self.learn(&source, target.as_ref(), &mut aligned, device)?;
        let mapped = map.apply(&source.matrix);
        self.keep(&map, &source, &mapped, target.as_ref())?;
        if let (Some(test), Some(target)) = (&self.test, target) {
            let lexicon = Lexicon::read(test, &source.words, &target.words)?;
            aligned.coverage = Some(lexicon.coverage());
            aligned.words = Some([lexicon.words, lexicon.queries().len()]);
            aligned.pairs = Some([lexicon.listed, lexicon.pairs.len()]);
            aligned.pair_coverage = Some(lexicon.pairs.len() as f64 / lexicon.listed.max(1) as f64);
            aligned.candidates = Some(lexicon.among_candidates(&mapped, &target.matrix, device));
            let watch = counted("looking up, strips");
            let measure = self.measure(k);
            aligned.found = Some(lexicon.among_all(mapped, target.matrix, measure, device, &watch));
        }
        Ok(Outcome::new(aligned.in_words(), &aligned))
    }

    fn side(&self, path: &Path) -> Result<Side, Failure> {
        let _waiting = Waiting::new(&format!("reading {}", path.display()));
        let mut words =
            vector_files::read(path, ReadOptions { format: None, first: Some(self.most) })?;
        let mut matrix = Matrix::from(&words);
        let zero = |row: &usize| matrix.row(*row).iter().all(|&x| x == 0.0);
        let zeros: Vec<usize> = (0..words.len()).filter(zero).collect();
        if self.tolerant && !zeros.is_empty() {
            let first = words.word(zeros[0]);
            say!(
                "{}: {} vectors of zeros left out, the first of `{first}`",
                path.display(),
                zeros.len()
            );
            let kept: Vec<usize> =
                (0..words.len()).filter(|row| zeros.binary_search(row).is_err()).collect();
            let names = kept.iter().map(|&row| words.word(row).to_owned()).collect();
            matrix = matrix.select(kept);
            words = WordVectors::new(names, matrix.cols(), matrix.values().to_vec())?;
        }
        let name = |row: usize| format!("word {} (`{}`)", row + 1, words.word(row));
        matrix.check(&path.display().to_string(), name)?;
        normalize(&mut matrix, &steps(&self.normalize));
        Ok(Side { words, matrix })
    }

    fn learn(
        &self,
        source: &Side,
        target: Option<&Side>,
        aligned: &mut Aligned,
        device: &Device,
    ) -> Result<Map, Failure> {
        let dim = source.matrix.cols();
        let Some(target) = target else { return self.given_map(dim) };
        let induction = Induction { cutoff: self.cutoff, k: self.neighbours(source, Some(target)) };
        let map = match self.start() {
            None => return self.given_map(dim),
            Some(Start::None) => Map::identity(dim),
            Some(Start::Nothing) => {
                let _waiting = Waiting::new("learning from nothing");
                let note = |round| aligned.rounds.push(round);
                let (source, target) = (&source.matrix, &target.matrix);
                from_nothing(source, target, induction, self.seed, device, note)
            }
            Some(start) => {
                let pairs = self.pairs(start, source, target)?;
                aligned.train_pairs = Some(pairs.len());
                if pairs.len() < dim {
                    say!(
                        "warning: {} pairs do not determine a map of {dim} dimensions; what they leave open is arbitrary",
                        pairs.len()
                    );
                }
                Map::of_pairs(&source.matrix, &target.matrix, &pairs)
            }
        };
        if self.refine == 0 {
            return Ok(map);
        }
        let note = |round: Round| {
            say!("refined from {} pairs: mean cosine {:.4}", round.pairs, round.cosine);
            aligned.rounds.push(round);
        };
        let (source, target) = (&source.matrix, &target.matrix);
        Ok(refine(source, target, map, self.refine, induction, device, note))
    }

    fn pairs(
        &self,
        start: Start,
        source: &Side,
        target: &Side,
    ) -> Result<Vec<(u32, u32)>, Failure> {
        if let (Start::Dictionary, Some(train)) = (start, &self.train) {
            return Ok(Lexicon::read(train, &source.words, &target.words)?.pairs);
        }
        let pairs = identical(&source.words, &target.words);
        if pairs.is_empty() {
            let message = "no word is written alike on both sides; give a dictionary by --train, or \
                           learn from nothing with --start nothing";
            return Err(Failure::Usage(message.into()));
        }
        Ok(pairs)
    }

    fn given_map(&self, dim: usize) -> Result<Map, Failure> {
        let Some(path) = &self.map else { return Ok(Map::identity(dim)) };
        let map = Map::load(path)?;
        check_dims(map.dim(), dim, path, Some(&self.source))?;
        if map.distortion() > 1e-3 {
            say!("warning: {} is not orthogonal (off by {:.3})", path.display(), map.distortion());
        }
        Ok(map)
    }

    fn keep(
        &self,
        map: &Map,
        source: &Side,
        mapped: &Matrix,
        target: Option<&Side>,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.save_map {
            map.save(path)?;
        }
        let write = |path: &Path, words: &WordVectors, matrix: &Matrix| -> Result<(), Failure> {
            let names = words.words().map(str::to_owned).collect();
            let vectors = WordVectors::new(names, matrix.cols(), matrix.values().to_vec())?;
            Ok(vector_files::write(path, &vectors, None)?)
        };
        if let Some(path) = &self.out {
            write(path, &source.words, mapped)?;
        }
        if let (Some(path), Some(target)) = (&self.out_target, target) {
            write(path, &target.words, &target.matrix)?;
        }
        Ok(())
    }

    /// What is learned from; nothing where a map is given.
    fn start(&self) -> Option<Start> {
        if self.map.is_some() {
            return None;
        }
        let otherwise = if self.train.is_some() { Start::Dictionary } else { Start::None };
        Some(self.start.unwrap_or(otherwise))
    }

    fn start_name(&self) -> &'static str {
        match self.start() {
            None => "map",
            Some(Start::Dictionary) => "dictionary",
            Some(Start::Identical) => "identical",
            Some(Start::Nothing) => "nothing",
            Some(Start::None) => "none",
        }
    }

    /// How many neighbours there are to take the mean of, where fewer than were asked for.
    fn neighbours(&self, source: &Side, target: Option<&Side>) -> usize {
        let fewest = target.map_or(usize::MAX, |target| target.words.len()).min(source.words.len());
        self.neighbours.min(fewest)
    }

    fn measure(&self, k: usize) -> Measure {
        match self.retrieval {
            Retrieval::Csls => Measure::Csls { k },
            Retrieval::Nn => Measure::Cosine,
        }
    }

    /// Names every convention that a number depends on.
    fn signature(&self, k: usize) -> String {
        let refined = match self.refine {
            0 => String::new(),
            rounds => format!("|refine:{rounds},mutual-csls,k={k},cutoff={}", self.cutoff),
        };
        format!(
            "start:{}|norm:{}{refined}|retrieval:{}|queries:unique-source|gold:any|oov:dropped|vocab:{}|ties:lower-row|v{}",
            self.start_name(),
            describe(&steps(&self.normalize)),
            self.measure(k).describe(),
            self.most,
            env!("CARGO_PKG_VERSION"),
        )
    }
}

fn check_dims(a: usize, b: usize, first: &Path, second: Option<&Path>) -> Result<(), Failure> {
    if a == b {
        return Ok(());
    }
    let (first, second) = (first.display(), second.unwrap_or(Path::new("")).display());
    let message = format!(
        "{first} has {a} dimensions, {second} has {b}; an orthogonal map needs the same of both"
    );
    Err(Failure::Usage(message))
}
