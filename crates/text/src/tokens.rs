//! Tokenised corpora on disk: built once, found again by what they were made from, and read where they are
//! needed. They are not mapped into memory: a file that is truncated under a map ends the process, and
//! batches need so little of it at a time that reading costs nothing that can be measured.
//!
//! A corpus is a folder: `train.bin`, `dev.bin` and `test.bin` hold token ids as little-endian
//! 32-bit numbers, each sentence followed by the end-of-sentence id; `counts.bin` holds how often
//! each id occurs in the training part; `corpus.json` says what it all is. Its name holds a hash
//! of the text, the vocabulary and the settings, so that a change in any of them makes another.

use std::fs::File;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use files::{At, NewFolder};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::corpus::{Corpus, CorpusReport, ReadObserver, Selection, SentenceBlock, Split};
use crate::prepare::Preparation;
use crate::reader::LineRules;
use crate::vocabulary::{LanguageObserver, SubwordEncoder, Vocabulary};
use crate::{Error, Result};

const MANIFEST: &str = "corpus.json";
const COUNTS: &str = "counts.bin";
const FORMAT: u32 = 2;
const CHANGED: &str = "was changed since it was written";
const PREPARE_AGAIN: &str = "remove the folder that it lies in, and it is made again from the text";
/// Tokens that are read at a time where all are.
const CHUNK: usize = 1 << 20;

#[cfg(target_endian = "big")]
compile_error!("token files are little-endian and are read as they are");

/// What a tokenised corpus was made from: equal values, equal tokens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CorpusOrigin {
    format: u32,
    language: String,
    text: String,
    vocabulary: String,
    preparation: Preparation,
    rules: LineRules,
    selection: Selection,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CorpusManifest {
    origin: CorpusOrigin,
    report: CorpusReport,
    /// Tokens to train on, for development, for test.
    tokens: [u64; 3],
    /// Hashes of the three files.
    hashes: [String; 3],
    #[serde(default)]
    counts: String,
    /// The hash of all the rest of this manifest.
    #[serde(default)]
    seal: String,
}

impl CorpusManifest {
    fn seal(&self) -> String {
        let unsealed = CorpusManifest { seal: String::new(), ..self.clone() };
        let json = serde_json::to_vec(&unsealed).expect("plain data");
        blake3::hash(&json).to_hex().to_string()
    }
}

/// A corpus as token ids on disk.
#[derive(Debug)]
pub struct TokenizedCorpus {
    folder: PathBuf,
    manifest: CorpusManifest,
    language: usize,
    splits: [TokenFile; 3],
    counts: Vec<u64>,
}

impl TokenizedCorpus {
    /// Finds the corpus under `shelf`, or tokenises it there. The flag says whether it was found.
    pub fn prepare(
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        shelf: &Path,
        watch: ReadObserver<'_>,
    ) -> Result<(Self, bool)> {
        Self::prepare_or_link(corpus, vocabulary, shelf, None, watch)
    }

    /// The same, but a corpus that lies under another shelf already is linked from there.
    pub fn prepare_or_link(
        corpus: &Corpus,
        vocabulary: &Vocabulary,
        shelf: &Path,
        other_shelf: Option<&Path>,
        watch: ReadObserver<'_>,
    ) -> Result<(Self, bool)> {
        let language = vocabulary.language(corpus.source.language())?;
        check_preparation(corpus, vocabulary.preparer(language).preparation())?;
        let origin = CorpusOrigin {
            format: FORMAT,
            language: corpus.source.language().to_owned(),
            text: corpus.source.fingerprint()?.to_hex().to_string(),
            vocabulary: vocabulary.fingerprint().to_owned(),
            preparation: corpus.preparer.preparation(),
            rules: corpus.rules,
            selection: corpus.selection,
        };
        let name = origin.folder_name();
        let folder = shelf.join(&name);
        let mut found = folder.join(MANIFEST).is_file();
        let elsewhere = other_shelf.map(|shelf| shelf.join(&name));
        if let Some(elsewhere) =
            elsewhere.filter(|folder| !found && folder.join(MANIFEST).is_file())
        {
            link(&elsewhere, &folder)?;
            found = true;
        }
        if !found {
            write(corpus, vocabulary, language, origin, &folder, watch)?;
        }
        let corpus = Self::open(&folder, vocabulary)?;
        if found {
            corpus.verify()?;
        }
        Ok((corpus, found))
    }

