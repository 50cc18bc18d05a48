//! What vocabularies share, what they give for a text, and what they survive on disk.

mod common;

use std::collections::HashSet;

use common::{ENGLISH, bilingual, corpus, learn};
use proptest::prelude::*;
use text::{
    Preparation, Preparer, Selection, Vocabulary, VocabularyKind, count_subwords,
    vocabulary_sharing,
};
use tokenizers::Tokenizer;

fn encode(vocabulary: &Vocabulary, language: &str, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    vocabulary.encoder(vocabulary.language(language).unwrap()).encode(text, &mut ids);
    ids
}

#[test]
fn kinds_share_what_they_say() {
    let own = |vocabulary: &Vocabulary, language| -> HashSet<u32> {
        vocabulary.language_ids(language).iter().copied().collect()
    };
    let special: HashSet<u32> = (0..6).collect();

    let joint = bilingual(VocabularyKind::Joint);
    assert_eq!(encode(&joint, "en", "Paris"), encode(&joint, "fr", "Paris"));

    let union = bilingual(VocabularyKind::Union);
    assert_eq!(encode(&union, "en", "Paris"), encode(&union, "fr", "Paris"));
    assert_ne!(encode(&union, "en", "dort"), encode(&union, "fr", "dort"));
    let shared: HashSet<_> = own(&union, 0).intersection(&own(&union, 1)).copied().collect();
    assert!(shared.len() > special.len());

    let disjoint = bilingual(VocabularyKind::Disjoint);
    let shared: HashSet<_> = own(&disjoint, 0).intersection(&own(&disjoint, 1)).copied().collect();
    assert_eq!(shared, special);
    let (english, french) = (encode(&disjoint, "en", "Paris"), encode(&disjoint, "fr", "Paris"));
    assert!(english.iter().all(|id| !french.contains(id)), "{english:?} {french:?}");
    assert!(disjoint.subword(french[0]).unwrap().starts_with("fr:"));
    assert_eq!(disjoint.len(), disjoint.language_ids(0).len() + disjoint.language_ids(1).len() - 6);
}

#[test]
fn merges_are_as_many_as_asked() {
    let count = |merges: usize| {
        let vocabulary = learn(VocabularyKind::Joint, merges, &[("en", ENGLISH)]);
        let folder = tempfile::tempdir().unwrap();
        vocabulary.save(&folder.path().join("v"), false).unwrap();
        let json = std::fs::read(folder.path().join("v/tokenizer.json")).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        json["model"]["merges"].as_array().unwrap().len()
    };
    assert_eq!(count(10), 10);
    assert_eq!(count(25), 25);
    // With 26 merges every word of the text is one subword, and there is nothing left to merge.
    assert_eq!(count(1_000), 26);
}

#[test]
fn learning_twice_gives_the_same_vocabulary() {
    for kind in [VocabularyKind::Joint, VocabularyKind::Union, VocabularyKind::Disjoint] {
        let prints: HashSet<_> = (0..5).map(|_| bilingual(kind).fingerprint().to_owned()).collect();
        assert_eq!(prints.len(), 1, "{kind:?}");
    }
    assert_ne!(
        bilingual(VocabularyKind::Joint).fingerprint(),
        bilingual(VocabularyKind::Union).fingerprint()
    );
}

#[test]
fn a_folder_comes_back_the_same_and_a_changed_one_is_refused() {
    for kind in [VocabularyKind::Joint, VocabularyKind::Union, VocabularyKind::Disjoint] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocabulary");
        let saved = bilingual(kind);
        saved.save(&path, false).unwrap();
        let loaded = Vocabulary::load(&path).unwrap();
        assert_eq!(loaded.fingerprint(), saved.fingerprint());
        for language in ["en", "fr"] {
            let text = "le chat in the park <unk> ☃";
            assert_eq!(encode(&loaded, language, text), encode(&saved, language, text));
        }
        assert_eq!(loaded.language_ids(1), saved.language_ids(1));
        assert_eq!(loaded.counts(0), saved.counts(0));

        let subwords = std::fs::read_to_string(path.join("subwords.tsv")).unwrap();
        std::fs::write(path.join("subwords.tsv"), subwords.replacen("\t3\n", "\t4\n", 1)).unwrap();
        let error = Vocabulary::load(&path).unwrap_err().to_string();
        assert!(error.contains("changed since"), "{error}");
        std::fs::write(path.join("subwords.tsv"), "id\tsubword\ten\tfr\n0\tx\tone\t2\n").unwrap();
        let error = Vocabulary::load(&path).unwrap_err().to_string();
        assert!(error.contains("subwords.tsv:2: "), "{error}");
    }
    let error = Vocabulary::load(std::path::Path::new("no/such/folder")).unwrap_err().to_string();
    assert!(error.contains("no/such/folder/vocabulary.json"), "{error}");
}

