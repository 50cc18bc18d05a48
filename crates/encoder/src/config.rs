//! What an encoder looks like.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use tensor::Activation;

use crate::parts::{Parts, Positions};
use crate::plan::SharingPlan;

/// A key of a configuration whose value is invalid, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {reason}")]
pub struct ConfigError {
    /// The key.
    pub key: Cow<'static, str>,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl ConfigError {
    /// A complaint about a key.
    pub fn new(key: impl Into<Cow<'static, str>>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), reason: reason.into() }
    }

    /// The same, where the key stands in a part of a larger configuration: `dim` in `encoder.dim`.
    pub fn within(self, part: &str) -> Self {
        Self { key: format!("{part}.{}", self.key).into(), ..self }
    }
}

impl terms::Fault for ConfigError {
    fn is_usage(&self) -> bool {
        true
    }

    fn key(&self) -> Option<&str> {
        Some(&self.key)
    }
}

/// Where LayerNorm stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NormPlace {
    /// After each residual connection and after the embeddings, as in the papers.
    #[default]
    Post,
    /// Before attention and feed-forward, and once at the end: trains at higher learning rates.
    Pre,
    /// As `Pre`, and after attention and feed-forward too, before what they give is added.
    Both,
}

/// The activation of the feed-forward part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenActivation {
    /// GELU by the error function, as in BERT and the papers.
    #[default]
    Gelu,
    /// GELU by the hyperbolic tangent: `gelu_new` in `transformers`.
    GeluTanh,
    /// ReLU.
    Relu,
    /// SiLU, also called swish.
    Silu,
}

impl HiddenActivation {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl From<HiddenActivation> for Activation {
    fn from(activation: HiddenActivation) -> Self {
        match activation {
            HiddenActivation::Gelu => Self::Gelu,
            HiddenActivation::GeluTanh => Self::GeluTanh,
            HiddenActivation::Relu => Self::Relu,
            HiddenActivation::Silu => Self::Silu,
        }
    }
}

/// How position embeddings are initialised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PositionStart {
    /// Normal noise, like all other weights.
    #[default]
    Normal,
    /// Sinusoids of amplitude 0.1 with wavelengths from 4 positions to twice the longest input:
    /// languages then agree on positions from the start, and a shared space emerges sooner.
    Sinusoid,
}

/// How many entries the vocabulary has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum VocabularySize {
    /// The same for every language: one table, or tables of one size.
    Size(usize),
    /// For each language its own, where embeddings are separate.
    Sizes(BTreeMap<String, usize>),
}

/// The shape of an encoder and its sharing plan. The defaults are those of the papers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EncoderConfig {
    /// The languages, in the order of their numbers.
    pub languages: Vec<String>,
    /// Entries of the vocabulary.
    pub vocabulary: VocabularySize,
    /// Transformer layers.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Dimension of the hidden states.
    pub dim: usize,
    /// Dimension within the feed-forward part.
    pub hidden: usize,
    /// The longest input, in tokens.
    pub positions: usize,
    /// Dropout of embeddings and of what attention and feed-forward add.
    pub dropout: f32,
    /// Dropout of the attention weights.
    pub attention_dropout: f32,
    /// Where LayerNorm stands.
    pub norm: NormPlace,
    /// What LayerNorm adds to the variance.
    pub epsilon: f32,
    /// The activation of the feed-forward part.
    #[serde(skip_serializing_if = "HiddenActivation::is_default")]
    pub activation: HiddenActivation,
    /// Whether each language has an embedding of its own, added to every token.
    pub language_embeddings: bool,
    /// Whether a dense layer with an activation and LayerNorm stands before the softmax, as in BERT.
    pub transform: bool,
    /// The activation of that layer, where it is not that of the feed-forward part: RoBERTa has GELU
    /// there always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_activation: Option<HiddenActivation>,
    /// Kinds of segments that have an embedding each, as the two sentences of a pair in BERT; 0 for
    /// none.
    #[serde(skip_serializing_if = "is_zero")]
    pub segments: usize,
    /// Whether the softmax has a table of its own instead of the token embeddings.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub untied: bool,
    /// What is separate for each language.
    pub separate: SharingPlan,
    /// Standard deviation of the weights at the start.
    pub init_std: f32,
    /// Whether what feeds the residual stream starts smaller by √(2 · layers).
    pub scale_outputs: bool,
    /// How position embeddings begin.
    pub start_positions: PositionStart,
    /// What it is made of, where this is not what the papers have.
    #[serde(skip_serializing_if = "Parts::is_default")]
    pub parts: Parts,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            languages: vec!["en".to_owned()],
            vocabulary: VocabularySize::Size(80_000),
            layers: 8,
            heads: 12,
            dim: 768,
            hidden: 3072,
            positions: 256,
            dropout: 0.1,
            attention_dropout: 0.1,
            norm: NormPlace::Post,
            epsilon: 1e-12,
            activation: HiddenActivation::Gelu,
            language_embeddings: false,
            transform: false,
            head_activation: None,
            segments: 0,
            untied: false,
            separate: SharingPlan::none(),
            init_std: 0.02,
            scale_outputs: false,
            start_positions: PositionStart::Normal,
            parts: Parts::default(),
        }
    }
}

