//! Target languages shifted towards the source language when they are scored (Liu et al. 2020, §4.3): the
//! difference of mean vectors is added to their hidden states after a layer.
//!
//! Nothing is trained anew for any weight of the shift. The weight is the one thing that is chosen on
//! a target language: on its own development set, for each model that was fine-tuned.

use std::collections::BTreeMap;
use std::path::Path;

use arrays::npy;
use serde::{Deserialize, Serialize};
use shift::means::MeanVectors;
use shift::shifter::Shifter;
use tensor::Params;
use terms::Estimate;

use super::config::{ShiftConfig, ShiftSource, TransferConfig};
use super::evaluate::TaskModel;
use super::result::{SettingResult, mean_of_best, of_best};
use super::sets::{LabelledSet, LabelledSets};
use crate::error::{Error, Result};
use crate::features::TokenSource;
use crate::labelled::LabelSet;
use crate::registry::{ScoreResult, signature};

/// What is added to the hidden states of a language, and where.
pub(super) struct LayerShift {
    /// After which layer; 0 is the embeddings.
    pub(super) layer: usize,
    /// What is added for each subword.
    pub(super) shifter: Shifter,
}

pub(super) struct ShiftTarget {
    pub(super) name: String,
    pub(super) language: usize,
    /// The shift towards the source language.
    shift: LayerShift,
    /// The weights to choose from.
    alphas: Vec<f64>,
    /// What the weight is chosen on; where there is none, there is one weight.
    pub(super) dev: Option<LabelledSet>,
}

/// A weight and the score on the development set with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlphaScore {
    /// The weight.
    pub alpha: f64,
    /// The score.
    pub dev: f64,
}

/// The score of a test set whose language is shifted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftedScore {
    /// The weight.
    pub alpha: f64,
    /// The scores of all weights on the language's development set, where there is one.
    pub curve: Vec<AlphaScore>,
    /// The score.
    pub score: ScoreResult,
}

/// The shift of a language, by its name.
type ShifterOf<'a> = Box<dyn Fn(&str) -> Result<Shifter> + 'a>;

/// A test set and the file that was predicted of it.
pub(super) type PredictedFiles<'a> = Vec<(&'a LabelledSet, String)>;

impl ShiftTarget {
    /// The languages to shift, their development sets not yet read.
    pub(super) fn all(config: &TransferConfig, source: &dyn TokenSource) -> Result<Vec<Self>> {
        let Some(shift) = &config.shift else { return Ok(Vec::new()) };
        let ShiftConfig { layer, by, alpha, .. } = shift;
        if source.layers().is_none_or(|last| *layer > last) {
            let remedy = match source.layers() {
                None => "shift a layer of an encoder".to_owned(),
                Some(last) => format!("shift a layer from 0, the embeddings, to {last}"),
            };
            return Err(Error::request(format!("there is no layer {layer} to shift"), remedy));
        }
        let shifter: ShifterOf<'_> = match by {
            ShiftSource::Means { file, kind } => {
                let means = open_means(file, source)?;
                let to = means.language(&config.train.language)?;
                Box::new(move |name| {
                    Ok(Shifter::new(&means, means.language(name)?, to, *layer, *kind)?)
                })
            }
            ShiftSource::Vectors(files) => Box::new(|name| read_vector(&files[name], source.dim())),
        };
        let target = |name: &str| {
            Ok(Self {
                name: name.to_owned(),
                language: source.language(name)?,
                shift: LayerShift { layer: *layer, shifter: shifter(name)? },
                alphas: alpha.clone(),
                dev: None,
            })
        };
        config.shifted_languages().into_iter().map(target).collect()
    }

    /// The score on the development set at every weight.
    fn curve(
        &self,
        model: TaskModel<'_>,
        params: &mut Params,
        labels: &LabelSet,
    ) -> Vec<AlphaScore> {
        let Some(dev) = &self.dev else { return Vec::new() };
        let predictions = model.shifted_predictions(params, dev, labels, &self.shift, &self.alphas);
        let point = |(&alpha, predictions): (&f64, &Vec<_>)| AlphaScore {
            alpha,
            dev: dev.labelled.score(labels, predictions).value(),
        };
        self.alphas.iter().zip(&predictions).map(point).collect()
    }
}

fn open_means(file: &Path, source: &dyn TokenSource) -> Result<MeanVectors> {
    if !file.is_file() {
        let remedy = "make it with `isogloss shift means --model RUN --text LANG=FILE …`";
        return Err(Error::request(format!("{} is not there", file.display()), remedy));
    }
    source.means(file)
}

fn read_vector(file: &Path, dim: usize) -> Result<Shifter> {
    let array: npy::Array<f32> = npy::read(file)?.finite(file)?;
    if array.values.len() != dim {
        let reason = format!("{} numbers, but hidden states have {dim}", array.values.len());
        return Err(Error::file(file, reason, "give one vector, of the same encoder"));
    }
    Ok(Shifter::of_vector(array.values))
}

