//! Evaluation of links against gold annotations: precision, recall, F1 and alignment error rate (AER;
//! Och and Ney 2003). Gold links are sure or possible: precision counts possible links as correct, and
//! recall is over sure links.

use serde::{Deserialize, Serialize};
use text::{LineRules, TextSource};

use crate::links::{WordLinks, parse_link};
use crate::{Error, Result};

/// A sentence pair's gold links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoldLinks {
    /// Sure links.
    pub sure: WordLinks,
    /// Possible links, the sure ones included.
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
    /// Predicted links.
    pub predicted: u64,
    /// Sure gold links.
    pub sure: u64,
    /// Possible gold links, the sure ones among them.
    pub possible: u64,
    /// Predicted links that are sure.
    pub predicted_sure: u64,
    /// Predicted links that are possible.
    pub predicted_possible: u64,
}

/// The result of evaluating links.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlignmentScore {
    /// The share of predicted links that are possible.
    pub precision: f64,
    /// The share of sure links that are predicted.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
    /// The alignment error rate: 1 - (predicted sure + predicted possible) / (predicted + sure).
    pub aer: f64,
    /// Sentence pairs.
    pub sentences: u64,
    /// Predicted links.
    pub predicted: u64,
    /// Sure gold links.
    pub sure: u64,
    /// Possible gold links, the sure ones included.
    pub possible: u64,
    /// How it was measured.
    pub signature: String,
}

impl LinkCounts {
    /// Counts one more sentence pair.
    pub fn add(&mut self, gold: &GoldLinks, predicted: &WordLinks) {
        self.sentences += 1;
        self.predicted += predicted.len() as u64;
        self.sure += gold.sure.len() as u64;
        self.possible += gold.possible.len() as u64;
        self.predicted_sure +=
            predicted.iter().filter(|&link| gold.sure.contains(link)).count() as u64;
        self.predicted_possible +=
            predicted.iter().filter(|&link| gold.possible.contains(link)).count() as u64;
    }

    /// The measures; refused where there is no predicted or no sure link.
    pub fn score(&self) -> Result<AlignmentScore> {
        if self.predicted == 0 || self.sure == 0 {
            let reason = format!("{} predicted and {} sure gold links", self.predicted, self.sure);
            return Err(Error::request(reason, "give files that have some"));
        }
        let precision = self.predicted_possible as f64 / self.predicted as f64;
        let recall = self.predicted_sure as f64 / self.sure as f64;
        let sum = precision + recall;
        let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
        let right = (self.predicted_sure + self.predicted_possible) as f64;
        Ok(AlignmentScore {
            precision,
            recall,
            f1,
            aer: 1.0 - right / (self.predicted + self.sure) as f64,
            sentences: self.sentences,
            predicted: self.predicted,
            sure: self.sure,
            possible: self.possible,
            signature: format!("word-align|aer|v:{}", env!("CARGO_PKG_VERSION")),
        })
    }
}

/// Compares two files of links, line by line; gold places count from `first`.
pub fn compare(gold: &TextSource, predicted: &TextSource, first: u16) -> Result<LinkCounts> {
    let mut gold_lines = gold.raw_lines(LineRules::default());
    let mut lines = predicted.raw_lines(LineRules::default());
    let mut tally = LinkCounts::default();
    let bad = |lines: &text::LineReader, remedy| {
        Error::line(lines.name(), lines.number(), "not links", remedy)
    };
    loop {
        let gold_links = gold_lines.next_line()?.map(|line| GoldLinks::parse(line, first));
        let predicted_links = lines.next_line()?.map(WordLinks::parse);
        let (gold_links, predicted_links) = match (gold_links, predicted_links) {
            (None, None) => return Ok(tally),
            (Some(gold_links), Some(predicted_links)) => (gold_links, predicted_links),
            (gold_links, _) => {
                let more = if gold_links.is_some() { &mut gold_lines } else { &mut lines };
                let counts = [tally.sentences, tally.sentences + rest(more)?];
                let [predicted_lines, gold_lines] =
                    if gold_links.is_some() { counts } else { [counts[1], counts[0]] };
                let name = predicted.names().next().unwrap_or_default();
                return Err(Error::file(
                    name,
                    format!("has {predicted_lines} lines, and the gold standard {gold_lines}"),
                    "give links of the same sentence pairs",
                ));
            }
        };
        let gold_links = gold_links.ok_or_else(|| {
            bad(&gold_lines, "write `0-0` for a sure link and `0?0` for a possible one, counted from 0 or, if so said, 1")
        })?;
        let predicted_links =
            predicted_links.ok_or_else(|| bad(&lines, "write `0-0` for each link"))?;
        tally.add(&gold_links, &predicted_links);
    }
}

/// How many lines are left, the one in hand among them.
pub(crate) fn rest(lines: &mut text::LineReader) -> Result<u64> {
    let mut count = 1;
    while lines.next_sentence()?.is_some() {
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
        assert!(LinkCounts::default().score().is_err());
        assert_eq!(GoldLinks::parse("0x0", 0), None);
        assert_eq!(GoldLinks::parse("1-1 2-2 3?3 4p4", 1), Some(gold));
        assert_eq!(GoldLinks::parse("0-1", 1), None);
    }
}
