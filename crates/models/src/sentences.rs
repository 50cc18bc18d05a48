//! Files of sentences, and the vectors of sentences at every layer.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrays::{Matrix, Stack, StackWriter};
use files::{At, NewFolder};
use serde::{Deserialize, Serialize};
use terms::RowCounts;
use text::{EncodedSentence, Frame, LineRules, TextSource, TsvColumns, UnknownCounts};

use crate::error::{Error, Result};
use crate::parallel::{ParallelSide, distinct};
use crate::pretrained::PretrainedModel;
use crate::saved::{SENTENCES, STATES, SavedLine};
use crate::states::for_each_until;

/// The sentences of a text, one a line; of `.tsv` files those of some columns. A line without text is
/// refused: it would have no vector, and the lines of a translation would no longer belong to one another.
pub fn lines(source: &TextSource) -> impl Iterator<Item = Result<String>> + '_ {
    // Raw, since white space at the start of a line may be the end of an empty column.
    let mut lines = source.raw_lines(LineRules::default());
    // A blank line; at the end of a file it is none.
    let mut gap: Option<(String, u64)> = None;
    std::iter::from_fn(move || {
        loop {
            let sentence = match lines.next_sentence() {
                Ok(sentence) => sentence?.trim().to_owned(),
                Err(error) => return Some(Err(error)),
            };
            if lines.line_is_blank() {
                gap.get_or_insert_with(|| (lines.name().to_owned(), lines.number()));
                continue;
            }
            let gap = gap.take().filter(|(file, _)| file == lines.name());
            let here = || (lines.name().to_owned(), lines.number());
            let Some((file, line)) = gap.or_else(|| sentence.is_empty().then(here)) else {
                return Some(Ok(sentence));
            };
            return Some(Err(no_text(format!("{file}:{line}"))));
        }
    })
}

/// The source of files of sentences.
pub fn open(files: &[String], columns: &TsvColumns) -> Result<TextSource> {
    Ok(TextSource::new("text", files)?.with_columns(columns))
}

/// Parallel sentences, encoded: row i of one side belongs to row i of the other.
pub struct EncodedPairs {
    /// The mean vectors of each side's sentences at each layer: rows x dim.
    pub stacks: [Stack; 2],
    /// The sentences that these rows are of.
    pub sides: [ParallelSide; 2],
    /// Tokens of each sentence, without special tokens.
    pub lengths: [Vec<u32>; 2],
    /// The numbers of the rows, as they were read.
    pub rows: Vec<usize>,
    /// How many rows there were, and what became of them.
    pub counts: RowCounts,
}

/// Encodes parallel sentences, each side by its model: the mean vector of every sentence at each of some
/// layers of that model. Rows that equal an earlier one on both sides are left out, and so are those of which a side is
/// longer than its model reads. `models` are one for both sides, or one for each.
pub fn encode_pairs(
    models: &mut [PretrainedModel],
    texts: &[ParallelSide; 2],
    layers: [&[usize]; 2],
    mut progress: impl FnMut(&ParallelSide) + Send,
) -> Result<EncodedPairs> {
    let last = models.len() - 1;
    let distinct = distinct(texts);
    let mut tokens = Vec::new();
    for (side, text) in texts.iter().enumerate() {
        tokens.push(tokenize(&models[side.min(last)], text, &distinct)?);
    }
    let fits = |&at: &usize| tokens.iter().all(|side| !side[at].truncated);
    let used: Vec<usize> = (0..distinct.len()).filter(fits).collect();
    let counts = RowCounts {
        rows: texts[0].lines.len(),
        repeated: texts[0].lines.len() - distinct.len(),
        too_long: distinct.len() - used.len(),
        used: used.len(),
    };
    if used.is_empty() {
        let reason = format!("none of its {} rows fits both models", counts.rows);
        return Err(Error::input(&texts[0].file, reason, "give shorter sentences"));
    }
    let rows: Vec<usize> = used.iter().map(|&at| distinct[at]).collect();
    let sides = [texts[0].select(&rows), texts[1].select(&rows)];
    let (mut stacks, mut lengths) = (Vec::new(), Vec::new());
    for (side, text) in sides.iter().enumerate() {
        progress(text);
        let ids: Vec<&[u32]> = used.iter().map(|&at| tokens[side][at].ids.as_slice()).collect();
        let model = &mut models[side.min(last)];
        let frame = model.vocabulary.frame();
        lengths.push(ids.iter().map(|ids| (ids.len() - frame.count()) as u32).collect());
        let number = model.sentences(&text.language)?.language();
        let matrices = pooled(model, number, &ids, layers[side])?;
        let layers = layers[side].iter().copied().zip(matrices).collect();
        stacks.push(Stack::numbered(&text.file, layers));
    }
    let stacks = stacks.try_into().expect("two sides");
    let lengths = lengths.try_into().expect("two sides");
    Ok(EncodedPairs { stacks, sides, lengths, rows, counts })
}

