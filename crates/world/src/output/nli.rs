//! NLI pairs in XNLI's columns: `xnli/SPLIT-LANG.tsv`, line i the same item in every language.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::documents::scan;
use super::{FileRecord, WorldWriter};
use crate::error::{self, Error};
use crate::language::Language;
use crate::nli::{NliItem, NliLabel, NliSampler};
use crate::random::{NamedStreams, shuffle};

/// How many draws in a row may bring nothing new before the search is given up.
const PATIENCE: usize = 5000;

impl WorldWriter<'_> {
    pub(super) fn inference(&mut self) -> Result<(), Error> {
        let splits = self.plan.config().nli.named();
        let items = self.items(splits.iter().map(|(_, size)| size).sum())?;
        let mut rest = items.as_slice();
        for (split, size) in splits {
            let (part, others) = rest.split_at(size);
            rest = others;
            let labels = self.labels(split, size);
            for language in self.languages {
                self.pairs(split, language, part, &labels)?;
            }
        }
        Ok(())
    }

    /// So many items, no hypothesis twice, so that none of a test set was seen in training.
    fn items(&mut self, wanted: usize) -> Result<Vec<NliItem>, Error> {
        let sampler = NliSampler { world: self.world, domain: &self.world.domains[0] };
        let streams = NamedStreams::new(self.plan.config().seed, "nli");
        let first = &self.languages[0];
        let make = |index: u64| {
            let item = sampler.item(&mut streams.at(index))?;
            let hypothesis = first.realize(&item.hypothesis.tree(self.world));
            Some((item, hypothesis))
        };
        let mut seen: HashSet<String> = HashSet::new();
        let mut items = Vec::new();
        let mut barren = 0;
        if wanted > 0 {
            scan(wanted, make, |made| {
                barren += 1;
                if let Some((item, hypothesis)) = made
                    && seen.insert(hypothesis)
                {
                    items.push(item);
                    barren = 0;
                }
                Ok(items.len() < wanted && barren < PATIENCE)
            })?;
        }
        if items.len() < wanted {
            return Err(error::exhausted("hypotheses", "nli", wanted, items.len()));
        }
        Ok(items)
    }

    /// The label of each line: every three in a row have all three, in random order.
    fn labels(&self, split: &str, size: usize) -> Vec<NliLabel> {
        let mut rng = NamedStreams::new(self.plan.config().seed, &format!("labels/{split}")).at(0);
        let mut labels = Vec::with_capacity(size + 2);
        while labels.len() < size {
            let mut three = NliLabel::ALL;
            shuffle(&mut rng, &mut three);
            labels.extend(three);
        }
        labels.truncate(size);
        labels
    }

    fn pairs(
        &mut self,
        split: &'static str,
        language: &Language,
        items: &[NliItem],
        labels: &[NliLabel],
    ) -> Result<(), Error> {
        let mut text = String::new();
        for (item, &label) in items.iter().zip(labels) {
            language.realize_into(&item.premise(label).tree(self.world), &mut text);
            text.push('\t');
            language.realize_into(&item.hypothesis.tree(self.world), &mut text);
            let _ = writeln!(text, "\t{}", label.name());
        }
        self.progress.add(items.len(), "nli");
        let path = format!("xnli/{split}-{}.tsv", language.code());
        let record = FileRecord::of("nli", path, &[language.code()], Some(split));
        self.folder.put(record, &text, items.len())
    }
}
