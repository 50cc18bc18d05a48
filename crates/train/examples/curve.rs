//! The first updates of a run: one line of JSON for each, with its loss. For curves of several devices
//! and programs beside one another (`bench/curve.py`).
//!
//!     cargo run --release -p isogloss-train --example curve -- RUN UPDATES DEVICE [OUT.safetensors]
//!
//! RUN is the folder of a run that was begun, with dropout 0, since no other program draws the same dropout
//! masks. The file, where one is named, holds the weights before the first update (`weights/NAME`), the
//! micro-batches of each update (`0/0/tokens`, `starts` of the sequences, masked `rows`, `targets`), and, as
//! JSON in its metadata, the encoder, Adam, the learning rate of each update and the language of each
//! micro-batch.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::path::Path;

use encoder::{Batch, Encoder, MaskedTokens};
use safetensors::tensor::{Dtype, TensorView, serialize_to_file};
use serde_json::json;
use tensor::{Device, Params};
use train::pretrain::{PretrainConfig, RunData, mlm_step};
use train::{AdamGroup, Trainer};

/// Matrices and lists for the file: kind, shape, bytes.
type Arrays = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, updates, device, out @ ..] = arguments.as_slice() else {
        return Err("give RUN UPDATES DEVICE, and perhaps a file to write".into());
    };
    let (folder, device) = (Path::new(folder), Device::named(device, 0)?);
    let config = PretrainConfig::read(folder)?;
    let data = RunData::prepare(&config, folder, &mut |_| {})?;
    let mut params = Params::new(&device);
    let model = Encoder::new(data.encoder_config(&config), &mut params, config.seed)?;
    if model.config().dropout > 0.0 || model.config().attention_dropout > 0.0 {
        return Err("the run has dropout; begin it with encoder.dropout = 0 and \
                    encoder.attention_dropout = 0"
            .into());
    }
    let adam = config.adam.clone();
    let group = |_| AdamGroup::default();
    let mut trainer = Trainer::new(model.config(), params, adam, config.seed, group)?;
    eprintln!("running on {device:?}");
    let mut arrays = weights(trainer.params());
    let (mut lrs, mut languages) = (Vec::new(), Vec::new());
    let mut feed = data.feed(0);
    for update in 0..updates.parse::<usize>()? {
        let micro_batches = feed.next_step(&data)?;
        for (number, (batch, masked)) in micro_batches.iter().enumerate() {
            add(&mut arrays, &format!("{update}/{number}"), batch, masked);
        }
        languages.push(micro_batches.iter().map(|(batch, _)| batch.language).collect::<Vec<_>>());
        let pending = mlm_step(&mut trainer, &model, &micro_batches);
        let report = trainer.finish(pending)?;
        lrs.push(report.lr);
        println!("{}", json!({ "step": report.step, "loss": report.loss, "norm": report.norm }));
    }
    if let Some(path) = out.first() {
        let metadata = json!({
            "encoder": model.config(), "adam": config.adam, "lrs": lrs, "languages": languages,
        });
        let mut views = Vec::with_capacity(arrays.len());
        for (name, (kind, shape, bytes)) in &arrays {
            views.push((name, TensorView::new(*kind, shape.clone(), bytes)?));
        }
        let metadata = HashMap::from([("curve".to_owned(), metadata.to_string())]);
        serialize_to_file(views, Some(metadata), Path::new(path))?;
    }
    Ok(())
}

fn weights(params: &Params) -> Arrays {
    let weight = |id| {
        let value = params.value(id);
        let bytes = value.elements().iter().flat_map(|x| x.to_le_bytes()).collect();
        let shape = vec![value.rows(), value.cols()];
        (format!("weights/{}", params.name(id)), (Dtype::F32, shape, bytes))
    };
    params.ids().map(weight).collect()
}

fn add(arrays: &mut Arrays, place: &str, batch: &Batch, masked: &MaskedTokens) {
    let starts: Vec<u32> = batch.spans.iter().map(|span| span.start as u32).collect();
    let lists: [(&str, &[u32]); 4] = [
        ("tokens", &batch.tokens),
        ("starts", &starts),
        ("rows", &masked.rows),
        ("targets", &masked.targets),
    ];
    for (name, list) in lists {
        // Every id is far below 2³¹, and the reader may not know unsigned integers.
        let bytes = list.iter().flat_map(|x| x.to_le_bytes()).collect();
        arrays.insert(format!("{place}/{name}"), (Dtype::I32, vec![list.len()], bytes));
    }
}
