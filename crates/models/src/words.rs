//! WordVectors of words from an encoder: rows of its embedding table, and means over all contexts.
//!
//! A word in context is the mean of its subwords; a word is the mean of its occurrences. Sums are kept
//! for chosen words only, so memory is bounded by their number whatever the corpus.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use tensor::Indices;
use text::{
    Corpus, LineRules, Preparation, Preparer, Selection, SentenceBlock, SentenceReader, Subset,
    SubwordEncoders, TextSource, Vocabulary, WordTokenizer,
};
use vectors::WordVectors;

use crate::error::{Error, Result};
use crate::pretrained::PretrainedModel;
use crate::states::{HiddenStates, for_each};

/// Sentences that are cut into words before they are encoded.
const AT_ONCE: usize = 4096;
/// Subwords of one word whose mean a device takes at once.
const LONGEST: usize = 256;

/// The words that are one subword of the vocabulary, most frequent first.
pub fn whole_words(model: &PretrainedModel, language: &str, most: usize) -> Result<Vec<String>> {
    Ok(words_and_ids(model, language, most)?.0)
}

/// The words that are one subword of the vocabulary, and their rows of the embedding table, most
/// frequent first.
pub fn embeddings(model: &PretrainedModel, language: &str, most: usize) -> Result<WordVectors> {
    let number = model.vocabulary.language(language)?;
    let (words, chosen) = words_and_ids(model, language, most)?;
    let rows = model.batch(number, [chosen.as_slice()]).tokens;
    let table = model.encoder.param(encoder::ParamRole::TokenEmbedding, Some(number));
    let table = model.params.value(table.expect("every encoder has a table of tokens"));
    let (dim, values) = (table.cols(), table.elements());
    let row = |&row: &u32| &values[row as usize * dim..(row as usize + 1) * dim];
    WordVectors::new(words, dim, rows.iter().flat_map(row).copied().collect())
}

/// The words that are one subword of the vocabulary, and these subwords' ids, most frequent first.
fn words_and_ids(
    model: &PretrainedModel,
    language: &str,
    most: usize,
) -> Result<(Vec<String>, Vec<u32>)> {
    let vocabulary = &model.vocabulary;
    let number = vocabulary.language(language)?;
    let counts = vocabulary.counts(number);
    let mut ids: Vec<u32> = vocabulary.language_ids(number).to_vec();
    // Nothing was counted for a vocabulary from elsewhere, whose order is often that of frequency.
    let counted = counts.iter().any(|&count| count > 0);
    ids.retain(|&id| (!counted || counts[id as usize] > 0) && !vocabulary.is_special(id));
    ids.sort_by_key(|&id| (std::cmp::Reverse(counts[id as usize]), id));
    let (mut words, mut chosen) = (Vec::new(), Vec::new());
    let mut seen = FxHashSet::default();
    for id in ids {
        if words.len() < most
            && let Some(word) = vocabulary.whole_word(language, id)
            && seen.insert(word.clone())
        {
            words.push(word);
            chosen.push(id);
        }
    }
    if words.is_empty() {
        let reason = format!("no word of `{language}` is one subword of the vocabulary");
        return Err(Error::input("the model", reason, "use the means over contexts instead"));
    }
    Ok((words, chosen))
}

/// Words as the means of their subwords' static vectors, and how many of them have a subword without one.
pub fn from_subwords(
    vocabulary: &Vocabulary,
    language: &str,
    words: &[String],
    subwords: &WordVectors,
) -> Result<(WordVectors, usize)> {
    let mut encoder = vocabulary.encoder(vocabulary.language(language)?);
    let dim = subwords.dim();
    let (mut found, mut values) = (Vec::new(), Vec::new());
    for word in words {
        let ids = encoder.encode_words([word.as_str()]).ids;
        let vector = |&id: &u32| vocabulary.subword(id).and_then(|subword| subwords.get(subword));
        let Some(vectors) = ids.iter().map(vector).collect::<Option<Vec<_>>>() else { continue };
        let sum = |col: usize| vectors.iter().map(|vector| vector[col]).sum::<f32>();
        values.extend((0..dim).map(|col| sum(col) / vectors.len() as f32));
        found.push(word.clone());
    }
    if found.is_empty() {
        let reason = format!("no word of `{language}` has a vector for all its subwords");
        let remedy = "learn the vectors from text tokenized with this model's vocabulary";
        return Err(Error::input("the vectors", reason, remedy));
    }
    let missing = words.len() - found.len();
    Ok((WordVectors::new(found, dim, values)?, missing))
}

