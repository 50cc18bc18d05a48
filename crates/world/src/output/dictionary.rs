//! Bilingual dictionaries as MUSE has them: `muse/A-B.txt` whole, `.0-5000.txt` to train on and
//! `.5000-6500.txt` to test on. The numbers are part of MUSE's names; here a share of the words is
//! held out for testing, taken evenly over the range of frequency.

use std::fmt::Write as _;

use super::{FileRecord, WorldWriter};
use crate::error::Error;
use crate::grammar::Upos;
use crate::language::Language;
use crate::meaning::MeaningId;

impl WorldWriter<'_> {
    /// Between the first language and every other, both ways.
    pub(super) fn dictionaries(&mut self, frequency: &[u64]) -> Result<(), Error> {
        let meanings = self.world.meanings();
        let mut ranked: Vec<MeaningId> = (0..meanings.len() as MeaningId)
            .filter(|&id| meanings[id as usize].upos != Upos::Punctuation)
            .collect();
        ranked.sort_by_key(|&id| (std::cmp::Reverse(frequency[id as usize]), id));
        let (test, train) = held_out(&ranked, self.plan.config().dictionary_test);
        let hubs = if self.plan.config().all_dictionaries { self.languages.len() } else { 1 };
        for (number, first) in self.languages.iter().enumerate().take(hubs) {
            for other in &self.languages[number + 1..] {
                for (from, to) in [(first, other), (other, first)] {
                    self.dictionary(from, to, "", None, &ranked)?;
                    self.dictionary(from, to, ".0-5000", Some("train"), &train)?;
                    self.dictionary(from, to, ".5000-6500", Some("test"), &test)?;
                }
            }
        }
        Ok(())
    }

    fn dictionary(
        &mut self,
        from: &Language,
        to: &Language,
        suffix: &str,
        split: Option<&'static str>,
        meanings: &[MeaningId],
    ) -> Result<(), Error> {
        let mut text = String::new();
        let mut entries = 0;
        for &id in meanings {
            let mut written: Vec<(&str, &str)> = Vec::new();
            for pair in from.paired_forms(to, id) {
                if !written.contains(&pair) {
                    written.push(pair);
                    let (a, b) = (pair.0.to_lowercase(), pair.1.to_lowercase());
                    let _ = writeln!(text, "{a} {b}");
                }
            }
            entries += written.len();
        }
        let path = format!("muse/{}-{}{suffix}.txt", from.code(), to.code());
        let record = FileRecord::of("dictionary", path, &[from.code(), to.code()], split);
        self.folder.put(record, &text, entries)
    }
}

/// Takes a share out of a list, evenly along it; what is taken, and what stays.
fn held_out(ranked: &[MeaningId], share: f64) -> (Vec<MeaningId>, Vec<MeaningId>) {
    let taken = |upto: usize| (upto as f64 * share).floor() as usize;
    let (mut out, mut rest) = (Vec::new(), Vec::new());
    for (i, &id) in ranked.iter().enumerate() {
        if taken(i + 1) > taken(i) { out.push(id) } else { rest.push(id) }
    }
    (out, rest)
}
