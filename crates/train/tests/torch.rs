//! The model, its gradients and its optimiser against PyTorch.
//!
//! `fixtures/make.py` restates the model in PyTorch and writes what it computes; here the same
//! weights and batches must give the same numbers.

use std::path::{Path, PathBuf};

use encoder::{Batch, Encoder, EncoderConfig, MaskedTokens, Request};
use safetensors::SafeTensors;
use serde::Deserialize;
use tensor::{Device, Mode, Params, Spans, Tape};
use train::{AdamConfig, AdamGroup, Schedule, Trainer};

#[derive(Deserialize)]
struct Facts {
    config: EncoderConfig,
    checks: Vec<TorchBatch>,
    steps: Vec<TorchBatch>,
    losses: Vec<f64>,
}

#[derive(Deserialize)]
struct TorchBatch {
    language: String,
    tokens: Vec<Vec<u32>>,
    rows: Vec<u32>,
    targets: Vec<u32>,
}

impl TorchBatch {
    fn ours(&self, config: &EncoderConfig) -> (Batch, MaskedTokens) {
        let batch = Batch {
            language: config.language(&self.language).unwrap(),
            tokens: self.tokens.iter().flatten().copied().collect(),
            spans: Spans::of_lengths(self.tokens.iter().map(Vec::len)),
            segments: None,
        };
        (
            batch,
            MaskedTokens { rows: self.rows.clone().into(), targets: self.targets.clone().into() },
        )
    }
}

struct Fixture {
    bytes: Vec<u8>,
    facts: Facts,
}

impl Fixture {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let facts = &metadata.metadata().as_ref().unwrap()["facts"];
        let facts = serde_json::from_str(facts).unwrap();
        Self { bytes, facts }
    }

    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let data = tensors.tensor(name).ok()?.data();
        let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
        Some(data.chunks(4).map(float).collect())
    }

    /// Our model with PyTorch's weights.
    fn model(&self) -> (Encoder, Params) {
        let mut params = Params::new(&Device::cpu(2).unwrap());
        let model = Encoder::new(self.facts.config.clone(), &mut params, 1).unwrap();
        for id in params.ids() {
            let name = format!("weights/{}", params.name(id));
            let weights = self.tensor(&name).unwrap_or_else(|| panic!("PyTorch has no {name}"));
            params.value_mut(id).as_mut_slice().copy_from_slice(&weights);
        }
        let tensors = SafeTensors::deserialize(&self.bytes).unwrap();
        let theirs = tensors.names().iter().filter(|name| name.starts_with("weights/")).count();
        assert_eq!(theirs, params.ids().count(), "PyTorch has weights that we have not");
        (model, params)
    }
}

fn each_fixture(check: impl Fn(&str, &Fixture)) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "safetensors") {
            check(&path.file_stem().unwrap().to_string_lossy(), &Fixture::read(&path));
            seen += 1;
        }
    }
    assert_eq!(seen, 6, "LayerNorm before and after, each with three plans");
}

#[test]
fn logits_are_pytorchs() {
    each_fixture(|name, fixture| {
        let (model, mut params) = fixture.model();
        for (number, batch) in fixture.facts.checks.iter().enumerate() {
            let (batch, _) = batch.ours(model.config());
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let encoded = model.encode(&mut tape, &batch, Request::default());
            let logits = model.logits(&mut tape, batch.language, encoded.output).to_vec();
            let theirs = fixture.tensor(&format!("logits/{number}")).unwrap();
            assert_eq!(logits.len(), theirs.len());
            for (at, (ours, theirs)) in logits.iter().zip(&theirs).enumerate() {
                let error = (ours - theirs).abs();
                assert!(error < 1e-4, "{name}, batch {number}, logit {at}: {ours} {theirs}");
            }
        }
    });
}

#[test]
fn every_gradient_is_pytorchs() {
    each_fixture(|name, fixture| {
        let (model, mut params) = fixture.model();
        for (number, batch) in fixture.facts.checks.iter().enumerate() {
            let (batch, masked) = batch.ours(model.config());
            params.clear_grads();
            let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
            model.mlm_loss(&mut tape, &batch, &masked, 1.0 / masked.rows.len() as f32);
            tape.backward();
            for id in params.ids() {
                let theirs = fixture.tensor(&format!("grads/{number}/{}", params.name(id)));
                let ours = params.grad(id).map(|grad| grad.to_vec());
                let what = format!("{name}, batch {number}, {}", params.name(id));
                assert_eq!(ours.is_some(), theirs.is_some(), "{what}: a gradient on one side only");
                let (Some(ours), Some(theirs)) = (ours, theirs) else { continue };
                // Relative to the matrix: the keys' bias, for one, has no gradient but noise.
                let largest = theirs.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
                for (at, (a, b)) in ours.iter().zip(&theirs).enumerate() {
                    assert!((a - b).abs() < 1e-3 * largest + 1e-7, "{what}[{at}]: {a} {b}");
                }
            }
        }
    });
}

#[test]
fn ten_steps_of_adam_are_pytorchs() {
    each_fixture(|name, fixture| {
        let (model, params) = fixture.model();
        let config = AdamConfig {
            lr: 3e-3,
            schedule: Schedule::Constant,
            beta1: 0.9,
            beta2: 0.98,
            epsilon: 1e-6,
            weight_decay: 0.1,
            clip: Some(1.0),
        };
        let mut trainer =
            Trainer::new(model.config(), params, config, 1, |_| AdamGroup::default()).unwrap();
        for (batch, theirs) in fixture.facts.steps.iter().zip(&fixture.facts.losses) {
            let (batch, masked) = batch.ours(model.config());
            let targets = masked.rows.len();
            let report = trainer.step(&[(batch, masked)], targets, |tape, (batch, masked)| {
                model.mlm_loss(tape, batch, masked, 1.0 / targets as f32)
            });
            let report = report.unwrap();
            let error = (report.loss - theirs).abs();
            assert!(error < 1e-3, "{name}, step {}: {} {theirs}", report.step, report.loss);
        }
    });
}
