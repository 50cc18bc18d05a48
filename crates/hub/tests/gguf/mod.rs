//! GGUF files as gguf-py writes them, against what gguf-py and transformers read out of them (`fixtures/gguf/make.py`).

use std::fs;
use std::path::{Path, PathBuf};

use hub::weights::CheckpointWeights;
use serde::Deserialize;
use tensor::Device;

use super::{TOLERANCE, distance, fixture, open, read, states};

fn file(name: &str) -> PathBuf {
    fixture("gguf").join(name)
}

fn floats(name: &str) -> Vec<f32> {
    let bytes = fs::read(file(name)).unwrap();
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

#[test]
fn models_have_the_states_that_transformers_reads_out_of_the_file() {
    for name in ["llama", "qwen2", "gemma2", "gemma3"] {
        let mut checkpoint = open(&file(&format!("{name}.gguf")));
        assert_eq!(checkpoint.summary.left_over, Vec::<String>::new(), "{name}");
        let sequences: Vec<Vec<u32>> = read(&file(&format!("{name}.json")));
        let expected = floats(&format!("{name}.f32"));
        let mut expected = expected.as_slice();
        for ids in &sequences {
            for (layer, ours) in
                states(&mut checkpoint, std::slice::from_ref(ids)).iter().enumerate()
            {
                let (theirs, rest) = expected.split_at(ours.len());
                let far = distance(ours, theirs);
                assert!(far <= TOLERANCE, "{name}, layer {layer}: {far:e}");
                expected = rest;
            }
        }
        assert!(expected.is_empty());
    }
}

#[test]
fn every_kind_of_block_has_the_numbers_that_gguf_py_says() {
    let weights = CheckpointWeights::open(&file("kinds.gguf")).unwrap();
    let expected = floats("kinds.f32");
    let mut expected = expected.as_slice();
    for name in ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "BF16", "F16"] {
        let ours = weights.get(name).unwrap().numbers().unwrap();
        let (theirs, rest) = expected.split_at(ours.len());
        assert!(distance(&ours, theirs) <= 1e-6, "{name}");
        expected = rest;
    }
    assert!(expected.is_empty());
}

#[test]
fn a_file_that_is_cut_or_forged_is_refused() {
    let whole = fs::read(file("gemma3.gguf")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let refused = |bytes: &[u8], reason: &str| {
        fs::write(&path, bytes).unwrap();
        let error = hub::open(&path, &Device::cpu(1).unwrap()).err().expect("refused").to_string();
        assert!(error.contains(reason) && error.contains("model.gguf"), "{error}");
    };
    for length in [10, 100, 5000, whole.len() - 1] {
        refused(&whole[..length], "is cut short");
    }
    refused(b"GGML, as it was long ago", "is no GGUF file");
    let with = |from: &str, to: &str| {
        let at = whole.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        let mut bytes = whole.clone();
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
        bytes
    };
    let architecture = with("general.architecture", "general.architecturf");
    refused(&architecture, "is none of llama, qwen2, qwen3, gemma, gemma2, gemma3");
    let kind = with("tokenizer.ggml.model", "tokenizer.ggml.modem");
    refused(&kind, "which is neither llama nor gpt2");
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    ids: Vec<u32>,
    middle: Vec<Vec<f32>>,
    last: Vec<Vec<f32>>,
}

/// SmolLM2-135M-Instruct, Q4_1: the first eight columns of layer 15 and of the last.
#[test]
fn a_real_model_has_the_ids_and_states_of_transformers() {
    const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
    let path = std::env::var_os("ISOGLOSS_MODELS").map(|folder| Path::new(&folder).join(NAME));
    let Some(path) = path.filter(|path| path.is_file()) else {
        return terms::tests::left_out(&format!("{NAME}, which is not in $ISOGLOSS_MODELS"));
    };
    let mut checkpoint = open(&path);
    let dim = checkpoint.model.config().dim;
    for Sentence { text, ids, middle, last } in read::<Vec<Sentence>>(&file("smollm2.json")) {
        let mut reader = checkpoint.vocabulary.reader("any", 64).unwrap();
        assert_eq!(reader.sentence(&text).ids, ids, "{text}");
        let states = states(&mut checkpoint, &[ids]);
        for (theirs, layer) in [(middle, 15), (last, states.len() - 2)] {
            let rows = states[layer].chunks(dim);
            let ours: Vec<f32> = rows.flat_map(|row| row[..8].to_vec()).collect();
            let far = distance(&ours, &theirs.concat());
            assert!(far <= 1e-4, "{text}, layer {layer}: {far:e}");
        }
    }
}
