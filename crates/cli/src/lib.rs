//! The command `isogloss`: parse what was typed, run one command, print one result.
//!
//! Each command lives in its own file under `commands/` and returns an `outcome::Outcome`; this file only
//! chooses among them and turns the outcome into output and an exit code (0 done, 1 failed,
//! 2 used wrongly, 130 interrupted, 143 and 129 by SIGTERM and SIGHUP). It is a library so that the Python package has the same command without
//! a second program in its wheel.

#![allow(missing_docs, reason = "a surface: a name says what it is")]
// Lines on standard error go through `say!`, which outlives their reader.
#![deny(clippy::print_stderr)]

#[macro_use]
extern crate commands as library;

mod commands;
mod flags;
mod overrides;
mod printed_failure;
mod recording;

use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser};
use serde_json::Value;
use tensor::DeviceFault;

use crate::commands::Command;
use crate::failure::Failure;
pub use crate::flags::{CommandFlag, command_flags};
pub use library::host::Host;
use library::{failure, host, invocation, outcome, say, stop};

/// A laboratory for cross-lingual structure in language models.
#[derive(Parser)]
#[command(
    name = "isogloss",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Start with:\n  isogloss demo\n  isogloss study list\n  isogloss inspect bert-base-multilingual-cased"
)]
struct Arguments {
    /// Print one JSON object on standard output; everything else goes to standard error.
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,

    /// Print nothing on standard error but errors: no progress, no remarks.
    #[arg(short, long, global = true, help_heading = "Output")]
    quiet: bool,

    #[command(subcommand)]
    command: Command,
}

/// The whole command line, for what is generated from it: completions and man pages.
fn definition() -> clap::Command {
    commands::grouped(Arguments::command())
}

fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Arguments, clap::Error> {
    let mut definition = definition();
    let words: Vec<OsString> = words.into_iter().collect();
    // Results, configurations and the commands of studies are text, and name the files of this command: refused here,
    // and not by the last line of a day's work.
    let here = std::env::current_dir().unwrap_or_default();
    let mut named = words.iter().skip(1).map(OsString::as_os_str).chain([here.as_os_str()]);
    if let Some(other) = named.find(|name| name.to_str().is_none()) {
        let message =
            format!("{other:?} is not UTF-8; rename it, or give a link to it another name\n");
        return Err(definition.error(ErrorKind::InvalidUtf8, message));
    }
    let mut matches = definition.try_get_matches_from_mut(&words)?;
    Arguments::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut definition))
}

/// Runs a command line, whose first word is the program's own name, and gives its exit code. `program` is the file
/// that starts this program again, for studies, whose steps are commands.
pub fn run(program: PathBuf, typed: Vec<OsString>) -> u8 {
    stop::install();
    let words = overrides::rewrite(typed.iter().cloned());
    invocation::keep(program, typed);
    let arguments = match parse(words) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and the version are no errors; a reader that went away is none either.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    if arguments.quiet {
        say::be_quiet();
    }
    files::on_warning(|text| complain!("warning: {text}"));
    if let Err(failure) = have_threads() {
        return printed_failure::print(failure);
    }
    // A GPU that fails in the middle of an operation unwinds to here with what there is to say.
    let run = panic::catch_unwind(AssertUnwindSafe(|| {
        arguments.command.run().and_then(recording::record)
    }));
    let result = run.unwrap_or_else(|payload| match payload.downcast::<DeviceFault>() {
        Ok(fault) => Err((*fault).into()),
        Err(payload) => panic::resume_unwind(payload),
    });
    match result {
        Ok(outcome) => {
            say_unknown();
            outcome.print(arguments.json)
        }
        Err(failure) => printed_failure::print(failure),
    }
}

/// The share of unknown subwords above which text may be of another language than the model.
const MANY_UNKNOWN: f64 = 0.01;

/// Says how much of the text that was read the vocabulary does not know.
fn say_unknown() {
    for (language, counts) in text::take_unknown_counts() {
        let share = 100.0 * counts.share();
        say!("{language}: {share:.2} % of {} tokens unknown", counts.subwords);
        if counts.share() > MANY_UNKNOWN {
            say!(
                "warning: the vocabulary does not know {share:.1} % of the tokens of {language}, whose vectors say little; is \
                 the text in that language and script, and the model trained on it?"
            );
        }
    }
}

/// Starts the threads now, while there is memory: the pool that is made at its first use panics where none can be had.
/// After [`stop::install`], which is for threads that are started later.
fn have_threads() -> Result<(), Failure> {
    let made = rayon::ThreadPoolBuilder::new().build_global();
    // An error without a source is that the pool is there already.
    match made.as_ref().err().and_then(std::error::Error::source) {
        None => Ok(()),
        Some(error) => Err(Failure::Failed(format!(
            "no threads can be had ({error}); raise the limits on memory and processes (`ulimit -a`)"
        ))),
    }
}

/// Why a command that was called gave no result.
#[derive(Debug)]
pub struct CallFailure {
    pub message: String,
    pub usage: bool,
    pub key: Option<String>,
}

#[derive(Debug)]
pub struct CallResult {
    pub json: Value,
    /// Whether the command came to its end; it was stopped otherwise, and can be resumed.
    pub finished: bool,
}

