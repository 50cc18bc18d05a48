//! From sentences to training examples: frequent words subsampled, windows of random size, negatives
//! sampled.
//!
//! An example is a *window*: input rows, whose mean is the hidden vector, and target rows, each positive
//! or negative, that are predicted from it. Skip-gram predicts the centre word from each context word,
//! as the original program does (the opposite direction, which the paper describes, gives slightly
//! different neighbours); CBOW predicts it from all of them. With character n-grams the centre word is
//! the input and every context word a target, as in fastText.

use text::RandomStreams;

use super::subwords::NGramRows;
use super::{Architecture, Word2VecConfig};
use crate::random::{Alias, SplitMix64};
use crate::sentences::{END, IndexedSentences};

/// Words in a block: what one thread prepares at a time.
const BLOCK_WORDS: usize = 2048;
/// Targets after which a batch is full, at most.
const BATCH_TARGETS: usize = 1024;
/// How often the most frequent row may occur in a batch on average. Its updates do not see each other,
/// and their sum can overshoot: with a vocabulary of sixteen words and batches of
/// a thousand targets, CBOW diverges.
const TOUCHES: f64 = 8.0;
/// Marks a positive target.
pub(super) const TRUE: u32 = 1 << 31;

pub(super) struct Windows<'a> {
    tokens: &'a [u32],
    /// Where each block begins in the tokens, and the end of the last.
    blocks: Vec<usize>,
    /// How many words come before each block.
    before: Vec<u64>,
    /// The probability of keeping a word, as a share of 2^32.
    stays: Vec<u32>,
    negatives: Alias,
    /// Inputs and targets after which a batch is full.
    full: [usize; 2],
    subwords: Option<&'a NGramRows>,
    config: &'a Word2VecConfig,
    total: u64,
}

#[derive(Default)]
pub(super) struct WindowPlan {
    /// Rows of the input table.
    pub(super) inputs: Vec<u32>,
    /// Rows of the output table, [`TRUE`] added where true.
    pub(super) targets: Vec<u32>,
    /// For each window, where its inputs and its targets end.
    pub(super) windows: Vec<[u32; 2]>,
    /// For each batch, where its windows end, and its learning rate.
    pub(super) batches: Vec<(u32, f32)>,
    /// Words of text in the block.
    pub(super) words: u64,
    /// True targets.
    pub(super) examples: u64,
    /// Scratch: the words of a sentence that stayed.
    kept: Vec<u32>,
}

impl<'a> Windows<'a> {
    pub(super) fn new(
        sentences: &'a IndexedSentences,
        subwords: Option<&'a NGramRows>,
        config: &'a Word2VecConfig,
    ) -> Self {
        let counts = sentences.counts();
        let total = sentences.total();
        let weights: Vec<_> = counts.iter().map(|&n| (n as f64).powf(config.power)).collect();
        let (blocks, before) = cut(sentences.tokens());
        let subsample = config.subsample_among(counts.len());
        let stays: Vec<_> = counts.iter().map(|&n| stays(n, total, subsample)).collect();
        Self {
            tokens: sentences.tokens(),
            blocks,
            before,
            full: full(counts, &stays, &weights, config.negative),
            stays,
            negatives: Alias::new(&weights),
            subwords,
            config,
            total,
        }
    }

    pub(super) fn blocks(&self) -> usize {
        self.before.len()
    }

    /// The most targets that a batch can have.
    pub(super) fn most_targets(&self) -> usize {
        BATCH_TARGETS + 2 * self.config.window * (1 + self.config.negative)
    }

    pub(super) fn draw(&self, epoch: usize, block: usize, plan: &mut WindowPlan) {
        let chance = RandomStreams::new(self.config.seed, "word2vec: windows");
        let number = epoch as u64 * self.blocks() as u64 + block as u64;
        let mut random = SplitMix64::new(&chance, number);
        plan.clear();
        let mut seen = epoch as u64 * self.total + self.before[block];
        let mut kept = std::mem::take(&mut plan.kept);
        let tokens = &self.tokens[self.blocks[block]..self.blocks[block + 1]];
        for sentence in tokens.split(|&token| token == END) {
            kept.clear();
            kept.extend(sentence.iter().copied().filter(|&word| {
                let stays = self.stays[word as usize];
                stays == u32::MAX || random.next() as u32 <= stays
            }));
            for at in 0..kept.len() {
                self.window(&kept, at, &mut random, plan);
                if plan.in_batch().iter().zip(self.full).any(|(&count, full)| count >= full) {
                    plan.close_batch(self.lr(seen + plan.words));
                }
            }
            plan.words += sentence.len() as u64;
        }
        seen += plan.words;
        plan.close_batch(self.lr(seen));
        plan.kept = kept;
    }

