//! `isogloss shift`: language mean vectors, token translation, and sweeps over layers and weights.

mod difference;
mod sweep;

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::path::PathBuf;

use crate::measured::Extractor;
use clap::Args;
use models::PretrainedModel;
use models::parallel::{self, ParallelSide};
use serde::Serialize;
use shift::means::{MeanVectors, MeansResult, compute};
use shift::shifter::ShiftKind;
use shift::token_sets::TokenSets;
use shift::translate::{
    ShiftDirection, TokenTranslation, TranslatedSentence, TranslationResult, translate,
};
use tensor::Device;
use terms::printable;

use self::difference::DifferenceOf;
pub use self::sweep::SweepOver;
use super::models::Compute;
use super::record::{RecordFlags, system};
use super::texts::{ColumnsFlag, TextFlags, parse_text, watch};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  isogloss shift means --model run --out means.safetensors \\
    --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt
  isogloss shift translate --model run --means means.safetensors --from qaa --to qab --layer 2 \\
    'SENTENCE'
  isogloss shift sweep --model run --means means.safetensors \\
    --parallel qaa=a.txt --parallel qab=b.txt --dictionary qaa-qab=muse.txt
  isogloss shift difference --model run --means means.safetensors --from qab --to qaa --layer 2 \\
    --out D.npy";

const MEANS_EXAMPLES: &str = "Examples:
  isogloss shift means --model run --out means.safetensors \\
    --text qaa=world/text/qaa.base.txt --text qab=world/text/qab.base.txt
  From 20,000 sentences of each language, drawn at random from all its files:
    isogloss shift means --model mbert --out means.safetensors --sample-size 20000 --seed 1 \\
      --text en=en.lit.txt.zst --text en=en.docs.txt.zst --text fr=fr.lit.txt.zst \\
      --text fr=fr.docs.txt.zst";

const TRANSLATE_EXAMPLES: &str = "Examples:
  isogloss shift translate --model run --means means.safetensors --from qaa --to qab --layer 2 \\
    'SENTENCE'
  isogloss shift translate --model run --means means.safetensors --from qaa --to qab --layer 2 \\
    --alpha 0,0.5,1 --limit 3 --parallel qaa=world/tatoeba/tatoeba.qab-qaa.qaa \\
    --parallel qab=world/tatoeba/tatoeba.qab-qaa.qab

The shift is added at every position, special tokens included. The conversion rate is, of the
predicted subwords that not both languages use, the share that only the target language uses.";

/// The file of a run's folder where language mean vectors are looked for.
pub const MEANS: &str = "means.safetensors";

subcommands! {
    /// What can be asked of the language inside hidden states.
    #[command(after_help = EXAMPLES)]
    pub enum Shift {
        /// Compute the mean vector of each language at each layer.
        Means(MeansOf),
        /// Translate sentences token by token: shift their hidden states to another language.
        Translate(Translate),
        /// BLEU-1 and conversion rate over layers and weights, in every direction.
        Sweep(SweepOver),
        /// Write the difference of two languages' mean vectors at a layer, as a NumPy array.
        Difference(DifferenceOf),
    }
}

#[derive(Args, Serialize)]
pub struct ModelFlags {
    /// The folder of a run, or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR", help_heading = "Input")]
    pub model: PathBuf,

    #[command(flatten)]
    pub compute: Compute,
}

impl ModelFlags {
    fn open(&self) -> Result<(PretrainedModel, Device), Failure> {
        Ok((self.compute.open(&self.model)?, self.compute.device()?))
    }
}

/// A model whose languages have mean vectors.
#[derive(Args, Serialize)]
pub struct MeasuredModel {
    #[command(flatten)]
    pub model: ModelFlags,

    /// The language mean vectors, as `shift means` wrote them [default: means.safetensors in the
    /// model's folder].
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub means: Option<PathBuf>,
}

impl MeasuredModel {
    fn open(&self) -> Result<(PretrainedModel, Device, MeanVectors), Failure> {
        let (model, device) = self.model.open()?;
        let run = &self.model.model;
        let path = self.means.clone().unwrap_or_else(|| run.join(MEANS));
        if !path.is_file() {
            let (path, run) = (path.display(), run.display());
            return Err(Failure::Usage(format!(
                "{path} is not there; make it with `isogloss shift means --model {run} --text LANG=FILE … \
                 --out FILE`, and name it by --means"
            )));
        }
        let means = MeanVectors::open(&path, &model)?;
        Ok((model, device, means))
    }
}

#[derive(Args, Serialize)]
#[command(after_help = MEANS_EXAMPLES)]
pub struct MeansOf {
    #[command(flatten)]
    pub model: ModelFlags,

    #[command(flatten)]
    pub text: TextFlags,

    /// The file to write.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,
}

#[derive(Args, Serialize)]
#[command(after_help = TRANSLATE_EXAMPLES)]
pub struct Translate {
    #[command(flatten)]
    pub measured: MeasuredModel,