    /// Opens a corpus that was tokenised with this vocabulary, and refuses any other, as well as one
    /// whose manifest or counts were changed since they were written.
    pub fn open(folder: &Path, vocabulary: &Vocabulary) -> Result<Self> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).at(&path, "read the corpus's manifest")?;
        let manifest: CorpusManifest = serde_json::from_str(&text)
            .map_err(|error| Error::file(&path, error.to_string(), PREPARE_AGAIN))?;
        if manifest.origin.format != FORMAT {
            let reason = format!("is of format {}, not {FORMAT}", manifest.origin.format);
            return Err(Error::file(&path, reason, PREPARE_AGAIN));
        }
        if manifest.seal != manifest.seal() {
            return Err(Error::file(&path, CHANGED, PREPARE_AGAIN));
        }
        let what = format!("the corpus {}", folder.display());
        vocabulary.check_fingerprint(&manifest.origin.vocabulary, &what)?;
        let language = vocabulary.language(&manifest.origin.language)?;
        let open = |split: Split| {
            let path = folder.join(file_name(split));
            TokenFile::open(path, manifest.tokens[split as usize], vocabulary.len())
        };
        let splits = [open(Split::Train)?, open(Split::Dev)?, open(Split::Test)?];
        let counts = read_counts(&folder.join(COUNTS), vocabulary.len(), &manifest.counts)?;
        Ok(Self { folder: folder.to_owned(), manifest, language, splits, counts })
    }

    /// Reads every token, and refuses a corpus that was damaged since it was written.
    pub fn verify(&self) -> Result<()> {
        for split in Split::ALL {
            let mut hasher = blake3::Hasher::new();
            self.for_each_chunk(split, |tokens| {
                hasher.update_rayon(bytemuck::cast_slice(tokens));
            })?;
            if hasher.finalize().to_hex().as_str() != self.manifest.hashes[split as usize] {
                return Err(self.splits[split as usize].changed());
            }
        }
        Ok(())
    }

    /// The folder it lies in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The language's index in the vocabulary.
    pub fn language(&self) -> usize {
        self.language
    }

    /// The language's name.
    pub fn language_name(&self) -> &str {
        &self.manifest.origin.language
    }

    /// The fingerprint of the vocabulary it was made with.
    pub fn vocabulary(&self) -> &str {
        &self.manifest.origin.vocabulary
    }

    /// Identifies the corpus: text, vocabulary and settings.
    pub fn fingerprint(&self) -> String {
        self.manifest.origin.fingerprint()
    }

    /// How many tokens a part has, ends of sentences included.
    pub fn token_count(&self, split: Split) -> usize {
        self.splits[split as usize].tokens
    }

    /// Some tokens of a part, in which each sentence is followed by the end-of-sentence id.
    pub fn read(&self, split: Split, tokens: Range<usize>) -> Result<Vec<u32>> {
        let mut read = vec![0; tokens.len()];
        self.splits[split as usize].read(&mut read, tokens.start)?;
        Ok(read)
    }

    /// All tokens of a part.
    pub fn tokens(&self, split: Split) -> Result<Vec<u32>> {
        self.read(split, 0..self.token_count(split))
    }

    /// All tokens of a part, some at a time.
    fn for_each_chunk(&self, split: Split, mut each: impl FnMut(&[u32])) -> Result<()> {
        let file = &self.splits[split as usize];
        let mut buffer = vec![0; CHUNK.min(file.tokens)];
        for start in (0..file.tokens).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(file.tokens - start)];
            file.read(chunk, start)?;
            each(chunk);
        }
        Ok(())
    }

    /// All sentences of a part, without the end-of-sentence id `end`.
    pub fn for_each_sentence(
        &self,
        split: Split,
        end: u32,
        mut each: impl FnMut(&[u32]),
    ) -> Result<()> {
        // The beginning of a sentence whose end is in the next chunk.
        let mut begun: Vec<u32> = Vec::new();
        self.for_each_chunk(split, |mut tokens| {
            while let Some(at) = tokens.iter().position(|&token| token == end) {
                if begun.is_empty() {
                    each(&tokens[..at]);
                } else {
                    begun.extend_from_slice(&tokens[..at]);
                    each(&begun);
                    begun.clear();
                }
                tokens = &tokens[at + 1..];
            }
            begun.extend_from_slice(tokens);
        })?;
        if !begun.is_empty() {
            each(&begun);
        }
        Ok(())
    }

    /// Sentences of a part.
    pub fn sentences(&self, split: Split) -> u64 {
        self.manifest.report.kept[split as usize]
    }

    /// How often each id occurs in the training part, ends of sentences aside.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Counts of what was read.
    pub fn report(&self) -> &CorpusReport {
        &self.manifest.report
    }
}

