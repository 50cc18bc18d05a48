//! `isogloss bench`, as it is typed.

mod common;

use std::path::Path;

use serde_json::Value;

use crate::common::{done, refused};

fn result(flags: &str) -> Value {
    done(Path::new("."), &format!("bench {flags}"))
}

fn positive(result: &Value, keys: &[&str]) {
    for key in keys {
        assert!(result[*key].as_f64().is_some_and(|number| number > 0.0), "{key} in {result}");
    }
}

const SMALL: &str = "--batch 2 --length 16 --dim 32 --heads 2 --layers 2 --vocab 100 --steps 4";

#[test]
fn it_prints_one_json_object() {
    let result = result(&format!("mlm {SMALL} --threads 2 --device cpu"));
    positive(&result, &["tokens_per_s", "gflops", "gemm_peak_gflops", "peak_rss_bytes"]);
    // Random tokens cannot be guessed: after four small steps the loss is still about ln 100.
    let loss = result["loss"].as_f64().unwrap();
    assert!((loss - 100.0_f64.ln()).abs() < 0.5, "{loss}");
}

#[test]
fn encoding_takes_a_third_of_the_operations_or_less() {
    let on_cpu = |what| result(&format!("{what} {SMALL} --threads 2 --device cpu"));
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
        result(&format!("{flags} --threads {threads}"))
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
        let result = result(&format!("mlm {SMALL} --threads {threads}"));
        result["loss"].as_f64().unwrap().to_bits()
    };
    assert_eq!(loss("1"), loss("2"));
}

#[test]
fn nonsense_is_refused_with_a_reason() {
    for (flags, reason) in [
        ("encode --length 2", "--length must be at least 3"),
        ("encode --batch 0", "--batch must not be 0"),
        ("encode --batch 18446744073709551615", "at most 100000000"),
        ("search --rows 0", "--rows"),
        ("search --device abacus", "invalid value 'abacus'"),
        ("mlm --heads 3", "heads: 3 heads do not divide dim = 256"),
        ("mlm --dim 0", "dim: must not be 0"),
        ("mlm --vocab 0", "vocabulary: must not be 0"),
        ("mlm --steps 0", "--steps must not be 0"),
        ("mlm --batch 1 --length 6", "at least 7"),
        ("mlm --vocab 18446744073709551615", "vocabulary: 18446744073709551615 is more than"),
        ("mlm --batch 18446744073709551615", "at most 100000000"),
        ("mlm --dim 4611686018427387904", "dim: 4611686018427387904 is more than"),
        ("mlm --threads 100000000", "100000000 threads are more than 4096"),
        ("mlm --device abacus", "possible values: auto, cpu, cpu-bf16, cuda"),
    ] {
        refused(Path::new("."), &format!("bench {flags}"), 2, reason);
    }
}
