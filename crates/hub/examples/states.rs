//! Everything that an encoder says of sequences of ids: the hidden states of all layers and the
//! scores of every token, as plain numbers. For comparisons with other programs (`bench/hub.py`).
//!
//!     cargo run --release -p isogloss-hub --example states -- DIR INPUT.json OUT.f32
//!
//! The input lists sequences, each `{"language": "fr" or null, "ids": […], "segments": […] or null}`.
//! For each, layers + 1 matrices of tokens x dim follow one another, then the output that the head
//! reads, then tokens x vocabulary.

use std::error::Error;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use encoder::{Batch, Request};
use serde::Deserialize;
use tensor::{Device, Mode, Spans, Tape};

#[derive(Deserialize)]
struct Sequence {
    language: Option<String>,
    ids: Vec<u32>,
    segments: Option<Vec<u32>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, folder, input, out] = arguments.as_slice() else {
        return Err("give a folder, a file of sequences, and where to write".into());
    };
    let mut checkpoint = hub::open(Path::new(folder), &Device::cpu(0)?)?;
    let sequences: Vec<Sequence> = serde_json::from_str(&std::fs::read_to_string(input)?)?;
    let mut out = BufWriter::new(std::fs::File::create(out)?);
    for sequence in sequences {
        let language =
            sequence.language.map_or(Ok(0), |name| checkpoint.vocabulary.language(&name))?;
        let batch = Batch {
            language,
            spans: Spans::of_lengths([sequence.ids.len()]),
            tokens: sequence.ids.into(),
            segments: sequence.segments.map(Into::into),
        };
        let mut tape = Tape::new(&mut checkpoint.params, Mode::Evaluate);
        let encoded = checkpoint.model.encode(&mut tape, &batch, Request::default());
        let logits = checkpoint.model.logits(&mut tape, language, encoded.output);
        let states = encoded.hidden.iter().chain([&encoded.output]);
        for value in states.map(|&state| tape.value(state)).chain([&logits]) {
            out.write_all(bytemuck::cast_slice(&value.elements()))?;
        }
    }
    Ok(out.flush()?)
}