/// Runs a command within another program: nothing is printed, and a device fault unwinds. The words are those of a command line after the
/// program's name.
///
/// # Errors
/// Where the words are no command, or the command fails.
pub fn call(words: Vec<OsString>, host: Arc<dyn Host>) -> Result<CallResult, CallFailure> {
    let words = std::iter::once("isogloss".into()).chain(words);
    let arguments = parse(overrides::rewrite(words)).map_err(|error| of_words(&error))?;
    files::on_warning(|text| say!("warning: {text}"));
    // What other callers of this process have encoded is not this command's.
    text::take_unknown_counts();
    let run = || arguments.command.run().and_then(recording::record).inspect(|_| say_unknown());
    match host::with(host, run) {
        Ok(outcome) => {
            let finished = outcome.is_finished();
            Ok(CallResult { json: outcome.json().clone(), finished })
        }
        Err(Failure::Usage(message)) => Err(CallFailure { message, usage: true, key: None }),
        Err(Failure::Failed(message) | Failure::Reported(message)) => {
            Err(CallFailure { message, usage: false, key: None })
        }
        Err(Failure::Library { message, usage, key }) => Err(CallFailure { message, usage, key }),
    }
}

/// What is wrong with the words, for a program that gave them: no usage line, no word of `--help`, the flag as a key.
fn of_words(error: &clap::Error) -> CallFailure {
    let text = |kind: ContextKind| error.get(kind).map(ToString::to_string);
    let flag = text(ContextKind::InvalidArg);
    let key = flag.as_deref().and_then(|flag| {
        let name = flag.trim_start_matches('-').split([' ', '=', '[', '<']).next()?;
        (!name.is_empty()).then(|| name.replace('-', "_"))
    });
    let message = match (&key, text(ContextKind::InvalidValue), error.get(ContextKind::ValidValue))
    {
        (Some(key), Some(value), Some(ContextValue::Strings(valid))) if !valid.is_empty() => {
            format!("{key}: there is no `{value}`; give {}", valid.join(", "))
        }
        _ => {
            let rendered = error.to_string();
            let lines = rendered.lines().map(str::trim).filter(|line| {
                !line.is_empty()
                    && !line.starts_with("Usage:")
                    && !line.starts_with("For more information")
            });
            lines.collect::<Vec<_>>().join(" ").trim_start_matches("error: ").to_owned()
        }
    };
    CallFailure { message, usage: true, key }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The command lines of a document: in blocks of shell code and in inline code, where the program's name
    /// stands first. A line that ends in `\` goes on; `…`, `[` and capitals in angle brackets stand for something else.
    fn command_lines(document: &str) -> Vec<String> {
        let joined = document.replace("\\\n", " ");
        let mut lines = Vec::new();
        let mut in_block = false;
        for line in joined.lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if in_block {
                lines.push(line.trim().to_owned());
            } else {
                lines.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
            }
        }
        let typed = |line: &String| {
            let complete = !line.contains(['…', '[', '<', '{', '$', '*', '|', ';']);
            line.strip_prefix("isogloss ").is_some_and(|rest| rest.contains(" -")) && complete
        };
        lines.into_iter().filter(typed).collect()
    }

    /// The words of a command line; what stands between quotation marks is of one word.
    fn words(line: &str) -> Vec<OsString> {
        let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
        for c in line.chars() {
            match (c, quote) {
                (c, Some(mark)) if c == mark => quote = None,
                (c, Some(_)) => word.get_or_insert_default().push(c),
                ('\'' | '"', None) => (word, quote) = (word.or(Some(String::new())), Some(c)),
                (c, None) if c.is_whitespace() => words.extend(word.take().map(OsString::from)),
                (c, None) => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word.map(OsString::from));
        words
    }

    /// Every document of the repository that shows commands of today: those at its root, the results, the book without the dated
    /// notes, whose commands are of their day.
    fn documents(root: &Path) -> Vec<PathBuf> {
        let names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "bench/RESULTS.md"];
        let mut documents: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
        let mut folders = vec![root.join("docs/src")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true if path.ends_with("notes") => {}
                    true => folders.push(path),
                    false if path.extension().is_some_and(|x| x == "md") => documents.push(path),
                    false => {}
                }
            }
        }
        documents.sort();
        documents
    }

    /// Every command, with every flag and every argument that takes a value.
    #[cfg(unix)]
    #[test]
    fn a_name_that_is_not_utf_8_is_refused_before_any_work() {
        use std::os::unix::ffi::OsStringExt;
        let bad = |before: &str| OsString::from_vec([before.as_bytes(), b"\xff/run"].concat());
        let mut open = vec![(vec![OsString::from("isogloss")], definition())];
        let mut tried = 0;
        while let Some((words, command)) = open.pop() {
            for inner in command.get_subcommands() {
                open.push(([&words[..], &[inner.get_name().into()]].concat(), inner.clone()));
            }
            for argument in command.get_arguments().filter(|one| one.get_action().takes_values()) {
                let flag = argument.get_long().map(|long| format!("--{long}="));
                for value in
                    ["", "qaa="].map(|before| bad(&(flag.clone().unwrap_or_default() + before)))
                {
                    let typed = [&words[..], &[value]].concat();
                    let error = parse(overrides::rewrite(typed)).err().expect("it is refused");
                    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::InvalidUtf8, 2));
                    tried += 1;
                }
            }
        }
        assert!(tried > 1000, "only {tried} were tried");
    }

    #[test]
    fn commands_in_the_documents_are_understood() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut wrong = Vec::new();
        let mut parsed = 0;
        for path in documents(&root) {
            let name = path.display();
            let document = std::fs::read_to_string(&path).unwrap();
            for line in command_lines(&document) {
                let line = line.split(" > ").next().unwrap().split(" # ").next().unwrap();
                match parse(overrides::rewrite(words(line))) {
                    Ok(_) => parsed += 1,
                    Err(error) if !error.use_stderr() => parsed += 1,
                    Err(error) => {
                        let reason = error.to_string();
                        wrong.push(format!("{name}: {line}: {}", reason.lines().next().unwrap()));
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{} of {parsed}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(parsed > 200, "only {parsed} command lines were found");
    }
}
