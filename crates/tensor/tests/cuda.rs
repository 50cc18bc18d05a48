//! Every operation on a GPU beside the CPU: results and gradients, at awkward sizes.
//!
//! Left out, loudly, where no GPU can be used. What flows between operations is bf16 there, whose
//! numbers are 0.4 % apart: inputs are rounded first, so that both devices begin with the same, and
//! results may then differ by about that, relative to the norm of the whole matrix.

#[path = "cuda/heads.rs"]
mod heads;

use tensor::kernels::{AdamSlot, AdamStep};
use tensor::random::{Draws, Key};
use tensor::{
    Activation, Affine, Device, Indices, Mode, Norm, ParamId, Params, Spans, Tape, Tensor, Var,
};

/// How far norms of differences may be from 0, relative to the norm: results and gradients.
const TOLERANCE: f64 = 1e-2;

/// The largest case, in elements or multiplications, when `ISOGLOSS_QUICK` is set.
const QUICK: usize = 120_000;

/// Whether so much is left out, since under a checker everything is slow.
fn too_much(elements: usize) -> bool {
    std::env::var_os("ISOGLOSS_QUICK").is_some() && elements > QUICK
}

/// Both devices, or the reason why the test is left out.
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

/// Rounds to what a GPU can hold.
fn rounded(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
}

