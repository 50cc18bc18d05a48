//! `isogloss shift sweep`: BLEU-1 and conversion rate over layers and weights.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::measured::Extractor;
use clap::Args;
use models::PretrainedModel;
use models::parallel;
use serde::Serialize;
use shift::SweepCheckpoint;
use shift::masked::masked_predictions;
use shift::means::MeanVectors;
use shift::shifter::ShiftKind;
use shift::token_sets::TokenSets;
use shift::tokenize_parallel;
use shift::translate::{
    DirectionSweep, GoldTranslations, ShiftDirection, SweepCell, SweepGrid, SweepResult,
    readable_pairs, sweep,
};
use text::{Corpus, Dictionary, LineRules, Selection, TextSource};

use super::MeasuredModel;
use crate::failure::Failure;
use crate::models::Layers;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::record::{RecordFlags, system};
use crate::request::{Request, one_or_more};
use crate::stop;
use crate::texts::{ColumnsFlag, by_language, parse_text, watch_languages};

const EXAMPLES: &str = "Example:
  isogloss shift sweep --model run --means means.safetensors --layers 1-2 \\
    --dictionary qaa-qab=world/muse/qaa-qab.txt \\
    --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa \\
    --parallel qab=world/tatoeba/tatoeba.qab-qaa.qab --out sweep.json

BLEU-1 is from 0 to 1. Frequent words of the target language are right about some of any sentence's:
`bleu1_permuted` is that of the same output against the references of other sentences of like
length (mean of five), `bleu1_frequent` that of the target's most frequent tokens in place of the
output. Only what BLEU-1 gains beyond these is translation. The conversion rate is, of the predicted subwords that not both languages
use, the share that only the target language uses; `translated` is, of the words of the dictionary,
the share predicted in translation, `translated_different` the same over words that are no
translation of themselves, and `translated_shuffled` the share of these that would be right by the
translations of other such words, drawn at random; `repeated`, of all subwords, the share predicted unchanged;
`other_rate`, of all predicted subwords, the share that neither language uses, and `third_rate` the
share of these that another language uses. `masked` tells what is predicted, unshifted, for 15 % of
the source language's tokens, masked: the share that is right, the share that its most frequent
token would be right for, and the shares of tokens that only the source language uses (own_rate) or
only the target language (foreign_rate). The shift is added at every position, special tokens
included. Rows that equal an earlier row in every language are dropped.

Interrupted by Ctrl-C, it prints and writes the directions that are done; with --work, the same
command again continues where it was stopped or killed.";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct SweepOver {
    #[command(flatten)]
    pub measured: MeasuredModel,

    /// Parallel text of two languages or more: line i of one translates line i of the others; or once
    /// as A-B=FILE.tsv, two columns. Several files of a language add up. Every pair of languages is
    /// tried in both directions.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, required = true,
        help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// A dictionary by which exact translations are counted, in both directions.
    #[arg(long, value_name = "A-B=FILE", value_parser = parse_text, help_heading = "Input")]
    pub dictionary: Vec<(String, String)>,

    /// Text to take token sets from (V_lang of Liu et al. 2020, who take XNLI's sentences): which
    /// language uses which subword. Repeat for more files and more languages; that of a third language
    /// shows whether it is ever predicted [default: the text of the mean vectors].
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Input")]
    pub token_text: Vec<(String, String)>,

    /// Use at most the first N distinct rows.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1000, help_heading = "Input", value_parser = one_or_more())]
    pub limit: usize,

    /// Layers to try: all, or such as 0,4-8; 0 is the embeddings. All from 1 on if not given.
    #[arg(long, help_heading = "Evaluation")]
    pub layers: Option<Layers>,

    /// Weights of the shift, separated by commas; they may be negative.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = super::weight, default_values_t = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
        help_heading = "Evaluation")]
    pub alpha: Vec<f32>,

    /// How the shift is made; repeat to compare: mean, sharing, bands, without-N, lsar, principal-N.
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = ShiftKind::parse,
        help_heading = "Evaluation")]
    pub shift_kind: Vec<ShiftKind>,

    /// The random seed of the masked tokens and of the permuted references.
    #[arg(long, default_value_t = 1, help_heading = "Evaluation")]
    pub seed: u64,

    /// A file for every number of the sweep, in JSON; `-` is standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Keep what is done in this folder, so that the same command again continues where it stopped.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub work: Option<PathBuf>,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub record: RecordFlags,
}

impl Request for SweepOver {
    const NAME: &str = "shift sweep";
    const REVISION: u32 = 3;
    const LAST: &[&str] =
        &["token_text", "columns", "alpha", "limit", "seed", "dictionary", "shift_kind"];

    fn is_spelt(&self, field: &str) -> bool {
        ["limit", "seed", "shift_kind"].contains(&field)
    }
}

