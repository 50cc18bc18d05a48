//! How good a model is: perplexity on held-out text, and retrieval of translations.

use std::path::Path;

use encoder::{Batch, Encoder, Request};
use serde::{Deserialize, Serialize};
use tensor::{Indices, Mode, Params, Spans, Tape, Tensor};
use text::{LineRules, Source};

use super::config::ProbeConfig;
use super::data::Data;

/// Sentences encoded at once.
const AT_ONCE: usize = 128;

/// The perplexity of each language's held-out text, with the same tokens hidden every time.
pub(crate) fn perplexities(model: &Encoder, params: &mut Params, data: &Data) -> Vec<f64> {
    let perplexity = |evaluation: &text::Evaluation| {
        let (mut loss, mut targets) = (0.0, 0);
        for batch in evaluation.batches() {
            let (batch, masked) = data.piece(&batch);
            let mut tape = Tape::new(params, Mode::Evaluate);
            let score = model.mlm_loss(&mut tape, &batch, &masked, 1.0);
            loss += f64::from(score.to_vec()[0]);
            targets += masked.rows.len();
        }
        (loss / targets.max(1) as f64).exp()
    };
    data.dev.iter().map(perplexity).collect()
}

/// Translations to be found among one another.
pub(crate) struct Probe {
    names: [String; 2],
    sides: [Vec<Batch>; 2],
    /// How many sentences each side has.
    count: usize,
}

/// How many translations were found, at each layer from the embeddings up: the nearest sentence by
/// cosine, mean of both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    /// The two languages.
    pub languages: [String; 2],
    /// How many sentences there are to choose from.
    pub sentences: usize,
    /// As the vectors are.
    pub raw: Vec<f64>,
    /// After the mean of each language was taken away.
    pub shifted: Vec<f64>,
}

impl Retrieval {
    /// The best layer as the vectors are, and after the shift.
    pub fn best(&self) -> (f64, f64) {
        let best = |layers: &[f64]| layers.iter().copied().fold(0.0, f64::max);
        (best(&self.raw), best(&self.shifted))
    }
}

impl Probe {
    /// Reads the two files.
    pub(crate) fn read(config: &ProbeConfig, data: &Data, longest: usize) -> text::Result<Self> {
        let first = side(&config.languages[0], &config.files[0], data, longest)?;
        let second = side(&config.languages[1], &config.files[1], data, longest)?;
        let count = |side: &[Batch]| side.iter().map(|batch| batch.spans.count()).sum::<usize>();
        let (a, b) = (count(&first), count(&second));
        if a != b {
            return Err(text::Error::File {
                file: config.files[1].display().to_string(),
                reason: format!("has {b} lines, {} has {a}", config.files[0].display()),
                remedy: "give two files that are translations of one another line by line",
            });
        }
        Ok(Self { names: config.languages.clone(), sides: [first, second], count: a })
    }

    /// Looks each sentence's translation up.
    pub(crate) fn retrieve(&self, model: &Encoder, params: &mut Params) -> Retrieval {
        let [a, b] = [0, 1].map(|side| self.means(model, params, side));
        let pairs = || a.iter().zip(&b);
        let dim = model.config().dim;
        let found = |a: &[f32], b: &[f32]| found(params, a, b, dim);
        Retrieval {
            languages: self.names.clone(),
            sentences: self.count,
            raw: pairs().map(|(a, b)| found(a, b)).collect(),
            shifted: pairs().map(|(a, b)| found(&centred(a, dim), &centred(b, dim))).collect(),
        }
    }

    /// For each layer, the mean of every sentence's vectors, its frame left out.
    fn means(&self, model: &Encoder, params: &mut Params, side: usize) -> Vec<Vec<f32>> {
        let dim = model.config().dim;
        let mut layers = vec![Vec::with_capacity(self.count * dim); model.config().layers + 1];
        for batch in &self.sides[side] {
            let mut tape = Tape::new(params, Mode::Evaluate);
            let encoded = model.encode(&mut tape, batch, Request::default());
            for (layer, &hidden) in layers.iter_mut().zip(&encoded.hidden) {
                let hidden = tape.value(hidden).elements();
                for span in batch.spans.iter() {
                    let inner = span.start + 1..span.end - 1;
                    let start = layer.len();
                    layer.resize(start + dim, 0.0);
                    for row in inner.clone() {
                        for (sum, &x) in layer[start..].iter_mut().zip(&hidden[row * dim..]) {
                            *sum += x / inner.len() as f32;
                        }
                    }
                }
            }
        }
        layers
    }
}

/// The sentences of one side as batches, each sentence between its frame.
fn side(language: &str, file: &Path, data: &Data, longest: usize) -> text::Result<Vec<Batch>> {
    let mut reader = data.vocabulary.reader(language, longest)?;
    let number = reader.language();
    let source = Source::new(language, &[file.display().to_string()])?;
    let mut lines = source.raw_lines(LineRules::default());
    let mut sentences = Vec::new();
    while let Some(line) = lines.next_line()? {
        sentences.push(reader.sentence(line).ids);
    }
    let batch = |sentences: &[Vec<u32>]| {
        let tokens: Indices = data.ids(number, &sentences.concat());
        let spans = Spans::of_lengths(sentences.iter().map(Vec::len));
        Batch { language: number, tokens, spans, segments: None }
    };
    Ok(sentences.chunks(AT_ONCE).map(batch).collect())
}

/// Vectors less their mean.
fn centred(vectors: &[f32], dim: usize) -> Vec<f32> {
    let count = (vectors.len() / dim).max(1) as f32;
    let mut mean = vec![0.0; dim];
    for vector in vectors.chunks(dim) {
        mean.iter_mut().zip(vector).for_each(|(mean, x)| *mean += x / count);
    }
    vectors
        .chunks(dim)
        .flat_map(|vector| vector.iter().zip(&mean).map(|(x, mean)| x - mean))
        .collect()
}

/// The share of rows whose nearest row on the other side, by cosine, is of the same number.
fn found(params: &Params, a: &[f32], b: &[f32], dim: usize) -> f64 {
    let device = params.device();
    let unit = |vectors: &[f32]| -> Tensor {
        let scaled = vectors.chunks(dim).flat_map(|vector| {
            let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
            vector.iter().map(move |x| x / norm)
        });
        device.tensor(vectors.len() / dim, dim, &scaled.collect::<Vec<_>>())
    };
    let (a, b) = (unit(a), unit(b));
    let count = a.rows();
    let hits = |from: &Tensor, to: &Tensor| {
        let cosines = device.matmul_transposed(from, to);
        let best = |(row, cosines): (usize, &[f32])| {
            let own = cosines[row];
            cosines.iter().enumerate().all(|(other, &cosine)| other == row || cosine < own)
        };
        cosines.elements().chunks(count).enumerate().filter(|&row| best(row)).count()
    };
    (hits(&a, &b) + hits(&b, &a)) as f64 / (2 * count.max(1)) as f64
}
