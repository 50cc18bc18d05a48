//! How good a model is: perplexity on held-out text, and retrieval of translations.

use std::convert::Infallible;
use std::path::Path;

use arrays::Matrix;
use encoder::Encoder;
use geometry::retrieval::{Ties, accuracy};
use geometry::search::Measure;
use geometry::{Step, normalize};
use models::EncoderParts;
use models::states::{Pooling, for_each};
use serde::{Deserialize, Serialize};
use tensor::{Mode, Params, Tape};
use text::{LineRules, TextSource};

use super::config::ProbeConfig;
use super::data::RunData;
use super::probes::SAVED_PAIRS;

/// The perplexity of each language's held-out text after update `step`, with the same tokens masked every time.
pub(crate) fn perplexities(
    model: &Encoder,
    params: &mut Params,
    data: &RunData,
    step: u64,
) -> text::Result<Vec<f64>> {
    let perplexity = |evaluation: &text::MlmEvaluation| {
        let (mut loss, mut targets) = (0.0, 0);
        for batch in evaluation.batches() {
            let (batch, masked) = data.micro_batch(&batch?);
            let mut tape = Tape::new(params, Mode::Evaluate);
            let score = model.mlm_loss(&mut tape, &batch, &masked, 1.0);
            loss += f64::from(score.to_vec()[0]);
            targets += masked.rows.len();
        }
        Ok((loss / targets.max(1) as f64).exp())
    };
    data.dev(step).iter().map(perplexity).collect()
}

/// Parallel sentences whose translations are retrieved while a run is trained.
pub(crate) struct Probe {
    pub(crate) languages: [String; 2],
    pub(crate) sides: [ProbeSide; 2],
}

pub(crate) struct ProbeSide {
    language: usize,
    /// Vocabulary ids, special tokens included.
    pub(crate) sentences: Vec<Vec<u32>>,
    /// The text of the first of them, whose states are saved.
    pub(crate) texts: Vec<String>,
}

/// The sentence vectors of a probe after an update, and the retrieval that they allow.
pub(crate) struct ProbeMeasurement {
    pub(crate) retrieval: ProbeRetrieval,
    /// For each side and layer: sentences x dim.
    pub(crate) vectors: [Vec<Matrix>; 2],
}

/// Retrieval accuracy (P@1 by cosine) at each layer from the embeddings up, mean of both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeRetrieval {
    /// The two languages.
    pub languages: [String; 2],
    /// How many sentences there are to choose from.
    pub sentences: usize,
    /// Of the raw vectors.
    pub raw: Vec<f64>,
    /// Of the vectors minus their language's mean.
    pub centered: Vec<f64>,
}

impl ProbeRetrieval {
    /// The best layer's accuracy, raw and mean-centred.
    pub fn best(&self) -> (f64, f64) {
        let best = |layers: &[f64]| layers.iter().copied().fold(0.0, f64::max);
        (best(&self.raw), best(&self.centered))
    }
}

impl Probe {
    pub(crate) fn read(config: &ProbeConfig, data: &RunData, longest: usize) -> text::Result<Self> {
        let first = side(&config.languages[0], &config.files[0], data, longest)?;
        let second = side(&config.languages[1], &config.files[1], data, longest)?;
        let (a, b) = (first.sentences.len(), second.sentences.len());
        if a != b {
            let reason = format!("has {b} lines, {} has {a}", config.files[0].display());
            let remedy = "give two files that are translations of one another line by line";
            return Err(text::Error::file(&config.files[1], reason, remedy));
        }
        Ok(Self { languages: config.languages.clone(), sides: [first, second] })
    }

    /// Retrieves each sentence's translation, at every layer.
    pub(crate) fn measure(
        &self,
        model: &Encoder,
        params: &mut Params,
        data: &RunData,
    ) -> ProbeMeasurement {
        let device = params.device().clone();
        let [a, b] = [0, 1].map(|side| self.sides[side].vectors(data.parts(model, params)));
        let accuracy = |(a, b): (&Matrix, &Matrix)| {
            let rows: Vec<(u32, u32)> = (0..a.rows() as u32).map(|row| (row, row)).collect();
            accuracy(a.clone(), b.clone(), &rows, Measure::Cosine, Ties::Wrong, &device).mean
        };
        let centered = |vectors: &Matrix| {
            let mut vectors = vectors.clone();
            normalize(&mut vectors, &[Step::Center]);
            vectors
        };
        let pairs = || a.iter().zip(&b);
        let retrieval = ProbeRetrieval {
            languages: self.languages.clone(),
            sentences: self.sides[0].sentences.len(),
            raw: pairs().map(accuracy).collect(),
            centered: pairs().map(|(a, b)| accuracy((&centered(a), &centered(b)))).collect(),
        };
        ProbeMeasurement { retrieval, vectors: [a, b] }
    }
}

impl ProbeSide {
    /// The mean vector of every sentence at each layer: sentences x dim.
    fn vectors(&self, parts: EncoderParts<'_>) -> Vec<Matrix> {
        let (layers, dim) = (parts.encoder.config().layers + 1, parts.encoder.config().dim);
        let mut values = vec![Vec::with_capacity(self.sentences.len() * dim); layers];
        let sentences = self.sentences.iter().map(Ok::<_, Infallible>);
        let Ok(()) = for_each(parts, self.language, sentences, |states| {
            for (layer, values) in values.iter_mut().enumerate() {
                Pooling::Mean.push(states, layer, values);
            }
            Ok(())
        });
        values.into_iter().map(|values| Matrix::new(values.len() / dim, dim, values)).collect()
    }
}

fn side(language: &str, file: &Path, data: &RunData, longest: usize) -> text::Result<ProbeSide> {
    let mut reader = data.vocabulary.reader(language, longest)?;
    let source = TextSource::new(language, &[file.display().to_string()])?;
    let mut lines = source.raw_lines(LineRules::default());
    let (mut sentences, mut texts) = (Vec::new(), Vec::new());
    while let Some(sentence) = lines.next_sentence()? {
        if texts.len() < SAVED_PAIRS {
            texts.push(sentence.to_owned());
        }
        sentences.push(reader.sentence(sentence).ids);
    }
    Ok(ProbeSide { language: reader.language(), sentences, texts })
}
