//! Maps between two views of one invented space, from every start.

use geometry::learn::{Induction, check_unsupervised, identical, refine, unsupervised};
use geometry::{Map, Matrix, Step, normalize};
use tensor::Device;
use text::RandomStreams;
use vectors::WordVectors;

/// Words in clusters of unequal shape, so that no word is like another.
fn space(rows: usize, dim: usize) -> Matrix {
    let mut stream = RandomStreams::new(4, "space").stream(0);
    let mut normal = move || (0..12).map(|_| stream.unit()).sum::<f64>() as f32 - 6.0;
    let centres: Vec<f32> = (0..20 * dim).map(|_| 1.5 * normal()).collect();
    let value = |i: usize| centres[i / dim * 7 % 20 * dim + i % dim];
    let values = (0..rows * dim).map(|i| value(i) + normal() / (1 + i % dim) as f32).collect();
    Matrix::new(rows, dim, values)
}

/// The space and its image under a rotation, with a little noise.
fn two_views(rows: usize, dim: usize) -> (Matrix, Matrix) {
    let turn = Map::procrustes(&space(40, dim), &space(80, dim).select(40..80));
    let source = space(rows, dim);
    let mut stream = RandomStreams::new(9, "noise").stream(0);
    let noisy =
        turn.apply(&source).values().iter().map(|x| x + 0.02 * stream.unit() as f32).collect();
    let mut target = Matrix::new(rows, dim, noisy);
    let mut source = source;
    normalize(&mut source, &[Step::Iterative]);
    normalize(&mut target, &[Step::Iterative]);
    (source, target)
}

/// The share of rows that the map brings nearest to their own.
fn right(source: &Matrix, target: &Matrix, map: &Map) -> f64 {
    use geometry::search::{Measure, Scores, unwatched};
    let scores =
        Scores::new(map.apply(source), target.clone(), Measure::Cosine, &cpu(), &unwatched);
    let nearest = scores.nearest(1);
    (0..source.rows()).filter(|&row| nearest.ids(row)[0] as usize == row).count() as f64
        / source.rows() as f64
}

fn cpu() -> Device {
    Device::cpu(1).unwrap()
}

const INDUCTION: Induction = Induction { cutoff: 2000, k: 10 };

#[test]
fn refinement_repairs_a_poor_dictionary() {
    let (source, target) = two_views(500, 20);
    // Sixty pairs, of which every third is wrong.
    let pairs: Vec<(u32, u32)> =
        (0..60).map(|i| (i, if i % 3 == 0 { 499 - i } else { i })).collect();
    let first = Map::of_pairs(&source, &target, &pairs);
    let mut rounds = Vec::new();
    let note = |round| rounds.push(round);
    let refined = refine(&source, &target, first.clone(), 5, INDUCTION, &cpu(), note);
    let (before, after) = (right(&source, &target, &first), right(&source, &target, &refined));
    assert!(after > 0.95 && after > before, "{before} {after} {rounds:?}");
}

#[test]
fn a_map_is_learned_unsupervised() {
    let (source, target) = two_views(400, 12);
    let map = unsupervised(&source, &target, INDUCTION, 1, &cpu(), |_| {});
    assert!(right(&source, &target, &map) > 0.9);
    assert_eq!(unsupervised(&source, &target, INDUCTION, 1, &cpu(), |_| {}), map, "the same seed");
    // Of fewer words than the first dictionary could have, too.
    let few = Induction { cutoff: 100, k: 10 };
    assert_eq!(unsupervised(&source, &target, few, 1, &cpu(), |_| {}).dim(), 12);
}

/// A map that translates is distinguished from one that self-learning found between unrelated spaces.
#[test]
fn an_unsupervised_map_that_failed_is_known() {
    let (source, target) = two_views(400, 12);
    let check = |target: &Matrix| {
        let map = unsupervised(&source, target, INDUCTION, 1, &cpu(), |_| {});
        check_unsupervised(&source, target, &map, INDUCTION.k, 1, &cpu())
    };
    let learned = check(&target);
    assert!(!learned.failed && learned.cosine > 0.9, "{learned:?}");
    // Values of the target in another order have nothing in common with the source.
    let mut stream = RandomStreams::new(7, "unrelated").stream(0);
    let noise = (0..400 * 12).map(|_| stream.unit() as f32 - 0.5).collect();
    let mut unrelated = Matrix::new(400, 12, noise);
    normalize(&mut unrelated, &[Step::Iterative]);
    let failed = check(&unrelated);
    assert!(failed.failed, "{failed:?}");
}

#[test]
fn equal_strings_are_pairs() {
    let of = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        WordVectors::new(words.clone(), 1, vec![1.0; words.len()]).unwrap()
    };
    assert_eq!(identical(&of(&["a", "b", "1999"]), &of(&["1999", "c", "a"])), [(0, 2), (2, 0)]);
}
