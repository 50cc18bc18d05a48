//! Checks on real data, run where `ISOGLOSS_DATA` names the folder that holds it.

use models::parallel::{distinct, read_pair};
use models::paraphrases::{ParaphraseConfig, find};
use terms::tests::real_data;

/// The 10,000 sentences of Conneau et al. 2020 (section 5.1.3): XNLI's development and test sets, premises
/// and hypotheses, of which English has 9,999 different ones.
#[test]
fn xnli_has_ten_thousand_different_sentences() {
    let Some(data) = real_data() else { return };
    let file = |part: &str, language: &str| {
        let path = data.join(format!("xnli/{part}-{language}.tsv"));
        (language.to_owned(), path.display().to_string())
    };
    let read = |a: &str, b: &str| {
        let texts = [file("dev", a), file("dev", b), file("test", a), file("test", b)];
        let sides = read_pair(&texts, &"1,2".parse().unwrap()).unwrap();
        (sides[0].lines.len(), distinct(&sides).len())
    };
    assert_eq!(read("en", "en"), (15_000, 9_999));
    assert_eq!(read("fr", "en"), (15_000, 10_000));
}

/// Tatoeba's English sentences with one French or German translation.
#[test]
fn paraphrases_are_found_in_real_text() {
    let Some(data) = real_data() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pair = |pair: &str| {
        let path = data.join(format!("bitext/bitext.{pair}.tsv"));
        (pair.to_owned(), path.display().to_string())
    };
    let found = find(&ParaphraseConfig {
        parallel: vec![pair("en-de"), pair("en-fr"), pair("en-ru"), pair("en-zh")],
        language: "en".to_owned(),
        exclude: Vec::new(),
        out: folder.path().join("paraphrases.tsv"),
    })
    .unwrap();
    assert_eq!(found.rows, 114_902);
    assert!(found.pairs > 2000, "{found:?}");
}
