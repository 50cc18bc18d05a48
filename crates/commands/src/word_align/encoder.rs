//! `isogloss word-align --model DIR`: words aligned from the hidden states of an encoder.

use std::path::PathBuf;

use align::{
    AlignmentScore, AlignmentUnit, EncoderAlignOutputs, EncoderAlignRequest, EncoderAlignResult,
    LayerLinks, LinkExtraction, align_with_encoder,
};
use clap::{Args, ValueEnum};
use models::PretrainedModel;
use serde::Serialize;
use text::TextSource;

use super::{AlignmentDisplay, WordAlignFlags};
use crate::failure::Failure;
use crate::models::{Layers, open_device};
use crate::outcome::Outcome;
use crate::progress::{Progress, Waiting};

/// How links are taken from hidden states.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Encoder")]
pub struct EncoderFlags {
    /// The layers of the encoder, such as 8 or 0,4-8 or all; 0 is the embeddings [default: two thirds up, the eighth of
    /// twelve]. Several are compared, with --gold.
    #[arg(long, value_name = "LAYERS")]
    pub layers: Option<Layers>,

    /// How links are taken from the similarities of hidden states [default: itermax]; several, with commas between, are
    /// compared, with --gold.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "EXTRACTION")]
    pub extract: Vec<ExtractFlag>,

    /// Whether the vectors of subwords are compared, and a word is linked where one of its subwords is, or those of
    /// words, each the mean of its subwords [default: subwords].
    #[arg(long, value_enum)]
    pub units: Option<UnitFlag>,

    /// The least softmax probability of a link in either direction [default: 0.001].
    #[arg(long, value_name = "P")]
    pub threshold: Option<f32>,

    /// Each link with its confidence, `0-0:0.9312`: (1 + cosine) / 2 with argmax and itermax; with softmax the harmonic
    /// mean of its probabilities in both directions.
    #[arg(long, value_name = "FILE")]
    pub confidences: Option<PathBuf>,

    /// Gold links of this text, as in `word-align score`: prints precision, recall, F1 and AER of every layer and
    /// extraction, beside IBM model 2 trained on this text and the diagonal. --out may then be left out.
    #[arg(long, value_name = "FILE")]
    pub gold: Option<String>,

    /// Gold links count words from 1.
    #[arg(long, requires = "gold")]
    pub gold_from_one: bool,

    /// Where to run the encoder; auto takes a GPU where one can be used [default: auto].
    #[arg(long, value_parser = ["auto", "cpu", "cpu-bf16", "cuda"], help_heading = "Compute")]
    pub device: Option<String>,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ExtractFlag {
    /// Pairs of which each is the most similar to the other.
    Argmax,
    /// The same, and once more among what has no link yet (SimAlign, Jalili Sabet et al. 2020).
    Itermax,
    /// Probable in both directions (awesome-align, Dou and Neubig 2021).
    Softmax,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum UnitFlag {
    /// Subwords.
    Subwords,
    /// Words.
    Words,
}

impl EncoderFlags {
    /// Refuses flags of an encoder where there is none.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("--layers", self.layers.is_some()),
            ("--extract", !self.extract.is_empty()),
            ("--units", self.units.is_some()),
            ("--threshold", self.threshold.is_some()),
            ("--confidences", self.confidences.is_some()),
            ("--gold", self.gold.is_some()),
            ("--device", self.device.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} is for the hidden states of an encoder; name its folder with --model, or leave it out (links \
                 of the IBM model are evaluated by `isogloss word-align score`)"
            ))),
        }
    }

    fn extractions(&self) -> Vec<LinkExtraction> {
        let extraction = |flag: &ExtractFlag| match flag {
            ExtractFlag::Argmax => LinkExtraction::Argmax,
            ExtractFlag::Itermax => LinkExtraction::Itermax,
            ExtractFlag::Softmax => LinkExtraction::Softmax,
        };
        let mut chosen: Vec<LinkExtraction> = self.extract.iter().map(extraction).collect();
        if chosen.is_empty() {
            chosen.push(LinkExtraction::Itermax);
        }
        chosen.dedup();
        chosen
    }

    fn layers(&self, above: usize) -> Result<Vec<usize>, Failure> {
        match &self.layers {
            Some(layers) => layers.of(above),
            None => Ok(vec![(2 * above).div_ceil(3)]),
        }
    }
}

