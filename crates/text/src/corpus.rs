//! A language's corpus as sentences: read once, preprocessed on all threads, deduplicated, sampled,
//! split into training and held-out parts, and passed on in the order of the text, whatever the number
//! of threads.
//!
//! Memory is bounded. Text is streamed in blocks; duplicates are recognised by 64-bit hashes in two
//! generations of fixed size; where a selection depends on the whole corpus (a sample, held-out
//! sentences), the preprocessed sentences wait in a temporary file while ranks are drawn.

use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Seek, Write};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::prepare::Preparer;
use crate::random::RandomStreams;
use crate::reader::{LineRules, SkipCounts, TextSource};
use crate::{Error, Result};
use files::At;

/// Raw text per block: large enough to keep a thread busy, small enough to hold a few.
const BLOCK_BYTES: usize = 1 << 20;

/// What is done with the temporary file of sentences; its folder is the path of messages.
const SPOOL: &str = "write a temporary file of sentences in (TMPDIR names another folder)";
const UNSPOOL: &str = "read a temporary file of sentences in";

/// Which sentences of a corpus are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// How many, and which, counted before any are held out.
    pub take: Subset,
    /// Drop duplicates. Exact for at least the last 14 million distinct sentences; a duplicate from
    /// farther back may stay, which bounds memory.
    pub distinct: bool,
    /// Sentences held out for development.
    pub dev: u64,
    /// Sentences held out for test.
    pub test: u64,
    /// Seeds the sample and the held-out sentences.
    pub seed: u64,
}

/// How many sentences of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Subset {
    /// All sentences.
    #[default]
    All,
    /// The first N.
    First(u64),
    /// A uniform random sample of N, in the order of the text.
    Sample(u64),
}

/// What a sentence is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Training.
    Train,
    /// Development.
    Dev,
    /// Test.
    Test,
}

terms::named!(Split { Train => "train", Dev => "dev", Test => "test" });

/// Consecutive preprocessed sentences.
#[derive(Debug, Default)]
pub struct SentenceBlock {
    text: String,
    ends: Vec<(usize, Split)>,
}

impl SentenceBlock {
    /// The sentences in order, each with what it is for.
    pub fn sentences(&self) -> impl Iterator<Item = (Split, &str)> {
        let mut start = 0;
        self.ends.iter().map(move |&(end, split)| {
            let sentence = &self.text[start..end];
            start = end;
            (split, sentence)
        })
    }

    pub(crate) fn push(&mut self, sentence: &str, split: Split) {
        self.text.push_str(sentence);
        self.ends.push((self.text.len(), split));
    }
}

/// Counts of what was read, as far as the corpus had to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorpusReport {
    /// Lines that held text, up to the one with the last sentence wanted.
    pub lines: u64,
    /// Sentences found in them, up to the last one wanted.
    pub sentences: u64,
    /// Sentences dropped because they came before.
    pub duplicates: u64,
    /// Sentences kept to train on, for development, for test.
    pub kept: [u64; 3],
    /// What a tolerant reader left out.
    pub skipped: SkipCounts,
}

/// How far reading has come.
#[derive(Clone, Copy, Debug)]
pub struct ReadProgress {
    /// Bytes on disk read so far.
    pub bytes: u64,
    /// Bytes on disk in all.
    pub total: u64,
}

/// Is called now and then with how far reading has come.
pub type ReadObserver<'a> = &'a mut dyn FnMut(ReadProgress);

/// Receives blocks of sentences, in order.
pub type BlockConsumer<'a> = &'a mut dyn FnMut(&[SentenceBlock]) -> Result<()>;

/// One language's text with everything that decides which sentences are read from it.
#[derive(Debug)]
pub struct Corpus {
    /// The files.
    pub source: TextSource,
    /// How lines are preprocessed.
    pub preparer: Preparer,
    /// Which lines are accepted.
    pub rules: LineRules,
    /// Which sentences are used.
    pub selection: Selection,
}

