//! Batches against NumPy, the same bits on any number of threads, and words that are found.

use serde::Deserialize;

use super::kernel::ThreadTables;
use super::team::ColumnTeam;
use super::windows::{TRUE, WindowPlan};
use super::*;
use crate::columns::{BatchDots, Exchange, units};

#[derive(Deserialize)]
struct ReferenceCase {
    name: String,
    dim: usize,
    windows: Vec<(Vec<u32>, Vec<TargetRow>)>,
    rate: f32,
    start: Both,
    end: Both,
    loss: f64,
}

/// A row, and 1 where it is true.
type TargetRow = (u32, u32);

#[derive(Deserialize)]
struct Both {
    input: Vec<f32>,
    output: Vec<f32>,
}

fn plan(case: &ReferenceCase) -> WindowPlan {
    let mut plan = WindowPlan::default();
    for (inputs, targets) in &case.windows {
        plan.inputs.extend(inputs);
        plan.targets.extend(targets.iter().map(|&(row, truth)| row | (truth * TRUE)));
        plan.windows.push([plan.inputs.len() as u32, plan.targets.len() as u32]);
    }
    plan.batches.push((plan.windows.len() as u32, case.rate));
    plan
}

fn near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 2e-6, "{what}: value {at} is {a}, not {b}");
    }
}

#[test]
fn a_batch_does_what_numpy_says() {
    let cases: Vec<ReferenceCase> =
        serde_json::from_str(include_str!("../../tests/fixtures/word2vec.json")).unwrap();
    for case in cases {
        let plan = plan(&case);
        let (input, output) = (case.start.input.clone(), case.start.output.clone());
        let mut team = ColumnTeam::new(Word2VecTables { dim: case.dim, input, output }, 1);
        let exchange = Exchange::new(1, units(case.dim), 100);
        let tables: &mut ThreadTables = team.first();
        let loss =
            team::learn(pulp::Arch::new(), tables, &plan, &exchange, &mut BatchDots::default());
        assert!((loss - case.loss).abs() < 1e-5 * case.loss, "{}: {loss}", case.name);
        let Word2VecTables { input, output, .. } = team.model();
        near(&input, &case.end.input, &case.name);
        near(&output, &case.end.output, &case.name);
    }
}

/// Two groups of words that keep to themselves.
fn two_circles() -> IndexedSentences {
    let chance = RandomStreams::new(9, "test");
    let sentences: Vec<Vec<String>> = (0..3000)
        .map(|number| {
            let mut random = SplitMix64::new(&chance, number);
            let circle = ["a", "b"][number as usize % 2];
            (0..8).map(|_| format!("{circle}{}", random.below(8))).collect()
        })
        .collect();
    IndexedSentences::of_words(sentences.iter().map(|words| words.iter().map(String::as_str)), 1)
        .unwrap()
}

/// How often the word most like a word is of its own circle.
fn kept_together(vectors: &WordVectors) -> f64 {
    let cosine = |a: &[f32], b: &[f32]| {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
    };
    let nearest = |word: usize| {
        let others = (0..vectors.len()).filter(|&other| other != word);
        let like = |other: usize| cosine(vectors.row(word), vectors.row(other));
        others.max_by(|&a, &b| like(a).total_cmp(&like(b))).unwrap()
    };
    let circle = |word: usize| &vectors.word(word)[..1];
    let kept = (0..vectors.len()).filter(|&word| circle(nearest(word)) == circle(word));
    kept.count() as f64 / vectors.len() as f64
}

fn trained(config: &Word2VecConfig) -> TrainedVectors {
    train(&two_circles(), config, None, &mut ()).unwrap().unwrap()
}

#[test]
fn every_kind_learns_who_goes_with_whom() {
    let plain =
        Word2VecConfig { subsample: Some(0.0), epochs: 3, threads: 2, ..Word2VecConfig::default() };
    let ngrams = NGrams { shortest: 1, longest: 2, buckets: 1000 };
    for config in [
        plain.clone(),
        Word2VecConfig { architecture: Architecture::Cbow, ..plain.clone() },
        Word2VecConfig { ngrams: Some(ngrams), dim: 20, ..plain },
    ] {
        let TrainedVectors { vectors, losses } = trained(&config);
        assert_eq!(kept_together(&vectors), 1.0, "{config:?}: {losses:?}");
        // Guessing gives (1 + negative) ln 2.
        assert!(losses[2] < losses[0] && losses[0] <= 6.0 * 2.0f64.ln(), "{losses:?}");
    }
}

