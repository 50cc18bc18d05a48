//! Bitext mining: against numpy (fixtures/mining.py), planted pairs, blocks of any size, and a search that is continued.

#![allow(missing_docs, reason = "tests")]

use arrays::{Matrix, Stack};
use geometry::mining::{
    Margin, MinedPair, MiningDirection, MiningScore, NearestState, NeighbourSearch, mine,
};
use geometry::search::{Neighbours, unwatched};
use serde_json::Value;
use tensor::Device;

fn stack(values: Vec<f32>, dim: usize) -> Stack {
    Stack::of("vectors", vec![Matrix::new(values.len() / dim, dim, values)])
}

fn searched(search: &NeighbourSearch<'_>, k: usize) -> [Neighbours; 2] {
    search.run(search.start(k, "test"), |_| Ok(()), &unwatched).unwrap()
}

fn numbers(value: &Value) -> Vec<f32> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap() as f32).collect()
}

#[test]
fn margins_and_directions_are_those_of_numpy() {
    let whole: Value = serde_json::from_str(include_str!("fixtures/mining.json")).unwrap();
    let dim = whole["dim"].as_u64().unwrap() as usize;
    let (source, target) =
        (stack(numbers(&whole["source"]), dim), stack(numbers(&whole["target"]), dim));
    let device = Device::cpu(1).unwrap();
    let search = NeighbourSearch::new(&source, &target, false, &device).unwrap();
    let [forward, backward] = searched(&search, whole["k"].as_u64().unwrap() as usize);
    let margins = [Margin::Ratio, Margin::Distance, Margin::Absolute];
    let directions = [
        MiningDirection::Forward,
        MiningDirection::Backward,
        MiningDirection::Intersection,
        MiningDirection::Max,
    ];
    for (margin, direction) in margins.iter().flat_map(|m| directions.iter().map(move |d| (*m, *d)))
    {
        let name = format!("{} {}", margin.name(), direction.name());
        let theirs = whole["mined"][&name].as_array().unwrap();
        let ours = mine([&forward, &backward], margin, direction);
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for (ours, theirs) in ours.iter().zip(theirs) {
            let rows = [0, 1].map(|side| theirs[side].as_u64().unwrap() as u32);
            assert_eq!([ours.source, ours.target], rows, "{name}");
            assert!((f64::from(ours.score) - theirs[2].as_f64().unwrap()).abs() < 1e-4, "{name}");
        }
    }
}