/// The mean vector of every sentence of a text at each of some layers (sentences x dim), and how many sentences are longer
/// than the model reads and were truncated.
///
/// # Errors
/// Where a line has no text, or the model does not have the language.
pub fn mean_vectors(
    model: &mut PretrainedModel,
    side: &ParallelSide,
    layers: &[usize],
) -> Result<(Vec<Matrix>, usize)> {
    let rows: Vec<usize> = (0..side.lines.len()).collect();
    let tokens = tokenize(model, side, &rows)?;
    let truncated = tokens.iter().filter(|sentence| sentence.truncated).count();
    let ids: Vec<&[u32]> = tokens.iter().map(|sentence| sentence.ids.as_slice()).collect();
    let language = model.sentences(&side.language)?.language();
    Ok((pooled(model, language, &ids, layers)?, truncated))
}

/// Some rows of a side as token ids.
fn tokenize(
    model: &PretrainedModel,
    side: &ParallelSide,
    rows: &[usize],
) -> Result<Vec<EncodedSentence>> {
    let mut reader = model.sentences(&side.language)?;
    let tokenize = |&row: &usize| match side.lines[row].as_str() {
        "" => Err(no_text(side.place(row))),
        sentence => reader.sentence(sentence),
    };
    rows.iter().map(tokenize).collect()
}

/// The vector of every sentence at each of some layers: sentences x columns.
fn pooled(
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[&[u32]],
    layers: &[usize],
) -> Result<Vec<Matrix>> {
    let mut values = vec![Vec::new(); layers.len()];
    for_each_pooled(model, language, sentences, layers, |batch, _| {
        values.iter_mut().zip(batch).for_each(|(values, batch)| values.extend_from_slice(batch));
        Ok(())
    })?;
    let rows = sentences.len();
    Ok(values.into_iter().map(|v| Matrix::new(rows, v.len() / rows.max(1), v)).collect())
}

/// Calls `each` with the vectors of some sentences after others, at each of some layers (rows x columns), and with how many sentences are
/// done.
fn for_each_pooled<S: AsRef<[u32]> + Sync>(
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[S],
    layers: &[usize],
    mut each: impl FnMut(&[Vec<f32>], usize) -> Result<()> + Send,
) -> Result<()> {
    let mut values = vec![Vec::new(); layers.len()];
    let vectors = model.sentence_vectors.clone();
    let ids = sentences.iter().map(|ids| Ok::<_, Error>(ids.as_ref()));
    let last = layers.iter().copied().max();
    for_each_until(model.parts(), language, last, ids, |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            values.clear();
            vectors.push(states, layer, values);
        }
        each(&values, states.first + states.sentences())
    })
}

/// The vectors of sentences in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct EncodedLines {
    /// For each layer: rows x dim, one after another.
    pub layers: Vec<Vec<f32>>,
    /// Tokens of each sentence, without special tokens.
    pub lengths: Vec<usize>,
    /// Sentences that were too long for the model and truncated.
    pub truncated: usize,
    /// The share of the text's subwords that the vocabulary does not know.
    pub unknown_share: f64,
}

/// Encodes sentences in memory, as [`encode`] encodes those of files; `place` is what they are called in messages, and `progress` is
/// called with how many are done, and of how many.
pub fn encode_lines(
    model: &mut PretrainedModel,
    (language, place): (&str, &str),
    lines: &[String],
    layers: &[usize],
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<EncodedLines> {
    let mut reader = model.sentences(language)?;
    let (mut sentences, mut truncated) = (Vec::new(), 0);
    for (number, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            return Err(no_text(format!("{place}[{number}]")));
        }
        let sentence = reader.sentence(line)?;
        truncated += usize::from(sentence.truncated);
        sentences.push(sentence.ids);
    }
    let mut values = vec![Vec::new(); layers.len()];
    let language = reader.language();
    for_each_pooled(model, language, &sentences, layers, |batch, done| {
        values.iter_mut().zip(batch).for_each(|(values, batch)| values.extend_from_slice(batch));
        progress(done, sentences.len());
        Ok(())
    })?;
    let frame = model.vocabulary.frame();
    let lengths = sentences.iter().map(|ids| ids.len() - frame.count()).collect();
    let unknown_share = reader.unknown_counts().share();
    Ok(EncodedLines { layers: values, lengths, truncated, unknown_share })
}

/// Sentences that are tokenized and encoded together where there are many.
const LINES_AT_ONCE: usize = 1 << 15;

