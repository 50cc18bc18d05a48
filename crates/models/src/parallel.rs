//! Parallel text: line i of one language translates line i of the other.
//!
//! It comes as a file for each language, or as one file of two columns: separated by a tab where the
//! name ends in `.tsv`, else by `|||`, as fast_align reads it.

use text::{LineRules, TextSource, plain_name, sentence_on};

use crate::error::{Error, Result};

/// The sentences of one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelSide {
    /// The language.
    pub language: String,
    /// What messages call the text: its file.
    pub file: String,
    /// The sentences; one may be empty.
    pub lines: Vec<String>,
}

/// Reads parallel text of two languages or more: `(language, file)` for each, or `(A-B, file)` alone.
///
/// # Errors
/// Where files cannot be read, or do not match line by line.
pub fn read(texts: &[(String, String)]) -> Result<Vec<ParallelSide>> {
    let sides = match texts {
        [(pair, file)] => {
            let Some((a, b)) = pair.split_once('-').filter(|(a, b)| !a.is_empty() && !b.is_empty())
            else {
                return Err(Error::request(
                    "parallel",
                    format!(
                        "parallel text in `{pair}` alone; give another language's too, or two columns as A-B=FILE"
                    ),
                ));
            };
            read_columns([a, b], file)?
        }
        [] => return Err(Error::request("parallel", "no parallel text; give both languages'")),
        texts => {
            texts.iter().map(|(language, file)| read_side(language, file)).collect::<Result<_>>()?
        }
    };
    for side in &sides[1..] {
        let (here, there) = (side.lines.len(), sides[0].lines.len());
        if here != there {
            let reason = format!("has {here} lines, {} has {there}", sides[0].file);
            return Err(Error::input(&side.file, reason, "give files that match line by line"));
        }
    }
    Ok(sides)
}

/// Reads parallel text of two languages.
///
/// # Errors
/// As [`read`], and where there are more languages than two.
pub fn read_pair(texts: &[(String, String)]) -> Result<[ParallelSide; 2]> {
    read(texts)?.try_into().map_err(|sides: Vec<_>| {
        let reason = format!("parallel text in {} languages; give two", sides.len());
        Error::request("parallel", reason)
    })
}

/// Reads a file of one sentence a line; of a `.tsv` file the first column. A blank line at the end is
/// none.
fn read_side(language: &str, file: &str) -> Result<ParallelSide> {
    let source = TextSource::new(language, &[file.to_owned()])?;
    let mut reader = source.raw_lines(LineRules::default());
    let (mut lines, mut filled) = (Vec::new(), 0);
    while let Some(line) = reader.next_line()? {
        lines.push(sentence_on(file, line).trim().to_owned());
        if !line.trim().is_empty() {
            filled = lines.len();
        }
    }
    lines.truncate(filled);
    Ok(ParallelSide { language: language.to_owned(), file: file.to_owned(), lines })
}

fn read_columns(languages: [&str; 2], file: &str) -> Result<Vec<ParallelSide>> {
    let separator = if plain_name(file).ends_with(".tsv") { "\t" } else { "|||" };
    let source = TextSource::new(languages[0], &[file.to_owned()])?;
    let mut reader = source.raw_lines(LineRules::default());
    let mut columns = [Vec::new(), Vec::new()];
    while let Some(line) = reader.next_line()? {
        let mut parts = line.split(separator);
        let (Some(a), Some(b), None) = (parts.next(), parts.next(), parts.next()) else {
            let place = format!("{file}:{}", reader.number());
            let reason = format!("does not hold two columns separated by {separator:?}");
            return Err(Error::input(place, reason, "write the two sentences on every line"));
        };
        columns[0].push(a.trim().to_owned());
        columns[1].push(b.trim().to_owned());
    }
    let sides = languages.into_iter().zip(columns);
    let side = |(language, lines): (&str, Vec<String>)| ParallelSide {
        language: language.to_owned(),
        file: file.to_owned(),
        lines,
    };
    Ok(sides.map(side).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(language: &str, file: &std::path::Path) -> (String, String) {
        (language.to_owned(), file.display().to_string())
    }

    #[test]
    fn columns_are_read_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let sides = read_pair(&[pair("a-b", &path)]).map_err(|error| error.to_string())?;
            Ok::<_, String>(sides.map(|side| side.lines))
        };
        let wanted = [["a b", ""], ["c", "d e"]].map(|side| side.map(str::to_owned).to_vec());
        assert_eq!(read("pairs", "a b ||| c\n ||| d e\n"), Ok(wanted.clone()));
        assert_eq!(read("pairs.tsv", "a b\tc\n\td e\n"), Ok(wanted));
        assert!(read("pairs", "a ||| b\nc\n").unwrap_err().contains("pairs:2: does not hold two"));
        assert!(read("pairs.tsv", "a\tb\tc\n").unwrap_err().contains("pairs.tsv:1"));
    }

    #[test]
    fn files_must_match_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a.txt"), folder.path().join("b.tsv"));
        std::fs::write(&a, "one\ntwo\n\n").unwrap();
        std::fs::write(&b, "un\tneutral\ndeux\tneutral\n").unwrap();
        let sides = read_pair(&[pair("en", &a), pair("fr", &b)]).unwrap();
        assert_eq!(sides.map(|side| side.lines), [["one", "two"], ["un", "deux"]]);
        std::fs::write(&b, "un\n").unwrap();
        let error = read(&[pair("en", &a), pair("fr", &b)]).unwrap_err().to_string();
        assert!(error.contains("has 1 lines"), "{error}");
        assert!(read(&[pair("en", &a)]).unwrap_err().to_string().contains("`en` alone"));
    }
}
