//! `isogloss word-align score`: evaluate links against gold annotations.

use crate::measured::Extractor;
use align::{AlignmentScore, compare};
use clap::Args;
use text::TextSource;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::record::RecordFlags;

const EXAMPLES: &str = "Example:
  isogloss word-align score --gold world/bitext/bitext.qaa-qab.align --predicted links.txt";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScoreFlags {
    /// Gold links, a sentence pair a line: `0-0` is sure, `0?0` or `0p0` possible.
    #[arg(long, value_name = "FILE")]
    gold: String,

    /// Predicted links: `0-0`; `-` for standard input.
    #[arg(long, value_name = "FILE")]
    predicted: String,

    /// Gold links count words from 1.
    #[arg(long)]
    gold_from_one: bool,

    #[command(flatten)]
    record: RecordFlags,
}

impl ScoreFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let gold = TextSource::new("gold", &[self.gold])?;
        let predicted = TextSource::new("predicted", &[self.predicted])?;
        let counts = compare(&gold, &predicted, u16::from(self.gold_from_one))?;
        let score = counts.score()?;
        let AlignmentScore {
            precision, recall, f1, aer, sentences, predicted, sure, possible, ..
        } = &score;
        let text = format!(
            "precision {precision:.4}  recall {recall:.4}  F1 {f1:.4}  AER {aer:.4}\n\
             {sentences} sentence pairs, {predicted} predicted links, {sure} sure and {} only \
             possible gold links\n",
            possible - sure,
        );
        Ok(self.record.keep(Outcome::new(text, &score), Extractor::WordAlignment, 1, []))
    }
}