/// The mean vectors of many sentences at one layer, in bounded memory: written to a `.npy` file, which appears when it is
/// whole; and how many sentences were truncated.
///
/// # Errors
/// Where a line has no text, the model does not have the language, or the file cannot be written.
pub fn encode_to(
    path: &Path,
    model: &mut PretrainedModel,
    (language, place): (&str, &str),
    lines: &[String],
    layer: usize,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<usize> {
    let config = model.encoder.config();
    let dim = model.sentence_vectors.width(config.dim, layer == config.layers);
    let (mut failure, mut truncated) = (None, 0);
    let written = files::in_place_of(path, |file| {
        let mut fill = || -> Result<()> {
            let mut writer = StackWriter::new(file, 1, lines.len(), dim).at(path, "write")?;
            for (number, some) in lines.chunks(LINES_AT_ONCE).enumerate() {
                let before = number * LINES_AT_ONCE;
                let encoded = encode_lines(model, (language, place), some, &[layer], |done, _| {
                    progress(before + done, lines.len());
                })?;
                truncated += encoded.truncated;
                writer.append(some.len(), &encoded.layers).at(path, "write")?;
            }
            Ok(writer.finish().at(path, "write")?)
        };
        fill().map_err(|error| {
            failure = Some(error);
            io::Error::other("the text could not be encoded to its end")
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(written.map(|()| truncated)?),
    }
}

/// What is encoded, and where it goes.
#[derive(Clone, Debug)]
pub struct EncodeConfig {
    /// Languages, each with its files of one sentence a line, which add up. `-` is standard input.
    pub texts: Vec<(String, Vec<String>)>,
    /// The columns of sentences of `.tsv` files.
    pub columns: TsvColumns,
    /// Layers, from 0 (the embeddings) up.
    pub layers: Vec<usize>,
    /// The array to write: layers x rows x dim, or rows x dim of one layer (`-` is standard output). Or a folder of saved states
    /// ([`crate::SavedStates`]).
    pub out: PathBuf,
    /// Whether it is such a folder.
    pub folder: bool,
    /// Whether what is there is replaced.
    pub force: bool,
    /// Where to write how many tokens each sentence has, one number a line.
    pub lengths: Option<PathBuf>,
}

/// What came of encoding a text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EncodeResult {
    /// The array.
    pub out: PathBuf,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Sentences that were encoded.
    pub sentences: usize,
    /// Their tokens, special tokens included.
    pub tokens: u64,
    /// Sentences that were too long for the model and truncated.
    pub truncated: usize,
    /// The share of the text's subwords that the vocabulary does not know.
    pub unknown_share: f64,
    /// The fingerprint of the weights.
    pub model: String,
    /// Seconds that encoding and writing took.
    pub seconds: f64,
    /// Tokens encoded in a second.
    pub tokens_per_s: f64,
}

/// The sentences of a language that are encoded.
struct TokenizedText {
    /// The number of the language.
    language: usize,
    ids: Vec<Vec<u32>>,
    /// What is written of each beside its states, where they are saved.
    saved: Vec<SavedLine>,
}

/// Reads the sentences of a language; also says how many were truncated, and the share of unknown subwords.
fn read_text(
    model: &PretrainedModel,
    (language, files): &(String, Vec<String>),
    config: &EncodeConfig,
) -> Result<(TokenizedText, usize, UnknownCounts)> {
    let mut reader = model.sentences(language)?;
    let source = open(files, &config.columns)?;
    let mut text = TokenizedText { language: reader.language(), ids: vec![], saved: vec![] };
    let mut truncated = 0;
    for line in lines(&source) {
        let line = line?;
        let sentence = reader.sentence(&line)?;
        truncated += usize::from(sentence.truncated);
        text.ids.push(sentence.ids);
        if config.folder {
            text.saved.push(SavedLine {
                lang: language.clone(),
                text: line,
                ..SavedLine::default()
            });
        }
    }
    let unknown = reader.unknown_counts();
    // Rows that are tokens are said to be which.
    let each = model.sentence_vectors.rows(2, Frame(None, None)) > 1;
    for (line, ids) in text.saved.iter_mut().zip(&text.ids).filter(|_| each) {
        let ids = &ids[model.vocabulary.frame().within(0..ids.len())];
        let token = |&id: &u32| model.vocabulary.subword(id).unwrap_or_default().to_owned();
        line.tokens = Some(ids.iter().map(token).collect());
        let split: Vec<&str> = line.text.split_whitespace().collect();
        let words = reader.words(&split)?;
        // Some tokenizers cut words otherwise than text.
        line.words = (words.ids == ids).then(|| {
            let word = |at: u32| words.firsts.partition_point(|&first| first <= at) as u32 - 1;
            (0..ids.len() as u32).map(word).collect()
        });
    }
    Ok((text, truncated, unknown))
}

/// Encodes every sentence of a text into an array or a folder, which appears when it is whole. `progress` is called
/// with how many sentences are done, and of how many.
///
/// # Errors
/// Where text cannot be read or encoded, or something cannot be written.
pub fn encode(
    model: &mut PretrainedModel,
    config: &EncodeConfig,
    progress: impl FnMut(usize, usize) + Send,
) -> Result<EncodeResult> {
    let (mut texts, mut truncated, mut unknown) = (Vec::new(), 0, UnknownCounts::default());
    for text in &config.texts {
        let (text, cut, counts) = read_text(model, text, config)?;
        texts.push(text);
        truncated += cut;
        unknown.subwords += counts.subwords;
        unknown.unknown += counts.unknown;
    }
    let (frame, vectors) = (model.vocabulary.frame(), &model.sentence_vectors);
    let all = || texts.iter().flat_map(|text| &text.ids);
    let rows = all().map(|ids| vectors.rows(ids.len(), frame)).sum();
    let (start, dim) = (Instant::now(), width(model, config)?);
    let mut shape = vec![config.layers.len(), rows, dim];
    if config.layers.len() == 1 {
        shape.remove(0);
    }
    let sentences = all().count();
    let tokens = all().map(|ids| ids.len() as u64).sum();
    let lengths: String = all().map(|ids| format!("{}\n", ids.len() - frame.count())).collect();
    if config.folder {
        let draft = NewFolder::with_force(&config.out, config.force)?;
        write_array(&draft.path().join(STATES), model, &texts, (rows, dim), config, progress)?;
        let mut lines = String::new();
        for line in texts.iter().flat_map(|text| &text.saved) {
            lines += &serde_json::to_string(line).expect("plain data");
            lines.push('\n');
        }
        files::write(&draft.path().join(SENTENCES), lines)?;
        draft.finish()?;
    } else {
        let together = write_array(&config.out, model, &texts, (rows, dim), config, progress)?;
        if let Some(path) = &config.lengths {
            files::write(path, lengths)?;
        }
        drop(together);
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(EncodeResult {
        out: config.out.clone(),
        shape,
        sentences,
        tokens,
        truncated,
        unknown_share: unknown.share(),
        model: model.fingerprint.clone(),
        seconds,
        tokens_per_s: tokens as f64 / seconds,
    })
}

/// The columns of the vectors that are written, which are the same at every layer.
fn width(model: &PretrainedModel, config: &EncodeConfig) -> Result<usize> {
    let shape = model.encoder.config();
    let width = |&layer: &usize| model.sentence_vectors.width(shape.dim, layer == shape.layers);
    let mut widths = config.layers.iter().map(width);
    let first = widths.next().unwrap_or(shape.dim);
    match widths.find(|&other| other != first) {
        None => Ok(first),
        Some(other) => {
            let reason = format!(
                "vectors have {first} columns at one layer and {other} at another; name one layer"
            );
            Err(Error::of_key("layers", reason))
        }
    }
}

/// Writes the array, and gives the lock under which what belongs to it is to be written too.
fn write_array(
    out: &Path,
    model: &mut PretrainedModel,
    texts: &[TokenizedText],
    (rows, dim): (usize, usize),
    config: &EncodeConfig,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<Option<files::OutputLock>> {
    let all: usize = texts.iter().map(|text| text.ids.len()).sum();
    let mut failure = None;
    // Of two processes, both files are one's in the end: held from before the first takes its place.
    let mut together = None;
    let written = files::in_place_of(out, |file| {
        let mut fill = || -> Result<()> {
            let layers = &config.layers;
            let mut writer = StackWriter::new(file, layers.len(), rows, dim).at(out, "write")?;
            let mut before = 0;
            for TokenizedText { language, ids, .. } in texts {
                for_each_pooled(model, *language, ids, layers, |values, done| {
                    writer.append(values[0].len() / dim, values).at(out, "write")?;
                    progress(before + done, all);
                    Ok(())
                })?;
                before += ids.len();
            }
            Ok(writer.finish().at(out, "write")?)
        };
        fill().map_err(|error| {
            failure = Some(error);
            io::Error::other("the text could not be encoded to its end")
        })?;
        if !config.folder {
            let outputs = [Some(&config.out), config.lengths.as_ref()].into_iter().flatten();
            together = Some(files::lock_outputs(outputs.map(PathBuf::as_path)));
        }
        Ok(())
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(written.map(|()| together)?),
    }
}

/// A line without text would have no vector.
fn no_text(place: String) -> Error {
    let remedy = "take it out, and the same line of its translation";
    Error::input(place, "a line without text has no vector", remedy)
}
