//! The parts in which models since 2021 differ from the encoder of the papers.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tensor::{Heads, NormKind, Reach};

use crate::config::{ConfigError, EncoderConfig, NormPlace, check_size};

/// What a Transformer is made of, beside its sizes. The defaults are those of the papers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Parts {
    /// LayerNorm or RMSNorm.
    pub norm: NormKind,
    /// Whether norms add an offset.
    pub norm_bias: bool,
    /// Whether there is a norm of the embeddings, where this does not follow from the place of norms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embedding_norm: Option<bool>,
    /// Whether the first layer has a norm before its attention, where norms stand before.
    pub first_norm: bool,
    /// What token embeddings are multiplied by.
    pub embedding_scale: f32,
    /// How the model knows where a token stands.
    pub positions: Positions,
    /// Who sees what.
    pub attention: AttentionParts,
    /// Whether the feed-forward part is a product of two maps, one of which has the activation (GeGLU, SwiGLU).
    pub gated: bool,
    /// Which affine maps add a bias.
    pub biases: Biases,
    /// Logits `x` become `cap · tanh(x / cap)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logit_cap: Option<f32>,
}

/// How a model knows where a token stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Positions {
    /// A learned embedding of each position.
    #[default]
    Learned,
    /// Queries and keys are turned by angles that grow with the position (RoPE, Su et al. 2021).
    Rotary(Rotary),
    /// Scores fall with the distance (ALiBi, Press et al. 2022); of a decoder.
    Slopes,
}

/// The angles of RoPE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rotary {
    /// The slowest pair of columns turns nearly this many times more slowly than the fastest.
    pub base: f64,
    /// The same in layers with a window, where it is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_base: Option<f64>,
    /// How the angles of layers without a window are stretched to longer texts than the model was first trained on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
    /// Columns of each head that are turned, where these are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<usize>,
}

/// How the angles of RoPE are stretched.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stretch {
    /// All angles are divided by a factor (Chen et al. 2023).
    Linear {
        /// The factor.
        factor: f64,
    },
    /// Slow angles are divided, fast ones are not, as in Llama 3.1.
    Llama3 {
        /// What slow angles are divided by.
        factor: f64,
        /// Pairs that turn less often than this within the first training's length are slow.
        low: f64,
        /// Pairs that turn more often are fast.
        high: f64,
        /// The length of texts in the first training.
        trained: f64,
    },
    /// YaRN (Peng et al. 2023): as Llama 3.1, by a ramp over the columns, with larger scores.
    Yarn {
        /// What slow angles are divided by.
        factor: f64,
        /// Turns within the first training's length from which a pair is fast.
        fast: f64,
        /// Turns below which it is slow.
        slow: f64,
        /// The length of texts in the first training.
        trained: f64,
        /// What queries and keys are multiplied by.
        amplitude: f64,
    },
}

/// The heads of attention, and who sees what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AttentionParts {
    /// Heads of keys and values, where they are fewer than those of queries (Ainslie et al. 2023).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sources: Option<usize>,
    /// The width of a head, where all of them together are not as wide as the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Whether each head of queries and of keys has a norm.
    pub head_norm: bool,
    /// Whether a token sees only itself and those before it, as in decoders.
    pub causal: bool,
    /// Layers that see a window alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
    /// What scores are multiplied by, where it is not the inverse root of the width of a head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale: Option<f32>,
    /// Scores `s` become `cap · tanh(s / cap)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<f32>,
}

/// How far the layers see that do not see everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// How many tokens to each side; of a decoder, before.
    pub reach: usize,
    /// Layers that see everything all the same, counted from 1.
    pub global: BTreeSet<usize>,
}

/// Which affine maps add a bias.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Biases {
    /// Queries, keys and values.
    pub attention: bool,
    /// The output of attention.
    pub output: bool,
    /// The feed-forward part.
    pub hidden: bool,
    /// The dense layer before the softmax.
    pub head: bool,
}

impl Default for Biases {
    fn default() -> Self {
        Self { attention: true, output: true, hidden: true, head: true }
    }
}

impl Default for Parts {
    fn default() -> Self {
        Self {
            norm: NormKind::Layer,
            norm_bias: true,
            embedding_norm: None,
            first_norm: true,
            embedding_scale: 1.0,
            positions: Positions::Learned,
            attention: AttentionParts::default(),
            gated: false,
            biases: Biases::default(),
            logit_cap: None,
        }
    }
}

impl Parts {
    /// Whether they are those of the papers.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a layer, counted from 1, sees a window alone.
    pub(crate) fn is_local(&self, layer: usize) -> bool {
        self.attention.window.as_ref().is_some_and(|window| !window.global.contains(&layer))
    }

