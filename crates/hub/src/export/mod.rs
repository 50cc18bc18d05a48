//! From an encoder to a folder that `transformers` loads.
//!
//! The family is the one that has the encoder's architecture: XLM where LayerNorm stands after and
//! nothing before the softmax, BERT where a dense layer stands there, XLM-R XL where LayerNorm stands
//! before. An encoder without an MLM head is exported without one. Where parts are separate for each
//! language, one language is exported. The finished folder is opened again and must give the encoder's
//! logits, before it is given its name.

mod card;
mod tensors;
mod tokenizer;

use std::path::{Path, PathBuf};

use encoder::{Batch, Encoder, EncoderConfig, HiddenActivation, NormPlace, Request};
use files::NewFolder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tensor::{Mode, Params, Spans, Tape};
use text::{Error, Result, Vocabulary, VocabularyKind};

pub use self::card::ModelCard;
use self::tensors::TensorBuilder;
use self::tokenizer::ExportIds;
use crate::config::{Family, activation_name};
use crate::layout::TensorNames;

/// What is exported.
pub struct ExportSource<'a> {
    /// The encoder.
    pub model: &'a Encoder,
    /// Its weights.
    pub params: &'a mut Params,
    /// Its vocabulary.
    pub vocabulary: &'a Vocabulary,
    /// Whether it has an MLM head.
    pub has_mlm_head: bool,
    /// Whether the exported tokenizer is for text that is prepared already, as that of the vocabulary is, and not for raw text.
    pub prepared: bool,
}

/// What was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExportResult {
    /// The folder.
    pub out: PathBuf,
    /// The family.
    pub family: Family,
    /// The class of `transformers` that it is a model of.
    pub architecture: String,
    /// The languages that the folder is for.
    pub languages: Vec<String>,
    /// Rows of its embedding table.
    pub entries: usize,
    /// The largest difference of a logit, read back and computed again.
    pub largest_difference: f32,
}

/// Differences that rounding explains.
const ROUNDING: f32 = 1e-3;

/// Writes a folder, which must not exist yet. A language is needed where something is separate.
pub fn export(
    source: ExportSource<'_>,
    language: Option<&str>,
    card: &ModelCard,
    out: &Path,
    force: bool,
) -> Result<ExportResult> {
    let draft = NewFolder::with_force(out, force)?;
    let config = source.model.config().clone();
    let language = language.map(|name| source.vocabulary.language(name)).transpose()?;
    check_language(&source, language)?;
    let family = family(&config);
    check_head(&config, family, source.has_mlm_head)?;
    let tokenizer = match source.prepared {
        true => source.vocabulary.tokenizer_json(language.unwrap_or(0))?,
        false => source.vocabulary.raw_tokenizer_json(language)?,
    };
    let ids = ExportIds::new(source.vocabulary, language, &config);
    let pad = ids.of(source.vocabulary.specials().pad);
    let (head, architecture) = (source.has_mlm_head, class(family, source.has_mlm_head));
    let builder = TensorBuilder::new(source.model, source.params, language, &ids, pad, head);
    let bytes = builder.build(TensorNames::of(family), family)?;
    draft.write("model.safetensors", &bytes)?;
    drop(bytes);
    let mut described = describe(&config, family, language, &ids, source.vocabulary);
    described["architectures"] = json!([architecture]);
    draft.write("config.json", pretty(&described).as_bytes())?;
    for (name, text) in tokenizer::files(source.vocabulary, &tokenizer, &ids, config.positions) {
        draft.write(name, text.as_bytes())?;
    }
    let languages: Vec<String> = match language {
        Some(number) => vec![config.languages.get(number).cloned().unwrap_or_default()],
        None => config.languages.clone(),
    };
    let is_raw = !source.prepared && source.vocabulary.kind() != VocabularyKind::Imported;
    let preparation = source.vocabulary.preparer(language.unwrap_or(0)).preparation();
    let prepared = (!is_raw).then_some(preparation);
    let text = card.text(architecture, &config, &languages, prepared, head);
    draft.write("README.md", text.as_bytes())?;
    let largest_difference = compare(source, language, &ids, draft.path())?;
    draft.finish()?;
    let entries = ids.len();
    let out = out.to_owned();
    let architecture = architecture.to_owned();
    Ok(ExportResult { out, family, architecture, languages, entries, largest_difference })
}

