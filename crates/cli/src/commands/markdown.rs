//! The reference of all commands as Markdown, made from the same definitions as `--help`: one page for each
//! command, its subcommands as sections.

use std::fmt::Write as _;

use clap::{Arg, Command};

pub(crate) struct ReferencePage {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// The page of every command, after the one that lists them.
pub(crate) fn pages(mut root: Command) -> Vec<ReferencePage> {
    root.build();
    let commands: Vec<&Command> = root.get_subcommands().filter(|c| listed(c)).collect();
    let mut index = "# Commands\n\n".to_owned();
    index += "These pages are made from the definitions that `--help` prints: `isogloss man --markdown DIR`.\n\n";
    index += "| command | what it does |\n| --- | --- |\n";
    for command in &commands {
        let about = sentence(&about(command));
        let _ = writeln!(index, "| [`{0}`]({0}.md) | {about} |", command.get_name());
    }
    index += "\nFlags that every command takes:\n\n";
    let global = root.get_arguments().filter(|arg| arg.is_global_set());
    global.for_each(|arg| describe(arg, &mut index));
    index += "- `-h`, `--help`: Print help; `-h` is the short form.\n";
    let mut pages = vec![ReferencePage { file: "index.md".to_owned(), text: index }];
    for command in commands {
        let mut text = String::new();
        section(command, "isogloss", 1, &mut text);
        pages.push(ReferencePage { file: format!("{}.md", command.get_name()), text });
    }
    pages
}

fn listed(command: &Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

fn about(command: &Command) -> String {
    command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default()
}

/// Appends a command and, as sections below it, its subcommands.
fn section(command: &Command, parent: &str, level: usize, text: &mut String) {
    let name = format!("{parent} {}", command.get_name());
    let _ = writeln!(text, "{} `{name}`\n\n{}\n", "#".repeat(level), sentence(&about(command)));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = writeln!(text, "```text\n{usage}\n```\n");
    let mut headings: Vec<&str> = Vec::new();
    let own = || command.get_arguments().filter(|arg| own(arg));
    own().map(heading).for_each(|name| {
        if !headings.contains(&name) {
            headings.push(name);
        }
    });
    for name in headings {
        let _ = writeln!(text, "**{name}**\n");
        own().filter(|arg| heading(arg) == name).for_each(|arg| describe(arg, text));
        text.push('\n');
    }
    if let Some(after) = command.get_after_long_help().or(command.get_after_help()) {
        epilogue(&after.to_string(), text);
    }
    for inner in command.get_subcommands().filter(|c| listed(c)) {
        section(inner, &name, level + 1, text);
    }
    text.truncate(text.trim_end().len());
    text.push_str(if level == 1 { "\n" } else { "\n\n" });
}

/// Appends what stands below the flags: indented examples as code, the rest as paragraphs.
fn epilogue(help: &str, text: &mut String) {
    let mut in_code = false;
    for line in help.trim_end().lines() {
        let is_code = line.starts_with("  ") || (in_code && line.is_empty());
        if is_code != in_code {
            if in_code {
                text.truncate(text.trim_end().len());
            }
            text.push_str(if is_code { "\n```text\n" } else { "\n```\n\n" });
            in_code = is_code;
        }
        let _ = writeln!(text, "{}", if is_code { line.to_owned() } else { escape(line) });
    }
    text.push_str(if in_code { "```\n\n" } else { "\n" });
}

fn own(arg: &Arg) -> bool {
    let everywhere = arg.is_global_set() || ["help", "version"].contains(&arg.get_id().as_str());
    !everywhere && !arg.is_hide_set()
}

fn heading(arg: &Arg) -> &str {
    match arg.get_help_heading() {
        Some(heading) => heading,
        None if arg.is_positional() => "Arguments",
        None => "Options",
    }
}

/// Appends a flag as an item of a list.
fn describe(arg: &Arg, text: &mut String) {
    let mut names = Vec::new();
    names.extend(arg.get_short().map(|short| format!("`-{short}`")));
    let values = match arg.get_action().takes_values() {
        true => arg.get_value_names().unwrap_or_default().join(" "),
        false => String::new(),
    };
    let value = if values.is_empty() { String::new() } else { format!(" {values}") };
    names.extend(arg.get_long().map(|long| format!("`--{long}{value}`")));
    if arg.is_positional() {
        names.push(format!("`{values}`"));
    }
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let _ = write!(text, "- {}: {}", names.join(", "), sentence(&help));
    let defaults: Vec<_> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let _ = write!(text, " Default: `{}`.", defaults.join(","));
    }
    text.push('\n');
    if !arg.get_action().takes_values() || arg.is_hide_possible_values_set() {
        return;
    }
    for value in arg.get_possible_values().iter().filter(|value| !value.is_hide_set()) {
        let help = value.get_help().map(|help| format!(": {}", sentence(&help.to_string())));
        let _ = writeln!(text, "  - `{}`{}", value.get_name(), help.unwrap_or_default());
    }
}

/// Help as a line of Markdown that ends in a full stop, which clap takes away.
fn sentence(help: &str) -> String {
    let text = escape(&help.replace('\n', " "));
    if text.is_empty() || text.ends_with(['.', ':', ']']) { text } else { text + "." }
}

/// Text as Markdown that shows it: what stands between backticks is code already.
fn escape(text: &str) -> String {
    let escape = |(number, part): (usize, &str)| match number % 2 {
        1 => format!("`{part}`"),
        _ => part.replace('<', "&lt;").replace('*', "\\*").replace('|', "\\|").replace('_', "\\_"),
    };
    text.split('`').enumerate().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_reference_is_current() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/cli");
        let pages = pages(crate::definition());
        let remedy = "write it again: cargo run --release -- man --markdown docs/src/cli";
        for page in &pages {
            let kept = fs::read_to_string(folder.join(&page.file)).unwrap_or_default();
            assert!(kept == page.text, "docs/src/cli/{} is not current; {remedy}", page.file);
        }
        let made: BTreeSet<_> = pages.iter().map(|page| page.file.clone()).collect();
        let kept = fs::read_dir(folder).unwrap();
        let kept: BTreeSet<_> =
            kept.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(made, kept, "{remedy}");
    }

    #[test]
    fn text_is_shown_as_it_is() {
        assert_eq!(escape("a_b <X> `a_b <X>` *"), "a\\_b &lt;X> `a_b <X>` \\*");
    }
}
