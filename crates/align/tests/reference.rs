//! Against the model restated in numpy, and against what the original program printed, both by
//! fixtures/make.py.

#![allow(missing_docs, reason = "tests")]

use std::path::Path;

use align::{
    AlignmentConfig, AlignmentDirection, AlignmentModel, Bitext, EmIteration, WordLinks, train,
    train_direction,
};
use serde_json::Value;

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
    std::fs::read_to_string(path).unwrap()
}

fn bitext() -> Bitext {
    let text = fixture("bitext.txt");
    Bitext::new(text.lines().map(|line| line.split_once(" ||| ").unwrap()))
}

fn expected() -> Value {
    serde_json::from_str(&fixture("expected.json")).unwrap()
}

fn config(case: &Value) -> AlignmentConfig {
    AlignmentConfig {
        iterations: case["passes"].as_u64().unwrap() as usize,
        p_null: case["null"].as_f64().unwrap(),
        tension: case["tension"].as_f64().unwrap(),
        learn_tension: case["learn_tension"].as_bool().unwrap(),
        max_tension: case["most_tension"].as_f64().unwrap(),
        prior: case["prior"].as_f64(),
        fast_align_compat: false,
    }
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn is_near(ours: f64, theirs: f64, tolerance: f64) -> bool {
    (ours - theirs).abs() <= tolerance * theirs.abs().max(1.0)
}

/// (given, explained) as the reference has them, as (source, target).
fn links(value: &Value, direction: AlignmentDirection) -> WordLinks {
    let link = |link: &Value| {
        let [given, explained] = [0, 1].map(|side| link[side].as_u64().unwrap() as u16);
        match direction {
            AlignmentDirection::Forward => (given, explained),
            AlignmentDirection::Reverse => (explained, given),
        }
    };
    WordLinks::new(value.as_array().unwrap().iter().map(link).collect())
}

#[test]
fn likelihoods_tensions_and_links_are_those_of_the_reference() {
    let (bitext, expected) = (bitext(), expected());
    for (name, case) in expected["cases"].as_object().unwrap() {
        for direction in [AlignmentDirection::Forward, AlignmentDirection::Reverse] {
            let theirs =
                &case[if direction == AlignmentDirection::Forward { "forward" } else { "reverse" }];
            let mut passes: Vec<EmIteration> = Vec::new();
            let mut watch = |pass: &EmIteration| passes.push(pass.clone());
            let (_, ours) =
                train_direction(&bitext, direction, &config(&case["config"]), &mut watch).unwrap();
            assert_eq!(passes.len(), theirs["passes"].as_array().unwrap().len());
            for (ours, theirs) in passes.iter().zip(theirs["passes"].as_array().unwrap()) {
                let context = format!("{name} {direction:?}: {ours:?} {theirs}");
                let log = theirs["log_likelihood"].as_f64().unwrap();
                assert!(is_near(ours.log_likelihood, log, 1e-7), "{context}");
                assert!(
                    is_near(ours.tension, theirs["tension"].as_f64().unwrap(), 1e-6),
                    "{context}"
                );
            }
            for (sentence, theirs) in theirs["links"].as_array().unwrap().iter().enumerate() {
                let context = format!("{name} {direction:?} sentence {sentence}");
                assert_eq!(ours.links(&bitext, sentence), links(theirs, direction), "{context}");
            }
        }
    }
}

#[test]
fn posteriors_are_those_of_the_reference() {
    let (bitext, expected) = (bitext(), expected());
    for (name, case) in expected["cases"].as_object().unwrap() {
        let model: AlignmentModel =
            train(&bitext, &config(&case["config"]), &mut |_, _| {}).unwrap();
        for sentence in 0..5 {
            let (source, target) =
                (bitext.source().sentence(sentence), bitext.target().sentence(sentence));
            let explained = model.explain(source, target);
            let forward = numbers(&case["forward"]["posteriors"][sentence]);
            let reverse = numbers(&case["reverse"]["posteriors"][sentence]);
            let (n, m) = (source.len(), target.len());
            for (i, j) in (0..n).flat_map(|i| (0..m).map(move |j| (i, j))) {
                let ours = explained.posteriors((i as u16, j as u16));
                let theirs = [forward[j * (n + 1) + i], reverse[i * (m + 1) + j]];
                let near =
                    ours.iter().zip(theirs).all(|(&ours, theirs)| is_near(ours, theirs, 1e-5));
                assert!(near, "{name} {sentence} {i}-{j}: {ours:?} {theirs:?}");
            }
        }
    }
}

#[test]
fn the_original_s_numbers_are_reproduced_on_request() {
    let (bitext, expected) = (bitext(), expected());
    let config =
        AlignmentConfig { tension: 4.0, fast_align_compat: true, ..AlignmentConfig::default() };
    for direction in [AlignmentDirection::Forward, AlignmentDirection::Reverse] {
        let name = if direction == AlignmentDirection::Forward { "forward" } else { "reverse" };
        let theirs = &expected["original"][name];
        let mut passes: Vec<EmIteration> = Vec::new();
        let mut watch = |pass: &EmIteration| passes.push(pass.clone());
        let (_, ours) = train_direction(&bitext, direction, &config, &mut watch).unwrap();
        // It prints six digits.
        for (ours, theirs) in passes.iter().zip(numbers(&theirs["log_likelihoods"])) {
            assert!(is_near(ours.log_likelihood, theirs, 1e-5), "{ours:?} {theirs}");
        }
        for (ours, theirs) in passes[2..].iter().zip(numbers(&theirs["tensions"])) {
            assert!(is_near(ours.tension, theirs, 1e-5), "{ours:?} {theirs}");
        }
        for (sentence, theirs) in theirs["links"].as_array().unwrap().iter().enumerate() {
            let theirs = WordLinks::parse(theirs.as_str().unwrap()).unwrap();
            assert_eq!(ours.links(&bitext, sentence), theirs, "{name} sentence {sentence}");
        }
    }
}