impl WordAlignFlags {
    /// Refuses flags of the IBM model where an encoder aligns.
    fn refuse_ibm(&self) -> Result<(), Failure> {
        let given = [
            ("--symmetrize", self.symmetrize.is_some()),
            ("--forward", self.forward.is_some()),
            ("--reverse", self.reverse.is_some()),
            ("--posteriors", self.posteriors.is_some()),
            ("--scores", self.scores.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} is for the IBM model, and --model names an encoder; leave it out (--confidences scores the links of \
                 an encoder)"
            ))),
        }
    }

    pub(super) fn align_with_encoder(&self) -> Result<Outcome, Failure> {
        self.refuse_ibm()?;
        let flags = &self.encoder;
        let outputs = EncoderAlignOutputs {
            links: self.out.clone(),
            confidences: flags.confidences.clone(),
            prepared: self.prepared.clone(),
            readable: self.readable.clone(),
            lexicon: self.lexicon.clone(),
        };
        self.check_outputs(outputs.paths())?;
        let threshold = flags.threshold.unwrap_or(0.001);
        if !(0.0..1.0).contains(&threshold) {
            let message = format!("--threshold {threshold}: a probability from 0 to below 1");
            return Err(Failure::Usage(message));
        }
        let (text, languages) = self.text()?;
        let gold = match &flags.gold {
            Some(file) => {
                let gold = TextSource::new("gold", std::slice::from_ref(file))?;
                Some((gold, u16::from(flags.gold_from_one)))
            }
            None => None,
        };
        let mut model = self.open_encoder()?;
        let request = EncoderAlignRequest {
            text: &text,
            preparation: self.preparation(&languages),
            rules: self.rules(),
            layers: flags.layers(model.encoder.config().layers)?,
            extractions: flags.extractions(),
            unit: match flags.units {
                None | Some(UnitFlag::Subwords) => AlignmentUnit::Subwords,
                Some(UnitFlag::Words) => AlignmentUnit::Words,
            },
            threshold,
            gold,
            outputs: outputs.clone(),
        };
        let mut display = AlignmentDisplay::new(&text, 0)?;
        let mut bar: Option<Progress> = None;
        let device = model.params.device().clone();
        let result = device.run(|| {
            align_with_encoder(&mut model, &request, &mut display, |done, total| {
                let bar = bar.get_or_insert_with(|| Progress::new("aligning", total as u64));
                bar.reach(done as u64, "pairs");
            })
        })?;
        drop((bar, display));
        for warning in &result.warnings {
            say!("warning: {warning}");
        }
        let outcome = Outcome::new(describe(&result), &result);
        Ok(outputs.paths().fold(outcome, Outcome::beside))
    }

    fn open_encoder(&self) -> Result<PretrainedModel, Failure> {
        let device = open_device(
            self.encoder.device.as_deref().unwrap_or("auto"),
            usize::from(self.threads),
        )?;
        let folder = self.model.as_deref().expect("an encoder is named");
        let _waiting = Waiting::new("reading the encoder");
        Ok(PretrainedModel::open_states(folder, &device)?)
    }
}

fn describe(result: &EncoderAlignResult) -> String {
    let EncoderAlignResult { pairs, tokens, too_long, seconds, out, .. } = result;
    let place = out.as_ref().map_or(String::new(), |out| format!("{}: ", out.display()));
    let mut text = format!(
        "{place}{pairs} sentence pairs, {} source and {} target words, in {seconds:.1} s\n",
        tokens[0], tokens[1]
    );
    if *too_long > 0 {
        text +=
            &format!("  {too_long} pairs have a side longer than the model reads, and no links\n");
    }
    text += "  layer  extraction     links  confidence  precision  recall      F1     AER\n";
    for LayerLinks { layer, extraction, links, confidence, score } in &result.alignments {
        let score = score.as_ref().map_or(String::new(), numbers);
        text += &format!(
            "  {layer:>5}  {:<10}  {links:>8}  {confidence:>10.4}{score}\n",
            extraction.name()
        );
    }
    for reference in &result.references {
        let (method, score) = (&reference.method, &reference.score);
        text += &format!(
            "  {:>5}  {method:<10}  {:>8}  {:>10}{}\n",
            "",
            score.predicted,
            "",
            numbers(score)
        );
    }
    text
}

fn numbers(score: &AlignmentScore) -> String {
    let AlignmentScore { precision, recall, f1, aer, .. } = score;
    format!("  {precision:>9.4}  {recall:>6.4}  {f1:>6.4}  {aer:>6.4}")
}
