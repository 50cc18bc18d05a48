//! Searches and CKA on a GPU beside the CPU's, at awkward sizes.
//!
//! Left out, loudly, where no GPU can be used. Products are f32 on both, summed up in another order: scores
//! may differ by the rounding of that, and neighbours where their scores differ by no more.

use arrays::Stack;
use geometry::cka::{Rows, intervals, table};
use geometry::learn::{Induction, unsupervised};
use geometry::search::{Measure, Neighbours, Scores, unwatched};
use geometry::similarity::{SimilarityConfig, SimilarityMeasure, similarity};
use geometry::{Map, Matrix};
use tensor::Device;
use text::RandomStreams;

/// How far scores may be apart: some last digits of sums of about a hundred products below 1.
const TOLERANCE: f32 = 3e-6;

/// Under a checker everything is slow: then the smallest case that a GPU is asked for is enough.
fn quick() -> bool {
    std::env::var_os("ISOGLOSS_QUICK").is_some()
}

/// The CPU and the GPU, or a word on why the test is left out.
fn devices() -> Option<[Device; 2]> {
    match Device::cuda() {
        Ok(cuda) => Some([Device::cpu(0).expect("the CPU is there"), cuda]),
        Err(error) => {
            terms::tests::left_out(&error.to_string());
            assert!(std::env::var_os("ISOGLOSS_GPU").is_none(), "a GPU was demanded: {error}");
            None
        }
    }
}

/// Random vectors of which some come again, so that scores are tied.
fn vectors(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut stream = RandomStreams::new(seed, "vectors").stream(0);
    let drawn = (0..rows * cols).map(|_| stream.unit() as f32 - 0.45).collect();
    let drawn = Matrix::new(rows, cols, drawn);
    drawn.select((0..rows).map(|row| if row % 10 == 7 { row / 2 } else { row }))
}

/// Whether two found the same: scores, and whose they are wherever that is clear.
fn same(what: &str, cpu: &Neighbours, gpu: &Neighbours, tolerance: f32) {
    assert_eq!(cpu.rows(), gpu.rows(), "{what}");
    let mut other = 0;
    for row in 0..cpu.rows() {
        let (theirs, ours) = (cpu.scores(row), gpu.scores(row));
        for (at, (a, b)) in theirs.iter().zip(ours).enumerate() {
            assert!((a - b).abs() <= tolerance, "{what}: row {row}, place {at}: {b} is not {a}");
            if cpu.ids(row)[at] != gpu.ids(row)[at] {
                other += 1;
                let near = |other: &f32| (other - a).abs() <= 2.0 * tolerance;
                let rivals = theirs.iter().filter(|score| near(score)).count();
                let last = near(&theirs[theirs.len() - 1]);
                assert!(rivals > 1 || last, "{what}: row {row}, place {at}: another neighbour");
            }
        }
        let mut ids = gpu.ids(row).to_vec();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), ours.len(), "{what}: row {row} has a neighbour twice");
    }
    let places = cpu.rows() * cpu.ids(0).len();
    println!("{what:<44} {other} of {places} places changed among equals");
    assert!(other * 50 <= places, "{what}: {other} of {places} neighbours are others");
}

#[test]
fn neighbours_are_those_of_the_cpu() {
    let Some([cpu, gpu]) = devices() else { return };
    let before = gpu.kernels().held_memory();
    // The last is more than one tile both ways.
    let sizes = [(3000, 5000, 96), (4099, 2777, 97), (5003, 17_011, 33)];
    for (sources, targets, dim) in sizes.into_iter().take(if quick() { 1 } else { sizes.len() }) {
        let (x, y) = (vectors(sources, dim, 1), vectors(targets, dim, 2));
        for (measure, tolerance) in [
            (Measure::Cosine, TOLERANCE),
            (Measure::Csls { k: 10 }, 4.0 * TOLERANCE),
            (Measure::Distance { k: 4 }, 4.0 * TOLERANCE),
            (Measure::Ratio { k: 4 }, 40.0 * TOLERANCE),
        ] {
            let on = |device: &Device| {
                let scores = Scores::new(x.clone(), y.clone(), measure, device, &unwatched);
                let queries: Vec<_> = (0..50).map(|query| (query, vec![query])).collect();
                (scores.both_ways(7, &unwatched), scores.nearest(32), scores.ranks(&queries))
            };
            let (theirs, ours) = (on(&cpu), on(&gpu));
            let what = |kind: &str| format!("{sources} x {targets} x {dim} {measure:?} {kind}");
            same(&what("there"), &theirs.0.0, &ours.0.0, tolerance);
            same(&what("back"), &theirs.0.1, &ours.0.1, tolerance);
            same(&what("32"), &theirs.1, &ours.1, tolerance);
            let far = theirs.2.iter().zip(&ours.2).filter(|(a, b)| a.abs_diff(**b) > 2).count();
            assert!(far == 0, "{}: {far} ranks are others", what("ranks"));
            assert!(on(&gpu) == ours, "{}: other bits when run again", what(""));
        }
    }
    assert!(gpu.kernels().held_memory() > before, "the GPU was not asked");
}

/// Where products are exact, so is everything else: ties are broken alike, to the last place.
#[test]
fn ties_are_broken_as_on_the_cpu() {
    let Some([cpu, gpu]) = devices() else { return };
    let mut stream = RandomStreams::new(5, "signs").stream(0);
    // Rows of ±1 over 64 columns have the length 8, so cosines are multiples of 1/64.
    let mut signs = |rows: usize| {
        let values = (0..rows * 64).map(|_| if stream.unit() < 0.5 { -1.0 } else { 1.0 });
        Matrix::new(rows, 64, values.collect())
    };
    let (x, y) = (signs(4500), signs(17_000));
    for k in [1, 10, 32] {
        let on = |device: &Device| {
            let scores = Scores::new(x.clone(), y.clone(), Measure::Cosine, device, &unwatched);
            scores.both_ways(k, &unwatched)
        };
        assert!(on(&cpu) == on(&gpu), "k = {k}");
    }
}

