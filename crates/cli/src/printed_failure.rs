//! A failure on standard error: the configuration key that a library blames becomes the flag that sets it, where the
//! command has one.

use std::ffi::OsString;

use commands::failure::Failure;
use commands::{invocation, stop};

pub(crate) fn print(failure: Failure) -> u8 {
    let (message, usage) = match failure {
        Failure::Usage(message) => (message, true),
        Failure::Failed(message) => (message, false),
        Failure::Reported(_) => return stop::exit_code(),
        Failure::Library { message, usage, key } => {
            let (root, typed) = (crate::definition(), invocation::typed());
            let of_key = |key: &str| flag(&root, typed.iter().cloned(), key);
            let message = naming_flags(&message, of_key);
            let flag = key.as_deref().and_then(of_key);
            let flag = flag.filter(|flag| !message.contains(flag.as_str()));
            (flag.map_or(message.clone(), |flag| format!("{message} ({flag})")), usage)
        }
    };
    complain!("error: {message}");
    if usage { 2 } else { stop::exit_code() }
}

/// The flag that sets a configuration key in the command that was typed: its own, or the key itself
/// where the command takes any key.
fn flag(
    root: &clap::Command,
    typed: impl IntoIterator<Item = OsString>,
    key: &str,
) -> Option<String> {
    let mut command = root;
    for word in typed.into_iter().skip(1) {
        command = word.to_str().and_then(|word| command.find_subcommand(word)).unwrap_or(command);
    }
    let has =
        |name: &str| command.get_arguments().any(|argument| argument.get_long() == Some(name));
    let dashed = key.replace('_', "-");
    match () {
        () if has(&dashed) => Some(format!("--{dashed}")),
        () if key.contains('.') && has("set") => Some(format!("--{key}")),
        () => None,
    }
}

/// A message in which the keys that it says to set are flags of the command.
fn naming_flags(message: &str, of_key: impl Fn(&str) -> Option<String>) -> String {
    let (mut text, mut rest) = (String::new(), message);
    while let Some((before, (key, after))) =
        rest.split_once("set `").and_then(|(before, rest)| Some((before, rest.split_once('`')?)))
    {
        text += before;
        text += &of_key(key).map_or_else(|| format!("set `{key}`"), |flag| format!("give {flag}"));
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_become_flags_of_the_command_that_was_typed() {
        let found = |line: &str, key: &str| {
            flag(&crate::definition(), line.split(' ').map(OsString::from), key)
        };
        let pretrain = "isogloss --json pretrain --out run";
        assert_eq!(found(pretrain, "adam.beta2").as_deref(), Some("--adam.beta2"));
        assert_eq!(found(pretrain, "threads").as_deref(), Some("--threads"));
        assert_eq!(found(pretrain, "no_such_key"), None);
        assert_eq!(found("isogloss vectors word2vec", "threads").as_deref(), Some("--threads"));
        assert_eq!(found("isogloss retrieve", "adam.beta2"), None);
        let message = "take more, or set `allow_unseen` to count them; or set `other`";
        let transfer = |key: &str| found("isogloss transfer --task pos", key);
        let named = "take more, or give --allow-unseen to count them; or set `other`";
        assert_eq!(naming_flags(message, transfer), named);
        assert_eq!(naming_flags("set `half", transfer), "set `half");
    }
}
