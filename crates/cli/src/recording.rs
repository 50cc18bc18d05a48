//! The result of a single command, recorded in a laboratory as those of studies are.

use commands::failure::Failure;
use commands::invocation;
use commands::outcome::Outcome;
use commands::record::Recording;
use lab::study::{ONE_OFF, OneOffOrigin, shell_line};

use crate::commands::this_build;

pub(crate) fn record(outcome: Outcome) -> Result<Outcome, Failure> {
    let Some(Recording { lab, study, factors, extractor, seed }) =
        outcome.recording.as_ref().filter(|_| outcome.is_finished())
    else {
        return Ok(outcome);
    };
    let study = study.as_deref().unwrap_or(ONE_OFF);
    let command = shell_line(&typed_words());
    let origin = OneOffOrigin { study, seed: *seed, command: &command, build: &this_build() };
    let numbers = origin.record(lab, extractor, outcome.json(), factors)?;
    say!("{numbers} numbers recorded in {} under `{study}`", lab.display());
    Ok(outcome)
}

/// The words that were typed after the program's name, less those that say how the result is shown and recorded.
fn typed_words() -> Vec<String> {
    let with_value = ["--record-in", "--record-as", "--factor"];
    let mut words = Vec::new();
    let mut typed = invocation::typed().iter().skip(1);
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