impl SweepOver {
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(out) = &self.out {
            files::check_new_file(out, self.force)?;
        }
        let _lock = self.work.as_deref().map(files::FolderLock::take_for_work).transpose()?;
        let texts = parallel::read(&self.parallel, &self.columns.columns)?;
        let languages: Vec<&str> = texts.iter().map(|text| text.language.as_str()).collect();
        self.check_dictionaries(&languages)?;
        let (mut model, device, means) = self.measured.open()?;
        let text = tokenize_parallel(&model, &texts, self.limit)?;
        let sets = self.token_sets(&model, &means)?;
        let above = model.encoder.config().layers;
        let layers = match &self.layers {
            None => (1..=above).collect(),
            Some(layers) => layers.of(above)?,
        };
        let directions = languages.len() * (languages.len() - 1);
        let total = directions * self.shift_kind.len() * (text.rows - text.repeated);
        let mut progress = Progress::new("sentences", total as u64);
        stop::listen();
        let mut sweeps: Vec<DirectionSweep> = Vec::new();
        let pairs = (0..languages.len()).flat_map(|a| (0..languages.len()).map(move |b| [a, b]));
        'directions: for sides in pairs.filter(|[a, b]| a != b) {
            let [from, to] = sides.map(|side| languages[side]);
            let direction = ShiftDirection::new(&means, &sets, from, to)?;
            let gold = self.gold(&model, from, to)?;
            for (number, &kind) in self.shift_kind.iter().enumerate() {
                let grid =
                    SweepGrid { layers: &layers, alphas: &self.alpha, kind, seed: self.seed };
                let mut before = 0;
                let mut note = |note: &str| say!("{note}");
                let mut checkpoint =
                    self.work.as_deref().map(|work| SweepCheckpoint::new(work, &mut note));
                let mut watch = |done| {
                    let note = format!("{from} to {to}, {}", kind.name());
                    (before..done).for_each(|_| progress.step(&note));
                    before = done;
                    !stop::wished()
                };
                let (both, kept) = ((&text, sides), checkpoint.as_mut());
                let swept = device
                    .run(|| sweep(&mut model, &direction, &grid, both, &gold, kept, &mut watch));
                let Some(mut swept) = swept? else { break 'directions };
                if number == 0 && model.has_mlm_head {
                    let sources = readable_pairs(&text, sides).into_iter().map(|pair| pair.0);
                    let sources: Vec<&[u32]> = sources.collect();
                    let masked = device
                        .run(|| masked_predictions(&mut model, &direction, &sources, self.seed))?;
                    swept.masked = Some(masked);
                }
                sweeps.push(swept);
            }
        }
        drop(progress);
        let finished = sweeps.len() == directions * self.shift_kind.len();
        let result = SweepResult::new(sweeps, &sets);
        if let Some(out) = &self.out {
            files::write(out, serde_json::to_string_pretty(&result)? + "\n")?;
            if files::is_standard(out) {
                return Ok(Outcome::silent());
            }
        }
        let outcome = Outcome::new(in_words(&result), &result);
        let outcome = if finished { outcome } else { outcome.stopped() };
        let known = system([&self.measured.model.model]);
        Ok(self.record.keep(outcome, Extractor::Sweep, self.seed, known))
    }

    fn token_sets(
        &self,
        model: &PretrainedModel,
        means: &MeanVectors,
    ) -> Result<TokenSets, Failure> {
        if self.token_text.is_empty() {
            return Ok(TokenSets::of_means(means));
        }
        let mut corpora = Vec::new();
        for (language, files) in by_language(&self.token_text) {
            let number = model.vocabulary.language(language)?;
            corpora.push(Corpus {
                source: TextSource::new(language, &files)?.with_columns(&self.columns.columns),
                preparer: model.vocabulary.preparer(number).clone(),
                rules: LineRules::default(),
                selection: Selection::default(),
            });
        }
        let mut watch = watch_languages("counting");
        Ok(TokenSets::of_corpora(&model.vocabulary, &corpora, &mut watch)?)
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
            let words: std::collections::BTreeSet<&str> = pairs.clone().map(|(a, _)| a).collect();
            let gold = GoldTranslations::new(model, from, to, pairs)?;
            say!(
                "{file}: {} of {} words of {from} are one subword, as is a translation ({:.1} %)",
                gold.len(),
                words.len(),
                100.0 * gold.len() as f64 / words.len().max(1) as f64
            );
            return Ok(gold);
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
        let of = |cell: Option<&SweepCell>, number: fn(&SweepCell) -> Option<f64>| {
            shown(cell.and_then(number))
        };
        let permuted = |cell| of(cell, |cell| cell.bleu1_permuted);
        let different = |cell| of(cell, |cell| cell.translated_different);
        let _ = writeln!(
            text,
            "  BLEU-1 {:.3}, at α=0 {}; permuted references {}, at α=0 {}; most frequent words {}",
            best.bleu1,
            of(plain, |cell| Some(cell.bleu1)),
            permuted(Some(best)),
            permuted(plain),
            shown(sweep.bleu1_frequent),
        );
        if best.translated_different.is_some() {
            let _ = writeln!(
                text,
                "  translated into another string {}, at α=0 {}; shuffled words {}",
                different(Some(best)),
                different(plain),
                of(Some(best), |cell| cell.translated_shuffled),
            );
        }
        let DirectionSweep { rows, repeated, too_long, used, .. } = sweep;
        if let Some(masked) = &sweep.masked {
            let _ = writeln!(
                text,
                "  {rows} rows: {repeated} repeated, {too_long} too long or empty, {used} used; masked tokens: \
                 {:.3} right ({:.3} by the most frequent), {:.3} only {}, {:.3} only {}",
                masked.accuracy,
                masked.unigram_accuracy,
                masked.own_rate,
                sweep.from,
                masked.foreign_rate,
                sweep.to,
            );
        }
    }
    text + &format!("the cell of the best BLEU-1: {}\n", result.signature)
}
