//! Scores against those of `seqeval` and of the CoNLL 2018 evaluation, for random predictions and for
//! those of a model. The fixtures and the script that makes them stand in `fixtures/`.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use std::collections::BTreeMap;
use tasks::conllu::Treebank;
use tasks::ner::{self, BioTag, Repair};
use tasks::parse::{self, RelationLabels};

fn fixture<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn close(what: &str, score: f64, expected: f64) {
    assert!((score - expected).abs() < 1e-9, "{what}: {score}, but {expected}");
}

#[derive(Deserialize)]
struct NerCase {
    gold: Vec<String>,
    predicted: Vec<String>,
    conventional: NerScores,
    paper: NerScores,
}

#[derive(Deserialize)]
struct NerScores {
    micro: [f64; 3],
    types: BTreeMap<String, f64>,
}

fn tags(letters: &str) -> Vec<BioTag> {
    let tag = |letter: char| {
        let kind = match letter.to_ascii_uppercase() {
            'P' => "PER",
            'L' => "LOC",
            'G' => "ORG",
            _ => return BioTag::Outside,
        };
        match letter.is_ascii_uppercase() {
            true => BioTag::Begin(kind.to_owned()),
            false => BioTag::Inside(kind.to_owned()),
        }
    };
    letters.chars().map(tag).collect()
}

#[test]
fn entities_are_scored_as_seqeval_scores_them() {
    let cases: Vec<NerCase> = fixture("ner.json");
    let mut sentences = 0;
    for (number, case) in cases.iter().enumerate() {
        let read = |side: &[String]| side.iter().map(|letters| tags(letters)).collect::<Vec<_>>();
        let (gold, predicted) = (read(&case.gold), read(&case.predicted));
        sentences += gold.len();
        for (repair, expected) in
            [(Repair::Conventional, &case.conventional), (Repair::Paper, &case.paper)]
        {
            let both = gold.iter().map(Vec::as_slice).zip(predicted.iter().map(Vec::as_slice));
            let score = ner::score(both, repair);
            let micro = [score.micro.precision, score.micro.recall, score.micro.f1];
            for (score, expected) in micro.into_iter().zip(expected.micro) {
                close(&format!("case {number}, {repair:?}"), score, expected);
            }
            for (kind, &expected) in &expected.types {
                close(
                    &format!("case {number}, {repair:?}, {kind}"),
                    score.types[kind].f1,
                    expected,
                );
            }
        }
    }
    assert!(sentences > 2000, "{sentences}");
}

#[derive(Deserialize)]
struct ParseCase {
    labels: Vec<String>,
    upos: Vec<String>,
    gold: Vec<Tree>,
    predicted: Vec<Tree>,
    uas: f64,
    las: f64,
    full: f64,
    without: [f64; 2],
}

/// Heads, and the numbers of labels and of parts of speech.
#[derive(Deserialize)]
struct Tree(Vec<u32>, Vec<usize>, Vec<usize>);

impl ParseCase {
    fn treebank(&self, folder: &Path, name: &str, trees: &[Tree]) -> Treebank {
        let mut text = String::new();
        for Tree(heads, labels, upos) in trees {
            for (number, ((head, &label), &upos)) in (1..).zip(heads.iter().zip(labels).zip(upos)) {
                let (label, upos) = (&self.labels[label], &self.upos[upos]);
                let line = format!("{number}\tw{number}\t_\t{upos}\t_\t_\t{head}\t{label}\t_\t_\n");
                text.push_str(&line);
            }
            text.push('\n');
        }
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        Treebank::read(&path).unwrap()
    }
}

#[test]
fn trees_are_scored_as_the_shared_task_scored_them() {
    let cases: Vec<ParseCase> = fixture("parse.json");
    let folder = tempfile::tempdir().unwrap();
    let mut sentences = 0;
    for (number, case) in cases.iter().enumerate() {
        let gold = case.treebank(folder.path(), "gold.conllu", &case.gold);
        let predicted = case.treebank(folder.path(), "predicted.conllu", &case.predicted);
        sentences += case.gold.len();
        let score = parse::compare(&gold, &predicted, RelationLabels::Universal).unwrap();
        close(&format!("case {number}, UAS"), score.all.uas, case.uas);
        close(&format!("case {number}, LAS"), score.all.las, case.las);
        let without = score.without_punctuation;
        close(&format!("case {number}, UAS without"), without.uas, case.without[0]);
        close(&format!("case {number}, LAS without"), without.las, case.without[1]);
        let full = parse::compare(&gold, &predicted, RelationLabels::Full).unwrap();
        close(&format!("case {number}, full LAS"), full.all.las, case.full);
    }
    assert!(sentences > 500, "{sentences}");
}
