//! Held against NumPy and SciPy; `fixtures/make.py` says how their side was computed.

use std::path::{Path, PathBuf};

use arrays::Stack;
use geometry::cka::{Rows, intervals, table};
use geometry::lexicon::LookupAccuracy;
use geometry::search::{Measure, Scores, unwatched};
use geometry::similarity::{SimilarityConfig, SimilarityMeasure, similarity};
use geometry::{Map, Matrix, Step, normalize};
use serde_json::Value;
use tensor::Device;

fn cpu() -> Device {
    Device::cpu(1).unwrap()
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn fixture(name: &str) -> Value {
    let text = std::fs::read_to_string(fixtures().join(name).with_extension("json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn whole(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|x| x.as_u64().unwrap() as usize).collect()
}

fn matrix(value: &Value, cols: usize) -> Matrix {
    let values: Vec<f32> = numbers(value).iter().map(|&x| x as f32).collect();
    Matrix::new(values.len() / cols, cols, values)
}

fn close(ours: &[f64], theirs: &[f64], tolerance: f64) {
    assert_eq!(ours.len(), theirs.len());
    for (at, (a, b)) in ours.iter().zip(theirs).enumerate() {
        assert!((a - b).abs() < tolerance, "{at}: {a} is not {b}");
    }
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&x| f64::from(x)).collect()
}

#[test]
fn procrustes_and_iterative_normalisation() {
    let fixture = fixture("procrustes");
    let (mut x, mut y) = (matrix(&fixture["x"], 9), matrix(&fixture["y"], 9));
    close(Map::procrustes(&x, &y).values(), &numbers(&fixture["w"]), 1e-6);
    normalize(&mut x, &[Step::Iterative]);
    normalize(&mut y, &[Step::Iterative]);
    close(&wide(x.values()), &numbers(&fixture["iterative"]), 1e-6);
    close(Map::procrustes(&x, &y).values(), &numbers(&fixture["w_iterative"]), 1e-6);
}

#[test]
fn csls_scores_and_ranks() {
    let fixture = fixture("csls");
    let (x, y) = (matrix(&fixture["x"], 12), matrix(&fixture["y"], 12));
    let cosines = Scores::new(x.clone(), y.clone(), Measure::Cosine, &cpu(), &unwatched);
    let (forward, backward) = cosines.both_ways(10, &unwatched);
    close(&wide(&forward.means()), &numbers(&fixture["of_x"]), 1e-6);
    close(&wide(&backward.means()), &numbers(&fixture["of_y"]), 1e-6);

    let scores = Scores::new(x.clone(), y.clone(), Measure::Csls { k: 10 }, &cpu(), &unwatched);
    let (forward, backward) = scores.both_ways(1, &unwatched);
    let best = |neighbours: &geometry::search::Neighbours| -> Vec<usize> {
        (0..neighbours.rows()).map(|row| neighbours.ids(row)[0] as usize).collect()
    };
    assert_eq!(best(&forward), whole(&fixture["best"]));
    assert_eq!(best(&backward), whole(&fixture["best_source"]));
    assert_eq!(best(&scores.nearest(3)), whole(&fixture["best"]));
    let scored: Vec<f64> = (0..x.rows()).map(|row| f64::from(forward.scores(row)[0])).collect();
    close(&scored, &numbers(&fixture["best_score"]), 1e-6);

    let query = |query: &Value| {
        let right = whole(&query[1]).iter().map(|&row| row as u32).collect();
        (query[0].as_u64().unwrap() as u32, right)
    };
    let queries: Vec<_> = fixture["queries"].as_array().unwrap().iter().map(query).collect();
    let ranks = scores.ranks(&queries);
    assert_eq!(ranks, whole(&fixture["ranks"]));
    assert_eq!(cosines.ranks(&queries), whole(&fixture["ranks_nn"]));
    let found = LookupAccuracy::of(&ranks);
    let ours = [found.p_at_1, found.p_at_5, found.p_at_10, found.mrr];
    close(&ours, &["p1", "p5", "p10", "mrr"].map(|key| fixture[key].as_f64().unwrap()), 1e-8);

    let ratio = Scores::new(x, y, Measure::Ratio { k: 4 }, &cpu(), &unwatched).nearest(1);
    assert_eq!(best(&ratio), whole(&fixture["ratio_best"]));
    let scored: Vec<f64> = (0..ratio.rows()).map(|row| f64::from(ratio.scores(row)[0])).collect();
    close(&scored, &numbers(&fixture["ratio_score"]), 1e-5);
}

#[test]
fn csls_to_the_bit_with_ties_everywhere() {
    let fixture = fixture("exact");
    let (x, y) = (matrix(&fixture["x"], 8), matrix(&fixture["y"], 8));
    let scores = Scores::new(x, y, Measure::Csls { k: 10 }, &cpu(), &unwatched);
    let (forward, backward) = scores.both_ways(5, &unwatched);
    let theirs = numbers(&fixture["best_score"]);
    for (row, best) in fixture["best"].as_array().unwrap().iter().enumerate() {
        let ids: Vec<usize> = forward.ids(row).iter().map(|&id| id as usize).collect();
        assert_eq!(ids, whole(best), "row {row}");
        let theirs: Vec<f32> = theirs[5 * row..5 * row + 5].iter().map(|&x| x as f32).collect();
        assert_eq!(forward.scores(row), theirs, "row {row}");
    }
    let best: Vec<usize> = (0..600).map(|row| backward.ids(row)[0] as usize).collect();
    assert_eq!(best, whole(&fixture["best_source"]));
    // Some sources alone, in another order, find the same.
    let some: Vec<u32> = (0..70).rev().step_by(2).collect();
    let found = scores.nearest_of(&some, 5);
    for (at, &row) in some.iter().enumerate() {
        let row = row as usize;
        assert_eq!((found.ids(at), found.scores(at)), (forward.ids(row), forward.scores(row)));
    }
    // Mutual nearest neighbours are those whose best, by NumPy, is each other.
    let best_target: Vec<usize> =
        fixture["best"].as_array().unwrap().iter().map(|b| whole(b)[0]).collect();
    let expected: Vec<(u32, u32, f32)> = (0..70)
        .filter(|&row| best[best_target[row]] == row)
        .map(|row| (row as u32, best_target[row] as u32, theirs[5 * row] as f32))
        .collect();
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(scores.mutual(&unwatched), expected);
    let queries: Vec<_> = (0..70).map(|query| (query, vec![7 * query])).collect();
    assert_eq!(scores.ranks(&queries), whole(&fixture["ranks"]));
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let fixture = fixture("csls");
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (x, y) = (matrix(&fixture["x"], 12), matrix(&fixture["y"], 12));
            let scores =
                Scores::new(x.clone(), y.clone(), Measure::Csls { k: 10 }, &cpu(), &unwatched);
            let stacks = (Stack::of("x", vec![x]), Stack::of("y", vec![y.head(333)]));
            let cka = table(&stacks.0, &stacks.1, Rows::default(), &cpu(), &unwatched).unwrap();
            (scores.both_ways(7, &unwatched), cka)
        })
    };
    let one = run(1);
    for threads in [2, 5] {
        assert!(one == run(threads), "{threads} threads");
    }
}

