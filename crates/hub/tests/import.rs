//! Checkpoints that `transformers` has written, against the states and logits that it computes itself
//! (`fixtures/make.py`).

use std::fs;
use std::path::Path;

use encoder::{Batch, HiddenActivation, Request};
use hub::{Checkpoint, ExportSource, ModelCard};
use serde::Deserialize;
use tensor::{Device, Mode, Spans, Tape};

use common::{copy, edit_json, fixture, floats, refused};

mod common;

const FAMILIES: [&str; 8] = [
    "bert",
    "bert-untied",
    "distilbert",
    "roberta",
    "xlm-roberta",
    "xlm",
    "xlm-sinusoidal",
    "xlm-roberta-xl",
];

/// Models with an activation other than GELU by the error function. The head of RoBERTa has GELU all the same.
const ACTIVATIONS: [(&str, HiddenActivation); 4] = [
    ("bert-gelu-new", HiddenActivation::GeluTanh),
    ("roberta-relu", HiddenActivation::Relu),
    ("distilbert-silu", HiddenActivation::Silu),
    ("xlm-relu", HiddenActivation::Relu),
];

#[derive(Deserialize)]
struct Sequence {
    language: Option<String>,
    ids: Vec<u32>,
    segments: Option<Vec<u32>>,
}

fn open(folder: &Path) -> text::Result<Checkpoint> {
    hub::open(folder, &Device::cpu(2).unwrap())
}

/// The largest difference of a hidden state or of a score from what `transformers` has.
fn difference(checkpoint: &mut Checkpoint, family: &str) -> f32 {
    let sequences = fs::read_to_string(fixture(family).join("sequences.json")).unwrap();
    let sequences: Vec<Sequence> = serde_json::from_str(&sequences).unwrap();
    let expected = floats(&fixture(family).join("states.f32"));
    let (mut at, mut largest) = (0, 0f32);
    for sequence in sequences {
        let language = sequence.language.map_or(0, |l| checkpoint.vocabulary.language(&l).unwrap());
        let batch = Batch {
            language,
            spans: Spans::of_lengths([sequence.ids.len()]),
            tokens: sequence.ids.into(),
            segments: sequence.segments.map(Into::into),
        };
        let mut tape = Tape::new(&mut checkpoint.params, Mode::Evaluate);
        let encoded = checkpoint.model.encode(&mut tape, &batch, Request::default());
        let logits = checkpoint.model.logits(&mut tape, language, encoded.output);
        let layers = checkpoint.model.config().layers;
        let states = encoded.hidden.iter().chain([&encoded.output]).map(|&state| tape.value(state));
        for (number, state) in states.chain([&logits]).enumerate() {
            let expected = &expected[at..at + state.len()];
            at += state.len();
            // With LayerNorm before, they list the last layer normalised, which is our output.
            if family == "xlm-roberta-xl" && number == layers {
                continue;
            }
            for (ours, theirs) in state.elements().iter().zip(expected) {
                largest = largest.max((ours - theirs).abs());
            }
        }
    }
    assert_eq!(at, expected.len());
    largest
}

#[test]
fn every_family_gives_the_states_of_transformers() {
    for family in FAMILIES {
        let mut checkpoint = open(&fixture(family)).unwrap();
        let difference = difference(&mut checkpoint, family);
        assert!(difference < 3e-5, "{family} differs by {difference}");
        assert!(checkpoint.summary.has_mlm_head && checkpoint.summary.missing.is_empty());
        assert_eq!(checkpoint.summary.left_over, Vec::<String>::new(), "{family}");
    }
}

#[test]
fn every_activation_gives_the_states_of_transformers() {
    for (name, activation) in ACTIVATIONS {
        let mut checkpoint = open(&fixture(name)).unwrap();
        assert_eq!(checkpoint.model.config().activation, activation, "{name}");
        let difference = difference(&mut checkpoint, name);
        assert!(difference < 3e-5, "{name} differs by {difference}");
        assert!(checkpoint.summary.has_mlm_head && checkpoint.summary.left_over.is_empty());
    }
}

