//! `isogloss shift`: means of languages, token translation, and sweeps over layers and weights.

use std::fmt::Write as _;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use shift::means::{Means, compute};
use shift::shifter::Kind;
use shift::translate::{Direction, Grid, Line, Sweep, Truth, sweep, translate};
use shift::{CLASSES, Sentences, sentences};
use tensor::Device;
use text::{Dictionary, LineRules};
use train::Pretrained;

use super::models::Place;
use super::texts::{TextFlags, parse_text, watch};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  isogloss shift means --model run --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt
  isogloss shift translate --model run --from qaa --to qab --layer 2 'SENTENCE'
  isogloss shift sweep --model run --parallel qaa=a.txt --parallel qab=b.txt --dictionary qaa-qab=muse.txt";

/// The file of a run that holds the means of its languages.
const MEANS: &str = "means.safetensors";

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
    fn open(&self) -> Result<(Pretrained, Device), Failure> {
        let device = self.place.device()?;
        Ok((Pretrained::open(&self.model, &device)?, device))
    }

    fn means(&self, given: Option<&Path>, model: &Pretrained) -> Result<Means, Failure> {
        let own = self.model.join(MEANS);
        let path = given.unwrap_or(&own);
        if !path.is_file() {
            let (path, run) = (path.display(), self.model.display());
            return Err(Failure::Usage(format!(
                "{path} is not there; make it with `isogloss shift means --model {run} --text LANG=FILE …`"
            )));
        }
        Means::open(path, model).map_err(refused)
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
pub(crate) struct Translate {
    #[command(flatten)]
    model: ModelFlags,

    /// The means; those in the run's folder if not given.
    #[arg(long, value_name = "FILE")]
    means: Option<PathBuf>,

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
        default_values_t = [0.0, 1.0, 2.0, 3.0])]
    alpha: Vec<f32>,

    /// How the shift is made: mean, sharing (by whether languages share a piece), bands (by
    /// frequency), without-N (less N leading directions).
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = Kind::parse)]
    kind: Kind,

    /// The sentence; standard input, a sentence a line, if not given.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

/// Flags of `shift sweep`.
#[derive(Args)]
pub(crate) struct SweepOver {
    #[command(flatten)]
    model: ModelFlags,

    /// The means; those in the run's folder if not given.
    #[arg(long, value_name = "FILE")]
    means: Option<PathBuf>,

    /// Sentences of a language, the same in every language line by line; of a .tsv file (such as
    /// XNLI's) the first column. Every pair of languages is tried in both directions.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, required = true)]
    parallel: Vec<(String, String)>,

    /// A dictionary by which exact translations are counted, in both directions.
    #[arg(long, value_name = "A-B=FILE", value_parser = parse_text)]
    dictionary: Vec<(String, String)>,

    /// Layers to try, separated by commas; all from 1 on if not given.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    layers: Vec<usize>,

    /// Weights to try, separated by commas.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        default_values_t = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])]
    alphas: Vec<f32>,

    /// How the shift is made; repeat to compare: mean, sharing, bands, without-N.
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = Kind::parse)]
    kind: Vec<Kind>,

    /// Use the first N sentences.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sentences: usize,

    /// A file for every number of the sweep, in JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Shift {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        match self {
            Shift::Means(command) => command.run(),
            Shift::Translate(command) => command.run(),
            Shift::Sweep(command) => command.run(),
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
type Bar = Box<dyn FnMut(text::Progress) + Send>;

impl MeansOf {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device) = self.model.open()?;
        let out = self.out.clone().unwrap_or_else(|| self.model.model.join(MEANS));
        files::check_new_file(&out)?;
        let corpora = self.text.corpora_for(&model.vocabulary)?;
        let mut shown: Option<(String, Bar)> = None;
        let mut show = |doing: &str, at: text::Progress| {
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
            let _ = writeln!(
                text,
                "  {:<8} {} states of {} different pieces; standard error at most {:.2} % of the mean",
                language.language,
                language.states["all"],
                language.pieces,
                100.0 * worst,
            );
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
        pieces: language.pieces.iter().filter(|&&count| count > 0).count(),
        error: language.layers.iter().zip(&language.errors).map(error).collect(),
    }
}

