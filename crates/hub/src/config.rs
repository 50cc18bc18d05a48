//! `config.json`: which family a model is of, and its architecture.

use std::path::Path;

use encoder::{EncoderConfig, HiddenActivation, NormPlace, VocabularySize};
use files::At;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use text::{Error, Result};

use crate::gguf;
use crate::modern::LIKE_LLAMA;
use crate::read::Sinusoids;

/// The file's name.
pub(crate) const CONFIG: &str = "config.json";

/// What a model without a list of languages calls its only one.
pub(crate) const ANY: &str = "any";

/// The families whose architecture an [`encoder::Encoder`] has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// BERT, multilingual or not.
    Bert,
    /// DistilBERT.
    Distilbert,
    /// RoBERTa, XLM-R and CamemBERT, which differ in their tokenizers alone.
    Roberta,
    /// XLM.
    Xlm,
    /// XLM-R XL and XXL: LayerNorm stands before.
    XlmRobertaXl,
    /// ModernBERT and mmBERT.
    Modernbert,
    /// Llama, Mistral, Qwen 2 and 3, EuroBERT.
    Llama,
    /// The first Gemma.
    Gemma,
    /// Gemma 2 and 3.
    GemmaTwo,
    /// GPT-2.
    GptTwo,
    /// BLOOM.
    Bloom,
    /// XGLM.
    Xglm,
}

impl Family {
    /// Whether its models came after BERT's kin.
    pub(crate) fn is_modern(self) -> bool {
        !matches!(
            self,
            Self::Bert | Self::Distilbert | Self::Roberta | Self::Xlm | Self::XlmRobertaXl
        )
    }
}

/// What `config.json` says, checked.
#[derive(Clone, Debug)]
pub(crate) struct ModelConfig {
    pub(crate) family: Family,
    /// With what the weights alone can tell (head, segments) as the family has it.
    pub(crate) encoder: EncoderConfig,
    /// Rows at the start of the table of positions that no position uses.
    pub(crate) unused_positions: usize,
    /// Rows of the table of segments.
    pub(crate) segments: usize,
    /// Whether the positions are sinusoids, which need not be in the file.
    pub(crate) sinusoids: Option<Sinusoids>,
    /// Whether the model lists its languages.
    pub(crate) lists_languages: bool,
    /// Whether the softmax may take its table from the tokens.
    pub(crate) tied: bool,
    /// Whether masked tokens are what it predicts.
    pub(crate) masked: bool,
}

/// Whether a folder holds a Hugging Face checkpoint, a `config.json` that names its type, or a GGUF file; or is one.
pub fn is_checkpoint(folder: &Path) -> bool {
    if gguf::gguf_file(folder).is_some() {
        return true;
    }
    let text = std::fs::read_to_string(folder.join(CONFIG)).unwrap_or_default();
    let config: Value = serde_json::from_str(&text).unwrap_or_default();
    config["model_type"].as_str().is_some_and(|kind| kind != "isogloss")
}

/// The architecture of a Hugging Face checkpoint, by its `config.json` alone.
pub fn architecture(folder: &Path) -> Result<EncoderConfig> {
    Ok(ModelConfig::read(folder)?.encoder)
}

impl ModelConfig {
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let (path, value) = match gguf::gguf_file(folder) {
            Some(path) => {
                let value = gguf::config(&path)?;
                (path, value)
            }
            None => {
                let path = folder.join(CONFIG);
                let text =
                    std::fs::read_to_string(&path).at(&path, "read the model's configuration")?;
                let value = serde_json::from_str(&text);
                let value =
                    value.map_err(|error| Error::file(&path, error.to_string(), SAVE_ANEW))?;
                (path, value)
            }
        };
        let keys = ConfigKeys { path: &path, value };
        let family = keys.family()?;
        let config = match family {
            Family::Bert | Family::Roberta | Family::XlmRobertaXl => keys.like_bert(family)?,
            Family::Distilbert => keys.distilbert()?,
            Family::Xlm => keys.xlm()?,
            Family::Modernbert => keys.modernbert()?,
            Family::GptTwo => keys.gpt2()?,
            Family::Bloom => keys.bloom()?,
            Family::Xglm => keys.xglm()?,
            Family::Llama | Family::Gemma | Family::GemmaTwo => {
                keys.like_llama(keys.kind(), family)?
            }
        };
        config.encoder.check().map_err(|error| keys.refuse(error.to_string()))?;
        Ok(config)
    }
}

