//! A GGUF file as if it were a Hugging Face folder: its keys as `config.json`, its tensors under transformers' names, its
//! subwords as a `tokenizer.json`.
//!
//! Numbers of few bits are read as the single precision that they stand for, as transformers does it.

use std::fs::File;
use std::path::{Path, PathBuf};

use files::At;
use serde_json::{Map, Value, json};
use text::{Error, Result};
use tokenizers::Tokenizer;

use crate::config::CONFIG;
use crate::weights::gguf::{Header, read};
use crate::weights::{Located, Tensors};

const REMEDY: &str =
    "give a file as llama.cpp's `convert_hf_to_gguf.py` writes it, or the model's safetensors";

/// Architectures, as GGUF and as transformers calls them.
const ARCHITECTURES: [(&str, &str); 6] = [
    ("llama", "llama"),
    ("qwen2", "qwen2"),
    ("qwen3", "qwen3"),
    ("gemma", "gemma"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3_text"),
];

/// Keys of `config.json`, and what GGUF calls them after the name of the architecture.
const KEYS: [(&str, &str); 13] = [
    ("num_hidden_layers", "block_count"),
    ("hidden_size", "embedding_length"),
    ("intermediate_size", "feed_forward_length"),
    ("max_position_embeddings", "context_length"),
    ("num_attention_heads", "attention.head_count"),
    ("num_key_value_heads", "attention.head_count_kv"),
    ("head_dim", "attention.key_length"),
    ("query_pre_attn_scalar", "attention.key_length"),
    ("rms_norm_eps", "attention.layer_norm_rms_epsilon"),
    ("rope_theta", "rope.freq_base"),
    ("sliding_window", "attention.sliding_window"),
    ("attn_logit_softcapping", "attn_logit_softcapping"),
    ("final_logit_softcapping", "final_logit_softcapping"),
];

/// Names of a layer's tensors in GGUF and in transformers. Gemma 2 and 3 call the norm before the feed-forward part otherwise.
const NAMES: [(&str, &str); 13] = [
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q_norm", "self_attn.q_norm"),
    ("attn_k_norm", "self_attn.k_norm"),
    ("attn_norm", "input_layernorm"),
    ("post_attention_norm", "post_attention_layernorm"),
    ("post_ffw_norm", "post_feedforward_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("ffn_norm", ""),
];

/// The GGUF file that a path means: itself, or the only one of a folder that has no `config.json`.
pub(crate) fn gguf_file(path: &Path) -> Option<PathBuf> {
    let is_gguf = |path: &Path| {
        path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"))
            && path.is_file()
    };
    if is_gguf(path) {
        return Some(path.to_owned());
    }
    if path.join(CONFIG).is_file() {
        return None;
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let mut files = entries.map(|entry| entry.path()).filter(|path| is_gguf(path));
    files.next().filter(|_| files.next().is_none())
}

fn open(path: &Path) -> Result<Header> {
    let file = File::open(path).at(path, "open")?;
    read(&file).map_err(|reason| Error::file(path, reason, REMEDY))
}

/// The value of an architecture's key.
fn own<'a>(metadata: &'a Map<String, Value>, key: &str) -> &'a Value {
    let kind = metadata.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
    metadata.get(&format!("{kind}.{key}")).unwrap_or(&Value::Null)
}

fn architecture(metadata: &Map<String, Value>) -> std::result::Result<&'static str, String> {
    let kind = metadata.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
    let known = ARCHITECTURES.iter().find(|(theirs, _)| *theirs == kind);
    known.map(|(kind, _)| *kind).ok_or_else(|| {
        let names = ARCHITECTURES.map(|(kind, _)| kind).join(", ");
        format!("holds a model of architecture `{kind}`, which is none of {names}")
    })
}

