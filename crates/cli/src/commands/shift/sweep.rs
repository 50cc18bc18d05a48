//! `isogloss shift sweep`: BLEU-1 and conversion rate over layers and weights.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use models::PretrainedModel;
use models::parallel;
use shift::sentences;
use shift::shifter::ShiftKind;
use shift::translate::{GoldTranslations, ShiftDirection, SweepGrid, SweepResult, sweep};
use text::{Dictionary, LineRules};

use super::MeasuredModel;
use crate::commands::models::Layers;
use crate::commands::texts::{ColumnsFlag, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

const EXAMPLES: &str = "Example:
  isogloss shift sweep --model run --means means.safetensors --layers 1-2 \\
    --dictionary qaa-qab=world/muse/qaa-qab.txt \\
    --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa \\
    --parallel qab=world/tatoeba/tatoeba.qab-qaa.qab --out sweep.json

BLEU-1 is from 0 to 1. The conversion rate is, of the predicted subwords that not both languages
use, the share that only the target language uses; `translated` is, of the words of the dictionary,
the share predicted in translation; `repeated`, of all subwords, the share predicted unchanged. The
shift is added at every position, special tokens included.";

/// Flags of `shift sweep`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SweepOver {
    #[command(flatten)]
    measured: MeasuredModel,

    /// Parallel text of two languages or more: line i of one translates line i of the others; or once
    /// as A-B=FILE.tsv, two columns. Several files of a language add up. Every pair of languages is
    /// tried in both directions.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, required = true,
        help_heading = "Input")]
    parallel: Vec<(String, String)>,

    #[command(flatten)]
    columns: ColumnsFlag,

    /// A dictionary by which exact translations are counted, in both directions.
    #[arg(long, value_name = "A-B=FILE", value_parser = parse_text, help_heading = "Input")]
    dictionary: Vec<(String, String)>,

    /// Read at most the first N sentences.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, help_heading = "Input",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    limit: usize,

    /// Layers to try: all, or such as 0,4-8; 0 is the embeddings. All from 1 on if not given.
    #[arg(long, help_heading = "Evaluation")]
    layers: Option<Layers>,

    /// Weights of the shift, separated by commas; they may be negative.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = super::weight, default_values_t = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
        help_heading = "Evaluation")]
    alpha: Vec<f32>,

    /// How the shift is made; repeat to compare: mean, sharing, bands, without-N.
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = ShiftKind::parse,
        help_heading = "Evaluation")]
    shift_kind: Vec<ShiftKind>,

    /// A file for every number of the sweep, in JSON; `-` is standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    out: Option<PathBuf>,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    force: bool,
}

impl SweepOver {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        if let Some(out) = &self.out {
            files::check_new_file(out, self.force)?;
        }
        let texts = parallel::read(&self.parallel, &self.columns.columns)?;
        let languages: Vec<&str> = texts.iter().map(|text| text.language.as_str()).collect();
        self.check_dictionaries(&languages)?;
        let (mut model, device, means) = self.measured.open()?;
        let sides = texts.iter().map(|text| sentences(&model, text, self.limit));
        let sides = sides.collect::<shift::Result<Vec<_>>>()?;
        let above = model.encoder.config().layers;
        let layers = match &self.layers {
            None => (1..=above).collect(),
            Some(layers) => layers.of(above)?,
        };
        let directions = languages.len() * (languages.len() - 1);
        let total = directions * self.shift_kind.len() * sides[0].ids.len();
        let mut progress = Progress::new("sentences", total as u64);
        let mut sweeps = Vec::new();
        for (a, &from) in languages.iter().enumerate() {
            for (b, &to) in languages.iter().enumerate().filter(|&(b, _)| a != b) {
                let (source, target) = (means.language(from)?, means.language(to)?);
                let direction = ShiftDirection { means: &means, from: source, to: target };
                let gold = self.gold(&model, from, to)?;
                for &kind in &self.shift_kind {
                    let grid = SweepGrid { layers: &layers, alphas: &self.alpha, kind };
                    let sides = [&sides[a], &sides[b]];
                    let mut before = 0;
                    let done = device.run(|| {
                        sweep(&mut model, &direction, &grid, sides, &gold, &mut |done| {
                            let note = format!("{from} to {to}, {}", kind.name());
                            (before..done).for_each(|_| progress.step(&note));
                            before = done;
                        })
                    });
                    sweeps.push(done?);
                }
            }
        }
        drop(progress);
        let result = SweepResult::new(sweeps);
        if let Some(out) = &self.out {
            files::write(out, serde_json::to_string_pretty(&result)? + "\n")?;
            if files::is_standard(out) {
                return Ok(Outcome::silent());
            }
        }
        Ok(Outcome::new(in_words(&result), &result))
    }

    /// Refuses a dictionary that no direction would use.
    fn check_dictionaries(&self, languages: &[&str]) -> Result<(), Failure> {
        for (pair, file) in &self.dictionary {
            let Some((a, b)) = pair.split_once('-') else {
                return Err(Failure::Usage(format!("--dictionary {pair}={file}: write A-B=FILE")));
            };
            if let Some(other) = [a, b].iter().find(|language| !languages.contains(language)) {
                let there = languages.join(", ");
                return Err(Failure::Usage(format!(
                    "--dictionary {pair}={file}: '{other}' is none of the languages of --parallel: {there}"
                )));
            }
        }
        Ok(())
    }

    fn gold(
        &self,
        model: &PretrainedModel,
        from: &str,
        to: &str,
    ) -> Result<GoldTranslations, Failure> {
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
            return Ok(GoldTranslations::new(model, from, to, pairs)?);
        }
        Ok(GoldTranslations::default())
    }
}

/// The best cell of each sweep, and the share repeated without a shift.
fn in_words(result: &SweepResult) -> String {
    let mut text = format!(
        "{:<14}{:<12}{:>7} {:>6} {:>6}{:>12}{:>12}{:>11}{:>11}\n",
        "direction",
        "kind",
        "BLEU-1",
        "layer",
        "α",
        "conversion",
        "translated",
        "repeated",
        "at α=0"
    );
    let shown = |share: Option<f64>| share.map_or("–".into(), |share| format!("{share:.3}"));
    for sweep in &result.sweeps {
        let Some(best) = sweep.best() else { continue };
        // Unshifted, the model predicts the tokens that it reads.
        let plain = sweep.cells.iter().find(|cell| cell.alpha == 0.0);
        let _ = writeln!(
            text,
            "{:<14}{:<12}{:>7.3} {:>6} {:>6}{:>12}{:>12}{:>11}{:>11}",
            format!("{} → {}", sweep.from, sweep.to),
            sweep.kind,
            best.bleu1,
            best.layer,
            best.alpha,
            shown(best.conversion_rate),
            shown(best.translated),
            shown(Some(best.repeated)),
            shown(plain.map(|plain| plain.repeated)),
        );
        if sweep.left_out > 0 {
            let _ = writeln!(text, "  {} sentences left out: empty or too long", sweep.left_out);
        }
    }
    text + &format!("the cell of the best BLEU-1: {}\n", result.signature)
}