impl Corpus {
    /// Passes every selected sentence to `consume`, in the order of the text.
    pub fn read(
        &self,
        watch: ReadObserver<'_>,
        consume: BlockConsumer<'_>,
    ) -> Result<CorpusReport> {
        let report = if self.selection.needs_whole_corpus() {
            self.read_twice(watch, consume)?
        } else {
            self.read_once(watch, consume)?
        };
        if report.kept[0] == 0 {
            let names: Vec<_> = self.source.names().collect();
            let reason = format!("not one sentence of `{}`", self.source.language());
            return Err(Error::input(names.join(", "), reason, "give files that hold text"));
        }
        Ok(report)
    }

    /// Draws ranks while the sentences are written to a temporary file, then passes on the selected ones.
    fn read_twice(
        &self,
        watch: ReadObserver<'_>,
        consume: BlockConsumer<'_>,
    ) -> Result<CorpusReport> {
        let mut spool = Spool::new()?;
        let mut lottery = Lottery::new(self.selection);
        let total = self.source.size()?;
        // Each of the two passes is half of the progress.
        let mut first = |at: ReadProgress| watch(ReadProgress { bytes: at.bytes / 2, total });
        let mut report = self.read_once(&mut first, &mut |blocks| {
            for (_, sentence) in blocks.iter().flat_map(SentenceBlock::sentences) {
                lottery.enter();
                spool.push(sentence)?;
            }
            Ok(())
        })?;
        let written = spool.bytes.max(1);
        let drawn = lottery.draw(self.source.language())?;
        report.kept = [0; 3];
        spool.read(&drawn, &mut |blocks, bytes| {
            report.count_kept(blocks);
            consume(blocks)?;
            let share = bytes as f64 / written as f64;
            watch(ReadProgress { bytes: total / 2 + (share * total as f64 / 2.0) as u64, total });
            Ok(())
        })?;
        Ok(report)
    }

    fn read_once(
        &self,
        watch: ReadObserver<'_>,
        consume: BlockConsumer<'_>,
    ) -> Result<CorpusReport> {
        let total = self.source.size()?;
        let at_once = 2 * rayon::current_num_threads();
        let mut report = CorpusReport::default();
        let mut filter = SentenceFilter::new(self.selection);
        std::thread::scope(|scope| {
            let (sender, receiver) = sync_channel(at_once);
            scope.spawn(|| self.send_lines(sender));
            let mut more = true;
            while more && !filter.is_full() {
                let BlockQueue { blocks: raw, end } = receive(&receiver, at_once);
                let bytes = raw.last().map(|last| last.bytes);
                let hashes = self.selection.distinct;
                let prepared: Vec<_> =
                    raw.into_par_iter().map(|raw| raw.prepare(&self.preparer, hashes)).collect();
                // Block by block, so that text beyond the last selected sentence does not affect the
                // result, whether or not it was read already.
                let mut blocks = Vec::new();
                for block in prepared {
                    if filter.is_full() {
                        break;
                    }
                    report.skipped = block.skipped;
                    blocks.push(filter.keep(block, &mut report));
                }
                report.count_kept(&blocks);
                consume(&blocks)?;
                if let Some(bytes) = bytes {
                    watch(ReadProgress { bytes, total });
                }
                match end {
                    Some(Err(error)) if !filter.is_full() => return Err(error),
                    end => more = end.is_none(),
                }
            }
            // Dropping the receiver stops the reading thread.
            drop(receiver);
            Ok(report)
        })
    }

    /// Reads on its own thread, so that decompression overlaps with everything else.
    fn send_lines(&self, sender: SyncSender<Result<RawBlock>>) {
        let mut lines = self.source.lines(self.rules);
        loop {
            let mut block = RawBlock::default();
            let filled = block.fill(&mut lines);
            // The lines before a bad one count: they may be all that is selected.
            if sender.send(Ok(block)).is_err() {
                return;
            }
            match filled {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    // Where nobody receives any more, the error does not matter.
                    let _ = sender.send(Err(error));
                    return;
                }
            }
        }
    }
}

/// Blocks that were ready, and how the text ended, if it did.
struct BlockQueue {
    blocks: Vec<RawBlock>,
    end: Option<Result<()>>,
}