/// What `config.json` would say.
pub(crate) fn config(path: &Path) -> Result<Value> {
    let Header { metadata, tensors } = open(path)?;
    let refuse = |reason: String| Error::file(path, reason, REMEDY);
    let kind = architecture(&metadata).map_err(refuse)?;
    if metadata.get("split.count").and_then(Value::as_u64).is_some_and(|count| count > 1) {
        let remedy = "join the parts with llama.cpp's `llama-gguf-split --merge`";
        return Err(Error::file(path, "is one part of several", remedy));
    }
    let model_type = ARCHITECTURES.iter().find(|(theirs, _)| *theirs == kind);
    let mut config = Map::new();
    config.insert("model_type".to_owned(), model_type.map(|(_, name)| *name).into());
    for (ours, theirs) in KEYS {
        let value = own(&metadata, theirs);
        if !value.is_null() {
            config.insert(ours.to_owned(), value.clone());
        }
    }
    let entries = metadata.get("tokenizer.ggml.tokens").and_then(Value::as_array).map(Vec::len);
    config.insert("vocab_size".to_owned(), entries.into());
    config
        .insert("tie_word_embeddings".to_owned(), (!tensors.contains_key("output.weight")).into());
    let factor = own(&metadata, "rope.scaling.factor");
    match own(&metadata, "rope.scaling.type").as_str().unwrap_or("none") {
        "none" => {}
        "linear" | "yarn" => {
            let scaling = json!({
                "rope_type": own(&metadata, "rope.scaling.type"),
                "factor": factor,
                "original_max_position_embeddings": own(&metadata, "rope.scaling.original_context_length"),
            });
            config.insert("rope_scaling".to_owned(), scaling);
        }
        other => return Err(refuse(format!("stretches the angles of RoPE by `{other}`"))),
    }
    if kind == "gemma3" {
        // GGUF does not say it; all of them have it.
        config.insert("rope_local_base_freq".to_owned(), 10_000.0.into());
    }
    let [layers, dim, heads] = ["block_count", "embedding_length", "attention.head_count"]
        .map(|key| own(&metadata, key).as_u64().unwrap_or_default());
    // As llama.cpp tells the largest Gemmas, whose scores are scaled by the width that heads would have together.
    if matches!((kind, layers), ("gemma2", 46) | ("gemma3", 62)) {
        config.insert("query_pre_attn_scalar".to_owned(), (dim / heads.max(1)).into());
    }
    Ok(Value::Object(config))
}

/// The tensors of a file under transformers' names.
pub(crate) fn tensors(header: Header) -> std::result::Result<Tensors, String> {
    let Header { metadata, tensors } = header;
    let kind = architecture(&metadata)?;
    if tensors.contains_key("rope_freqs.weight") {
        return Err("has RoPE's factors as a tensor (rope_freqs.weight), as Llama 3.1 to 3.3, which is not known here".to_owned());
    }
    let heads = own(&metadata, "attention.head_count").as_u64().unwrap_or(1);
    let sources = own(&metadata, "attention.head_count_kv").as_u64().unwrap_or(heads);
    let rename = |(name, located): (String, Located)| {
        let (stem, end) = name.rsplit_once('.').unwrap_or((&name, ""));
        let own = match stem {
            "token_embd" => "model.embed_tokens".to_owned(),
            "output_norm" => "model.norm".to_owned(),
            "output" => "lm_head".to_owned(),
            _ => {
                let layer = stem.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
                let known = |own: &str| NAMES.iter().find(|(theirs, _)| *theirs == own);
                let Some((number, (_, own))) = layer.and_then(|(n, own)| Some((n, known(own)?)))
                else {
                    return (name, located);
                };
                let own = match (*own, kind) {
                    ("", "gemma2" | "gemma3") => "pre_feedforward_layernorm",
                    ("", _) => "post_attention_layernorm",
                    (own, _) => own,
                };
                format!("model.layers.{number}.{own}")
            }
        };
        let in_turn = match stem.rsplit('.').next() {
            Some("attn_q") if kind == "llama" => Some(heads),
            Some("attn_k") if kind == "llama" => Some(sources),
            _ => None,
        };
        let rows = |heads: u64| Some(located.shape.first()? / usize::try_from(heads).ok()?.max(1));
        let head_rows = in_turn.and_then(rows).filter(|rows| *rows > 0 && rows % 2 == 0);
        (format!("{own}.{end}"), Located { head_rows, ..located })
    };
    Ok(tensors.into_iter().map(rename).collect())
}

/// Kinds of subwords, as GGUF numbers them.
const CONTROL: u64 = 3;
const OF_THE_USER: u64 = 4;
const BYTE: u64 = 6;

