//! Models that are made of other parts than BERT, against the states, logits and gradients that `transformers` computes
//! itself, of a batch that is filled up to one length (`fixtures/make.py`).

use std::fs;
use std::path::Path;

use encoder::{Batch, MaskedTokens, NormPart, ParamRole, Request};
use hub::Checkpoint;
use serde::Deserialize;
use serde_json::{Value, json};
use tensor::{Device, Mode, Spans, Tape, Tensor};

use common::{copy, edit_json, fixture, floats, refused};

mod common;
mod gguf;

const FAMILIES: [&str; 13] = [
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3-both-sides",
    "eurobert",
    "modernbert",
    "gpt2",
    "bloom",
    "xglm",
];

/// What the largest difference may be, as a share of the largest number of a layer.
const TOLERANCE: f32 = 1e-5;

#[derive(Deserialize)]
struct Sequence {
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Encoded {
    text: String,
    ids: Vec<u32>,
}

fn open(folder: &Path) -> Checkpoint {
    hub::open(folder, &Device::cpu(2).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn sequences(family: &str) -> Vec<Vec<u32>> {
    let sequences: Vec<Sequence> = read(&fixture(family).join("sequences.json"));
    sequences.into_iter().map(|sequence| sequence.ids).collect()
}

fn batch(sequences: &[Vec<u32>]) -> Batch {
    let spans = Spans::of_lengths(sequences.iter().map(Vec::len));
    Batch { language: 0, tokens: sequences.concat().into(), spans, segments: None }
}

/// The hidden states after the embeddings and after each layer (the last of them as heads read it), and the logits.
fn states(checkpoint: &mut Checkpoint, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let mut tape = Tape::new(&mut checkpoint.params, Mode::Evaluate);
    let encoded = checkpoint.model.encode(&mut tape, &batch(sequences), Request::default());
    let logits = checkpoint.model.logits(&mut tape, 0, encoded.output);
    let layers = encoded.hidden.len() - 1;
    let states = encoded.hidden[..layers].iter().chain([&encoded.output]);
    let mut all: Vec<Vec<f32>> = states.map(|&state| tape.value(state).to_vec()).collect();
    all.push(logits.to_vec());
    all
}

/// The same as `transformers` has them.
fn expected(family: &str, checkpoint: &Checkpoint, sequences: &[Vec<u32>]) -> Vec<Vec<f32>> {
    let mut numbers = floats(&fixture(family).join("states.f32")).into_iter();
    let config = checkpoint.model.config();
    let (layers, dim, entries) = (config.layers, config.dim, config.entries(0));
    let mut all = vec![Vec::new(); layers + 2];
    for sequence in sequences {
        for (number, state) in all[..=layers].iter_mut().enumerate() {
            state.extend(numbers.by_ref().take(sequence.len() * dim));
            if number == layers {
                let body: Vec<f32> = numbers.by_ref().take(sequence.len() * dim).collect();
                assert!(state.ends_with(&body), "{family}: the last state is what heads read");
            }
        }
        all[layers + 1].extend(numbers.by_ref().take(sequence.len() * entries));
    }
    assert_eq!(numbers.next(), None);
    all
}

/// The largest difference, as a share of the largest number.
fn distance(ours: &[f32], theirs: &[f32]) -> f32 {
    assert_eq!(ours.len(), theirs.len());
    let largest = theirs.iter().fold(0f32, |most, x| most.max(x.abs()));
    let far = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs());
    far.fold(0f32, |most, x| if x <= most { most } else { x }) / largest
}

fn check_states(family: &str, folder: &Path) {
    let (mut checkpoint, sequences) = (open(folder), sequences(family));
    assert_eq!(checkpoint.summary.left_over, Vec::<String>::new(), "{family}");
    assert_eq!(checkpoint.summary.missing, Vec::<String>::new(), "{family}");
    let expected = expected(family, &checkpoint, &sequences);
    let ours = states(&mut checkpoint, &sequences);
    for (layer, (ours, theirs)) in ours.iter().zip(&expected).enumerate() {
        let distance = distance(ours, theirs);
        assert!(distance <= TOLERANCE, "{family}, state {layer}: {distance:.1e}");
    }
}

#[test]
fn every_family_gives_the_states_and_logits_of_transformers() {
    FAMILIES.into_iter().for_each(|family| check_states(family, &fixture(family)));
}

/// One state too early, or a token more before the text, is not what `transformers` has: the comparison would see either.
#[test]
fn the_comparison_sees_small_mistakes() {
    for family in FAMILIES {
        let (mut checkpoint, sequences) = (open(&fixture(family)), sequences(family));
        let expected = expected(family, &checkpoint, &sequences);
        let ours = states(&mut checkpoint, &sequences);
        for layer in 1..checkpoint.model.config().layers {
            assert!(distance(&ours[layer - 1], &expected[layer]) > 1e-2, "{family}: {layer}");
        }
        let longer: Vec<Vec<u32>> = sequences.iter().map(|ids| [&[1], &ids[..]].concat()).collect();
        let begun = states(&mut checkpoint, &longer).swap_remove(1);
        let dim = checkpoint.model.config().dim;
        let first = distance(
            &begun[dim..(sequences[0].len() + 1) * dim],
            &expected[1][..sequences[0].len() * dim],
        );
        assert!(first > 1e-3, "{family}: {first}");
    }
}

#[test]
fn gradients_of_one_step_are_those_of_transformers() {
    for family in ["modernbert", "qwen3", "gemma3", "gpt2"] {
        let (mut checkpoint, sequences) = (open(&fixture(family)), sequences(family));
        let batch = batch(&sequences);
        let predicted = |span: std::ops::Range<usize>| span.start as u32..span.end as u32 - 1;
        let rows: Vec<u32> = batch.spans.iter().flat_map(predicted).collect();
        let targets = rows.iter().map(|&row| batch.tokens[row as usize + 1]).collect();
        let masked = MaskedTokens { rows: rows.into(), targets };
        let mode = Mode::Train { seed: 1, step: 1, micro_batch: 0 };
        let mut tape = Tape::new(&mut checkpoint.params, mode);
        checkpoint.model.mlm_loss(&mut tape, &batch, &masked, 1.0);
        tape.backward();

        // Gradients have the names of their weights, so that they are read as weights are.
        let folder = copy(family);
        let path = |name: &str| folder.path().join(name);
        fs::rename(path("gradients.safetensors"), path("model.safetensors")).unwrap();
        let theirs = open(folder.path());
        let mut compared = 0;
        for param in checkpoint.model.params() {
            if param.role == ParamRole::MlmBias && family != "modernbert" {
                continue;
            }
            let expected = theirs.model.param(param.role, None).unwrap();
            let mut expected = theirs.params.value(expected).to_vec();
            if family.starts_with("gemma") && is_scale(param.role) {
                expected.iter_mut().for_each(|x| *x -= 1.0);
            }
            let ours = checkpoint.params.grad(param.id).map(Tensor::to_vec).unwrap_or_default();
            let distance = distance(&ours, &expected);
            assert!(distance <= 2e-5, "{family}, {}: {distance:.1e}", param.role);
            compared += 1;
        }
        assert!(compared > 15, "{family}: {compared}");
    }
}

fn is_scale(role: ParamRole) -> bool {
    role.to_string().ends_with(&NormPart::Gamma.to_string())
}

#[test]
fn a_later_token_changes_no_earlier_state_of_a_decoder() {
    for family in FAMILIES {
        let (mut checkpoint, sequences) = (open(&fixture(family)), sequences(family));
        let mut changed = sequences[0].clone();
        let last = changed.len() - 1;
        changed[last] = if changed[last] == 7 { 8 } else { 7 };
        let before = states(&mut checkpoint, &sequences[..1]).pop().unwrap();
        let after = states(&mut checkpoint, &[changed]).pop().unwrap();
        let (entries, causal) = (
            checkpoint.model.config().entries(0),
            checkpoint.model.config().parts.attention.causal,
        );
        let same = before[..last * entries] == after[..last * entries];
        assert_eq!(same, causal, "{family}");
        let masked = ["eurobert", "modernbert"].contains(&family);
        assert_eq!(checkpoint.summary.has_mlm_head, masked, "{family}");
    }
}

#[test]
fn text_has_the_ids_that_transformers_gives_it() {
    let older = ["bert", "bert-untied", "distilbert", "roberta", "xlm-roberta", "xlm-sinusoidal"];
    for family in FAMILIES.into_iter().chain(older).chain(["xlm-roberta-xl"]) {
        let checkpoint = open(&fixture(family));
        let mut reader = checkpoint.vocabulary.reader("fr", 1000).unwrap();
        for Encoded { text, ids } in read::<Vec<Encoded>>(&fixture(family).join("text.json")) {
            assert_eq!(reader.sentence(&text).ids, ids, "{family}: {text}");
        }
        // Word by word, the same subwords as in running text.
        let words = reader.raw_words(["the", "cat", "sat"]);
        assert_eq!(words.firsts.len(), 3);
        let begun = ["the cat sat", " the cat sat"].map(|text| reader.sentence(text).ids);
        assert!(begun.contains(&reader.with_special_tokens(&words.ids)), "{family}");
    }
}

/// Configurations as transformers 4 wrote them say the same.
#[test]
fn older_configurations_are_read_too() {
    let alter = |family: &str, change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let folder = copy(family);
        let path = folder.path().join("config.json");
        edit_json(&path, |config| change(config.as_object_mut().unwrap()));
        check_states(family, folder.path());
    };
    alter("llama", &|keys| {
        let mut rope = keys.remove("rope_parameters").unwrap();
        keys.insert("rope_theta".into(), rope["rope_theta"].take());
        rope.as_object_mut().unwrap().remove("rope_theta");
        keys.insert("rope_scaling".into(), rope);
    });
    alter("gemma3", &|keys| {
        keys.remove("rope_parameters");
        keys.insert("rope_theta".into(), json!(1000.0));
        keys.insert("rope_local_base_freq".into(), json!(50.0));
    });
    alter("gemma2", &|keys| _ = keys.remove("layer_types"));
    alter("modernbert", &|keys| {
        keys.remove("rope_parameters");
        keys.remove("layer_types");
        keys.insert("global_rope_theta".into(), json!(1000.0));
        keys.insert("local_rope_theta".into(), json!(50.0));
        keys.insert("global_attn_every_n_layers".into(), json!(2));
    });
}

#[test]
fn what_is_not_known_is_refused_with_a_reason_and_a_way() {
    let refused = |family: &str, key: &str, value: Value| {
        refused(family, |folder| edit_json(&folder.join("config.json"), |all| all[key] = value))
    };
    let other = refused("llama", "model_type", json!("mamba"));
    assert!(other.contains("xglm, llama, mistral") && other.contains("states.npy"), "{other}");
    let rope = refused("llama", "rope_parameters", json!({ "rope_type": "longrope" }));
    assert!(rope.contains("RoPE of type `longrope` is none of default, linear"), "{rope}");
    let kinds = refused("gemma3", "layer_types", json!(vec!["chunked_attention"; 3]));
    assert!(kinds.contains("`layer_types` names \"chunked_attention\""), "{kinds}");
    let heads = refused("qwen3", "num_key_value_heads", json!(3));
    assert!(heads.contains("3 do not divide 4 heads"), "{heads}");
    let few = refused("qwen3", "head_dim", json!(10));
    assert!(few.contains("q_proj.weight of shape [32, 12], not [40, 12]"), "{few}");
    let scaled = refused("gpt2", "scale_attn_by_inverse_layer_idx", json!(true));
    assert!(scaled.contains("scores scaled by layer"), "{scaled}");
}
