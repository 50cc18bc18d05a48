//! How the encoder numbers tokens.
//!
//! The vocabulary gives ids of one space for all languages. Where embeddings are separate, a
//! language's softmax has rows for its own pieces alone, so the encoder numbers a token by its place
//! among these.

use encoder::Vocabulary as Entries;
use tensor::Indices;
use text::Vocabulary;

/// From ids of the vocabulary to those of the encoder, and back.
pub(crate) struct Numbering {
    /// For each language, the encoder's number of every id; others count as unknown.
    local: Option<Vec<Vec<u32>>>,
}

impl Numbering {
    /// The numbering of a vocabulary whose embeddings are separate or not.
    pub(crate) fn new(vocabulary: &Vocabulary, separate: bool) -> Self {
        let unknown = vocabulary.specials().unknown;
        let places = |language: usize| {
            let own = vocabulary.language_ids(language);
            let place = |id: u32| own.binary_search(&id).ok().map(|place| place as u32);
            let unknown = place(unknown).unwrap_or(0);
            (0..vocabulary.len() as u32).map(|id| place(id).unwrap_or(unknown)).collect()
        };
        let local = || (0..vocabulary.languages().len()).map(places).collect();
        Self { local: separate.then(local) }
    }

    /// How many entries the encoder needs.
    pub(crate) fn entries(&self, vocabulary: &Vocabulary) -> Entries {
        if self.local.is_none() {
            return Entries::Size(vocabulary.len());
        }
        let size = |(number, name): (usize, &str)| {
            (name.to_owned(), vocabulary.language_ids(number).len())
        };
        Entries::Sizes(vocabulary.languages().enumerate().map(size).collect())
    }

    /// Ids of the vocabulary as the encoder numbers them.
    pub(crate) fn to_encoder(&self, language: usize, ids: &[u32]) -> Indices {
        match &self.local {
            None => ids.iter().copied().collect(),
            Some(local) => ids.iter().map(|&id| local[language][id as usize]).collect(),
        }
    }

    /// The id of the vocabulary that a number of the encoder stands for.
    pub(crate) fn to_vocabulary(
        &self,
        vocabulary: &Vocabulary,
        language: usize,
        number: u32,
    ) -> u32 {
        match &self.local {
            None => number,
            Some(_) => vocabulary.language_ids(language)[number as usize],
        }
    }
}