/// What `transformers` calls a model of the family, with an MLM head or without.
fn class(family: Family, has_mlm_head: bool) -> &'static str {
    match (family, has_mlm_head) {
        (Family::Xlm, true) => "XLMWithLMHeadModel",
        (Family::Xlm, false) => "XLMModel",
        (Family::XlmRobertaXl, true) => "XLMRobertaXLForMaskedLM",
        (Family::XlmRobertaXl, false) => "XLMRobertaXLModel",
        (_, true) => "BertForMaskedLM",
        (_, false) => "BertModel",
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("plain data")
}

/// The family that has an architecture. XLM's feed-forward part is four times as wide as its hidden
/// states, with GELU or ReLU, and it has no segments.
fn family(config: &EncoderConfig) -> Family {
    let activation = matches!(config.activation, HiddenActivation::Gelu | HiddenActivation::Relu);
    let wide = config.hidden == 4 * config.dim;
    let xlm = !config.transform && wide && activation && config.segments == 0;
    match config.norm {
        NormPlace::Pre | NormPlace::Both => Family::XlmRobertaXl,
        NormPlace::Post if xlm => Family::Xlm,
        NormPlace::Post => Family::Bert,
    }
}

/// The activation of the dense layer before the softmax in a family: RoBERTa and its kin have GELU there,
/// whatever the layers have.
fn head_activation(config: &EncoderConfig, family: Family) -> HiddenActivation {
    match family {
        Family::XlmRobertaXl => HiddenActivation::Gelu,
        _ => config.activation,
    }
}

/// Refuses a head whose activation the family does not have.
fn check_head(config: &EncoderConfig, family: Family, has_mlm_head: bool) -> Result<()> {
    let own = config.head_activation.unwrap_or(config.activation);
    let theirs = head_activation(config, family);
    if !has_mlm_head || !config.transform || own == theirs {
        return Ok(());
    }
    let (own, theirs) = (activation_name(own), activation_name(theirs));
    Err(Error::request(
        format!("the MLM head has the activation {own}, and that of this family {theirs}"),
        format!("train with encoder.head_activation = {theirs} to export it"),
    ))
}

/// A Hugging Face folder has one table, one tokenizer, one of everything.
fn check_language(source: &ExportSource<'_>, language: Option<usize>) -> Result<()> {
    let (config, vocabulary) = (source.model.config(), source.vocabulary);
    if !config.parts.is_default() || config.norm == NormPlace::Both {
        let reason = "the model has parts (encoder.parts) that are read and not yet written";
        return Err(Error::request(reason, "keep the folder that it came from"));
    }
    if config.separate.specials {
        let reason =
            "special tokens are separate for each language, and no family has a place for them";
        return Err(Error::request(reason, "export a model that shares its special tokens"));
    }
    if language.is_some() || config.languages.len() == 1 {
        return Ok(());
    }
    let separate = source.model.params().iter().any(|param| param.language.is_some());
    let tokenizers = !vocabulary.has_one_tokenizer();
    let embeddings = config.language_embeddings && family(config) != Family::Xlm;
    let reason = match (separate, tokenizers, embeddings) {
        (true, ..) => "parts of the encoder are separate",
        (_, true, _) => "each language has a tokenizer of its own",
        (.., true) => "each language has an embedding, which this family has no place for",
        _ => return Ok(()),
    };
    let remedy = format!("export one language at a time: {}", config.languages.join(", "));
    Err(Error::request(reason, remedy))
}

/// `config.json`.
fn describe(
    config: &EncoderConfig,
    family: Family,
    language: Option<usize>,
    ids: &ExportIds,
    vocabulary: &Vocabulary,
) -> Value {
    let specials = vocabulary.specials();
    let (start, end) = vocabulary.bos_eos();
    let mut described = match family {
        Family::Xlm => describe_xlm(config, language),
        _ => describe_like_bert(config, family, ids.of(specials.pad)),
    };
    let keys = described.as_object_mut().expect("an object");
    let more = json!({
        "vocab_size": ids.len(),
        "pad_token_id": ids.of(specials.pad),
        "bos_token_id": ids.of(start),
        "eos_token_id": ids.of(end),
        "layer_norm_eps": config.epsilon,
        "tie_word_embeddings": !config.untied,
        "dtype": "float32",
    });
    keys.extend(more.as_object().cloned().unwrap_or_default());
    described
}

