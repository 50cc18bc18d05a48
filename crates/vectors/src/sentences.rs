//! The training text of word vectors: the sentences of all languages as indices into one table of words.
//!
//! Words are ordered by decreasing frequency, as in every vector file. Rare words are removed before
//! windows are formed, as Word2Vec and GloVe do. The whole is kept in memory, four bytes a word.
//! Sentences are in the order of the text; those of several languages are interleaved, so that no
//! language comes last, when the learning rate is lowest.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use files::At;
use rustc_hash::FxHashMap;
use text::{Corpus, CorpusReport, ReadObserver, SentenceBlock, Split, TokenizedCorpus, Vocabulary};

use crate::{Error, Result};

/// Stands after the last word of a sentence.
pub(crate) const END: u32 = u32::MAX;

/// Sentences of words that occur often enough.
#[derive(Debug)]
pub struct IndexedSentences {
    words: Vec<String>,
    counts: Vec<u64>,
    /// The row of each word, and [`END`] after each sentence.
    tokens: Vec<u32>,
    total: u64,
    sentences: u64,
    cut: u64,
}

/// The unit that vectors are trained for.
#[derive(Clone, Copy, Debug)]
pub enum TokenUnit<'a> {
    /// The words of the preprocessed text.
    Words,
    /// The subwords of a vocabulary, such as an encoder's.
    Subwords(&'a Vocabulary),
}

impl IndexedSentences {
    /// Reads the training part of each corpus and keeps the words that occur `min_count` times over all.
    pub fn read(
        corpora: &[Corpus],
        tokens: TokenUnit<'_>,
        min_count: u64,
        watch: &mut dyn FnMut(&str, text::ReadProgress),
    ) -> Result<(Self, Vec<CorpusReport>)> {
        let mut collected = SentenceCollector::default();
        let mut reports = Vec::new();
        for corpus in corpora {
            let language = corpus.source.language();
            let mut watch = |at: text::ReadProgress| watch(language, at);
            reports.push(match tokens {
                TokenUnit::Words => collected.read_words(corpus, &mut watch)?,
                TokenUnit::Subwords(vocabulary) => {
                    collected.read_subwords(corpus, vocabulary, &mut watch)?
                }
            });
            collected.end_language();
        }
        if let TokenUnit::Subwords(vocabulary) = tokens {
            collected.name(vocabulary);
        }
        Ok((collected.finish(min_count)?, reports))
    }

    /// Reads the training part of corpora that were tokenised already, such as a pretrained
    /// encoder's own. Sentences are cut into segments of at most `max_tokens` tokens, as pretraining cuts
    /// its inputs: from the beginning, the last one shorter; rare words are dropped after the cut.
    pub fn of_tokenized(
        corpora: &[TokenizedCorpus],
        vocabulary: &Vocabulary,
        min_count: u64,
        max_tokens: Option<usize>,
    ) -> Result<Self> {
        let mut collected = SentenceCollector::default();
        let end = vocabulary.specials().end;
        for corpus in corpora {
            corpus.for_each_sentence(Split::Train, end, |sentence| {
                if !sentence.is_empty() {
                    collected.add_sentence(sentence, max_tokens);
                }
            })?;
            collected.end_language();
        }
        collected.name(vocabulary);
        collected.finish(min_count)
    }

    /// Reads the training sentences and subwords of a pretraining run: the folder of a model trained here,
    /// with its vocabulary and its tokenised corpora, cut as its inputs were (`batch.max_tokens`).
    pub fn of_run(run: &Path, min_count: u64, max_tokens: Option<usize>) -> Result<Self> {
        let vocabulary = Vocabulary::load(&run.join("vocabulary"))?;
        let shelf = run.join("corpora");
        let mut folders = Vec::new();
        for entry in std::fs::read_dir(&shelf).at(&shelf, "list the corpora of a run in")? {
            let entry = entry.at(&shelf, "list")?;
            // The name of an unfinished corpus begins with a dot.
            let unfinished = entry.file_name().to_string_lossy().starts_with('.');
            if !unfinished && entry.path().join("corpus.json").is_file() {
                folders.push(entry.path());
            }
        }
        // The order of entries in a folder is arbitrary.
        folders.sort();
        // Tokens that have rotted would be trained on as if they were text.
        let open = |folder: &PathBuf| {
            let corpus = TokenizedCorpus::open(folder, &vocabulary)?;
            corpus.verify()?;
            Ok(corpus)
        };
        let corpora = folders.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut languages = HashSet::new();
        if let Some(twice) = corpora.iter().find(|corpus| !languages.insert(corpus.language())) {
            let reason = format!(
                "{} holds two corpora of `{}`, and only one can be the training text",
                shelf.display(),
                twice.language_name()
            );
            return Err(Error::request(reason, "remove the other"));
        }
        Self::of_tokenized(&corpora, &vocabulary, min_count, max_tokens)
    }