impl EncoderConfig {
    /// The number of a language.
    pub fn language(&self, name: &str) -> Result<usize, ConfigError> {
        self.languages.iter().position(|language| language == name).ok_or_else(|| {
            error("languages", format!("no '{name}' among {}", self.languages.join(", ")))
        })
    }

    /// The activation of the dense layer before the softmax.
    pub(crate) fn head_activation(&self) -> Activation {
        self.head_activation.unwrap_or(self.activation).into()
    }

    /// How many entries the table of a language has.
    pub fn entries(&self, language: usize) -> usize {
        match &self.vocabulary {
            VocabularySize::Size(size) => *size,
            VocabularySize::Sizes(sizes) => sizes[&self.languages[language]],
        }
    }

    /// The fewest weights that an encoder of this shape can have: its matrices where everything is shared. What holds
    /// fewer is not of this shape, whatever it says, and no memory is taken for it.
    pub fn least_weights(&self) -> u128 {
        let [dim, hidden] = [self.dim, self.hidden].map(|size| size as u128);
        let [queries, keys] =
            [self.heads, self.sources()].map(|heads| heads as u128 * self.width() as u128);
        let maps = if self.parts.gated { 3 } else { 2 };
        let layer = 2 * dim * (queries + keys) + maps * dim * hidden;
        let entries = match &self.vocabulary {
            VocabularySize::Size(size) => *size,
            VocabularySize::Sizes(sizes) => sizes.values().copied().max().unwrap_or(0),
        };
        let rows = match self.parts.positions {
            Positions::Learned => self.positions,
            Positions::Rotary(_) | Positions::Slopes => 0,
        };
        self.layers as u128 * layer + (entries as u128 + rows as u128) * dim
    }

    /// Whether the configuration is valid; if not, which key is not and why.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_languages()?;
        let sizes = [
            ("layers", self.layers),
            ("heads", self.heads),
            ("dim", self.dim),
            ("hidden", self.hidden),
            ("positions", self.positions),
        ];
        for (key, size) in sizes {
            check_size(key, size)?;
        }
        if self.layers > MOST_LAYERS {
            return Err(error("layers", format!("{} is more than {MOST_LAYERS}", self.layers)));
        }
        if self.parts.attention.width.is_none() && !self.dim.is_multiple_of(self.heads) {
            let reason = format!("{} heads do not divide dim = {}", self.heads, self.dim);
            return Err(error("heads", reason));
        }
        for (key, rate) in
            [("dropout", self.dropout), ("attention_dropout", self.attention_dropout)]
        {
            if !(0.0..1.0).contains(&rate) {
                return Err(error(key, format!("{rate} is not a share from 0 to below 1")));
            }
        }
        for (key, number) in [("epsilon", self.epsilon), ("init_std", self.init_std)] {
            if !(number > 0.0 && number.is_finite()) {
                return Err(error(key, format!("{number} is not a positive number")));
            }
        }
        if self.segments > 0 {
            check_size("segments", self.segments)?;
        }
        self.check_plan()?;
        self.parts.check(self)?;
        if self.least_weights() > MOST_WEIGHTS {
            let reason = format!(
                "with hidden = {} and layers = {}, too many weights for any machine",
                self.hidden, self.layers
            );
            return Err(error("dim", reason));
        }
        Ok(())
    }

    fn check_languages(&self) -> Result<(), ConfigError> {
        if self.languages.is_empty() {
            return Err(error("languages", "name at least one".to_owned()));
        }
        for (at, name) in self.languages.iter().enumerate() {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                let reason = format!("'{name}' is no name: use letters, digits, '-' and '_'");
                return Err(error("languages", reason));
            }
            if self.languages[..at].contains(name) {
                return Err(error("languages", format!("'{name}' is named twice")));
            }
        }
        Ok(())
    }

    fn check_plan(&self) -> Result<(), ConfigError> {
        if let Some(layer) = self.separate.layers.iter().find(|&&layer| layer > self.layers) {
            let reason = format!("layer {layer} is to be separate, but layers = {}", self.layers);
            return Err(error("separate", reason));
        }
        let sizes = match &self.vocabulary {
            VocabularySize::Size(size) => return check_size("vocabulary", *size),
            VocabularySize::Sizes(sizes) => sizes,
        };
        if !self.separate.tokens {
            let reason = "one size for each language needs separate embeddings; give one number, \
                          or separate = \"embeddings\"";
            return Err(error("vocabulary", reason.to_owned()));
        }
        for name in &self.languages {
            match sizes.get(name) {
                None => return Err(error("vocabulary", format!("no size for '{name}'"))),
                Some(&size) => check_size("vocabulary", size)?,
            }
        }
        match sizes.keys().find(|name| !self.languages.contains(name)) {
            Some(name) => Err(error("vocabulary", format!("'{name}' is none of the languages"))),
            None => Ok(()),
        }
    }
}