/// The tokenizer, and what `tokenizer_config.json` would say.
pub(crate) fn tokenizer(path: &Path) -> Result<(Tokenizer, Value)> {
    let Header { metadata, .. } = open(path)?;
    let refuse = |reason: String| Error::file(path, reason, REMEDY);
    let subwords = Subwords::read(&metadata).map_err(refuse)?;
    let json = subwords.json().map_err(refuse)?;
    let mut settings = Map::new();
    for (ours, theirs) in [
        ("bos_token", "bos"),
        ("eos_token", "eos"),
        ("unk_token", "unknown"),
        ("pad_token", "padding"),
    ] {
        settings.insert(ours.to_owned(), subwords.special(theirs).map(|(_, token)| token).into());
    }
    let bytes = serde_json::to_vec(&json).expect("plain data");
    let tokenizer = text::tokenizer_of(path, REMEDY, || Tokenizer::from_bytes(&bytes))?;
    Ok((tokenizer, Value::Object(settings)))
}

/// The subwords of a GGUF file.
struct Subwords<'a> {
    metadata: &'a Map<String, Value>,
    tokens: Vec<&'a str>,
    kinds: Vec<u64>,
}

impl<'a> Subwords<'a> {
    fn read(metadata: &'a Map<String, Value>) -> std::result::Result<Self, String> {
        let list =
            |key: &str| metadata.get(&format!("tokenizer.ggml.{key}")).and_then(Value::as_array);
        let tokens = list("tokens").ok_or("has no subwords")?;
        let tokens: Option<Vec<&str>> = tokens.iter().map(Value::as_str).collect();
        let tokens = tokens.ok_or("has subwords that are no texts")?;
        let kinds = list("token_type").into_iter().flatten();
        let mut kinds: Vec<u64> = kinds.map(|kind| kind.as_u64().unwrap_or(1)).collect();
        kinds.resize(tokens.len(), 1);
        Ok(Self { metadata, tokens, kinds })
    }

    fn key(&self, key: &str) -> &Value {
        self.metadata.get(&format!("tokenizer.ggml.{key}")).unwrap_or(&Value::Null)
    }

    /// A special token and its number.
    fn special(&self, name: &str) -> Option<(u64, &'a str)> {
        let number = self.key(&format!("{name}_token_id")).as_u64()?;
        Some((number, *self.tokens.get(usize::try_from(number).ok()?)?))
    }

    /// The same as `tokenizer.json` has it.
    fn json(&self) -> std::result::Result<Value, String> {
        let vocabulary: Map<String, Value> = self
            .tokens
            .iter()
            .zip(0u64..)
            .map(|(&token, id)| (token.to_owned(), id.into()))
            .collect();
        let is_sentencepiece = match self.key("model").as_str() {
            Some("llama") => true,
            Some("gpt2") => false,
            other => {
                let other = other.unwrap_or("none");
                return Err(format!(
                    "has subwords of kind `{other}`, which is neither llama nor gpt2"
                ));
            }
        };
        let added = self.tokens.iter().zip(&self.kinds).zip(0u64..);
        let added = added.filter(|((_, kind), _)| [CONTROL, OF_THE_USER].contains(kind));
        let added = added.map(|((&token, &kind), id)| {
            // Spaces are found where they were replaced.
            let normalized = kind == OF_THE_USER && is_sentencepiece && token.contains('▁');
            json!({"id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": normalized, "special": kind == CONTROL})
        });
        let added: Vec<Value> = added.collect();
        let (normalizer, pre_tokenizer, merges) = match is_sentencepiece {
            true => {
                let replace =
                    json!({"type": "Replace", "pattern": {"String": " "}, "content": "▁"});
                let prepend = json!({"type": "Prepend", "prepend": "▁"});
                let normalizers = match self.key("add_space_prefix").as_bool().unwrap_or(true) {
                    true => vec![prepend, replace],
                    false => vec![replace],
                };
                let normalizer = json!({"type": "Sequence", "normalizers": normalizers});
                (normalizer, Value::Null, self.merges_of_scores()?)
            }
            false => {
                let (normalizer, words) = self.words()?;
                (normalizer, words, self.key("merges").clone())
            }
        };
        let unknown = self.special("unknown").filter(|_| is_sentencepiece).map(|(_, token)| token);
        let model = json!({"type": "BPE", "unk_token": unknown, "fuse_unk": is_sentencepiece,
            "byte_fallback": is_sentencepiece, "ignore_merges": self.pre() == "llama-bpe",
            "vocab": vocabulary, "merges": merges});
        Ok(json!({"version": "1.0", "added_tokens": added, "normalizer": normalizer,
            "pre_tokenizer": pre_tokenizer, "post_processor": self.frame(is_sentencepiece), "model": model}))
    }

