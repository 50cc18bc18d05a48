//! What sentence-transformers puts beside a model: how the vector of a sentence is made of the states of its tokens.
//!
//! `modules.json` names the steps in order: the Transformer, pooling (`1_Pooling/config.json`), dense layers, a vector of
//! unit length. Anything else is refused by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use files::{At, limits};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use text::{Error, Result};

use crate::weights::{CheckpointWeights, NumberType};

const MODULES: &str = "modules.json";
const SAVE_ANEW: &str = "save the model anew with sentence-transformers' `save`";
const OTHERWISE: &str =
    "take another --pool, or give the vectors of sentence-transformers as arrays";

/// One vector made of those of some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum TokenPooling {
    /// The first token's.
    #[serde(rename = "cls")]
    First,
    /// The largest number of every column.
    #[serde(rename = "max")]
    Max,
    /// The mean.
    #[serde(rename = "mean")]
    Mean,
    /// The sum, divided by the root of how many there are.
    #[serde(rename = "mean_sqrt_len_tokens")]
    MeanSqrt,
    /// The mean, in which a token weighs as much as its place in the text, from 1.
    #[serde(rename = "weightedmean")]
    Weighted,
    /// The last token's.
    #[serde(rename = "lasttoken")]
    Last,
}

/// What is done to a pooled vector.
#[derive(Clone, Debug, PartialEq)]
pub enum SentenceStep {
    /// A dense layer.
    Dense {
        /// Outputs x inputs.
        weight: Vec<f32>,
        /// One number for each output.
        bias: Vec<f32>,
        /// The activation after it.
        activation: DenseActivation,
    },
    /// Division by its length.
    Normalize,
}

/// The activation of a dense layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum DenseActivation {
    Identity,
    Tanh,
    Relu,
    Sigmoid,
}

impl SentenceStep {
    /// Does it to a vector.
    pub fn apply(&self, vector: Vec<f32>) -> Vec<f32> {
        match self {
            Self::Normalize => {
                let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
                vector.into_iter().map(|x| x / length).collect()
            }
            Self::Dense { weight, bias, activation } => {
                let dot = |row: &[f32]| row.iter().zip(&vector).map(|(w, x)| w * x).sum::<f32>();
                let outputs = weight.chunks_exact(vector.len()).map(dot).zip(bias);
                outputs.map(|(x, bias)| activation.of(x + bias)).collect()
            }
        }
    }
}

impl DenseActivation {
    fn of(self, x: f32) -> f32 {
        match self {
            Self::Identity => x,
            Self::Tanh => x.tanh(),
            Self::Relu => x.max(0.0),
            Self::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        }
    }
}

/// How a sentence-transformers model makes the vector of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub struct SentenceModules {
    /// Vectors that stand side by side.
    pub pooling: Vec<TokenPooling>,
    /// Whether the tokens of a prompt are pooled too.
    pub include_prompt: bool,
    /// What is done then.
    pub steps: Vec<SentenceStep>,
    /// The longest input in tokens, where it is said.
    pub longest: Option<usize>,
    /// Whether text is lower-cased first.
    pub lowercase: bool,
    /// Prompts by name: text that is put before a sentence.
    pub prompts: BTreeMap<String, String>,
    /// The prompt of a sentence for which none is named.
    pub default_prompt: Option<String>,
}

impl SentenceModules {
    /// The columns of a vector.
    pub fn width(&self, dim: usize) -> usize {
        let outputs = self.steps.iter().rev().find_map(|step| match step {
            SentenceStep::Dense { bias, .. } => Some(bias.len()),
            SentenceStep::Normalize => None,
        });
        outputs.unwrap_or(dim * self.pooling.len())
    }

    /// The text of a prompt: that of its name, or the prompt itself; without one, the model's own.
    pub fn prompt(&self, given: Option<&str>) -> String {
        let name = given.or(self.default_prompt.as_deref()).unwrap_or_default();
        self.prompts.get(name).map_or(name, String::as_str).to_owned()
    }
}

