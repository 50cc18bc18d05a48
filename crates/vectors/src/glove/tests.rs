//! Batches against NumPy, the same bits on any number of threads, and words that are found.

use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct ReferenceCase {
    name: String,
    dim: usize,
    records: Vec<(u32, u32, f64)>,
    compat: bool,
    start: RecordParts,
    end: RecordParts,
    squares: RecordParts,
    loss: f64,
}

#[derive(Deserialize)]
struct RecordParts {
    word: Vec<f32>,
    context: Vec<f32>,
    word_bias: Vec<f32>,
    context_bias: Vec<f32>,
}

fn near(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() < 5e-6 * b.abs().max(1.0), "{what}: value {at} is {a}, not {b}");
    }
}

#[test]
fn a_batch_does_what_numpy_says() {
    let cases: Vec<ReferenceCase> =
        serde_json::from_str(include_str!("../../tests/fixtures/glove.json")).unwrap();
    for ReferenceCase { name, dim, records, compat, start, end, squares, loss } in cases {
        let config = GloveConfig { dim, compat, threads: 1, ..GloveConfig::default() };
        let biases = start.word_bias.iter().zip(&start.context_bias);
        let model = GloveTables {
            dim,
            word_squares: vec![1.0; start.word.len()],
            context_squares: vec![1.0; start.word.len()],
            biases: biases.map(|(&word, &context)| [word, context, 1.0, 1.0]).collect(),
            word: start.word,
            context: start.context,
        };
        let records: Vec<_> = records.iter().map(|&(i, j, x)| config.record(i, j, x)).collect();
        let mut team = team::GloveTeam::new(model, &config, 100);
        let found = team::learn_once(&mut team, &records);
        assert!((found - loss).abs() < 1e-5 * loss, "{name}: {found}, not {loss}");
        let model = team.model();
        near(&model.word, &end.word, &name);
        near(&model.context, &end.context, &name);
        near(&model.word_squares, &squares.word, &name);
        near(&model.context_squares, &squares.context, &name);
        let bias = |at: usize| model.biases.iter().map(|bias| bias[at]).collect::<Vec<_>>();
        near(&bias(0), &end.word_bias, &name);
        near(&bias(1), &end.context_bias, &name);
        near(&bias(2), &squares.word_bias, &name);
        near(&bias(3), &squares.context_bias, &name);
    }
}

/// Words in circles of four; a sentence keeps to one, but for every fifth word.
fn circles() -> IndexedSentences {
    let chance = RandomStreams::new(9, "test");
    let sentences: Vec<Vec<String>> = (0..2000)
        .map(|number| {
            let mut random = SplitMix64::new(&chance, number);
            let circle = random.below(10);
            let word = |_| {
                let circle = if random.below(5) == 0 { random.below(10) } else { circle };
                format!("{circle}.{}", random.below(4))
            };
            (0..6).map(word).collect()
        })
        .collect();
    IndexedSentences::of_words(sentences.iter().map(|words| words.iter().map(String::as_str)), 1)
        .unwrap()
}

fn trained(config: &GloveConfig) -> TrainedVectors {
    train(&circles(), config, None, &mut ()).unwrap().unwrap()
}

fn quick() -> GloveConfig {
    GloveConfig {
        dim: 20,
        epochs: 15,
        window: 5,
        x_max: 10.0,
        threads: 2,
        ..GloveConfig::default()
    }
}

#[test]
fn words_that_go_together_come_together() {
    for compat in [false, true] {
        let TrainedVectors { vectors, losses } = trained(&GloveConfig { compat, ..quick() });
        assert_eq!(vectors.len(), 40 + usize::from(compat));
        assert!(losses.last().unwrap() < &(losses[0] / 2.0), "{losses:?}");
        let like = |a: &str, b: &str| {
            let (a, b) = (vectors.get(a).unwrap(), vectors.get(b).unwrap());
            a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>()
        };
        for circle in 0..10 {
            let other = format!("{}.0", (circle + 1) % 10);
            let word = format!("{circle}.0");
            assert!(like(&word, &format!("{circle}.1")) > like(&word, &other));
        }
    }
}

#[test]
fn the_bits_are_the_same_on_any_number_of_threads() {
    for dim in [10, 100] {
        let config = GloveConfig { dim, epochs: 3, ..quick() };
        let on = |threads, memory| trained(&GloveConfig { threads, memory, ..config.clone() });
        let one = on(1, 1 << 30);
        for (threads, memory) in [(2, 1 << 30), (3, 1)] {
            let many = on(threads, memory);
            assert_eq!((many.vectors, many.losses), (one.vectors.clone(), one.losses.clone()));
        }
    }
}

/// Asks to stop when so many epochs are done.
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
    let config = GloveConfig { epochs: 5, ..quick() };
    assert!(train(&circles(), &config, Some(&file), &mut StopAfter(2)).unwrap().is_none());
    let resumed = train(&circles(), &config, Some(&file), &mut ()).unwrap().unwrap();
    let unbroken = trained(&config);
    assert_eq!((resumed.vectors, resumed.losses), (unbroken.vectors, unbroken.losses));
}

#[test]
fn what_cannot_be_trained_is_refused() {
    let refused = |change: fn(&mut GloveConfig)| {
        let mut config = quick();
        change(&mut config);
        train(&circles(), &config, None, &mut ()).unwrap_err().to_string()
    };
    assert!(refused(|c| c.window = 0).contains("window is a number"));
    assert!(refused(|c| c.dim = 0).contains("dim is a number"));
    assert!(refused(|c| c.epochs = 0).contains("epochs is at least 1"));
    assert!(refused(|c| c.lr = 0.0).contains("the learning rate"));
    assert!(refused(|c| c.x_max = 0.0).contains("x_max is"));
    let alone = IndexedSentences::of_words(["a", "b"].map(|word| [word]), 1).unwrap();
    let message = train(&alone, &quick(), None, &mut ()).unwrap_err().to_string();
    assert!(message.contains("every sentence has one word"), "{message}");
}