impl Translate {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device) = self.model.open()?;
        let means = self.model.means(self.means.as_deref(), &model)?;
        let (from, to) = (
            means.language(&self.from).map_err(refused)?,
            means.language(&self.to).map_err(refused)?,
        );
        let direction = Direction { means: &means, from, to };
        let text = match &self.text {
            Some(text) => text.clone(),
            None => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text)?;
                text
            }
        };
        let colour = std::io::stdout().is_terminal();
        let (mut shown, mut facts) = (String::new(), Vec::new());
        for sentence in text.lines().filter(|line| !line.trim().is_empty()) {
            let lines = device
                .run(|| {
                    translate(&mut model, &direction, self.layer, self.kind, &self.alpha, sentence)
                })
                .map_err(refused)?;
            let _ = writeln!(shown, "{:>9}  {sentence}", self.from);
            lines.iter().for_each(|line| shown += &in_colour(line, &self.to, colour));
            facts.push(json!({ "sentence": sentence, "said": lines }));
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

impl SweepOver {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device) = self.model.open()?;
        let means = self.model.means(self.means.as_deref(), &model)?;
        if self.parallel.len() < 2 {
            return Err(Failure::Usage("give --parallel for two languages at least".to_owned()));
        }
        if let Some(out) = &self.out {
            files::check_new_file(out)?;
        }
        let sides = self.sides(&model)?;
        let layers = match self.layers.is_empty() {
            true => (1..=model.model.config().layers).collect(),
            false => self.layers.clone(),
        };
        let pairs = self.parallel.len() * (self.parallel.len() - 1);
        let total = pairs * self.kind.len() * sides[0].ids.len();
        let mut progress = Progress::new("sentences", total as u64);
        let mut sweeps = Vec::new();
        for (a, (from, _)) in self.parallel.iter().enumerate() {
            for (b, (to, _)) in self.parallel.iter().enumerate().filter(|&(b, _)| a != b) {
                let places = [from, to].map(|name| means.language(name).map_err(refused));
                let [source, target] = places;
                let direction = Direction { means: &means, from: source?, to: target? };
                let truth = self.truth(&model, from, to)?;
                for &kind in &self.kind {
                    let grid = Grid { layers: &layers, alphas: &self.alphas, kind };
                    let sides = [&sides[a], &sides[b]];
                    let mut before = 0;
                    let done = device.run(|| {
                        sweep(&mut model, &direction, &grid, sides, &truth, &mut |done| {
                            let note = format!("{from} to {to}, {}", kind.name());
                            (before..done).for_each(|_| progress.step(&note));
                            before = done;
                        })
                    });
                    sweeps.push(done.map_err(refused)?);
                }
            }
        }
        drop(progress);
        let facts = json!({
            "signature": shift::bleu::signature("pieces"), "sweeps": sweeps,
        });
        if let Some(out) = &self.out {
            files::write(out, serde_json::to_string_pretty(&facts).expect("plain data"))?;
        }
        Ok(Outcome::new(in_words(&sweeps), &facts))
    }

    fn sides(&self, model: &Pretrained) -> Result<Vec<Sentences>, Failure> {
        let mut sides = Vec::new();
        for (language, file) in &self.parallel {
            sides.push(sentences(model, language, file).map_err(refused)?);
        }
        for (side, (_, file)) in sides.iter().zip(&self.parallel) {
            let (here, there) = (side.ids.len(), sides[0].ids.len());
            if here != there {
                let first = &self.parallel[0].1;
                return Err(Failure::Usage(format!(
                    "{file} has {here} lines, {first} has {there}; give files that match line by line"
                )));
            }
        }
        sides.iter_mut().for_each(|side| side.ids.truncate(self.sentences));
        Ok(sides)
    }

    fn truth(&self, model: &Pretrained, from: &str, to: &str) -> Result<Truth, Failure> {
        for (pair, file) in &self.dictionary {
            let Some((a, b)) = pair.split_once('-') else {
                return Err(Failure::Usage(format!("--dictionary {pair}={file}: write A-B=FILE")));
            };
            let read =
                |a: &str, b: &str| Dictionary::read(Path::new(file), a, b, LineRules::default());
            let dictionary = match (a, b) {
                _ if (a, b) == (from, to) => read(a, b)?,
                _ if (b, a) == (from, to) => read(a, b)?.reversed(),
                _ => continue,
            };
            let pairs = dictionary.entries.iter().map(|(a, b, _)| (a.as_str(), b.as_str()));
            return Truth::new(model, from, to, pairs).map_err(refused);
        }
        Ok(Truth::default())
    }
}

/// The best cell of each sweep, and what it is at the weights of the papers.
fn in_words(sweeps: &[Sweep]) -> String {
    let mut text = format!(
        "{:<14}{:<12}{:>7} {:>6} {:>6}{:>11}{:>12}{:>11}\n",
        "direction", "kind", "BLEU-1", "layer", "α", "converted", "translated", "repeated"
    );
    let percent =
        |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share));
    for sweep in sweeps {
        let Some(best) = sweep.best() else { continue };
        let _ = writeln!(
            text,
            "{:<14}{:<12}{:>7.2} {:>6} {:>6}{:>11}{:>12}{:>11}",
            format!("{} → {}", sweep.from, sweep.to),
            sweep.kind,
            best.bleu,
            best.layer,
            best.alpha,
            percent(best.convert_rate),
            percent(best.translated),
            percent(Some(best.repeated)),
        );
        if sweep.left_out > 0 {
            let _ = writeln!(text, "  {} sentences left out: empty or too long", sweep.left_out);
        }
    }
    text + &format!("BLEU-1 of the best cell: {}\n", shift::bleu::signature("pieces"))
}
