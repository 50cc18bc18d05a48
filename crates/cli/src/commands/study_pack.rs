//! `isogloss study pack` and `study unpack`: the results of laboratories as small files.

use std::path::PathBuf;

use clap::Args;
use lab::study::{Laboratory, pack, unpack};

use super::study::{OtherSettings, lab_flag};
use crate::failure::Failure;
use crate::outcome::Outcome;

pub(super) const PACK_EXAMPLES: &str = "Examples:
  On one machine seed 1, on another seed 2:
    isogloss study run anchors --seeds 1
    isogloss study pack lab --out seed-1.tar.zst
  Both together:
    isogloss study unpack seed-1.tar.zst --lab both
    isogloss study unpack seed-2.tar.zst --lab both
    isogloss report --lab both

A step whose result was unpacked is not run again; one whose files another step needs is run for it.";

#[derive(Args)]
pub(crate) struct PackFlags {
    /// The laboratory's folder.
    #[arg(value_name = "LAB", default_value = "lab")]
    lab: PathBuf,

    /// The pack.
    #[arg(long, value_name = "FILE", default_value = "results.tar.zst", help_heading = "Output")]
    out: PathBuf,

    /// Replace the pack if it exists.
    #[arg(long, help_heading = "Output")]
    force: bool,
}

#[derive(Args)]
pub(crate) struct UnpackFlags {
    /// The pack.
    #[arg(value_name = "PACK")]
    pack: PathBuf,

    /// The laboratory's folder.
    #[arg(long, value_name = "DIR", default_value = "lab", help_heading = "Output")]
    lab: PathBuf,

    #[command(flatten)]
    settings: OtherSettings,
}

impl PackFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let made = pack(&Laboratory::open(&self.lab)?, &self.out, self.force)?;
        let text = format!(
            "{}: the results of {} steps, {} numbers, {:.1} MB",
            self.out.display(),
            made.steps,
            made.numbers,
            made.bytes as f64 / 1e6
        );
        Ok(Outcome::new(text, &made))
    }
}

impl UnpackFlags {
    pub(super) fn run(self) -> Result<Outcome, Failure> {
        let added = unpack(&Laboratory::open(&self.lab)?, &self.pack, self.settings.force)?;
        let mut text = format!(
            "{} steps added, {} complete before; {} numbers added",
            added.steps, added.complete, added.numbers
        );
        if added.left_out > 0 {
            text += &format!(", {} of the same study and seed were there before", added.left_out);
        }
        text += &format!("\nreport:  isogloss report{}", lab_flag(&self.lab));
        Ok(Outcome::new(text, &added))
    }
}