/// One language's tokenised corpus.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenizedCorpusSummary {
    /// The language.
    pub language: String,
    /// The corpus's folder.
    pub folder: PathBuf,
    /// Whether it was found already tokenised.
    pub found: bool,
    /// The corpus's fingerprint.
    pub fingerprint: String,
    /// The fingerprint of its vocabulary.
    pub vocabulary: String,
    /// Counts of what was read.
    pub report: CorpusReport,
    /// Sentences for training, development and test.
    pub sentences: [u64; 3],
    /// Tokens for training, development and test, end-of-sentence tokens included.
    pub tokens: [usize; 3],
    /// The share of training tokens that are unknown.
    pub unknown: f64,
    /// The first training sentences, as subwords with spaces between.
    pub first: Vec<String>,
}

/// The result of tokenising corpora.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CorpusSummary {
    /// One for each language.
    pub corpora: Vec<TokenizedCorpusSummary>,
}

impl CorpusSummary {
    /// Tokenises corpora under `shelf`, or verifies those that are there already, and describes each by
    /// its first `show` sentences.
    pub fn prepare(
        corpora: &[Corpus],
        vocabulary: &Vocabulary,
        shelf: &Path,
        show: usize,
        observer: LanguageObserver<'_>,
    ) -> Result<Self> {
        let summarize = |corpus: &Corpus| {
            let mut watch = |at| observer(corpus.source.language(), at);
            let (corpus, found) = TokenizedCorpus::prepare(corpus, vocabulary, shelf, &mut watch)?;
            corpus.summary(vocabulary, found, show)
        };
        Ok(Self { corpora: corpora.iter().map(summarize).collect::<Result<_>>()? })
    }
}

impl TokenizedCorpus {
    fn summary(
        &self,
        vocabulary: &Vocabulary,
        found: bool,
        show: usize,
    ) -> Result<TokenizedCorpusSummary> {
        let specials = vocabulary.specials();
        let words: u64 = self.counts.iter().sum();
        let subwords = |ids: &[u32]| {
            let subwords = ids.iter().map(|&id| vocabulary.subword(id).unwrap_or_default());
            subwords.collect::<Vec<_>>().join(" ")
        };
        Ok(TokenizedCorpusSummary {
            language: self.language_name().to_owned(),
            folder: self.folder.clone(),
            found,
            fingerprint: self.fingerprint(),
            vocabulary: self.vocabulary().to_owned(),
            report: *self.report(),
            sentences: Split::ALL.map(|split| self.sentences(split)),
            tokens: Split::ALL.map(|split| self.token_count(split)),
            unknown: self.counts[specials.unknown as usize] as f64 / words.max(1) as f64,
            first: self
                .first_sentences(show, specials.end)?
                .iter()
                .map(|ids| subwords(ids))
                .collect(),
        })
    }