/// The text of a language as it is cut into words for this model. Lines are split into sentences unless
/// `lines` says that each is one; at most `limit` sentences are read.
pub fn corpus(
    vocabulary: &Vocabulary,
    source: TextSource,
    lines: bool,
    limit: Option<u64>,
) -> Result<Corpus> {
    let language = source.language();
    let preparer = vocabulary.preparer(vocabulary.language(language)?);
    // Text that a tokenizer reads raw has no words until it is cut.
    let preparation = match preparer.preparation() {
        Preparation { words: WordTokenizer::Raw, .. } => Preparation::for_language(language),
        preparation => preparation,
    };
    let preparation = Preparation { split: preparation.split && !lines, ..preparation };
    let simplified = preparer.simplified().cloned().map(Arc::new);
    let take = limit.map_or(Subset::All, Subset::First);
    Ok(Corpus {
        preparer: Preparer::new(language, preparation, simplified)?,
        source,
        rules: LineRules::default(),
        selection: Selection { take, distinct: false, dev: 0, test: 0, seed: 0 },
    })
}

/// Reads a list of words, one a line, each once.
pub fn read_list(path: &Path) -> Result<Vec<String>> {
    let source = TextSource::new("words", &[path.display().to_string()])?;
    let mut lines = source.lines(LineRules::default());
    let mut words = Vec::new();
    let mut seen = FxHashSet::default();
    while let Some(line) = lines.next_line()? {
        if seen.insert(line.to_owned()) {
            words.push(line.to_owned());
        }
    }
    Ok(words)
}

/// What came of the vectors of words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordsResult {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// Words that have a vector.
    pub words: usize,
    /// Columns.
    pub dim: usize,
    /// Sentences that were encoded.
    pub sentences: Option<u64>,
    /// Words of the list that did not occur, or that have a subword without a static vector.
    pub missing: usize,
    /// The fingerprint of the weights.
    pub model: String,
}

/// The most frequent words of a corpus, the more frequent first.
pub fn frequent(
    corpus: &Corpus,
    most: usize,
    watch: text::ReadObserver<'_>,
) -> Result<Vec<String>> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    corpus.read(watch, &mut |blocks| {
        let of_blocks: Vec<_> = blocks.par_iter().map(counts_of_block).collect();
        for (word, more) in of_blocks.into_iter().flatten() {
            match counts.get_mut(word) {
                Some(count) => *count += more,
                None => _ = counts.insert(word.to_owned(), more),
            }
        }
        Ok(())
    })?;
    let mut words: Vec<(String, u64)> = counts.into_iter().collect();
    words.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    words.truncate(most);
    Ok(words.into_iter().map(|(word, _)| word).collect())
}

