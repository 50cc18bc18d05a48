//! Files of sentences, and the vectors of sentences at every layer.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrays::{Matrix, Stack, StackWriter};
use files::At;
use serde::{Deserialize, Serialize};
use text::{LineRules, TextSource, sentence_on};

use crate::error::{Error, Result};
use crate::parallel::ParallelSide;
use crate::pretrained::PretrainedModel;
use crate::states::{Pooling, for_each};

/// The sentences of a file, one a line (of a `.tsv` file, the first column). A line without text is refused: it would have no
/// vector, and the lines of a translation would no longer belong to one another.
pub fn lines(source: &TextSource) -> impl Iterator<Item = Result<String>> + '_ {
    // Raw, since white space at the start of a line may be the end of an empty column.
    let mut lines = source.raw_lines(LineRules::default());
    let file = source.names().next().unwrap_or_default();
    // A blank line; at the end of a file it is none.
    let mut gap = None;
    std::iter::from_fn(move || {
        loop {
            let (sentence, blank) = match lines.next_line() {
                Ok(line) => {
                    let line = line?;
                    (sentence_on(file, line).trim().to_owned(), line.trim().is_empty())
                }
                Err(error) => return Some(Err(error.into())),
            };
            if blank {
                gap = gap.or(Some(lines.number()));
                continue;
            }
            let Some(number) = gap.or(sentence.is_empty().then(|| lines.number())) else {
                return Some(Ok(sentence));
            };
            return Some(Err(no_text(file, number)));
        }
    })
}

/// The source of one file of sentences.
pub fn open(path: &Path) -> Result<TextSource> {
    Ok(TextSource::new("text", &[path.display().to_string()])?)
}

/// The mean vector of every sentence at each of some layers, and how many sentences were too long for
/// the model and truncated.
pub fn pooled(
    model: &mut PretrainedModel,
    side: &ParallelSide,
    layers: &[usize],
    mut progress: impl FnMut(usize) + Send,
) -> Result<(Stack, usize)> {
    let mut reader = model.reader(&side.language)?;
    let (number, dim) = (reader.language(), model.encoder.config().dim);
    let truncated = Cell::new(0);
    let ids = side.lines.iter().enumerate().map(|(line, sentence)| {
        if sentence.is_empty() {
            return Err(no_text(&side.file, line as u64 + 1));
        }
        let sentence = reader.sentence(sentence);
        truncated.set(truncated.get() + usize::from(sentence.truncated));
        Ok(sentence.ids)
    });
    let mut values = vec![Vec::new(); layers.len()];
    for_each(model.parts(), number, ids, |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            Pooling::Mean.push(states, layer, values);
        }
        progress(states.sentences());
        Ok::<_, Error>(())
    })?;
    let matrices = values.into_iter().map(|v| Matrix::new(v.len() / dim, dim, v));
    let layers = layers.iter().copied().zip(matrices).collect();
    Ok((Stack::numbered(&side.file, layers), truncated.get()))
}

/// What is encoded, and where it goes.
#[derive(Clone, Debug)]
pub struct EncodeConfig {
    /// The language of the text.
    pub language: String,
    /// One sentence a line; of a `.tsv` file the first column. `-` is standard input.
    pub text: PathBuf,
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
    let source = open(&config.text)?;
    let (mut sentences, mut truncated) = (Vec::new(), 0);
    for line in lines(&source) {
        let sentence = reader.sentence(&line?);
        truncated += usize::from(sentence.truncated);
        sentences.push(sentence.ids);
    }
    let rows = sentences.iter().map(|ids| config.pooling.rows(ids.len())).sum();
    let start = Instant::now();
    let mut failure = None;
    let written = files::in_place_of(&config.out, |partial| {
        let all = sentences.len();
        let progress = &mut |done| progress(done, all);
        let encoded =
            encode_into(partial, model, reader.language(), &sentences, rows, config, progress);
        encoded.map_err(|error| {
            failure = Some(error);
            io::Error::other("the text could not be encoded to its end")
        })
    });
    match failure {
        Some(error) => return Err(error),
        None => written?,
    }
    if let Some(path) = &config.lengths {
        let lengths: String = sentences.iter().map(|ids| format!("{}\n", ids.len() - 2)).collect();
        files::write(path, lengths)?;
    }
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
        model: model.fingerprint.clone(),
        seconds,
        tokens_per_s: tokens as f64 / seconds,
    })
}

fn encode_into(
    path: &Path,
    model: &mut PretrainedModel,
    language: usize,
    sentences: &[Vec<u32>],
    rows: usize,
    config: &EncodeConfig,
    progress: &mut (dyn FnMut(usize) + Send),
) -> Result<()> {
    let (layers, out) = (&config.layers, &config.out);
    let dim = model.encoder.config().dim;
    let mut writer = StackWriter::create(path, layers.len(), rows, dim).at(out, "write")?;
    let mut values = vec![Vec::new(); layers.len()];
    for_each(model.parts(), language, sentences.iter().map(Ok::<_, Error>), |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            values.clear();
            config.pooling.push(states, layer, values);
        }
        writer.append(values[0].len() / states.dim, &values).at(out, "write")?;
        progress(states.first + states.sentences());
        Ok(())
    })?;
    Ok(writer.finish().at(out, "write")?)
}

/// A line without text would have no vector.
fn no_text(file: &str, line: u64) -> Error {
    let remedy = "take it out, and the same line of its translation";
    Error::input(format!("{file}:{line}"), "a line without text has no vector", remedy)
}
