//! The mean vector of a language: the mean of all its hidden states, at each layer.
//!
//! Text is read twice. The first pass only counts subwords, so that it is known which languages share
//! which; in the second the model reads, and sums are kept for each layer and class of subwords.
//! Neither pass keeps text in memory. Special tokens do not enter the means.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::Range;
use std::path::{Path, PathBuf};

use encoder::Request;
use encoder::archive::{self, Archive};
use faer::{Mat, Side};
use models::states::{TokenBatch, for_each_batch};
use models::{EncoderParts, PretrainedModel};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tensor::kernels::{Grad, GramSum};
use tensor::{Device, Indices, Mode, Tape, Tensor};
use text::{Corpus, Frame, SentenceBlock, count_subwords};

use crate::classes::{CLASSES, SubwordClasses};
use crate::error::{Error, Result};

/// Leading directions kept for each layer.
pub const DIRECTIONS: usize = 8;
/// Rows of a language's states from which on no more are added to the covariance, whose eigenvectors
/// are the leading directions.
const COVARIANCE_ROWS: usize = 50_000;

/// The metadata of a file of mean vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct MeansMetadata {
    model: String,
    vocabulary: String,
    languages: Vec<String>,
    layers: usize,
    /// For each language, how many states of each class were seen.
    counts: Vec<[u64; CLASSES.len()]>,
}

/// The mean vectors of one language.
#[derive(Clone, Debug)]
pub struct LanguageMean {
    /// Its name.
    pub name: String,
    /// How many states of each class were seen.
    pub counts: [u64; CLASSES.len()],
    /// For each layer from the embeddings on: the mean of each class, classes x dim.
    pub layers: Vec<Vec<f32>>,
    /// For each layer: the standard error of the mean of all, dim.
    pub errors: Vec<Vec<f32>>,
    /// How often each subword occurred.
    pub subwords: Vec<u64>,
}

/// The mean vectors of several languages under one model.
#[derive(Clone, Debug)]
pub struct MeanVectors {
    /// The languages, in the order in which their text was given.
    pub languages: Vec<LanguageMean>,
    /// For each layer: the directions in which states differ most within a language, as rows,
    /// the leading one first.
    pub directions: Vec<Vec<f32>>,
    dim: usize,
    model: String,
    vocabulary: String,
}

/// Is called with what is being done, and how far through a language's text.
pub type MeansObserver<'a> = &'a mut dyn FnMut(&str, text::ReadProgress);

/// What came of the mean vectors of one language.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageMeanSummary {
    /// The language.
    pub language: String,
    /// States seen, by class of subwords.
    pub states: BTreeMap<String, u64>,
    /// Different subwords seen.
    pub subwords: usize,
    /// For each layer, the length of the standard error over the length of the mean.
    pub standard_error: Vec<f64>,
}

/// What came of a computation of mean vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeansResult {
    /// The file.
    pub out: PathBuf,
    /// The languages.
    pub languages: Vec<LanguageMeanSummary>,
    /// The fingerprint of the weights.
    pub model: String,
}

impl LanguageMean {
    fn summary(&self) -> LanguageMeanSummary {
        let length =
            |vector: &[f32]| vector.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let error = |(mean, errors): (&Vec<f32>, &Vec<f32>)| {
            length(errors) / length(&mean[..errors.len()]).max(1e-12)
        };
        let states = CLASSES.iter().zip(self.counts);
        LanguageMeanSummary {
            language: self.name.clone(),
            states: states.map(|(class, count)| ((*class).to_owned(), count)).collect(),
            subwords: self.subwords.iter().filter(|&&count| count > 0).count(),
            standard_error: self.layers.iter().zip(&self.errors).map(error).collect(),
        }
    }
}

/// Sums over the states of one language at one layer.
struct LayerSums {
    /// classes x dim.
    sums: Vec<f64>,
    /// dim.
    squares: Vec<f64>,
    /// The sums over those states that the covariance is computed from: dim.
    covariance_sums: Vec<f64>,
    /// statesᵀ · states over the same: dim x dim.
    gram: Option<Tensor>,
    /// statesᵀ · states over all states, where sums are taken on the device; its diagonal holds the
    /// sums of squares.
    device_gram: Option<GramSum>,
}