/// Rows of noise, and of the target's some that are a copy of a row of the source with a little noise.
fn planted(rows: [usize; 2], pairs: usize, dim: usize) -> ([Stack; 2], Vec<(u32, u32)>) {
    let noise = |seed: u64, at: usize| {
        let mut x = (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 30)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let source: Vec<f32> = (0..rows[0] * dim).map(|at| noise(1, at)).collect();
    let mut target: Vec<f32> = (0..rows[1] * dim).map(|at| noise(2, at)).collect();
    // Pair i: row 2i of the source, row 3i of the target.
    let gold: Vec<(u32, u32)> = (0..pairs as u32).map(|pair| (2 * pair, 3 * pair)).collect();
    for &(a, b) in &gold {
        for col in 0..dim {
            let (a, b) = (a as usize * dim + col, b as usize * dim + col);
            target[b] = source[a] + 0.3 * target[b];
        }
    }
    ([stack(source, dim), stack(target, dim)], gold)
}

#[test]
fn planted_pairs_are_found_among_texts_of_unequal_size() {
    let rows = [400, 1000];
    let ([source, target], gold) = planted(rows, 150, 32);
    let device = Device::cpu(2).unwrap();
    let search = NeighbourSearch::new(&source, &target, true, &device).unwrap();
    let [forward, backward] = searched(&search, 4);
    let gold = gold.into_iter().collect();
    for margin in [Margin::Ratio, Margin::Distance] {
        let pairs = mine([&forward, &backward], margin, MiningDirection::Max);
        let best = MiningScore::best(&pairs, &gold, rows).unwrap();
        assert!(best.f1 > 0.99 && best.f1_chance < 0.01, "{margin:?} {best:?}");
        let fixed = MiningScore::at(best.threshold, &pairs, &gold, rows);
        assert_eq!((fixed.predicted, fixed.correct), (best.predicted, best.correct));
    }
    // Gold pairs of other rows are not found.
    let wrong = (0..150).map(|pair| (2 * pair + 1, 3 * pair + 1)).collect();
    let pairs = mine([&forward, &backward], Margin::Ratio, MiningDirection::Max);
    assert!(MiningScore::best(&pairs, &wrong, rows).unwrap().f1 < 0.05);
}

#[test]
fn blocks_of_any_size_and_a_continued_search_give_the_same() {
    let ([source, target], _) = planted([230, 310], 60, 16);
    let device = Device::cpu(2).unwrap();
    let new = || NeighbourSearch::new(&source, &target, true, &device).unwrap();
    let same = |a: &[Neighbours; 2], b: &[Neighbours; 2]| {
        for side in [0, 1] {
            for row in 0..a[side].rows() {
                assert_eq!(a[side].ids(row), b[side].ids(row));
                for (x, y) in a[side].scores(row).iter().zip(b[side].scores(row)) {
                    assert!((x - y).abs() < 1e-6);
                }
            }
        }
    };
    let whole = searched(&new(), 5);
    let small = new().in_blocks(64, 100);
    assert_eq!(small.steps(), 16);
    same(&searched(&small, 5), &whole);
    same(&searched(&new().in_blocks(3, 2), 5), &whole);
    // Stopped after seven blocks, and continued from the file.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search.state");
    let stop = || geometry::Error::usage("stop");
    let save = |state: &NearestState| {
        state.save(&path)?;
        if state.done() == 7 { Err(stop()) } else { Ok(()) }
    };
    assert!(small.run(small.start(5, "test"), save, &unwatched).is_err());
    let resumed = |key: &str| small.start(5, key).resume(&path, &mut |_| {}).unwrap();
    assert_eq!(resumed("test").done(), 7);
    same(&small.run(resumed("test"), |_| Ok(()), &unwatched).unwrap(), &whole);
    // A state of another input, or a damaged one, is not taken: the one before it, or none.
    assert_eq!(resumed("other").done(), 0);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(resumed("test").done(), 6);
    // Where none is sound, the search begins anew, and the damaged one is kept apart from what it saves.
    let named = |what: &str| folder.path().join(format!("search.{what}state"));
    for path in [&path, &named("previous.")] {
        std::fs::write(path, &bytes).unwrap();
    }
    let mut notes = Vec::new();
    let anew = small.start(5, "test").resume(&path, &mut |note| notes.push(note.to_owned()));
    let anew = anew.unwrap();
    assert!(anew.done() == 0 && notes.len() == 1, "{notes:?}");
    assert!(notes[0].contains("search.state") && notes[0].contains("anew"), "{notes:?}");
    anew.save(&path).unwrap();
    assert!(!named("previous.").exists());
    assert_eq!(std::fs::read(named("damaged.")).unwrap(), bytes);
}

#[test]
fn what_cannot_be_mined_is_refused() {
    let device = Device::cpu(1).unwrap();
    let ([source, _], _) = planted([10, 10], 1, 4);
    let other = stack(vec![1.0; 30], 3);
    let refused = |a: &Stack, b: &Stack| {
        NeighbourSearch::new(a, b, false, &device).err().unwrap().to_string()
    };
    assert!(refused(&source, &other).contains("4 columns"), "{}", refused(&source, &other));
    let layers =
        Stack::of("two", vec![Matrix::new(1, 4, vec![1.0; 4]), Matrix::new(1, 4, vec![1.0; 4])]);
    assert!(refused(&source, &layers).contains("has 2 layers"));
    let one: Vec<MinedPair> = {
        let single = stack(vec![1.0, 0.0, 0.0, 0.0], 4);
        let search = NeighbourSearch::new(&source, &single, false, &device).unwrap();
        let [forward, backward] = searched(&search, 4);
        mine([&forward, &backward], Margin::Ratio, MiningDirection::Max)
    };
    assert_eq!(one.len(), 1, "one sentence has one translation at most");
}
