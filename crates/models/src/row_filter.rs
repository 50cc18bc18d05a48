//! Rows of parallel text that encoders with different tokenizers can all read whole.
//!
//! An encoder leaves out sentences that are longer than it reads, and how long a sentence is depends on its tokenizer: two
//! encoders would be measured on different sentences. Here rows are left out by an estimate of their tokens that depends on
//! the text alone. It is on the high side: joint BPE vocabularies of 2,000 merges never exceed it on XNLI in English, French,
//! Russian and Chinese. A tokenizer that splits further (bytes, rare scripts) may still leave out rows of its own.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use terms::RowCounts;
use text::TsvColumns;

use crate::error::{Error, Result};
use crate::parallel::{ParallelSide, read};

/// Which rows are kept, and where they go.
#[derive(Clone, Debug)]
pub struct RowFilterConfig {
    /// Parallel text of two languages or more, as [`read`] takes it.
    pub parallel: Vec<(String, String)>,
    /// Other wordings of the same rows, which are read elsewhere and must fit too.
    pub beside: Vec<String>,
    /// The columns of sentences of `.tsv` files.
    pub columns: TsvColumns,
    /// Tokens of a sentence at most, without special tokens.
    pub max_tokens: usize,
    /// A file for each language, in their order.
    pub out: Vec<PathBuf>,
}

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowFilterResult {
    /// The files, one for each language: a sentence a line.
    pub out: Vec<PathBuf>,
    /// The languages.
    pub languages: Vec<String>,
    /// Tokens of a sentence at most.
    pub max_tokens: usize,
    /// How many rows there were, and what became of them.
    #[serde(flatten)]
    pub counts: RowCounts,
}

/// Writes the rows of parallel text none of whose sentences may have more tokens than a bound.
///
/// # Errors
/// Where files cannot be read or written, there is not one for each language, or no row is left.
pub fn filter_rows(config: &RowFilterConfig) -> Result<RowFilterResult> {
    let beside = config.beside.iter().enumerate();
    let beside = beside.map(|(number, file)| (format!("beside {number}"), file.clone()));
    let texts: Vec<(String, String)> = config.parallel.iter().cloned().chain(beside).collect();
    let mut sides = read(&texts, &config.columns)?;
    let beside = sides.split_off(sides.len() - config.beside.len());
    if sides.len() != config.out.len() {
        let reason = format!(
            "{} files for {} languages; give one for each, in the order of the languages",
            config.out.len(),
            sides.len()
        );
        return Err(Error::of_key("out", reason));
    }
    let rows = sides[0].lines.len();
    let fits = |side: &ParallelSide, row: usize| most_tokens(&side.lines[row]) <= config.max_tokens;
    let kept: Vec<usize> =
        (0..rows).filter(|&row| sides.iter().chain(&beside).all(|side| fits(side, row))).collect();
    if kept.is_empty() {
        let reason = format!("none of its {rows} rows is as short as {} tokens", config.max_tokens);
        return Err(Error::input(&sides[0].file, reason, "give shorter sentences"));
    }
    let _together = files::lock_outputs(config.out.iter().map(PathBuf::as_path));
    for (side, out) in sides.iter().zip(&config.out) {
        let text: String = kept.iter().map(|&row| format!("{}\n", side.lines[row])).collect();
        files::write(out, text)?;
    }
    Ok(RowFilterResult {
        out: config.out.clone(),
        languages: sides.iter().map(|side| side.language.clone()).collect(),
        max_tokens: config.max_tokens,
        counts: RowCounts { rows, repeated: 0, too_long: rows - kept.len(), used: kept.len() },
    })
}

/// More tokens than a subword vocabulary makes of a sentence: two for every three lower-case letters that follow one another, and one for
/// every other character. Of 15,000 sentences of XNLI in English, French, Russian and Chinese none had more by joint
/// vocabularies of 2,000 merges, the smallest of any scale; of those that fit into 30 tokens, a third (French) to nine tenths
/// (Chinese) are kept.
fn most_tokens(sentence: &str) -> usize {
    let (mut tokens, mut letters) = (0, 0_usize);
    for character in sentence.chars() {
        if character.is_lowercase() {
            letters += 1;
            continue;
        }
        tokens += (2 * letters).div_ceil(3) + usize::from(!character.is_whitespace());
        letters = 0;
    }
    tokens + (2 * letters).div_ceil(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_depends_on_the_text_alone() {
        assert_eq!(most_tokens("cat"), 2);
        assert_eq!(most_tokens("the cats"), 2 + 3);
        assert_eq!(most_tokens("In 1896, a"), 1 + 1 + 4 + 1 + 1);
        assert_eq!(most_tokens("猫在睡觉。"), 5);
        assert_eq!(most_tokens(""), 0);
    }

    #[test]
    fn a_row_is_left_out_on_all_sides() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path.display().to_string()
        };
        let parallel = vec![
            ("en".to_owned(), file("en", "a cat\nsome cats are asleep\nyes\n")),
            ("fr".to_owned(), file("fr", "un chat\ndes chats dorment\noui, bien entendu\n")),
        ];
        let out = ["a.txt", "b.txt"].map(|name| folder.path().join(name)).to_vec();
        let config = RowFilterConfig {
            parallel,
            beside: vec![],
            columns: TsvColumns::default(),
            max_tokens: 9,
            out,
        };
        let result = filter_rows(&config).unwrap();
        assert_eq!(result.counts, RowCounts { rows: 3, repeated: 0, too_long: 2, used: 1 });
        let read = |at: usize| std::fs::read_to_string(&config.out[at]).unwrap();
        assert_eq!((read(0), read(1)), ("a cat\n".to_owned(), "un chat\n".to_owned()));
        // Another wording of the rows decides with them, and is not written.
        let beside = |first: &str| {
            let beside = vec![file("xx", &format!("{first}\nka\nta\n"))];
            filter_rows(&RowFilterConfig { beside, ..config.clone() })
        };
        assert_eq!(beside("ta").unwrap(), result);
        let long = beside("UNDENIABLY").unwrap_err().to_string();
        assert!(long.contains("none of its 3 rows"), "{long}");
        let short = filter_rows(&RowFilterConfig { max_tokens: 1, ..config.clone() });
        assert!(short.unwrap_err().to_string().contains("none of its 3 rows"));
        let one = RowFilterConfig { out: config.out[..1].to_vec(), ..config };
        assert!(filter_rows(&one).unwrap_err().to_string().contains("1 files for 2 languages"));
    }
}
