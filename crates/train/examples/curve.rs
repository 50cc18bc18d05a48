//! The first updates of a run: one line of JSON for each, with its loss. For curves of several devices
//! and programs beside one another (`bench/curve.py`).
//!
//!     cargo run --release -p isogloss-train --example curve -- RUN UPDATES DEVICE [OUT.safetensors]
//!
//! RUN is the folder of a run that was begun, with dropout 0, since no other program drops what this one
//! does. The file, where one is named, holds the weights before the first update (`weights/NAME`), the
//! batches of each update and piece (`0/0/tokens`, `starts` of the sequences, masked `rows`, `targets`),
//! and, as JSON in its metadata, the encoder, Adam, the rate of each update and the language of each piece.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::Path;

use encoder::{Batch, Masked};
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use serde_json::json;
use tensor::Device;
use train::pretrain::Beginning;

/// Matrices and lists for the file: kind, shape, bytes.
type Parts = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, updates, device, out @ ..] = arguments.as_slice() else {
        return Err("give RUN UPDATES DEVICE, and perhaps a file to write".into());
    };
    let device = Device::named(device, 0)?;
    let mut run = Beginning::open(Path::new(folder), &device)?;
    let encoder = run.model.config().clone();
    if encoder.dropout > 0.0 || encoder.attention_dropout > 0.0 {
        return Err("the run has dropout; begin it with --encoder.dropout 0 \
                    --encoder.attention_dropout 0"
            .into());
    }
    eprintln!("running on {device:?}");
    let (mut parts, mut rates, mut languages) = (weights(&run), Vec::new(), Vec::new());
    for update in 0..updates.parse::<usize>()? {
        let pieces = run.next_batches();
        for (piece, (batch, masked)) in pieces.iter().enumerate() {
            add(&mut parts, &format!("{update}/{piece}"), batch, masked);
        }
        languages.push(pieces.iter().map(|(batch, _)| batch.language).collect::<Vec<_>>());
        let report = run.update(&pieces)?;
        rates.push(report.rate);
        println!("{}", json!({ "step": report.step, "loss": report.loss, "norm": report.norm }));
    }
    if let Some(path) = out.first() {
        let facts = json!({
            "encoder": encoder, "adam": run.config.adam, "rates": rates, "languages": languages,
        });
        let mut views = Vec::with_capacity(parts.len());
        for (name, (kind, shape, bytes)) in &parts {
            views.push((name, TensorView::new(*kind, shape.clone(), bytes)?));
        }
        let facts = HashMap::from([("curve".to_owned(), facts.to_string())]);
        serialize_to_file(views, Some(facts), Path::new(path))?;
    }
    Ok(())
}

fn weights(run: &Beginning) -> Parts {
    let params = run.trainer.params();
    let weight = |id| {
        let value = params.value(id);
        let bytes = value.elements().iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = vec![value.rows(), value.cols()];
        (format!("weights/{}", params.name(id)), (Dtype::F32, shape, bytes))
    };
    params.ids().map(weight).collect()
}

fn add(parts: &mut Parts, place: &str, batch: &Batch, masked: &Masked) {
    let starts: Vec<u32> = batch.spans.iter().map(|span| span.start as u32).collect();
    let lists: [(&str, &[u32]); 4] = [
        ("tokens", &batch.tokens),
        ("starts", &starts),
        ("rows", &masked.rows),
        ("targets", &masked.targets),
    ];
    for (name, list) in lists {
        // Every id is far below 2³¹, and what reads the file may know no unsigned numbers.
        let bytes = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        parts.insert(format!("{place}/{name}"), (Dtype::I32, vec![list.len()], bytes));
    }
}