#[test]
fn cka_both_ways() {
    let cases = fixture("cka");
    for case in cases.as_array().unwrap() {
        let (d, e) = (case["d"].as_u64().unwrap() as usize, case["e"].as_u64().unwrap() as usize);
        let (x, y) = if case["x"].is_null() {
            let open = |name: &str| Stack::open(&fixtures().join(name)).unwrap();
            (open("cka-x.npy"), open("cka-y.npy"))
        } else {
            let of = |key: &str, cols| Stack::of(key, vec![matrix(&case[key], cols)]);
            (of("x", d), of("y", e))
        };
        let found = table(&x, &y, Rows::default(), &cpu(), &unwatched).unwrap();
        let ours = [found.cka[0][0], found.debiased[0][0].unwrap()];
        let theirs = ["biased", "debiased"].map(|key| case[key].as_f64().unwrap());
        close(&ours, &theirs, 1e-6);
        assert_eq!(found.n as u64, case["n"].as_u64().unwrap());
    }
}

/// The interval of a value covers what larger samples of the same source give.
#[test]
fn intervals_are_about_right() {
    let sample = |seed: u64, n: usize| {
        let mut stream = text::RandomStreams::new(seed, "intervals").stream(0);
        let mut normal = move || (0..12).map(|_| stream.unit()).sum::<f64>() as f32 - 6.0;
        let (mut x, mut y) = (Vec::new(), Vec::new());
        for _ in 0..n {
            let common = [normal(), normal(), normal()];
            x.extend([common[0] + normal(), common[1], common[2] + normal(), normal()]);
            y.extend([common[1] + normal(), common[0], normal(), 2.0 * normal()]);
        }
        (Stack::of("x", vec![Matrix::new(n, 4, x)]), Stack::of("y", vec![Matrix::new(n, 4, y)]))
    };
    let value = |x: &Stack, y: &Stack| table(x, y, Rows::default(), &cpu(), &unwatched).unwrap();
    let (x, y) = sample(0, 100_000);
    let truth = value(&x, &y).debiased[0][0].unwrap();
    let mut covered = 0;
    for seed in 1..=60 {
        let (x, y) = sample(seed, 200);
        let whole = value(&x, &y);
        let drawn =
            intervals(&x, &y, Rows::default(), &whole, (100, 1), &cpu(), &unwatched).unwrap();
        let interval = drawn.debiased[0][0].unwrap();
        assert!(interval.low < interval.high);
        covered += usize::from(interval.low < truth && truth < interval.high);
    }
    assert!((51..=60).contains(&covered), "{covered} of 60 intervals of 95 % hold the truth");
}