/// Matrices to begin with: name, rows, columns, deviation.
type Sizes<'a> = &'a [(&'a str, usize, usize, f32)];

fn draw(draws: &mut Draws, rows: usize, cols: usize, scale: f32) -> Vec<f32> {
    (0..rows * cols).map(|_| rounded(scale * draws.normal())).collect()
}

/// The results of an operation: each matrix by name.
type Results = Vec<(String, Vec<f32>)>;

/// What is checked: an operation on weights and inputs.
type Operation<'a> = &'a dyn Fn(&mut Tape<'_>, &[ParamId], &[Var]) -> Produced;

/// Runs an operation forward and back on one device.
fn run_on(
    device: &Device,
    weights: Sizes<'_>,
    inputs: Sizes<'_>,
    operation: Operation<'_>,
) -> Results {
    let mut draws = Draws::new(Key { seed: 11, step: 0, stream: 0 });
    let mut params = Params::new(device);
    let ids: Vec<ParamId> = weights
        .iter()
        .map(|&(name, rows, cols, scale)| {
            let elements = draw(&mut draws, rows, cols, scale);
            params.add(name, device.tensor(rows, cols, &elements))
        })
        .collect();
    let given: Vec<Vec<f32>> =
        inputs.iter().map(|&(_, rows, cols, scale)| draw(&mut draws, rows, cols, scale)).collect();
    let mut results = Results::new();
    // Twice, so that gradients are added up the second time and memory is used again.
    for micro_batch in 0..2 {
        let mut tape = Tape::new(&mut params, Mode::Train { seed: 3, step: 1, micro_batch });
        let vars: Vec<Var> = inputs
            .iter()
            .zip(&given)
            .map(|(&(_, rows, cols, _), given)| tape.input(device.tensor(rows, cols, given), true))
            .collect();
        match operation(&mut tape, &ids, &vars) {
            Produced::Values(made) => {
                for (at, var) in made.into_iter().enumerate() {
                    results.push((format!("result {at}"), tape.value(var).to_vec()));
                    let (rows, cols) = tape.value(var).shape();
                    let mut draws = Draws::new(Key { seed: 12, step: at as u32, stream: 0 });
                    let seed = draw(&mut draws, rows, cols, 1.0);
                    tape.seed_grad(var, device.tensor(rows, cols, &seed));
                }
            }
            Produced::Loss(score) => results.push(("score".to_owned(), score.to_vec())),
        }
        tape.backward();
        for (&(name, ..), &var) in inputs.iter().zip(&vars) {
            results.push((
                format!("d {name}"),
                tape.grad(var).map(Tensor::to_vec).unwrap_or_default(),
            ));
        }
    }
    for id in params.ids() {
        let grad = params.grad(id).map(Tensor::to_vec).unwrap_or_default();
        results.push((format!("d {}", params.name(id)), grad));
    }
    results
}

enum Produced {
    Values(Vec<Var>),
    Loss(Tensor),
}

/// Compares both devices and prints the largest distance.
fn check(
    what: &str,
    devices: &[Device; 2],
    weights: Sizes<'_>,
    inputs: Sizes<'_>,
    operation: impl Fn(&mut Tape<'_>, &[ParamId], &[Var]) -> Produced,
) {
    check_within(TOLERANCE, what, devices, weights, inputs, operation);
}

/// The same where many operations follow one another, each with its own rounding.
fn check_within(
    tolerance: f64,
    what: &str,
    [cpu, cuda]: &[Device; 2],
    weights: Sizes<'_>,
    inputs: Sizes<'_>,
    operation: impl Fn(&mut Tape<'_>, &[ParamId], &[Var]) -> Produced,
) {
    let elements: usize = weights.iter().chain(inputs).map(|&(_, rows, cols, _)| rows * cols).sum();
    if too_much(elements) {
        return;
    }
    let ours = run_on(cuda, weights, inputs, &operation);
    let theirs = run_on(cpu, weights, inputs, &operation);
    let again = run_on(cuda, weights, inputs, &operation);
    let mut worst = (0.0, "");
    for ((name, a), (_, b)) in ours.iter().zip(&theirs) {
        let distance = distance(a, b);
        assert!(distance < tolerance, "{what}: {name} is {distance:.2e} from the CPU's");
        if distance >= worst.0 {
            worst = (distance, name);
        }
    }
    assert!(ours == again, "{what}: the same input gave other bits");
    println!("{what:<44} {:.1e}  {}", worst.0, worst.1);
}

/// ‖a - b‖ / ‖b‖; what is nearly nothing on average (a gradient that should vanish) counts as 0.01.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let square = |x: f64| x * x;
    let far: f64 = a.iter().zip(b).map(|(&a, &b)| square(f64::from(a) - f64::from(b))).sum();
    let norm: f64 = b.iter().map(|&b| square(f64::from(b))).sum();
    if far == 0.0 { 0.0 } else { (far / norm.max(1e-4 * b.len() as f64)).sqrt() }
}

fn some_rows(count: usize, below: u32) -> Indices {
    let mut draws = Draws::new(Key { seed: 13, step: 0, stream: 0 });
    (0..count).map(|_| draws.below(below)).collect()
}

#[test]
fn affine_maps() {
    let Some(devices) = devices() else { return };
    for (rows, inputs, outputs) in
        [(1, 8, 8), (3, 5, 7), (130, 64, 200), (257, 48, 33), (300, 768, 3072), (2048, 512, 512)]
    {
        for activation in Activation::ALL {
            // The derivative of ReLU jumps: where rounding to bf16 moves a pre-activation across 0 (a
            // quarter of a percent of them), the gradient is another one.
            let tolerance = if activation == Activation::Relu { 0.1 } else { TOLERANCE };
            check_within(
                tolerance,
                &format!("linear {rows} x {inputs} -> {outputs}, {activation:?}"),
                &devices,
                &[
                    ("weight", inputs, outputs, 1.0 / (inputs as f32).sqrt()),
                    ("bias", 1, outputs, 0.5),
                ],
                &[("x", rows, inputs, 1.0)],
                |tape, ids, x| {
                    let affine = Affine { weight: ids[0], bias: Some(ids[1]) };
                    Produced::Values(vec![tape.linear(x[0], affine, activation)])
                },
            );
        }
    }
}

#[test]
fn norms_and_residuals() {
    let Some(devices) = devices() else { return };
    for (rows, dim) in
        [(1, 8), (5, 9), (7, 12), (300, 48), (33, 200), (1000, 768), (64, 1024), (9, 1500)]
    {
        let norm = [("gamma", 1, dim, 1.0), ("beta", 1, dim, 1.0)];
        let layer = |ids: &[ParamId]| Norm::layer([ids[0], ids[1]], 1e-5);
        let inputs = [("x", rows, dim, 2.0), ("update", rows, dim, 1.0)];
        check(&format!("norm {rows} x {dim}"), &devices, &norm, &inputs[..1], |tape, ids, x| {
            Produced::Values(vec![tape.norm(x[0], layer(ids))])
        });
        for rate in [0.0, 0.1, 0.5] {
            check(
                &format!("residual {rows} x {dim}, dropout {rate}"),
                &devices,
                &[],
                &inputs,
                |tape, _, x| Produced::Values(vec![tape.residual(x[0], x[1], rate)]),
            );
            check(
                &format!("residual and norm {rows} x {dim}, dropout {rate}"),
                &devices,
                &norm,
                &inputs,
                |tape, ids, x| {
                    let (sum, normed) = tape.residual_norm(x[0], x[1], rate, layer(ids));
                    Produced::Values(vec![sum, normed])
                },
            );
        }
    }
}

#[test]
fn embeddings_and_chosen_rows() {
    let Some(devices) = devices() else { return };
    for (count, dim, entries) in [(1, 8, 3), (5, 9, 4), (700, 48, 11), (3000, 768, 5000)] {
        let (tokens, places) = (
            some_rows(count, entries as u32),
            (0..count as u32).map(|at| at % 3).collect::<Indices>(),
        );
        let languages: Indices = std::iter::repeat_n(1, count).collect();
        let weights = [
            ("tokens", entries, dim, 1.0),
            ("positions", 3, dim, 1.0),
            ("languages", 2, dim, 1.0),
            ("gamma", 1, dim, 1.0),
            ("beta", 1, dim, 1.0),
        ];
        for (with_norm, rate) in [(true, 0.1), (false, 0.0)] {
            let weights = if with_norm { &weights[..] } else { &weights[..3] };
            check(
                &format!("embed {count} x {dim}, norm {with_norm}"),
                &devices,
                weights,
                &[],
                |tape, ids, _| {
                    let tables = vec![
                        (ids[0], tokens.clone()),
                        (ids[1], places.clone()),
                        (ids[2], languages.clone()),
                    ];
                    let norm = with_norm.then(|| Norm::layer([ids[3], ids[4]], 1e-5));
                    Produced::Values(vec![tape.embed(tables, norm, rate)])
                },
            );
        }
        check(
            &format!("select {count} of {entries} x {dim}"),
            &devices,
            &[],
            &[("x", entries, dim, 1.0)],
            |tape, _, x| Produced::Values(vec![tape.select(x[0], &tokens)]),
        );
    }
}

/// A token id beyond its table is refused before a kernel reads it: on a GPU, nothing else would notice.
#[test]
fn ids_beyond_their_table_never_reach_a_kernel() {
    let gpu = devices().map(|[_, cuda]| cuda);
    for device in gpu.into_iter().chain([Device::cpu(1).expect("the CPU is there")]) {
        let embed = |list: Vec<u32>| {
            let mut params = Params::new(&device);
            let table = params.add("table", device.tensor(6, 8, &[0.5; 48]));
            let bias = params.add("bias", device.tensor(1, 6, &[0.0; 6]));
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let rows = tape.embed(vec![(table, Indices::from(list.clone()))], None, 0.0);
            let chosen = tape.select(rows, &Indices::from(vec![0]));
            let targets = Indices::from(vec![list[0]]);
            tape.tied_cross_entropy(chosen, table, bias, &targets, 1.0).to_vec()
        };
        assert!(embed(vec![5, 0, 3])[0].is_finite());
        for list in [vec![6], vec![0, u32::MAX], vec![1 << 31, 2]] {
            let tried =
                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| embed(list.clone())));
            let reason = tried.expect_err("refused");
            let reason = reason.downcast_ref::<String>().expect("in words");
            assert!(reason.contains("of a table of 6 rows"), "{list:?}: {reason}");
        }
    }
}

/// Shifted states: in the working precision, as between layers, and in full precision, where the CPU and a
/// GPU round alike.
#[test]
fn rows_are_shifted() {
    let Some([cpu, cuda]) = devices() else { return };
    for (rows, cols, entries) in [(1, 1, 1), (3, 5, 2), (300, 768, 3)] {
        let list: Vec<u32> = some_rows(rows, entries as u32).to_vec();
        let [(theirs, exact), (ours, unrounded)] = [&cpu, &cuda].map(|device| {
            let mut draws = Draws::new(Key { seed: 17, step: 0, stream: 0 });
            let x = draw(&mut draws, rows, cols, 1.0);
            let table = draw(&mut draws, entries, cols, 0.3);
            let table = device.tensor(entries, cols, &table);
            let list = Indices::from(list.clone());
            let full = device.tensor(rows, cols, &x);
            let exact = device.add_rows(&full, &table, &list, &[0.7, -0.4]).to_vec();
            let mut params = Params::new(device);
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let x = tape.input(full, false);
            (device.add_rows(tape.value(x), &table, &list, &[0.7, -0.4]).to_vec(), exact)
        });
        assert!(exact == unrounded, "shifted rows {rows} x {cols}: other bits");
        let rounded: Vec<f32> = theirs.into_iter().map(rounded).collect();
        assert!(ours == rounded, "shifted rows {rows} x {cols}: other bits when rounded");
    }
}

/// General matmuls: in f32 where both matrices are, and summed in f64 over batches.
#[test]
fn matmuls_and_gram_matrices() {
    let Some([cpu, cuda]) = devices() else { return };
    assert!(cuda.is_gpu() && !cpu.is_gpu());
    for (rows, inner, cols) in [(1, 1, 1), (5, 7, 3), (130, 64, 200), (300, 768, 257)] {
        let [theirs, ours] = [&cpu, &cuda].map(|device| {
            let mut draws = Draws::new(Key { seed: 18, step: 0, stream: 0 });
            let mut noise = |rows: usize, cols: usize| {
                let elements: Vec<f32> = (0..rows * cols).map(|_| draws.normal()).collect();
                device.tensor(rows, cols, &elements)
            };
            let (a, b) = (noise(rows, inner), noise(inner, cols));
            let d = noise(rows, cols);
            let mut sum = device.gram_sum(inner, cols);
            device.gram(&a, &d, &mut sum);
            device.gram(&a, &d, &mut sum);
            let sum: Vec<f32> = sum.to_vec().iter().map(|&x| x as f32).collect();
            [device.matmul(&a, &b).to_vec(), sum]
        });
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let far = distance(ours, theirs);
            assert!(far < 1e-5, "matmul {rows} x {inner} x {cols}: {far:.2e}");
        }
    }
}

#[test]
fn attention() {
    let Some(devices) = devices() else { return };
    // More heads of sequences than a card has SMs, so that blocks go from one to the next.
    let many: Vec<usize> = (0..20).map(|at| at * 103 % 257).collect();
    let short: Vec<usize> = (0..71).map(|at| if at == 9 { 130 } else { 3 }).collect();
    let cases: &[(usize, usize, &[usize], &[usize])] = &[
        (7, 64, &many, &many),
        (2, 64, &short, &short),
        (1, 64, &[130, 7, 200], &[130, 9, 200]),
        (1, 64, &[100, 0, 3], &[100, 2, 3]),
        (1, 64, &[64, 1, 33, 0], &[64, 2, 40, 3]),
        (3, 64, &[128, 0, 3, 100], &[128, 2, 3, 100]),
        (1, 4, &[1], &[1]),
        (2, 4, &[3, 1, 5], &[3, 1, 5]),
        (4, 12, &[32, 7, 31], &[32, 7, 31]),
        (3, 16, &[0, 3, 0, 70], &[0, 3, 2, 70]),
        (2, 24, &[63, 64, 65], &[63, 64, 65]),
        (2, 32, &[1, 0, 2], &[129, 20, 300]),
        (12, 64, &[256, 255, 1, 130], &[256, 255, 1, 130]),
        (2, 64, &[512, 511], &[512, 511]),
        (3, 64, &[38, 40, 5], &[256, 256, 256]),
        (2, 72, &[100], &[100]),
        (2, 128, &[512, 77], &[512, 77]),
        (1, 5, &[40], &[140]),
    ];
    for &(heads, width, queries, keys) in cases {
        let (q, k) =
            (Spans::of_lengths(queries.iter().copied()), Spans::of_lengths(keys.iter().copied()));
        let dim = heads * width;
        // Over a single key nothing depends on the query, and what is left of its gradient is rounding.
        let rates = if k.longest() == 1 { &[0.0][..] } else { &[0.0, 0.1, 0.5] };
        for &rate in rates {
            check(
                &format!("attention {heads} x {width}, {queries:?} over {keys:?}, {rate}"),
                &devices,
                &[],
                &[("q", q.rows(), dim, 1.0), ("kv", k.rows(), 2 * dim, 1.0)],
                |tape, _, x| {
                    Produced::Values(vec![tape.attention(x[0], x[1], heads, &q, &k, rate)])
                },
            );
        }
    }
}

/// The kernel that writes a gradient also computes the column sums that a bias wants: attention for its three,
/// the norm for that of the update before it.
#[test]
fn sums_for_biases_are_computed_with_the_gradients() {
    let Some(devices) = devices() else { return };
    for lengths in [&[0, 5, 0][..], &[33, 64, 7], &[100, 3, 0, 128], &[256, 0, 70, 129]] {
        let spans = Spans::of_lengths(lengths.iter().copied());
        let (heads, dim) = (2, 128);
        let weights = [
            ("wq", dim, dim, 0.1),
            ("bq", 1, dim, 0.5),
            ("wkv", dim, 2 * dim, 0.1),
            ("bkv", 1, 2 * dim, 0.5),
            ("wy", dim, dim, 0.1),
            ("by", 1, dim, 0.5),
            ("gamma", 1, dim, 1.0),
            ("beta", 1, dim, 0.5),
        ];
        let inputs = [("x", spans.rows(), dim, 1.0)];
        let name = format!("biases around attention, {lengths:?}");
        check_within(2e-2, &name, &devices, &weights, &inputs, |tape, ids, x| {
            let linear = |tape: &mut Tape<'_>, x, at: usize| {
                tape.linear(
                    x,
                    Affine { weight: ids[at], bias: Some(ids[at + 1]) },
                    Activation::None,
                )
            };
            let (q, kv) = (linear(tape, x[0], 0), linear(tape, x[0], 2));
            let y = tape.attention(q, kv, heads, &spans, &spans, 0.1);
            let update = linear(tape, y, 4);
            let norm = Norm::layer([ids[6], ids[7]], 1e-5);
            let (sum, normed) = tape.residual_norm(x[0], update, 0.1, norm);
            Produced::Values(vec![sum, normed])
        });
    }
}

