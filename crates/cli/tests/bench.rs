//! `isogloss bench`, as it is typed.

mod common;

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::common::isogloss;

fn bench(flags: &[&str]) -> Output {
    isogloss(Path::new("."), &[&["bench", "mlm"], flags].concat())
}

const SMALL: [&str; 14] = [
    "--batch", "2", "--length", "16", "--dim", "32", "--heads", "2", "--layers", "2", "--vocab",
    "100", "--steps", "4",
];

#[test]
fn it_prints_one_json_object() {
    let output = bench(&[&SMALL[..], &["--threads", "2", "--device", "cpu", "--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let facts: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    for key in ["tokens_per_s", "gflops", "gemm_peak_gflops", "peak_rss_bytes"] {
        assert!(facts[key].as_f64().is_some_and(|number| number > 0.0), "{key} in {facts}");
    }
    // Random tokens cannot be guessed: after four small steps the loss is still about ln 100.
    let loss = facts["loss"].as_f64().unwrap();
    assert!((loss - 100.0_f64.ln()).abs() < 0.5, "{loss}");
}

#[test]
fn the_same_seed_gives_the_same_loss_on_any_number_of_threads() {
    let loss = |threads| {
        let output = bench(&[&SMALL[..], &["--threads", threads, "--json"]].concat());
        let facts: Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
        facts["loss"].as_f64().unwrap().to_bits()
    };
    assert_eq!(loss("1"), loss("2"));
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
        (&["--device", "abacus"], "unknown device 'abacus'; there are: auto, cpu, cuda"),
    ] {
        let output = bench(flags);
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(reason), "{flags:?}: {message}");
        assert!(output.stdout.is_empty(), "{flags:?}");
    }
}
