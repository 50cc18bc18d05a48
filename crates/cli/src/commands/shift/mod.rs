//! `isogloss shift`: means of languages, token translation, and sweeps over layers and weights.

mod difference;
mod sweep;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use models::PretrainedModel;
use serde::Serialize;
use serde_json::json;
use shift::CLASSES;
use shift::means::{Means, compute};
use shift::shifter::Kind;
use shift::translate::{Direction, Line, translate};
use tensor::Device;

use self::difference::DifferenceOf;
use self::sweep::SweepOver;
use super::models::Place;
use super::texts::{TextFlags, watch};
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  isogloss shift means --model run \\
    --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt
  isogloss shift translate --model run --from qaa --to qab --layer 2 'SENTENCE'
  isogloss shift sweep --model run --parallel qaa=a.txt --parallel qab=b.txt \\
    --dictionary qaa-qab=muse.txt
  isogloss shift difference --model run --from qab --to qaa --layer 2 --out D.npy";

const MEANS_EXAMPLES: &str = "Example:
  isogloss shift means --model run --sample 20000 \\
    --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt";

const TRANSLATE_EXAMPLES: &str = "Examples:
  isogloss shift translate --model run --from qaa --to qab --layer 2 'SENTENCE'
  isogloss shift translate --model run --from qaa --to qab --layer 2 --alpha 0,0.5,1 \\
    --file world/tatoeba/tatoeba.qab-qaa.qaa \\
    --reference world/tatoeba/tatoeba.qab-qaa.qab --first 3";

/// The file of a run that holds the means of its languages.
pub(super) const MEANS: &str = "means.safetensors";

/// What can be asked of the language inside the vectors.
#[derive(Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum Shift {
    /// The mean of all hidden states of each language, at each layer.
    Means(MeansOf),
    /// Read a sentence in one language, shift it to another, and print what the model says.
    Translate(Translate),
    /// BLEU-1 and convert rate over layers and weights, in every direction.
    Sweep(SweepOver),
    /// Write the difference of two languages' means at a layer, as an array of NumPy.
    Difference(DifferenceOf),
}

/// Which model, and where it runs.
#[derive(Args)]
struct ModelFlags {
    /// A folder of `isogloss pretrain`.
    #[arg(long, value_name = "RUN")]
    model: PathBuf,

    #[command(flatten)]
    place: Place,
}

impl ModelFlags {
    fn open(&self) -> Result<(PretrainedModel, Device), Failure> {
        let device = self.place.device()?;
        Ok((PretrainedModel::open(&self.model, &device)?, device))
    }
}

/// A model whose languages' means were taken.
#[derive(Args)]
pub(crate) struct Measured {
    #[command(flatten)]
    model: ModelFlags,

    /// The means; those in the run's folder if not given.
    #[arg(long, value_name = "FILE")]
    means: Option<PathBuf>,
}

impl Measured {
    fn open(&self) -> Result<(PretrainedModel, Device, Means), Failure> {
        let (model, device) = self.model.open()?;
        let run = &self.model.model;
        let path = self.means.clone().unwrap_or_else(|| run.join(MEANS));
        if !path.is_file() {
            let (path, run) = (path.display(), run.display());
            return Err(Failure::Usage(format!(
                "{path} is not there; make it with `isogloss shift means --model {run} --text LANG=FILE …`"
            )));
        }
        let means = Means::open(&path, &model).map_err(refused)?;
        Ok((model, device, means))
    }
}

/// What makes no sense is a matter of usage.
fn refused(error: shift::Error) -> Failure {
    match error {
        shift::Error::Request(message) => Failure::Usage(message),
        error => error.into(),
    }
}

/// Flags of `shift means`.
#[derive(Args)]
#[command(after_help = MEANS_EXAMPLES)]
pub(crate) struct MeansOf {
    #[command(flatten)]
    model: ModelFlags,

    #[command(flatten)]
    text: TextFlags,

    /// The file to write; in the run's folder if not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Flags of `shift translate`.
#[derive(Args)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub(crate) struct Translate {
    #[command(flatten)]
    measured: Measured,