    /// From sentences of words.
    pub fn of_words<'a, S>(sentences: impl IntoIterator<Item = S>, min_count: u64) -> Result<Self>
    where
        S: IntoIterator<Item = &'a str>,
    {
        let mut collected = SentenceCollector::default();
        for sentence in sentences {
            sentence.into_iter().for_each(|word| collected.add_word(word));
            collected.end();
        }
        collected.finish(min_count)
    }

    /// The words, by decreasing frequency.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// How often each word occurs.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// How many words there are in all sentences.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many sentences there are in the text.
    pub fn sentences(&self) -> u64 {
        self.sentences
    }

    /// How many of them were longer than an input of the run, and cut.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// Identifies the sentences.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for word in &self.words {
            hasher.update(word.as_bytes()).update(b"\n");
        }
        hasher.update(bytemuck::cast_slice(&self.tokens));
        hasher.finalize().to_hex().to_string()
    }

    pub(crate) fn tokens(&self) -> &[u32] {
        &self.tokens
    }
}

/// Sentences while they are read, words numbered as they come.
#[derive(Default)]
struct SentenceCollector {
    known: FxHashMap<Box<str>, u32>,
    names: Vec<String>,
    counts: Vec<u64>,
    tokens: Vec<u32>,
    /// Where the tokens of each language end.
    languages: Vec<usize>,
    sentences: u64,
    cut: u64,
}

impl SentenceCollector {
    fn read_words(&mut self, corpus: &Corpus, watch: ReadObserver<'_>) -> Result<CorpusReport> {
        corpus.read(watch, &mut |blocks| {
            for (split, sentence) in blocks.iter().flat_map(SentenceBlock::sentences) {
                if split == Split::Train {
                    sentence.split(' ').for_each(|word| self.add_word(word));
                    self.end();
                }
            }
            Ok(())
        })
    }

    fn read_subwords(
        &mut self,
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        watch: ReadObserver<'_>,
    ) -> Result<CorpusReport> {
        let language = vocabulary.language(corpus.source.language())?;
        let mut encoder = vocabulary.encoder(language);
        let mut subwords = Vec::new();
        corpus.read(watch, &mut |blocks| {
            for (split, sentence) in blocks.iter().flat_map(SentenceBlock::sentences) {
                if split == Split::Train {
                    subwords.clear();
                    encoder.encode(sentence, &mut subwords);
                    subwords.iter().for_each(|&subword| self.add(subword));
                    self.end();
                }
            }
            Ok(())
        })
    }

    fn add_word(&mut self, word: &str) {
        let number = match self.known.get(word) {
            Some(&number) => number,
            None => {
                let number = self.names.len() as u32;
                self.known.insert(word.into(), number);
                self.names.push(word.to_owned());
                number
            }
        };
        self.add(number);
    }

    fn add(&mut self, number: u32) {
        if self.counts.len() <= number as usize {
            self.counts.resize(number as usize + 1, 0);
        }
        self.counts[number as usize] += 1;
        self.tokens.push(number);
    }

    /// Adds a sentence in segments of at most so many tokens.
    fn add_sentence(&mut self, sentence: &[u32], max_tokens: Option<usize>) {
        let longest = max_tokens.unwrap_or(sentence.len()).max(1);
        for segment in sentence.chunks(longest) {
            segment.iter().for_each(|&token| self.add(token));
            self.tokens.push(END);
        }
        self.sentences += 1;
        self.cut += u64::from(sentence.len() > longest);
    }

    fn end(&mut self) {
        self.tokens.push(END);
        self.sentences += 1;
    }

    fn end_language(&mut self) {
        self.languages.push(self.tokens.len());
    }

    fn name(&mut self, vocabulary: &Vocabulary) {
        let name = |id: usize| vocabulary.subword(id as u32).unwrap_or_default().to_owned();
        self.names = (0..self.counts.len()).map(name).collect();
    }

    /// Numbers words by falling count (of equals, the one that came first) and drops the rare.
    fn finish(self, min_count: u64) -> Result<IndexedSentences> {
        let Self { mut names, counts, tokens, languages, sentences, cut, .. } = self;
        let mut tokens = if languages.len() > 1 { by_turns(&tokens, &languages) } else { tokens };
        let mut kept: Vec<u32> = (0..counts.len() as u32)
            .filter(|&number| counts[number as usize] >= min_count.max(1))
            .collect();
        kept.sort_by_key(|&number| std::cmp::Reverse(counts[number as usize]));
        check_size(&kept, &counts, min_count)?;
        let mut rows = vec![END; counts.len()];
        for (row, &number) in kept.iter().enumerate() {
            rows[number as usize] = row as u32;
        }
        tokens.retain_mut(|token| {
            if *token == END {
                return true;
            }
            *token = rows[*token as usize];
            *token != END
        });
        let words = kept.iter().map(|&number| std::mem::take(&mut names[number as usize]));
        let words = words.collect();
        let counts: Vec<u64> = kept.iter().map(|&number| counts[number as usize]).collect();
        let total = counts.iter().sum();
        Ok(IndexedSentences { words, counts, tokens, total, sentences, cut })
    }
}