#[test]
fn words_that_the_text_lacks_are_made_of_their_parts() {
    let ngrams = NGrams { shortest: 1, longest: 2, buckets: 1000 };
    let also = ["a9", "b9", "a1", "zz", "a9"].map(str::to_owned).to_vec();
    let plain =
        Word2VecConfig { subsample: Some(0.0), epochs: 3, dim: 20, ..Word2VecConfig::default() };
    let config = Word2VecConfig { ngrams: Some(ngrams), also, ..plain };
    let vectors = trained(&config).vectors;
    // `a1` was there, `zz` has nothing in common with anything.
    assert_eq!(vectors.words().skip(16).collect::<Vec<_>>(), ["a9", "b9"]);
    assert_eq!(kept_together(&vectors), 1.0);
    let refused = Word2VecConfig { ngrams: None, ..config };
    let refused = train(&two_circles(), &refused, None, &mut ()).unwrap_err().to_string();
    assert!(refused.contains("set ngrams, such as 3-6"), "{refused}");
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() {
    for dim in [10, 48, 100, 300] {
        let config = Word2VecConfig { dim, epochs: 1, ..Word2VecConfig::default() };
        let on = |threads| trained(&Word2VecConfig { threads, ..config.clone() });
        let one = on(1);
        for threads in [2, 3, 6] {
            let many = on(threads);
            assert_eq!(many.vectors, one.vectors, "{threads} threads, {dim} columns");
            assert_eq!(many.losses, one.losses);
        }
        assert_ne!(trained(&Word2VecConfig { seed: 2, ..config }).vectors, one.vectors);
    }
}

/// Asks to stop when an epoch is done.
struct StopAfter(usize);

impl TrainingObserver for StopAfter {
    fn stop(&self) -> bool {
        self.0 == 0
    }
    fn epoch(&mut self, _: &EpochLoss) {
        self.0 -= 1;
    }
}

#[test]
fn a_stopped_run_goes_on_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let file = StateFile { path: place.path().join("state") };
    let config =
        Word2VecConfig { epochs: 4, ngrams: Some(NGrams::default()), ..Word2VecConfig::default() };
    let sentences = two_circles();
    assert!(train(&sentences, &config, Some(&file), &mut StopAfter(2)).unwrap().is_none());
    assert!(file.path.exists());
    let other = Word2VecConfig { window: 4, ..config.clone() };
    let refused = train(&sentences, &other, Some(&file), &mut ()).unwrap_err().to_string();
    assert!(refused.contains("a run with another configuration"), "{refused}");
    let other = Word2VecConfig { threads: 2, ..config.clone() };
    let resumed = train(&sentences, &other, Some(&file), &mut ()).unwrap().unwrap();
    let unbroken = train(&sentences, &config, None, &mut ()).unwrap().unwrap();
    assert_eq!(resumed.vectors, unbroken.vectors);
    assert_eq!(resumed.losses, unbroken.losses);
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let refused = |change: fn(&mut Word2VecConfig)| {
        let mut config = Word2VecConfig::default();
        change(&mut config);
        train(&two_circles(), &config, None, &mut ()).unwrap_err().to_string()
    };
    assert!(refused(|c| c.window = 0).contains("window is a number"));
    assert!(refused(|c| c.dim = 0).contains("dim is a number"));
    assert!(refused(|c| c.negative = 0).contains("negative is a number"));
    assert!(refused(|c| c.epochs = 0).contains("epochs is at least 1"));
    assert!(refused(|c| c.lr = Some(f32::NAN)).contains("the learning rate"));
    assert!(refused(|c| c.subsample = Some(-1.0)).contains("subsample is"));
    assert!(refused(|c| c.lr = Some(1e30)).contains("not finite"));
}