#[test]
fn means_of_rows() {
    let Some([cpu, cuda]) = devices() else { return };
    for (rows, cols, ranges) in [
        (2, 1, vec![0..1, 1..2]),
        (70, 24, vec![0..70, 3..4, 5..5, 60..70]),
        (600, 513, vec![1..599, 0..9]),
    ] {
        let mut draws = Draws::new(Key { seed: 16, step: 0, stream: 0 });
        let x = draw(&mut draws, rows, cols, 1.0);
        let [theirs, ours] = [&cpu, &cuda].map(|device| {
            let mut params = Params::new(device);
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let x = tape.input(device.tensor(rows, cols, &x), false);
            let backwards: Indices = (0..rows as u32).rev().collect();
            let mut means = device.row_means(tape.value(x), &ranges);
            means.extend(device.selected_means(tape.value(x), &backwards, &ranges));
            means
        });
        assert!(distance(&ours, &theirs) < TOLERANCE, "means of {rows} x {cols}");
    }
}

#[test]
fn softmax_over_the_vocabulary() {
    let Some(devices) = devices() else { return };
    for (rows, dim, entries) in
        [(1, 8, 9), (131, 4, 521), (64, 48, 1000), (77, 64, 31_987), (600, 256, 8001)]
    {
        let targets = some_rows(rows, entries as u32);
        check(
            &format!("tied softmax {rows} x {dim} over {entries}"),
            &devices,
            &[("table", entries, dim, 0.5), ("bias", 1, entries, 0.5)],
            &[("hidden", rows, dim, 0.5)],
            |tape, ids, x| {
                Produced::Loss(tape.tied_cross_entropy(
                    x[0],
                    ids[0],
                    ids[1],
                    &targets,
                    1.0 / rows as f32,
                ))
            },
        );
    }
    let nothing: Indices = Vec::new().into();
    check(
        "tied softmax of no rows",
        &devices,
        &[("table", 9, 4, 0.5), ("bias", 1, 9, 0.5)],
        &[("hidden", 0, 4, 0.5)],
        |tape, ids, x| Produced::Loss(tape.tied_cross_entropy(x[0], ids[0], ids[1], &nothing, 1.0)),
    );
    let [cpu, cuda] = &devices;
    for exact in [false, true] {
        let logits = [cpu, cuda].map(|device| {
            let mut draws = Draws::new(Key { seed: 15, step: 0, stream: 0 });
            let mut params = Params::new(device);
            let table =
                params.add("table", device.tensor(301, 24, &draw(&mut draws, 301, 24, 1.0)));
            let bias = params.add("bias", device.tensor(1, 301, &draw(&mut draws, 1, 301, 1.0)));
            let hidden = device.tensor(7, 24, &draw(&mut draws, 7, 24, 1.0));
            if exact {
                let mut y = device.empty(7, 301);
                device.kernels().logits(&hidden, params.value(table), params.value(bias), &mut y);
                return y.to_vec();
            }
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let hidden = tape.input(hidden, false);
            tape.logits(hidden, table, bias).to_vec()
        });
        let (far, most) = (distance(&logits[1], &logits[0]), if exact { 1e-6 } else { 1e-3 });
        println!("logits, exact {exact:<30} {far:.1e}");
        assert!(far < most, "logits: {far:.2e}");
    }
}