fn counts_of_block(block: &SentenceBlock) -> FxHashMap<&str, u64> {
    let mut counts = FxHashMap::default();
    for word in block.sentences().flat_map(|(_, sentence)| sentence.split(' ')) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// The means of chosen words at chosen layers, in the making.
pub struct ContextMeans {
    reader: SentenceReader,
    /// Tokenizers, one for each thread.
    encoders: SubwordEncoders,
    words: FxHashMap<String, u32>,
    layers: Vec<usize>,
    dim: usize,
    /// For each chosen layer: words x dim.
    sums: Vec<Vec<f64>>,
    counts: Vec<u64>,
    /// Sentences encoded so far.
    pub sentences: u64,
}

/// A segment of a sentence: its ids, and for each of its chosen words which one and where.
#[derive(Default)]
struct Segment {
    ids: Vec<u32>,
    words: Vec<(u32, Range<usize>)>,
}

impl ContextMeans {
    /// Nothing yet, of these words at these layers.
    pub fn new(
        model: &PretrainedModel,
        language: &str,
        words: &[String],
        layers: &[usize],
    ) -> Result<Self> {
        let dim = model.encoder.config().dim;
        let numbers = words.iter().enumerate().map(|(number, word)| (word.clone(), number as u32));
        let reader = model.reader(language)?;
        Ok(Self {
            encoders: model.vocabulary.encoders(reader.language()),
            reader,
            words: numbers.collect(),
            layers: layers.to_vec(),
            dim,
            sums: layers.iter().map(|_| vec![0.0; words.len() * dim]).collect(),
            counts: vec![0; words.len()],
            sentences: 0,
        })
    }

    /// Bytes that the sums take.
    pub fn bytes(words: usize, layers: usize, dim: usize) -> u64 {
        (words * layers * dim * size_of::<f64>()) as u64
    }

    /// Adds every occurrence in a corpus.
    pub fn add(
        &mut self,
        model: &mut PretrainedModel,
        corpus: &Corpus,
        watch: text::ReadObserver<'_>,
    ) -> Result<()> {
        let mut segments = Vec::new();
        corpus.read(watch, &mut |blocks| {
            let sentences: Vec<&str> =
                blocks.iter().flat_map(SentenceBlock::sentences).map(|(_, text)| text).collect();
            let split = |sentence: &&str| self.split(sentence);
            let split: Vec<Vec<Segment>> = sentences.par_iter().map(split).collect();
            for of_sentence in split {
                segments.extend(of_sentence);
                self.sentences += 1;
                if segments.len() >= AT_ONCE {
                    self.encode(model, &mut segments);
                }
            }
            Ok(())
        })?;
        self.encode(model, &mut segments);
        Ok(())
    }

    /// Splits a prepared sentence between words into segments that the model can read. A word of more
    /// subwords than that is represented by its first.
    fn split(&self, sentence: &str) -> Vec<Segment> {
        let mut segments = Vec::new();
        let words: Vec<&str> = sentence.split(' ').collect();
        let encoded = self.encoders.with(|encoder| encoder.encode_words(words.iter().copied()));
        let ends = encoded.firsts[1..].iter().copied().chain([encoded.ids.len() as u32]);
        let room = self.reader.max_subwords();
        let mut segment = Segment::default();
        for ((word, &first), end) in words.iter().zip(&encoded.firsts).zip(ends) {
            let (first, length) = (first as usize, ((end - first) as usize).min(room));
            if segment.ids.len() + length > room {
                self.keep(std::mem::take(&mut segment), &mut segments);
            }
            let start = segment.ids.len();
            segment.ids.extend(&encoded.ids[first..first + length]);
            if let Some(&number) = self.words.get(*word) {
                segment.words.push((number, start..start + length));
            }
        }
        self.keep(segment, &mut segments);
        segments
    }

    /// Keeps a segment that holds a chosen word.
    fn keep(&self, segment: Segment, segments: &mut Vec<Segment>) {
        if !segment.words.is_empty() {
            segments
                .push(Segment { ids: self.reader.with_special_tokens(&segment.ids), ..segment });
        }
    }

    fn encode(&mut self, model: &mut PretrainedModel, segments: &mut Vec<Segment>) {
        let ids =
            segments.iter().map(|segment| Ok::<_, std::convert::Infallible>(segment.ids.clone()));
        let language = self.reader.language();
        let Ok(()) = for_each(model.parts(), language, ids, |states| {
            let segments = &segments[states.first..states.first + states.sentences()];
            let add = if states.device.is_gpu() { add_by_word } else { add_states };
            add(states, segments, &self.layers, self.dim, &mut self.sums);
            Ok(())
        });
        for (word, _) in segments.iter().flat_map(|segment| &segment.words) {
            self.counts[*word as usize] += 1;
        }
        segments.clear();
    }

    /// The means at each chosen layer, of the words that occurred, and how many did not.
    pub fn finish(self) -> Result<(Vec<WordVectors>, usize)> {
        let mut words: Vec<(String, u32)> = self.words.into_iter().collect();
        words.sort_by_key(|&(_, number)| number);
        words.retain(|&(_, number)| self.counts[number as usize] > 0);
        if words.is_empty() {
            let remedy = "give other words, or more text (letters count as they are)";
            return Err(Error::input("the text", "none of the words occurs in it", remedy));
        }
        let missing = self.counts.len() - words.len();
        let mean = |sums: &Vec<f64>| {
            let row = |&(_, number): &(String, u32)| {
                let (number, count) = (number as usize, self.counts[number as usize] as f64);
                let sums = &sums[number * self.dim..(number + 1) * self.dim];
                sums.iter().map(move |&sum| (sum / count) as f32)
            };
            let values = words.iter().flat_map(row).collect();
            WordVectors::new(words.iter().map(|(word, _)| word.clone()).collect(), self.dim, values)
        };
        let means = self.sums.iter().map(mean).collect::<vectors::Result<Vec<_>>>()?;
        Ok((means, missing))
    }
}

/// Adds the occurrences of a batch to the sums, layers on all threads.
fn add_states(
    states: &HiddenStates<'_>,
    segments: &[Segment],
    layers: &[usize],
    dim: usize,
    sums: &mut [Vec<f64>],
) {
    let words = || {
        segments
            .iter()
            .enumerate()
            .flat_map(|(at, segment)| segment.words.iter().map(move |w| (at, w)))
    };
    let ranges: Vec<_> = words()
        .map(|(sentence, (_, rows))| {
            let start = states.inner(sentence).start;
            start + rows.start..start + rows.end
        })
        .collect();
    layers.par_iter().zip(sums).for_each(|(&layer, sums)| {
        let means = states.means(layer, &ranges);
        for ((_, (word, _)), mean) in words().zip(means.chunks_exact(dim)) {
            let sum = &mut sums[*word as usize * dim..(*word as usize + 1) * dim];
            sum.iter_mut().zip(mean).for_each(|(sum, &x)| *sum += f64::from(x));
        }
    });
}

/// The same where states are far away, on a GPU: means over all subwords that a word has in the batch are taken there, and only
/// these are read. Occurrences of a word have equally many subwords, so that is the mean of their means.
fn add_by_word(
    states: &HiddenStates<'_>,
    segments: &[Segment],
    layers: &[usize],
    dim: usize,
    sums: &mut [Vec<f64>],
) {
    let WordRows { rows, words, ranges } = WordRows::new(states, segments);
    layers.par_iter().zip(sums).for_each(|(&layer, sums)| {
        let means = states.device.selected_means(states.hidden[layer], &rows, &ranges);
        for (&(word, occurrences), mean) in words.iter().zip(means.chunks_exact(dim)) {
            let sum = &mut sums[word as usize * dim..(word as usize + 1) * dim];
            sum.iter_mut().zip(mean).for_each(|(sum, &x)| *sum += occurrences * f64::from(x));
        }
    });
}

/// The rows of a batch in the order of the words that they belong to.
struct WordRows {
    rows: Indices,
    /// For each range, its word, and for how many occurrences it stands.
    words: Vec<(u32, f64)>,
    /// Ranges of `rows`, of one word each.
    ranges: Vec<Range<usize>>,
}

impl WordRows {
    fn new(states: &HiddenStates<'_>, segments: &[Segment]) -> Self {
        let mut occurrences = Vec::new();
        for (sentence, segment) in segments.iter().enumerate() {
            let start = states.inner(sentence).start;
            let of_word =
                |(word, rows): &(u32, Range<usize>)| (*word, rows.len(), start + rows.start);
            occurrences.extend(segment.words.iter().map(of_word));
        }
        occurrences.sort_unstable();
        let (mut rows, mut words, mut ranges) = (Vec::new(), Vec::new(), Vec::new());
        for of_word in occurrences.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let (word, length, _) = of_word[0];
            let first = rows.len();
            rows.extend(of_word.iter().flat_map(|&(_, _, at)| at as u32..(at + length) as u32));
            for start in (first..rows.len()).step_by(LONGEST) {
                let range = start..rows.len().min(start + LONGEST);
                words.push((word, range.len() as f64 / length as f64));
                ranges.push(range);
            }
        }
        Self { rows: rows.into(), words, ranges }
    }
}