fn receive(receiver: &Receiver<Result<RawBlock>>, at_most: usize) -> BlockQueue {
    let mut blocks = Vec::new();
    let mut next = receiver.recv().map_err(|_| TryRecvError::Disconnected);
    let end = loop {
        match next {
            Ok(Ok(block)) => blocks.push(block),
            Ok(Err(error)) => break Some(Err(error)),
            Err(TryRecvError::Disconnected) => break Some(Ok(())),
            Err(TryRecvError::Empty) => break None,
        }
        if blocks.len() == at_most {
            break None;
        }
        next = receiver.try_recv();
    };
    BlockQueue { blocks, end }
}

#[derive(Default)]
struct RawBlock {
    text: String,
    ends: Vec<usize>,
    bytes: u64,
    skipped: SkipCounts,
}

impl RawBlock {
    /// Reads until the block is full; false at the end of the text.
    fn fill(&mut self, lines: &mut crate::reader::LineReader<'_>) -> Result<bool> {
        let mut more = Ok(true);
        while matches!(more, Ok(true)) && self.text.len() < BLOCK_BYTES {
            more = lines.next_sentence().map(|line| {
                if let Some(line) = line {
                    self.text.push_str(line);
                    self.ends.push(self.text.len());
                }
                line.is_some()
            });
        }
        self.bytes = lines.bytes_read();
        self.skipped = lines.skipped();
        more
    }

    fn prepare(self, preparer: &Preparer, with_hashes: bool) -> PreparedBlock {
        let mut hashed = PreparedBlock { skipped: self.skipped, ..PreparedBlock::default() };
        let mut start = 0;
        for end in self.ends {
            preparer.sentences(&self.text[start..end], |sentence| {
                hashed.block.push(sentence, Split::Train);
                if with_hashes {
                    hashed.hashes.push(hash(sentence));
                }
            });
            hashed.lines.push(hashed.block.ends.len());
            start = end;
        }
        hashed
    }
}

/// The first eight bytes of BLAKE3: among a hundred million sentences, the probability of any
/// collision is 1 in 4,000.
pub(crate) fn hash(sentence: &str) -> u64 {
    let hash = blake3::hash(sentence.as_bytes());
    u64::from_le_bytes(hash.as_bytes()[..8].try_into().expect("eight of 32 bytes"))
}

#[derive(Default)]
struct PreparedBlock {
    block: SentenceBlock,
    hashes: Vec<u64>,
    /// For each line, how many sentences there are up to its end.
    lines: Vec<usize>,
    skipped: SkipCounts,
}

/// Drops duplicates, and everything after the last selected sentence.
struct SentenceFilter {
    seen: Option<RecentHashes>,
    left: u64,
}

impl SentenceFilter {
    fn new(selection: Selection) -> Self {
        let left = if let Subset::First(count) = selection.take { count } else { u64::MAX };
        Self { seen: selection.distinct.then(RecentHashes::default), left }
    }

    fn is_full(&self) -> bool {
        self.left == 0
    }

    fn keep(&mut self, hashed: PreparedBlock, report: &mut CorpusReport) -> SentenceBlock {
        let sentences = hashed.block.ends.len();
        if self.seen.is_none() && (sentences as u64) < self.left {
            self.left -= sentences as u64;
            report.lines += hashed.lines.len() as u64;
            report.sentences += sentences as u64;
            return hashed.block;
        }
        let mut kept = SentenceBlock::default();
        let mut used = 0;
        for (index, (split, sentence)) in hashed.block.sentences().enumerate() {
            if self.left == 0 {
                break;
            }
            used += 1;
            if self.seen.as_mut().is_some_and(|seen| !seen.insert(hashed.hashes[index])) {
                report.duplicates += 1;
                continue;
            }
            kept.push(sentence, split);
            self.left -= 1;
        }
        let lines = match self.left {
            0 => hashed.lines.partition_point(|&end| end < used) + 1,
            _ => hashed.lines.len(),
        };
        report.lines += lines as u64;
        report.sentences += used as u64;
        kept
    }
}

impl CorpusReport {
    fn count_kept(&mut self, blocks: &[SentenceBlock]) {
        for &(_, split) in blocks.iter().flat_map(|block| &block.ends) {
            self.kept[split as usize] += 1;
        }
    }
}