    /// The language to read.
    #[arg(long, value_name = "LANG")]
    from: String,

    /// The language to shift to.
    #[arg(long, value_name = "LANG")]
    to: String,

    /// After which layer to shift; 0 is the embeddings.
    #[arg(long, value_name = "N")]
    layer: usize,

    /// Weights of the shift, separated by commas; they may be negative.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = weight, default_values_t = [0.0, 1.0, 2.0, 3.0])]
    alpha: Vec<f32>,

    /// How the shift is made: mean, sharing (by whether languages share a piece), bands (by
    /// frequency), without-N (less N leading directions).
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = Kind::parse)]
    kind: Kind,

    /// A file of sentences, one a line; of a .tsv file (such as XNLI's) the first column.
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,

    /// The translations of the file's sentences, line by line, to show below.
    #[arg(long, value_name = "FILE", requires = "file")]
    reference: Option<PathBuf>,

    /// Take the first N sentences of the file.
    #[arg(long, value_name = "N", requires = "file", default_value_t = 10)]
    first: usize,

    /// The sentence; standard input, a sentence a line, if neither it nor a file is given.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

impl Shift {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Shift::Means(command) => command.run(),
            Shift::Translate(command) => command.run(),
            Shift::Sweep(command) => command.run(),
            Shift::Difference(command) => command.run(),
        }
    }
}

/// A language in the result of `shift means`.
#[derive(Serialize)]
struct MeanFacts {
    language: String,
    /// States seen, by class.
    states: serde_json::Map<String, serde_json::Value>,
    /// Different pieces seen.
    pieces: usize,
    /// For each layer, the largest standard error over the mean's length.
    error: Vec<f64>,
}

/// Shows how far a pass over a text has come.
type Bar = Box<dyn FnMut(text::ReadProgress) + Send>;

impl MeansOf {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device) = self.model.open()?;
        let out = self.out.clone().unwrap_or_else(|| self.model.model.join(MEANS));
        files::check_new_file(&out, true)?;
        let corpora = self.text.corpora_for(&model.vocabulary)?;
        let mut shown: Option<(String, Bar)> = None;
        let mut show = |doing: &str, at: text::ReadProgress| {
            if shown.as_ref().is_none_or(|(last, _)| last != doing) {
                shown = Some((doing.to_owned(), Box::new(watch(doing.to_owned()))));
            }
            shown.as_mut().into_iter().for_each(|(_, bar)| bar(at));
        };
        let means = device.run(|| compute(&mut model, &corpora, &mut show)).map_err(refused)?;
        drop(shown);
        means.save(&out, &device)?;
        let facts: Vec<MeanFacts> = means.languages.iter().map(mean_facts).collect();
        let mut text = format!("{}: means of {} languages\n", out.display(), facts.len());
        for language in &facts {
            let worst = language.error.iter().copied().fold(0.0, f64::max);
            let states = &language.states["all"];
            let error = match states.as_u64() {
                // One state says nothing of how states differ.
                Some(0 | 1) => "no standard error from so few".to_owned(),
                _ => format!("standard error at most {:.2} % of the mean", 100.0 * worst),
            };
            let (name, pieces) = (&language.language, language.pieces);
            let _ =
                writeln!(text, "  {name:<8} {states} states of {pieces} different pieces; {error}");
        }
        Ok(Outcome::new(text, &json!({ "file": out, "languages": facts })))
    }
}

fn mean_facts(language: &shift::means::LanguageMeans) -> MeanFacts {
    let states = CLASSES.iter().zip(language.counts);
    let states = states.map(|(class, count)| ((*class).to_owned(), json!(count))).collect();
    let length = |vector: &[f32]| vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
    let error = |(mean, errors): (&Vec<f32>, &Vec<f32>)| {
        length(errors) / length(&mean[..errors.len()]).max(1e-12)
    };
    MeanFacts {
        language: language.name.clone(),
        states,
        pieces: language.subwords.iter().filter(|&&count| count > 0).count(),
        error: language.layers.iter().zip(&language.errors).map(error).collect(),
    }
}