#[cfg(test)]
mod tests {
    use tensor::{Device, Spans};
    use text::Frame;

    use super::*;

    /// Sentences of 6, 3 and 600 subwords, in which one word has 600 occurrences and another ones of two subwords.
    #[test]
    fn sums_by_word_are_those_of_all_occurrences() {
        let device = Device::cpu(1).unwrap();
        let (dim, lengths) = (3, [6, 3, 600]);
        let segment = |words: Vec<(u32, Range<usize>)>| Segment { ids: Vec::new(), words };
        let segments = [
            segment(vec![(2, 0..2), (0, 2..3), (2, 4..6)]),
            segment(vec![(0, 2..3)]),
            segment((0..600).map(|at| (0, at..at + 1)).collect()),
        ];
        let tokens: usize = lengths.iter().map(|length| length + 2).sum();
        let value = |at: usize| (at * 7919 % 1009) as f32 / 1009.0 - 0.3;
        let hidden: Vec<f32> = (0..tokens * dim).map(value).collect();
        let hidden = device.tensor(tokens, dim, &hidden);
        let spans = Spans::of_lengths(lengths.map(|length| length + 2));
        let states = HiddenStates {
            first: 0,
            spans: &spans,
            frame: Frame(Some(0), Some(0)),
            dim,
            device: &device,
            hidden: vec![&hidden],
            output: None,
        };
        let [mut by_word, mut one_by_one] = [(); 2].map(|()| vec![vec![0.0; 3 * dim]]);
        add_by_word(&states, &segments, &[0], dim, &mut by_word);
        add_states(&states, &segments, &[0], dim, &mut one_by_one);
        for (sum, expected) in by_word[0].iter().zip(&one_by_one[0]) {
            assert!((sum - expected).abs() < 1e-4, "{sum} {expected}");
        }
        assert!(one_by_one[0][..dim].iter().all(|sum| *sum > 50.0), "{one_by_one:?}");
        assert_eq!(one_by_one[0][dim..2 * dim], [0.0; 3], "a word that does not occur");
        assert!(by_word[0][2 * dim..].iter().all(|sum| *sum != 0.0));
    }
}
