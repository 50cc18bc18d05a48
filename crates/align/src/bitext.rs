//! Parallel text as word ids: two sides, where sentence i of one translates sentence i of the other.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::input::BitextPreparation;
use crate::words::{WordCounter, WordIndex};

/// The most words that a sentence may have.
pub(crate) const LONGEST: usize = u16::MAX as usize - 1;

/// One side: its words, and its sentences as their ids.
#[derive(Debug)]
pub struct BitextSide {
    words: WordIndex,
    tokens: Vec<u32>,
    /// Where each sentence begins; one more for the end.
    starts: Vec<u32>,
}

impl BitextSide {
    /// The vocabulary.
    pub fn words(&self) -> &WordIndex {
        &self.words
    }

    /// How many sentences there are.
    pub fn sentences(&self) -> usize {
        self.starts.len() - 1
    }

    /// A sentence's ids.
    pub fn sentence(&self, index: usize) -> &[u32] {
        &self.tokens[self.start(index)..self.start(index + 1)]
    }

    /// All sentences' ids, one sentence after the other.
    pub fn tokens(&self) -> &[u32] {
        &self.tokens
    }

    pub(crate) fn start(&self, sentence: usize) -> usize {
        self.starts[sentence] as usize
    }

    pub(crate) fn length(&self, sentence: usize) -> usize {
        (self.starts[sentence + 1] - self.starts[sentence]) as usize
    }

    pub(crate) fn ids(&self) -> usize {
        self.words.ids()
    }
}

/// Sentence pairs.
#[derive(Debug)]
pub struct Bitext {
    source: BitextSide,
    target: BitextSide,
    preparation: BitextPreparation,
}

impl Bitext {
    /// Assigns ids to the words of sentence pairs, which are split at whitespace.
    pub fn new<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut block = PairBlock::default();
        pairs.into_iter().for_each(|(source, target)| block.push(source, target));
        let mut growing = BitextBuilder::learning();
        growing.add(&[block]).expect("text in memory is never too long");
        growing.finish(BitextPreparation::default())
    }

    /// The first of the two languages.
    pub fn source(&self) -> &BitextSide {
        &self.source
    }

    /// The second of the two languages.
    pub fn target(&self) -> &BitextSide {
        &self.target
    }

    /// How the text was preprocessed.
    pub fn preparation(&self) -> &BitextPreparation {
        &self.preparation
    }

    /// How many sentence pairs there are.
    pub fn len(&self) -> usize {
        self.source.sentences()
    }

    /// Whether there is no sentence pair.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[derive(Default)]
pub(crate) struct PairBlock {
    text: String,
    /// Where each source and then each target ends.
    ends: Vec<usize>,
}