/// The activation that `transformers` calls so.
fn activation(name: &str) -> Option<HiddenActivation> {
    match name {
        "gelu" | "gelu_python" => Some(HiddenActivation::Gelu),
        "gelu_new" | "gelu_fast" | "gelu_accurate" | "gelu_pytorch_tanh" | "gelu_python_tanh" => {
            Some(HiddenActivation::GeluTanh)
        }
        "relu" => Some(HiddenActivation::Relu),
        "silu" | "swish" => Some(HiddenActivation::Silu),
        _ => None,
    }
}

/// What `transformers` calls an activation, in every version.
pub(crate) fn activation_name(activation: HiddenActivation) -> &'static str {
    match activation {
        HiddenActivation::Gelu => "gelu",
        HiddenActivation::GeluTanh => "gelu_new",
        HiddenActivation::Relu => "relu",
        HiddenActivation::Silu => "silu",
    }
}

const SAVE_ANEW: &str = "save the model anew with `save_pretrained`";

/// What serves where a family is not known.
const ARRAYS: &str = "save its states with transformers as `states.npy` and `sentences.jsonl` (ten lines, in the book under \"Use Hugging Face \
    models\") and give that folder as the model to `retrieve`, `cka`, `similarity`, `neighbours`, `map`, `mine` or `word-align`";

/// The longest input where no position is the last and none is said.
const UNSAID: usize = 2048;

/// What BERT's kin, and most models after it, call layers, heads, width, inner width and longest input.
pub(crate) const LIKE_BERT: [&str; 5] = [
    "num_hidden_layers",
    "num_attention_heads",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
];

/// The keys of a `config.json`.
pub(crate) struct ConfigKeys<'a> {
    path: &'a Path,
    pub(crate) value: Value,
}

