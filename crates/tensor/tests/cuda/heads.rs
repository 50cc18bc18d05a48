//! What task heads need: each operation, and whole steps of a classifier and of a biaffine parser.

use super::*;

/// How far whole heads may be from the CPU's, forward and back through a dozen operations.
const HEAD_TOLERANCE: f64 = 2e-2;

/// How many columns of each row count: all, or from one to all; and a target among them.
fn classes(rows: usize, cols: usize, full: bool) -> (Indices, Indices) {
    let some = some_rows(rows, cols as u32);
    let widths: Indices =
        some.iter().map(|&column| if full { cols as u32 } else { column + 1 }).collect();
    let targets = widths.iter().zip(0..).map(|(&width, row)| row * 7 % width).collect();
    (widths, targets)
}

#[test]
fn softmax_over_classes() {
    let Some(devices) = devices() else { return };
    for (rows, cols) in
        [(0, 5), (1, 1), (1, 3), (9, 7), (1000, 2), (8, 32), (300, 17), (70, 64), (33, 513)]
    {
        for full in [true, false] {
            let (widths, targets) = classes(rows, cols, full);
            check(
                &format!("softmax of {rows} x {cols}, whole rows {full}"),
                &devices,
                &[],
                &[("scores", rows, cols, 2.0)],
                // Not divided by the rows: gradients should be clearly different from 0.
                |tape, _, x| Produced::Loss(tape.cross_entropy(x[0], &widths, &targets, 1.0)),
            );
        }
    }
    let [cpu, cuda] = &devices;
    let (widths, targets) = classes(50, 6, false);
    let scores = [cpu, cuda].map(|device| {
        let mut params = Params::new(device);
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let mut draws = Draws::new(Key { seed: 16, step: 0, stream: 0 });
        let scores = tape.input(device.tensor(50, 6, &draw(&mut draws, 50, 6, 1.0)), false);
        tape.cross_entropy(scores, &widths, &targets, 1.0).to_vec()
    });
    assert!(distance(&scores[1], &scores[0]) < 1e-5, "without gradients: {scores:?}");
}

/// Lengths of sequences, in queries and in keys.
const LENGTHS: [(&[usize], &[usize]); 9] = [
    (&[1], &[1]),
    (&[1], &[130]),
    (&[70], &[1]),
    (&[3, 1, 5], &[4, 2, 6]),
    (&[0, 2, 0], &[0, 3, 2]),
    (&[0, 0], &[3, 2]),
    (&[63, 64, 65], &[64, 65, 66]),
    (&[24, 7, 129, 0, 31], &[25, 8, 130, 1, 32]),
    (&[511, 40], &[512, 41]),
];

#[test]
fn pairs_of_a_sequence() {
    let Some(devices) = devices() else { return };
    for (queries, keys) in LENGTHS {
        let (queries, keys) =
            (Spans::of_lengths(queries.iter().copied()), Spans::of_lengths(keys.iter().copied()));
        for dim in [1, 5, 8, 24, 63, 72, 100, 512, 1000] {
            if too_much(queries.rows() * keys.rows() * dim) {
                continue;
            }
            check(
                &format!("pairs of {} and {} x {dim}", queries.rows(), keys.rows()),
                &devices,
                &[],
                &[("q", queries.rows(), dim, 1.0), ("k", keys.rows(), dim, 1.0)],
                |tape, _, x| Produced::Values(vec![tape.pair_scores(x[0], x[1], &queries, &keys)]),
            );
        }
    }
}

#[test]
fn pairs_of_rows_under_labels() {
    let Some(devices) = devices() else { return };
    for (rows, blocks, dim) in [
        (0, 3, 8),
        (1, 1, 1),
        (1, 1, 8),
        (4, 3, 5),
        (9, 17, 40),
        (57, 9, 33),
        (300, 37, 128),
        (20, 5, 300),
        (6, 3, 520),
    ] {
        check(
            &format!("{blocks} labels of {rows} pairs x {dim}"),
            &devices,
            &[],
            &[("x", rows, blocks * dim, 1.0), ("z", rows, dim, 1.0)],
            |tape, _, x| Produced::Values(vec![tape.block_dots(x[0], x[1])]),
        );
    }
}

