//! Inference pairs in XNLI's columns: `xnli/SPLIT-LANG.tsv`, line i the same item in every language.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::documents::scan;
use super::{FileRecord, Writer};
use crate::error::Error;
use crate::language::Language;
use crate::nli::{Item, Label, Sampler};
use crate::random::{Streams, shuffle};

/// How many draws in a row may bring nothing new before the search is given up.
const PATIENCE: usize = 5000;

impl Writer<'_> {
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
    fn items(&mut self, wanted: usize) -> Result<Vec<Item>, Error> {
        let sampler = Sampler { world: self.world, domain: &self.world.domains[0] };
        let streams = Streams::new(self.plan.config().seed, "nli");
        let first = &self.languages[0];
        let make = |index: u64| {
            let item = sampler.item(&mut streams.at(index))?;
            let hypothesis = first.say(&item.hypothesis.tree(self.world));
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
            let (what, key, found) = ("hypotheses", "nli", items.len());
            return Err(Error::Exhausted { what, key, wanted, found });
        }
        Ok(items)
    }

    /// The label of each line: every three in a row have all three, in random order.
    fn labels(&self, split: &str, size: usize) -> Vec<Label> {
        let mut rng = Streams::new(self.plan.config().seed, &format!("labels/{split}")).at(0);
        let mut labels = Vec::with_capacity(size + 2);
        while labels.len() < size {
            let mut three = Label::ALL;
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
        items: &[Item],
        labels: &[Label],
    ) -> Result<(), Error> {
        let mut text = String::new();
        for (item, &label) in items.iter().zip(labels) {
            language.write(&item.premise(label).tree(self.world), &mut text);
            text.push('\t');
            language.write(&item.hypothesis.tree(self.world), &mut text);
            let _ = writeln!(text, "\t{}", label.name());
        }
        self.progress.add(items.len(), "nli");
        let record = FileRecord {
            path: format!("xnli/{split}-{}.tsv", language.code()),
            kind: "nli".into(),
            languages: vec![language.code().to_owned()],
            split: Some(split.into()),
            ..Default::default()
        };
        self.folder.put(record, &text, items.len())
    }
}