/// Whether a key says nothing that its default does not; left out, so that files stay as they were.
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The most weights that all layers together may have: a terabyte of them.
const MOST_WEIGHTS: u128 = 1 << 38;

/// The most layers: the deepest Transformers have a hundred or two, and every layer costs time to set up.
const MOST_LAYERS: usize = 1024;

/// The largest that any size may be: two multiplied still count without wrapping.
const LARGEST: usize = 10_000_000;

pub(crate) fn check_size(key: &'static str, size: usize) -> Result<(), ConfigError> {
    match size {
        0 => Err(error(key, "must not be 0".to_owned())),
        1..=LARGEST => Ok(()),
        _ => Err(error(key, format!("{size} is more than {LARGEST}"))),
    }
}

fn error(key: &'static str, reason: String) -> ConfigError {
    ConfigError::new(key, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut EncoderConfig)) -> String {
        let mut config = EncoderConfig {
            languages: vec!["en".to_owned(), "fr".to_owned()],
            ..EncoderConfig::default()
        };
        config.check().expect("sound before the change");
        change(&mut config);
        config.check().expect_err("refused after it").to_string()
    }

    #[test]
    fn nonsense_is_refused_with_key_and_reason() {
        assert_eq!(refused(|c| c.heads = 5), "heads: 5 heads do not divide dim = 768");
        assert_eq!(refused(|c| c.hidden = 0), "hidden: must not be 0");
        let deep = refused(|c| (c.layers, c.dim, c.hidden) = (65_536, 12, 12));
        assert_eq!(deep, "layers: 65536 is more than 1024");
        assert_eq!(
            refused(|c| c.dim = usize::MAX & !7),
            format!("dim: {} is more than 10000000", usize::MAX & !7)
        );
        assert_eq!(
            refused(|c| c.vocabulary = VocabularySize::Size(0)),
            "vocabulary: must not be 0"
        );
        let separate = refused(|c| c.separate = "7-9".parse().unwrap());
        assert_eq!(separate, "separate: layer 9 is to be separate, but layers = 8");
        assert!(refused(|c| c.dropout = 1.0).starts_with("dropout: 1 is not a share"));
        assert!(refused(|c| c.epsilon = f32::NAN).starts_with("epsilon: "));
        assert!(refused(|c| c.languages[1] = "en".to_owned()).contains("named twice"));
        assert!(refused(|c| c.languages.clear()).contains("at least one"));
        let sizes = |c: &mut EncoderConfig, names: &[&str]| {
            c.separate = "embeddings".parse().unwrap();
            let sizes = names.iter().map(|&name| (name.to_owned(), 10)).collect();
            c.vocabulary = VocabularySize::Sizes(sizes);
        };
        assert!(refused(|c| sizes(c, &["en"])).contains("no size for 'fr'"));
        assert!(refused(|c| sizes(c, &["en", "fr", "de"])).contains("'de' is none of"));
    }

    #[test]
    fn an_unknown_language_is_named() {
        let error = EncoderConfig::default().language("eo").unwrap_err();
        assert_eq!(error.to_string(), "languages: no 'eo' among en");
    }

    #[test]
    fn a_configuration_reads_as_it_was_written() {
        let config = EncoderConfig {
            languages: vec!["en".to_owned(), "ru".to_owned()],
            separate: "embeddings, 1-3".parse().unwrap(),
            ..EncoderConfig::default()
        };
        let text = toml::to_string(&config).unwrap();
        assert!(text.contains("separate = \"embeddings, 1-3\""), "{text}");
        assert_eq!(toml::from_str::<EncoderConfig>(&text).unwrap(), config);
        assert!(
            !text.contains("activation"),
            "GELU is not written, so that files stay as they were: {text}"
        );
        let silu: EncoderConfig = toml::from_str("activation = \"silu\"").unwrap();
        assert_eq!(silu.activation, HiddenActivation::Silu);
        let error = toml::from_str::<EncoderConfig>("headz = 3").unwrap_err().to_string();
        assert!(error.contains("headz"), "{error}");
    }
}