    pub(crate) fn check(&self, config: &EncoderConfig) -> Result<(), ConfigError> {
        let error = |key: &'static str, reason: String| Err(ConfigError::new(key, reason));
        let AttentionParts { sources, width, scale, cap, window, .. } = &self.attention;
        for size in [sources, width].into_iter().flatten() {
            check_size("parts.attention", *size)?;
        }
        if !config.heads.is_multiple_of(config.sources()) {
            let reason = format!("{} do not divide {} heads", config.sources(), config.heads);
            return error("parts.attention.sources", reason);
        }
        if let Some(layer) = window.iter().flat_map(|w| &w.global).find(|&&l| l > config.layers) {
            let reason = format!("names layer {layer}, but layers = {}", config.layers);
            return error("parts.attention.window", reason);
        }
        let numbers = [*scale, *cap, self.logit_cap, Some(self.embedding_scale)];
        if let Some(number) =
            numbers.into_iter().flatten().find(|number| !(*number > 0.0 && number.is_finite()))
        {
            return error("parts", format!("{number} is not a positive number"));
        }
        if !self.first_norm && config.norm == NormPlace::Post {
            return error(
                "parts.first_norm",
                "only norms that stand before can be left out".to_owned(),
            );
        }
        match &self.positions {
            Positions::Slopes if !self.attention.causal || cap.is_some() => {
                let reason = "slopes are of decoders, without a cap".to_owned();
                error("parts.positions", reason)
            }
            Positions::Learned | Positions::Slopes => Ok(()),
            Positions::Rotary(rotary) => rotary.check(config.width()),
        }
    }
}

impl EncoderConfig {
    /// Columns of a head.
    pub fn width(&self) -> usize {
        self.parts.attention.width.unwrap_or(self.dim / self.heads.max(1))
    }

    /// Heads of keys and values.
    pub fn sources(&self) -> usize {
        self.parts.attention.sources.unwrap_or(self.heads)
    }

    /// The heads of a layer, counted from 1.
    pub(crate) fn heads_of(&self, layer: usize) -> Heads {
        let AttentionParts { causal, window, scale, cap, .. } = &self.parts.attention;
        let reach = window.as_ref().filter(|_| self.parts.is_local(layer)).map(|w| w.reach);
        let reach = Reach { before: reach, after: if *causal { Some(0) } else { reach } };
        let sloped = self.parts.positions == Positions::Slopes;
        let (count, sources) = (self.heads, self.sources());
        Heads { count, sources, reach, scale: *scale, cap: *cap, sloped }
    }
}

impl Rotary {
    fn check(&self, width: usize) -> Result<(), ConfigError> {
        let columns = self.columns.unwrap_or(width);
        if !columns.is_multiple_of(2) || !(1..=width).contains(&columns) {
            let reason = format!("columns are turned in pairs, not {columns} of a head of {width}");
            return Err(ConfigError::new("parts.positions", reason));
        }
        let bases = [Some(self.base), self.local_base];
        match bases.into_iter().flatten().find(|base| !(*base > 1.0 && base.is_finite())) {
            Some(base) => {
                let reason = format!("base: {base} is not a number above 1");
                Err(ConfigError::new("parts.positions", reason))
            }
            None => Ok(()),
        }
    }

    /// The angles of so many positions, in layers with a window or in those without: positions x turned columns, cosines
    /// before sines.
    pub(crate) fn angles(&self, width: usize, positions: usize, local: bool) -> (usize, Vec<f32>) {
        let columns = self.columns.unwrap_or(width);
        let base = self.local_base.filter(|_| local).unwrap_or(self.base);
        let stretch = self.stretch.filter(|_| !local || self.local_base.is_none());
        let speeds = speeds(columns, base, stretch);
        let amplitude = match stretch {
            Some(Stretch::Yarn { amplitude, .. }) => amplitude as f32,
            _ => 1.0,
        };
        let row = |position: usize| {
            // Angles are rounded as the models' own library rounds them.
            let angles = speeds.iter().map(move |speed| speed * position as f32);
            let part =
                |turn: fn(f32) -> f32| angles.clone().map(move |angle| turn(angle) * amplitude);
            part(f32::cos).chain(part(f32::sin)).collect::<Vec<f32>>()
        };
        (columns, (0..positions).flat_map(row).collect())
    }
}

/// By how much each pair of columns turns from one position to the next.
fn speeds(columns: usize, base: f64, stretch: Option<Stretch>) -> Vec<f32> {
    let turn = std::f64::consts::TAU;
    let speed = |pair: usize| base.powf(-2.0 * pair as f64 / columns as f64);
    // The pair, as a number with a fraction, that turns so often within a length.
    let pair_of = |turns: f64, length: f64| {
        columns as f64 * (length / (turns * turn)).ln() / (2.0 * base.ln())
    };
    let stretched = |pair: usize| {
        let speed = speed(pair);
        match stretch {
            None => speed,
            Some(Stretch::Linear { factor }) => speed / factor,
            Some(Stretch::Llama3 { factor, low, high, trained }) => {
                let turns = trained * speed / turn;
                let fast = ((turns - low) / (high - low)).clamp(0.0, 1.0);
                fast * speed + (1.0 - fast) * speed / factor
            }
            Some(Stretch::Yarn { factor, fast, slow, trained, .. }) => {
                let first = pair_of(fast, trained).floor().max(0.0);
                let last = pair_of(slow, trained).ceil().min(columns as f64 - 1.0);
                let ramp = (pair as f64 - first) / (last - first).max(0.001);
                let slow = ramp.clamp(0.0, 1.0);
                slow * speed / factor + (1.0 - slow) * speed
            }
        }
    };
    (0..columns / 2).map(|pair| stretched(pair) as f32).collect()
}
