//! Topic classification: balanced, the same in every language, and learnable from the words alone.

mod common;

use std::collections::{HashMap, HashSet};

use common::{Generated, small};
use world::SplitSizes;

/// Sentences with their labels.
fn read(world: &Generated, split: &str, code: &str) -> Vec<(String, String)> {
    let lines = world.lines(format!("classify/{split}-{code}.tsv"));
    let pair = |line: String| {
        let (sentence, label) = line.split_once('\t').unwrap();
        (sentence.to_owned(), label.to_owned())
    };
    lines.into_iter().map(pair).collect()
}

#[test]
fn labels_are_balanced_and_lines_are_translations() {
    let mut config = small();
    config.classify = SplitSizes { train: 400, dev: 41, test: 80 };
    config.language[1].distance = Some(0.8);
    let world = Generated::new(config);
    let mut seen = HashSet::new();
    for (split, size) in [("train", 400), ("dev", 41), ("test", 80)] {
        let [first, second] = ["qaa", "qab"].map(|code| read(&world, split, code));
        assert_eq!((first.len(), second.len()), (size, size));
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for ((a, label), (b, other)) in first.iter().zip(&second) {
            assert_eq!(label, other);
            let meanings = |text: &str, code: &str| {
                let lexicon = world.meanings_of(code);
                let mut ids: Vec<usize> = text.split(' ').map(|word| lexicon[word]).collect();
                ids.sort_unstable();
                ids
            };
            assert_eq!(meanings(a, "qaa"), meanings(b, "qab"));
            assert!(a.split(' ').count() >= 4 && seen.insert(a.clone()), "{a}");
            *counts.entry(label).or_default() += 1;
        }
        assert_eq!(counts.len(), 8);
        assert!(counts.values().all(|&count| count.abs_diff(size / 8) <= 1), "{counts:?}");
    }
}

/// Naive Bayes over words, with add-one smoothing.
#[test]
fn words_tell_the_topic_far_above_chance() {
    let mut config = small();
    config.classify = SplitSizes { train: 5000, dev: 0, test: 1000 };
    let world = Generated::new(config);
    let mut counts: HashMap<(String, String), f64> = HashMap::new();
    let mut totals: HashMap<String, f64> = HashMap::new();
    for (sentence, label) in read(&world, "train", "qaa") {
        for word in sentence.split(' ') {
            *counts.entry((label.clone(), word.to_owned())).or_default() += 1.0;
            *totals.entry(label.clone()).or_default() += 1.0;
        }
    }
    let score = |label: &String, sentence: &str| -> f64 {
        let word = |word: &str| {
            let count = counts.get(&(label.clone(), word.to_owned())).copied().unwrap_or(0.0);
            ((count + 1.0) / (totals[label] + 200.0)).ln()
        };
        sentence.split(' ').map(word).sum()
    };
    let test = read(&world, "test", "qaa");
    let predicted = |sentence: &str| {
        totals.keys().max_by(|a, b| score(a, sentence).total_cmp(&score(b, sentence))).unwrap()
    };
    let correct = test.iter().filter(|(sentence, label)| predicted(sentence) == label).count();
    let accuracy = correct as f64 / test.len() as f64;
    assert!((0.4..0.95).contains(&accuracy), "{accuracy}");
}

#[test]
fn a_world_of_one_topic_has_nothing_to_classify() {
    let mut config = small();
    config.meaning.topics = 1;
    assert!(Generated::new(config).paths("classify").is_empty());
}