impl fmt::Display for SentenceModules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |pooling: &TokenPooling| match pooling {
            TokenPooling::First => "first token",
            TokenPooling::Max => "maximum",
            TokenPooling::Mean => "mean",
            TokenPooling::MeanSqrt => "sum over √length",
            TokenPooling::Weighted => "weighted mean",
            TokenPooling::Last => "last token",
        };
        f.write_str(&self.pooling.iter().map(name).collect::<Vec<_>>().join(" + "))?;
        self.steps.iter().try_for_each(|step| match step {
            SentenceStep::Dense { bias, activation, .. } => {
                write!(f, ", dense to {} ({activation:?})", bias.len())
            }
            SentenceStep::Normalize => f.write_str(", unit length"),
        })
    }
}

#[derive(Deserialize)]
struct Module {
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

/// `1_Pooling/config.json` as any version wrote it.
#[derive(Deserialize)]
struct PoolingFile {
    #[serde(alias = "word_embedding_dimension")]
    embedding_dimension: usize,
    pooling_mode: Option<OneOrMore>,
    #[serde(default = "yes")]
    include_prompt: bool,
    #[serde(flatten)]
    flags: BTreeMap<String, serde_json::Value>,
}

fn yes() -> bool {
    true
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMore {
    One(TokenPooling),
    More(Vec<TokenPooling>),
}

impl PoolingFile {
    fn pooling(&self) -> Vec<TokenPooling> {
        use TokenPooling::{First, Last, Max, Mean, MeanSqrt, Weighted};
        let kinds = [
            ("cls_token", First),
            ("max_tokens", Max),
            ("mean_tokens", Mean),
            ("mean_sqrt_len_tokens", MeanSqrt),
            ("weightedmean_tokens", Weighted),
            ("lasttoken", Last),
        ];
        let is_on = |name: &str| self.flags.get(&format!("pooling_mode_{name}"));
        match &self.pooling_mode {
            Some(OneOrMore::One(one)) => vec![*one],
            Some(OneOrMore::More(more)) => more.clone(),
            None => {
                let on = kinds.into_iter().filter(|(name, _)| is_on(name) == Some(&true.into()));
                let on: Vec<_> = on.map(|(_, kind)| kind).collect();
                if on.is_empty() { vec![Mean] } else { on }
            }
        }
    }
}

#[derive(Deserialize)]
struct DenseFile {
    in_features: usize,
    out_features: usize,
    #[serde(default = "yes")]
    bias: bool,
    activation_function: Option<String>,
    module_input_name: Option<String>,
    module_output_name: Option<String>,
    #[serde(default)]
    use_residual: bool,
}

/// Keys of `sentence_bert_config.json` and `tokenizer_config.json`.
#[derive(Default, Deserialize)]
struct InputFile {
    #[serde(default)]
    max_seq_length: Option<usize>,
    #[serde(default)]
    model_max_length: Option<f64>,
    #[serde(default)]
    do_lower_case: bool,
}

/// `config_sentence_transformers.json`.
#[derive(Default, Deserialize)]
struct PromptFile {
    #[serde(default)]
    prompts: BTreeMap<String, String>,
    #[serde(default)]
    default_prompt_name: Option<String>,
}

/// Reads a file of JSON; none where there is no file.
fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).at(path, "read")?;
    let value = serde_json::from_str(&text);
    value.map(Some).map_err(|error| Error::file(path, error.to_string(), SAVE_ANEW))
}

