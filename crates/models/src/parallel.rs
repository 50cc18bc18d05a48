//! Parallel text: line i of one language translates line i of the other.
//!
//! It comes as files of each language, which add up in the order given, or as files of two columns:
//! separated by a tab where the name ends in `.tsv`, else by `|||`, as fast_align reads it. Of a `.tsv`
//! file of one language some columns hold sentences ([`TsvColumns`]).
//!
//! Real parallel text repeats itself (XNLI has every premise three times), and a row that was counted
//! three times would weigh three times: what is learned or measured uses [`distinct`] rows.

use rustc_hash::FxHashSet;
use text::{LineRules, TextSource, TsvColumns, is_tsv};

use crate::error::{Error, Result};

/// The sentences of one language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParallelSide {
    /// The language.
    pub language: String,
    /// What messages call the text: its files.
    pub file: String,
    /// The sentences; one may be empty.
    pub lines: Vec<String>,
    /// The files, and for each sentence the number of its file and its line there.
    files: Vec<String>,
    places: Vec<(u32, u32)>,
}

impl ParallelSide {
    /// The lines of a file.
    pub fn new(language: &str, file: &str, lines: Vec<String>) -> Self {
        let places = (1..=lines.len() as u32).map(|line| (0, line)).collect();
        let files = vec![file.to_owned()];
        Self { language: language.to_owned(), file: file.to_owned(), lines, files, places }
    }

    /// No sentence yet of some files.
    fn empty(language: &str, files: &[&str]) -> Self {
        let names = files.iter().map(|&file| file.to_owned()).collect();
        Self { files: names, ..Self::new(language, &files.join(" + "), Vec::new()) }
    }

    /// Where a row stands, as `FILE:LINE`.
    pub fn place(&self, row: usize) -> String {
        let (file, line) = self.places[row];
        format!("{}:{line}", self.files[file as usize])
    }

    /// Some of the rows.
    pub fn select(&self, rows: &[usize]) -> Self {
        let (lines, places) =
            rows.iter().map(|&row| (self.lines[row].clone(), self.places[row])).unzip();
        let Self { language, file, files, .. } = self.clone();
        Self { language, file, lines, files, places }
    }
}

