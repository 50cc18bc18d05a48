//! Measures of similarity: what they are invariant to, their chance level and their intervals.

use arrays::{Matrix, Stack};
use geometry::cka::{Rows, table};
use geometry::search::unwatched;
use geometry::similarity::{
    MeasuredSimilarity, SimilarityConfig, SimilarityMeasure, SimilarityResult, similarity,
};
use tensor::Device;
use text::RandomStreams;

use SimilarityMeasure::{
    Anc, Cka, Mexa, MutualNn, Pwcca, Rsa, StrongAlignment, Svcca, WeakAlignment,
};

/// Two sides of rows that have something in common, and noise of their own.
fn sides(seed: u64, rows: usize, dim: usize, noise: f64) -> [Matrix; 2] {
    let mut stream = RandomStreams::new(seed, "sides").stream(0);
    let mut normal = move || (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0;
    let common: Vec<f64> = (0..rows * dim).map(|_| normal()).collect();
    [0, 1].map(|_| {
        let values = common.iter().map(|x| (x + noise * normal()) as f32).collect();
        Matrix::new(rows, dim, values)
    })
}

fn measured(x: &Matrix, y: &Matrix, subsamples: usize, seed: u64) -> SimilarityResult {
    some(&SimilarityMeasure::ALL, x, y, subsamples, seed)
}

fn some(
    measures: &[SimilarityMeasure],
    x: &Matrix,
    y: &Matrix,
    subsamples: usize,
    seed: u64,
) -> SimilarityResult {
    let [x, y] = [("x", x), ("y", y)].map(|(name, side)| Stack::of(name, vec![side.clone()]));
    let measures = measures.iter().copied().collect();
    let config = SimilarityConfig { measures, subsamples, seed };
    similarity(&x, &y, None, &config, &Device::cpu(1).unwrap(), &unwatched).unwrap()
}

fn of(result: &SimilarityResult, measure: SimilarityMeasure) -> MeasuredSimilarity {
    result.layers[0].measures[&measure]
}

/// Every measure is 1 for a side with itself, and its chance level is far from that; what is compared by
/// coordinates does not survive a reversal of the columns, the rest does.
#[test]
fn invariances_and_chance() {
    let [x, _] = sides(1, 400, 6, 0.0);
    let itself = measured(&x, &x, 0, 1);
    for measure in SimilarityMeasure::ALL {
        let found = of(&itself, measure);
        assert!((found.value - 1.0).abs() < 1e-4, "{measure:?}: {found:?}");
        assert!(found.chance < 0.35, "{measure:?}: {found:?}");
        assert!(found.interval.is_none());
    }
    assert!(of(&itself, Anc).chance.abs() < 0.05 && of(&itself, Rsa).chance.abs() < 0.05);
    // One in 400, and ten of 399.
    assert!(of(&itself, Mexa).chance < 0.02);
    assert!((of(&itself, MutualNn).chance - 10.0 / 399.0).abs() < 0.01);
    let reversed = x.iter().flat_map(|row| row.iter().rev().map(|x| 2.0 * x - 7.0)).collect();
    let reversed = Matrix::new(400, 6, reversed);
    let turned = measured(&x, &reversed, 0, 1);
    for measure in [Cka, Svcca, Pwcca] {
        assert!((of(&turned, measure).value - 1.0).abs() < 1e-4, "{measure:?}");
    }
    for measure in [Anc, Mexa, WeakAlignment, StrongAlignment] {
        assert!(of(&turned, measure).value < 0.3, "{measure:?}: {:?}", of(&turned, measure));
    }
}

#[test]
fn cka_is_that_of_the_table() {
    let [x, y] = sides(2, 6000, 9, 1.0);
    let found = of(&measured(&x, &y, 20, 1), Cka).value;
    let (x, y) = (Stack::of("x", vec![x]), Stack::of("y", vec![y]));
    let cpu = Device::cpu(1).unwrap();
    let table = table(&x, &y, Rows::default(), &cpu, &unwatched).unwrap();
    assert!((found - table.cka[0][0]).abs() < 1e-6, "{found} {:?}", table.cka);
}

/// Of 40 samples of 400 rows, the intervals of most hold the value of many rows.
#[test]
fn intervals_hold_what_larger_samples_give() {
    let streamed = [Cka, Svcca, Pwcca, Anc, Rsa];
    let [x, y] = sides(3, 60_000, 4, 1.0);
    let truth = some(&streamed, &x, &y, 0, 1);
    let mut covered = std::collections::BTreeMap::new();
    for seed in 0..40 {
        let [x, y] = sides(100 + seed, 400, 4, 1.0);
        let found = some(&streamed, &x, &y, 60, seed);
        for measure in streamed {
            let interval = of(&found, measure).interval.unwrap();
            let value = of(&truth, measure).value;
            assert!(interval.low < interval.high);
            *covered.entry(measure).or_insert(0) +=
                usize::from(interval.low < value && value < interval.high);
        }
    }
    for (measure, covered) in covered {
        assert!(covered >= 33, "{measure:?}: {covered} of 40 intervals of 95 % hold the truth");
    }
}

/// A measure of neighbours is a share of rows, and its interval about as wide as that of a share.
#[test]
fn intervals_of_shares() {
    let [x, y] = sides(6, 500, 6, 0.4);
    let found = some(&[Mexa, WeakAlignment, StrongAlignment], &x, &y, 100, 1);
    for measure in [Mexa, WeakAlignment, StrongAlignment] {
        let MeasuredSimilarity { value, interval, .. } = of(&found, measure);
        let interval = interval.unwrap();
        let binomial = 2.0 * 1.96 * (value * (1.0 - value) / 500.0).sqrt();
        let ratio = (interval.high - interval.low) / binomial;
        assert!(value > 0.05 && value < 0.95, "{measure:?}: {value}");
        assert!(ratio > 0.5 && ratio < 1.4, "{measure:?}: {value} {interval:?}, {ratio}");
    }
}

/// Where no pair is found, or every one, that is no certainty: against `proportion_confint(0, 60, method="wilson")`.
#[test]
fn intervals_of_shares_of_nothing_and_of_all() {
    let shares = [Mexa, WeakAlignment, StrongAlignment, MutualNn];
    // Rows of a cycle on which everybody's nearest is the next one's translation: none finds its own.
    let angle = |turn: f64| [turn.cos() as f32, turn.sin() as f32];
    let step = std::f64::consts::TAU / 60.0;
    let at = |shift: f64| (0..60).flat_map(|row| angle((f64::from(row) + shift) * step)).collect();
    let [x, y] = [0.0, 1.1].map(|shift| Matrix::new(60, 2, at(shift)));
    let none = some(&shares, &x, &y, 40, 1);
    let all = some(&shares, &x, &x, 40, 1);
    for measure in [Mexa, WeakAlignment, StrongAlignment] {
        let MeasuredSimilarity { value, interval, .. } = of(&none, measure);
        let interval = interval.unwrap();
        assert_eq!((value, interval.low), (0.0, 0.0), "{measure:?}");
        assert!((interval.high - 0.060_172).abs() < 1e-5, "{measure:?}: {interval:?}");
    }
    for measure in shares {
        let MeasuredSimilarity { value, interval, .. } = of(&all, measure);
        let interval = interval.unwrap();
        assert_eq!((value, interval.high), (1.0, 1.0), "{measure:?}");
        assert!((interval.low - 0.939_828).abs() < 1e-5, "{measure:?}: {interval:?}");
    }
}

#[test]
fn the_same_on_any_number_of_threads() {
    let [x, y] = sides(4, 1500, 7, 0.7);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| measured(&x, &y, 20, 3))
    };
    let one = run(1);
    assert_eq!(one, run(3));
    // Pairs are drawn beyond a thousand rows, by the seed.
    assert_ne!(of(&one, Rsa).value, of(&measured(&x, &y, 0, 4), Rsa).value);
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let refused = |x: Matrix, y: Vec<Matrix>, measures: &[SimilarityMeasure]| {
        let measures = measures.iter().copied().collect();
        let config = SimilarityConfig { measures, subsamples: 0, seed: 1 };
        let (x, y) = (Stack::of("x", vec![x]), Stack::of("y", y));
        let found = similarity(&x, &y, None, &config, &Device::cpu(1).unwrap(), &unwatched);
        found.unwrap_err().to_string()
    };
    let [x, _] = sides(5, 50, 4, 0.0);
    let [other, _] = sides(5, 50, 3, 0.0);
    let message = refused(x.clone(), vec![other], &[Cka, Anc]);
    assert!(message.contains("`anc` compares coordinates"), "{message}");
    let message = refused(x.clone(), vec![x.clone(), x.clone()], &[Cka]);
    assert!(message.contains("has 2 layers, x has 1"), "{message}");
    let constant = Matrix::new(50, 4, vec![1.0; 200]);
    for measure in [Cka, Rsa] {
        let message = refused(x.clone(), vec![constant.clone()], &[measure]);
        assert!(message.contains("y: layer 0: all its rows are the same"), "{message}");
    }
}
