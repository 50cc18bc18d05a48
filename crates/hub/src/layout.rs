//! What each family calls its weights.
//!
//! `{}` stands for the number of a layer, from 0. Names of the body stand behind the family's prefix
//! in a model with a head, and alone in one without.

use crate::config::Family;

/// The names of one family.
pub(crate) struct TensorNames {
    /// What the body's names begin with in a model with a head.
    pub(crate) body: &'static str,
    pub(crate) tokens: &'static str,
    pub(crate) positions: &'static str,
    pub(crate) segments: Option<&'static str>,
    pub(crate) languages: Option<&'static str>,
    pub(crate) embedding_norm: Option<&'static str>,
    pub(crate) query: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: &'static str,
    pub(crate) output: &'static str,
    pub(crate) attention_norm: &'static str,
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
    pub(crate) hidden_norm: &'static str,
    pub(crate) final_norm: Option<&'static str>,
    /// The dense layer before the softmax, and its LayerNorm.
    pub(crate) transform: Option<(&'static str, &'static str)>,
    /// The softmax's bias: as it is kept where both are one, and as it is used.
    pub(crate) bias: [&'static str; 2],
    /// The softmax's table.
    pub(crate) decoder: &'static str,
}

impl TensorNames {
    pub(crate) fn of(family: Family) -> &'static Self {
        match family {
            Family::Bert => &BERT,
            Family::Distilbert => &DISTILBERT,
            Family::Roberta => &ROBERTA,
            Family::Xlm => &XLM,
            Family::XlmRobertaXl => &XLM_ROBERTA_XL,
        }
    }
}

const BERT: TensorNames = TensorNames {
    body: "bert.",
    tokens: "embeddings.word_embeddings.weight",
    positions: "embeddings.position_embeddings.weight",
    segments: Some("embeddings.token_type_embeddings.weight"),
    languages: None,
    embedding_norm: Some("embeddings.LayerNorm"),
    query: "encoder.layer.{}.attention.self.query",
    key: "encoder.layer.{}.attention.self.key",
    value: "encoder.layer.{}.attention.self.value",
    output: "encoder.layer.{}.attention.output.dense",
    attention_norm: "encoder.layer.{}.attention.output.LayerNorm",
    up: "encoder.layer.{}.intermediate.dense",
    down: "encoder.layer.{}.output.dense",
    hidden_norm: "encoder.layer.{}.output.LayerNorm",
    final_norm: None,
    transform: Some(("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")),
    bias: ["cls.predictions.bias", "cls.predictions.decoder.bias"],
    decoder: "cls.predictions.decoder.weight",
};

const ROBERTA: TensorNames = TensorNames {
    body: "roberta.",
    transform: Some(("lm_head.dense", "lm_head.layer_norm")),
    bias: ["lm_head.bias", "lm_head.decoder.bias"],
    decoder: "lm_head.decoder.weight",
    ..BERT
};

const XLM_ROBERTA_XL: TensorNames = TensorNames {
    embedding_norm: None,
    attention_norm: "encoder.layer.{}.attention.self_attn_layer_norm",
    hidden_norm: "encoder.layer.{}.LayerNorm",
    final_norm: Some("encoder.LayerNorm"),
    ..ROBERTA
};

const DISTILBERT: TensorNames = TensorNames {
    body: "distilbert.",
    segments: None,
    query: "transformer.layer.{}.attention.q_lin",
    key: "transformer.layer.{}.attention.k_lin",
    value: "transformer.layer.{}.attention.v_lin",
    output: "transformer.layer.{}.attention.out_lin",
    attention_norm: "transformer.layer.{}.sa_layer_norm",
    up: "transformer.layer.{}.ffn.lin1",
    down: "transformer.layer.{}.ffn.lin2",
    hidden_norm: "transformer.layer.{}.output_layer_norm",
    transform: Some(("vocab_transform", "vocab_layer_norm")),
    bias: ["vocab_projector.bias", "vocab_projector.bias"],
    decoder: "vocab_projector.weight",
    ..BERT
};

const XLM: TensorNames = TensorNames {
    body: "transformer.",
    tokens: "embeddings.weight",
    positions: "position_embeddings.weight",
    segments: None,
    languages: Some("lang_embeddings.weight"),
    embedding_norm: Some("layer_norm_emb"),
    query: "attentions.{}.q_lin",
    key: "attentions.{}.k_lin",
    value: "attentions.{}.v_lin",
    output: "attentions.{}.out_lin",
    attention_norm: "layer_norm1.{}",
    up: "ffns.{}.lin1",
    down: "ffns.{}.lin2",
    hidden_norm: "layer_norm2.{}",
    final_norm: None,
    transform: None,
    bias: ["pred_layer.proj.bias", "pred_layer.proj.bias"],
    decoder: "pred_layer.proj.weight",
};
