//! Other languages moved towards the one that was learned in, when they are scored (paper 2, §4.3).
//!
//! Nothing is trained anew for any weight of the shift. The weight is the one thing that is chosen on
//! a target language: by its own development set, for each model that was fine-tuned.

use std::collections::BTreeMap;
use std::path::Path;

use arrays::npy;
use serde::{Deserialize, Serialize};
use shift::means::Means;
use shift::shifter::Shifter;
use tensor::Params;

use super::config::{Difference, ShiftConfig, TransferConfig};
use super::evaluate::Model;
use super::sets::{Set, Sets};
use super::summary::{Record, mean_of_best, of_best};
use crate::error::{Error, Result};
use crate::features::Features;
use crate::labelled::{Labels, Score};
use crate::statistics::Mean;

/// What is added to the hidden states of a language, and where.
pub struct Shift {
    /// After which layer; 0 is the embeddings.
    pub layer: usize,
    /// What is added for each piece.
    pub shifter: Shifter,
}

/// A language that is shifted.
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its number.
    pub language: usize,
    /// Its way to the source language.
    pub shift: Shift,
    /// The weights to choose from.
    pub weights: Vec<f64>,
    /// What the weight is chosen by; there is but one weight where there is none.
    pub dev: Option<Set>,
}

/// A weight and the score on the development set with it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The weight.
    pub alpha: f64,
    /// The score.
    pub dev: f64,
}

/// What a test set scores when its language is shifted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shifted {
    /// The weight.
    pub alpha: f64,
    /// The scores of all weights on the language's development set, where there is one.
    pub curve: Vec<Point>,
    /// The score.
    pub score: Score,
}

/// What a language has added, by its name.
type ShifterOf<'a> = Box<dyn Fn(&str) -> Result<Shifter> + 'a>;

/// A test set and the file that was predicted of it.
pub(super) type Predicted<'a> = Vec<(&'a Set, String)>;

impl Target {
    /// The languages to shift, their development sets not yet read.
    pub(super) fn all(config: &TransferConfig, features: &dyn Features) -> Result<Vec<Self>> {
        let Some(shift) = &config.shift else { return Ok(Vec::new()) };
        let ShiftConfig { layer, by, weights, .. } = shift;
        if features.layers().is_none_or(|last| *layer > last) {
            let remedy = match features.layers() {
                None => "shift a layer of an encoder".to_owned(),
                Some(last) => format!("shift a layer from 0, the embeddings, to {last}"),
            };
            return Err(Error::request(format!("there is no layer {layer} to shift"), remedy));
        }
        let shifter: ShifterOf<'_> = match by {
            Difference::Means { file, kind } => {
                let means = open_means(file, features)?;
                let to = means.language(&config.train.language)?;
                Box::new(move |name| {
                    Ok(Shifter::new(&means, means.language(name)?, to, *layer, *kind)?)
                })
            }
            Difference::Vectors(files) => {
                Box::new(|name| read_vector(&files[name], features.dim()))
            }
        };
        let target = |name: &str| {
            Ok(Self {
                name: name.to_owned(),
                language: features.language(name)?,
                shift: Shift { layer: *layer, shifter: shifter(name)? },
                weights: weights.clone(),
                dev: None,
            })
        };
        config.shifted_languages().into_iter().map(target).collect()
    }

    /// The score on the development set at every weight.
    fn curve(&self, model: Model<'_>, params: &mut Params, labels: &Labels) -> Vec<Point> {
        let Some(dev) = &self.dev else { return Vec::new() };
        let answers = model.shifted(params, dev, labels, &self.shift, &self.weights);
        let point = |(&alpha, answers): (&f64, &Vec<_>)| Point {
            alpha,
            dev: dev.labelled.score(labels, answers).headline(),
        };
        self.weights.iter().zip(&answers).map(point).collect()
    }
}