#[test]
fn centring_within_groups_takes_away_what_groups_alone_explain() {
    let mut stream = text::RandomStreams::new(3, "groups").stream(0);
    let groups: Vec<u32> = (0..600).map(|row| row % 6).collect();
    let mut draw = |scale: f32| {
        let values = groups.iter().flat_map(|&group| {
            let mut own = [0.0f32; 3];
            own.iter_mut().for_each(|x| *x = scale * group as f32 + stream.unit() as f32);
            own
        });
        Stack::of("draw", vec![Matrix::new(600, 3, values.collect())])
    };
    let (x, y) = (draw(1.0), draw(-2.0));
    let plain = table(&x, &y, Rows::default(), &cpu(), &unwatched).unwrap();
    assert!(plain.cka[0][0] > 0.9);
    let within = Rows { groups: Some(&groups), kept: None };
    assert!(table(&x, &y, within, &cpu(), &unwatched).unwrap().cka[0][0] < 0.1);
}

#[test]
fn every_measure_of_similarity() {
    for case in fixture("similarity").as_array().unwrap() {
        let theirs = case["values"].as_object().unwrap();
        let dim = |key: &str| case[key].as_u64().unwrap() as usize;
        let x = Stack::of("x", vec![matrix(&case["x"], dim("d"))]);
        let y = Stack::of("y", vec![matrix(&case["y"], dim("e"))]);
        for subsamples in [0, 20] {
            // Sums over blocks add up to the same.
            let measures = theirs.keys().map(|name| name.parse().unwrap()).collect();
            let config = SimilarityConfig { measures, subsamples, seed: 1 };
            let found = similarity(&x, &y, None, &config, &cpu(), &unwatched).unwrap();
            let found = &found.layers[0].measures;
            assert_eq!(found.len(), theirs.len());
            for (name, value) in theirs {
                let ours = found[&name.parse::<SimilarityMeasure>().unwrap()];
                let difference = (ours.value - value.as_f64().unwrap()).abs();
                assert!(difference < 2e-6, "{name}: {} is not {value}", ours.value);
                assert_eq!(ours.interval.is_some(), subsamples > 0, "{name}");
            }
        }
    }
}