impl ConfigKeys<'_> {
    pub(crate) fn refuse(&self, reason: impl std::fmt::Display) -> Error {
        Error::file(self.path, reason, "import a model of a shape that is known here")
    }

    pub(crate) fn kind(&self) -> &str {
        self.value["model_type"].as_str().unwrap_or_default()
    }

    fn family(&self) -> Result<Family> {
        if let Some((_, family)) = LIKE_LLAMA.iter().find(|(kind, _)| *kind == self.kind()) {
            return Ok(*family);
        }
        Ok(match self.kind() {
            "bert" => Family::Bert,
            "distilbert" => Family::Distilbert,
            "roberta" | "xlm-roberta" | "camembert" => Family::Roberta,
            "xlm" => Family::Xlm,
            "xlm-roberta-xl" => Family::XlmRobertaXl,
            "modernbert" => Family::Modernbert,
            "gpt2" => Family::GptTwo,
            "bloom" => Family::Bloom,
            "xglm" => Family::Xglm,
            other => {
                let llamas = LIKE_LLAMA.map(|(kind, _)| kind).join(", ");
                let reason = format!(
                    "model_type `{other}` is none of bert, distilbert, roberta, xlm-roberta, camembert, xlm, \
                     xlm-roberta-xl, modernbert, gpt2, bloom, xglm, {llamas}"
                );
                return Err(Error::file(self.path, reason, ARRAYS));
            }
        })
    }

    pub(crate) fn size(&self, key: &str) -> Result<usize> {
        if self.value[key].is_null() {
            let remedy = "put the model's own configuration in its place";
            return Err(Error::file(self.path, format!("`{key}` is missing"), remedy));
        }
        let size = self.value[key].as_u64().and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| self.refuse(format!("`{key}` is no whole number")))
    }

    pub(crate) fn size_or(&self, key: &str, default: usize) -> Result<usize> {
        if self.value[key].is_null() { Ok(default) } else { self.size(key) }
    }

    pub(crate) fn number_or(&self, key: &str, default: f32) -> Result<f32> {
        match &self.value[key] {
            Value::Null => Ok(default),
            value => {
                let number = value.as_f64().map(|number| number as f32);
                number.ok_or_else(|| self.refuse(format!("`{key}` is not a number")))
            }
        }
    }

    pub(crate) fn is(&self, key: &str, default: bool) -> bool {
        self.value[key].as_bool().unwrap_or(default)
    }

    fn alternating(&self, key: &str) -> Option<Sinusoids> {
        self.is(key, false).then_some(Sinusoids::Alternating)
    }

    /// The activation of the feed-forward part.
    pub(crate) fn activation(&self, key: &str) -> Result<HiddenActivation> {
        let name = self.value[key].as_str().unwrap_or("gelu");
        activation(name).ok_or_else(|| {
            self.refuse(format!(
                "`{key}` is {name}, which is none of gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, relu, \
                 silu and swish"
            ))
        })
    }

    /// Refuses a key that turns on something that no encoder here has.
    pub(crate) fn check_off(&self, key: &str, off: bool, what: &str) -> Result<()> {
        match self.is(key, off) == off {
            true => Ok(()),
            false => Err(self.refuse(format!("`{key}` asks for {what}, which is not known here"))),
        }
    }

    fn like_bert(&self, family: Family) -> Result<ModelConfig> {
        let activation = self.activation("hidden_act")?;
        // The head of RoBERTa and its kin has GELU, whatever the layers have.
        let gelu_head = family != Family::Bert && activation != HiddenActivation::Gelu;
        self.check_off("is_decoder", false, "a decoder")?;
        self.check_off("add_cross_attention", false, "attention to another model")?;
        if let Some(kind) = self.value["position_embedding_type"].as_str()
            && kind != "absolute"
        {
            let reason = format!("`position_embedding_type` is {kind}, and only absolute is known");
            return Err(self.refuse(reason));
        }
        let unused = match family {
            Family::Bert => 0,
            _ => self.size_or("pad_token_id", 1)?.saturating_add(1),
        };
        let rows = self.size("max_position_embeddings")?;
        let positions = rows.checked_sub(unused).filter(|&positions| positions > 0);
        let reason = || self.refuse(format!("`max_position_embeddings` is {rows}, too few"));
        let pre = family == Family::XlmRobertaXl;
        let encoder = EncoderConfig {
            positions: positions.ok_or_else(reason)?,
            norm: if pre { NormPlace::Pre } else { NormPlace::Post },
            activation,
            transform: true,
            head_activation: gelu_head.then_some(HiddenActivation::Gelu),
            ..self.sized(
                LIKE_BERT,
                [
                    ("hidden_dropout_prob", 0.1),
                    ("attention_probs_dropout_prob", 0.1),
                    ("layer_norm_eps", if pre { 1e-5 } else { 1e-12 }),
                ],
            )?
        };
        let default = if family == Family::Bert { 2 } else { 1 };
        let segments = self.size_or("type_vocab_size", default)?;
        let unused_positions = unused;
        Ok(ModelConfig { unused_positions, segments, ..self.plain(family, encoder, true) })
    }

    fn distilbert(&self) -> Result<ModelConfig> {
        let names = ["n_layers", "n_heads", "dim", "hidden_dim", "max_position_embeddings"];
        let rates = [("dropout", 0.1), ("attention_dropout", 0.1), ("", 1e-12)];
        let activation = self.activation("activation")?;
        let encoder = EncoderConfig { activation, transform: true, ..self.sized(names, rates)? };
        let sinusoids = self.alternating("sinusoidal_pos_embds");
        Ok(ModelConfig { sinusoids, ..self.plain(Family::Distilbert, encoder, true) })
    }

    fn xlm(&self) -> Result<ModelConfig> {
        self.check_off("causal", false, "attention to what came before alone")?;
        self.check_off("asm", false, "an adaptive softmax")?;
        self.check_off("is_encoder", true, "a decoder")?;
        let several = self.size_or("n_langs", 1)? > 1 && self.is("use_lang_emb", true);
        // Without a list, its tokenizer cuts words as in English.
        let languages = if several { self.languages()? } else { vec!["en".to_owned()] };
        let gelu = self.is("gelu_activation", true);
        let names = ["n_layers", "n_heads", "emb_dim", "", "max_position_embeddings"];
        let rates = [("dropout", 0.1), ("attention_dropout", 0.1), ("layer_norm_eps", 1e-12)];
        let encoder = EncoderConfig {
            languages,
            activation: if gelu { HiddenActivation::Gelu } else { HiddenActivation::Relu },
            language_embeddings: several,
            ..self.sized(names, rates)?
        };
        let sinusoids = self.alternating("sinusoidal_embeddings");
        let plain = self.plain(Family::Xlm, encoder, true);
        Ok(ModelConfig { sinusoids, lists_languages: several, ..plain })
    }

    /// An encoder of the sizes that the family calls so: layers, heads, width, inner width (none: four times the width), longest
    /// input (none: any); and of its dropout, that of attention, and the epsilon of norms. Of several names, with `|` between, the first that is
    /// there counts.
    pub(crate) fn sized(&self, names: [&str; 5], rates: [(&str, f32); 3]) -> Result<EncoderConfig> {
        let size = |names: &str| {
            let first = names.split('|').next().unwrap_or_default();
            let known = names.split('|').find(|name| !self.value[*name].is_null());
            self.size(known.unwrap_or(first))
        };
        let [layers, heads, dim, hidden, positions] = names;
        let [dropout, attention_dropout, epsilon] =
            rates.map(|(name, default)| self.number_or(name, default));
        let dim = size(dim)?;
        Ok(EncoderConfig {
            languages: vec![ANY.to_owned()],
            vocabulary: VocabularySize::Size(size("vocab_size|n_words")?),
            layers: size(layers)?,
            heads: size(heads)?,
            dim,
            hidden: if hidden.is_empty() { dim.saturating_mul(4) } else { size(hidden)? },
            positions: if positions.is_empty() { UNSAID } else { size(positions)? },
            dropout: dropout?,
            attention_dropout: attention_dropout?,
            epsilon: epsilon?,
            ..EncoderConfig::default()
        })
    }

    /// A model that has nothing but what its encoder says.
    pub(crate) fn plain(&self, family: Family, encoder: EncoderConfig, tied: bool) -> ModelConfig {
        ModelConfig {
            family,
            encoder,
            unused_positions: 0,
            segments: 0,
            sinusoids: None,
            lists_languages: false,
            tied: self.is("tie_word_embeddings", tied),
            masked: !family.is_modern() || matches!(self.kind(), "eurobert" | "modernbert"),
        }
    }

    /// The languages of XLM, in the order of their numbers; those without a name are `lang0`, ….
    fn languages(&self) -> Result<Vec<String>> {
        let count = self.size("n_langs")?;
        let known = self.value["lang2id"].as_object();
        let most = known.map_or(0, serde_json::Map::len).max(MOST_UNNAMED);
        if count > most {
            let reason = format!("`n_langs` is {count}, but `lang2id` names fewer");
            return Err(self.refuse(reason));
        }
        let mut names: Vec<String> = (0..count).map(|number| format!("lang{number}")).collect();
        for (name, number) in known.into_iter().flatten() {
            let slot = number.as_u64().and_then(|number| names.get_mut(number as usize));
            *slot.ok_or_else(|| {
                self.refuse(format!("`lang2id` gives {name} no id below {count}"))
            })? = name.clone();
        }
        Ok(names)
    }
}

/// Languages that may be without a name.
const MOST_UNNAMED: usize = 1000;
