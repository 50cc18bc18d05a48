//! `isogloss shift sweep`: BLEU-1 and convert rate over layers and weights.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use models::PretrainedModel;
use serde_json::json;
use shift::shifter::Kind;
use shift::translate::{Direction, Grid, Sweep, Truth, sweep};
use shift::{Sentences, sentences};
use text::{Dictionary, LineRules};

use super::{Measured, refused};
use crate::commands::models::Layers;
use crate::commands::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

const EXAMPLES: &str = "Example:
  isogloss shift sweep --model run --layers 1-2 --dictionary qaa-qab=world/muse/qaa-qab.txt \\
    --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa \\
    --parallel qab=world/tatoeba/tatoeba.qab-qaa.qab --out sweep.json";

/// Flags of `shift sweep`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepOver {
    #[command(flatten)]
    measured: Measured,

    /// Sentences of a language, the same in every language line by line; of a .tsv file (such as
    /// XNLI's) the first column. Every pair of languages is tried in both directions.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, required = true)]
    parallel: Vec<(String, String)>,

    /// A dictionary by which exact translations are counted, in both directions.
    #[arg(long, value_name = "A-B=FILE", value_parser = parse_text)]
    dictionary: Vec<(String, String)>,

    /// Layers to try: all, or such as 0,4-8; 0 is the embeddings. All from 1 on if not given.
    #[arg(long)]
    layers: Option<Layers>,

    /// Weights to try, separated by commas.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = super::weight, default_values_t = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0])]
    alphas: Vec<f32>,

    /// How the shift is made; repeat to compare: mean, sharing, bands, without-N.
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = Kind::parse)]
    kind: Vec<Kind>,

    /// Use the first N sentences.
    #[arg(long, value_name = "N", default_value_t = 1000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    sentences: usize,

    /// A file for every number of the sweep, in JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl SweepOver {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device, means) = self.measured.open()?;
        if self.parallel.len() < 2 {
            return Err(Failure::Usage("give --parallel for two languages at least".to_owned()));
        }
        if let Some(out) = &self.out {
            files::check_new_file(out, true)?;
        }
        let sides = self.sides(&model)?;
        let above = model.encoder.config().layers;
        let layers = match &self.layers {
            None => (1..=above).collect(),
            Some(layers) => layers.of(above)?,
        };
        self.check_dictionaries()?;
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

    fn sides(&self, model: &PretrainedModel) -> Result<Vec<Sentences>, Failure> {
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

    /// Refuses a dictionary that no direction would ask.
    fn check_dictionaries(&self) -> Result<(), Failure> {
        let there: Vec<&str> =
            self.parallel.iter().map(|(language, _)| language.as_str()).collect();
        for (pair, file) in &self.dictionary {
            let Some((a, b)) = pair.split_once('-') else {
                return Err(Failure::Usage(format!("--dictionary {pair}={file}: write A-B=FILE")));
            };
            if let Some(other) = [a, b].iter().find(|language| !there.contains(language)) {
                let there = there.join(", ");
                return Err(Failure::Usage(format!(
                    "--dictionary {pair}={file}: '{other}' is none of the languages of --parallel: {there}"
                )));
            }
        }
        Ok(())
    }

    fn truth(&self, model: &PretrainedModel, from: &str, to: &str) -> Result<Truth, Failure> {
        for (pair, file) in &self.dictionary {
            let Some((a, b)) = pair.split_once('-') else { continue };
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
        "{:<14}{:<12}{:>7} {:>6} {:>6}{:>11}{:>12}{:>11}{:>11}\n",
        "direction",
        "kind",
        "BLEU-1",
        "layer",
        "α",
        "converted",
        "translated",
        "repeated",
        "at α=0"
    );
    let percent =
        |share: Option<f64>| share.map_or("–".into(), |share| format!("{:.1} %", 100.0 * share));
    for sweep in sweeps {
        let Some(best) = sweep.best() else { continue };
        // Unshifted, every word that the model knows is said again.
        let plain = sweep.cells.iter().find(|cell| cell.alpha == 0.0);
        let _ = writeln!(
            text,
            "{:<14}{:<12}{:>7.2} {:>6} {:>6}{:>11}{:>12}{:>11}{:>11}",
            format!("{} → {}", sweep.from, sweep.to),
            sweep.kind,
            best.bleu,
            best.layer,
            best.alpha,
            percent(best.convert_rate),
            percent(best.translated),
            percent(Some(best.repeated)),
            percent(plain.map(|plain| plain.repeated)),
        );
        if sweep.left_out > 0 {
            let _ = writeln!(text, "  {} sentences left out: empty or too long", sweep.left_out);
        }
    }
    text + &format!("BLEU-1 of the best cell: {}\n", shift::bleu::signature("pieces"))
}
