//! Checks on real data, run where `ISOGLOSS_DATA` names the folder that holds it.

use std::sync::Arc;

use terms::tests::real_data;
use text::{
    Corpus, Dictionary, LineRules, Preparation, Preparer, Selection, SimplificationTable,
    TextSource, Vocabulary, count_subwords, vocabulary_sharing,
};

/// Table 3 of Liu et al. 2020: the sizes of the token sets of multilingual BERT on XNLI's test sentences,
/// and of their intersections with the English one.
#[test]
fn token_sets_of_multilingual_bert_are_those_of_the_paper() {
    let Some(data) = real_data() else { return };
    let expected = [("en", 9140, 9140), ("de", 9212, 3230), ("fr", 8552, 3911), ("zh", 3866, 1325)];
    let preparer = |name: &str| Preparer::new(name, Preparation::none(), None).unwrap();
    let languages = expected.iter().map(|(name, ..)| ((*name).to_owned(), preparer(name)));
    let subwords = data.join("vocab/mbert_cased_vocab.txt");
    let vocabulary = Vocabulary::wordpiece(&subwords, languages.collect(), false).unwrap();
    assert_eq!(vocabulary.len(), 119_547);

    let folder = tempfile::tempdir().unwrap();
    let count = |(index, (name, ..)): (usize, &(&str, u64, u64))| {
        let table = std::fs::read_to_string(data.join(format!("xnli/test-{name}.tsv"))).unwrap();
        let columns =
            |line: &str| line.splitn(3, '\t').take(2).collect::<Vec<_>>().join("\n") + "\n";
        let path = folder.path().join(name);
        std::fs::write(&path, table.lines().map(columns).collect::<String>()).unwrap();
        let corpus = Corpus {
            source: TextSource::new(name, &[path.display().to_string()]).unwrap(),
            preparer: preparer(name),
            rules: LineRules::default(),
            selection: Selection::default(),
        };
        (index, count_subwords(&vocabulary, index, &corpus, &mut |_| {}).unwrap().0)
    };
    let counts: Vec<_> = expected.iter().enumerate().map(count).collect();
    let sharing = vocabulary_sharing(&vocabulary, &counts, 1, 0);
    for (index, (name, size, shared)) in expected.into_iter().enumerate() {
        assert_eq!(sharing.languages[index].types, size, "|V_{name}|");
        if index > 0 {
            assert_eq!(sharing.pairs[index - 1].shared_types, shared, "|V_en ∩ V_{name}|");
        }
    }
}

#[test]
fn dictionaries_and_tables_are_read_whole() {
    let Some(data) = real_data() else { return };
    for language in ["de", "fr", "ru", "zh"] {
        let path = data.join(format!("muse/en-{language}.txt"));
        let dictionary = Dictionary::read(&path, "en", language, LineRules::default()).unwrap();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(dictionary.entries.len(), lines, "{language}");
    }
    let table = SimplificationTable::read(&data.join("vocab/trad2simp.tsv")).unwrap();
    let preparation = Preparation { simplify: true, ..Preparation::for_language("zh") };
    let preparer = Preparer::new("zh", preparation, Some(Arc::new(table))).unwrap();
    let mut words = String::new();
    preparer.prepare("漢語詞彙", &mut words);
    assert_eq!(words.replace(' ', ""), "汉语词汇");
}
