//! What learning promises: likelihoods that do not fall, the same bits on any number of threads,
//! and models that link as they did when they were saved.

#![allow(missing_docs, reason = "tests")]

use std::path::Path;

use align::{
    AlignmentConfig, AlignmentDirection, AlignmentModel, Bitext, EmIteration, Symmetrization,
    symmetrize, train, train_direction,
};

fn text() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bitext.txt");
    std::fs::read_to_string(path).unwrap()
}

fn bitext() -> Bitext {
    Bitext::new(text().lines().map(|line| line.split_once(" ||| ").unwrap()))
}

#[test]
fn the_likelihood_never_falls() {
    let bitext = bitext();
    for (tension, learn_tension) in [(3.0, true), (0.5, true), (3.0, false), (0.0, false)] {
        let config = AlignmentConfig {
            iterations: 30,
            prior: None,
            tension,
            learn_tension,
            ..AlignmentConfig::default()
        };
        for direction in [AlignmentDirection::Forward, AlignmentDirection::Reverse] {
            let mut last = f64::NEG_INFINITY;
            let mut watch = |pass: &EmIteration| {
                // Counts are kept in single precision, so near the end the last digits waver.
                let slack = 1e-8 * pass.log_likelihood.abs();
                assert!(pass.log_likelihood >= last - slack, "{direction:?} {pass:?} {last}");
                last = pass.log_likelihood;
            };
            train_direction(&bitext, direction, &config, &mut watch).unwrap();
        }
    }
}

#[test]
fn the_same_bits_on_any_number_of_threads() {
    let bitext = bitext();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut passes = Vec::new();
            let mut watch = |_, pass: &EmIteration| {
                passes.push([pass.log_likelihood, pass.tension, pass.null].map(f64::to_bits));
            };
            let model = train(&bitext, &AlignmentConfig::default(), &mut watch).unwrap();
            let file = tempfile::NamedTempFile::new().unwrap();
            model.save(file.path()).unwrap();
            (passes, std::fs::read(file.path()).unwrap())
        })
    };
    let one = run(1);
    for threads in [2, 3, 8] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

#[test]
fn a_saved_model_links_as_it_did() {
    let bitext = bitext();
    for config in [
        AlignmentConfig::default(),
        AlignmentConfig { prior: None, ..AlignmentConfig::default() },
        AlignmentConfig { iterations: 1, ..AlignmentConfig::default() },
    ] {
        let model = train(&bitext, &config, &mut |_, _| {}).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        model.save(&path).unwrap();
        let read = AlignmentModel::load(&path).unwrap();
        let [forward, reverse] = [AlignmentDirection::Forward, AlignmentDirection::Reverse]
            .map(|direction| train_direction(&bitext, direction, &config, &mut |_| {}).unwrap().1);
        let again = [AlignmentDirection::Forward, AlignmentDirection::Reverse]
            .map(|way| read.link(&bitext, way));
        for (sentence, line) in text().lines().enumerate() {
            let learned = [&forward, &reverse].map(|way| way.links(&bitext, sentence));
            let (source, target) = line.split_once(" ||| ").unwrap();
            let explained = read.explain_text(source, target);
            assert_eq!(learned, [&again[0], &again[1]].map(|way| way.links(&bitext, sentence)));
            assert_eq!(learned, [explained.forward.clone(), explained.reverse.clone()]);
            let symmetry = Symmetrization::default();
            let both = symmetrize(&learned[0], &learned[1], symmetry);
            assert_eq!(explained.links(symmetry), both);
        }
    }
}

#[test]
fn a_damaged_model_is_refused() {
    let model = train(&bitext(), &AlignmentConfig::default(), &mut |_, _| {}).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    model.save(&path).unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = AlignmentModel::load(&path).unwrap_err().to_string();
        assert!(error.contains("model"), "{error}");
    };
    refused(b"");
    refused(b"something else altogether, and long enough to be a header");
    for cut in [30, 300, whole.len() / 2, whole.len() - 1] {
        refused(&whole[..cut]);
    }
    for at in (0..whole.len()).step_by(997) {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        refused(&changed);
    }
    std::fs::write(&path, &whole).unwrap();
    AlignmentModel::load(&path).unwrap();
}

#[test]
fn unknown_words_and_empty_sides_are_no_trouble() {
    let bitext = Bitext::new([("a b", "x y"), ("", "x"), ("a", ""), ("", ""), ("b", "y")]);
    let model = train(&bitext, &AlignmentConfig::default(), &mut |_, _| {}).unwrap();
    let forward = model.link(&bitext, AlignmentDirection::Forward);
    assert_eq!(forward.links(&bitext, 0).to_string(), "0-0 1-1");
    assert!(forward.links(&bitext, 1).is_empty() && forward.links(&bitext, 3).is_empty());
    let explained = model.explain_text("a new b", "x y other");
    assert!(explained.log_probabilities.iter().all(|log| log.is_finite()));
    assert!(explained.forward.contains((0, 0)), "{explained:?}");
    assert!(model.explain_text("", "x").forward.is_empty());
}

#[test]
fn settings_without_sense_are_refused() {
    let usual = AlignmentConfig::default;
    for config in [
        AlignmentConfig { iterations: 0, ..usual() },
        AlignmentConfig { p_null: 1.0, ..usual() },
        AlignmentConfig { p_null: f64::NAN, ..usual() },
        AlignmentConfig { tension: -1.0, ..usual() },
        AlignmentConfig { tension: 0.0, ..usual() },
        AlignmentConfig { prior: Some(0.0), ..usual() },
    ] {
        config.check().unwrap_err();
        assert!(train(&bitext(), &config, &mut |_, _| {}).is_err());
    }
    AlignmentConfig { tension: 0.0, learn_tension: false, ..usual() }.check().unwrap();
}