/// Hashes of sentences, in two generations: when the younger is full it becomes the older, and the
/// older is dropped.
#[derive(Default)]
struct RecentHashes {
    younger: FxHashSet<u64>,
    older: FxHashSet<u64>,
}

/// As many as a hash table of 2^24 places holds before it doubles (150 MB).
const GENERATION: usize = (1 << 24) / 8 * 7;

impl RecentHashes {
    /// Whether the sentence is new.
    fn insert(&mut self, hash: u64) -> bool {
        if self.older.contains(&hash) || !self.younger.insert(hash) {
            return false;
        }
        if self.younger.len() >= GENERATION {
            self.older = std::mem::take(&mut self.younger);
        }
        true
    }
}

impl Selection {
    fn needs_whole_corpus(&self) -> bool {
        matches!(self.take, Subset::Sample(_)) || self.dev > 0 || self.test > 0
    }
}

/// Gives every sentence a random rank; the lowest ranks are sampled, and of these the lowest held out.
struct Lottery {
    selection: Selection,
    ranks: RandomStreams,
    entered: u64,
    /// The lowest ranks so far, as many as can matter.
    lowest: BinaryHeap<u64>,
    keep: u64,
}

impl Lottery {
    fn new(selection: Selection) -> Self {
        let held_out = selection.dev.saturating_add(selection.test);
        let keep = match selection.take {
            Subset::Sample(count) => count.max(held_out),
            _ => held_out,
        };
        let ranks = RandomStreams::new(selection.seed, "sentences");
        Self { selection, ranks, entered: 0, lowest: BinaryHeap::new(), keep }
    }

    fn enter(&mut self) {
        let rank = self.ranks.rank(self.entered);
        self.entered += 1;
        if (self.lowest.len() as u64) < self.keep {
            self.lowest.push(rank);
        } else if let Some(mut highest) = self.lowest.peek_mut()
            && rank < *highest
        {
            *highest = rank;
        }
    }

    fn draw(self, language: &str) -> Result<SplitRanks> {
        let Selection { take, dev, test, .. } = self.selection;
        let taken = if let Subset::Sample(count) = take { count } else { self.entered };
        if taken > self.entered {
            let there = self.entered;
            return Err(Error::setting(
                "sample_size",
                format!("a sample of {taken} sentences is asked for, and `{language}` has {there}"),
                "give more text, or ask for a smaller sample",
            ));
        }
        if dev.saturating_add(test) >= taken {
            return Err(Error::setting(
                "dev",
                format!(
                    "of {taken} sentences of `{language}`, dev = {dev} and test = {test} are to be held out"
                ),
                "lower these, take more sentences, or give more text",
            ));
        }
        let lowest = self.lowest.into_sorted_vec();
        let bound = |count: u64| count.checked_sub(1).map(|last| lowest[last as usize]);
        let sampled = matches!(take, Subset::Sample(_));
        Ok(SplitRanks {
            ranks: self.ranks,
            test: bound(test),
            dev: bound(test + dev),
            train: if sampled { bound(taken) } else { Some(u64::MAX) },
        })
    }
}

/// The highest rank of each split; no two sentences have the same rank.
struct SplitRanks {
    ranks: RandomStreams,
    test: Option<u64>,
    dev: Option<u64>,
    train: Option<u64>,
}

impl SplitRanks {
    fn split(&self, number: u64) -> Option<Split> {
        let rank = Some(self.ranks.rank(number));
        match () {
            () if rank <= self.test => Some(Split::Test),
            () if rank <= self.dev => Some(Split::Dev),
            () if rank <= self.train => Some(Split::Train),
            () => None,
        }
    }
}

/// Sentences in an anonymous temporary file, a line each.
struct Spool {
    writer: BufWriter<File>,
    bytes: u64,
}

/// Receives blocks read back from disk, with the bytes read so far.
type ConsumeSpooled<'a> = &'a mut dyn FnMut(&[SentenceBlock], u64) -> Result<()>;