/// The sentences of languages that end at these places, so that at any time the same share of each
/// has come.
fn by_turns(tokens: &[u32], ends: &[usize]) -> Vec<u32> {
    let starts = std::iter::once(&0).chain(ends);
    let parts: Vec<&[u32]> = starts.zip(ends).map(|(&start, &end)| &tokens[start..end]).collect();
    let mut come = vec![0; parts.len()];
    let mut mixed = Vec::with_capacity(tokens.len());
    let share = |part: usize, come: &[usize]| come[part] as f64 / parts[part].len() as f64;
    let unfinished = |come: &[usize]| {
        let parts = (0..parts.len()).filter(|&part| come[part] < parts[part].len());
        parts.min_by(|&a, &b| share(a, come).total_cmp(&share(b, come)))
    };
    while let Some(part) = unfinished(&come) {
        let rest = &parts[part][come[part]..];
        let end = rest.iter().position(|&token| token == END).map_or(rest.len(), |end| end + 1);
        mixed.extend_from_slice(&rest[..end]);
        come[part] += end;
    }
    mixed
}

/// Nothing can be learned of a word without another beside it.
fn check_size(kept: &[u32], counts: &[u64], min_count: u64) -> Result<()> {
    match kept.len() {
        0 => Err(Error::setting(
            "min_count",
            format!(
                "the vocabulary is empty: of {} different words none occurs {min_count} times",
                counts.len()
            ),
            "lower min_count, or give more text",
        )),
        1 => Err(Error::setting(
            "min_count",
            format!("only one word occurs {min_count} times, and a word alone has no neighbours"),
            "lower min_count, or give more text",
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, min_count: u64) -> Result<IndexedSentences> {
        IndexedSentences::of_words(text.lines().map(|line| line.split(' ')), min_count)
    }

    #[test]
    fn words_are_numbered_by_falling_count_and_the_rare_are_dropped() {
        let sentences = of("b a rare\na c b a\nc", 2).unwrap();
        assert_eq!(sentences.words(), ["a", "b", "c"]);
        assert_eq!(sentences.counts(), [3, 2, 2]);
        assert_eq!(sentences.tokens(), [1, 0, END, 0, 2, 1, 0, END, 2, END]);
        assert_eq!(sentences.total(), 7);
        assert_ne!(sentences.fingerprint(), of("b a rare\na c b a\nc", 1).unwrap().fingerprint());
    }

    /// Seven tokens in inputs of at most three: three, three, one. What follows is another sentence.
    #[test]
    fn sentences_are_cut_as_inputs_are() {
        let mut collected = SentenceCollector::default();
        collected.add_sentence(&[0, 1, 2, 3, 4, 5, 6], Some(3));
        collected.add_sentence(&[1, 2, 3], Some(3));
        assert_eq!(collected.tokens, [0, 1, 2, END, 3, 4, 5, END, 6, END, 1, 2, 3, END]);
        assert_eq!((collected.sentences, collected.cut), (2, 1));
        collected.tokens.clear();
        collected.add_sentence(&[0, 1, 2, 3, 4], None);
        assert_eq!(collected.tokens, [0, 1, 2, 3, 4, END]);
    }

    #[test]
    fn languages_take_turns_and_end_together() {
        let long: Vec<u32> = (0..40).flat_map(|word| [word, END]).collect();
        let short: Vec<u32> = (100..110).flat_map(|word| [word, word, END]).collect();
        let both = [&long[..], &short, &[]].concat();
        let mixed = by_turns(&both, &[long.len(), both.len(), both.len()]);
        // Nothing is lost, and each language keeps its order.
        let of = |keep: fn(u32) -> bool| {
            let sentences = mixed.split(|&token| token == END).filter(|words| !words.is_empty());
            sentences.filter(|words| keep(words[0])).map(|words| words[0]).collect::<Vec<_>>()
        };
        assert_eq!(mixed.len(), both.len());
        assert_eq!(of(|word| word < 100), (0..40).collect::<Vec<_>>());
        assert_eq!(of(|word| word >= 100), (100..110).collect::<Vec<_>>());
        // In every quarter of it, a quarter of each.
        for quarter in mixed.chunks(mixed.len().div_ceil(4)) {
            let words = quarter.iter().filter(|&&token| token != END);
            let few = words.filter(|&&word| word >= 100).count();
            assert!((4..=6).contains(&few), "{quarter:?}");
        }
    }

    #[test]
    fn too_few_words_are_refused() {
        assert!(of("a b c", 2).unwrap_err().to_string().contains("vocabulary is empty"));
        assert!(of("a a a", 1).unwrap_err().to_string().contains("only one word"));
    }
}