/// Exporting compares the logits of the written folder with the encoder's; reading it back finds the
/// activation again.
#[test]
fn every_activation_is_exported() {
    for (name, activation) in ACTIVATIONS {
        let mut checkpoint = open(&fixture(name)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("exported");
        let Checkpoint { model, params, vocabulary, .. } = &mut checkpoint;
        let source =
            ExportSource { model, params, vocabulary, has_mlm_head: true, prepared: false };
        let exported = hub::export(source, None, &ModelCard::default(), &out, false);
        if name == "roberta-relu" {
            // BERT, which has everything else of RoBERTa, has ReLU in its head too.
            let error = exported.err().unwrap().to_string();
            assert!(error.contains("the MLM head has the activation gelu"), "{error}");
            continue;
        }
        exported.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut again = open(&out).unwrap();
        assert_eq!(again.model.config().activation, activation, "{name}");
        let difference = difference(&mut again, name);
        assert!(difference < 3e-5, "{name}, exported, differs by {difference}");
    }
}

#[test]
fn several_files_are_one_model() {
    let folder = copy("bert");
    let path = folder.path();
    let bytes = fs::read(path.join("model.safetensors")).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let mut index = serde_json::Map::new();
    for (number, part) in tensors.chunks(9).enumerate() {
        let name = format!("model-{number}.safetensors");
        part.iter().for_each(|(tensor, _)| _ = index.insert(tensor.clone(), name.clone().into()));
        let views = part.iter().map(|(tensor, view)| (tensor.as_str(), view));
        safetensors::serialize_to_file(views, None, &path.join(name)).unwrap();
    }
    fs::remove_file(path.join("model.safetensors")).unwrap();
    let listed = path.join("model.safetensors.index.json");
    fs::write(&listed, serde_json::json!({ "weight_map": index }).to_string()).unwrap();
    assert!(difference(&mut open(path).unwrap(), "bert") < 3e-5);

    edit_json(&listed, |value| value["weight_map"]["cls.predictions.bias"] = "../x".into());
    let error = open(path).err().unwrap().to_string();
    assert!(error.contains("names `../x`, which is no file of its folder"), "{error}");
}

#[test]
fn a_model_without_a_head_is_opened_and_what_it_lacks_is_named() {
    let folder = copy("bert");
    let path = folder.path().join("model.safetensors");
    let bytes = fs::read(&path).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let body = file
        .tensors()
        .into_iter()
        .filter_map(|(name, view)| Some((name.strip_prefix("bert.")?.to_owned(), view)));
    let mut body: Vec<_> = body.collect();
    let extra = [0u8; 8];
    let extra = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2], &extra);
    body.push(("pooler.dense.bias".to_owned(), extra.unwrap()));
    safetensors::serialize_to_file(body, None, &path).unwrap();
    let checkpoint = open(folder.path()).unwrap();
    assert!(!checkpoint.summary.has_mlm_head);
    assert!(checkpoint.summary.missing.contains(&"cls.predictions.bias".to_owned()));
    assert_eq!(checkpoint.summary.left_over, ["pooler.dense.bias"]);
}

#[test]
fn a_weight_that_is_not_finite_is_refused() {
    let error = refused("bert", |folder| {
        let path = folder.join("model.safetensors");
        let bytes = fs::read(&path).unwrap();
        let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let last = bytes.len() - 4;
        assert!(last >= 8 + header);
        fs::write(&path, [&bytes[..last], &f32::NAN.to_le_bytes()].concat()).unwrap();
    });
    assert!(error.contains("has a weight that is NaN or infinite"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let config = |folder: &Path, key: &str, value: serde_json::Value| {
        edit_json(&folder.join("config.json"), |config| config[key] = value);
    };
    let cases: [(&str, serde_json::Value, &str); 9] = [
        ("model_type", "t5".into(), "model_type `t5` is none of bert"),
        ("hidden_act", "quick_gelu".into(), "is quick_gelu, which is none of gelu, gelu_new"),
        ("is_decoder", true.into(), "asks for a decoder"),
        ("position_embedding_type", "relative_key".into(), "only absolute is known"),
        ("hidden_size", 16.into(), "of shape [141, 8], not [141, 16]"),
        ("hidden_size", 9_000_000_000u64.into(), "9000000000 is more than"),
        ("num_hidden_layers", 3.into(), "has no tensor bert.encoder.layer.2."),
        ("vocab_size", "many".into(), "`vocab_size` is no whole number"),
        ("vocab_size", serde_json::Value::Null, "`vocab_size` is missing"),
    ];
    for (key, value, reason) in cases {
        let error = refused("bert", |folder| config(folder, key, value));
        assert!(error.contains(reason), "{key}: {error}");
    }
    let short =
        refused("bert", |folder| fs::write(folder.join("vocab.txt"), "[PAD]\n[UNK]\n").unwrap());
    assert!(short.contains("has 2 subwords, and the embedding table 141 rows"), "{short}");
    let long = refused("bert", |folder| {
        let more = fs::read_to_string(folder.join("vocab.txt")).unwrap() + "one\ntoo many\n";
        fs::write(folder.join("vocab.txt"), more).unwrap();
    });
    assert!(long.contains("has 143 subwords, but the embedding table has 141 rows"), "{long}");
    let none = refused("bert", |folder| fs::remove_file(folder.join("vocab.txt")).unwrap());
    assert!(none.contains("has no tokenizer.json, no vocab.txt"), "{none}");
    let none = refused("bert", |folder| fs::remove_file(folder.join("model.safetensors")).unwrap());
    assert!(none.contains("has no weights"), "{none}");
    let cut = refused("distilbert", |folder| {
        let text = fs::read_to_string(folder.join("tokenizer.json")).unwrap();
        fs::write(folder.join("tokenizer.json"), &text[..text.len() / 2]).unwrap();
    });
    assert!(cut.contains("tokenizer.json"), "{cut}");
}

#[test]
fn any_name_is_a_language_unless_the_model_lists_its_own() {
    let bert = open(&fixture("bert")).unwrap();
    assert_eq!(bert.vocabulary.language("sw").unwrap(), 0);
    assert!(bert.vocabulary.language("no language").is_err());
    let xlm = open(&fixture("xlm")).unwrap();
    assert_eq!(xlm.vocabulary.language("zh").unwrap(), 2);
    assert!(xlm.vocabulary.language("sw").unwrap_err().to_string().contains("en, fr, zh"));
}
