//! The flags that say where vectors come from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tasks::features::NewLayers;
use tasks::finetune::FeaturesConfig;

use super::missing;
use crate::failure::Failure;
use crate::texts::parse_text;

/// Where the vectors come from that the task's head reads.
#[derive(Args, Clone, Serialize)]
pub struct SourceFlags {
    /// A run's folder or a Hugging Face folder, whose encoder is fine-tuned. With --feature-layer, one for
    /// each language: --model en=DIR --model zh=DIR.
    #[arg(long, short, value_name = "[LANG=]DIR", help_heading = "Model")]
    pub model: Vec<String>,

    /// The layers that are trained, such as 7-12 [default: all]. What is separate for a language never is.
    #[arg(long, value_name = "LAYERS", help_heading = "Model")]
    pub train_layers: Option<String>,

    /// Give these layers new weights before fine-tuning, such as 1-3 or 7,8, to see what their pretraining is worth
    /// (Tamkin et al. 2020; Muller et al. 2021). The seed of a setting decides them.
    #[arg(long, value_name = "LAYERS", help_heading = "Model")]
    pub reinit_layers: Option<String>,

    /// Freeze the encoders, read this layer (0 is the embeddings), and train new layers above it.
    #[arg(long, value_name = "N", conflicts_with_all = ["train_layers", "reinit_layers"], help_heading = "Model")]
    pub feature_layer: Option<usize>,

    /// A map of a language's vectors x into the source language's space: W x, W an array of NumPy.
    #[arg(long, value_name = "LANG=W.npy", value_parser = parse_text, help_heading = "Model")]
    pub map: Vec<(String, String)>,

    /// Static vectors of a language in place of an encoder, as Word2Vec, GloVe or NumPy write them; new
    /// layers are trained above them.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Model",
        conflicts_with_all = ["model", "feature_layer", "train_layers", "reinit_layers"])]
    pub vectors: Vec<(String, String)>,

    /// How many new layers [default: 4 above an encoder's layer, 2 above static vectors].
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub new_layers: Option<usize>,
}

const NEW_DROPOUT: f32 = 0.1;

impl SourceFlags {
    /// What is asked for. Where a run is resumed, what is not given is as it was.
    pub(super) fn config(
        &self,
        languages: &[&str],
        saved: Option<&FeaturesConfig>,
    ) -> Result<FeaturesConfig, Failure> {
        match saved {
            None => self.complete(languages),
            Some(saved) => self.with(saved).complete(languages),
        }
    }

    /// The flags, and those of a run for what is not given.
    fn with(&self, saved: &FeaturesConfig) -> Self {
        let named = |files: &BTreeMap<String, PathBuf>| -> Vec<(String, String)> {
            files.iter().map(|(name, path)| (name.clone(), path.display().to_string())).collect()
        };
        let mut flags = self.clone();
        match saved {
            FeaturesConfig::Encoder { model, train_layers, reinit_layers }
                if flags.vectors.is_empty() =>
            {
                if flags.model.is_empty() {
                    flags.model.push(model.display().to_string());
                }
                if flags.feature_layer.is_none() && flags.train_layers.is_none() {
                    flags.train_layers.clone_from(train_layers);
                }
                if flags.feature_layer.is_none() && flags.reinit_layers.is_none() {
                    flags.reinit_layers.clone_from(reinit_layers);
                }
            }
            FeaturesConfig::Layer { models, layer, maps, above } if flags.vectors.is_empty() => {
                if flags.model.is_empty() {
                    let models = named(models).into_iter();
                    flags.model = models.map(|(name, path)| format!("{name}={path}")).collect();
                }
                flags.feature_layer = flags.feature_layer.or(Some(*layer));
                flags.new_layers = flags.new_layers.or(Some(above.layers));
                if flags.map.is_empty() {
                    flags.map = named(maps);
                }
            }
            FeaturesConfig::Vectors { files, above } if flags.model.is_empty() => {
                if flags.vectors.is_empty() {
                    flags.vectors = named(files);
                }
                flags.new_layers = flags.new_layers.or(Some(above.layers));
            }
            _ => {}
        }
        flags
    }

    fn complete(&self, languages: &[&str]) -> Result<FeaturesConfig, Failure> {
        let frozen = !self.vectors.is_empty() || self.feature_layer.is_some();
        if self.new_layers.is_some() && !frozen {
            let message =
                "--new-layers: there are new layers only with --feature-layer or --vectors";
            return Err(Failure::Usage(message.to_owned()));
        }
        if !self.map.is_empty() && self.feature_layer.is_none() {
            let message = "--map: a map is for --feature-layer; give that too, or leave it out";
            return Err(Failure::Usage(message.to_owned()));
        }
        let above = |default| NewLayers {
            layers: self.new_layers.unwrap_or(default),
            dropout: NEW_DROPOUT,
        };
        if !self.vectors.is_empty() {
            return Ok(FeaturesConfig::Vectors { files: paths(&self.vectors), above: above(2) });
        }
        let Some(layer) = self.feature_layer else {
            return match self.model.as_slice() {
                [] => Err(missing("--model DIR, or --vectors LANG=FILE")),
                [model] => Ok(FeaturesConfig::Encoder {
                    model: model.into(),
                    train_layers: self.train_layers.clone(),
                    reinit_layers: self.reinit_layers.clone(),
                }),
                _ => Err(Failure::Usage(
                    "several --model are for --feature-layer; fine-tune one encoder".to_owned(),
                )),
            };
        };
        let models = match self.model.as_slice() {
            [] => return Err(missing("--model DIR")),
            [one] if !one.contains('=') => {
                languages.iter().map(|language| ((*language).to_owned(), one.into())).collect()
            }
            each => {
                let parsed = each.iter().map(|model| parse_text(model).map_err(Failure::Usage));
                paths(&parsed.collect::<Result<Vec<_>, _>>()?)
            }
        };
        Ok(FeaturesConfig::Layer { models, layer, maps: paths(&self.map), above: above(4) })
    }

    /// The folder of the encoder, where there is one for all languages.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self.model.as_slice() {
            [one] if !one.contains('=') => Some(Path::new(one)),
            _ => None,
        }
    }
}

pub(super) fn paths(pairs: &[(String, String)]) -> BTreeMap<String, PathBuf> {
    pairs.iter().map(|(language, file)| (language.clone(), file.into())).collect()
}
