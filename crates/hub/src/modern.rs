//! `config.json` of models since 2019 that are made of other parts than BERT: GPT-2, BLOOM, XGLM, ModernBERT, and what
//! goes back to Llama.

use std::collections::BTreeSet;

use encoder::{
    AttentionParts, Biases, EncoderConfig, HiddenActivation, NormPlace, Parts, Positions, Rotary,
    Stretch, Window,
};
use serde_json::Value;
use tensor::NormKind;
use text::Result;

use crate::config::{ConfigKeys, Family, LIKE_BERT, ModelConfig};
use crate::read::Sinusoids;

/// Model types that go back to Llama, with the family whose names they have.
pub(crate) const LIKE_LLAMA: [(&str, Family); 8] = [
    ("llama", Family::Llama),
    ("mistral", Family::Llama),
    ("qwen2", Family::Llama),
    ("qwen3", Family::Llama),
    ("eurobert", Family::Llama),
    ("gemma", Family::Gemma),
    ("gemma2", Family::GemmaTwo),
    ("gemma3_text", Family::GemmaTwo),
];

/// More than any model has: a list is made of so many.
const MOST_LAYERS: usize = 10_000;

impl ConfigKeys<'_> {
    pub(crate) fn like_llama(&self, kind: &str, family: Family) -> Result<ModelConfig> {
        let (dim, heads) = (self.size("hidden_size")?, self.size("num_attention_heads")?);
        let is_gemma = kind.starts_with("gemma");
        let causal = kind != "eurobert" && !self.is("use_bidirectional_attention", false);
        let biased = self.is("attention_bias", false);
        let hidden_biased = self.is("mlp_bias", false);
        let scalar = self.size_or("query_pre_attn_scalar", 0)?;
        let default_cap = |cap| if kind == "gemma2" { Some(cap) } else { None };
        let (local, global) = self.rotary()?;
        let width = self.size_or("head_dim", dim / heads.max(1))?;
        let columns = match self.rope("full_attention")["partial_rotary_factor"].as_f64() {
            Some(share) if share != 1.0 => Some((width as f64 * share) as usize),
            _ => None,
        };
        let local_base = (local.0 != global.0).then_some(local.0);
        let parts = Parts {
            norm: NormKind::Rms,
            norm_bias: false,
            embedding_scale: if is_gemma { (dim as f32).sqrt() } else { 1.0 },
            positions: Positions::Rotary(Rotary {
                base: global.0,
                local_base,
                stretch: global.1,
                columns,
            }),
            attention: AttentionParts {
                sources: Some(self.size_or("num_key_value_heads", heads)?),
                width: Some(width),
                head_norm: matches!(kind, "qwen3" | "gemma3_text"),
                causal,
                window: self.window(kind, causal)?,
                scale: (scalar > 0).then(|| 1.0 / (scalar as f32).sqrt()),
                cap: self.cap("attn_logit_softcapping", default_cap(50.0))?,
            },
            gated: true,
            biases: Biases {
                attention: biased || kind == "qwen2",
                output: biased,
                hidden: hidden_biased,
                head: false,
            },
            logit_cap: self.cap("final_logit_softcapping", default_cap(30.0))?,
            ..Parts::default()
        };
        let rates = [("", 0.0), ("attention_dropout", 0.0), ("rms_norm_eps", 1e-6)];
        let encoder = EncoderConfig {
            norm: if family == Family::GemmaTwo { NormPlace::Both } else { NormPlace::Pre },
            activation: self.gate_activation(is_gemma)?,
            parts,
            ..self.sized(LIKE_BERT, rates)?
        };
        Ok(self.plain(family, encoder, is_gemma))
    }

    pub(crate) fn modernbert(&self) -> Result<ModelConfig> {
        let (local, global) = self.rotary()?;
        let activation = self.activation("hidden_activation")?;
        let head = self.activation("classifier_activation")?;
        let biased = self.is("attention_bias", false);
        let parts = Parts {
            norm_bias: self.is("norm_bias", false),
            embedding_norm: Some(true),
            first_norm: false,
            positions: Positions::Rotary(Rotary {
                base: global.0,
                local_base: (local.0 != global.0).then_some(local.0),
                stretch: global.1,
                columns: None,
            }),
            attention: AttentionParts {
                window: self.window("modernbert", false)?,
                ..AttentionParts::default()
            },
            gated: true,
            biases: Biases {
                attention: biased,
                output: biased,
                hidden: self.is("mlp_bias", false),
                head: self.is("classifier_bias", false),
            },
            ..Parts::default()
        };
        let rates = [("mlp_dropout", 0.0), ("attention_dropout", 0.0), ("norm_eps", 1e-5)];
        let encoder = EncoderConfig {
            norm: NormPlace::Pre,
            activation,
            transform: true,
            head_activation: (head != activation).then_some(head),
            parts,
            ..self.sized(LIKE_BERT, rates)?
        };
        Ok(self.plain(Family::Modernbert, encoder, true))
    }

    pub(crate) fn gpt2(&self) -> Result<ModelConfig> {
        self.check_off("add_cross_attention", false, "attention to another model")?;
        self.check_off("scale_attn_weights", true, "scores without a scale")?;
        self.check_off("scale_attn_by_inverse_layer_idx", false, "scores scaled by layer")?;
        let attention = AttentionParts { causal: true, ..AttentionParts::default() };
        let names = ["n_layer", "n_head", "n_embd", "", "n_positions"];
        let rates = [("resid_pdrop", 0.1), ("attn_pdrop", 0.1), ("layer_norm_epsilon", 1e-5)];
        let sized = self.sized(names, rates)?;
        let encoder = EncoderConfig {
            hidden: self.size_or("n_inner", sized.hidden)?,
            norm: NormPlace::Pre,
            activation: match self.value["activation_function"].is_null() {
                true => HiddenActivation::GeluTanh,
                false => self.activation("activation_function")?,
            },
            parts: Parts { attention, ..Parts::default() },
            ..sized
        };
        Ok(self.plain(Family::GptTwo, encoder, true))
    }

    pub(crate) fn bloom(&self) -> Result<ModelConfig> {
        let what = "sums of what norms give";
        self.check_off("apply_residual_connection_post_layernorm", false, what)?;
        let parts = Parts {
            embedding_norm: Some(true),
            positions: Positions::Slopes,
            attention: AttentionParts { causal: true, ..AttentionParts::default() },
            ..Parts::default()
        };
        let heads = "n_head|num_attention_heads";
        let names = ["n_layer|num_hidden_layers", heads, "hidden_size|n_embed", "", ""];
        let rates =
            [("hidden_dropout", 0.0), ("attention_dropout", 0.0), ("layer_norm_epsilon", 1e-5)];
        let sized = self.sized(names, rates)?;
        let encoder = EncoderConfig {
            // No position is the last; this is what it was trained on.
            positions: self.size_or("seq_length", sized.positions)?,
            norm: NormPlace::Pre,
            activation: HiddenActivation::GeluTanh,
            parts,
            ..sized
        };
        Ok(self.plain(Family::Bloom, encoder, true))
    }

    pub(crate) fn xglm(&self) -> Result<ModelConfig> {
        self.check_off("add_cross_attention", false, "attention to another model")?;
        let dim = self.size("d_model")?;
        let scaled = self.is("scale_embedding", true);
        let parts = Parts {
            embedding_scale: if scaled { (dim as f32).sqrt() } else { 1.0 },
            attention: AttentionParts { causal: true, ..AttentionParts::default() },
            ..Parts::default()
        };
        let heads = "attention_heads";
        let names = ["num_layers", heads, "d_model", "ffn_dim", "max_position_embeddings"];
        let rates = [("dropout", 0.1), ("attention_dropout", 0.1), ("", 1e-5)];
        let encoder = EncoderConfig {
            norm: NormPlace::Pre,
            activation: self.activation("activation_function")?,
            parts,
            ..self.sized(names, rates)?
        };
        let sinusoids = Some(Sinusoids::Halves { first: 2 });
        Ok(ModelConfig { sinusoids, ..self.plain(Family::Xglm, encoder, true) })
    }

    /// Gemma says `gelu` and has always meant the tanh approximation.
    fn gate_activation(&self, is_gemma: bool) -> Result<HiddenActivation> {
        let named = ["hidden_activation", "hidden_act"].into_iter();
        let key = named.clone().find(|key| !self.value[*key].is_null());
        match key {
            _ if is_gemma && key.is_none_or(|key| self.value[key] == "gelu") => {
                Ok(HiddenActivation::GeluTanh)
            }
            None => Ok(HiddenActivation::Silu),
            Some(key) => self.activation(key),
        }
    }

    /// A cap; `null` for none.
    fn cap(&self, key: &str, default: Option<f32>) -> Result<Option<f32>> {
        match self.value.get(key) {
            None => Ok(default),
            Some(Value::Null) => Ok(None),
            Some(_) => self.number_or(key, 0.0).map(Some),
        }
    }

    /// What the configuration says of RoPE in a kind of layer, as transformers 5 or 4 wrote it.
    fn rope(&self, kind: &str) -> &Value {
        let new = &self.value["rope_parameters"];
        if new[kind].is_object() {
            &new[kind]
        } else if new.is_object() {
            new
        } else {
            &self.value["rope_scaling"]
        }
    }

    /// Base and stretch of RoPE, in layers with a window and in those without.
    #[allow(clippy::type_complexity, reason = "two pairs that are taken apart at once")]
    fn rotary(&self) -> Result<((f64, Option<Stretch>), (f64, Option<Stretch>))> {
        let base = |kind: &str, old: [&str; 2], default: f64| {
            let old = old.map(|key| &self.value[key]);
            let said = [&self.rope(kind)["rope_theta"], old[0], old[1]];
            said.into_iter().find_map(Value::as_f64).unwrap_or(default)
        };
        let default = if self.value["model_type"] == "modernbert" { 160_000.0 } else { 10_000.0 };
        let global = base("full_attention", ["global_rope_theta", "rope_theta"], default);
        let old = ["local_rope_theta", "rope_local_base_freq"];
        let local = match self.value["rope_parameters"]["sliding_attention"].is_object() {
            true => base("sliding_attention", old, 10_000.0),
            false => {
                let old = old.into_iter().find_map(|key| self.value[key].as_f64());
                old.unwrap_or(global)
            }
        };
        let sliding = &self.value["rope_parameters"]["sliding_attention"];
        if self.stretch(sliding)?.is_some() {
            return Err(
                self.refuse("`rope_parameters` stretches the angles of layers with a window")
            );
        }
        Ok(((local, None), (global, self.stretch(self.rope("full_attention"))?)))
    }

    fn stretch(&self, rope: &Value) -> Result<Option<Stretch>> {
        let kind = rope["rope_type"].as_str().or(rope["type"].as_str()).unwrap_or("default");
        let number = |key: &str| rope[key].as_f64();
        let need = |key: &str| {
            number(key).ok_or_else(|| self.refuse(format!("RoPE of type `{kind}` has no `{key}`")))
        };
        let trained = || {
            let key = "original_max_position_embeddings";
            let here = number(key).or(self.value[key].as_f64());
            Ok::<f64, text::Error>(here.unwrap_or(self.size("max_position_embeddings")? as f64))
        };
        Ok(match kind {
            "default" => None,
            "linear" => Some(Stretch::Linear { factor: need("factor")? }),
            "llama3" => Some(Stretch::Llama3 {
                factor: need("factor")?,
                low: need("low_freq_factor")?,
                high: need("high_freq_factor")?,
                trained: trained()?,
            }),
            "yarn" if rope["mscale"].is_null() && rope["truncate"] != false => {
                let factor = need("factor")?;
                let amplitude = number("attention_factor");
                Some(Stretch::Yarn {
                    factor,
                    fast: number("beta_fast").unwrap_or(32.0),
                    slow: number("beta_slow").unwrap_or(1.0),
                    trained: trained()?,
                    amplitude: amplitude.unwrap_or_else(|| 0.1 * factor.max(1.0).ln() + 1.0),
                })
            }
            other => {
                let reason =
                    format!("RoPE of type `{other}` is none of default, linear, llama3 and yarn");
                return Err(self.refuse(reason));
            }
        })
    }

    /// Which layers see a window alone, and how far.
    fn window(&self, kind: &str, causal: bool) -> Result<Option<Window>> {
        let layers = self.size("num_hidden_layers")?;
        if layers > MOST_LAYERS {
            return Err(
                self.refuse(format!("`num_hidden_layers` is {layers}, more than {MOST_LAYERS}"))
            );
        }
        let pattern =
            |key: &str, default: usize| self.size_or(key, default).map(|size| size.max(1));
        let is_global: Vec<bool> = match (self.value["layer_types"].as_array(), kind) {
            (Some(kinds), "qwen2" | "qwen3" | "gemma2" | "gemma3_text" | "modernbert") => {
                let kinds = kinds.iter().map(|kind| match kind.as_str() {
                    Some("full_attention") => Ok(true),
                    Some("sliding_attention") => Ok(false),
                    _ => {
                        Err(self
                            .refuse(format!("`layer_types` names {kind}, which is not known here")))
                    }
                });
                kinds.collect::<Result<_>>()?
            }
            (_, "mistral") => vec![self.value["sliding_window"].is_null(); layers],
            (_, "qwen2" | "qwen3") => {
                let slides = self.is("use_sliding_window", false);
                let first = self.size_or("max_window_layers", layers)?;
                (0..layers).map(|layer| !slides || layer < first).collect()
            }
            (_, "gemma2") => (0..layers).map(|layer| layer % 2 == 1).collect(),
            (_, "gemma3_text") => {
                let every = pattern("sliding_window_pattern", 6)?;
                (0..layers).map(|layer| (layer + 1) % every == 0).collect()
            }
            (_, "modernbert") => {
                let every = pattern("global_attn_every_n_layers", 3)?;
                (0..layers).map(|layer| layer % every == 0).collect()
            }
            _ => vec![true; layers],
        };
        if is_global.len() != layers {
            return Err(
                self.refuse(format!("`layer_types` has {} layers of {layers}", is_global.len()))
            );
        }
        if is_global.iter().all(|&global| global) {
            return Ok(None);
        }
        let reach = match kind {
            "modernbert" => self.size_or("local_attention", 128)? / 2,
            _ if causal => self.size_or("sliding_window", 4096)?.saturating_sub(1),
            _ => self.size_or("sliding_window", 4096)? / 2,
        };
        let numbered = (1..).zip(is_global);
        let global: BTreeSet<usize> =
            numbered.filter_map(|(layer, global)| global.then_some(layer)).collect();
        Ok(Some(Window { reach, global }))
    }
}