    /// The first training sentences, as far as the first chunk has them.
    fn first_sentences(&self, count: usize, end: u32) -> Result<Vec<Vec<u32>>> {
        if count == 0 {
            return Ok(Vec::new());
        }
        let tokens = self.read(Split::Train, 0..CHUNK.min(self.token_count(Split::Train)))?;
        Ok(tokens.split(|&id| id == end).take(count).map(<[u32]>::to_vec).collect())
    }
}

impl CorpusOrigin {
    fn fingerprint(&self) -> String {
        let json = serde_json::to_vec(self).expect("plain data");
        blake3::hash(&json).to_hex().to_string()
    }

    fn folder_name(&self) -> String {
        format!("{}-{}", self.language, &self.fingerprint()[..16])
    }
}

/// Makes a folder of the same files: links to them, or copies where the file system has none.
fn link(from: &Path, to: &Path) -> Result<()> {
    let draft = NewFolder::new(to)?;
    let names = Split::ALL.map(file_name).into_iter().chain([COUNTS.into(), MANIFEST.into()]);
    for name in names {
        let (old, new) = (from.join(&name), draft.path().join(&name));
        if std::fs::hard_link(&old, &new).is_err() {
            let mut writer = draft.create(&name)?;
            let mut file = File::open(&old).at(&old, "open")?;
            std::io::copy(&mut file, &mut writer).at(to.join(&name), "write")?;
            files::close(writer, &to.join(&name))?;
        }
    }
    Ok(draft.finish()?)
}

/// Text must be prepared as the vocabulary's was; only whether lines are split is free, since
/// some files come a sentence a line.
fn check_preparation(corpus: &Corpus, expected: Preparation) -> Result<()> {
    let found = Preparation { split: expected.split, ..corpus.preparer.preparation() };
    if found == expected {
        return Ok(());
    }
    Err(Error::request(
        format!("`{}` is prepared unlike the vocabulary's text", corpus.source.language()),
        "prepare it by the vocabulary's own preparer",
    ))
}

fn file_name(split: Split) -> String {
    format!("{}.bin", split.name())
}

fn write(
    corpus: &Corpus,
    vocabulary: &Vocabulary,
    language: usize,
    origin: CorpusOrigin,
    folder: &Path,
    watch: ReadObserver<'_>,
) -> Result<()> {
    let draft = NewFolder::new(folder)?;
    let mut writer = TokenWriter::new(&draft, vocabulary.len())?;
    let encoders = vocabulary.encoders(language);
    let end = vocabulary.specials().end;
    let report = corpus.read(watch, &mut |blocks| {
        let encode = |block| encoders.with(|encoder| encode_block(block, encoder, end));
        let encoded: Vec<_> = blocks.par_iter().map(encode).collect();
        encoded.iter().try_for_each(|tokens| writer.push(tokens))
    })?;
    writer.counts[end as usize] = 0;
    let counts = std::mem::take(&mut writer.counts);
    let (tokens, hashes) = writer.close()?;
    let counts: &[u8] = bytemuck::cast_slice(&counts);
    draft.write(COUNTS, counts)?;
    let counts = blake3::hash(counts).to_hex().to_string();
    let mut manifest =
        CorpusManifest { origin, report, tokens, hashes, counts, seal: String::new() };
    manifest.seal = manifest.seal();
    let json = serde_json::to_string_pretty(&manifest).expect("plain data");
    draft.write(MANIFEST, json.as_bytes())?;
    match draft.finish() {
        // Another process made the same corpus meanwhile; its result is identical.
        Err(_) if folder.join(MANIFEST).is_file() => Ok(()),
        finished => Ok(finished?),
    }
}

fn encode_block(block: &SentenceBlock, encoder: &mut SubwordEncoder, end: u32) -> [Vec<u32>; 3] {
    let mut tokens: [Vec<u32>; 3] = Default::default();
    for (split, sentence) in block.sentences() {
        let out = &mut tokens[split as usize];
        encoder.encode(sentence, out);
        out.push(end);
    }
    tokens
}

