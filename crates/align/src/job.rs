//! Aligning a parallel text from file to files: read, train or load a model, link, symmetrize, write.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::bitext::{Bitext, BitextSide};
use crate::dictionary::{PairTexts, lexicon};
use crate::input::{
    BitextObserver, BitextPreparation, BitextReader, PairCallback, PairRules, ParallelText,
};
use crate::learn::{AlignmentConfig, DirectionalLinks, EmIteration, train_direction};
use crate::links::WordLinks;
use crate::model::AlignmentModel;
use crate::symmetrize::{Symmetrization, symmetrize};
use crate::view::AlignmentDirection;
use crate::{Error, Result};

/// The share of unknown words from which on a text is probably not in the model's language.
const MOSTLY_UNKNOWN: f64 = 0.5;

/// What to align, how, and where to.
pub struct AlignmentRequest<'a> {
    /// The parallel text.
    pub text: &'a ParallelText,
    /// Its languages, source and target.
    pub languages: [String; 2],
    /// How it is preprocessed; a saved model brings its own.
    pub preparation: BitextPreparation,
    /// A saved model to align with, in place of training.
    pub model: Option<AlignmentModel>,
    /// How a model is trained.
    pub config: AlignmentConfig,
    /// How the links of both directions are combined.
    pub symmetrization: Symmetrization,
    /// Which pairs are read.
    pub rules: PairRules,
    /// The files to write.
    pub outputs: AlignmentOutputs,
}

/// The files to write, each with a line for each sentence pair.
#[derive(Clone, Debug, Default)]
pub struct AlignmentOutputs {
    /// The symmetrized links, `0-0 1-2`.
    pub links: PathBuf,
    /// The links of the forward direction.
    pub forward: Option<PathBuf>,
    /// The links of the reverse direction.
    pub reverse: Option<PathBuf>,
    /// Each link with its posterior probability in either direction.
    pub posteriors: Option<PathBuf>,
    /// The log-probability of each pair in either direction.
    pub scores: Option<PathBuf>,
    /// The tokenized pairs.
    pub prepared: Option<PathBuf>,
    /// The symmetrized links in words, `le=the chat=cat`.
    pub readable: Option<PathBuf>,
    /// The lexicon of linked words, not a line for each pair but for each entry.
    pub lexicon: Option<PathBuf>,
    /// The trained model, one file.
    pub save: Option<PathBuf>,
}

impl AlignmentOutputs {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let Self { links, forward, reverse, posteriors, scores, prepared, readable, lexicon, save } =
            self;
        let optional = [forward, reverse, posteriors, scores, prepared, readable, lexicon, save];
        std::iter::once(links.as_path()).chain(optional.into_iter().flatten().map(PathBuf::as_path))
    }
}

/// Observes an alignment; all methods may do nothing.
pub trait AlignmentObserver {
    /// Bytes of the text read so far.
    fn read(&mut self, _bytes: u64) {}
    /// An iteration of expectation-maximisation is done.
    fn iteration(&mut self, _direction: AlignmentDirection, _iteration: &EmIteration) {}
    /// A saved model links the text.
    fn linking(&mut self) {}
}

impl AlignmentObserver for () {}

/// The result of aligning a parallel text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordAlignResult {
    /// The languages, source and target.
    pub languages: [String; 2],
    /// Sentence pairs.
    pub pairs: usize,
    /// Word tokens of source and target.
    pub tokens: [usize; 2],
    /// Word types of source and target.
    pub types: [usize; 2],
    /// The share of tokens of source and target that a saved model does not know.
    pub unknown: [f64; 2],
    /// The iterations of the forward direction; empty where a saved model was used.
    pub forward: Vec<EmIteration>,
    /// The iterations of the reverse direction.
    pub reverse: Vec<EmIteration>,
    /// How the links of both directions were combined.
    pub symmetrization: Symmetrization,
    /// Symmetrized links.
    pub links: u64,
    /// The file of links.
    pub out: PathBuf,
    /// Seconds in all.
    pub seconds: f64,
    /// What may be wrong with the input.
    pub warnings: Vec<String>,
    /// How the text was aligned.
    pub signature: String,
}

/// Both directions' links, and the model where an output needs it.
struct BothDirections {
    forward: DirectionalLinks,
    reverse: DirectionalLinks,
    model: Option<AlignmentModel>,
    iterations: [Vec<EmIteration>; 2],
}

