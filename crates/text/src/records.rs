//! Tables that people and programs read: tab-separated, or a JSON object a line, as the file's name says.

use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::{Error, Result};

/// A record of such a table. In a tab-separated file it may take several lines.
pub trait TableRecord: Serialize {
    /// The names of the columns.
    const COLUMNS: &'static [&'static str];

    /// Calls `line` with the cells of each of its lines.
    fn lines(&self, line: &mut dyn FnMut(&[&str]));
}

/// Refuses a name that says no format: `.tsv` and `.jsonl` do; `-` is standard output, tab-separated.
pub fn check_table_name(path: &Path) -> Result<()> {
    let is_tsv = path.extension().is_some_and(|extension| extension == "tsv");
    if files::is_standard(path) || is_tsv || is_json_lines(path) {
        return Ok(());
    }
    let reason = format!("{}: the name says no format", path.display());
    Err(Error::request(reason, "name it .tsv or .jsonl"))
}

fn is_json_lines(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
}

/// Writes records to a file, in the format that its name says: JSON lines (`.jsonl`), else tab-separated
/// with a line of names first.
pub fn write_table<R: TableRecord>(
    path: &Path,
    records: impl IntoIterator<Item = R>,
) -> Result<()> {
    check_table_name(path)?;
    let json = is_json_lines(path);
    files::write_with(path, |writer| {
        if !json {
            writeln!(writer, "{}", R::COLUMNS.join("\t"))?;
        }
        let mut text = String::new();
        for record in records {
            text.clear();
            if json {
                text += &serde_json::to_string(&record).map_err(std::io::Error::other)?;
                text.push('\n');
            } else {
                record.lines(&mut |cells| push_cells(cells, &mut text));
            }
            writer.write_all(text.as_bytes())?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Appends a line of cells; what would break it becomes a space.
fn push_cells(cells: &[&str], text: &mut String) {
    for (number, cell) in cells.iter().enumerate() {
        if number > 0 {
            text.push('\t');
        }
        text.extend(cell.chars().map(|c| if matches!(c, '\t' | '\n' | '\r') { ' ' } else { c }));
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Entry {
        word: &'static str,
        translations: Vec<&'static str>,
    }

    impl TableRecord for Entry {
        const COLUMNS: &'static [&'static str] = &["word", "translation"];

        fn lines(&self, line: &mut dyn FnMut(&[&str])) {
            self.translations.iter().for_each(|translation| line(&[self.word, translation]));
        }
    }

    #[test]
    fn the_name_says_the_format() {
        let folder = tempfile::tempdir().unwrap();
        let entries = || [Entry { word: "chat", translations: vec!["cat", "tom\tcat"] }];
        let written = |name: &str| {
            let path = folder.path().join(name);
            write_table(&path, entries()).map(|()| std::fs::read_to_string(path).unwrap())
        };
        assert_eq!(written("a.tsv").unwrap(), "word\ttranslation\nchat\tcat\nchat\ttom cat\n");
        let json = "{\"word\":\"chat\",\"translations\":[\"cat\",\"tom\\tcat\"]}\n";
        assert_eq!(written("a.jsonl").unwrap(), json);
        let refused = written("a.txt").unwrap_err().to_string();
        assert!(refused.contains("name it .tsv or .jsonl"), "{refused}");
    }
}