fn open_means(file: &Path, features: &dyn Features) -> Result<Means> {
    if !file.is_file() {
        let remedy = "make it with `isogloss shift means --model RUN --text LANG=FILE …`";
        return Err(Error::request(format!("{} is not there", file.display()), remedy));
    }
    features.means(file)
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
fn best(curve: &[Point]) -> Option<f64> {
    let order = |a: &&Point, b: &&Point| {
        a.dev.total_cmp(&b.dev).then(b.alpha.abs().total_cmp(&a.alpha.abs()))
    };
    curve.iter().max_by(order).map(|point| point.alpha)
}

/// Chooses the weight of every language and scores its test sets with it.
pub(super) fn score<'a>(
    sets: &'a Sets,
    model: Model<'_>,
    params: &mut Params,
) -> (BTreeMap<String, Shifted>, Predicted<'a>) {
    let (mut scores, mut predictions) = (BTreeMap::new(), Vec::new());
    let device = params.device().clone();
    for target in &sets.targets {
        let curve = device.run(|| target.curve(model, params, &sets.labels));
        let alpha = best(&curve).unwrap_or(target.weights[0]);
        for set in sets.tests.iter().filter(|set| set.language == target.language) {
            let answers =
                device.run(|| model.shifted(params, set, &sets.labels, &target.shift, &[alpha]));
            let score = set.labelled.score(&sets.labels, &answers[0]);
            predictions.push((set, set.labelled.render(&sets.labels, &answers[0])));
            scores.insert(set.name.clone(), Shifted { alpha, curve: curve.clone(), score });
        }
    }
    (scores, predictions)
}

/// What came of shifting, over all settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftSummary {
    /// What exactly was done.
    pub signature: String,
    /// After which layer.
    pub layer: usize,
    /// The language that the others were moved towards.
    pub towards: String,
    /// Every test set of a language that was shifted.
    pub sets: BTreeMap<String, ShiftedSet>,
}

/// A test set plain and shifted; means are of each seed's best two settings, over seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShiftedSet {
    /// The score as trained.
    pub plain: Mean,
    /// The score shifted.
    pub shifted: Mean,
    /// The weight in the setting that is best on the source language's development set.
    pub alpha: f64,
    /// The weights of all settings that the means are of.
    pub alphas: Vec<f64>,
    /// For each weight, the mean score on the language's own development set.
    pub curve: Vec<Point>,
    /// Scores in full, of the setting whose predictions stand in the folder.
    pub score: Score,
}

impl ShiftSummary {
    /// What records say of it; nothing where none is done yet.
    pub(super) fn new(config: &TransferConfig, records: &[Record], best: &Record) -> Option<Self> {
        let shift = config.shift.as_ref()?;
        let kind = match &shift.by {
            Difference::Means { kind, .. } => kind.name(),
            Difference::Vectors(_) => "given".to_owned(),
        };
        let (layer, towards) = (shift.layer, config.train.language.clone());
        let chosen = if shift.weights.len() > 1 { "best on the target's dev" } else { "given" };
        let signature = crate::signature(&format!(
            "shift:{kind}|layer:{layer}|towards:{towards}|weight:{chosen}|all else:by the source"
        ));
        let set = |(name, of_best): (&String, &Shifted)| {
            let summary = ShiftedSet::new(name, of_best, records)?;
            Some((name.clone(), summary))
        };
        let sets = best.shifted.iter().filter_map(set).collect();
        Some(Self { signature, layer, towards, sets })
    }
}

impl ShiftedSet {
    fn new(name: &str, best: &Shifted, records: &[Record]) -> Option<Self> {
        let of = |record: &Record| record.shifted[name].clone();
        let point = |(at, point): (usize, &Point)| {
            let mean = mean_of_best(records, |record| record.shifted[name].curve[at].dev)?;
            Some(Point { alpha: point.alpha, dev: mean.mean })
        };
        Some(Self {
            plain: mean_of_best(records, |record| record.tests[name].headline())?,
            shifted: mean_of_best(records, |record| of(record).score.headline())?,
            alpha: best.alpha,
            alphas: of_best(records).into_iter().map(|record| of(record).alpha).collect(),
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
        let curve = |points: &[(f64, f64)]| -> Vec<Point> {
            points.iter().map(|&(alpha, dev)| Point { alpha, dev }).collect()
        };
        assert_eq!(best(&curve(&[(0.0, 0.5), (0.5, 0.7), (1.0, 0.7), (2.0, 0.1)])), Some(0.5));
        assert_eq!(best(&curve(&[(2.0, 0.7), (-0.1, 0.7), (1.0, 0.7)])), Some(-0.1));
        assert_eq!(best(&[]), None);
    }
}