fn describe_xlm(config: &EncoderConfig, language: Option<usize>) -> Value {
    let several = language.is_none() && config.language_embeddings && config.languages.len() > 1;
    let mut described = json!({
        "model_type": "xlm",
        "emb_dim": config.dim,
        "n_layers": config.layers,
        "n_heads": config.heads,
        "max_position_embeddings": config.positions,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "gelu_activation": config.activation == HiddenActivation::Gelu,
        "sinusoidal_embeddings": false,
        "causal": false,
        "asm": false,
        "is_encoder": true,
        "n_langs": if several { config.languages.len() } else { 1 },
        "use_lang_emb": several,
    });
    if several {
        let by_name =
            config.languages.iter().enumerate().map(|(id, name)| (name.clone(), json!(id)));
        let by_id =
            config.languages.iter().enumerate().map(|(id, name)| (id.to_string(), json!(name)));
        described["lang2id"] = Value::Object(by_name.collect());
        described["id2lang"] = Value::Object(by_id.collect());
    }
    described
}

fn describe_like_bert(config: &EncoderConfig, family: Family, pad: u32) -> Value {
    let (kind, unused) = match family {
        Family::XlmRobertaXl => ("xlm-roberta-xl", pad as usize + 1),
        _ => ("bert", 0),
    };
    json!({
        "model_type": kind,
        "hidden_size": config.dim,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "intermediate_size": config.hidden,
        "max_position_embeddings": config.positions + unused,
        "type_vocab_size": config.segments.max(1),
        "hidden_act": activation_name(config.activation),
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
    })
}

/// Opens what was written, and compares its logits with the encoder's on some tokens.
fn compare(
    source: ExportSource<'_>,
    language: Option<usize>,
    ids: &ExportIds,
    folder: &Path,
) -> Result<f32> {
    let mut written = crate::open(folder, source.params.device())?;
    let language = language.unwrap_or(0);
    let tokens = some_ids(&source, language);
    let ours = tokens.iter().map(|&id| ids.encoder(id)).collect();
    let theirs = tokens.iter().map(|&id| ids.of(id)).collect();
    let a = logits(source.model, source.params, language, ours);
    let number = if written.model.config().languages.len() > 1 { language } else { 0 };
    let b = logits(&written.model, &mut written.params, number, theirs);
    let mut largest = 0f32;
    for (a, b) in a.chunks(a.len() / tokens.len()).zip(b.chunks(b.len() / tokens.len())) {
        let both = b.iter().enumerate().filter_map(|(row, b)| Some((a[ids.row(row)?], *b)));
        for difference in both.map(|(a, b)| (a - b).abs()) {
            // Written so that a NaN stays.
            largest = if difference <= largest { largest } else { difference };
        }
    }
    let scale = a.iter().fold(1f32, |most, x| most.max(x.abs()));
    if largest <= ROUNDING * scale {
        return Ok(largest);
    }
    Err(Error::request(
        format!("what was written differs from the encoder by {largest} in a logit"),
        "the encoder has numbers that this family cannot represent; report this with its config.toml",
    ))
}

/// Ids of a language from all over its vocabulary, without the padding token.
fn some_ids(source: &ExportSource<'_>, language: usize) -> Vec<u32> {
    let (own, pad) = (source.vocabulary.language_ids(language), source.vocabulary.specials().pad);
    let length = source.model.config().positions.min(48);
    // A stride that is prime reaches every part.
    let ids = (0..length).map(|at| own[(at * 7919 + 11) % own.len()]);
    ids.map(|id| if id == pad { source.vocabulary.bos_eos().1 } else { id }).collect()
}

/// The logits of every token over the vocabulary.
fn logits(model: &Encoder, params: &mut Params, language: usize, ids: Vec<u32>) -> Vec<f32> {
    let spans = Spans::of_lengths([ids.len()]);
    let batch = Batch { language, tokens: ids.into(), spans, segments: None };
    let mut tape = Tape::new(params, Mode::Evaluate);
    let encoded = model.encode(&mut tape, &batch, Request::default());
    model.logits(&mut tape, language, encoded.output).to_vec()
}