#[test]
fn an_unsupervised_map_has_the_same_dropout() {
    let Some([cpu, gpu]) = devices() else { return };
    if quick() {
        return terms::tests::left_out("hundreds of searches");
    }
    let source = vectors(6000, 60, 3);
    let turn = Map::procrustes(&vectors(80, 60, 4), &vectors(80, 60, 5));
    let target = turn.apply(&source);
    let learn = |device: &Device| {
        let induction = Induction { cutoff: 5000, k: 10 };
        let mut rounds = Vec::new();
        let map = unsupervised(&source, &target, induction, 1, device, |round| rounds.push(round));
        (map, rounds)
    };
    let (theirs, ours) = (learn(&cpu), learn(&gpu));
    // The first rounds look at a tenth of all scores, the same on both.
    let first = |rounds: &[geometry::learn::Round]| rounds[0].cosine;
    let apart = (first(&theirs.1) - first(&ours.1)).abs();
    assert!(apart < 1e-3, "the first round is {apart} apart");
    for (whose, (map, _)) in [("CPU", &theirs), ("GPU", &ours)] {
        let values = map.values().iter().zip(turn.values());
        let apart = values.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < 1e-3, "the {whose}'s map is {apart} from the turn");
    }
}

#[test]
fn cka_is_that_of_the_cpu() {
    let Some([cpu, gpu]) = devices() else { return };
    let rows = 6001;
    let layers = |dims: &[usize], seed: u64| {
        let common = vectors(rows, 40, 77);
        let layer = |(at, &dim): (usize, &usize)| {
            let own = vectors(rows, dim, seed + at as u64);
            let values = own.iter().zip(common.iter()).flat_map(|(own, common)| {
                own.iter().enumerate().map(|(col, x)| 0.2 * x + common[col % 40] + 3.0)
            });
            Matrix::new(rows, dim, values.collect())
        };
        dims.iter().enumerate().map(layer).collect::<Vec<_>>()
    };
    let x = Stack::of("x", layers(&[193, 160, 257], 10));
    let y = Stack::of("y", layers(&[128, 255, 191, 64], 20));
    let groups: Vec<u32> = (0..rows as u32).map(|row| row % 7).collect();
    let before = gpu.kernels().held_memory();
    for groups in [None, Some(groups.as_slice())] {
        let rows = Rows { kept: None, groups };
        let on = |device: &Device| table(&x, &y, rows, device, &unwatched).unwrap();
        let (theirs, ours) = (on(&cpu), on(&gpu));
        assert_eq!(theirs.n, ours.n);
        let mut worst = 0.0_f64;
        for (a, b) in theirs.cka.iter().flatten().zip(ours.cka.iter().flatten()) {
            worst = worst.max((a - b).abs());
        }
        for (a, b) in theirs.debiased.iter().flatten().zip(ours.debiased.iter().flatten()) {
            assert_eq!(a.is_some(), b.is_some());
            worst = worst.max((a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs());
        }
        println!("CKA, groups {}: {worst:.1e} apart", groups.is_some());
        assert!(worst < 1e-5, "{worst}");
        assert!(on(&gpu) == ours, "other bits when run again");
    }
    assert!(gpu.kernels().held_memory() > before, "the GPU was not asked");
    let whole = table(&x, &y, Rows::default(), &cpu, &unwatched).unwrap();
    let drawn = |device: &Device| {
        intervals(&x, &y, Rows::default(), &whole, (3, 1), device, &unwatched).unwrap()
    };
    let (theirs, ours) = (drawn(&cpu), drawn(&gpu));
    for (a, b) in theirs.cka.iter().flatten().zip(ours.cka.iter().flatten()) {
        assert!((a.low - b.low).abs() < 1e-5 && (a.high - b.high).abs() < 1e-5, "{a:?} {b:?}");
    }
}

#[test]
fn measures_of_similarity_are_those_of_the_cpu() {
    let Some([cpu, gpu]) = devices() else { return };
    let (rows, dim) = (6001, 420);
    let common = vectors(rows, 40, 77);
    let side = |seed: u64| {
        let own = vectors(rows, dim, seed);
        let values = own.iter().zip(common.iter()).flat_map(|(own, common)| {
            own.iter().enumerate().map(|(col, x)| 0.5 * x + common[col % 40] + 3.0)
        });
        Stack::of("side", vec![Matrix::new(rows, dim, values.collect())])
    };
    let (x, y) = (side(10), side(20));
    let config =
        SimilarityConfig { measures: SimilarityMeasure::ALL.into(), subsamples: 0, seed: 1 };
    let before = gpu.kernels().held_memory();
    let on = |device: &Device| similarity(&x, &y, None, &config, device, &unwatched).unwrap();
    let (theirs, ours) = (on(&cpu), on(&gpu));
    assert!(gpu.kernels().held_memory() > before, "the GPU was not asked");
    for (measure, value) in &theirs.layers[0].measures {
        let other = ours.layers[0].measures[measure];
        // A neighbour whose score is that of another to the last digit may be either.
        assert!((value.value - other.value).abs() < 1e-3, "{measure:?}: {value:?} {other:?}");
    }
}