    /// The language to read.
    #[arg(long, value_name = "LANG")]
    pub from: String,

    /// The language to shift to.
    #[arg(long, value_name = "LANG")]
    pub to: String,

    /// After which layer to shift; 0 is the embeddings.
    #[arg(long, value_name = "N")]
    pub layer: usize,

    /// Weights of the shift, separated by commas; they may be negative.
    #[arg(long, value_name = "A,…", value_delimiter = ',', allow_hyphen_values = true,
        value_parser = weight, default_values_t = [0.0, 1.0, 2.0, 3.0])]
    pub alpha: Vec<f32>,

    /// How the shift is made: mean, sharing (by whether languages share a subword), bands (by
    /// frequency), without-N (without N leading directions), lsar (the component in the subspace of the languages' means is
    /// replaced by the target's: Xie et al. 2022), principal-N (mean, and deviations in N leading directions removed).
    #[arg(long, value_name = "KIND", default_value = "mean", value_parser = ShiftKind::parse)]
    pub shift_kind: ShiftKind,

    /// Sentences of --from, one a line.
    #[arg(short, long, value_name = "LANG=FILE", value_parser = parse_text,
        conflicts_with = "sentence", help_heading = "Input")]
    pub text: Option<(String, String)>,

    /// Sentences of --from with their translations in --to, to show below: given twice, line i
    /// translates line i; or once as A-B=FILE.tsv, two columns.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text,
        conflicts_with_all = ["sentence", "text"], help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Read at most the first N sentences of the file.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, help_heading = "Input")]
    pub limit: usize,

    #[command(flatten)]
    pub record: RecordFlags,

    /// Sentences, each in quotation marks; standard input, a sentence a line, if no text is given.
    #[arg(value_name = "TEXT")]
    pub sentence: Vec<String>,
}

/// Shows how far a pass over a text has come.
type Bar = Box<dyn FnMut(text::ReadProgress) + Send>;

impl Request for MeansOf {
    const NAME: &str = "shift means";
    const REVISION: u32 = 1;

    fn is_spelt(&self, field: &str) -> bool {
        field == "seed" && self.text.sentences.rows.sample_size.is_some()
    }
}

impl MeansOf {
    fn run(self) -> Result<Outcome, Failure> {
        files::check_new_file(&self.out, self.force)?;
        let (mut model, device) = self.model.open()?;
        let corpora = self.text.corpora_for(&model.vocabulary)?;
        let mut shown: Option<(String, Bar)> = None;
        let mut show = |doing: &str, at: text::ReadProgress| {
            if shown.as_ref().is_none_or(|(last, _)| last != doing) {
                shown = Some((doing.to_owned(), Box::new(watch(doing.to_owned()))));
            }
            shown.as_mut().into_iter().for_each(|(_, bar)| bar(at));
        };
        let means = device.run(|| compute(&mut model, &corpora, &mut show))?;
        drop(shown);
        means.save(&self.out, &device)?;
        let result = means.summary(&self.out);
        Ok(Outcome::new(means_in_words(&result), &result))
    }
}

fn means_in_words(result: &MeansResult) -> String {
    let languages = result.languages.len();
    let mut text = format!("{}: mean vectors of {languages} languages\n", result.out.display());
    for language in &result.languages {
        let worst = language.standard_error.iter().copied().fold(0.0, f64::max);
        let states = language.states["all"];
        let error = match states {
            // One state has no variance.
            0 | 1 => "no standard error from so few".to_owned(),
            _ => format!("standard error at most {:.2} % of the mean", 100.0 * worst),
        };
        let (name, subwords) = (&language.language, language.subwords);
        let _ =
            writeln!(text, "  {name:<8} {states} states of {subwords} different subwords; {error}");
    }
    text
}

/// A sentence to translate, where it stands (as `FILE:LINE: `), and its reference translation.
struct InputSentence {
    place: String,
    sentence: String,
    reference: Option<String>,
}

impl Request for Translate {
    const NAME: &str = "shift translate";
    const REVISION: u32 = 1;

    fn is_spelt(&self, field: &str) -> bool {
        field == "alpha"
    }
}