#[test]
fn nothing_beyond_a_sequence_and_no_nan_into_another() {
    let Some([_, cuda]) = devices() else { return };
    let mut params = Params::new(&cuda);
    let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
    let spans = Spans::of_lengths([2, 3]);
    let mut elements = [0.5; 40];
    elements[9] = f32::NAN; // the second query of the first sequence
    let q = tape.input(cuda.tensor(5, 8, &elements), true);
    let k = tape.input(cuda.tensor(5, 8, &[0.25; 40]), true);
    let y = tape.pair_scores(q, k, &spans, &spans); // 5 x 3
    let scores = tape.value(y).to_vec();
    assert_eq!(scores[..3], [1.0, 1.0, 0.0]);
    assert!(scores[3].is_nan() && scores[4].is_nan());
    assert_eq!((scores[5], &scores[6..]), (0.0, &[1.0; 9][..]));
    let (widths, targets) = (vec![2, 2, 3, 3, 3].into(), vec![0, 1, 0, 1, 2].into());
    let score = tape.cross_entropy(y, &widths, &targets, 1.0).to_vec();
    assert!(score[0].is_nan() && score[1] == 4.0, "{score:?}");
    tape.backward();
    let dk = tape.grad(k).expect("keys have a gradient").to_vec();
    assert!(dk[..16].iter().all(|grad| grad.is_nan()), "{dk:?}");
    assert!(dk[16..].iter().all(|grad| grad.is_finite()), "{dk:?}");
}

/// Sentences of a batch: how many words each has.
const SENTENCES: [usize; 5] = [24, 1, 7, 70, 12];
/// Relations between words.
const RELATIONS: usize = 37;
/// How wide vectors are.
const DIM: usize = 96;
/// Those that score arcs.
const ARC: usize = 64;
/// Those that score relations.
const LABEL: usize = 40;

/// Names, sizes and deviations of a parser's weights.
const PARSER: [(&str, usize, usize, f32); 14] = [
    ("arc_head", DIM, ARC, 0.1),
    ("arc_head.bias", 1, ARC, 0.1),
    ("arc_dependent", DIM, ARC, 0.1),
    ("arc_dependent.bias", 1, ARC, 0.1),
    ("arc", ARC, ARC, 0.05),
    ("arc.bias", 1, ARC, 0.05),
    ("label_head", DIM, LABEL, 0.1),
    ("label_head.bias", 1, LABEL, 0.1),
    ("label_dependent", DIM, LABEL, 0.1),
    ("label_dependent.bias", 1, LABEL, 0.1),
    ("pairs", LABEL, RELATIONS * LABEL, 0.05),
    ("pairs.bias", 1, RELATIONS * LABEL, 0.05),
    ("dependent", LABEL, RELATIONS, 0.1),
    ("dependent.bias", 1, RELATIONS, 0.1),
];

/// A parser's loss as crate `tasks` has it, but a sum. `x`: roots and words x dim.
fn parse(tape: &mut Tape<'_>, ids: &[ParamId], x: Var) -> Tensor {
    let affine = |at: usize| Affine { weight: ids[2 * at], bias: Some(ids[2 * at + 1]) };
    let network = |tape: &mut Tape<'_>, x: Var, at: usize| {
        let y = tape.linear(x, affine(at), Activation::Elu);
        tape.drop(y, 0.1)
    };
    let words = Spans::of_lengths(SENTENCES);
    let all = Spans::of_lengths(SENTENCES.map(|words| words + 1));
    let rows: Indices = all.iter().flat_map(|span| span.skip(1)).map(|row| row as u32).collect();
    let dependents = tape.select(x, &rows);
    let heads = network(tape, x, 0);
    let queries = network(tape, dependents, 1);
    let queries = tape.linear(queries, affine(2), Activation::None);
    let arcs = tape.pair_scores(queries, heads, &words, &all); // words x most words and a root
    let lengths = all.iter().zip(words.iter());
    let widths: Indices =
        lengths.flat_map(|(all, words)| words.map(move |_| all.len() as u32)).collect();
    let targets: Indices = widths.iter().zip(0..).map(|(&width, word)| word * 5 % width).collect();
    let mut score = tape.cross_entropy(arcs, &widths, &targets, 1.0);

    let starts = all.iter().zip(words.iter());
    let starts = starts.flat_map(|(all, words)| words.map(move |_| all.start as u32));
    let head_rows: Indices = starts.zip(targets.iter()).map(|(start, head)| start + head).collect();
    let label_heads = network(tape, x, 3);
    let label_heads = tape.select(label_heads, &head_rows);
    let label_dependents = network(tape, dependents, 4);
    let wide = tape.linear(label_dependents, affine(5), Activation::None);
    let pairs = tape.block_dots(wide, label_heads);
    let alone = tape.linear(label_dependents, affine(6), Activation::None);
    let labels = tape.residual(alone, pairs, 0.0); // words x relations
    let widths = std::iter::repeat_n(RELATIONS as u32, words.rows()).collect();
    let classes = (0..words.rows() as u32).map(|word| word % RELATIONS as u32).collect();
    let relations = tape.cross_entropy(labels, &widths, &classes, 1.0);
    tape.params().device().kernels().add(&mut score, &relations);
    score
}

