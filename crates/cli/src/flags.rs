//! The flags of a command, for programs that make command lines of their own arguments.

use clap::{ArgAction, CommandFactory};

use crate::Arguments;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFlag {
    pub name: String,
    pub takes_value: bool,
    /// What stands between several values, where one flag takes them; else the flag is repeated.
    pub delimiter: Option<char>,
}

/// The flags of a command that is named by its words; none where there is no such command.
pub fn command_flags(words: &[String]) -> Option<Vec<CommandFlag>> {
    let root = Arguments::command();
    let mut command = &root;
    for word in words {
        command = command.find_subcommand(word)?;
    }
    let flag = |argument: &clap::Arg| {
        Some(CommandFlag {
            name: argument.get_long()?.to_owned(),
            takes_value: matches!(argument.get_action(), ArgAction::Set | ArgAction::Append),
            delimiter: argument.get_value_delimiter(),
        })
    };
    Some(command.get_arguments().filter_map(flag).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_how_they_are_written() {
        let words = ["transfer".to_owned()];
        let flags = command_flags(&words).unwrap();
        let found = |name: &str| flags.iter().find(|flag| flag.name == name).cloned();
        let flag = |name: &str, takes_value, delimiter| {
            Some(CommandFlag { name: name.to_owned(), takes_value, delimiter })
        };
        assert_eq!(found("seeds"), flag("seeds", true, Some(',')));
        assert_eq!(found("test"), flag("test", true, None));
        assert_eq!(found("quick"), flag("quick", false, None));
        assert_eq!(command_flags(&["no-such".to_owned()]), None);
    }
}
