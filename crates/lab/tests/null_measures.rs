//! Measures in laboratories in which there is nothing to measure: what they give there must pass for nothing. The numbers are
//! computed by the measures themselves, and judged as a study's are.

use arrays::{Matrix, Stack};
use geometry::language_id::{LanguageIdConfig, language_id};
use lab::record::Record;
use lab::report::verdicts;
use shift::bleu::References;
use text::{RandomStream, RandomStreams};

const SEEDS: u64 = 4;
const DRAWS: u64 = 200;
/// Sentences of each language whose vectors are probed.
const ROWS: usize = 3000;
/// Of 200 draws, 17 or fewer have a verdict of 5 % error with probability .99.
const MOST: usize = 17;

fn record(study: &str, seed: u64, measure: &str, factors: &str, value: f64) -> Record {
    Record::written(study, seed, measure, factors, value)
}

/// Whether a t test over the seeds puts their mean above 0, at 5 %.
fn is_above(values: &[f64]) -> bool {
    let mean = values.iter().sum::<f64>() / SEEDS as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares / (SEEDS * (SEEDS - 1)) as f64).sqrt();
    // The 95th percentile of Student's t with three degrees of freedom.
    mean > 2.353 * error
}

/// A word of the target language, frequent ones most often (Zipf).
fn word(stream: &mut RandomStream) -> u32 {
    200_f64.powf(stream.unit()) as u32
}

/// The gains of one seed: in BLEU-1, and against permuted references.
struct Gain {
    bleu1: f64,
    permuted: f64,
}

/// A shift that emits words of the target language, frequent ones most, for more tokens the greater its weight; `translated` of them
/// stand in the reference. Unshifted, everything is repeated.
fn shifted(streams: &RandomStreams, seed: u64, translated: f64, records: &mut Vec<Record>) -> Gain {
    let mut stream = streams.stream(seed);
    let mut draw = |from: usize, to: usize| from + (stream.unit() * (to - from) as f64) as usize;
    let lengths: Vec<[usize; 2]> = (0..120)
        .map(|_| {
            let length = draw(4, 16);
            [length + draw(0, 4), length + draw(0, 4)]
        })
        .collect();
    let references: Vec<Vec<u32>> = lengths
        .iter()
        .map(|[_, length]| (0..*length).map(|_| word(&mut stream)).collect())
        .collect();
    let judged = References::new(references.iter().map(Vec::as_slice), seed);
    let words: Vec<u32> = (1..200).collect();
    let frequent = judged.constant(&words, lengths.iter().map(|[length, _]| *length)).score();
    let mut put = |measure: &str, of: &str, value: f64| {
        let factors = format!("direction=qaa-qab kind=mean{of}");
        for (condition, value) in [("default", value), ("untrained", 0.0)] {
            let factors = format!("condition={condition} {factors}");
            records.push(record("language-shift", seed, measure, &factors, value));
        }
    };
    put("bleu1_frequent", "", frequent);
    let mut last = [0.0; 2];
    for (alpha, converted) in [("0", 0.0), ("1", 0.5), ("2", 0.9)] {
        let mut counts = shift::bleu::ControlledBleu::default();
        for (number, [length, _]) in lengths.iter().enumerate() {
            let reference = &references[number];
            let mut token = || match (stream.unit() < converted, stream.unit() < translated) {
                (false, _) => 1000,
                (true, true) => reference[(stream.unit() * reference.len() as f64) as usize],
                (true, false) => word(&mut stream),
            };
            let output: Vec<u32> = (0..*length).map(|_| token()).collect();
            counts.merge(&judged.score(number, &output));
        }
        last = [counts.own.score(), counts.permuted.score()];
        let of = format!(" layer=1 alpha={alpha}");
        put("bleu1", &of, last[0]);
        put("bleu1_permuted", &of, last[1]);
    }
    Gain { bleu1: last[0], permuted: last[1] }
}

