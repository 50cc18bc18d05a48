//! The flags by which a single command records its result in a laboratory, as the steps of studies do.

use std::path::{Path, PathBuf};

use clap::Args;
use lab::record::Factors;
use lab::study::{Extractor, ONE_OFF, OneOffOrigin, shell_line};

use super::study_view::this_build;
use crate::failure::Failure;
use crate::outcome::Outcome;

/// Whether and how a result is recorded.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct RecordFlags {
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

pub(super) fn factor(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE, such as system=mbert".to_owned()),
    }
}

impl RecordFlags {
    /// Records the result of a command, where that is asked for; `known` are the factors that the command knows.
    pub(crate) fn keep(
        &self,
        outcome: Outcome,
        extractor: &Extractor,
        seed: u64,
        known: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Outcome, Failure> {
        let Some(lab) = self.record_in.as_ref().filter(|_| outcome.is_finished()) else {
            return Ok(outcome);
        };
        let known = known.into_iter().map(|(name, value)| (name.to_owned(), value));
        let factors: Factors = known.chain(self.factors.iter().cloned()).collect();
        let study = self.record_as.as_deref().unwrap_or(ONE_OFF);
        let command = shell_line(&typed_words());
        let origin = OneOffOrigin { study, seed, command: &command, build: &this_build() };
        let numbers = origin.record(lab, extractor, outcome.json(), &factors)?;
        say!("{numbers} numbers recorded in {} under `{study}`", lab.display());
        Ok(outcome)
    }
}

/// The words that were typed after the program's name, less those that say how the result is shown and recorded.
fn typed_words() -> Vec<String> {
    let with_value = ["--record-in", "--record-as", "--factor"];
    let mut words = Vec::new();
    let mut typed = crate::invocation::typed().iter().skip(1);
    while let Some(word) = typed.next() {
        let word = word.to_string_lossy().into_owned();
        let flag = word.split('=').next().unwrap_or_default();
        match &*word {
            "--json" | "--quiet" | "-q" => {}
            word if with_value.contains(&word) => _ = typed.next(),
            _ if with_value.contains(&flag) => {}
            _ => words.push(word),
        }
    }
    words
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