impl PairBlock {
    pub(crate) fn push(&mut self, source: &str, target: &str) {
        for text in [source, target] {
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    pub(crate) fn size(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut from = 0;
        self.ends.chunks_exact(2).map(move |ends| {
            let pair = (&self.text[from..ends[0]], &self.text[ends[0]..ends[1]]);
            from = ends[1];
            pair
        })
    }
}

/// Builds a bitext. Blocks are split into words with ids of their own, in parallel; only each block's
/// list of word types is then processed in order.
pub(crate) struct BitextBuilder {
    sides: [SideBuilder; 2],
}

struct SideBuilder {
    numbers: IdAssignment,
    tokens: Vec<u32>,
    starts: Vec<u32>,
}

enum IdAssignment {
    Learned(WordCounter),
    Known(WordIndex),
}

/// One side of a block: its word types with their counts, and its sentences as indices into these.
#[derive(Default)]
struct BlockIds<'a> {
    ids: FxHashMap<&'a str, u32>,
    words: Vec<(&'a str, u64)>,
    tokens: Vec<u32>,
    lengths: Vec<u32>,
}

/// Text of more words than there are ids.
#[derive(Debug)]
pub(crate) struct TooManyTokens;

impl BitextBuilder {
    /// Starts with no word known.
    pub(crate) fn learning() -> Self {
        let growing = || IdAssignment::Learned(WordCounter::default());
        Self::with([growing(), growing()])
    }

    /// Starts with two vocabularies, to which nothing is added.
    pub(crate) fn knowing(source: &WordIndex, target: &WordIndex) -> Self {
        Self::with([source, target].map(|words| IdAssignment::Known(words.clone())))
    }

    fn with(numbers: [IdAssignment; 2]) -> Self {
        let side = |numbers| SideBuilder { numbers, tokens: Vec::new(), starts: vec![0] };
        Self { sides: numbers.map(side) }
    }

    pub(crate) fn add(&mut self, blocks: &[PairBlock]) -> Result<(), TooManyTokens> {
        let numbered: Vec<[BlockIds; 2]> = blocks.par_iter().map(BlockIds::both).collect();
        for block in &numbered {
            for (side, block) in self.sides.iter_mut().zip(block) {
                side.add(block)?;
            }
        }
        Ok(())
    }

    /// Orders ids by frequency, where the vocabulary is new.
    pub(crate) fn finish(self, preparation: BitextPreparation) -> Bitext {
        let [source, target] = self.sides.map(SideBuilder::finish);
        Bitext { source, target, preparation }
    }
}

impl SideBuilder {
    fn add(&mut self, block: &BlockIds) -> Result<(), TooManyTokens> {
        let ids: Vec<u32> = match &mut self.numbers {
            IdAssignment::Learned(growing) => {
                block.words.iter().map(|&(word, count)| growing.add(word, count)).collect()
            }
            IdAssignment::Known(words) => {
                block.words.iter().map(|(word, _)| words.id(word)).collect()
            }
        };
        if u32::try_from(self.tokens.len() + block.tokens.len()).is_err() {
            return Err(TooManyTokens);
        }
        self.tokens.extend(block.tokens.iter().map(|&token| ids[token as usize]));
        for length in &block.lengths {
            self.starts.push(self.starts.last().expect("begins with 0") + length);
        }
        Ok(())
    }

    fn finish(self) -> BitextSide {
        let Self { numbers, mut tokens, starts } = self;
        let words = match numbers {
            IdAssignment::Learned(growing) => {
                let (words, ids) = growing.finish();
                tokens.par_iter_mut().for_each(|token| *token = ids[*token as usize]);
                words
            }
            IdAssignment::Known(words) => words,
        };
        BitextSide { words, tokens, starts }
    }
}

impl<'a> BlockIds<'a> {
    fn both(block: &'a PairBlock) -> [Self; 2] {
        let mut sides = <[Self; 2]>::default();
        for (source, target) in block.pairs() {
            sides[0].push(source);
            sides[1].push(target);
        }
        sides
    }

    fn push(&mut self, sentence: &'a str) {
        let before = self.tokens.len();
        for word in sentence.split_ascii_whitespace() {
            let next = self.words.len() as u32;
            let id = *self.ids.entry(word).or_insert(next);
            if id == next {
                self.words.push((word, 0));
            }
            self.words[id as usize].1 += 1;
            self.tokens.push(id);
        }
        self.lengths.push((self.tokens.len() - before) as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_numbered_by_frequency() {
        let bitext = Bitext::new([("b a a", "x"), ("", "y x"), ("c\ta", "")]);
        assert_eq!(bitext.source().words().iter().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(bitext.source().sentence(0), [2, 1, 1]);
        assert_eq!(bitext.source().sentence(1), [0_u32; 0]);
        assert_eq!(bitext.source().sentence(2), [3, 1]);
        assert_eq!(bitext.target().sentence(1), [2, 1]);
        assert_eq!(bitext.target().words().id("z"), 3);
    }

    #[test]
    fn blocks_do_not_change_the_numbers() {
        let pairs = [("b a a", "x"), ("d y", "y x"), ("c a", "z"), ("y y", "x")];
        let whole = Bitext::new(pairs);
        let mut reading = BitextBuilder::learning();
        let blocks = pairs.map(|(source, target)| {
            let mut block = PairBlock::default();
            block.push(source, target);
            block
        });
        reading.add(&blocks).unwrap();
        let cut = reading.finish(BitextPreparation::default());
        assert_eq!(whole.source().tokens(), cut.source().tokens());
        assert_eq!(whole.target().words(), cut.target().words());
    }
}
