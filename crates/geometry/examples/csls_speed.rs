//! CSLS beside the matrix product that it needs, by turns.
//!
//!     cargo run --release -p isogloss-geometry --example csls_speed -- 50000 300 3
//!
//! The product that is needed is one of all words by all words; its time is taken at the rate that
//! plain products of 2048 x 2048 x 2048 reach on as many threads in the same run.

use std::time::Instant;

use geometry::Matrix;
use geometry::search::{Measure, Scores, unwatched};
use tensor::random::{Draws, Key};
use tensor::{Activation, Affine, Device, Mode, Params, Tape};

fn main() {
    let argument = |at: usize, otherwise: usize| {
        std::env::args().nth(at).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (words, dim, turns) = (argument(1, 50_000), argument(2, 300), argument(3, 3));
    let queries = words.min(1500);
    let right: Vec<(u32, Vec<u32>)> = (0..queries as u32).map(|word| (word, vec![word])).collect();
    let device = Device::cpu(0).expect("the processor");
    for turn in 1..=turns {
        let peak = peak(&device);
        let (source, target) = (noise(words, dim, 1), noise(words, dim, 2));
        let start = Instant::now();
        let scores = Scores::new(source, target, Measure::Csls { k: 10 }, &device, &unwatched);
        let means = start.elapsed().as_secs_f64();
        let ranks = scores.ranks(&right);
        let all = start.elapsed().as_secs_f64();
        let rank = ranks.iter().sum::<usize>() as f64 / queries as f64;
        let needed = 2.0 * (words * words * dim + queries * words * dim) as f64 / peak / 1e9;
        println!(
            "turn {turn}: {words} x {words} x {dim}: means {means:.1} s, with {queries} queries \
             {all:.1} s; the products at {peak:.0} GFLOP/s {needed:.1} s; ratio {:.2}; mean rank \
             {rank:.0}; peak memory {} MB",
            all / needed,
            peak_memory() >> 20,
        );
    }
}

fn noise(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut draws = Draws::new(Key { seed, step: 0, stream: 0 });
    Matrix::new(rows, cols, (0..rows * cols).map(|_| draws.normal()).collect())
}

/// The best rate of a plain large product, in GFLOP/s.
fn peak(device: &Device) -> f64 {
    const SIDE: usize = 2048;
    let mut params = Params::new(device);
    let weight = params.add("weight", device.zeros(SIDE, SIDE));
    let bias = params.add("bias", device.zeros(1, SIDE));
    let time = |_| {
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let x = tape.input(device.zeros(SIDE, SIDE), false);
        let start = Instant::now();
        tape.linear(x, Affine { weight, bias: Some(bias) }, Activation::None);
        start.elapsed().as_secs_f64()
    };
    let fastest = (0..8).map(time).fold(f64::INFINITY, f64::min);
    2.0 * (SIDE as f64).powi(3) / fastest / 1e9
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    kilobytes.unwrap_or(0u64) * 1024
}
