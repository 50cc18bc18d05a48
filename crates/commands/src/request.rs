//! Requests as values: a study sets the fields of a command's flags, and the words that could be typed are derived from the
//! command's own definition.

use std::any::TypeId;

use clap::{Arg, ArgAction, Args, Command};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// What is asked of a command that studies run.
pub trait Request: Args + Serialize {
    /// How the command is called, such as `align words`.
    const NAME: &'static str;
    /// Raised by one when the same input gives other results; part of every step's key.
    const REVISION: u32;
    /// Fields that stand after all others in its words, in this order, which is part of every step's key.
    const LAST: &'static [&'static str] = &[];
    const ON_DEVICE: bool = true;
    /// Whether studies set its `--threads`, which change no result.
    const THREADED: bool = true;

    /// A request in which every flag has its default, and a value that is required is `-`, or 1.
    #[must_use]
    fn unset() -> Self {
        let definition = Self::augment_args(Command::new(Self::NAME)).ignore_errors(true);
        let definition = definition.mut_args(|argument| {
            let is_number = argument.get_value_parser().type_id() == TypeId::of::<usize>();
            match argument.is_required_set() && matches!(argument.get_action(), ArgAction::Set) {
                true => argument.required(false).default_value(if is_number { "1" } else { "-" }),
                false => argument,
            }
        });
        let mut matches = definition.get_matches_from([Self::NAME]);
        Self::from_arg_matches_mut(&mut matches).expect("every flag has a default")
    }

    /// Whether a field is typed though its value is the default.
    fn is_spelt(&self, _field: &str) -> bool {
        false
    }

    /// The words after the command's name; what is unset or has its default is left out.
    fn flags(&self) -> Vec<String> {
        let mut fields = Map::new();
        flatten(serde_json::to_value(self).expect("flags are plain data"), &mut fields);
        let definition = Self::augment_args(Command::new(Self::NAME));
        let mut arguments: Vec<&Arg> = definition.get_arguments().collect();
        arguments.sort_by_key(|argument| {
            Self::LAST.iter().position(|last| argument.get_id() == last).map_or(0, |at| at + 1)
        });
        let words = |argument: &Arg| {
            let field = argument.get_id().as_str();
            fields.get(field).map(|value| typed(argument, value, self.is_spelt(field)))
        };
        arguments.into_iter().filter_map(words).flatten().collect()
    }

    fn words(&self) -> Vec<String> {
        Self::NAME.split(' ').map(str::to_owned).chain(self.flags()).collect()
    }
}

/// Every field of a request and of the groups of flags in it.
fn flatten(request: Value, fields: &mut Map<String, Value>) {
    let Value::Object(own) = request else { return };
    for (name, value) in own {
        match value {
            group @ Value::Object(_) => flatten(group, fields),
            value => _ = fields.insert(name, value),
        }
    }
}

/// An argument as it is typed with a value.
fn typed(argument: &Arg, value: &Value, spelt: bool) -> Vec<String> {
    let flag = argument.get_long().map(|long| format!("--{long}"));
    let delimiter = argument.get_value_delimiter();
    let takes_one = matches!(argument.get_action(), ArgAction::Set) && delimiter.is_none();
    let mut values: Vec<String> = match value {
        Value::Null | Value::Bool(false) => return Vec::new(),
        Value::Bool(true) => return flag.into_iter().collect(),
        Value::Array(values) if !takes_one => values.iter().map(text).collect(),
        one => vec![text(one)],
    };
    let is_default = || argument.get_default_values().iter().eq(&values);
    if argument.is_required_set() && values == ["-"] || !spelt && is_default() {
        return Vec::new();
    }
    if let Some(delimiter) = delimiter.filter(|_| !values.is_empty()) {
        values = vec![values.join(&delimiter.to_string())];
    }
    let words = |value: String| match &flag {
        // A value that begins with a dash is taken for a flag.
        Some(flag) if value.starts_with('-') && value != "-" => vec![format!("{flag}={value}")],
        flag => flag.iter().cloned().chain([value]).collect(),
    };
    values.into_iter().flat_map(words).collect()
}

/// A value as it is typed; what is named by something is `NAME=VALUE`.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(text).collect::<Vec<_>>().join("="),
        Value::Number(number) if number.is_f64() => {
            let number = number.as_f64().unwrap_or(f64::NAN);
            let single = number as f32;
            if f64::from(single) == number { single.to_string() } else { number.to_string() }
        }
        other => other.to_string(),
    }
}

pub fn one_or_more() -> clap::builder::RangedU64ValueParser<usize> {
    clap::builder::RangedU64ValueParser::new().range(1..)
}

/// Serialises what is typed as it is shown.
pub(crate) fn shown<S: Serializer>(
    value: &impl std::fmt::Display,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}
