//! The flags by which a single command records its result in a laboratory, as the steps of studies do.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use crate::measured::{Extractor, Factors};
use crate::outcome::Outcome;

/// Whether and how a result is recorded.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Output")]
pub struct RecordFlags {
    /// Record the result in this laboratory too, where `isogloss results` and `isogloss report` find it
    /// beside those of studies. The same command again replaces it.
    #[arg(long, value_name = "LAB")]
    record_in: Option<PathBuf>,

    /// The study under which it is recorded, such as language-shift, whose tables then show it [default:
    /// one-off].
    #[arg(long, value_name = "STUDY", requires = "record_in")]
    record_as: Option<String>,

    /// A factor of the recorded numbers, such as system=mbert; repeat for more. Languages, layers and tasks are
    /// recorded anyway, and the model's folder as `system`.
    #[arg(long = "factor", value_name = "NAME=VALUE", value_parser = factor, requires = "record_in")]
    factors: Vec<(String, String)>,
}

/// A factor and its level.
pub fn factor(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as system=mbert".to_owned()),
    }
}

/// What is recorded of a result, and where.
pub struct Recording {
    pub lab: PathBuf,
    pub study: Option<String>,
    pub factors: Factors,
    pub extractor: Extractor,
    pub seed: u64,
}

impl RecordFlags {
    /// The result of a command with what is to be recorded of it, where that is asked for; `known` are the factors that the command knows.
    pub(crate) fn keep(
        &self,
        outcome: Outcome,
        extractor: Extractor,
        seed: u64,
        known: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Outcome {
        let Some(lab) = self.record_in.clone() else { return outcome };
        let known = known.into_iter().map(|(name, value)| (name.to_owned(), value));
        let factors = known.chain(self.factors.iter().cloned()).collect();
        let recording = Recording { lab, study: self.record_as.clone(), factors, extractor, seed };
        outcome.with(recording)
    }
}

/// The name of a model by its folder, as the factor `system`.
pub(crate) fn system_of(folder: &Path) -> Option<(&'static str, String)> {
    let name = folder.file_name()?.to_string_lossy().into_owned();
    Some(("system", name))
}

/// The names of models by their folders, as the factor `system`.
pub(crate) fn system<'a>(
    folders: impl IntoIterator<Item = &'a PathBuf>,
) -> Option<(&'static str, String)> {
    let mut names: Vec<String> =
        folders.into_iter().filter_map(|folder| Some(system_of(folder)?.1)).collect();
    names.dedup();
    (!names.is_empty()).then(|| ("system", names.join("+")))
}

/// The pair of the languages of parallel text, as the factor `pair`.
pub(crate) fn pair(texts: &[(String, String)]) -> Option<(&'static str, String)> {
    let mut languages: Vec<&str> = texts.iter().map(|(language, _)| language.as_str()).collect();
    let mut seen = std::collections::BTreeSet::new();
    languages.retain(|language| seen.insert(*language));
    (!languages.is_empty()).then(|| ("pair", languages.join("-")))
}
