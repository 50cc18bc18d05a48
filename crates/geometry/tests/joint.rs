//! Maps of many languages into one space, against numpy (fixtures/joint.py).

#![allow(missing_docs, reason = "tests")]

use arrays::Matrix;
use geometry::Map;
use geometry::joint::{LanguagePairs, generalized_procrustes, onto_hub};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn fixture() -> (Value, Vec<Matrix>, Vec<LanguagePairs>) {
    let whole: Value = serde_json::from_str(include_str!("fixtures/joint.json")).unwrap();
    let dim = whole["dim"].as_u64().unwrap() as usize;
    let space = |value: &Value| {
        let values: Vec<f32> = numbers(value).into_iter().map(|x| x as f32).collect();
        Matrix::new(values.len() / dim, dim, values)
    };
    let spaces = whole["spaces"].as_array().unwrap().iter().map(space).collect();
    let dictionary = |value: &Value| {
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let row = |pair: &Value| (number(&pair[0]) as u32, number(&pair[1]) as u32);
        let rows = value[1].as_array().unwrap().iter().map(row).collect();
        LanguagePairs { languages: [number(&value[0][0]), number(&value[0][1])], rows }
    };
    let dictionaries = whole["dictionaries"].as_array().unwrap().iter().map(dictionary).collect();
    (whole, spaces, dictionaries)
}

fn close(maps: &[Map], theirs: &Value) {
    for (number, (map, theirs)) in maps.iter().zip(theirs.as_array().unwrap()).enumerate() {
        for (ours, theirs) in map.values().iter().zip(numbers(theirs)) {
            assert!((ours - theirs).abs() < 1e-4, "language {number}: {ours} {theirs}");
        }
        assert!(map.distortion() < 1e-9);
    }
}

#[test]
fn maps_and_losses_are_those_of_numpy() {
    let (whole, spaces, dictionaries) = fixture();
    let name = |language: usize| language.to_string();
    let hub = onto_hub(&spaces, &dictionaries, 0, &name).unwrap();
    close(&hub.maps, &whole["onto_hub"]);
    let mut rounds = 0;
    let joint = generalized_procrustes(&spaces, &dictionaries, 0, &name, |round, _| rounds = round)
        .unwrap();
    close(&joint.maps, &whole["joint"]);
    let theirs = numbers(&whole["losses"]);
    assert_eq!((joint.losses.len(), rounds), (theirs.len(), theirs.len() - 1));
    for (ours, theirs) in joint.losses.iter().zip(&theirs) {
        assert!((ours - theirs).abs() < 1e-4 * theirs, "{ours} {theirs}");
    }
    assert!(
        joint.losses.last().unwrap() < &(0.99 * hub.losses[0]),
        "learning together is worth something"
    );
}

#[test]
fn a_language_that_nothing_joins_to_the_hub_is_named() {
    let (_, spaces, dictionaries) = fixture();
    let some: Vec<LanguagePairs> =
        dictionaries.into_iter().filter(|dictionary| !dictionary.languages.contains(&3)).collect();
    let error = onto_hub(&spaces, &some, 0, &|language| format!("`l{language}`")).unwrap_err();
    assert!(error.to_string().contains("joins `l3` to `l0`"), "{error}");
}
