//! The pictures of a run's representation space ([`crate::figure`]), from what the run has saved: how the space emerged, what
//! its layers do and, where there are language mean vectors, what their difference does.

use std::path::Path;

use models::PretrainedModel;
use models::parallel::{ParallelSide, read_pair};
use shift::means::MeanVectors;
use shift::shifter::ShiftKind;
use shift::token_sets::TokenSets;
use shift::translate::{ShiftDirection, TranslatedSentence, TranslationResult, translate};
use tensor::Device;
use terms::Fault;
use text::TsvColumns;
use train::pretrain::{PretrainConfig, PretrainError, ProbeSeries};

use crate::figure::{LayeredSpace, SpaceFigure, emergence, layers, shift as shift_figure};

/// Sentences whose token translations are counted: of a run those on which its study counts them too, of other models fewer.
const TRANSLATED: usize = 1000;

/// The layer of the example translations: that of Liu et al. 2020, the tenth of twelve.
pub fn translating_layer(depth: usize) -> usize {
    depth * 5 / 6
}

/// Why a picture could not be drawn.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// What the run has saved could not be read.
    #[error(transparent)]
    Pretrain(#[from] PretrainError),
    /// The model could not be opened.
    #[error(transparent)]
    Open(#[from] models::OpenError),
    /// Sentences could not be translated.
    #[error(transparent)]
    Shift(#[from] shift::Error),
}

impl Fault for SpaceError {
    fn is_usage(&self) -> bool {
        match self {
            SpaceError::Pretrain(error) => error.is_usage(),
            SpaceError::Open(error) => error.is_usage(),
            SpaceError::Shift(error) => error.is_usage(),
        }
    }

    fn key(&self) -> Option<&str> {
        match self {
            SpaceError::Pretrain(error) => error.key(),
            SpaceError::Open(error) => error.key(),
            SpaceError::Shift(error) => error.key(),
        }
    }
}

/// All pictures of a run, for its first pair of languages: those for which it has the data, none where it has saved nothing. `means` is a
/// file of `shift means`.
///
/// # Errors
/// Where a file is damaged.
pub fn of_run(
    run: &Path,
    means: Option<&Path>,
    device: &Device,
) -> Result<Vec<SpaceFigure>, SpaceError> {
    let Some(series) = ProbeSeries::read(run)?.into_iter().next() else { return Ok(Vec::new()) };
    let last = series.points.last().expect("a series has points").step;
    let mut figures = vec![emergence(&series)?, layers(&LayeredSpace::of_series(&series, last)?)];
    if let Some(path) = means {
        let mut model = PretrainedModel::open(run, device)?;
        let means = MeanVectors::open(path, &model)?;
        let layer = translating_layer(model.encoder.config().layers);
        figures.push(shift_of_series(run, &mut model, &means, &series, layer, device)?);
    }
    Ok(figures)
}

/// The figure of token translations of the sentences that a run's retrieval is measured on, from its first language into its second.
///
/// # Errors
/// Where the model cannot translate.
pub fn shift_of_series(
    run: &Path,
    model: &mut PretrainedModel,
    means: &MeanVectors,
    series: &ProbeSeries,
    layer: usize,
    device: &Device,
) -> Result<SpaceFigure, shift::Error> {
    let sides = all_sentences(run, series)?;
    let pairs: Vec<(&str, &str)> = match &sides {
        Some([a, b]) => a.lines.iter().zip(&b.lines).map(|(a, b)| (&**a, &**b)).collect(),
        None => series.pairs.iter().map(|pair| (&*pair.texts[0], &*pair.texts[1])).collect(),
    };
    let pairs = &pairs[..pairs.len().min(TRANSLATED)];
    let [from, to] = &series.languages;
    let (result, rows) = translations(model, means, [from, to], pairs, layer, device)?;
    // The sentences whose states are saved are the first.
    let gloss = |&row: &usize| Some(series.pairs.get(row)?.glosses.as_ref()?[0].clone());
    Ok(shift_figure(&result, &rows.iter().map(gloss).collect::<Vec<_>>()))
}

/// All sentences of a probe; none where their files are gone.
fn all_sentences(
    run: &Path,
    series: &ProbeSeries,
) -> Result<Option<[ParallelSide; 2]>, shift::Error> {
    let config = PretrainConfig::read(run).ok();
    let probe = config.iter().flat_map(|config| &config.probes);
    let Some(probe) = probe.into_iter().find(|probe| probe.languages == series.languages) else {
        return Ok(None);
    };
    let named = probe
        .languages
        .iter()
        .cloned()
        .zip(probe.files.iter().map(|file| file.display().to_string()));
    match probe.files.iter().all(|file| file.is_file()) {
        true => Ok(Some(read_pair(&named.collect::<Vec<_>>(), &TsvColumns::default())?)),
        false => Ok(None),
    }
}

/// Token translations of sentences at weights from 0 to 1 by tenths, with their references.
/// Also gives the rows of these sentences: one that the model cannot read as a whole is left out.
///
/// # Errors
/// Where the model cannot translate.
pub fn translations(
    model: &mut PretrainedModel,
    means: &MeanVectors,
    [from, to]: [&str; 2],
    pairs: &[(&str, &str)],
    layer: usize,
    device: &Device,
) -> Result<(TranslationResult, Vec<usize>), shift::Error> {
    let sets = TokenSets::of_means(means);
    let direction = ShiftDirection::new(means, &sets, from, to)?;
    let kind = ShiftKind::parse("mean").expect("the plain difference of means is a kind");
    let alphas: Vec<f32> = (0..=10_u8).map(|tenth| f32::from(tenth) / 10.0).collect();
    let (mut sentences, mut rows) = (Vec::new(), Vec::new());
    for (row, (sentence, reference)) in pairs.iter().enumerate() {
        let outputs = device.run(|| translate(model, &direction, layer, kind, &alphas, sentence));
        let outputs = match outputs {
            Err(shift::Error::Sentence(_)) => continue,
            outputs => outputs?,
        };
        let (sentence, reference) = ((*sentence).to_owned(), Some((*reference).to_owned()));
        sentences.push(TranslatedSentence { sentence, outputs, reference });
        rows.push(row);
    }
    if sentences.is_empty() {
        return Err(shift::Error::Request(
            "there is no sentence that the model can read".to_owned(),
        ));
    }
    let (from, to) = (from.to_owned(), to.to_owned());
    Ok((TranslationResult { from, to, layer, kind, sentences }, rows))
}