    /// The learning rate, which decays linearly.
    fn lr(&self, seen: u64) -> f32 {
        let share = seen as f64 / (self.total as f64 * self.config.epochs as f64);
        let (first, last) = (f64::from(self.config.initial_lr()), f64::from(self.config.min_lr));
        (first - (first - last) * share).max(last.min(first)) as f32
    }

    fn window(&self, kept: &[u32], at: usize, random: &mut SplitMix64, plan: &mut WindowPlan) {
        let reach = 1 + random.below(self.config.window as u32) as usize;
        let neighbours = at.saturating_sub(reach)..kept.len().min(at + reach + 1);
        if neighbours.len() < 2 {
            return;
        }
        let others = neighbours.filter(|&other| other != at).map(|other| kept[other]);
        match (self.config.architecture, self.subwords) {
            (Architecture::SkipGram, None) => {
                for other in others {
                    plan.inputs.push(other);
                    self.target(kept[at], random, plan);
                    plan.close_window();
                }
            }
            (Architecture::SkipGram, Some(subwords)) => {
                plan.inputs.extend_from_slice(subwords.of(kept[at]));
                others.for_each(|other| self.target(other, random, plan));
                plan.close_window();
            }
            (Architecture::Cbow, _) => {
                plan.inputs.extend(others);
                self.target(kept[at], random, plan);
                plan.close_window();
            }
        }
    }

    /// A positive target and its negative samples. A negative that is the word itself is left out.
    fn target(&self, word: u32, random: &mut SplitMix64, plan: &mut WindowPlan) {
        plan.targets.push(word | TRUE);
        plan.examples += 1;
        for _ in 0..self.config.negative {
            let negative = self.negatives.draw(random);
            if negative != word {
                plan.targets.push(negative);
            }
        }
    }
}

impl WindowPlan {
    fn clear(&mut self) {
        self.inputs.clear();
        self.targets.clear();
        self.windows.clear();
        self.batches.clear();
        (self.words, self.examples) = (0, 0);
    }

    fn close_window(&mut self) {
        self.windows.push([self.inputs.len() as u32, self.targets.len() as u32]);
    }

    fn batched(&self) -> usize {
        self.batches.last().map_or(0, |&(end, _)| end as usize)
    }

    /// Inputs and targets that are in no batch yet.
    fn in_batch(&self) -> [usize; 2] {
        let [inputs, targets] = self.ends(self.batched());
        [self.inputs.len() - inputs, self.targets.len() - targets]
    }

    fn close_batch(&mut self, lr: f32) {
        if self.windows.len() > self.batched() {
            self.batches.push((self.windows.len() as u32, lr));
        }
    }

    /// Where inputs and targets end of the windows before this one.
    pub(super) fn ends(&self, window: usize) -> [usize; 2] {
        match window {
            0 => [0, 0],
            window => self.windows[window - 1].map(|end| end as usize),
        }
    }
}

/// Cuts tokens into blocks of whole sentences (a sentence longer than a block is cut too), and
/// counts the words before each.
fn cut(tokens: &[u32]) -> (Vec<usize>, Vec<u64>) {
    let (mut starts, mut before) = (vec![0], vec![0]);
    let (mut words, mut in_block) = (0, 0);
    for (at, &token) in tokens.iter().enumerate() {
        if token != END {
            words += 1;
            in_block += 1;
        }
        let full = in_block >= BLOCK_WORDS && (token == END || in_block >= 2 * BLOCK_WORDS);
        if full && at + 1 < tokens.len() {
            starts.push(at + 1);
            before.push(words);
            in_block = 0;
        }
    }
    starts.push(tokens.len());
    (starts, before)
}

/// When a batch is full, by the shares of the most frequent word among inputs and targets.
fn full(counts: &[u64], stays: &[u32], weights: &[f64], negative: usize) -> [usize; 2] {
    let most =
        |values: &[f64]| values.iter().copied().fold(0.0, f64::max) / values.iter().sum::<f64>();
    let kept: Vec<f64> =
        counts.iter().zip(stays).map(|(&count, &stays)| count as f64 * f64::from(stays)).collect();
    let (kept, drawn, negative) = (most(&kept), most(weights), negative as f64);
    let target = (kept + negative * drawn) / (1.0 + negative);
    [kept, target].map(|share| ((TOUCHES / share) as usize).clamp(1, BATCH_TARGETS))
}