#[test]
fn text_that_looks_special_is_text() {
    let vocabulary = bilingual(VocabularyKind::Joint);
    let specials = vocabulary.specials();
    let ids = encode(&vocabulary, "en", "</s> <mask> <pad>");
    let special = [specials.end, specials.mask, specials.pad, specials.start];
    assert!(ids.iter().all(|id| !special.contains(id)), "{ids:?}");
}

#[test]
fn words_are_found_in_tokens_and_decoded() {
    for kind in [VocabularyKind::Joint, VocabularyKind::Union, VocabularyKind::Disjoint] {
        let vocabulary = bilingual(kind);
        let text = "the dog sat in Paris , qqcat";
        let mut ids = encode(&vocabulary, "en", text);
        assert_eq!(vocabulary.words(&ids).count(), 7, "{kind:?} {ids:?}");
        let second = vocabulary.words(&ids).nth(1).unwrap();
        assert_eq!(vocabulary.decode(0, &ids[second]), "dog");
        ids.insert(0, vocabulary.specials().end);
        assert_eq!(vocabulary.words(&ids).next(), Some(0..1));
        assert_eq!(vocabulary.words(&[]).count(), 0);
    }
}

#[test]
fn words_given_one_by_one_know_their_first_subword() {
    let vocabulary = bilingual(VocabularyKind::Union);
    let mut encoder = vocabulary.encoder(0);
    let encoded = encoder.encode_words(["the", "unheard", "", "cat"]);
    assert_eq!(encoded.firsts.len(), 4);
    let blank = encoded.firsts[2] as usize;
    assert_eq!(encoded.ids[blank], vocabulary.specials().unknown);
    assert_eq!(encoded.ids[blank + 1..], encode(&vocabulary, "en", "cat"));
}

#[test]
fn a_language_that_is_not_there_is_named_with_those_that_are() {
    let error = bilingual(VocabularyKind::Joint).language("de").unwrap_err().to_string();
    assert!(error.contains("`de`") && error.contains("en, fr"), "{error}");
}

const SUBWORDS: &str =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ncat\n##s\nchat\n中\n国\n.\nE\n##é\n";

fn wordpiece(uncased: bool) -> Vocabulary {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), SUBWORDS).unwrap();
    let language =
        |name: &str| (name.to_owned(), Preparer::new(name, Preparation::none(), None).unwrap());
    Vocabulary::wordpiece(file.path(), vec![language("en"), language("fr")], uncased).unwrap()
}

#[test]
fn word_subwords_are_taken_over_as_they_are() {
    let vocabulary = wordpiece(false);
    assert_eq!(vocabulary.len(), 14);
    assert_eq!(vocabulary.bos_eos(), (2, 3));
    assert_eq!(encode(&vocabulary, "en", "the cats."), [5, 6, 7, 11]);
    assert_eq!(encode(&vocabulary, "fr", "中国 chats ☃"), [9, 10, 8, 7, 1]);
    assert_eq!(encode(&vocabulary, "fr", "The"), [1]);
    assert_eq!(encode(&wordpiece(true), "fr", "The"), [5]);
    let ids = encode(&vocabulary, "en", "the cats");
    assert_eq!(vocabulary.words(&ids).collect::<Vec<_>>(), [0..1, 1..3]);
    assert_eq!(vocabulary.decode(0, &ids), "the cats");

    let folder = tempfile::tempdir().unwrap();
    vocabulary.save(&folder.path().join("v"), false).unwrap();
    let loaded = Vocabulary::load(&folder.path().join("v")).unwrap();
    assert_eq!(loaded.fingerprint(), vocabulary.fingerprint());
}