/// How the model of a folder makes vectors of sentences; none where it is no model of sentence-transformers.
///
/// # Errors
/// Where it does something that is not known here, or a file of it cannot be read.
pub fn sentence_modules(folder: &Path) -> Result<Option<SentenceModules>> {
    let list = folder.join(MODULES);
    let Some(modules) = read::<Vec<Module>>(&list)? else { return Ok(None) };
    let refuse = |reason: String| Err(Error::file(&list, reason, OTHERWISE));
    let input: InputFile = read(&folder.join("sentence_bert_config.json"))?.unwrap_or_default();
    let tokens: InputFile = read(&folder.join("tokenizer_config.json"))?.unwrap_or_default();
    let prompts: PromptFile =
        read(&folder.join("config_sentence_transformers.json"))?.unwrap_or_default();
    let most = tokens.model_max_length.map(|length| length as usize);
    let mut found = SentenceModules {
        pooling: Vec::new(),
        include_prompt: true,
        steps: Vec::new(),
        longest: input.max_seq_length.or(most).filter(|&length| length > 0),
        lowercase: input.do_lower_case,
        prompts: prompts.prompts,
        default_prompt: prompts.default_prompt_name,
    };
    let mut columns = 0;
    for (number, Module { path, kind }) in modules.iter().enumerate() {
        if !path.is_empty() && !limits::is_plain_name(path) {
            return refuse(format!("names `{path}`, which is no folder of its own"));
        }
        let (place, pooled) = (folder.join(path), !found.pooling.is_empty());
        match (kind.rsplit('.').next().unwrap_or_default(), number) {
            ("Transformer", 0) if path.is_empty() => {}
            ("Transformer", 0) => {
                let reason = format!("has its Transformer in `{path}`");
                return Err(Error::file(
                    &list,
                    reason,
                    "move what is in there beside modules.json",
                ));
            }
            ("Pooling", 1) => {
                let file = needed::<PoolingFile>(&place)?;
                found.pooling = file.pooling();
                found.include_prompt = file.include_prompt;
                columns = file.embedding_dimension.saturating_mul(found.pooling.len());
            }
            ("Normalize", _) if pooled => found.steps.push(SentenceStep::Normalize),
            ("Dense", _) if pooled => {
                let step = dense(&place, columns)?;
                found.steps.push(step);
                columns = found.width(0);
            }
            (other, _) => {
                let reason = format!("step {number} is `{other}`, which is not known there");
                return refuse(reason);
            }
        }
    }
    match found.pooling.is_empty() {
        true => refuse("has no pooling".to_owned()),
        false => Ok(Some(found)),
    }
}

/// The `config.json` of a module.
fn needed<T: DeserializeOwned>(place: &Path) -> Result<T> {
    let path = place.join("config.json");
    read(&path)?.ok_or_else(|| Error::file(&path, "is not there", SAVE_ANEW))
}

const FLOATS: [NumberType; 3] = [NumberType::F32, NumberType::F16, NumberType::Bf16];

fn dense(place: &Path, columns: usize) -> Result<SentenceStep> {
    let file: DenseFile = needed(place)?;
    let refuse = |reason: String, remedy| Err(Error::file(place, reason, remedy));
    let activation = match file.activation_function.as_deref() {
        None => DenseActivation::Tanh,
        Some(name) => match name.rsplit('.').next().unwrap_or_default() {
            "Identity" => DenseActivation::Identity,
            "Tanh" => DenseActivation::Tanh,
            "ReLU" => DenseActivation::Relu,
            "Sigmoid" => DenseActivation::Sigmoid,
            other => return refuse(format!("its activation `{other}` is not known"), OTHERWISE),
        },
    };
    let elsewhere = [&file.module_input_name, &file.module_output_name];
    if file.use_residual || elsewhere.into_iter().flatten().any(|name| name != "sentence_embedding")
    {
        return refuse("a dense layer of another use".to_owned(), OTHERWISE);
    }
    if file.in_features != columns || columns == 0 {
        let reason = format!("reads {} columns where there are {columns}", file.in_features);
        return refuse(reason, SAVE_ANEW);
    }
    let weights = CheckpointWeights::open(place)?;
    let tensor = |name: &str, shape: &[usize]| match weights.get(name) {
        Some(found) if found.shape == shape && FLOATS.contains(&found.element) => found.numbers(),
        _ => Err(Error::file(place, format!("has no {name} of floats, {shape:?}"), SAVE_ANEW)),
    };
    let weight = tensor("linear.weight", &[file.out_features, columns])?;
    let bias = match file.bias {
        true => tensor("linear.bias", &[file.out_features])?,
        false => vec![0.0; file.out_features],
    };
    Ok(SentenceStep::Dense { weight, bias, activation })
}