#[test]
fn adam() {
    let Some(devices) = devices() else { return };
    let sizes = [(1, 1), (1, 768), (300, 77), (1000, 301)];
    for (clip, poison) in [(f32::INFINITY, false), (0.5, false), (0.5, true)] {
        let results = devices.each_ref().map(|device| {
            let mut draws = Draws::new(Key { seed: 14, step: 0, stream: 0 });
            let mut make = |scale: f32, square: bool| -> Vec<Tensor> {
                let tensor = |&(rows, cols): &(usize, usize)| {
                    let mut elements: Vec<f32> =
                        (0..rows * cols).map(|_| scale * draws.normal()).collect();
                    if square {
                        elements.iter_mut().for_each(|x| *x *= *x);
                    }
                    device.tensor(rows, cols, &elements)
                };
                sizes.iter().map(tensor).collect()
            };
            let (mut values, mut grads) = (make(1.0, false), make(0.1, false));
            let (mut means, mut squares) = (make(0.01, false), make(0.01, true));
            if poison {
                let mut elements = grads[2].to_vec();
                elements[99] = f32::NAN;
                grads[2].write(&elements);
            }
            let mut slots: Vec<AdamSlot<'_>> = values
                .iter_mut()
                .zip(&grads)
                .zip(means.iter_mut().zip(&mut squares))
                .zip(1..)
                .map(|(((value, grad), (mean, square)), number)| AdamSlot {
                    value,
                    grad,
                    mean,
                    square,
                    lr: 1e-2,
                    decay: 0.01,
                    number,
                })
                .collect();
            let step = AdamStep { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, clip };
            let mut norm = device.zeros(1, 1);
            device.kernels().adam(&mut slots, step, &mut norm);
            let all = [&norm].into_iter().chain(&values).chain(&means).chain(&squares);
            all.map(Tensor::to_vec).collect::<Vec<_>>()
        });
        for (at, (ours, theirs)) in results[1].iter().zip(&results[0]).enumerate() {
            if poison && at == 0 {
                assert!(ours[0].is_nan() && theirs[0].is_nan());
                continue;
            }
            let far = distance(ours, theirs);
            assert!(far < 1e-5, "adam, matrix {at}: {far:.2e}");
        }
        println!("adam, clip {clip}, poisoned {poison}");
    }
}

