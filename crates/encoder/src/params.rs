//! The parameters of an encoder by role: what each weight matrix is for, and which language it belongs to.
//!
//! Everything that treats weights differently (initialisation, checkpoints, Hugging Face's names, freezing,
//! learning rates) asks for roles; the names that files have are spelled here alone.

use std::fmt;

use tensor::ParamId;

/// Something that all languages share, or that each has for itself.
#[derive(Clone, Debug)]
pub(crate) enum PerLanguage<T> {
    /// One for all.
    Shared(T),
    /// One for each, by the number of the language.
    Separate(Vec<T>),
}

impl<T> PerLanguage<T> {
    /// Makes one for all (`make(None)`) or one for each language (`make(Some(language))`).
    pub(crate) fn make(
        languages: usize,
        separate: bool,
        mut make: impl FnMut(Option<usize>) -> T,
    ) -> Self {
        if separate {
            Self::Separate((0..languages).map(|language| make(Some(language))).collect())
        } else {
            Self::Shared(make(None))
        }
    }

    /// The one that a language uses.
    pub(crate) fn get(&self, language: usize) -> &T {
        match self {
            Self::Shared(one) => one,
            Self::Separate(each) => &each[language],
        }
    }
}

/// Which half of an affine map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AffinePart {
    /// Inputs x outputs.
    Weight,
    /// 1 x outputs.
    Bias,
}

/// Which half of a LayerNorm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NormPart {
    /// The scale: 1 x dim.
    Gamma,
    /// The offset: 1 x dim.
    Beta,
}

/// What a weight matrix of a layer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LayerRole {
    /// The queries of attention.
    Query(AffinePart),
    /// Its keys and values, side by side.
    KeyValue(AffinePart),
    /// Its output projection.
    Output(AffinePart),
    /// The norm of each head of queries.
    QueryNorm(NormPart),
    /// The norm of each head of keys.
    KeyNorm(NormPart),
    /// The norm of attention.
    AttentionNorm(NormPart),
    /// The norm of what attention gives, before it is added.
    AttentionAfter(NormPart),
    /// The first map of the feed-forward part; where it is gated, the gate and what goes through it, side by side.
    Up(AffinePart),
    /// The second map of the feed-forward part.
    Down(AffinePart),
    /// The norm of the feed-forward part.
    HiddenNorm(NormPart),
    /// The norm of what the feed-forward part gives, before it is added.
    HiddenAfter(NormPart),
}

/// What a weight matrix of an encoder is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamRole {
    /// Vocabulary x dim; also the output weights of the softmax, unless there is a decoder.
    TokenEmbedding,
    /// Positions x dim.
    PositionEmbedding,
    /// Languages x dim.
    LanguageEmbedding,
    /// Segments x dim.
    SegmentEmbedding,
    /// The LayerNorm of the embeddings.
    EmbeddingNorm(NormPart),
    /// Of a layer, counted from 1.
    Layer(usize, LayerRole),
    /// The LayerNorm after the last layer.
    FinalNorm(NormPart),
    /// The dense layer of the MLM head.
    MlmDense(AffinePart),
    /// Its LayerNorm.
    MlmNorm(NormPart),
    /// The output weights of the softmax where they are not the token embeddings: vocabulary x dim.
    MlmDecoder,
    /// The bias of the softmax: 1 x vocabulary.
    MlmBias,
}

impl ParamRole {
    /// Which part of the encoder it stands in.
    pub fn group(self) -> ParamGroup {
        match self {
            Self::TokenEmbedding
            | Self::PositionEmbedding
            | Self::LanguageEmbedding
            | Self::SegmentEmbedding
            | Self::EmbeddingNorm(_)
            | Self::MlmDecoder
            | Self::MlmBias => ParamGroup::Embeddings,
            Self::Layer(number, _) => ParamGroup::Layer(number),
            Self::FinalNorm(_) | Self::MlmDense(_) | Self::MlmNorm(_) => ParamGroup::Head,
        }
    }
}

impl fmt::Display for AffinePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Weight => "weight",
            Self::Bias => "bias",
        })
    }
}

impl fmt::Display for NormPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gamma => "gamma",
            Self::Beta => "beta",
        })
    }
}

impl fmt::Display for LayerRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(part) => write!(f, "query.{part}"),
            Self::KeyValue(part) => write!(f, "key_value.{part}"),
            Self::Output(part) => write!(f, "output.{part}"),
            Self::QueryNorm(part) => write!(f, "query_norm.{part}"),
            Self::KeyNorm(part) => write!(f, "key_norm.{part}"),
            Self::AttentionNorm(part) => write!(f, "attention_norm.{part}"),
            Self::AttentionAfter(part) => write!(f, "attention_after.{part}"),
            Self::Up(part) => write!(f, "up.{part}"),
            Self::Down(part) => write!(f, "down.{part}"),
            Self::HiddenNorm(part) => write!(f, "hidden_norm.{part}"),
            Self::HiddenAfter(part) => write!(f, "hidden_after.{part}"),
        }
    }
}

/// The name in checkpoints, which is also the random stream of the initial values.
impl fmt::Display for ParamRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TokenEmbedding => f.write_str("embeddings.tokens"),
            Self::PositionEmbedding => f.write_str("embeddings.positions"),
            Self::LanguageEmbedding => f.write_str("embeddings.languages"),
            Self::SegmentEmbedding => f.write_str("embeddings.segments"),
            Self::EmbeddingNorm(part) => write!(f, "embeddings.norm.{part}"),
            Self::Layer(number, role) => write!(f, "layers.{number}.{role}"),
            Self::FinalNorm(part) => write!(f, "head.final_norm.{part}"),
            Self::MlmDense(part) => write!(f, "head.dense.{part}"),
            Self::MlmNorm(part) => write!(f, "head.norm.{part}"),
            Self::MlmDecoder => f.write_str("head.decoder"),
            Self::MlmBias => f.write_str("head.bias"),
        }
    }
}

/// The part of an encoder that a weight matrix stands in: for freezing and for learning rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ParamGroup {
    /// Token, position, language and segment embeddings, their LayerNorm, and the softmax's own weights.
    Embeddings,
    /// A layer, counted from 1.
    Layer(usize),
    /// What stands above the last layer.
    Head,
}

/// A weight matrix of an encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncoderParam {
    /// Where it is among the parameters.
    pub id: ParamId,
    /// What it is for.
    pub role: ParamRole,
    /// The language that has it for itself, if one does.
    pub language: Option<usize>,
}

impl EncoderParam {
    /// Which part of the encoder it stands in.
    pub fn group(&self) -> ParamGroup {
        self.role.group()
    }
}