/// The mean vectors of the languages of some corpora.
pub fn compute(
    model: &mut PretrainedModel,
    corpora: &[Corpus],
    watch: MeansObserver<'_>,
) -> Result<MeanVectors> {
    let names: Vec<String> =
        corpora.iter().map(|corpus| corpus.source.language().to_owned()).collect();
    let mut subwords = Vec::new();
    for (corpus, name) in corpora.iter().zip(&names) {
        let number = model.vocabulary.language(name)?;
        let doing = format!("counting {name}");
        let mut counting = |at| watch(&doing, at);
        subwords.push(count_subwords(&model.vocabulary, number, corpus, &mut counting)?.0);
    }
    let (layers, dim) = (model.encoder.config().layers, model.encoder.config().dim);
    let mut covariances = vec![vec![0.0; dim * dim]; layers + 1];
    let on_device = model.params.device().is_gpu();
    let mut languages = Vec::new();
    for (index, (corpus, name)) in corpora.iter().zip(names).enumerate() {
        let classes = SubwordClasses::new(&subwords, index);
        let mut sums = LanguageSums::new(classes, layers, dim, on_device);
        sums.read(model, corpus, watch)?;
        languages.push(sums.finish(name, subwords[index].clone(), &mut covariances)?);
    }
    let directions =
        covariances.par_iter().map(|covariance| leading(covariance, dim)).collect::<Result<_>>()?;
    let (fingerprint, vocabulary) =
        (model.fingerprint.clone(), model.vocabulary.fingerprint().to_owned());
    Ok(MeanVectors { languages, directions, dim, model: fingerprint, vocabulary })
}

struct LanguageSums {
    classes: SubwordClasses,
    counts: [u64; CLASSES.len()],
    layers: Vec<LayerSums>,
    covariance_rows: usize,
    /// Whether sums over a batch are taken on the device: all states of a corpus are too many to be
    /// copied from a GPU.
    on_device: bool,
}

/// The rows of a batch in the order of their classes, in short ranges of one class each, whose means a
/// device takes side by side.
struct ClassRows {
    /// Rows of the batch.
    order: Indices,
    /// Ranges of `order`, each with the classes of its rows.
    ranges: Vec<(Range<usize>, [usize; 3])>,
}

impl ClassRows {
    /// Rows of one range.
    const LONGEST: usize = 64;

    fn new(rows: &[(usize, [usize; 3])]) -> Self {
        let mut sorted = rows.to_vec();
        sorted.sort_by_key(|&(_, classes)| classes);
        let mut ranges = Vec::new();
        let mut start = 0;
        for of_class in sorted.chunk_by(|left, right| left.1 == right.1) {
            for chunk in of_class.chunks(Self::LONGEST) {
                ranges.push((start..start + chunk.len(), chunk[0].1));
                start += chunk.len();
            }
        }
        Self { order: sorted.iter().map(|&(row, _)| row as u32).collect(), ranges }
    }
}

impl LanguageSums {
    fn new(classes: SubwordClasses, layers: usize, dim: usize, on_device: bool) -> Self {
        let sums = |_| LayerSums {
            sums: vec![0.0; CLASSES.len() * dim],
            squares: vec![0.0; dim],
            covariance_sums: vec![0.0; dim],
            gram: None,
            device_gram: None,
        };
        let layers = (0..=layers).map(sums).collect();
        Self { classes, counts: [0; CLASSES.len()], layers, covariance_rows: 0, on_device }
    }

