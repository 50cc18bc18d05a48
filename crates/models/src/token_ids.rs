//! The mapping from a vocabulary's token ids to an encoder's.
//!
//! The vocabulary gives ids of one space for all languages. Where embeddings are separate, a
//! language's softmax has rows for its own subwords alone, so the encoder's id of a token is its place
//! among these.

use encoder::VocabularySize;
use tensor::Indices;
use text::Vocabulary;

/// From ids of the vocabulary to those of the encoder, and back.
pub struct TokenIdMap {
    /// For each language, the encoder's id of every vocabulary id; others count as unknown.
    local: Option<Vec<Vec<u32>>>,
}

impl TokenIdMap {
    /// The mapping for a vocabulary whose embeddings are separate for each language, or not.
    pub fn new(vocabulary: &Vocabulary, separate: bool) -> Self {
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
    pub fn entries(&self, vocabulary: &Vocabulary) -> VocabularySize {
        if self.local.is_none() {
            return VocabularySize::Size(vocabulary.len());
        }
        let size = |(number, name): (usize, &str)| {
            (name.to_owned(), vocabulary.language_ids(number).len())
        };
        VocabularySize::Sizes(vocabulary.languages().enumerate().map(size).collect())
    }

    /// The encoder's ids of vocabulary ids.
    pub fn to_encoder(&self, language: usize, ids: &[u32]) -> Indices {
        match &self.local {
            None => ids.iter().copied().collect(),
            Some(local) => ids.iter().map(|&id| local[language][id as usize]).collect(),
        }
    }

    /// The vocabulary id of an encoder's id.
    pub fn to_vocabulary(&self, vocabulary: &Vocabulary, language: usize, id: u32) -> u32 {
        match &self.local {
            None => id,
            Some(_) => vocabulary.language_ids(language)[id as usize],
        }
    }
}
