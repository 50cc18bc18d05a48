//! `isogloss bench`, as it is typed.

mod common;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::isogloss;

fn bench(flags: &[&str]) -> Output {
    isogloss(Path::new("."), &[&["bench", "mlm"], flags].concat())
}

fn result(flags: &[&str]) -> Value {
    let output = isogloss(Path::new("."), &[&["bench"], flags, &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn positive(result: &Value, keys: &[&str]) {
    for key in keys {
        assert!(result[*key].as_f64().is_some_and(|number| number > 0.0), "{key} in {result}");
    }
}

const SMALL: [&str; 14] = [
    "--batch", "2", "--length", "16", "--dim", "32", "--heads", "2", "--layers", "2", "--vocab",
    "100", "--steps", "4",
];

#[test]
fn it_prints_one_json_object() {
    let result = result(&[&["mlm"], &SMALL[..], &["--threads", "2", "--device", "cpu"]].concat());
    positive(&result, &["tokens_per_s", "gflops", "gemm_peak_gflops", "peak_rss_bytes"]);
    // Random tokens cannot be guessed: after four small steps the loss is still about ln 100.
    let loss = result["loss"].as_f64().unwrap();
    assert!((loss - 100.0_f64.ln()).abs() < 0.5, "{loss}");
}

#[test]
fn encoding_takes_a_third_of_the_operations_or_less() {
    let on_cpu =
        |what| result(&[&[what], &SMALL[..], &["--threads", "2", "--device", "cpu"]].concat());
    let [encode, mlm] = ["encode", "mlm"].map(on_cpu);
    positive(&encode, &["tokens_per_s", "gflops", "gemm_peak_gflops", "peak_rss_bytes"]);
    assert!(encode["loss"].is_null(), "{encode}");
    assert_eq!(encode["parameters"], mlm["parameters"]);
    let operations = |result: &Value| {
        result["gflops"].as_f64().unwrap() / result["tokens_per_s"].as_f64().unwrap()
    };
    // Forward alone is a third of the layers' operations, and there is no softmax.
    assert!(operations(&encode) < operations(&mlm) / 3.0, "{encode} {mlm}");
}

#[test]
fn a_search_finds_the_same_on_any_number_of_threads() {
    let on = |threads| {
        let flags =
            "search --rows 700 --columns 900 --dim 24 --neighbors 5 --repeats 2 --device cpu";
        let mut flags: Vec<&str> = flags.split(' ').collect();
        flags.extend(["--threads", threads]);
        result(&flags)
    };
    let [one, two] = ["1", "2"].map(on);
    positive(&one, &["seconds", "fastest_s", "first_s", "gflops", "mean_cosine"]);
    assert_eq!(one["mean_cosine"], two["mean_cosine"]);
    // The five nearest of some hundreds of random vectors lie between chance and the same direction.
    assert!((0.3..0.8).contains(&one["mean_cosine"].as_f64().unwrap()), "{one}");
}

#[test]
fn the_same_seed_gives_the_same_loss_on_any_number_of_threads() {
    let loss = |threads| {
        let output = bench(&[&SMALL[..], &["--threads", threads, "--json"]].concat());
        let result: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        result["loss"].as_f64().unwrap().to_bits()
    };
    assert_eq!(loss("1"), loss("2"));
}

#[test]
fn nonsense_to_encode_or_search_is_refused() {
    for (flags, reason) in [
        (&["encode", "--length", "2"][..], "--length must be at least 3"),
        (&["encode", "--batch", "0"], "--batch must not be 0"),
        (&["encode", "--batch", "18446744073709551615"], "at most 100000000"),
        (&["search", "--rows", "0"], "--rows"),
        (&["search", "--device", "abacus"], "invalid value 'abacus'"),
    ] {
        let output = isogloss(Path::new("."), &[&["bench"], flags].concat());
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{flags:?}: {message}");
    }
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for (flags, reason) in [
        (&["--heads", "3"][..], "heads: 3 heads do not divide dim = 256"),
        (&["--dim", "0"], "dim: must not be 0"),
        (&["--vocab", "0"], "vocabulary: must not be 0"),
        (&["--steps", "0"], "--steps must not be 0"),
        (&["--batch", "1", "--length", "6"], "at least 7"),
        (&["--vocab", "18446744073709551615"], "vocabulary: 18446744073709551615 is more than"),
        (&["--batch", "18446744073709551615"], "at most 100000000"),
        (&["--dim", "4611686018427387904"], "dim: 4611686018427387904 is more than"),
        (&["--threads", "100000000"], "100000000 threads are more than 4096"),
        (&["--device", "abacus"], "possible values: auto, cpu, cpu-bf16, cuda"),
    ] {
        let output = bench(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{flags:?}: {message}");
        assert!(output.stdout.is_empty(), "{flags:?}");
    }
}
