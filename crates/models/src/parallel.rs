//! Parallel text: line i of one language translates line i of the other.
//!
//! It comes as files of each language, which add up in the order given, or as files of two columns:
//! separated by a tab where the name ends in `.tsv`, else by `|||`, as fast_align reads it. Of a `.tsv`
//! file of one language some columns hold sentences ([`TsvColumns`]).
//!
//! Real parallel text repeats itself (XNLI has every premise three times), and a row that was counted
//! three times would weigh three times: what is learned or measured uses [`distinct`] rows.

use rustc_hash::FxHashSet;
use text::{LineRules, RandomStreams, TextSource, TsvColumns, is_tsv};

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

/// Which rows of a text are read. It depends on their numbers alone, so that rows of several languages stay together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowSelection {
    /// All of them.
    #[default]
    All,
    /// The first so many.
    First(usize),
    /// A uniform random sample, in the order of the text; all rows where there are no more.
    Sample {
        /// How many.
        size: usize,
        /// Of the random numbers.
        seed: u64,
    },
}

impl RowSelection {
    /// How many rows it leaves at most.
    pub fn most(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::First(size) | Self::Sample { size, .. } => Some(size),
        }
    }

    /// The chosen rows, and how many there were. No more than twice as many as are chosen are in memory.
    ///
    /// # Errors
    /// That of the first row that is an error.
    pub fn choose<T, E>(
        self,
        rows: impl IntoIterator<Item = std::result::Result<T, E>>,
    ) -> std::result::Result<(Vec<T>, usize), E> {
        let mut chosen = ChosenRows::new(self);
        rows.into_iter().try_for_each(|row| row.map(|row| chosen.push(row)))?;
        Ok(chosen.finish())
    }
}

/// The rows of a selection, while they are read.
struct ChosenRows<T> {
    selection: RowSelection,
    ranks: RandomStreams,
    read: usize,
    /// With the random rank of each. The lowest are the sample.
    rows: Vec<(u64, T)>,
    /// No row of a higher rank is in the sample.
    bound: u64,
}

impl<T> ChosenRows<T> {
    /// Rows beyond the sample that are kept before the highest ranks are dropped.
    const SPARE: usize = 1024;

    fn new(selection: RowSelection) -> Self {
        let seed = if let RowSelection::Sample { seed, .. } = selection { seed } else { 0 };
        let ranks = RandomStreams::new(seed, "rows");
        Self { selection, ranks, read: 0, rows: Vec::new(), bound: u64::MAX }
    }

    fn push(&mut self, row: T) {
        let number = self.read;
        self.read += 1;
        match self.selection {
            RowSelection::All => self.rows.push((0, row)),
            RowSelection::First(size) if number < size => self.rows.push((0, row)),
            RowSelection::First(_) => {}
            RowSelection::Sample { size, .. } => {
                let rank = self.ranks.rank(number as u64);
                if rank <= self.bound {
                    self.rows.push((rank, row));
                }
                if self.rows.len() >= 2 * size + Self::SPARE {
                    self.drop_highest(size);
                }
            }
        }
    }

    fn drop_highest(&mut self, size: usize) {
        if self.rows.len() <= size {
            return;
        }
        let mut ranks: Vec<u64> = self.rows.iter().map(|(rank, _)| *rank).collect();
        self.bound = match size {
            0 => 0,
            _ => *ranks.select_nth_unstable(size - 1).1,
        };
        self.rows.retain(|(rank, _)| size > 0 && *rank <= self.bound);
    }

    fn finish(mut self) -> (Vec<T>, usize) {
        if let RowSelection::Sample { size, .. } = self.selection {
            self.drop_highest(size);
        }
        (self.rows.into_iter().map(|(_, row)| row).collect(), self.read)
    }
}

/// Reads parallel text of two languages or more: `(language, file)` for each, or `(A-B, file)` of two
/// columns. Several files of a language, or of a pair, add up. Where both sides are of one language, its
/// files alternate: first side, second side.
///
/// # Errors
/// Where files cannot be read, or do not match line by line.
pub fn read(texts: &[(String, String)], columns: &TsvColumns) -> Result<Vec<ParallelSide>> {
    Ok(read_some(texts, columns, RowSelection::All)?.0)
}

/// Some rows of parallel text, the same of every side, and how many there were.
///
/// # Errors
/// As [`read`].
pub fn read_some(
    texts: &[(String, String)],
    columns: &TsvColumns,
    selection: RowSelection,
) -> Result<(Vec<ParallelSide>, usize)> {
    let sides = match &by_language(texts)[..] {
        [] => return Err(Error::of_key("parallel", "no parallel text; give both languages'")),
        [(pair, files)] => {
            match pair.split_once('-').filter(|(a, b)| !a.is_empty() && !b.is_empty()) {
                Some((a, b)) => read_columns([a, b], files, selection)?,
                None if files.len() % 2 == 0 => {
                    let side = |first: usize| -> Vec<&str> {
                        files.iter().copied().skip(first).step_by(2).collect()
                    };
                    let side = |first| read_side(pair, &side(first), columns, selection);
                    vec![side(0)?, side(1)?]
                }
                None => {
                    return Err(Error::of_key(
                        "parallel",
                        format!(
                            "parallel text in `{pair}` alone; give another language's too, or two columns as A-B=FILE"
                        ),
                    ));
                }
            }
        }
        languages => {
            let side = |(language, files): &(&str, Vec<&str>)| {
                read_side(language, files, columns, selection)
            };
            languages.iter().map(side).collect::<Result<_>>()?
        }
    };
    let there = sides[0].1;
    for (side, here) in &sides[1..] {
        if *here != there {
            let reason = format!("has {here} lines, {} has {there}", sides[0].0.file);
            return Err(Error::input(&side.file, reason, "give files that match line by line"));
        }
    }
    Ok((sides.into_iter().map(|(side, _)| side).collect(), there))
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
    let side = |(language, files): &(&str, Vec<&str>)| {
        Ok(read_side(language, files, columns, RowSelection::All)?.0)
    };
    languages.iter().map(side).collect()
}

