//! A bitext indexed for one direction: the source by sentences, the target by word types.
//!
//! Given the translation probabilities, the posteriors of every target token are independent. So an
//! iteration goes through the target's *vocabulary*, and for each type through its occurrences: it then
//! needs only that type's translations, which fit in the cache, runs on one thread, and sums counts in
//! the order of the text, whatever the number of threads.

use rustc_hash::FxHashMap;

use crate::bitext::{Bitext, BitextSide};

/// Which side generates the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlignmentDirection {
    /// Each target word is linked to one source word or to none.
    Forward,
    /// Each source word is linked to one target word or to none.
    Reverse,
}

/// Sentence pairs of the same two lengths.
#[derive(Clone, Debug)]
pub(crate) struct LengthPair {
    /// Words that are generated (m).
    pub(crate) m: usize,
    /// Words that are given (n).
    pub(crate) n: usize,
    pub(crate) sentences: usize,
    /// The offset of this length pair's values, one for each j, among those of all.
    pub(crate) base: usize,
}

pub(crate) struct DirectionView<'a> {
    given: &'a BitextSide,
    explained: &'a BitextSide,
    shapes: Vec<LengthPair>,
    shape: Vec<u32>,
    /// Where each explained word's occurrences begin, by id; one more for the end.
    starts: Vec<u32>,
    /// The sentence of each occurrence, and its place there from 0.
    sentence: Vec<u32>,
    place: Vec<u16>,
}

/// One occurrence of an explained word.
pub(crate) struct Occurrence<'a> {
    pub(crate) given: &'a [u32],
    pub(crate) shape: &'a LengthPair,
    /// Its place, from 1.
    pub(crate) j: usize,
    /// Its place among all words of its side.
    pub(crate) at: usize,
}

/// Occurrences gathered together: their sentences are far apart in memory, and a short loop over several
/// overlaps the cache misses, where a long one over each would stall every time.
#[derive(Default)]
pub(crate) struct OccurrenceBatch {
    given: Vec<u32>,
    shapes: Vec<u32>,
    at: Vec<usize>,
}

const TOGETHER: usize = 32;

impl<'a> DirectionView<'a> {
    /// Sorts the explained side's words by what they are.
    pub(crate) fn new(bitext: &'a Bitext, direction: AlignmentDirection) -> Self {
        let (given, explained) = match direction {
            AlignmentDirection::Forward => (bitext.source(), bitext.target()),
            AlignmentDirection::Reverse => (bitext.target(), bitext.source()),
        };
        let (shape, shapes) = shapes(given, explained);
        let (starts, sentence, place) = occurrences(explained, given);
        Self { given, explained, shapes, shape, starts, sentence, place }
    }

    pub(crate) fn shapes(&self) -> &[LengthPair] {
        &self.shapes
    }

    /// The number of places j in all shapes.
    pub(crate) fn places(&self) -> usize {
        self.shapes.last().map_or(0, |shape| shape.base + shape.m)
    }

    /// The number of ids of the given side: words, the empty word and the unknown one.
    pub(crate) fn given_ids(&self) -> usize {
        self.given.ids()
    }

    /// The number of ids of the explained side.
    pub(crate) fn explained_ids(&self) -> usize {
        self.explained.ids()
    }

    pub(crate) fn explained_words(&self) -> usize {
        self.explained.words().len()
    }

    /// The number of explained words in the text, those of pairs with an empty side as well.
    pub(crate) fn explained_tokens(&self) -> usize {
        self.explained.tokens().len()
    }

    /// The number of explained words in the text that something is given for.
    pub(crate) fn tokens(&self) -> usize {
        self.sentence.len()
    }

    pub(crate) fn frequency(&self, word: usize) -> usize {
        (self.starts[word + 1] - self.starts[word]) as usize
    }

    /// Goes through a word's occurrences, in the order of the text.
    pub(crate) fn for_each_occurrence(
        &self,
        word: usize,
        fetched: &mut OccurrenceBatch,
        mut each: impl FnMut(Occurrence),
    ) {
        let range = self.starts[word] as usize..self.starts[word + 1] as usize;
        let sentences = self.sentence[range.clone()].chunks(TOGETHER);
        for (sentences, places) in sentences.zip(self.place[range].chunks(TOGETHER)) {
            self.fetch(sentences, fetched);
            let OccurrenceBatch { given, shapes, at } = &*fetched;
            let mut given = given.as_slice();
            for ((shape, &at), &place) in shapes.iter().zip(at).zip(places) {
                let shape = &self.shapes[*shape as usize];
                let (sentence, rest) = given.split_at(shape.n);
                given = rest;
                let (at, j) = (at + usize::from(place), usize::from(place) + 1);
                each(Occurrence { given: sentence, shape, j, at });
            }
        }
    }

    fn fetch(&self, sentences: &[u32], fetched: &mut OccurrenceBatch) {
        let OccurrenceBatch { given, shapes, at } = fetched;
        given.clear();
        shapes.clear();
        at.clear();
        for &sentence in sentences {
            let sentence = sentence as usize;
            given.extend_from_slice(self.given.sentence(sentence));
            shapes.push(self.shape[sentence]);
            at.push(self.explained.start(sentence));
        }
    }
}

/// A pair with an empty side has no shape; no occurrence leads to it.
const NO_SHAPE: u32 = u32::MAX;

fn shapes(given: &BitextSide, explained: &BitextSide) -> (Vec<u32>, Vec<LengthPair>) {
    let mut known: FxHashMap<(usize, usize), u32> = FxHashMap::default();
    let mut shapes: Vec<LengthPair> = Vec::new();
    let mut base = 0;
    let sentences = (0..given.sentences()).map(|s| {
        let (m, n) = (explained.length(s), given.length(s));
        if m == 0 || n == 0 {
            return NO_SHAPE;
        }
        let shape = *known.entry((m, n)).or_insert_with(|| {
            shapes.push(LengthPair { m, n, sentences: 0, base });
            base += m;
            shapes.len() as u32 - 1
        });
        shapes[shape as usize].sentences += 1;
        shape
    });
    (sentences.collect(), shapes)
}

/// Where each word's occurrences begin, and their sentences and places there, word by word.
fn occurrences(side: &BitextSide, given: &BitextSide) -> (Vec<u32>, Vec<u32>, Vec<u16>) {
    let whole = || (0..side.sentences()).filter(|&s| given.length(s) > 0);
    let mut starts = vec![0_u32; side.ids() + 1];
    for s in whole() {
        for &word in side.sentence(s) {
            starts[word as usize + 1] += 1;
        }
    }
    for word in 0..side.ids() {
        starts[word + 1] += starts[word];
    }
    let mut next = starts.clone();
    let total = starts[side.ids()] as usize;
    let (mut sentence, mut place) = (vec![0_u32; total], vec![0_u16; total]);
    for s in whole() {
        for (at, &word) in (0..).zip(side.sentence(s)) {
            let slot = next[word as usize] as usize;
            next[word as usize] += 1;
            sentence[slot] = s as u32;
            place[slot] = at;
        }
    }
    (starts, sentence, place)
}
