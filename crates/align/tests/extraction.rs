//! Links from similarities, against SimAlign's and awesome-align's extraction restated in numpy by
//! fixtures/extraction.py.

#![allow(missing_docs, reason = "tests")]

use align::{LinkExtraction, SimilarityMatrix};
use serde_json::Value;

const CASES: &str = include_str!("fixtures/extraction.json");

fn vectors(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

#[test]
fn links_and_confidences_are_those_of_simalign_and_awesome_align() {
    let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
    let mut links_beyond_argmax = 0;
    for case in &cases {
        let dim = case["dim"].as_u64().unwrap() as usize;
        let matrix =
            SimilarityMatrix::new(&vectors(&case["source"]), &vectors(&case["target"]), dim);
        for kind in [LinkExtraction::Argmax, LinkExtraction::Itermax, LinkExtraction::Softmax] {
            let ours = matrix.extract(kind, 0.001);
            let theirs = case[kind.name()].as_array().unwrap();
            assert_eq!(ours.len(), theirs.len(), "{kind:?}: {ours:?} {theirs:?}");
            for (ours, theirs) in ours.iter().zip(theirs) {
                let places = [0, 1].map(|side| theirs[side].as_u64().unwrap() as usize);
                assert_eq!([ours.source, ours.target], places, "{kind:?}");
                let confidence = theirs[2].as_f64().unwrap();
                assert!(
                    (f64::from(ours.confidence) - confidence).abs() < 1e-5,
                    "{kind:?}: {ours:?} {confidence}"
                );
            }
        }
        let count = |kind: &str| case[kind].as_array().unwrap().len();
        links_beyond_argmax += count("itermax") - count("argmax");
    }
    assert!(links_beyond_argmax > 3, "the cases tell the two apart");
}
