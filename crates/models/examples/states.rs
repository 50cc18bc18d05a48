//! Everything that an encoder says of sequences: their ids, the hidden states of all layers, and the
//! scores of every token, as plain numbers. For comparisons with other programs (`bench/hub.py`).
//!
//!     cargo run --release -p isogloss-models --example states -- MODEL INPUT.json [OUT.f32]
//!
//! The input lists sequences, each with `ids` or `text`, a `language`, and perhaps `segments`. The ids
//! of all of them are printed as JSON. For each, layers + 1 matrices of tokens x dim follow one another
//! in the file, then what the head reads, then tokens x vocabulary.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use encoder::Request;
use models::PretrainedModel;
use serde::Deserialize;
use tensor::{Device, Mode, Tape};

#[derive(Deserialize)]
struct Sequence {
    language: Option<String>,
    ids: Option<Vec<u32>>,
    text: Option<String>,
    segments: Option<Vec<u32>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, input, out @ ..] = arguments.as_slice() else {
        return Err("give a model, a file of sequences, and perhaps where to write".into());
    };
    let mut pretrained = PretrainedModel::open(Path::new(folder), &Device::cpu(0)?)?;
    let sequences: Vec<Sequence> = serde_json::from_str(&fs::read_to_string(input)?)?;
    let mut out = out.first().map(File::create).transpose()?.map(BufWriter::new);
    let mut all = Vec::new();
    for sequence in sequences {
        let first = pretrained.vocabulary.languages().next().unwrap_or_default().to_owned();
        let mut reader = pretrained.reader(&sequence.language.unwrap_or(first))?;
        let read = |text: String| reader.sentence(&text).ids;
        let ids = sequence.ids.or_else(|| sequence.text.map(read)).ok_or("neither ids nor text")?;
        if let Some(out) = &mut out {
            write(&mut pretrained, reader.language(), &ids, sequence.segments, out)?;
        }
        all.push(ids);
    }
    println!("{}", serde_json::to_string(&all)?);
    Ok(out.map_or(Ok(()), |mut out| out.flush())?)
}

fn write(
    pretrained: &mut PretrainedModel,
    language: usize,
    ids: &[u32],
    segments: Option<Vec<u32>>,
    out: &mut impl std::io::Write,
) -> Result<(), Box<dyn Error>> {
    let mut batch = pretrained.batch(language, [ids]);
    batch.segments = segments.map(Into::into);
    let mut tape = Tape::new(&mut pretrained.params, Mode::Evaluate);
    let encoded = pretrained.encoder.encode(&mut tape, &batch, Request::default());
    let logits = pretrained.encoder.logits(&mut tape, language, encoded.output);
    let states = encoded.hidden.iter().chain([&encoded.output]).map(|&state| tape.value(state));
    for value in states.chain([&logits]) {
        let numbers = value.elements();
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}