impl Translate {
    fn run(self) -> Result<Outcome, Failure> {
        let (mut model, device, means) = self.measured.open()?;
        let sets = TokenSets::of_means(&means);
        let direction = ShiftDirection::new(&means, &sets, &self.from, &self.to)?;
        let colour = std::io::stdout().is_terminal();
        let (mut shown, mut sentences) = (String::new(), Vec::new());
        for InputSentence { place, sentence, reference } in self.sentences()? {
            let (layer, kind) = (self.layer, self.shift_kind);
            let outputs = device
                .run(|| translate(&mut model, &direction, layer, kind, &self.alpha, &sentence))
                .map_err(|error| match error {
                    shift::Error::Sentence(_) => Failure::Usage(format!("{place}{error}")),
                    error => error.into(),
                })?;
            let _ = writeln!(shown, "{:>9}  {}", self.from, printable(&sentence));
            let unknown = direction.unknown_words(&model, &sentence)?;
            match sentence.split_whitespace().count() {
                _ if unknown.is_empty() => {}
                all if all == unknown.len() => {
                    let _ = writeln!(
                        shown,
                        "{:>9}  none of these {all} words is in {}: no conversion rate",
                        "", self.from
                    );
                }
                all => {
                    let (count, unknown) =
                        (unknown.len(), printable(&unknown.join(", ")).into_owned());
                    let _ = writeln!(
                        shown,
                        "{:>9}  {count} of these {all} words are not in {}: {unknown}",
                        "", self.from
                    );
                }
            }
            outputs.iter().for_each(|output| shown += &in_colour(output, &self.to, colour));
            if let Some(reference) = &reference {
                let _ = writeln!(shown, "{:>9}  {}\n", "reference", printable(reference));
            }
            sentences.push(TranslatedSentence { sentence, outputs, reference });
        }
        if sentences.is_empty() {
            return Err(Failure::Usage("there is no sentence to translate".to_owned()));
        }
        let (layer, kind) = (self.layer, self.shift_kind);
        let result = TranslationResult { from: self.from, to: self.to, layer, kind, sentences };
        let outcome = Outcome::new(shown, &result).coloured();
        let direction = format!("{}-{}", result.from, result.to);
        let known = [("direction", direction), ("layer", layer.to_string())];
        let known = known.into_iter().chain(system([&self.measured.model.model]));
        Ok(self.record.keep(outcome, Extractor::Translation, 1, known))
    }

    fn sentences(&self) -> Result<Vec<InputSentence>, Failure> {
        if !self.parallel.is_empty() {
            return self.parallel_sentences();
        }
        if let Some((language, file)) = &self.text {
            if *language != self.from {
                let message = format!("--text {language}={file}: --from is {}", self.from);
                return Err(Failure::Usage(message));
            }
            let files = std::slice::from_ref(file);
            let source = models::sentences::open(files, &self.columns.columns)?;
            let lines = models::sentences::lines(&source).take(self.limit);
            let lines = lines.collect::<models::Result<Vec<String>>>()?.into_iter().enumerate();
            return Ok(lines.map(|(number, line)| at(file, number, line)).collect());
        }
        if !self.sentence.is_empty() {
            let given = |sentence: &String| InputSentence {
                place: String::new(),
                sentence: sentence.clone(),
                reference: None,
            };
            return Ok(self.sentence.iter().map(given).collect());
        }
        let text = std::io::read_to_string(std::io::stdin())?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        Ok(lines.map(|(n, line)| at("standard input", n, line.to_owned())).collect())
    }

    fn parallel_sentences(&self) -> Result<Vec<InputSentence>, Failure> {
        let sides = parallel::read(&self.parallel, &self.columns.columns)?;
        let side = |flag: &str, language: &str| -> Result<&ParallelSide, Failure> {
            sides.iter().find(|side| side.language == language).ok_or_else(|| {
                Failure::Usage(format!("{flag} {language}: --parallel has no text in it"))
            })
        };
        let (from, to) = (side("--from", &self.from)?, side("--to", &self.to)?);
        let pairs = from.lines.iter().zip(&to.lines).take(self.limit).enumerate();
        let input = |(number, (line, reference)): (usize, (&String, &String))| {
            let place = format!("{}: ", from.place(number));
            InputSentence { place, sentence: line.clone(), reference: Some(reference.clone()) }
        };
        Ok(pairs.map(input).collect())
    }
}

fn at(file: &str, number: usize, sentence: String) -> InputSentence {
    InputSentence { place: format!("{file}:{}: ", number + 1), sentence, reference: None }
}

fn weight(text: &str) -> Result<f32, String> {
    let weight = text.parse::<f32>().ok().filter(|weight| weight.is_finite());
    weight.ok_or_else(|| "a weight is a finite number".to_owned())
}

/// A line of the table; subwords of the target language stand out.
fn in_colour(output: &TokenTranslation, to: &str, colour: bool) -> String {
    let mut text = format!("{to} {:>6}  ", format!("α={}", output.alpha));
    for subword in &output.subwords {
        let code = match (subword.source, subword.target) {
            (false, true) => "\x1b[1;32m",
            (true, false) => "\x1b[0m",
            _ => "\x1b[2m",
        };
        let shown = printable(&subword.text);
        match colour {
            true => _ = write!(text, "{code}{shown}\x1b[0m "),
            false => _ = write!(text, "{shown} "),
        }
    }
    match output.conversion_rate {
        Some(rate) => text + &format!(" (conversion rate {rate:.2})\n"),
        None => text + "\n",
    }
}
