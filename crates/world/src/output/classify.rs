//! Single-sentence topic classification: `classify/SPLIT-LANG.tsv`, `sentence⇥label`, line i the same
//! sentence in every language.
//!
//! The label is the topic of the document that a sentence opens. Every label is as frequent as any
//! other, so that chance and the majority baseline are both one over the number of topics.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::documents::scan;
use super::parallel::words;
use super::{FileRecord, WorldWriter};
use crate::error::{self, Error};
use crate::grammar::{Discourse, Tree};
use crate::language::Language;
use crate::random::{NamedStreams, shuffle};

/// Shorter sentences have too few content words to show a topic.
const MIN_WORDS: usize = 4;
/// How many documents in a row may bring nothing new before the search is given up.
const PATIENCE: usize = 5000;

impl WorldWriter<'_> {
    /// Writes the three splits in every language; a world of one topic has nothing to classify.
    pub(super) fn classification(&mut self) -> Result<(), Error> {
        let config = self.plan.config();
        if config.meaning.topics < 2 {
            return Ok(());
        }
        let splits = config.classify.named();
        let labels = splits.map(|(split, size)| self.topic_labels(split, size));
        let mut wanted = vec![0; config.meaning.topics];
        labels.iter().flatten().for_each(|&topic| wanted[topic] += 1);
        let mut by_topic: Vec<_> =
            self.topic_sentences(&wanted)?.into_iter().map(Vec::into_iter).collect();
        for ((split, _), labels) in splits.into_iter().zip(labels) {
            let sentence = |&topic: &usize| by_topic[topic].next().expect("as many as wanted");
            let trees: Vec<Tree> = labels.iter().map(sentence).collect();
            for language in self.languages {
                self.labelled_sentences(split, language, &trees, &labels)?;
            }
        }
        Ok(())
    }

    /// The label of each line: every topic once, in random order, again and again.
    fn topic_labels(&self, split: &str, size: usize) -> Vec<usize> {
        let config = self.plan.config();
        let mut rng = NamedStreams::new(config.seed, &format!("classify-labels/{split}")).at(0);
        let mut labels = Vec::with_capacity(size + config.meaning.topics);
        while labels.len() < size {
            let mut topics: Vec<usize> = (0..config.meaning.topics).collect();
            shuffle(&mut rng, &mut topics);
            labels.extend(topics);
        }
        labels.truncate(size);
        labels
    }

    /// So many sentences of each topic, none twice, so that none of a test set was seen in training.
    fn topic_sentences(&mut self, wanted: &[usize]) -> Result<Vec<Vec<Tree>>, Error> {
        let total: usize = wanted.iter().sum();
        let (world, first) = (self.world, &self.languages[0]);
        let streams = NamedStreams::new(self.plan.config().seed, "classify");
        let make = |index: u64| {
            let topic = (index % wanted.len() as u64) as usize;
            let mut rng = streams.at(index);
            let scene = Discourse::about(world, &world.domains[0], topic, &mut rng);
            let mut tree = Tree::default();
            scene.sentence(&mut tree, &mut rng);
            let text = first.realize(&tree);
            (topic, tree, text)
        };
        let mut seen: HashSet<String> = HashSet::new();
        let mut sentences: Vec<Vec<Tree>> = vec![Vec::new(); wanted.len()];
        let (mut found, mut barren) = (0, 0);
        if total > 0 {
            scan(total, make, |(topic, tree, text)| {
                barren += 1;
                let is_wanted = sentences[topic].len() < wanted[topic];
                if is_wanted && words(&tree) >= MIN_WORDS && seen.insert(text) {
                    sentences[topic].push(tree);
                    found += 1;
                    barren = 0;
                }
                Ok(found < total && barren < PATIENCE)
            })?;
        }
        if found < total {
            return Err(error::exhausted("sentences with a topic", "classify", total, found));
        }
        Ok(sentences)
    }

    fn labelled_sentences(
        &mut self,
        split: &'static str,
        language: &Language,
        trees: &[Tree],
        labels: &[usize],
    ) -> Result<(), Error> {
        let mut text = String::new();
        for (tree, topic) in trees.iter().zip(labels) {
            language.realize_into(tree, &mut text);
            let _ = writeln!(text, "\ttopic{topic}");
        }
        self.progress.add(trees.len(), "classify");
        let path = format!("classify/{split}-{}.tsv", language.code());
        let record = FileRecord::of("classify", path, &[language.code()], Some(split));
        self.folder.put(record, &text, trees.len())
    }
}
