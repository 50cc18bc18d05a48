//! `--help` of every command: an example each, which can be pasted as it is printed.

mod common;

use std::path::Path;

use crate::common::command;

/// The help of a command, as wide as it was written.
fn help(path: &[String]) -> String {
    let arguments: Vec<&str> = path.iter().map(String::as_str).chain(["--help"]).collect();
    let output = command(Path::new("."), &arguments).env("COLUMNS", "1000").output().unwrap();
    assert!(output.status.success(), "{path:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that a help lists: between the usage and the first flag or argument.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.lines().skip_while(|line| !line.starts_with("Usage:")).skip(1);
    let listed = listed.take_while(|line| !line.starts_with(['O', 'A', 'E']));
    let rows = listed.filter_map(|line| line.strip_prefix("  "));
    let names = rows.filter(|row| row.starts_with(char::is_alphabetic));
    names.filter_map(|row| row.split_whitespace().next()).filter(|name| *name != "help")
}

/// The lines that are typed: what begins with the program's name, and what a `\` continues.
fn typed(help: &str) -> Vec<&str> {
    let mut continued = false;
    let examples = help.lines().skip_while(|line| !line.starts_with("Example"));
    let is_typed = |line: &&str| {
        let typed = continued || line.trim_start().starts_with("isogloss ");
        continued = typed && line.ends_with('\\');
        typed
    };
    examples.filter(is_typed).collect()
}

#[test]
fn every_command_has_an_example_that_can_be_pasted() {
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    let mut seen = 0;
    while let Some(path) = open.pop() {
        let help = help(&path);
        open.extend(commands(&help).map(|name| [&path[..], &[name.to_owned()]].concat()));
        if path.is_empty() {
            continue;
        }
        seen += 1;
        let lines = typed(&help);
        assert!(!lines.is_empty(), "{path:?} has no example");
        for line in lines {
            // Wider ones are wrapped by a terminal of 100 columns, and cannot be pasted then.
            assert!(line.chars().count() < 98, "{path:?}: {line}");
            let bare: String = line.split('\'').step_by(2).collect();
            assert!(!bare.contains(['{', '*']), "{path:?}: a shell would read {line}");
        }
    }
    assert!(seen > 40, "only {seen} commands were found");
}
