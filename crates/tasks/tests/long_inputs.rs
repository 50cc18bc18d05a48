//! Inputs that are too long, and inputs that are nothing at all.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tasks::features::{Above, Features, GivenFeatures, StaticVectors};
use tasks::ner::{Entities, Repair};
use tasks::nli::Pairs;
use tasks::parse::{Relations, Treebank, Trees, is_tree};
use tasks::{Answer, Labelled, Labels, Score};
use tempfile::TempDir;
use tensor::Device;
use vectors::WordVectors;

/// Features of three words, which take inputs of 256.
fn features() -> GivenFeatures<StaticVectors> {
    let device = Device::cpu(1).unwrap();
    let words = ["a", "b", "c"].map(str::to_owned).to_vec();
    let values = (0..36).map(|at| at as f32 / 10.0).collect();
    let table = WordVectors::new(words, 12, values).unwrap();
    let given = StaticVectors::new(vec![("xx".to_owned(), table)], &device).unwrap();
    GivenFeatures::new(given, Above { layers: 1, dropout: 0.0 }, &device).unwrap()
}

fn written(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn labels(set: &dyn Labelled) -> Labels {
    let found = set.labels();
    Labels::new(found.iter().map(|(label, _)| label.as_str()))
}

/// The right answers of each input, put together for each item.
fn right(set: &dyn Labelled, labels: &Labels, parts: &[Vec<Answer>]) -> Vec<Answer> {
    let parts: Vec<&[Answer]> = parts.iter().map(Vec::as_slice).collect();
    set.join(labels, &parts)
}

#[test]
fn a_long_sentence_of_entities_is_read_in_parts() {
    let line = |at: usize| format!("{}\t{}\n", ["a", "b", "c"][at % 3], ["O", "B-X"][at % 2]);
    let (_folder, path) = written(&(0..600).map(line).collect::<String>());
    let set = Entities::read(&path, "xx", Repair::Paper).unwrap();
    let (features, labels) = (features(), labels(&set));
    let prepared = set.prepare(&features, 0, &labels);
    assert_eq!((prepared.split, prepared.cut, prepared.examples.len()), (1, 0, 3));
    assert!(prepared.examples.iter().all(|example| example.tokens.len() <= features.longest()));
    let parts: Vec<Vec<Answer>> =
        prepared.examples.iter().map(|example| example.targets.clone()).collect();
    let answers = right(&set, &labels, &parts);
    assert_eq!(answers.len(), 600);
    assert_eq!(set.score(&labels, std::slice::from_ref(&answers)).headline(), 1.0);
    assert_eq!(set.render(&labels, &[answers]).trim(), fs::read_to_string(&path).unwrap().trim());
}

#[test]
fn a_long_sentence_is_parsed_in_parts_that_make_one_tree() {
    // Every word hangs from the one before it.
    let label = |at: usize| if at == 1 { "root" } else { "parataxis" };
    let line = |at: usize| format!("{at}\ta\t_\tX\t_\t_\t{}\t{}\t_\t_\n", at - 1, label(at));
    let (_folder, path) = written(&(1..=600).map(line).collect::<String>());
    let set = Trees::read(&path, Relations::Universal).unwrap();
    let (features, labels) = (features(), labels(&set));
    let prepared = set.prepare(&features, 0, &labels);
    assert_eq!((prepared.split, prepared.examples.len()), (1, 3));
    let outside = |example: &tasks::Example| {
        example.targets.iter().filter(|answer| answer.head == tasks::NONE).count()
    };
    assert_eq!(prepared.examples.iter().map(outside).collect::<Vec<_>>(), [0, 1, 1]);
    // A part whose head lies elsewhere has a root of its own when it is parsed.
    let rooted = |answer: &Answer| Answer {
        head: if answer.head == tasks::NONE { 0 } else { answer.head },
        ..*answer
    };
    let parts: Vec<Vec<Answer>> =
        prepared.examples.iter().map(|e| e.targets.iter().map(rooted).collect()).collect();
    let answers = right(&set, &labels, &parts);
    assert!(is_tree(&answers.iter().map(|answer| answer.head).collect::<Vec<_>>()));
    let Score::Parse(score) = set.score(&labels, std::slice::from_ref(&answers)) else {
        panic!("a parse is scored as one");
    };
    assert_eq!(score.all.las, 598.0 / 600.0, "only the two roots of later parts are wrong");
    let (_folder, again) = written(&set.render(&labels, &[answers]));
    Treebank::read(&again).unwrap();
}

#[test]
fn a_long_pair_is_cut_and_counted() {
    let long = "a ".repeat(400);
    let (_folder, path) = written(&format!("{long}\tb c\tyes\na\tb\tno\n"));
    let set = Pairs::read(&path).unwrap();
    let (features, labels) = (features(), labels(&set));
    let prepared = set.prepare(&features, 0, &labels);
    assert_eq!((prepared.cut, prepared.split), (1, 0));
    let tokens = &prepared.examples[0].tokens;
    assert_eq!(tokens.len(), features.longest());
    // The hypothesis, which is shorter, is whole: b, c, and the end.
    assert_eq!(tokens[tokens.len() - 4..], [1, 4, 5, 1]);
    assert_eq!(prepared.examples[1].tokens, [0, 3, 1, 4, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn readers_take_anything_or_say_why_not(text in "([a-zO\\-0-9.#\\t \\n_]|B-X|1\\t|\\t_){0,80}") {
        let (_folder, path) = written(&text);
        for error in [
            Treebank::read(&path).err(),
            Entities::read(&path, "zh", Repair::Paper).err(),
            Pairs::read(&path).err(),
        ].into_iter().flatten() {
            let message = error.to_string();
            prop_assert!(message.contains("file") && message.contains("; "), "{}", message);
        }
    }
}
