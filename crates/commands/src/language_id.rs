//! `isogloss language-id`: how well a probe tells a sentence's language from its vector.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::measured::Extractor;
use arrays::Stack;
use clap::Args;
use geometry::language_id::{
    LanguageIdConfig, LanguageIdResult, LayerLanguageId, NonlinearAccuracy, distinct_rows,
    language_id,
};
use models::parallel::{ParallelSide, read_languages};
use models::sentences::mean_vectors;
use serde::Serialize;

use super::models::{Compute, Layers, SentenceFlags};
use super::record::{RecordFlags, pair, system_of};
use super::texts::{ColumnsFlag, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::{Waiting, counted};
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  Parallel sentences through a model, every layer:
    isogloss language-id --model run --text fr=fr.txt --text en=en.txt
  Five languages, two leading directions removed:
    isogloss language-id --model run --text de=de.txt --text en=en.txt --text fr=fr.txt \\
      --text ru=ru.txt --text zh=zh.txt --directions 2
  Vectors that `encode` wrote:
    isogloss language-id --vectors fr=fr.npy --vectors en=en.npy

A logistic regression (L2 penalty, standardised columns) is trained on a third of the sentences and tested on another.
Treatments are learned on the last third: raw; centered, each language's mean subtracted (Libovický et al. 2020); lsar, the
subspace of the languages' means removed (Xie et al. 2022); without-k, the k leading principal directions of all
vectors removed (Mu & Viswanath 2018). A shift by the difference of means (Liu et al. 2020) gives what centered gives: it
differs by a translation of all vectors, which no linear probe sees. Training sentences are centred by the means of one half
of that third and test sentences by those of the other, so that errors of the means tell nothing.

A linear probe sees differences of means alone: after centering it is at chance for any vectors. `nonlinear` is the accuracy
of one that also reads the square and the hyperbolic tangent of each column and products of the 12 leading components: it
tells languages of one mean by their spread, skew and correlations.

`shuffled` is the accuracy of the whole procedure for languages that do not differ: labels are shuffled before anything is
learned (mean of five). Compare each accuracy with the one beside it. A row with a sentence of an earlier row, in any
language, is left out and counted. Texts of equally many lines are taken for translations, line by line: parallel text
makes sure that the language is all that differs.";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct LanguageId {
    /// The folder of a run, or a Hugging Face folder, to encode --text with.
    #[arg(
        short,
        long,
        value_name = "DIR",
        requires = "texts",
        required_unless_present = "vectors",
        help_heading = "Input"
    )]
    pub model: Option<PathBuf>,

    /// Text of a language, a sentence a line; two languages at least. Plain, gzip or zstd.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text,
        requires = "model", help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Which vectors they are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub sentences: SentenceFlags,

    /// Vectors of a language in place of text: rows x dimension, or layers x rows x dimension; .npy, .npz
    /// or safetensors.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, conflicts_with = "model",
        help_heading = "Input")]
    pub vectors: Vec<(String, String)>,

    /// Read at most the first N lines of each language's text.
    #[arg(short = 'n', long, value_name = "N", requires = "texts", help_heading = "Input")]
    pub limit: Option<usize>,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all", help_heading = "Input")]
    pub layers: Layers,

    /// How many leading principal directions are removed.
    #[arg(long, value_name = "K", default_value_t = 1, help_heading = "Evaluation")]
    pub directions: usize,

    /// Seed of the thirds and of the shuffled labels.
    #[arg(long, default_value_t = 1, help_heading = "Evaluation")]
    pub seed: u64,

    #[command(flatten)]
    pub record: RecordFlags,

    #[command(flatten)]
    pub compute: Compute,
}

type LanguageStacks = Vec<(String, Stack)>;

impl Request for LanguageId {
    const NAME: &str = "language-id";
    const REVISION: u32 = 3;
}