impl Translate {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device, means) = self.measured.open()?;
        let (from, to) = (
            means.language(&self.from).map_err(refused)?,
            means.language(&self.to).map_err(refused)?,
        );
        let direction = Direction { means: &means, from, to };
        let references = match &self.reference {
            Some(path) => first_lines(path, self.first)?,
            None => Vec::new(),
        };
        let colour = std::io::stdout().is_terminal();
        let (mut shown, mut facts) = (String::new(), Vec::new());
        let sentences = self.sentences()?;
        if self.reference.is_some() && references.len() < sentences.len() {
            return Err(Failure::Usage(format!(
                "--reference has {} lines for {} sentences; give a translation of each",
                references.len(),
                sentences.len()
            )));
        }
        for (number, (place, sentence)) in sentences.iter().enumerate() {
            let reference = references.get(number);
            let lines = device
                .run(|| {
                    translate(&mut model, &direction, self.layer, self.kind, &self.alpha, sentence)
                })
                .map_err(|error| match error {
                    shift::Error::Sentence(_) => Failure::Usage(format!("{place}{error}")),
                    error => refused(error),
                })?;
            let _ = writeln!(shown, "{:>9}  {sentence}", self.from);
            lines.iter().for_each(|line| shown += &in_colour(line, &self.to, colour));
            if let Some(reference) = reference {
                let _ = writeln!(shown, "{:>9}  {reference}\n", "reference");
            }
            facts.push(json!({ "sentence": sentence, "said": lines, "reference": reference }));
        }
        if facts.is_empty() {
            return Err(Failure::Usage("there is no sentence to translate".to_owned()));
        }
        let facts = json!({
            "from": self.from, "to": self.to, "layer": self.layer, "kind": self.kind.name(),
            "sentences": facts,
        });
        Ok(Outcome::new(shown, &facts))
    }
}

impl Translate {
    /// What was given to translate, and where it stands (as `FILE:LINE: `).
    fn sentences(&self) -> Result<Vec<(String, String)>, Failure> {
        if let Some(path) = &self.file {
            let lines = first_lines(path, self.first)?.into_iter().enumerate();
            let place = |number| format!("{}:{}: ", path.display(), number + 1);
            return Ok(lines.map(|(number, line)| (place(number), line)).collect());
        }
        let (text, name) = match &self.text {
            Some(text) => (text.clone(), None),
            None => (std::io::read_to_string(std::io::stdin())?, Some("standard input")),
        };
        let place = |number| name.map_or(String::new(), |name| format!("{name}:{}: ", number + 1));
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        Ok(lines.map(|(number, line)| (place(number), line.to_owned())).collect())
    }
}

/// A weight of a shift.
fn weight(text: &str) -> Result<f32, String> {
    let weight = text.parse::<f32>().ok().filter(|weight| weight.is_finite());
    weight.ok_or_else(|| "a weight is a finite number".to_owned())
}

/// The first sentences of a file.
fn first_lines(path: &Path, most: usize) -> Result<Vec<String>, Failure> {
    let source = models::sentences::open(path)?;
    Ok(models::sentences::lines(&source).take(most).collect::<Result<_, _>>()?)
}

/// A line of the table; pieces of the target language stand out.
fn in_colour(line: &Line, to: &str, colour: bool) -> String {
    let mut text = format!("{to} {:>6}  ", format!("α={}", line.alpha));
    for piece in &line.pieces {
        let code = match (piece.source, piece.target) {
            (false, true) => "\x1b[1;32m",
            (true, false) => "\x1b[0m",
            _ => "\x1b[2m",
        };
        let shown = piece.text.as_str();
        match colour {
            true => _ = write!(text, "{code}{shown}\x1b[0m "),
            false => _ = write!(text, "{shown} "),
        }
    }
    match line.convert_rate {
        Some(rate) => text + &format!(" ({:.0} % converted)\n", 100.0 * rate),
        None => text + "\n",
    }
}
