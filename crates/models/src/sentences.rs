//! Files of sentences, and the vectors of sentences at every layer.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrays::{Matrix, Stack, StackWriter};
use files::At;
use serde::{Deserialize, Serialize};
use terms::RowCounts;
use text::{EncodedSentence, LineRules, TextSource, TsvColumns};

use crate::error::{Error, Result};
use crate::parallel::{ParallelSide, distinct};
use crate::pretrained::PretrainedModel;
use crate::states::{Pooling, for_each_until};

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
        let number = model.reader(&text.language)?.language();
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
    let language = model.reader(&side.language)?.language();
    Ok((pooled(model, language, &ids, layers)?, truncated))
}

/// Some rows of a side as token ids.
fn tokenize(
    model: &PretrainedModel,
    side: &ParallelSide,
    rows: &[usize],
) -> Result<Vec<EncodedSentence>> {
    let mut reader = model.reader(&side.language)?;
    let tokenize = |&row: &usize| match side.lines[row].as_str() {
        "" => Err(no_text(side.place(row))),
        sentence => Ok(reader.sentence(sentence)),
    };
    rows.iter().map(tokenize).collect()
}

/// The mean vector of every sentence at each of some layers: sentences x dim.
fn pooled(
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[&[u32]],
    layers: &[usize],
) -> Result<Vec<Matrix>> {
    let dim = model.encoder.config().dim;
    let mut values = vec![Vec::new(); layers.len()];
    for_each_pooled(model, language, sentences, (layers, Pooling::Mean), |batch, _| {
        values.iter_mut().zip(batch).for_each(|(values, batch)| values.extend_from_slice(batch));
        Ok(())
    })?;
    Ok(values.into_iter().map(|v| Matrix::new(v.len() / dim, dim, v)).collect())
}

/// Calls `each` with the vectors of some sentences after others, at each of some layers (rows x dim), and with how many sentences are
/// done.
fn for_each_pooled<S: AsRef<[u32]> + Sync>(
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[S],
    (layers, pooling): (&[usize], Pooling),
    mut each: impl FnMut(&[Vec<f32>], usize) -> Result<()> + Send,
) -> Result<()> {
    let mut values = vec![Vec::new(); layers.len()];
    let ids = sentences.iter().map(|ids| Ok::<_, Error>(ids.as_ref()));
    let last = layers.iter().copied().max();
    for_each_until(model.parts(), language, last, ids, |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            values.clear();
            pooling.push(states, layer, values);
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
    (layers, pooling): (&[usize], Pooling),
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<EncodedLines> {
    let mut reader = model.reader(language)?;
    let (mut sentences, mut truncated) = (Vec::new(), 0);
    for (number, line) in lines.iter().enumerate() {
        if line.trim().is_empty() {
            return Err(no_text(format!("{place}[{number}]")));
        }
        let sentence = reader.sentence(line);
        truncated += usize::from(sentence.truncated);
        sentences.push(sentence.ids);
    }
    let mut values = vec![Vec::new(); layers.len()];
    let language = reader.language();
    for_each_pooled(model, language, &sentences, (layers, pooling), |batch, done| {
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
    let dim = model.encoder.config().dim;
    let (mut failure, mut truncated) = (None, 0);
    let written = files::in_place_of(path, |file| {
        let mut fill = || -> Result<()> {
            let mut writer = StackWriter::new(file, 1, lines.len(), dim).at(path, "write")?;
            for (number, some) in lines.chunks(LINES_AT_ONCE).enumerate() {
                let before = number * LINES_AT_ONCE;
                let encoded = encode_lines(
                    model,
                    (language, place),
                    some,
                    (&[layer], Pooling::Mean),
                    |done, _| progress(before + done, lines.len()),
                )?;
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
    /// The language of the text.
    pub language: String,
    /// Files of one sentence a line, which add up. `-` is standard input.
    pub files: Vec<String>,
    /// The columns of sentences of `.tsv` files.
    pub columns: TsvColumns,
    /// Layers, from 0 (the embeddings) up.
    pub layers: Vec<usize>,
    /// Which vector stands for a sentence.
    pub pooling: Pooling,
    /// The array to write: layers x rows x dim, or rows x dim of one layer. `-` is standard output.
    pub out: PathBuf,
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

/// Encodes every sentence of a text into an array, which appears when it is whole. `progress` is called
/// with how many sentences are done, and of how many.
pub fn encode(
    model: &mut PretrainedModel,
    config: &EncodeConfig,
    mut progress: impl FnMut(usize, usize) + Send,
) -> Result<EncodeResult> {
    let mut reader = model.reader(&config.language)?;
    let source = open(&config.files, &config.columns)?;
    let (mut sentences, mut truncated) = (Vec::new(), 0);
    for line in lines(&source) {
        let sentence = reader.sentence(&line?);
        truncated += usize::from(sentence.truncated);
        sentences.push(sentence.ids);
    }
    let frame = model.vocabulary.frame();
    let rows = sentences.iter().map(|ids| config.pooling.rows(ids.len(), frame)).sum();
    let start = Instant::now();
    let mut failure = None;
    // Of two processes, both files are one's in the end: held from before the first takes its place.
    let mut together = None;
    let written = files::in_place_of(&config.out, |file| {
        let all = sentences.len();
        let progress = &mut |done| progress(done, all);
        let encoded =
            encode_into(file, model, reader.language(), &sentences, rows, config, progress);
        encoded.map_err(|error| {
            failure = Some(error);
            io::Error::other("the text could not be encoded to its end")
        })?;
        let outputs = [Some(&config.out), config.lengths.as_ref()].into_iter().flatten();
        together = Some(files::lock_outputs(outputs.map(PathBuf::as_path)));
        Ok(())
    });
    match failure {
        Some(error) => return Err(error),
        None => written?,
    }
    if let Some(path) = &config.lengths {
        let line = |ids: &Vec<u32>| format!("{}\n", ids.len() - frame.count());
        let lengths: String = sentences.iter().map(line).collect();
        files::write(path, lengths)?;
    }
    drop(together);
    let (tokens, seconds) =
        (sentences.iter().map(|ids| ids.len() as u64).sum(), start.elapsed().as_secs_f64());
    let mut shape = vec![config.layers.len(), rows, model.encoder.config().dim];
    if config.layers.len() == 1 {
        shape.remove(0);
    }
    Ok(EncodeResult {
        out: config.out.clone(),
        shape,
        sentences: sentences.len(),
        tokens,
        truncated,
        unknown_share: reader.unknown_counts().share(),
        model: model.fingerprint.clone(),
        seconds,
        tokens_per_s: tokens as f64 / seconds,
    })
}

fn encode_into(
    file: &File,
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[Vec<u32>],
    rows: usize,
    config: &EncodeConfig,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<()> {
    let (layers, out) = (&config.layers, &config.out);
    let dim = model.encoder.config().dim;
    let mut writer = StackWriter::new(file, layers.len(), rows, dim).at(out, "write")?;
    for_each_pooled(model, language, sentences, (layers, config.pooling), |values, done| {
        writer.append(values[0].len() / dim, values).at(out, "write")?;
        progress(done);
        Ok(())
    })?;
    Ok(writer.finish().at(out, "write")?)
}

/// A line without text would have no vector.
fn no_text(place: String) -> Error {
    let remedy = "take it out, and the same line of its translation";
    Error::input(place, "a line without text has no vector", remedy)
}
