//! The vocabulary of one side of a parallel text, ordered by frequency.

use rustc_hash::FxHashMap;

/// The id of the null word, to which words without a counterpart are aligned.
pub(crate) const NULL: u32 = 0;

/// A vocabulary: words have the ids 1, 2, … by decreasing frequency; 0 is the null word, and the id
/// after the last word stands for all unknown words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordIndex {
    list: Vec<Box<str>>,
    ids: FxHashMap<Box<str>, u32>,
}

impl WordIndex {
    /// Assigns ids in this order.
    pub(crate) fn new(list: Vec<Box<str>>) -> Self {
        let ids = (NULL + 1..).zip(&list).map(|(id, word)| (word.clone(), id)).collect();
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

    /// The number of ids: words, the null word and the unknown one.
    pub(crate) fn ids(&self) -> usize {
        self.list.len() + 2
    }
}

/// Counts words in the order of their first occurrence.
#[derive(Default)]
pub(crate) struct WordCounter {
    ids: FxHashMap<Box<str>, u32>,
    counts: Vec<u64>,
}

impl WordCounter {
    /// Counts a word so many times; returns its provisional id.
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

    /// The vocabulary, and the final id of each provisional one. Words of equal frequency are in the
    /// order of their first occurrence.
    pub(crate) fn finish(self) -> (WordIndex, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.counts.len() as u32).collect();
        order.sort_by_key(|&id| std::cmp::Reverse(self.counts[id as usize]));
        let mut ids = vec![0; order.len()];
        for (id, &provisional) in (NULL + 1..).zip(&order) {
            ids[provisional as usize] = id;
        }
        let mut list = vec![Box::<str>::default(); order.len()];
        for (word, provisional) in self.ids {
            list[ids[provisional as usize] as usize - 1] = word;
        }
        (WordIndex::new(list), ids)
    }
}