    /// Reads a corpus through the model. What is longer than the model can read is read in segments.
    fn read(
        &mut self,
        model: &mut PretrainedModel,
        corpus: &Corpus,
        watch: MeansObserver<'_>,
    ) -> Result<()> {
        let language = model.vocabulary.language(corpus.source.language())?;
        let encoders = model.vocabulary.encoders(language);
        let frame = model.vocabulary.frame();
        let room = model.encoder.config().positions - frame.count();
        let doing = format!("reading {}", corpus.source.language());
        corpus.read(&mut |at| watch(&doing, at), &mut |blocks: &[SentenceBlock]| {
            for block in blocks {
                let encode = |sentence: &str| {
                    let mut ids = Vec::new();
                    encoders.with(|encoder| encoder.encode(sentence, &mut ids));
                    ids.chunks(room).map(|segment| frame.around(segment)).collect::<Vec<_>>()
                };
                let sentences: Vec<&str> = block.sentences().map(|(_, text)| text).collect();
                let sentences: Vec<_> = sentences.into_par_iter().map(encode).collect();
                let sentences = sentences.into_iter().flatten().map(Ok::<_, Infallible>);
                let Ok(()) = for_each_batch(model.parts(), language, sentences, |parts, tokens| {
                    self.add_batch(parts, &tokens, frame);
                    Ok(())
                });
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Adds the states of a batch, special tokens left out.
    fn add_batch(
        &mut self,
        parts: &mut EncoderParts<'_>,
        tokens: &TokenBatch<'_, Vec<u32>>,
        frame: Frame,
    ) {
        let Self { classes, counts, layers, covariance_rows, on_device } = self;
        let EncoderParts { encoder, params, .. } = parts;
        let device = params.device().clone();
        let mut tape = Tape::new(params, Mode::Evaluate);
        let encoded = encoder.encode(&mut tape, tokens.batch, Request::default());
        // The row of each subword, and its classes.
        let inner: Vec<(usize, [usize; 3])> = tokens
            .batch
            .spans
            .iter()
            .zip(tokens.sentences)
            .flat_map(|(span, ids)| {
                let inside = frame.within(0..ids.len());
                inside.map(move |place| (span.start + place, ids[place]))
            })
            .map(|(row, id)| (row, classes.of(id)))
            .collect();
        for (_, classes) in &inner {
            classes.iter().for_each(|&class| counts[class] += 1);
        }
        let dim = encoder.config().dim;
        if *on_device {
            let rows = ClassRows::new(&inner);
            for (sums, &hidden) in layers.iter_mut().zip(&encoded.hidden) {
                let states = tape.select(hidden, &rows.order);
                sums.add_on_device(&device, tape.value(states), &rows);
            }
        } else {
            let states: Vec<Vec<f32>> =
                encoded.hidden.iter().map(|&hidden| tape.value(hidden).to_vec()).collect();
            layers.par_iter_mut().zip(&states).for_each(|(sums, states)| {
                for (row, classes) in &inner {
                    sums.add(&states[row * dim..][..dim], classes);
                }
            });
        }
        if *covariance_rows < COVARIANCE_ROWS {
            *covariance_rows += inner.len();
            let rows: Indices = inner.iter().map(|&(row, _)| row as u32).collect();
            for (sums, &hidden) in layers.iter_mut().zip(&encoded.hidden) {
                sums.covariance_sums.copy_from_slice(&sums.sums[..dim]);
                let chosen = tape.select(hidden, &rows);
                add_gram(&device, tape.value(chosen), &mut sums.gram);
            }
        }
    }

    /// Makes means of the sums, and adds each layer's covariance.
    fn finish(
        mut self,
        name: String,
        subwords: Vec<u64>,
        covariances: &mut [Vec<f64>],
    ) -> Result<LanguageMean> {
        if self.counts[0] == 0 {
            return Err(Error::request(format!("the text of `{name}` holds no subword at all")));
        }
        let dim = self.layers[0].squares.len();
        let (counts, layers, errors) = (self.counts, Vec::new(), Vec::new());
        let mut language = LanguageMean { name, counts, layers, errors, subwords };
        self.layers.iter_mut().for_each(LayerSums::read_squares);
        for sums in &self.layers {
            let mean = |place: usize| {
                let count = self.counts[place / dim].max(1) as f64;
                (sums.sums[place] / count) as f32
            };
            language.layers.push((0..sums.sums.len()).map(mean).collect());
            let count = self.counts[0] as f64;
            let error = |(square, sum): (&f64, &f64)| {
                let variance = (square - sum * sum / count).max(0.0) / (count - 1.0).max(1.0);
                (variance / count).sqrt() as f32
            };
            language.errors.push(sums.squares.iter().zip(&sums.sums).map(error).collect());
        }
        let rows = self.covariance_rows.max(1) as f64;
        for (sums, covariance) in self.layers.iter().zip(covariances) {
            let Some(gram) = &sums.gram else { continue };
            let gram = gram.to_vec();
            // The mean of the same rows, so that it is a covariance however the text goes on.
            let mean = |column: usize| sums.covariance_sums[column] / rows;
            for (place, total) in covariance.iter_mut().enumerate() {
                *total += f64::from(gram[place]) / rows - mean(place / dim) * mean(place % dim);
            }
        }
        Ok(language)
    }
}

impl LayerSums {
    fn add(&mut self, state: &[f32], classes: &[usize; 3]) {
        let dim = state.len();
        for &class in classes {
            let sums = &mut self.sums[class * dim..][..dim];
            sums.iter_mut().zip(state).for_each(|(sum, &x)| *sum += f64::from(x));
        }
        for (square, &x) in self.squares.iter_mut().zip(state) {
            *square += f64::from(x) * f64::from(x);
        }
    }

    /// Adds states that stay on the device: only means of ranges of them are copied, and the sums of
    /// squares at the end.
    ///
    /// # Shapes
    /// `states`: rows x dim, in the order of `rows`.
    fn add_on_device(&mut self, device: &Device, states: &Tensor, rows: &ClassRows) {
        let dim = states.cols();
        let ranges: Vec<Range<usize>> =
            rows.ranges.iter().map(|(range, _)| range.clone()).collect();
        let means = device.row_means(states, &ranges);
        for ((range, classes), mean) in rows.ranges.iter().zip(means.chunks(dim)) {
            for &class in classes {
                let sums = &mut self.sums[class * dim..][..dim];
                let add = |(sum, &x): (&mut f64, &f32)| *sum += f64::from(x) * range.len() as f64;
                sums.iter_mut().zip(mean).for_each(add);
            }
        }
        let gram = self.device_gram.get_or_insert_with(|| device.gram_sum(dim, dim));
        device.gram(states, states, gram);
    }

    /// Reads the sums of squares where they were taken on the device.
    fn read_squares(&mut self) {
        if let Some(gram) = self.device_gram.take() {
            let dim = self.squares.len();
            self.squares = gram.to_vec().into_iter().step_by(dim + 1).collect();
        }
    }
}

fn add_gram(device: &Device, states: &Tensor, sum: &mut Option<Tensor>) {
    let dim = states.cols();
    let add = sum.is_some();
    let target = sum.get_or_insert_with(|| device.zeros(dim, dim));
    let target = Grad { tensor: target, accumulate: add };
    device.kernels().linear_weight_grad(states, states, target);
}

/// The leading eigenvectors of a symmetric matrix, as rows.
fn leading(matrix: &[f64], dim: usize) -> Result<Vec<f32>> {
    let matrix = Mat::from_fn(dim, dim, |row, column| {
        (matrix[row * dim + column] + matrix[column * dim + row]) / 2.0
    });
    let eigen = matrix
        .self_adjoint_eigen(Side::Lower)
        .map_err(|_| Error::request("the spread of the states has no leading directions"))?;
    let vectors = eigen.U();
    let column = |place: usize| {
        let column = dim - 1 - place;
        (0..dim).map(move |row| vectors[(row, column)] as f32)
    };
    Ok((0..DIRECTIONS.min(dim)).flat_map(column).collect())
}

impl MeanVectors {
    /// What came of their computation, once they were written to a file.
    pub fn summary(&self, out: &Path) -> MeansResult {
        let languages = self.languages.iter().map(LanguageMean::summary).collect();
        MeansResult { out: out.to_owned(), languages, model: self.model.clone() }
    }

    /// Writes the means; the file appears whole or not at all.
    pub fn save(&self, path: &Path, device: &Device) -> Result<()> {
        let metadata = MeansMetadata {
            model: self.model.clone(),
            vocabulary: self.vocabulary.clone(),
            languages: self.languages.iter().map(|language| language.name.clone()).collect(),
            layers: self.directions.len() - 1,
            counts: self.languages.iter().map(|language| language.counts).collect(),
        };
        let mut matrices = Vec::new();
        let mut put = |name: String, elements: &[f32], cols: usize| {
            matrices.push((name, device.tensor(elements.len() / cols, cols, elements)));
        };
        for language in &self.languages {
            let name = &language.name;
            put(format!("{name}.means"), &language.layers.concat(), self.dim);
            put(format!("{name}.errors"), &language.errors.concat(), self.dim);
            let subwords: Vec<f32> = language.subwords.iter().map(|&count| count as f32).collect();
            put(format!("{name}.subwords"), &subwords, subwords.len());
        }
        put("directions".to_owned(), &self.directions.concat(), self.dim);
        let views = matrices.iter().map(|(name, tensor)| (name.clone(), tensor));
        Ok(archive::write(path, views, &metadata)?)
    }

    /// Reads the means of a model, and refuses those of another.
    pub fn open(path: &Path, model: &PretrainedModel) -> Result<Self> {
        let archive = Archive::open(path)?;
        let metadata: MeansMetadata = archive.metadata()?;
        if metadata.model != model.fingerprint {
            let path = path.display();
            return Err(Error::request(format!(
                "{path} holds the mean vectors of another model; compute them for this one"
            )));
        }
        model.vocabulary.check_fingerprint(&metadata.vocabulary, &path.display().to_string())?;
        let (dim, layers) = (model.encoder.config().dim, metadata.layers + 1);
        let device = model.params.device();
        let subwords = model.vocabulary.len();
        let kept = DIRECTIONS.min(dim);
        let mut shapes = vec![("directions".to_owned(), layers * kept, dim)];
        for name in &metadata.languages {
            shapes.push((format!("{name}.means"), layers * CLASSES.len(), dim));
            shapes.push((format!("{name}.errors"), layers, dim));
            shapes.push((format!("{name}.subwords"), 1, subwords));
        }
        let mut tensors: Vec<(String, Tensor)> =
            shapes.into_iter().map(|(name, rows, cols)| (name, device.zeros(rows, cols))).collect();
        archive.load(tensors.iter_mut().map(|(name, tensor)| (name.clone(), tensor)).collect())?;
        let mut tensors = tensors.into_iter().map(|(_, tensor)| tensor.to_vec());
        let mut rows = |width: usize| -> Vec<Vec<f32>> {
            let elements = tensors.next().expect("one for each shape");
            elements.chunks(width).map(<[f32]>::to_vec).collect()
        };
        let directions = rows(kept * dim);
        let languages = metadata.languages.iter().zip(&metadata.counts).map(|(name, &counts)| {
            let layers = rows(CLASSES.len() * dim);
            let errors = rows(dim);
            let subwords = rows(1).concat().iter().map(|&count| count as u64).collect();
            LanguageMean { name: name.clone(), counts, layers, errors, subwords }
        });
        let languages = languages.collect();
        let (model, vocabulary) = (metadata.model, metadata.vocabulary);
        Ok(Self { languages, directions, dim, model, vocabulary })
    }

    /// Language mean vectors at one layer, of subwords of all classes, with one leading direction.
    #[cfg(test)]
    pub(crate) fn of_means(means: &[&[f32]], direction: &[f32]) -> Self {
        let language = |mean: &&[f32]| LanguageMean {
            name: String::new(),
            counts: [1; CLASSES.len()],
            layers: vec![mean.repeat(CLASSES.len())],
            errors: Vec::new(),
            subwords: Vec::new(),
        };
        Self {
            languages: means.iter().map(language).collect(),
            directions: vec![direction.to_vec()],
            dim: direction.len(),
            model: String::new(),
            vocabulary: String::new(),
        }
    }

    /// The place of a language.
    pub fn language(&self, name: &str) -> Result<usize> {
        let found = self.languages.iter().position(|language| language.name == name);
        found.ok_or_else(|| {
            let there: Vec<&str> =
                self.languages.iter().map(|language| language.name.as_str()).collect();
            Error::request(format!(
                "there is no mean vector of `{name}`, only of {}; compute it from text of that language too",
                there.join(", ")
            ))
        })
    }

    /// Numbers in a state.
    pub fn dim(&self) -> usize {
        self.dim
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_on_the_device_are_those_of_the_host() {
        let (rows, dim) = (500, 24);
        let device = Device::cpu(1).expect("the CPU is there");
        let value = |place: usize| ((place * 7919 % 1009) as f32 - 300.0) / 200.0;
        let states: Vec<f32> = (0..rows * dim).map(value).collect();
        // Every fifth row is of a special token.
        let inner: Vec<(usize, [usize; 3])> = (0..rows)
            .filter(|row| row % 5 != 0)
            .map(|row| (row, [0, 1 + row % 2, 3 + row % 7 % 3]))
            .collect();
        let sums = |on_device| {
            let classes = SubwordClasses::new(&[vec![1], vec![0]], 0);
            LanguageSums::new(classes, 0, dim, on_device).layers.remove(0)
        };
        let (mut host, mut there) = (sums(false), sums(true));
        inner.iter().for_each(|(row, classes)| host.add(&states[row * dim..][..dim], classes));
        // In two batches, so that sums over batches are seen too.
        for batch in inner.chunks(170) {
            let rows = ClassRows::new(batch);
            assert!(rows.ranges.iter().all(|(range, _)| range.len() <= ClassRows::LONGEST));
            let chosen: Vec<f32> = rows
                .order
                .iter()
                .flat_map(|&row| &states[row as usize * dim..][..dim])
                .copied()
                .collect();
            there.add_on_device(&device, &device.tensor(batch.len(), dim, &chosen), &rows);
        }
        there.read_squares();
        let close = |(left, right): (&f64, &f64)| (left - right).abs() < 1e-3 * (1.0 + right.abs());
        assert!(host.sums.iter().zip(&there.sums).all(close));
        assert!(host.squares.iter().zip(&there.squares).all(close));
        assert!(host.sums.iter().any(|sum| sum.abs() > 1.0));
    }
}