/// Reads parallel text of two languages.
///
/// # Errors
/// As [`read`], and where there are more languages than two.
pub fn read_pair(texts: &[(String, String)], columns: &TsvColumns) -> Result<[ParallelSide; 2]> {
    read_pair_some(texts, columns, RowSelection::All)
}

/// Some rows of parallel text of two languages.
///
/// # Errors
/// As [`read_pair`].
pub fn read_pair_some(
    texts: &[(String, String)],
    columns: &TsvColumns,
    selection: RowSelection,
) -> Result<[ParallelSide; 2]> {
    read_some(texts, columns, selection)?.0.try_into().map_err(|sides: Vec<_>| {
        let reason = format!("parallel text in {} languages; give two", sides.len());
        Error::of_key("parallel", reason)
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

/// A sentence, the number of its file, and its line there.
type PlacedRow = (String, (u32, u32));

fn placed(language: &str, files: &[&str], rows: ChosenRows<PlacedRow>) -> (ParallelSide, usize) {
    let (rows, read) = rows.finish();
    let (lines, places) = rows.into_iter().unzip();
    (ParallelSide { lines, places, ..ParallelSide::empty(language, files) }, read)
}

/// Reads files of one language, and counts their rows. Blank lines at the end of a file are none.
fn read_side(
    language: &str,
    files: &[&str],
    columns: &TsvColumns,
    selection: RowSelection,
) -> Result<(ParallelSide, usize)> {
    let mut rows = ChosenRows::new(selection);
    for (number, &file) in files.iter().enumerate() {
        let source = TextSource::new(language, &[file.to_owned()])?.with_columns(columns);
        let mut reader = source.raw_lines(LineRules::default());
        let mut blank: Vec<PlacedRow> = Vec::new();
        while let Some(sentence) = reader.next_sentence()? {
            let row = (sentence.trim().to_owned(), (number as u32, reader.number() as u32));
            if reader.line_is_blank() {
                blank.push(row);
                continue;
            }
            blank.drain(..).for_each(|row| rows.push(row));
            rows.push(row);
        }
    }
    Ok(placed(language, files, rows))
}

/// Reads files of two columns.
fn read_columns(
    languages: [&str; 2],
    files: &[&str],
    selection: RowSelection,
) -> Result<Vec<(ParallelSide, usize)>> {
    let mut sides = languages.map(|_| ChosenRows::new(selection));
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
                side.push((text, (number as u32, line)));
            }
        }
    }
    let sides = languages.into_iter().zip(sides);
    Ok(sides.map(|(language, rows)| placed(language, files, rows)).collect())
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
    fn samples_keep_pairs_together_in_the_order_of_the_text() {
        let folder = tempfile::tempdir().unwrap();
        let rows = 10_000;
        let file = |name: &str, mark: &str, end: &str| {
            let path = folder.path().join(name);
            let lines: String = (0..rows).map(|row| format!("{mark}{row}\n")).collect();
            std::fs::write(&path, lines + end).unwrap();
            path
        };
        // One ends in blank lines, which are no rows.
        let texts = [pair("a", &file("a", "a", "")), pair("b", &file("b", "b", "\n\n"))];
        let read = |selection| read_some(&texts, &TsvColumns::default(), selection).unwrap();
        let sample = |size, seed| read(RowSelection::Sample { size, seed });
        let (sides, count) = sample(500, 1);
        assert_eq!((count, sides[0].lines.len()), (rows, 500));
        let number = |line: &String| line[1..].parse::<usize>().unwrap();
        let numbers = |side: usize| sides[side].lines.iter().map(number).collect::<Vec<usize>>();
        let a = numbers(0);
        assert_eq!(a, numbers(1));
        assert!(a.is_sorted() && a.windows(2).all(|two| two[0] != two[1]));
        assert_eq!(sides[0].place(7), format!("{}:{}", texts[0].1, a[7] + 1));
        // Uniform: about as many in each tenth, whose deviation is seven.
        for tenth in 0..10 {
            let there = a.iter().filter(|&&row| row * 10 / rows == tenth).count();
            assert!((20..80).contains(&there), "{tenth}: {there}");
        }
        assert_eq!(sample(500, 1).0, sides);
        assert_ne!(sample(500, 2).0, sides);
        // The lowest ranks: a larger sample holds the smaller one.
        let larger = sample(3000, 1).0;
        assert!(sides[0].lines.iter().all(|line| larger[0].lines.contains(line)));
        let all = read(RowSelection::All);
        assert_eq!(sample(rows, 1), all);
        assert_eq!(sample(3 * rows, 1), all);
        let (first, count) = read(RowSelection::First(2));
        assert_eq!((&first[1].lines[..], count), (&["b0".to_owned(), "b1".to_owned()][..], rows));
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
