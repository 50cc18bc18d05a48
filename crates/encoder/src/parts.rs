//! The parts of an encoder, shared or one for each language.

/// Something that all languages share, or that each has for itself.
#[derive(Clone, Debug)]
pub enum PerLanguage<T> {
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
    pub fn get(&self, language: usize) -> &T {
        match self {
            Self::Shared(one) => one,
            Self::Separate(each) => &each[language],
        }
    }
}

/// Where a weight matrix stands in the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// Token, position and language embeddings, the LayerNorm after them, and the softmax's bias.
    Embeddings,
    /// A layer, counted from 1.
    Layer(usize),
    /// What stands above the last layer.
    Head,
}

/// What a weight matrix belongs to: for learning rates and for freezing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it stands.
    pub place: Place,
    /// The language that has it for itself, if one does.
    pub language: Option<usize>,
}
