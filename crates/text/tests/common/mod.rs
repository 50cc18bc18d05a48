//! Small texts, vocabularies and corpora for the tests.

#![allow(dead_code, missing_docs, reason = "each test file uses some of it")]

use std::path::Path;
use std::sync::Arc;

use text::{
    BpeSettings, Corpus, LanguageText, LineRules, Preparation, Preparer, Selection, TextSource,
    TokenizedCorpus, Vocabulary, VocabularyKind, WordCounts,
};

pub(crate) const ENGLISH: &str = "the cat sat on the mat in Paris
a cat and a dog met in the park
the dog ran to the park , the cat sat
Paris is a city and the park is in the city
";
pub(crate) const FRENCH: &str = "le chat dort sur le tapis à Paris
un chat et un chien jouent dans le parc
le chien court dans le parc , le chat dort
Paris est une ville et le parc est dans la ville
";

/// A corpus of lines that need no preparation, in a file under `folder`.
pub(crate) fn corpus(folder: &Path, language: &str, text: &str, selection: Selection) -> Corpus {
    let path = folder.join(format!("{language}.txt"));
    std::fs::write(&path, text).unwrap();
    let source = TextSource::new(language, &[path.display().to_string()]).unwrap();
    let preparer = Preparer::new(language, Preparation::none(), None).unwrap();
    Corpus { source, preparer, rules: LineRules::default(), selection }
}

pub(crate) fn learn(kind: VocabularyKind, merges: usize, texts: &[(&str, &str)]) -> Vocabulary {
    let folder = tempfile::tempdir().unwrap();
    let texts = texts.iter().map(|&(name, text)| {
        let corpus = corpus(folder.path(), name, text, Selection::default());
        let (words, _) = WordCounts::of(&corpus, &mut |_| {}).unwrap();
        LanguageText { name: name.into(), preparer: corpus.preparer, words }
    });
    let settings = BpeSettings { kind, merges, ..BpeSettings::default() };
    Vocabulary::learn(texts.collect(), settings).unwrap()
}

pub(crate) fn bilingual(kind: VocabularyKind) -> Vocabulary {
    learn(kind, 60, &[("en", ENGLISH), ("fr", FRENCH)])
}

/// A text of so many sentences, no two alike.
pub(crate) fn long_text(sentences: usize, words: &[&str]) -> String {
    let chance = text::RandomStreams::new(9, "text");
    let line = |number: usize| {
        let mut stream = chance.stream(number as u64);
        let length = 4 + stream.below(9);
        let words = (0..length).map(|_| words[stream.below(words.len() as u64) as usize]);
        words.collect::<Vec<_>>().join(" ")
    };
    (0..sentences).map(|number| line(number) + "\n").collect()
}

pub(crate) fn tokenise(
    folder: &Path,
    vocabulary: &Vocabulary,
    language: &str,
    text: &str,
    selection: Selection,
) -> Arc<TokenizedCorpus> {
    let corpus = corpus(folder, language, text, selection);
    let shelf = folder.join("shelf");
    Arc::new(TokenizedCorpus::prepare(&corpus, vocabulary, &shelf, &mut |_| {}).unwrap().0)
}