#[test]
fn what_is_shared_is_counted() {
    let vocabulary = wordpiece(false);
    let folder = tempfile::tempdir().unwrap();
    let counts: Vec<_> = [("en", "the cats .\nthe cat the .\n"), ("fr", "chats .\nchat cat ☃\n")]
        .into_iter()
        .map(|(name, text)| {
            let corpus = corpus(folder.path(), name, text, Selection::default());
            let language = vocabulary.language(name).unwrap();
            let (counts, _) = count_subwords(&vocabulary, language, &corpus, &mut |_| {}).unwrap();
            (language, counts)
        })
        .collect();
    let sharing = vocabulary_sharing(&vocabulary, &counts, 1, 2);
    // en: the 3, cat 2, ##s 1, . 2; fr: chat 2, ##s 1, . 1, cat 1, and one unknown.
    let (english, french) = (&sharing.languages[0], &sharing.languages[1]);
    assert_eq!((english.types, english.tokens), (4, 8));
    assert_eq!((french.types, french.tokens), (5, 6));
    assert!((french.unknown - 1.0 / 6.0).abs() < 1e-12);
    let pair = &sharing.pairs[0];
    assert_eq!((pair.shared_types, pair.shared_with_letters), (3, 2));
    assert!((pair.of_types - 3.0 / 6.0).abs() < 1e-12);
    assert!((pair.of_first_tokens - 5.0 / 8.0).abs() < 1e-12);
    assert!((pair.of_second_tokens - 3.0 / 6.0).abs() < 1e-12);
    let anchors: Vec<_> = pair.anchors.iter().map(|anchor| anchor.subword.as_str()).collect();
    assert_eq!(anchors, ["cat", "."]);
}

#[test]
fn a_disjoint_vocabulary_has_no_anchors() {
    let vocabulary = bilingual(VocabularyKind::Disjoint);
    let counts: Vec<_> =
        (0..2).map(|language| (language, vocabulary.counts(language).to_vec())).collect();
    let sharing = vocabulary_sharing(&vocabulary, &counts, 1, 10);
    assert_eq!(sharing.pairs[0].shared_types, 0);
    assert!(sharing.languages[0].tokens > 0);
    let union = bilingual(VocabularyKind::Union);
    let counts: Vec<_> =
        (0..2).map(|language| (language, union.counts(language).to_vec())).collect();
    assert!(
        text::vocabulary_sharing(&union, &counts, 1, 10).pairs[0]
            .anchors
            .iter()
            .any(|anchor| anchor.subword == "Paris</w>")
    );
}

/// The library's own tokenizer, read from the file that we wrote.
fn library(vocabulary: &Vocabulary, file: &str) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    vocabulary.save(&folder.path().join("v"), false).unwrap();
    let mut tokenizer = Tokenizer::from_file(folder.path().join("v").join(file)).unwrap();
    tokenizer.set_encode_special_tokens(true);
    tokenizer
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn remembering_words_changes_nothing(
        sentences in proptest::collection::vec("[a-eéà中国 .,'\u{a0}\u{3000}]{0,30}|\\PC{0,20}|(the |cat |chats? |Paris ){0,9}", 1..6),
    ) {
        thread_local! {
            static CASES: [(Vocabulary, Tokenizer, usize); 3] = {
                let union = bilingual(VocabularyKind::Union);
                let (english, french) = (library(&union, "tokenizer.en.json"), library(&union, "tokenizer.fr.json"));
                let subwords = wordpiece(false);
                let tokenizer = library(&subwords, "tokenizer.json");
                [(union.clone(), english, 0), (union, french, 1), (subwords, tokenizer, 0)]
            };
        }
        CASES.with(|cases| {
            for (vocabulary, tokenizer, language) in cases {
                let mut encoder = vocabulary.encoder(*language);
                for sentence in &sentences {
                    let mut ids = Vec::new();
                    encoder.encode(sentence, &mut ids);
                    let expected = tokenizer.encode(sentence.as_str(), false).unwrap();
                    prop_assert_eq!(ids, expected.get_ids(), "{:?}", sentence);
                }
            }
            Ok(())
        })?;
    }
}

#[test]
fn bad_languages_are_refused() {
    for names in [&["en", "en"][..], &["e/n"], &[""], &[]] {
        let texts = names.iter().map(|name| text::LanguageText {
            name: (*name).to_owned(),
            preparer: Preparer::new(name, Preparation::none(), None).unwrap(),
            words: text::WordCounts::default(),
        });
        assert!(
            Vocabulary::learn(texts.collect(), text::BpeSettings::default()).is_err(),
            "{names:?}"
        );
    }
}
