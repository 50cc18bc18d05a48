//! The mapping from a vocabulary's token ids to an encoder's.
//!
//! The vocabulary gives ids of one space for all languages. Where embeddings are separate, a
//! language's softmax has rows for its own subwords alone, so the encoder's id of a token is its place
//! among these. Where special tokens are separate, those of every language but the first have rows
//! behind the vocabulary's.

use encoder::{SharingPlan, VocabularySize};
use tensor::Indices;
use text::Vocabulary;

/// From ids of the vocabulary to those of the encoder, and back.
pub struct TokenIdMap {
    /// For each language, the encoder's id of every vocabulary id; others count as unknown.
    local: Option<Vec<Vec<u32>>>,
    /// Rows of the one table, where there is one.
    rows: Option<usize>,
}

impl TokenIdMap {
    /// The mapping for a vocabulary, by what is separate for each language.
    pub fn new(vocabulary: &Vocabulary, separate: &SharingPlan) -> Self {
        let languages = 0..vocabulary.languages().len();
        if separate.tokens {
            let local = languages.map(|language| own_places(vocabulary, language)).collect();
            return Self { local: Some(local), rows: None };
        }
        if !separate.specials {
            return Self { local: None, rows: Some(vocabulary.len()) };
        }
        let specials = vocabulary.specials().ids();
        let rows = vocabulary.len() + (languages.len().max(1) - 1) * specials.len();
        let local = languages.map(|language| {
            let mut ids: Vec<u32> = (0..vocabulary.len() as u32).collect();
            if language > 0 {
                let first = vocabulary.len() + (language - 1) * specials.len();
                specials.iter().zip(first as u32..).for_each(|(&id, row)| ids[id as usize] = row);
            }
            ids
        });
        Self { local: Some(local.collect()), rows: Some(rows) }
    }

    /// How many entries the encoder needs.
    pub fn entries(&self, vocabulary: &Vocabulary) -> VocabularySize {
        if let Some(rows) = self.rows {
            return VocabularySize::Size(rows);
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
        match self.rows {
            None => vocabulary.language_ids(language)[id as usize],
            Some(_) => match (id as usize).checked_sub(vocabulary.len()) {
                None => id,
                Some(behind) => {
                    let specials = vocabulary.specials().ids();
                    specials[behind % specials.len()]
                }
            },
        }
    }
}

/// The place of every id among a language's own.
fn own_places(vocabulary: &Vocabulary, language: usize) -> Vec<u32> {
    let own = vocabulary.language_ids(language);
    let place = |id: u32| own.binary_search(&id).ok().map(|place| place as u32);
    let unknown = place(vocabulary.specials().unknown).unwrap_or(0);
    (0..vocabulary.len() as u32).map(|id| place(id).unwrap_or(unknown)).collect()
}

#[cfg(test)]
mod tests {
    use text::{BpeSettings, Corpus, LineRules, Preparation, Preparer, Selection, TextSource};

    use super::*;

    #[test]
    fn special_tokens_of_each_language_have_rows_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = |language: &str| {
            let path = folder.path().join(language);
            std::fs::write(&path, "a cat sat\n").unwrap();
            Corpus {
                source: TextSource::new(language, &[path.display().to_string()]).unwrap(),
                preparer: Preparer::new(language, Preparation::none(), None).unwrap(),
                rules: LineRules::default(),
                selection: Selection::default(),
            }
        };
        let settings = BpeSettings { merges: 5, ..BpeSettings::default() };
        let corpora = ["en", "xx", "yy"].map(corpus).into();
        let (vocabulary, _) = Vocabulary::from_corpora(corpora, settings, &mut |_, _| {}).unwrap();
        let map = TokenIdMap::new(&vocabulary, &"specials".parse().unwrap());
        let size = vocabulary.len();
        assert_eq!(map.entries(&vocabulary), VocabularySize::Size(size + 10));
        let all: Vec<u32> = (0..size as u32).collect();
        let rows: Vec<Vec<u32>> =
            (0..3).map(|language| map.to_encoder(language, &all).to_vec()).collect();
        assert_eq!(rows[0], all, "the first language has the rows that all would share");
        for id in &all {
            let own: Vec<u32> = rows.iter().map(|rows| rows[*id as usize]).collect();
            let distinct = own[0] != own[1] && own[1] != own[2] && own[0] != own[2];
            let equal = own[0] == own[1] && own[1] == own[2];
            assert!(if vocabulary.specials().ids().contains(id) { distinct } else { equal });
            for (language, row) in own.into_iter().enumerate() {
                assert_eq!(map.to_vocabulary(&vocabulary, language, row), *id);
            }
        }
    }
}