    /// How text is cut into words before merges, as GGUF names it.
    fn pre(&self) -> &str {
        self.key("pre").as_str().unwrap_or("default")
    }

    /// Normaliser and cutter of byte-level BPE.
    fn words(&self) -> std::result::Result<(Value, Value), String> {
        let bytes = |by_words: bool| json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": by_words});
        let split = |digits: &str| {
            let pattern = format!(
                r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
            );
            json!({"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": false})
        };
        let sequence =
            |first: Value, then: Value| json!({"type": "Sequence", "pretokenizers": [first, then]});
        Ok(match self.pre() {
            "default" | "gpt-2" => (Value::Null, bytes(true)),
            "smollm" => {
                let digits = json!({"type": "Digits", "individual_digits": true});
                (Value::Null, sequence(digits, bytes(true)))
            }
            "llama-bpe" => (Value::Null, sequence(split(r"\p{N}{1,3}"), bytes(false))),
            "qwen2" => (json!({"type": "NFC"}), sequence(split(r"\p{N}"), bytes(false))),
            other => {
                return Err(format!(
                    "cuts words as `{other}`, which is none of gpt-2, smollm, llama-bpe and qwen2"
                ));
            }
        })
    }

    /// What stands around a text.
    fn frame(&self, is_sentencepiece: bool) -> Value {
        let adds = |key: &str, default: bool| self.key(key).as_bool().unwrap_or(default);
        let first = self.special("bos");
        let first =
            first.filter(|_| adds("add_bos_token", is_sentencepiece || self.pre() == "llama-bpe"));
        let last = self.special("eos").filter(|_| adds("add_eos_token", false));
        if first.is_none() && last.is_none() {
            return Value::Null;
        }
        let token = |(_, token): (u64, &str)| json!({"SpecialToken": {"id": token, "type_id": 0}});
        let text = json!({"Sequence": {"id": "A", "type_id": 0}});
        let single: Vec<Value> =
            first.map(token).into_iter().chain([text]).chain(last.map(token)).collect();
        let pair = json!([{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}]);
        let specials: Map<String, Value> = first
            .into_iter()
            .chain(last)
            .map(|(id, token)| {
                (token.to_owned(), json!({"id": token, "ids": [id], "tokens": [token]}))
            })
            .collect();
        json!({"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": specials})
    }

    /// SentencePiece has no list of merges: two subwords merge where the result is one, by its score.
    fn merges_of_scores(&self) -> std::result::Result<Value, String> {
        let scores =
            self.key("scores").as_array().filter(|scores| scores.len() == self.tokens.len());
        let scores = scores.ok_or("has no score for each subword")?;
        let ids: std::collections::HashMap<&str, usize> =
            self.tokens.iter().enumerate().map(|(id, &token)| (token, id)).collect();
        let plain = |id: usize| ![CONTROL, OF_THE_USER, BYTE].contains(&self.kinds[id]);
        let mut merges: Vec<(f64, usize, &str, &str)> = Vec::new();
        for (id, &token) in self.tokens.iter().enumerate().filter(|(id, _)| plain(*id)) {
            let score = scores[id].as_f64().unwrap_or(f64::NEG_INFINITY);
            for (at, _) in token.char_indices().skip(1) {
                let (left, right) = token.split_at(at);
                if let (Some(&first), Some(&second)) = (ids.get(left), ids.get(right))
                    && plain(first)
                    && plain(second)
                {
                    merges.push((score, first, left, right));
                }
            }
        }
        // Of equal scores the subword that comes first, and of one subword the earlier left side.
        merges.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        Ok(merges.into_iter().map(|(_, _, left, right)| json!([left, right])).collect())
    }
}