/// Names, sizes and deviations of a classifier's weights.
const CLASSIFIER: [(&str, usize, usize, f32); 2] =
    [("classifier", DIM, 9, 0.1), ("classifier.bias", 1, 9, 0.1)];

/// A classifier's loss as crate `tasks` has it, but a sum. `x`: rows x dim.
fn classify(tape: &mut Tape<'_>, ids: &[ParamId], x: Var) -> Tensor {
    let rows = tape.value(x).rows() as u32;
    let x = tape.drop(x, 0.1);
    let scores = tape.linear(x, Affine { weight: ids[0], bias: Some(ids[1]) }, Activation::None);
    let (widths, targets) =
        ((0..rows).map(|_| 9).collect(), (0..rows).map(|row| row % 9).collect());
    tape.cross_entropy(scores, &widths, &targets, 1.0)
}

/// A head: its weights and its loss.
type Head = (&'static str, Sizes<'static>, fn(&mut Tape<'_>, &[ParamId], Var) -> Tensor);
const HEADS: [Head; 2] = [("classifier", &CLASSIFIER, classify), ("parser", &PARSER, parse)];

/// Roots and words.
fn rows() -> usize {
    SENTENCES.iter().sum::<usize>() + SENTENCES.len()
}

#[test]
fn whole_heads() {
    let Some(devices) = devices() else { return };
    for (name, weights, loss) in HEADS {
        let inputs = [("vectors", rows(), DIM, 1.0)];
        check_within(HEAD_TOLERANCE, name, &devices, weights, &inputs, |tape, ids, x| {
            Produced::Loss(loss(tape, ids, x[0]))
        });
    }
}

/// Steps of a head from the same weights; the loss of each.
fn train(device: &Device, weights: Sizes<'_>, head: Head, steps: u32) -> Vec<f32> {
    let mut draws = Draws::new(Key { seed: 17, step: 0, stream: 0 });
    let mut params = Params::new(device);
    let mut make = |&(_, rows, cols, scale): &(&str, usize, usize, f32)| {
        device.tensor(rows, cols, &draw(&mut draws, rows, cols, scale))
    };
    let ids: Vec<ParamId> =
        weights.iter().map(|weight| params.add(weight.0, make(weight))).collect();
    let vectors = draw(&mut Draws::new(Key { seed: 18, step: 0, stream: 0 }), rows(), DIM, 1.0);
    let zeros = |&(_, rows, cols, _): &(&str, usize, usize, f32)| device.zeros(rows, cols);
    let mut moments: Vec<[Tensor; 2]> =
        weights.iter().map(|weight| [zeros(weight), zeros(weight)]).collect();
    let step = |step: u32| {
        params.clear_grads();
        let mut tape = Tape::new(&mut params, Mode::Train { seed: 4, step, micro_batch: 0 });
        let x = tape.input(device.tensor(rows(), DIM, &vectors), true);
        let score = head.2(&mut tape, &ids, x);
        tape.backward();
        let slots = params.iter_mut().zip(&mut moments);
        let mut slots: Vec<AdamSlot<'_>> = slots
            .map(|((_, value, grad), [mean, square])| {
                let grad = grad.expect("every weight of a head has a gradient");
                let (lr, decay, number) = (5e-3, 0.0, step.into());
                AdamSlot { value, grad, mean, square, lr, decay, number }
            })
            .collect();
        let all = AdamStep { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, clip: 1.0 };
        device.kernels().adam(&mut slots, all, &mut device.zeros(1, 1));
        score.to_vec()[0]
    };
    (1..=steps).map(step).collect()
}

#[test]
fn heads_learn() {
    let Some([cpu, cuda]) = devices() else { return };
    if too_much(usize::MAX) {
        return terms::tests::left_out("many steps of what `whole_heads` does once");
    }
    for head in HEADS {
        let (name, weights, _) = head;
        let [ours, again, theirs] =
            [&cuda, &cuda, &cpu].map(|device| train(device, weights, head, 30));
        let (first, last) = (ours[0], ours[29]);
        println!("{name}: {first:.2} to {last:.2}, the CPU to {:.2}", theirs[29]);
        assert!(ours == again, "{name}: the same steps gave other bits");
        assert!(last < 0.6 * first, "{name} does not learn: {ours:?}");
        for (step, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            let far = (ours - theirs).abs();
            assert!(far < 0.05 * first, "{name}: step {step} has loss {ours}, not {theirs}");
        }
    }
}