/// Aligns a parallel text and writes what was asked for.
pub fn align_text(
    request: AlignmentRequest<'_>,
    observer: &mut dyn AlignmentObserver,
) -> Result<WordAlignResult> {
    let began = Instant::now();
    let AlignmentRequest {
        text,
        languages,
        preparation,
        model,
        config,
        symmetrization,
        rules,
        outputs,
    } = request;
    let mut warnings = Vec::new();
    let preparation = match &model {
        Some(model) => model.preparation_for(&languages)?,
        None => preparation,
    };
    warnings.extend(preparation.warnings());
    let reader = BitextReader::new(preparation, rules)?;
    let keep = outputs.readable.is_some() || outputs.lexicon.is_some();
    let kept = (outputs.prepared.as_deref(), keep);
    let (bitext, texts) = read(&reader, text, model.as_ref(), kept, observer)?;
    let sides = [bitext.source(), bitext.target()];
    let unknown = sides.map(unknown_share);
    for (share, language) in
        unknown.iter().zip(&languages).filter(|(share, _)| **share >= MOSTLY_UNKNOWN)
    {
        warnings.push(format!(
            "the model does not know {:.0} % of the words of `{language}`: is it text of that \
             language, preprocessed as the model's was?",
            100.0 * share
        ));
    }
    let both = match model {
        Some(model) => link(model, &bitext, observer),
        None => train(&bitext, &config, &outputs, observer)?,
    };
    let _together = files::lock_outputs(outputs.paths());
    if let (Some(path), Some(model)) = (&outputs.save, &both.model) {
        model.save(path)?;
    }
    let links = write(&outputs, symmetrization, &bitext, &texts, &both)?;
    let [forward, reverse] = both.iterations;
    let method = match forward.is_empty() {
        true => "saved".to_owned(),
        false => config.signature(),
    };
    Ok(WordAlignResult {
        languages,
        pairs: bitext.len(),
        tokens: sides.map(|side| side.tokens().len()),
        types: sides.map(|side| side.words().len()),
        unknown,
        forward,
        reverse,
        symmetrization,
        links,
        out: outputs.links,
        seconds: began.elapsed().as_secs_f64(),
        warnings,
        signature: signature(&method, symmetrization),
    })
}

/// The links of sentence pairs in memory, and how they came about.
#[derive(Clone, Debug)]
pub struct AlignedBitext {
    /// The symmetrized links of each pair.
    pub links: Vec<WordLinks>,
    /// The iterations of the forward and of the reverse direction.
    pub iterations: [Vec<EmIteration>; 2],
    /// How the text was aligned.
    pub signature: String,
}

/// Aligns sentence pairs in memory, as [`align_text`] aligns those of files.
pub fn align_bitext(
    bitext: &Bitext,
    config: &AlignmentConfig,
    symmetrization: Symmetrization,
    observer: &mut dyn AlignmentObserver,
) -> Result<AlignedBitext> {
    let both = train(bitext, config, &AlignmentOutputs::default(), observer)?;
    let links =
        (0..bitext.len()).into_par_iter().map(|s| both.symmetrized(bitext, symmetrization, s));
    let links = links.collect();
    let signature = signature(&config.signature(), symmetrization);
    Ok(AlignedBitext { links, iterations: both.iterations, signature })
}

fn signature(method: &str, symmetrization: Symmetrization) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("word-align|ibm2|{method}|{}|v:{version}", symmetrization.name())
}

impl BothDirections {
    fn symmetrized(
        &self,
        bitext: &Bitext,
        symmetrization: Symmetrization,
        pair: usize,
    ) -> WordLinks {
        let (forward, reverse) =
            (self.forward.links(bitext, pair), self.reverse.links(bitext, pair));
        symmetrize(&forward, &reverse, symmetrization)
    }
}

fn unknown_share(side: &BitextSide) -> f64 {
    let unknown = side.words().unknown();
    let count = side.tokens().iter().filter(|&&token| token == unknown).count();
    count as f64 / side.tokens().len().max(1) as f64
}

/// Reads the text and, where a file is named for them, writes its tokenized pairs. Their words are returned where they
/// are to be kept.
pub(crate) fn read(
    reader: &BitextReader,
    text: &ParallelText,
    model: Option<&AlignmentModel>,
    (prepared, keep): (Option<&Path>, bool),
    observer: &mut dyn AlignmentObserver,
) -> Result<(Bitext, PairTexts)> {
    let words = model.map(|model| (&model.source, &model.target));
    let mut bytes = |read: u64| observer.read(read);
    let mut texts = PairTexts::default();
    let Some(path) = prepared else {
        let mut pair = |source: &str, target: &str| texts.push(source, target);
        let pair: Option<&mut PairCallback> = if keep { Some(&mut pair) } else { None };
        let bitext = reader.read(text, words, &mut BitextObserver { bytes: &mut bytes, pair })?;
        return Ok((bitext, texts));
    };
    let mut bitext = None;
    let written = files::write_with(path, |writer| {
        let mut written = Ok(());
        let mut pair = |source: &str, target: &str| {
            if written.is_ok() {
                written = writeln!(writer, "{} ||| {}", source.trim(), target.trim());
            }
            if keep {
                texts.push(source, target);
            }
        };
        let mut callbacks = BitextObserver { bytes: &mut bytes, pair: Some(&mut pair) };
        let read = bitext.insert(reader.read(text, words, &mut callbacks));
        match read {
            // The file is discarded, and the error of reading is reported in place of this one.
            Err(_) => Err(std::io::Error::other("the text could not be read")),
            Ok(_) => written,
        }
    });
    match bitext {
        Some(Err(error)) => Err(error),
        Some(Ok(bitext)) => written.map(|()| (bitext, texts)).map_err(Error::from),
        None => Err(written.expect_err("nothing was read").into()),
    }
}

