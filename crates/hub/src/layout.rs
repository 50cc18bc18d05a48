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
    /// Where queries, keys and values have the same name, they are one tensor, in this order, or in this order head by head.
    pub(crate) query: &'static str,
    pub(crate) key: &'static str,
    pub(crate) value: &'static str,
    /// The norms of each head of queries and of keys.
    pub(crate) head_norms: [&'static str; 2],
    pub(crate) output: &'static str,
    pub(crate) attention_norm: &'static str,
    /// The norms of what attention and the feed-forward part give.
    pub(crate) after: [&'static str; 2],
    /// The map that has the activation, of two; where both have the same name, they are one tensor, this one first.
    pub(crate) gate: Option<&'static str>,
    pub(crate) up: &'static str,
    pub(crate) down: &'static str,
    pub(crate) hidden_norm: &'static str,
    pub(crate) head_by_head: bool,
    /// Whether matrices of the layers are inputs x outputs.
    pub(crate) sideways: bool,
    /// What is added to the scale of every norm.
    pub(crate) scale_offset: f32,
    pub(crate) final_norm: Option<&'static str>,
    /// The dense layer before the softmax, and its LayerNorm.
    pub(crate) transform: Option<(&'static str, &'static str)>,
    /// The softmax's bias, where there is one: as it is kept where both are one, and as it is used.
    pub(crate) bias: Option<[&'static str; 2]>,
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
            Family::Modernbert => &MODERNBERT,
            Family::Llama => &LLAMA,
            Family::Gemma => &GEMMA,
            Family::GemmaTwo => &GEMMA_TWO,
            Family::GptTwo => &GPT_TWO,
            Family::Bloom => &BLOOM,
            Family::Xglm => &XGLM,
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
    head_norms: [""; 2],
    output: "encoder.layer.{}.attention.output.dense",
    attention_norm: "encoder.layer.{}.attention.output.LayerNorm",
    after: [""; 2],
    gate: None,
    up: "encoder.layer.{}.intermediate.dense",
    down: "encoder.layer.{}.output.dense",
    hidden_norm: "encoder.layer.{}.output.LayerNorm",
    head_by_head: false,
    sideways: false,
    scale_offset: 0.0,
    final_norm: None,
    transform: Some(("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm")),
    bias: Some(["cls.predictions.bias", "cls.predictions.decoder.bias"]),
    decoder: "cls.predictions.decoder.weight",
};

const ROBERTA: TensorNames = TensorNames {
    body: "roberta.",
    transform: Some(("lm_head.dense", "lm_head.layer_norm")),
    bias: Some(["lm_head.bias", "lm_head.decoder.bias"]),
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
    bias: Some(["vocab_projector.bias", "vocab_projector.bias"]),
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
    bias: Some(["pred_layer.proj.bias", "pred_layer.proj.bias"]),
    decoder: "pred_layer.proj.weight",
    ..BERT
};

const LLAMA: TensorNames = TensorNames {
    body: "model.",
    tokens: "embed_tokens.weight",
    segments: None,
    embedding_norm: None,
    query: "layers.{}.self_attn.q_proj",
    key: "layers.{}.self_attn.k_proj",
    value: "layers.{}.self_attn.v_proj",
    head_norms: ["layers.{}.self_attn.q_norm", "layers.{}.self_attn.k_norm"],
    output: "layers.{}.self_attn.o_proj",
    attention_norm: "layers.{}.input_layernorm",
    gate: Some("layers.{}.mlp.gate_proj"),
    up: "layers.{}.mlp.up_proj",
    down: "layers.{}.mlp.down_proj",
    hidden_norm: "layers.{}.post_attention_layernorm",
    final_norm: Some("norm"),
    transform: None,
    bias: None,
    decoder: "lm_head.weight",
    ..BERT
};

const GEMMA: TensorNames = TensorNames { scale_offset: 1.0, ..LLAMA };

const GEMMA_TWO: TensorNames = TensorNames {
    hidden_norm: "layers.{}.pre_feedforward_layernorm",
    after: ["layers.{}.post_attention_layernorm", "layers.{}.post_feedforward_layernorm"],
    ..GEMMA
};

const GPT_TWO: TensorNames = TensorNames {
    body: "transformer.",
    tokens: "wte.weight",
    positions: "wpe.weight",
    query: "h.{}.attn.c_attn",
    key: "h.{}.attn.c_attn",
    value: "h.{}.attn.c_attn",
    output: "h.{}.attn.c_proj",
    attention_norm: "h.{}.ln_1",
    gate: None,
    up: "h.{}.mlp.c_fc",
    down: "h.{}.mlp.c_proj",
    hidden_norm: "h.{}.ln_2",
    sideways: true,
    final_norm: Some("ln_f"),
    ..LLAMA
};

const BLOOM: TensorNames = TensorNames {
    tokens: "word_embeddings.weight",
    embedding_norm: Some("word_embeddings_layernorm"),
    query: "h.{}.self_attention.query_key_value",
    key: "h.{}.self_attention.query_key_value",
    value: "h.{}.self_attention.query_key_value",
    head_by_head: true,
    output: "h.{}.self_attention.dense",
    attention_norm: "h.{}.input_layernorm",
    up: "h.{}.mlp.dense_h_to_4h",
    down: "h.{}.mlp.dense_4h_to_h",
    hidden_norm: "h.{}.post_attention_layernorm",
    sideways: false,
    ..GPT_TWO
};

const XGLM: TensorNames = TensorNames {
    positions: "embed_positions.weights",
    output: "layers.{}.self_attn.out_proj",
    attention_norm: "layers.{}.self_attn_layer_norm",
    gate: None,
    up: "layers.{}.fc1",
    down: "layers.{}.fc2",
    hidden_norm: "layers.{}.final_layer_norm",
    final_norm: Some("layer_norm"),
    ..LLAMA
};

const MODERNBERT: TensorNames = TensorNames {
    body: "model.",
    tokens: "embeddings.tok_embeddings.weight",
    embedding_norm: Some("embeddings.norm"),
    query: "layers.{}.attn.Wqkv",
    key: "layers.{}.attn.Wqkv",
    value: "layers.{}.attn.Wqkv",
    output: "layers.{}.attn.Wo",
    attention_norm: "layers.{}.attn_norm",
    gate: Some("layers.{}.mlp.Wi"),
    up: "layers.{}.mlp.Wi",
    down: "layers.{}.mlp.Wo",
    hidden_norm: "layers.{}.mlp_norm",
    final_norm: Some("final_norm"),
    transform: Some(("head.dense", "head.norm")),
    bias: Some(["decoder.bias", "decoder.bias"]),
    decoder: "decoder.weight",
    ..LLAMA
};