/// In how many draws a test over seeds says that BLEU-1 gains, that it gains beyond permuted references, and that the finding
/// holds.
fn found(translated: f64) -> [usize; 3] {
    let mut found = [0; 3];
    for draw in 0..DRAWS {
        let streams = RandomStreams::new(draw, "shifted sentences");
        let mut records = Vec::new();
        let gains: Vec<Gain> =
            (1..=SEEDS).map(|seed| shifted(&streams, seed, translated, &mut records)).collect();
        let raw: Vec<f64> = gains.iter().map(|gain| gain.bleu1).collect();
        let beyond: Vec<f64> = gains.iter().map(|gain| gain.bleu1 - gain.permuted).collect();
        let holds = verdicts(&records, &[]).iter().any(|one| {
            one.finding == "Many converted tokens are translations" && one.verdict == "holds"
        });
        let said = [is_above(&raw), is_above(&beyond), holds];
        found.iter_mut().zip(said).for_each(|(count, said)| *count += usize::from(said));
    }
    found
}

/// Frequent words of the target language are right about some of any sentence's. Nothing is translated, and BLEU-1 rises all the same
/// in every draw: that is no finding.
#[test]
fn frequent_words_are_no_translation() {
    let [raw, beyond, holds] = found(0.0);
    println!(
        "BLEU-1 gains in {raw}, beyond permuted references in {beyond}, the finding holds in {holds} of {DRAWS}"
    );
    assert_eq!(raw, DRAWS as usize);
    assert!(beyond <= MOST && holds <= MOST, "{beyond}, {holds}");
}

/// Where four of ten converted tokens stand in the reference, the finding holds.
#[test]
fn planted_translations_are_found() {
    let [.., holds] = found(0.4);
    println!("the finding holds in {holds} of {DRAWS}");
    assert!(holds >= 160, "{holds}");
}

/// In how many draws the finding holds and fails that centring removes language identity: vectors of two languages whose means
/// differ, and of the second also the spread by a factor.
fn centring(spread: f32) -> [usize; 2] {
    const DRAWS: u64 = 20;
    let mut found = [0; 2];
    for draw in 0..DRAWS {
        let streams = RandomStreams::new(draw, "vectors of two languages");
        let mut records = Vec::new();
        for seed in 1..=SEEDS {
            let mut stream = streams.stream(seed);
            let mut normal = || (0..12).map(|_| stream.unit()).sum::<f64>() as f32 - 6.0;
            let mut vectors = |mean: f32, spread: f32| {
                let values = (0..ROWS * 4).map(|_| mean + spread * normal()).collect();
                Stack::of("vectors", vec![Matrix::new(ROWS, 4, values)])
            };
            let languages = [("qaa", 0.0, 1.0), ("qab", 6.0, spread)]
                .map(|(name, mean, spread)| (name.to_owned(), vectors(mean, spread)));
            let config = LanguageIdConfig { directions: 1, seed };
            let result = language_id(&languages, config, &|_, _| {}).unwrap();
            for one in &result.layers[0].treatments {
                let told = one.nonlinear.unwrap();
                // An untrained encoder has nothing to remove.
                let nothing = (0.5, 0.5, 0.5, 0.5);
                let own = (one.accuracy, one.shuffled, told.accuracy, told.shuffled);
                for (condition, values) in [("default", own), ("untrained", nothing)] {
                    let factors = format!(
                        "condition={condition} pair=qaa-qab layer=1 treatment={}",
                        one.treatment
                    );
                    let mut put = |measure, value| {
                        records.push(record("language-identity", seed, measure, &factors, value));
                    };
                    put("language_id", values.0);
                    put("language_id_shuffled", values.1);
                    put("language_id_nonlinear", values.2);
                    put("language_id_nonlinear_shuffled", values.3);
                }
            }
        }
        let said = verdicts(&records, &[]);
        let is = |verdict: &str| {
            let of = |one: &lab::report::FindingVerdict| {
                one.finding == "Centring removes language identity" && one.verdict == verdict
            };
            usize::from(said.iter().any(of))
        };
        found[0] += is("holds");
        found[1] += is("fails");
    }
    found
}

/// Languages that differ by their mean alone have nothing left after centring; those whose spread is 1 to 3 keep it. Of 20 draws,
/// 4 or fewer have a verdict of 5 % error with probability .99.
#[test]
fn what_centring_leaves_is_found_and_what_it_does_not_is_not() {
    let (same, other) = (centring(1.0), centring(3.0));
    println!("[holds, fails]: equal spread {same:?}, 1 to 3 {other:?}");
    assert!(same[0] >= 16 && same[1] <= 4, "{same:?}");
    assert!(other[1] >= 16 && other[0] <= 4, "{other:?}");
}
