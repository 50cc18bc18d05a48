//! `isogloss word-align score`: links against a gold standard.

use align::{LinkCounts, compare};
use clap::Args;
use serde::Serialize;
use text::TextSource;

use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Example:
  isogloss word-align score --gold world/bitext/bitext.qaa-qab.align --predicted links.txt";

/// Flags of `word-align score`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ScoreFlags {
    /// Gold links, a sentence pair a line: `0-0` is sure, `0?0` or `0p0` possible.
    #[arg(long, value_name = "FILE")]
    gold: String,

    /// Links to be judged: `0-0`.
    #[arg(long, value_name = "FILE")]
    predicted: String,

    /// The gold standard counts places from 1.
    #[arg(long)]
    gold_from_one: bool,
}

impl ScoreFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        #[derive(Serialize)]
        struct Scored {
            #[serde(flatten)]
            score: align::AlignmentScore,
            sentences: u64,
            found: u64,
            sure: u64,
            possible: u64,
        }
        let gold = TextSource::new("gold", &[self.gold])?;
        let predicted = TextSource::new("predicted", &[self.predicted])?;
        let tally = compare(&gold, &predicted, u16::from(self.gold_from_one))?;
        let Some(score) = tally.score() else {
            return Err(Failure::Usage(format!(
                "{} links found and {} sure gold links: there is nothing to compare",
                tally.found, tally.sure
            )));
        };
        let LinkCounts { sentences, found, sure, possible, .. } = tally;
        let text = format!(
            "precision {:.4}  recall {:.4}  F {:.4}  AER {:.4}\n\
             {sentences} sentence pairs, {found} links found, {sure} sure and {} only possible in gold\n",
            score.precision,
            score.recall,
            score.f,
            score.aer,
            possible - sure,
        );
        Ok(Outcome::new(text, &Scored { score, sentences, found, sure, possible }))
    }
}