#[test]
fn weights_are_rounded_again_when_they_change() {
    let Some([_, cuda]) = devices() else { return };
    let mut params = Params::new(&cuda);
    let weight = params.add("weight", cuda.tensor(8, 8, &[1.0; 64]));
    let bias = params.add("bias", cuda.zeros(1, 8));
    let multiplied = |params: &mut Params| {
        let mut tape = Tape::new(params, Mode::Evaluate);
        let x = tape.input(cuda.tensor(1, 8, &[1.0; 8]), false);
        let y = tape.linear(x, Affine { weight, bias: Some(bias) }, Activation::None);
        tape.value(y).to_vec()
    };
    assert_eq!(multiplied(&mut params), [8.0; 8]);
    params.value_mut(weight).write(&[2.0; 64]);
    assert_eq!(multiplied(&mut params), [16.0; 8]);
    cuda.kernels().fill(params.value_mut(weight), 0.5);
    assert_eq!(multiplied(&mut params), [4.0; 8]);
}

#[test]
fn a_nan_reaches_the_loss() {
    let Some([_, cuda]) = devices() else { return };
    let mut params = Params::new(&cuda);
    let table = params.add("table", cuda.tensor(40, 8, &[0.1; 320]));
    let bias = params.add("bias", cuda.zeros(1, 40));
    let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
    let mut elements = vec![0.5; 24];
    elements[9] = f32::NAN;
    let x = tape.input(cuda.tensor(3, 8, &elements), true);
    let kv = tape.input(cuda.tensor(3, 16, &[0.2; 48]), true);
    let spans = Spans::of_lengths([3]);
    let y = tape.attention(x, kv, 2, &spans, &spans, 0.1);
    let score = tape.tied_cross_entropy(y, table, bias, &vec![1, 2, 3].into(), 1.0);
    assert!(score.to_vec()[0].is_nan());
}

