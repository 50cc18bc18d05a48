//! Requests as values: a study sets the fields of a command's flags, and the words that could be typed are derived from the
//! command's own definition.

use clap::{Arg, ArgAction, Args, Command};
use serde::{Serialize, Serializer};
use serde_json::Value;

/// What is asked of a command that studies run.
pub trait Request: Args + Serialize {
    /// How the command is called, such as `align words`.
    const NAME: &'static str;
    /// Raised by one when the same input gives other results; part of every step's key.
    const REVISION: u32;
    /// Fields that stand after all others in its words, whose order is part of every step's key.
    const LAST: &'static [&'static str] = &[];

    /// A request in which every flag has its default, and a value that is required is `-`.
    #[must_use]
    fn unset() -> Self {
        let definition = Self::augment_args(Command::new(Self::NAME)).ignore_errors(true);
        let definition = definition.mut_args(|argument| {
            match argument.is_required_set() && matches!(argument.get_action(), ArgAction::Set) {
                true => argument.required(false).default_value("-"),
                false => argument,
            }
        });
        let mut matches = definition.get_matches_from([Self::NAME]);
        Self::from_arg_matches_mut(&mut matches).expect("every flag has a default")
    }

    /// The words after the program's name; flags with their default value are left out.
    fn words(&self) -> Vec<String> {
        let fields = serde_json::to_value(self).expect("flags are plain data");
        let definition = Self::augment_args(Command::new(Self::NAME));
        let is_last = |argument: &&Arg| Self::LAST.contains(&argument.get_id().as_str());
        let (last, first): (Vec<&Arg>, Vec<&Arg>) = definition.get_arguments().partition(is_last);
        let arguments = first.into_iter().chain(last);
        let of_flags =
            arguments.flat_map(|argument| typed(argument, &fields[argument.get_id().as_str()]));
        Self::NAME.split(' ').map(str::to_owned).chain(of_flags).collect()
    }
}

/// An argument as it is typed with a value.
fn typed(argument: &Arg, value: &Value) -> Vec<String> {
    let flag = argument.get_long().map(|long| format!("--{long}"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut values: Vec<String> = match value {
        Value::Null | Value::Bool(false) => return Vec::new(),
        Value::Bool(true) => return flag.into_iter().collect(),
        Value::Array(values) => values.iter().map(text).collect(),
        one => vec![text(one)],
    };
    if argument.get_default_values().iter().eq(&values) {
        return Vec::new();
    }
    if let Some(delimiter) = argument.get_value_delimiter().filter(|_| !values.is_empty()) {
        values = vec![values.join(&delimiter.to_string())];
    }
    values.into_iter().flat_map(|value| flag.clone().into_iter().chain([value])).collect()
}

/// A parser of counts of one or more.
pub fn one_or_more() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..)
}

/// Serialises what is typed as `LANG=FILE`.
pub(crate) fn named_files<S: Serializer>(
    files: &[(String, String)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(files.iter().map(|(name, file)| format!("{name}={file}")))
}

/// Serialises what is typed as it is shown.
pub(crate) fn shown<S: Serializer>(
    value: &impl std::fmt::Display,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}