/// Trains one direction after the other; the first is kept only where an output needs it.
fn train(
    bitext: &Bitext,
    config: &AlignmentConfig,
    outputs: &AlignmentOutputs,
    observer: &mut dyn AlignmentObserver,
) -> Result<BothDirections> {
    let keep = outputs.save.is_some() || outputs.posteriors.is_some() || outputs.scores.is_some();
    let mut iterations = [Vec::new(), Vec::new()];
    let mut train = |direction: AlignmentDirection| {
        let done = &mut iterations[direction as usize];
        let (model, links) = train_direction(bitext, direction, config, &mut |iteration| {
            observer.iteration(direction, iteration);
            done.push(iteration.clone());
        })?;
        Ok::<_, Error>((keep.then_some(model), links))
    };
    let (forward_model, forward) = train(AlignmentDirection::Forward)?;
    let (reverse_model, reverse) = train(AlignmentDirection::Reverse)?;
    let model = match (forward_model, reverse_model) {
        (Some(forward), Some(reverse)) => Some(AlignmentModel::new(bitext, forward, reverse)),
        _ => None,
    };
    Ok(BothDirections { forward, reverse, model, iterations })
}

fn link(
    model: AlignmentModel,
    bitext: &Bitext,
    observer: &mut dyn AlignmentObserver,
) -> BothDirections {
    observer.linking();
    let [forward, reverse] = [AlignmentDirection::Forward, AlignmentDirection::Reverse]
        .map(|direction| model.link(bitext, direction));
    BothDirections { forward, reverse, model: Some(model), iterations: [Vec::new(), Vec::new()] }
}

/// Writes all that was asked for; returns the number of symmetrized links.
fn write(
    outputs: &AlignmentOutputs,
    symmetrization: Symmetrization,
    bitext: &Bitext,
    texts: &PairTexts,
    both: &BothDirections,
) -> Result<u64> {
    let BothDirections { forward, reverse, model, .. } = both;
    let pairs = bitext.len();
    let symmetrized = |s| both.symmetrized(bitext, symmetrization, s);
    for (path, direction) in [(&outputs.forward, forward), (&outputs.reverse, reverse)] {
        if let Some(path) = path {
            write_lines(path, pairs, |s, text| put(&direction.links(bitext, s), text))?;
        }
    }
    let explain = |model: &AlignmentModel, s: usize| {
        model.explain(bitext.source().sentence(s), bitext.target().sentence(s))
    };
    if let (Some(path), Some(model)) = (&outputs.posteriors, model) {
        write_lines(path, pairs, |s, text| {
            let posteriors = explain(model, s);
            for (index, link) in symmetrized(s).iter().enumerate() {
                let [forward, reverse] = posteriors.posteriors(link);
                let space = if index > 0 { " " } else { "" };
                let (i, j) = link;
                let _ = write!(text, "{space}{i}-{j}:{forward:.4}:{reverse:.4}");
            }
            0
        })?;
    }
    if let (Some(path), Some(model)) = (&outputs.scores, model) {
        write_lines(path, pairs, |s, text| {
            let [forward, reverse] = explain(model, s).log_probabilities;
            let _ = write!(text, "{forward:.6}\t{reverse:.6}");
            0
        })?;
    }
    if let Some(path) = &outputs.readable {
        write_lines(path, pairs, |s, text| {
            texts.put(s, &symmetrized(s), text);
            0
        })?;
    }
    if let Some(path) = &outputs.lexicon {
        text::write_table(path, lexicon(texts, pairs, symmetrized))?;
    }
    write_lines(&outputs.links, pairs, |s, text| put(&symmetrized(s), text))
}

pub(crate) fn put(links: &WordLinks, text: &mut String) -> u64 {
    let _ = write!(text, "{links}");
    links.len() as u64
}

/// Writes a line for each pair, made in parallel in blocks; sums up what `line` counts.
pub(crate) fn write_lines(
    path: &Path,
    pairs: usize,
    line: impl Fn(usize, &mut String) -> u64 + Sync,
) -> Result<u64> {
    const BLOCK: usize = 1 << 12;
    const BLOCKS: usize = 64;
    let block = |from: usize| {
        let (mut text, mut count) = (String::new(), 0);
        for s in from..(from + BLOCK).min(pairs) {
            count += line(s, &mut text);
            text.push('\n');
        }
        (text, count)
    };
    let mut total = 0;
    files::write_with(path, |writer| {
        let starts: Vec<usize> = (0..pairs).step_by(BLOCK).collect();
        for run in starts.chunks(BLOCKS) {
            let blocks: Vec<(String, u64)> = run.par_iter().map(|&from| block(from)).collect();
            for (text, count) in blocks {
                writer.write_all(text.as_bytes())?;
                total += count;
            }
        }
        Ok(())
    })?;
    Ok(total)
}
