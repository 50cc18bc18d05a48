//! `isogloss bench encode`: the speed of encoding alone.

use std::time::Instant;

use clap::Args;
use encoder::{Batch, Encoder, Request};
use models::states::{HiddenStates, Pooling};
use tensor::{Mode, Params, Tape};
use text::Frame;

use super::rate::{BenchShape, MOST_TOKENS, PeakMemory, SpeedResult, usage};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

#[derive(Args)]
pub struct BenchEncode {
    #[command(flatten)]
    shape: BenchShape,
}

impl BenchEncode {
    pub fn run(self) -> Result<Outcome, Failure> {
        let shape = &self.shape;
        if shape.steps == 0 || shape.length < 3 || !(3..=MOST_TOKENS).contains(&shape.tokens()) {
            let reason = format!(
                "--steps and --batch must not be 0, --length must be at least 3, since a sentence has two special tokens, and --batch times --length at most \
                 {MOST_TOKENS}"
            );
            return Err(Failure::Usage(reason));
        }
        let device = shape.compute.device()?;
        let mut params = Params::new(&device);
        let model =
            Encoder::new(shape.config(), &mut params, shape.seed).map_err(|error| usage(&error))?;
        let mut progress = Progress::new("steps", shape.steps as u64);
        let mut times = Vec::with_capacity(shape.steps);
        for step in 0..shape.steps {
            let batch = shape.draw(step as u32);
            let start = Instant::now();
            let means = device.run(|| means(&model, &mut params, &batch));
            times.push(start.elapsed());
            if means.iter().any(|x| !x.is_finite()) {
                return Err(std::io::Error::other("the encoder gave NaN").into());
            }
            progress.step("");
        }
        drop(progress);
        let (memory, parameters) = (PeakMemory::of(&device), params.count());
        drop(params);
        let operations = shape.forward_operations();
        let rate = SpeedResult::new(shape, &device, times, operations, parameters, memory);
        Ok(Outcome::new(rate.text(""), &rate))
    }
}

/// The mean of each sequence's last layer without its special tokens: sequences x dim.
fn means(model: &Encoder, params: &mut Params, batch: &Batch) -> Vec<f32> {
    let mut tape = Tape::new(params, Mode::Evaluate);
    let encoded = model.encode(&mut tape, batch, Request::default());
    let hidden = vec![tape.value(encoded.hidden[model.config().layers])];
    let (device, dim) = (tape.params().device(), model.config().dim);
    let mut means = Vec::with_capacity(batch.spans.count() * dim);
    let states = HiddenStates {
        first: 0,
        spans: &batch.spans,
        frame: Frame(Some(0), Some(0)),
        dim,
        device,
        hidden,
        output: None,
    };
    Pooling::Mean.push(&states, 0, &mut means);
    means
}