impl LanguageId {
    pub fn run(self) -> Result<Outcome, Failure> {
        let (languages, repeated) = match &self.model {
            Some(model) => self.encoded(model)?,
            None => (self.opened()?, Vec::new()),
        };
        let config = LanguageIdConfig { directions: self.directions, seed: self.seed };
        let watch = counted("layers");
        let mut result = self.compute.run(|_| language_id(&languages, config, &watch))??;
        // What was not even encoded, beside sentences that are one to the model.
        result.languages.iter_mut().zip(repeated).for_each(|(one, more)| one.repeated += more);
        let outcome = Outcome::new(in_words(&result), &result);
        let texts = if self.texts.is_empty() { &self.vectors } else { &self.texts };
        let system = self.model.as_deref().and_then(system_of);
        let known = system.into_iter().chain(pair(texts));
        Ok(self.record.keep(outcome, Extractor::LanguageId, self.seed, known))
    }

    /// Vectors of each language's different sentences, and how many sentences repeat an earlier one.
    fn encoded(&self, folder: &Path) -> Result<(LanguageStacks, Vec<usize>), Failure> {
        let sides = read_languages(&self.texts, &self.columns.columns)?;
        let keys: Vec<Vec<Option<&str>>> = sides.iter().map(|side| self.keys(side)).collect();
        let mut model = self.compute.open_states(folder, &self.sentences)?;
        let layers = self.layers.of(model.encoder.config().layers)?;
        let (mut languages, mut repeated) = (Vec::new(), Vec::new());
        for (side, taken) in sides.iter().zip(distinct_rows(&keys)) {
            let side = side.select(&taken.rows);
            let _waiting = Waiting::new(&format!("encoding {}", side.file));
            let (matrices, _) = mean_vectors(&mut model, &side, &layers)?;
            let numbered = layers.iter().copied().zip(matrices).collect();
            repeated.push(taken.repeated);
            languages.push((side.language, Stack::numbered(&side.file, numbered)));
        }
        Ok((languages, repeated))
    }

    /// The sentences that are read, by line; none of an empty line.
    fn keys<'a>(&self, side: &'a ParallelSide) -> Vec<Option<&'a str>> {
        let lines = side.lines.iter().take(self.limit.unwrap_or(usize::MAX));
        lines.map(|line| Some(line.as_str()).filter(|line| !line.is_empty())).collect()
    }

    fn opened(&self) -> Result<LanguageStacks, Failure> {
        let open = |(language, file): &(String, String)| {
            let mut stack = Stack::open(Path::new(file))?;
            stack.keep(&self.layers.of(stack.layers() - 1)?);
            Ok((language.clone(), stack))
        };
        self.vectors.iter().map(open).collect()
    }
}

fn in_words(result: &LanguageIdResult) -> String {
    let mut text = String::new();
    let name = |layer: &LayerLanguageId| match &layer.name {
        Some(name) => name.clone(),
        None => layer.layer.to_string(),
    };
    let _ = writeln!(
        text,
        "{:>8}  {:12}{:>9}   {:16}{:>9}{:>11}{:>10}{:>20}{:>10}",
        "layer",
        "treatment",
        "accuracy",
        "95 %",
        "shuffled",
        "nonlinear",
        "shuffled",
        "variance between",
        "shuffled"
    );
    for layer in &result.layers {
        for found in &layer.treatments {
            let more = |number: fn(&NonlinearAccuracy) -> f64| {
                found.nonlinear.map_or("–".to_owned(), |one| format!("{:.3}", number(&one)))
            };
            let range = format!("{:.3} to {:.3}", found.interval.low, found.interval.high);
            let _ = writeln!(
                text,
                "{:>8}  {:12}{:>9.3}   {range:16}{:>9.3}{:>11}{:>10}{:>20.3}{:>10.3}",
                name(layer),
                found.treatment,
                found.accuracy,
                found.shuffled,
                more(|one| one.accuracy),
                more(|one| one.shuffled),
                found.variance_between,
                found.variance_shuffled
            );
        }
    }
    let _ = writeln!(
        text,
        "shuffled: the same for labels that were shuffled before the treatment; the most frequent language is {:.3} of the test",
        result.chance
    );
    for one in &result.languages {
        let (fitted, train, test) = (one.fitted, one.train, one.test);
        let left_out = match one.repeated {
            0 => String::new(),
            count => format!("; {count} with a sentence of an earlier row were left out"),
        };
        let _ = writeln!(
            text,
            "{}: {fitted} sentences to learn treatments from, {train} to train, {test} to test{left_out}",
            one.language
        );
    }
    let _ = write!(text, "{}", result.signature);
    text
}
