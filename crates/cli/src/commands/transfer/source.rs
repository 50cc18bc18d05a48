//! The flags that say where vectors come from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use tasks::features::Above;
use tasks::finetune::FeaturesConfig;

use super::missing;
use crate::commands::texts::parse_text;
use crate::failure::Failure;

/// Where the vectors come from that the task's own layers read.
#[derive(Args)]
pub(super) struct Source {
    /// A run of `pretrain`, whose encoder is fine-tuned. With --feature-layer, one for each
    /// language: --model en=DIR --model zh=DIR.
    #[arg(long, value_name = "[LANG=]DIR")]
    model: Vec<String>,

    /// The layers that learn, such as 7-12; what a language has for itself never does.
    #[arg(long, value_name = "LAYERS")]
    train_layers: Option<String>,

    /// Freeze the encoders, read this layer of theirs (0 is the embeddings), and learn new layers
    /// above it.
    #[arg(long, value_name = "N", conflicts_with = "train_layers")]
    feature_layer: Option<usize>,

    /// A map of a language's vectors x into the source language's space: W x, W an array of NumPy.
    #[arg(long, value_name = "LANG=W.npy", value_parser = parse_text, requires = "feature_layer")]
    map: Vec<(String, String)>,

    /// Static vectors of a language in place of an encoder, as Word2Vec, GloVe or NumPy write them; new
    /// layers are learned above them.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, conflicts_with_all = ["model", "feature_layer", "train_layers"])]
    vectors: Vec<(String, String)>,

    /// How many new layers [4 above an encoder's, 2 above static vectors].
    #[arg(long, value_name = "N")]
    new_layers: Option<usize>,
}

/// Dropout in new layers.
const NEW_DROPOUT: f32 = 0.1;

impl Source {
    pub(super) fn config(&self, languages: &[&str]) -> Result<FeaturesConfig, Failure> {
        if self.new_layers.is_some() && self.vectors.is_empty() && self.feature_layer.is_none() {
            let message =
                "--new-layers: there are new layers only with --feature-layer or --vectors";
            return Err(Failure::Usage(message.to_owned()));
        }
        let above =
            |default| Above { layers: self.new_layers.unwrap_or(default), dropout: NEW_DROPOUT };
        if !self.vectors.is_empty() {
            return Ok(FeaturesConfig::Vectors { files: paths(&self.vectors), above: above(2) });
        }
        let Some(layer) = self.feature_layer else {
            return match self.model.as_slice() {
                [] => Err(missing("--model DIR, or --vectors LANG=FILE")),
                [model] => Ok(FeaturesConfig::Encoder {
                    model: model.into(),
                    train_layers: self.train_layers.clone(),
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

/// Files by language.
pub(super) fn paths(pairs: &[(String, String)]) -> BTreeMap<String, PathBuf> {
    pairs.iter().map(|(language, file)| (language.clone(), file.into())).collect()
}