struct TokenWriter {
    files: [(std::io::BufWriter<File>, blake3::Hasher, u64); 3],
    /// The paths that they will have, for messages.
    shown: [PathBuf; 3],
    counts: Vec<u64>,
}

impl TokenWriter {
    fn new(draft: &NewFolder, size: usize) -> Result<Self> {
        let open = |split| -> Result<_> {
            Ok((draft.create(&file_name(split))?, blake3::Hasher::new(), 0))
        };
        let files = [open(Split::Train)?, open(Split::Dev)?, open(Split::Test)?];
        let shown = Split::ALL.map(|split| draft.shown(&file_name(split)));
        Ok(Self { files, shown, counts: vec![0; size] })
    }

    fn push(&mut self, tokens: &[Vec<u32>; 3]) -> Result<()> {
        tokens[0].iter().for_each(|&id| self.counts[id as usize] += 1);
        for (((file, hasher, count), shown), tokens) in
            self.files.iter_mut().zip(&self.shown).zip(tokens)
        {
            let bytes = bytemuck::cast_slice(tokens);
            file.write_all(bytes).at(shown, "write")?;
            hasher.update(bytes);
            *count += tokens.len() as u64;
        }
        Ok(())
    }

    fn close(self) -> Result<([u64; 3], [String; 3])> {
        let mut tokens = [0; 3];
        let mut hashes: [String; 3] = Default::default();
        for (at, (file, hasher, count)) in self.files.into_iter().enumerate() {
            files::close(file, &self.shown[at])?;
            tokens[at] = count;
            hashes[at] = hasher.finalize().to_hex().to_string();
        }
        Ok((tokens, hashes))
    }
}

fn read_counts(path: &Path, size: usize, hash: &str) -> Result<Vec<u64>> {
    let bytes = std::fs::read(path).at(path, "read the counts")?;
    if bytes.len() != size * 8 {
        let reason = format!("has {} bytes, not {}", bytes.len(), size * 8);
        return Err(Error::file(path, reason, PREPARE_AGAIN));
    }
    if blake3::hash(&bytes).to_hex().as_str() != hash {
        return Err(Error::file(path, CHANGED, PREPARE_AGAIN));
    }
    let count = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    Ok(bytes.chunks_exact(8).map(count).collect())
}

#[derive(Debug)]
struct TokenFile {
    path: PathBuf,
    file: File,
    tokens: usize,
    /// Entries of the vocabulary: every id is below.
    entries: usize,
}

impl TokenFile {
    fn open(path: PathBuf, tokens: u64, entries: usize) -> Result<Self> {
        let file = File::open(&path).at(&path, "open")?;
        let length = file.metadata().at(&path, "look at")?.len();
        match usize::try_from(tokens) {
            Ok(tokens) if Some(length) == (tokens as u64).checked_mul(4) => {
                Ok(Self { path, file, tokens, entries })
            }
            _ => {
                let reason = format!("has {length} bytes, and {tokens} tokens are promised");
                Err(Error::file(&path, reason, PREPARE_AGAIN))
            }
        }
    }

    /// Fills `tokens` with those from `start` on, and refuses ids that the vocabulary has not.
    fn read(&self, tokens: &mut [u32], start: usize) -> Result<()> {
        let bytes = bytemuck::cast_slice_mut(tokens);
        match files::read_exact_at(&self.file, bytes, start as u64 * 4) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                let reason = "was truncated while it was in use";
                return Err(Error::file(&self.path, reason, PREPARE_AGAIN));
            }
            read => read.at(&self.path, "read")?,
        }
        let largest = tokens.iter().copied().max();
        match largest.is_some_and(|id| id as usize >= self.entries) {
            true => Err(self.changed()),
            false => Ok(()),
        }
    }

    fn changed(&self) -> Error {
        Error::file(&self.path, CHANGED, PREPARE_AGAIN)
    }
}
