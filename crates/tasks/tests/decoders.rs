//! Labelled text on decoders: a word is read at its last subword and a text at its last token, and nothing that comes later counts.

use std::fs;
use std::path::{Path, PathBuf};

use tasks::features::{EncoderFeatures, FeatureInput, Features};
use tasks::labelled_text::{LabelledTexts, TextColumns};
use tasks::ner::{NerFile, Repair};
use tasks::{Example, LabelSet, LabelledFile};
use tensor::{Device, Mode, Tape};
use text::Frame;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures").join(name)
}

fn features(name: &str) -> EncoderFeatures {
    EncoderFeatures::open(&fixture(name), &Device::cpu(1).unwrap()).unwrap()
}

/// What the lines of a file become.
fn prepared(features: &EncoderFeatures, set: &dyn LabelledFile) -> Vec<Example> {
    let labels = set.labels();
    let labels = LabelSet::new(labels.iter().map(|(label, _)| label.as_str()));
    set.prepare(features.source(), 0, &labels).examples
}

fn entities(features: &EncoderFeatures, words: &[&str]) -> Example {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ner");
    fs::write(&path, words.iter().map(|word| format!("{word}\tO\n")).collect::<String>()).unwrap();
    prepared(features, &NerFile::read(&path, "xx", Repair::Paper).unwrap()).remove(0)
}

/// The vectors that a head reads.
fn vectors(features: &EncoderFeatures, example: &Example) -> Vec<f32> {
    let mut params = features.start(1, None).unwrap();
    let mut tape = Tape::new(&mut params, Mode::Evaluate);
    let rows = example.positions.clone().into();
    let sequences = [example.tokens.as_slice()];
    let input = FeatureInput { language: 0, sequences: &sequences, rows, start: None };
    let vectors = features.vectors(&mut tape, &input);
    tape.value(vectors).to_vec()
}

#[test]
fn words_of_a_decoder_are_read_at_their_last_subword() {
    let words = ["the", "cat", "sat", "on"];
    for name in ["llama", "gpt2", "xglm", "bert"] {
        let features = features(name);
        let form = features.source().input();
        assert_eq!(form.causal, name != "bert");
        let Frame(start, end) = form.frame;
        assert_eq!(
            (start.is_some(), end.is_some()),
            match name {
                "llama" => (true, false),
                "gpt2" => (false, false),
                _ => (true, true),
            }
        );
        let encoded = features.source().encode(0, &words);
        assert!(encoded.ids.len() > words.len(), "some words are several subwords");
        let example = entities(&features, &words);
        assert_eq!(example.tokens, form.frame.around(&encoded.ids), "{name}");
        let ends = encoded.firsts[1..].iter().copied().chain([encoded.ids.len() as u32]);
        let bounds = encoded.firsts.iter().copied().zip(ends);
        let before = start.iter().count() as u32;
        let place = |(first, end): (u32, u32)| before + if form.causal { end - 1 } else { first };
        assert_eq!(example.positions, bounds.map(place).collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn a_text_of_a_decoder_is_read_at_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nli");
    fs::write(&path, "the cat sat\tthe cat\tx\n").unwrap();
    for name in ["llama", "gpt2", "bert"] {
        let features = features(name);
        let source = features.source();
        let form = source.input();
        let set = LabelledTexts::read(&path, TextColumns::Pair).unwrap();
        let example = prepared(&features, &set).remove(0);
        let texts = ["the cat sat", "the cat"].map(|text| source.encode_text(0, text));
        assert_eq!(example.tokens, form.frame.around(&texts.join(&form.specials.1)), "{name}");
        let last = example.tokens.len() as u32 - 1;
        assert_eq!(example.positions, [if form.causal { last } else { 0 }], "{name}");
    }
}

#[test]
fn a_later_word_changes_what_an_encoder_reads_and_not_what_a_decoder_reads() {
    for name in ["llama", "gpt2", "bert"] {
        let features = features(name);
        let [one, other] = ["on", "mat"]
            .map(|last| vectors(&features, &entities(&features, &["the", "cat", "sat", last])));
        let dim = features.source().dim();
        let before = |vectors: &[f32]| vectors[..3 * dim].to_vec();
        assert_eq!(before(&one) == before(&other), name != "bert", "{name}");
        assert_ne!(one[3 * dim..], other[3 * dim..], "{name}");
    }
}
