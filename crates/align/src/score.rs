//! Links against a gold standard: precision, recall, their mean, and the alignment error rate.
//!
//! A gold standard may tell sure links from possible ones (Och and Ney 2003): a link found is
//! right where it is possible at least, and only the sure ones have to be found.

use serde::Serialize;
use text::{LineRules, TextSource};

use crate::error::{Error, Result};
use crate::links::{WordLinks, parse_link};

/// A sentence pair's gold links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoldLinks {
    /// Links that have to be found.
    pub sure: WordLinks,
    /// Links that may be found; the sure ones are among them.
    pub possible: WordLinks,
}

impl GoldLinks {
    /// Reads `0-0 1?2`: `-` is sure, `?` or `p` possible. The first place is `first`.
    pub fn parse(text: &str, first: u16) -> Option<Self> {
        let (mut sure, mut possible) = (Vec::new(), Vec::new());
        for link in text.split_ascii_whitespace() {
            let ((source, target), mark) = parse_link(link, &['-', '?', 'p'])?;
            let link = (source.checked_sub(first)?, target.checked_sub(first)?);
            possible.push(link);
            if mark == '-' {
                sure.push(link);
            }
        }
        Some(Self { sure: WordLinks::new(sure), possible: WordLinks::new(possible) })
    }
}

/// Counts over sentence pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// Sentence pairs.
    pub sentences: u64,
    /// Links found.
    pub found: u64,
    /// Sure gold links.
    pub sure: u64,
    /// Possible gold links, the sure ones among them.
    pub possible: u64,
    /// Links found that are sure.
    pub found_sure: u64,
    /// Links found that are possible.
    pub found_possible: u64,
}

/// The usual measures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlignmentScore {
    /// The share of links found that are possible.
    pub precision: f64,
    /// The share of sure links that are found.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f: f64,
    /// The alignment error rate: 1 - (found sure + found possible) / (found + sure).
    pub aer: f64,
}

impl LinkCounts {
    /// Counts one more sentence pair.
    pub fn add(&mut self, gold: &GoldLinks, found: &WordLinks) {
        self.sentences += 1;
        self.found += found.len() as u64;
        self.sure += gold.sure.len() as u64;
        self.possible += gold.possible.len() as u64;
        self.found_sure += found.iter().filter(|&link| gold.sure.contains(link)).count() as u64;
        self.found_possible +=
            found.iter().filter(|&link| gold.possible.contains(link)).count() as u64;
    }

    /// The measures; `None` where no link was found or there is no sure one to find.
    pub fn score(&self) -> Option<AlignmentScore> {
        if self.found == 0 || self.sure == 0 {
            return None;
        }
        let precision = self.found_possible as f64 / self.found as f64;
        let recall = self.found_sure as f64 / self.sure as f64;
        let sum = precision + recall;
        let f = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        let right = (self.found_sure + self.found_possible) as f64;
        Some(AlignmentScore {
            precision,
            recall,
            f,
            aer: 1.0 - right / (self.found + self.sure) as f64,
        })
    }
}

/// Compares two files of links, line by line; gold places count from `first`.
pub fn compare(gold: &TextSource, predicted: &TextSource, first: u16) -> Result<LinkCounts> {
    let mut gold_lines = gold.raw_lines(LineRules::default());
    let mut lines = predicted.raw_lines(LineRules::default());
    let mut tally = LinkCounts::default();
    let bad = |lines: &text::LineReader, remedy| {
        Error::line(lines.name(), lines.number(), "not links".into(), remedy)
    };
    loop {
        let truth = gold_lines.next_line()?.map(|line| GoldLinks::parse(line, first));
        let found = lines.next_line()?.map(WordLinks::parse);
        let (truth, found) = match (truth, found) {
            (None, None) => return Ok(tally),
            (Some(truth), Some(found)) => (truth, found),
            (truth, _) => {
                let more = if truth.is_some() { &mut gold_lines } else { &mut lines };
                let counts = [tally.sentences, tally.sentences + rest(more)?];
                let [predicted_lines, gold_lines] =
                    if truth.is_some() { counts } else { [counts[1], counts[0]] };
                let name = predicted.names().next().unwrap_or_default();
                return Err(Error::file(
                    name,
                    format!("has {predicted_lines} lines, and the gold standard {gold_lines}"),
                    "give links of the same sentence pairs",
                ));
            }
        };
        let truth = truth.ok_or_else(|| {
            bad(&gold_lines, "write `0-0` for a sure link and `0?0` for a possible one, counted from 0 or, if so said, 1")
        })?;
        let found = found.ok_or_else(|| bad(&lines, "write `0-0` for each link"))?;
        tally.add(&truth, &found);
    }
}

/// How many lines are left, the one in hand among them.
pub(crate) fn rest(lines: &mut text::LineReader) -> Result<u64> {
    let mut count = 1;
    while lines.next_line()?.is_some() {
        count += 1;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let gold = GoldLinks::parse("0-0 1-1 2?2 3p3", 0).unwrap();
        assert_eq!((gold.sure.len(), gold.possible.len()), (2, 4));
        let mut tally = LinkCounts::default();
        tally.add(&gold, &WordLinks::parse("0-0 2-2 4-4").unwrap());
        let score = tally.score().unwrap();
        assert!((score.precision - 2.0 / 3.0).abs() < 1e-12);
        assert!((score.recall - 0.5).abs() < 1e-12);
        assert!((score.aer - (1.0 - 3.0 / 5.0)).abs() < 1e-12);
        assert_eq!(LinkCounts::default().score(), None);
        assert_eq!(GoldLinks::parse("0x0", 0), None);
        assert_eq!(GoldLinks::parse("1-1 2-2 3?3 4p4", 1), Some(gold));
        assert_eq!(GoldLinks::parse("0-1", 1), None);
    }
}