/// The most likely token of each row, the first of equals, is the CPU's. Logits are small whole numbers, exact in every
/// precision, and many are equal.
#[test]
fn best_tokens() {
    let Some(devices) = devices() else { return };
    for (rows, vocabulary) in [(1, 1), (3, 33), (70, 1001), (9, 70_000), (5000, 300)] {
        let best = devices.each_ref().map(|device| {
            let mut draws = Draws::new(Key { seed: 14, step: 0, stream: 0 });
            let mut whole = |rows: usize, cols: usize| {
                let numbers: Vec<f32> = (0..rows * cols).map(|_| draws.normal().round()).collect();
                device.tensor(rows, cols, &numbers)
            };
            let (hidden, table) = (whole(rows, 16), whole(vocabulary, 16));
            device.kernels().best_tokens(&hidden, &table, &whole(1, vocabulary), 1)
        });
        assert_eq!(best[1], best[0], "{rows} x {vocabulary}");
    }
}

/// Devices that are opened several times in one process work side by side, each as if it were alone.
#[test]
fn devices_side_by_side_compute_what_one_does() {
    let Some([_, cuda]) = devices() else { return };
    let spans = Spans::of_lengths([17, 5, 90, 33, 1]);
    let train = |device: &Device, seed: u64| -> Vec<f32> {
        let mut draws = Draws::new(Key { seed, step: 0, stream: 0 });
        let mut params = Params::new(device);
        let ids = ["a", "b"].map(|name| {
            let elements = draw(&mut draws, 64, 64, 0.1);
            params.add(name, device.tensor(64, 64, &elements))
        });
        let rows = spans.rows();
        let input = draw(&mut draws, rows, 64, 1.0);
        for _ in 0..200 {
            let x = device.tensor(rows, 64, &input);
            for id in ids {
                let y = device.matmul(&x, params.value(id));
                let mut sum = device.gram_sum(64, 64);
                device.gram(&x, &y, &mut sum);
                let new: Vec<f32> =
                    sum.to_vec().iter().map(|&x| (x as f32 * 1e-3).tanh()).collect();
                *params.value_mut(id) = device.tensor(64, 64, &new);
            }
        }
        ids.iter().flat_map(|&id| params.value(id).to_vec()).collect()
    };
    let alone: Vec<Vec<f32>> = (0..6).map(|seed| train(&cuda, seed)).collect();
    let beside: Vec<Vec<f32>> = std::thread::scope(|scope| {
        let one = |seed| scope.spawn(move || train(&Device::cuda().unwrap(), seed));
        let threads: Vec<_> = (0..6).map(one).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(alone == beside, "the same bits");
}

/// One rank has nobody to add up with: matrices stay as they are, in the order of the device's work.
#[test]
fn one_rank_adds_up_by_nccl() {
    let Some([_, cuda]) = devices() else { return };
    let id = match cuda.kernels().group_id() {
        Ok(id) => id.expect("GPUs are joined by an id"),
        Err(error) => return terms::tests::left_out(&error.to_string()),
    };
    let group = cuda.kernels().join(&id, 0, 1).unwrap().expect("a group");
    println!("{}", group.description());
    let mut a = cuda.tensor(2, 2, &[1.0, 2.0, 3.0, 4.0]);
    let mut b = cuda.zeros(1, 3);
    cuda.kernels().fill(&mut b, 5.0);
    group.sum(&mut [&mut a, &mut b]);
    group.settle();
    assert_eq!((a.to_vec(), b.to_vec()), (vec![1.0, 2.0, 3.0, 4.0], vec![5.0; 3]));
    cuda.kernels().fill(&mut b, 6.0);
    assert_eq!(b.to_vec(), [6.0; 3]);
}
