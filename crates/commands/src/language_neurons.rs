//! `isogloss language-neurons`: which feed-forward neurons are active in one language alone, and what depends on them.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::measured::Extractor;
use clap::Args;
use models::neurons::{LanguageNeuronsConfig, LanguageNeuronsResult, language_neurons};
use models::parallel::read_languages;
use serde::Serialize;

use super::models::Compute;
use super::record::{RecordFlags, pair, system_of};
use super::texts::{ColumnsFlag, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::counted;
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  The neurons of two languages, on parallel sentences:
    isogloss language-neurons --model run --text fr=fr.txt --text en=en.txt
  Five per cent of the neurons of a Hugging Face model, 1,000 sentences of each language:
    isogloss language-neurons --model xlm-roberta-base --text de=de.txt --text fr=fr.txt \\
      --text ru=ru.txt --share 0.05 --limit 1000

A neuron is active on a token where its activation (the output of GELU, ReLU or SiLU) is above 0. Its probabilities of being
active in each language are normalised to sum to 1, and the neurons with the lowest entropy are chosen (LAPE, Tang et al.
2024); one is specific to each language in which it is active more often than 95 % of all neurons are. Neurons are
found on half of the sentences. Of the other half 15 % of the tokens are masked, and the MLM loss is compared
with all neurons, without those of a language (set to 0), and without as many random neurons of the same layers. Parallel
text makes sure that the language is all that differs.";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct LanguageNeurons {
    /// The folder of a run, or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR", help_heading = "Input")]
    pub model: PathBuf,

    /// Text of a language, a sentence a line; two languages at least. Plain, gzip or zstd.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text, required = true,
        help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// Read at most the first N sentences of each language's text.
    #[arg(short = 'n', long, value_name = "N", help_heading = "Input")]
    pub limit: Option<usize>,

    /// The share of all neurons that are chosen, those of the lowest entropy; 0.2 at most.
    #[arg(long, value_name = "SHARE", default_value_t = 0.01, help_heading = "Evaluation")]
    pub share: f64,

    /// How many times random neurons are drawn as a control.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Evaluation")]
    pub draws: u64,

    /// Seed of the halves, the masks and the random neurons.
    #[arg(long, default_value_t = 1, help_heading = "Evaluation")]
    pub seed: u64,

    #[command(flatten)]
    pub record: RecordFlags,

    #[command(flatten)]
    pub compute: Compute,
}

impl Request for LanguageNeurons {
    const NAME: &str = "language-neurons";
    const REVISION: u32 = 1;
}

impl LanguageNeurons {
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut sides = read_languages(&self.texts, &self.columns.columns)?;
        if let Some(limit) = self.limit {
            for side in &mut sides {
                *side = side.select(&(0..side.lines.len().min(limit)).collect::<Vec<_>>());
            }
        }
        let mut model = self.compute.open(&self.model)?;
        let config =
            LanguageNeuronsConfig { share: self.share, draws: self.draws, seed: self.seed };
        let watch = counted("passes over the text");
        let result = language_neurons(&mut model, &sides, config, &watch)?;
        let outcome = Outcome::new(in_words(&result), &result);
        let known = system_of(&self.model).into_iter().chain(pair(&self.texts));
        Ok(self.record.keep(outcome, Extractor::LanguageNeurons, self.seed, known))
    }
}

fn in_words(result: &LanguageNeuronsResult) -> String {
    let mut text = String::new();
    let _ = write!(text, "{:>8}{:>10}{:>10}", "layer", "neurons", "entropy");
    for one in &result.languages {
        let _ = write!(text, "{:>10}", format!("of {}", one.language));
    }
    text.push('\n');
    for layer in &result.layers {
        let _ = write!(text, "{:>8}{:>10}{:>10.3}", layer.layer, layer.neurons, layer.entropy);
        for specific in &layer.specific {
            let _ = write!(text, "{:>10}", specific.len());
        }
        text.push('\n');
    }
    for one in &result.overlaps {
        let [a, b] = &one.languages;
        let _ = writeln!(text, "specific to both {a} and {b}: {}", one.both);
    }
    if result.ablations.is_empty() {
        let _ = writeln!(text, "the model has no MLM head, so that no loss can be measured");
    } else {
        ablations_in_words(result, &mut text);
    }
    for one in &result.languages {
        let (language, tokens, masked) = (&one.language, one.tokens, one.masked);
        let _ = writeln!(text, "{language}: activations on {tokens} tokens, losses on {masked}");
    }
    let _ = write!(text, "{}", result.signature);
    text
}

/// The losses with and without neurons, and perplexities.
fn ablations_in_words(result: &LanguageNeuronsResult, text: &mut String) {
    let _ = writeln!(
        text,
        "\n{:>12}{:>10}{:>12}{:>12}{:>12}{:>24}",
        "without", "loss of", "all", "without", "random", "perplexity"
    );
    for one in &result.ablations {
        let of = |language: &str| result.languages.iter().find(|known| known.language == language);
        let neurons = of(&one.ablated).map_or(0, |known| known.neurons);
        let all = of(&one.measured).and_then(|known| known.loss).unwrap_or(f64::NAN);
        let random = one.random_mean().map_or("-".to_owned(), |loss| format!("{loss:.4}"));
        let perplexity = format!("{:.2} to {:.2}", all.exp(), one.loss.exp());
        let _ = writeln!(
            text,
            "{:>12}{:>10}{all:>12.4}{:>12.4}{random:>12}{perplexity:>24}",
            format!("{neurons} of {}", one.ablated),
            one.measured,
            one.loss,
        );
    }
}