/// The weight that is best on the development set; of equals the one that changes least.
fn best(curve: &[AlphaScore]) -> Option<f64> {
    let order = |a: &&AlphaScore, b: &&AlphaScore| {
        a.dev.total_cmp(&b.dev).then(b.alpha.abs().total_cmp(&a.alpha.abs()))
    };
    curve.iter().max_by(order).map(|point| point.alpha)
}

/// Chooses the weight of every target language and scores its test sets with it.
pub(super) fn score<'a>(
    sets: &'a LabelledSets,
    model: TaskModel<'_>,
    params: &mut Params,
) -> (BTreeMap<String, ShiftedScore>, PredictedFiles<'a>) {
    let (mut scores, mut files) = (BTreeMap::new(), Vec::new());
    let device = params.device().clone();
    for target in &sets.targets {
        let curve = device.run(|| target.curve(model, params, &sets.labels));
        let alpha = best(&curve).unwrap_or(target.alphas[0]);
        for set in sets.tests.iter().filter(|set| set.language == target.language) {
            let predictions = device.run(|| {
                model.shifted_predictions(params, set, &sets.labels, &target.shift, &[alpha])
            });
            let score = set.labelled.score(&sets.labels, &predictions[0]);
            files.push((set, set.labelled.render(&sets.labels, &predictions[0])));
            scores.insert(set.name.clone(), ShiftedScore { alpha, curve: curve.clone(), score });
        }
    }
    (scores, files)
}

/// The effect of shifting, over all settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftResult {
    /// What exactly was done.
    pub signature: String,
    /// After which layer.
    pub layer: usize,
    /// The language that the others were shifted towards.
    pub towards: String,
    /// Every test set of a language that was shifted.
    pub sets: BTreeMap<String, ShiftedTestResult>,
}

/// A test set without and with the shift; means are of each seed's best two settings, over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftedTestResult {
    /// The score without a shift.
    pub plain: Estimate,
    /// The score shifted.
    pub shifted: Estimate,
    /// The weight in the setting that is best on the source language's development set.
    pub alpha: f64,
    /// The weights of all settings that the means are of.
    pub alphas: Vec<f64>,
    /// For each weight, the mean score on the language's own development set.
    pub curve: Vec<AlphaScore>,
    /// Scores in full, of the setting whose predictions stand in the folder.
    pub score: ScoreResult,
}

impl ShiftResult {
    /// The result of the settings that are done, given the best of them.
    pub(super) fn new(
        config: &TransferConfig,
        settings: &[SettingResult],
        best: &SettingResult,
    ) -> Option<Self> {
        let shift = config.shift.as_ref()?;
        let kind = match &shift.by {
            ShiftSource::Means { kind, .. } => kind.name(),
            ShiftSource::Vectors(_) => "given".to_owned(),
        };
        let (layer, towards) = (shift.layer, config.train.language.clone());
        let chosen = if shift.alpha.len() > 1 { "best on the target's dev" } else { "given" };
        let signature = signature(&format!(
            "shift:{kind}|layer:{layer}|towards:{towards}|weight:{chosen}|all else:by the source"
        ));
        let set = |(name, of_best): (&String, &ShiftedScore)| {
            let result = ShiftedTestResult::new(name, of_best, settings)?;
            Some((name.clone(), result))
        };
        let sets = best.shifted.iter().filter_map(set).collect();
        Some(Self { signature, layer, towards, sets })
    }
}

impl ShiftedTestResult {
    fn new(name: &str, best: &ShiftedScore, settings: &[SettingResult]) -> Option<Self> {
        let of = |setting: &SettingResult| setting.shifted[name].clone();
        let point = |(at, point): (usize, &AlphaScore)| {
            let mean = mean_of_best(settings, |setting| setting.shifted[name].curve[at].dev)?;
            Some(AlphaScore { alpha: point.alpha, dev: mean.mean })
        };
        Some(Self {
            plain: mean_of_best(settings, |setting| setting.tests[name].value())?,
            shifted: mean_of_best(settings, |setting| of(setting).score.value())?,
            alpha: best.alpha,
            alphas: of_best(settings).into_iter().map(|setting| of(setting).alpha).collect(),
            curve: best.curve.iter().enumerate().filter_map(point).collect(),
            score: best.score.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_weights_the_one_that_changes_least() {
        let curve = |points: &[(f64, f64)]| -> Vec<AlphaScore> {
            points.iter().map(|&(alpha, dev)| AlphaScore { alpha, dev }).collect()
        };
        assert_eq!(best(&curve(&[(0.0, 0.5), (0.5, 0.7), (1.0, 0.7), (2.0, 0.1)])), Some(0.5));
        assert_eq!(best(&curve(&[(2.0, 0.7), (-0.1, 0.7), (1.0, 0.7)])), Some(-0.1));
        assert_eq!(best(&[]), None);
    }
}