/// Reads parallel text of two languages or more: `(language, file)` for each, or `(A-B, file)` of two
/// columns. Several files of a language, or of a pair, add up. Where both sides are of one language, its
/// files alternate: first side, second side.
///
/// # Errors
/// Where files cannot be read, or do not match line by line.
pub fn read(texts: &[(String, String)], columns: &TsvColumns) -> Result<Vec<ParallelSide>> {
    let sides = match &by_language(texts)[..] {
        [] => return Err(Error::request("parallel", "no parallel text; give both languages'")),
        [(pair, files)] => {
            match pair.split_once('-').filter(|(a, b)| !a.is_empty() && !b.is_empty()) {
                Some((a, b)) => read_columns([a, b], files)?,
                None if files.len() % 2 == 0 => {
                    let side = |first: usize| -> Vec<&str> {
                        files.iter().copied().skip(first).step_by(2).collect()
                    };
                    vec![read_side(pair, &side(0), columns)?, read_side(pair, &side(1), columns)?]
                }
                None => {
                    return Err(Error::request(
                        "parallel",
                        format!(
                            "parallel text in `{pair}` alone; give another language's too, or two columns as A-B=FILE"
                        ),
                    ));
                }
            }
        }
        _ => read_languages(texts, columns)?,
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

/// Reads text of languages, a sentence a line, that need not be parallel. Several files of a language add up.
///
/// # Errors
/// Where files cannot be read.
pub fn read_languages(
    texts: &[(String, String)],
    columns: &TsvColumns,
) -> Result<Vec<ParallelSide>> {
    let languages = by_language(texts);
    languages.iter().map(|(language, files)| read_side(language, files, columns)).collect()
}

/// Reads parallel text of two languages.
///
/// # Errors
/// As [`read`], and where there are more languages than two.
pub fn read_pair(texts: &[(String, String)], columns: &TsvColumns) -> Result<[ParallelSide; 2]> {
    read(texts, columns)?.try_into().map_err(|sides: Vec<_>| {
        let reason = format!("parallel text in {} languages; give two", sides.len());
        Error::request("parallel", reason)
    })
}

/// The numbers of the rows that equal no earlier row on every side.
pub fn distinct(sides: &[ParallelSide]) -> Vec<usize> {
    let mut seen = FxHashSet::default();
    let rows = sides.first().map_or(0, |side| side.lines.len());
    let row = |number: usize| -> Vec<&str> {
        sides.iter().map(|side| side.lines[number].as_str()).collect()
    };
    (0..rows).filter(|&number| seen.insert(row(number))).collect()
}

/// The languages in the order in which they were first named, each with its files.
fn by_language(texts: &[(String, String)]) -> Vec<(&str, Vec<&str>)> {
    let mut languages: Vec<(&str, Vec<&str>)> = Vec::new();
    for (language, file) in texts {
        match languages.iter_mut().find(|(known, _)| known == language) {
            Some((_, files)) => files.push(file),
            None => languages.push((language, vec![file])),
        }
    }
    languages
}

/// Reads files of one language. Blank lines at the end of a file are none.
fn read_side(language: &str, files: &[&str], columns: &TsvColumns) -> Result<ParallelSide> {
    let mut side = ParallelSide::empty(language, files);
    for (number, &file) in files.iter().enumerate() {
        let source = TextSource::new(language, &[file.to_owned()])?.with_columns(columns);
        let mut reader = source.raw_lines(LineRules::default());
        let mut filled = side.lines.len();
        while let Some(sentence) = reader.next_sentence()? {
            side.lines.push(sentence.trim().to_owned());
            side.places.push((number as u32, reader.number() as u32));
            if !reader.line_is_blank() {
                filled = side.lines.len();
            }
        }
        side.lines.truncate(filled);
        side.places.truncate(filled);
    }
    Ok(side)
}

/// Reads files of two columns.
fn read_columns(languages: [&str; 2], files: &[&str]) -> Result<Vec<ParallelSide>> {
    let mut sides = languages.map(|language| ParallelSide::empty(language, files));
    for (number, &file) in files.iter().enumerate() {
        let separator = if is_tsv(file) { "\t" } else { "|||" };
        let source = TextSource::new(languages[0], &[file.to_owned()])?;
        let mut reader = source.raw_lines(LineRules::default());
        while let Some(line) = reader.next_line()? {
            let parts: Vec<&str> = line.split(separator).collect();
            let [_, _] = parts[..] else {
                let place = format!("{file}:{}", reader.number());
                let reason = format!("does not hold two columns separated by {separator:?}");
                return Err(Error::input(place, reason, "write the two sentences on every line"));
            };
            let texts: Vec<String> = parts.iter().map(|part| part.trim().to_owned()).collect();
            let line = reader.number() as u32;
            for (side, text) in sides.iter_mut().zip(texts) {
                side.lines.push(text);
                side.places.push((number as u32, line));
            }
        }
    }
    Ok(sides.into())
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
            let sides = read_pair(&[pair("a-b", &path)], &TsvColumns::default())
                .map_err(|error| error.to_string())?;
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
        let first = TsvColumns::default();
        let sides = read_pair(&[pair("en", &a), pair("fr", &b)], &first).unwrap();
        assert_eq!(sides.map(|side| side.lines), [["one", "two"], ["un", "deux"]]);
        std::fs::write(&b, "un\n").unwrap();
        let error = read(&[pair("en", &a), pair("fr", &b)], &first).unwrap_err().to_string();
        assert!(error.contains("has 1 lines"), "{error}");
        assert!(read(&[pair("en", &a)], &first).unwrap_err().to_string().contains("`en` alone"));
    }

    /// Two files of each language, both columns: worked by hand.
    #[test]
    fn files_add_up_and_repeated_rows_are_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let en = [file("dev.en.tsv", "a\tb\t0\n"), file("test.en.tsv", "a\tc\t1\na\td\t2\n")];
        let fr = [file("dev.fr.tsv", "A\tB\t0\n"), file("test.fr.tsv", "A\tC\t1\nA2\tC\t2\n")];
        let texts =
            [pair("en", &en[0]), pair("fr", &fr[0]), pair("fr", &fr[1]), pair("en", &en[1])];
        let sides = read_pair(&texts, &"1,2".parse().unwrap()).unwrap();
        assert_eq!(sides[0].lines, ["a", "b", "a", "c", "a", "d"]);
        assert_eq!(sides[1].lines, ["A", "B", "A", "C", "A2", "C"]);
        // Row 3 is (a, A) again; row 5 differs on the French side.
        assert_eq!(distinct(&sides), [0, 1, 3, 4, 5]);
        assert!(sides[0].place(5).ends_with("test.en.tsv:2"), "{}", sides[0].place(5));
        let kept = sides[0].select(&[1, 5]);
        assert_eq!(kept.lines, ["b", "d"]);
        assert_eq!(kept.place(1), sides[0].place(5));
    }

    #[test]
    fn both_sides_may_be_of_one_language() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::fs::write(&a, "one\n").unwrap();
        std::fs::write(&b, "two\n").unwrap();
        let texts = [pair("en", &a), pair("en", &b), pair("en", &b), pair("en", &b)];
        let sides = read_pair(&texts, &TsvColumns::default()).unwrap();
        assert_eq!(sides.map(|side| side.lines), [["one", "two"], ["two", "two"]]);
    }
}
