//! The words of one side of a parallel text, numbered from the most frequent on.

use rustc_hash::FxHashMap;

/// The id of the empty word, to which words without a counterpart are linked.
pub(crate) const EMPTY: u32 = 0;

/// A vocabulary: words have the ids 1, 2, … by falling frequency; 0 is the empty word, and the id
/// after the last word stands for all that are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordIndex {
    list: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, u32>,
}

impl WordIndex {
    /// Numbers words in this order.
    pub(crate) fn new(list: Vec<Box<str>>) -> Self {
        let ids = (EMPTY + 1..).zip(&list).map(|(id, word)| (word.clone(), id)).collect();
        Self { list, ids }
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there is no word.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The words, the most frequent first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|word| &**word)
    }

    /// A word's id; that of the unknown word where there is no such word.
    pub fn id(&self, word: &str) -> u32 {
        self.ids.get(word).copied().unwrap_or(self.unknown())
    }

    /// The id of all unknown words.
    pub fn unknown(&self) -> u32 {
        self.list.len() as u32 + 1
    }

    /// The number of ids: words, the empty word and the unknown one.
    pub(crate) fn ids(&self) -> usize {
        self.list.len() + 2
    }
}

/// Words as they come by, with their numbers of occurrences.
#[derive(Default)]
pub(crate) struct WordCounter {
    ids: FxHashMap<Box<str>, u32>,
    counts: Vec<u64>,
}

impl WordCounter {
    /// The word's provisional number; it came by so often.
    pub(crate) fn add(&mut self, word: &str, count: u64) -> u32 {
        let id = match self.ids.get(word) {
            Some(&id) => id,
            None => {
                self.ids.insert(word.into(), self.counts.len() as u32);
                self.counts.push(0);
                self.counts.len() as u32 - 1
            }
        };
        self.counts[id as usize] += count;
        id
    }

    /// The vocabulary, and the id of each provisional number. Among words of one frequency the
    /// first seen comes first.
    pub(crate) fn finish(self) -> (WordIndex, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        order.sort_by_key(|&id| std::cmp::Reverse(self.counts[id as usize]));
        let mut ids = vec![0; order.len()];
        for (id, &provisional) in (EMPTY + 1..).zip(&order) {
            ids[provisional as usize] = id;
        }
        let mut list = vec![Box::<str>::default(); order.len()];
        for (word, provisional) in self.ids {
            list[ids[provisional as usize] as usize - 1] = word;
        }
        (WordIndex::new(list), ids)
    }
}
