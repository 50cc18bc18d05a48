//! What a study leaves behind: numbers, and pieces of text that are to be shown as they are.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a number depends on, by name: `condition` → `no-anchors`, `layer` → `3`.
pub type Factors = BTreeMap<String, String>;

/// Where something came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The study's name.
    pub study: String,
    /// The scale at which it was run.
    pub scale: String,
    /// The seed of the world, the weights and everything else left to chance.
    pub seed: u64,
    /// The key of the step that gave it, which names the step's folder.
    pub step: String,
    /// The command of that step, as it could be typed.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// Seconds since 1970 when the step ended.
    pub made: u64,
}

/// One number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Where it came from.
    pub origin: Origin,
    /// What was measured, such as `f1`, `retrieval` or `cka`.
    pub measure: String,
    /// What it depends on.
    pub factors: Factors,
    /// The number; never one that is not finite.
    pub value: f64,
    /// What exactly was computed, in the manner of a signature.
    pub signature: String,
    /// The files behind it.
    pub files: Vec<String>,
}

/// A piece of text that is shown as it is, such as a sentence and what a shift made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where it came from.
    pub origin: Origin,
    /// What it is, such as `translation`.
    pub name: String,
    /// What it depends on.
    pub factors: Factors,
    /// The text.
    pub text: String,
}