/// Word2Vec's probability of keeping a word: `(√(f / sN) + 1) · sN / f`.
fn stays(count: u64, total: u64, sample: f64) -> u32 {
    if sample == 0.0 {
        return u32::MAX;
    }
    let allowed = sample * total as f64 / count as f64;
    let chance = (allowed.sqrt() + allowed).min(1.0);
    (chance * f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentences(text: &str) -> IndexedSentences {
        IndexedSentences::of_words(text.lines().map(|line| line.split(' ')), 1).unwrap()
    }

    fn drawn(text: &str, config: &Word2VecConfig) -> WindowPlan {
        let sentences = sentences(text);
        let windows = Windows::new(&sentences, None, config);
        let mut plan = WindowPlan::default();
        windows.draw(0, 0, &mut plan);
        plan
    }

    #[test]
    fn skip_gram_pairs_words_with_their_neighbours_within_a_sentence() {
        let config = Word2VecConfig {
            window: 1,
            negative: 0,
            subsample: Some(0.0),
            ..Word2VecConfig::default()
        };
        // Rows: a 0, b 1, c 2.
        let plan = drawn("a b c\na a\nb", &config);
        assert_eq!(plan.inputs, [1, 0, 2, 1, 0, 0]);
        let targets: Vec<_> = plan.targets.iter().map(|target| target - TRUE).collect();
        assert_eq!(targets, [0, 1, 1, 2, 0, 0]);
        assert_eq!(plan.windows, [1, 2, 3, 4, 5, 6].map(|end| [end, end]));
        assert_eq!((plan.batches.len(), plan.words), (1, 6));
    }

    #[test]
    fn cbow_tells_the_middle_from_its_neighbours() {
        let architecture = Architecture::Cbow;
        let config = Word2VecConfig {
            window: 1,
            negative: 3,
            subsample: Some(0.0),
            architecture,
            ..Word2VecConfig::default()
        };
        let plan = drawn("a b c", &config);
        assert_eq!(plan.inputs, [1, 0, 2, 1]);
        let middles = plan.targets.iter().filter(|&&target| target >= TRUE);
        assert_eq!(middles.map(|target| target - TRUE).collect::<Vec<_>>(), [0, 1, 2]);
        for window in 0..3 {
            let [start, end] = [plan.ends(window)[1], plan.ends(window + 1)[1]];
            let word = plan.targets[start] - TRUE;
            assert!(plan.targets[start + 1..end].iter().all(|&target| target != word));
        }
    }

    #[test]
    fn frequent_words_stay_as_often_as_word2vec_lets_them() {
        // f / N = 0.1, s = 0.001: (√100 + 1) · 0.01 = 0.11.
        let share = f64::from(stays(1000, 10_000, 1e-3)) / f64::from(u32::MAX);
        assert!((share - 0.11).abs() < 1e-6, "{share}");
        assert_eq!(stays(1, 10_000, 1e-3), u32::MAX);
        assert_eq!(stays(9_999, 10_000, 0.0), u32::MAX);
    }

    fn words_before(sentences: &IndexedSentences, at: usize) -> u64 {
        sentences.tokens()[..at].iter().filter(|&&token| token != END).count() as u64
    }

    #[test]
    fn blocks_cover_every_word_once_and_the_learning_rate_falls() {
        let text = "a b c d e f g h i j\n".repeat(900) + &"z ".repeat(9000);
        let sentences = sentences(text.trim_end());
        let config = Word2VecConfig { epochs: 2, ..Word2VecConfig::default() };
        let windows = Windows::new(&sentences, None, &config);
        assert!(windows.blocks() >= 6);
        let mut plan = WindowPlan::default();
        let words = |block| {
            assert_eq!(windows.before[block], words_before(&sentences, windows.blocks[block]));
            windows.draw(0, block, &mut plan);
            plan.words
        };
        assert_eq!((0..windows.blocks()).map(words).sum::<u64>(), sentences.total());
        assert_eq!(windows.lr(0), config.initial_lr());
        assert!((windows.lr(sentences.total()) - 0.01255).abs() < 1e-6);
        assert!((windows.lr(2 * sentences.total()) - 1e-4).abs() < 1e-9);
        windows.draw(0, 0, &mut plan);
        assert!(plan.batches.len() > 1);
        for (number, &(end, _)) in plan.batches.iter().enumerate() {
            let first = number.checked_sub(1).map_or(0, |last| plan.batches[last].0);
            let targets = plan.ends(end as usize)[1] - plan.ends(first as usize)[1];
            assert!(targets <= windows.most_targets());
        }
    }
}