impl Spool {
    fn new() -> Result<Self> {
        let file = tempfile::tempfile().at(std::env::temp_dir(), SPOOL)?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 18, file), bytes: 0 })
    }

    fn push(&mut self, sentence: &str) -> Result<()> {
        self.bytes += sentence.len() as u64 + 1;
        Ok(self
            .writer
            .write_all(sentence.as_bytes())
            .and_then(|()| self.writer.write_all(b"\n"))
            .at(std::env::temp_dir(), SPOOL)?)
    }

    fn read(self, drawn: &SplitRanks, consume: ConsumeSpooled<'_>) -> Result<()> {
        let file = self.writer.into_inner().map_err(|error| error.into_error());
        let mut file = file.at(std::env::temp_dir(), SPOOL)?;
        file.rewind().at(std::env::temp_dir(), UNSPOOL)?;
        let mut reader = BufReader::with_capacity(1 << 18, file);
        let (mut bytes, mut line, mut blocks) = (0, String::new(), vec![SentenceBlock::default()]);
        let at_once = 2 * rayon::current_num_threads();
        for number in 0.. {
            line.clear();
            let read = reader.read_line(&mut line).at(std::env::temp_dir(), UNSPOOL)?;
            if read == 0 {
                break;
            }
            bytes += read as u64;
            let Some(split) = drawn.split(number) else { continue };
            let block = blocks.last_mut().expect("there is always a block");
            block.push(line.trim_end_matches('\n'), split);
            if block.text.len() < BLOCK_BYTES {
                continue;
            }
            if blocks.len() == at_once {
                consume(&blocks, bytes)?;
                blocks.clear();
            }
            blocks.push(SentenceBlock::default());
        }
        consume(&blocks, bytes)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::HashSet;
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;
    use crate::prepare::Preparation;

    /// A corpus of the given lines, which are taken as prepared sentences.
    pub(crate) fn corpus(
        language: &str,
        text: &str,
        selection: Selection,
    ) -> (NamedTempFile, Corpus) {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let source = TextSource::new(language, &[file.path().display().to_string()]).unwrap();
        let preparer = Preparer::new(language, Preparation::none(), None).unwrap();
        (file, Corpus { source, preparer, rules: LineRules::default(), selection })
    }

    fn read(text: &str, selection: Selection) -> Result<(Vec<(Split, String)>, CorpusReport)> {
        let (_file, corpus) = corpus("en", text, selection);
        let mut sentences = Vec::new();
        let report = corpus.read(&mut |_| {}, &mut |blocks| {
            let all = blocks.iter().flat_map(SentenceBlock::sentences);
            sentences.extend(all.map(|(split, sentence)| (split, sentence.to_owned())));
            Ok(())
        })?;
        Ok((sentences, report))
    }

    fn numbered(count: usize) -> String {
        (0..count).map(|number| format!("sentence {number}\n")).collect()
    }

    #[test]
    fn order_is_kept_over_many_blocks() {
        let text: String = (0..60_000).map(|n| format!("{n} {}\n", "word ".repeat(20))).collect();
        let (sentences, report) = read(&text, Selection::default()).unwrap();
        assert_eq!(report.kept, [60_000, 0, 0]);
        for (number, (_, sentence)) in sentences.iter().enumerate() {
            assert_eq!(sentence.split(' ').next(), Some(number.to_string().as_str()));
        }
    }

    #[test]
    fn duplicates_go_and_the_first_stays() {
        let selection = Selection { distinct: true, ..Selection::default() };
        let (sentences, report) = read("a b\nc\na  b\nd\nc\n", selection).unwrap();
        let sentences: Vec<_> = sentences.iter().map(|(_, sentence)| sentence.as_str()).collect();
        assert_eq!(sentences, ["a b", "c", "d"]);
        assert_eq!((report.sentences, report.duplicates), (5, 2));
    }

    #[test]
    fn the_first_are_the_first() {
        let selection = Selection { take: Subset::First(3), ..Selection::default() };
        let (sentences, _) = read(&numbered(100), selection).unwrap();
        assert_eq!(sentences.len(), 3);
        assert_eq!(sentences[2].1, "sentence 2");
        let selection = Selection { take: Subset::First(300), ..selection };
        assert_eq!(read(&numbered(100), selection).unwrap().0.len(), 100);
    }

    #[test]
    fn what_lies_beyond_the_first_sentences_has_no_part_in_the_result() {
        let first = Selection { take: Subset::First(3), ..Selection::default() };
        // A bad line right after, some blocks after, and far beyond what is read ahead.
        for between in [0, 40_000, 400_000] {
            let (file, corpus) = corpus("en", "", first);
            let mut text = numbered(3 + between).into_bytes();
            text.extend_from_slice(b"\xff\n");
            std::fs::write(file.path(), text).unwrap();
            for _ in 0..5 {
                let report = corpus.read(&mut |_| {}, &mut |_| Ok(())).unwrap();
                assert_eq!((report.lines, report.sentences), (3, 3));
                assert_eq!(report.kept, [3, 0, 0]);
            }
        }
        let (_, report) = read("a\na\nb\nc\n", Selection { distinct: true, ..first }).unwrap();
        assert_eq!((report.lines, report.sentences, report.duplicates), (4, 4, 1));
    }

    #[test]
    fn an_error_before_the_last_sentence_wanted_is_an_error() {
        let selection = Selection { take: Subset::First(4), ..Selection::default() };
        let (file, corpus) = corpus("en", "", selection);
        std::fs::write(file.path(), b"one\ntwo\n\xff\nthree\nfour\n").unwrap();
        let error = corpus.read(&mut |_| {}, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains(":3: not UTF-8"), "{error}");
    }

    #[test]
    fn more_held_out_than_a_number_can_count_is_refused() {
        let selection = Selection { dev: u64::MAX, test: 1, ..Selection::default() };
        let error = read(&numbered(10), selection).unwrap_err().to_string();
        assert!(error.contains("to be held out"), "{error}");
    }

    #[test]
    fn a_sample_is_exact_seeded_spread_and_in_order() {
        let sample = |seed| {
            let selection = Selection { take: Subset::Sample(200), seed, ..Selection::default() };
            let (sentences, report) = read(&numbered(10_000), selection).unwrap();
            assert_eq!(report.kept, [200, 0, 0]);
            let number = |text: &str| text[9..].parse::<u64>().unwrap();
            sentences.iter().map(|(_, text)| number(text)).collect::<Vec<_>>()
        };
        let first = sample(1);
        assert_eq!(first, sample(1));
        assert_ne!(first, sample(2));
        assert!(first.is_sorted());
        let mean = first.iter().sum::<u64>() / 200;
        assert!((4_000..6_000).contains(&mean), "{mean}");
    }

    #[test]
    fn held_out_sentences_are_nowhere_else() {
        let selection =
            Selection { take: Subset::Sample(500), dev: 50, test: 70, seed: 3, distinct: true };
        let text = numbered(1_000) + &numbered(1_000);
        let (sentences, report) = read(&text, selection).unwrap();
        assert_eq!(report.kept, [380, 50, 70]);
        let distinct: HashSet<_> = sentences.iter().map(|(_, sentence)| sentence).collect();
        assert_eq!(distinct.len(), 500);
        let error = read(&numbered(499), selection).unwrap_err().to_string();
        assert!(
            error.contains("a sample of 500 sentences is asked for, and `en` has 499"),
            "{error}"
        );
        let all = Selection { take: Subset::All, ..selection };
        let error = read(&numbered(100), all).unwrap_err().to_string();
        assert!(error.contains("of 100 sentences"), "{error}");
    }

    #[test]
    fn nothing_is_found_twice_within_a_generation() {
        let mut seen = RecentHashes::default();
        assert!(seen.insert(1) && !seen.insert(1));
        seen.older = std::mem::take(&mut seen.younger);
        assert!(!seen.insert(1) && seen.insert(2));
    }

    #[test]
    fn an_error_in_the_text_comes_through() {
        let (file, corpus) = corpus("en", "good\n", Selection::default());
        std::fs::write(file.path(), b"good\n\xff\n").unwrap();
        let error = corpus.read(&mut |_| {}, &mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains(":2: not UTF-8"), "{error}");
    }
}
