//! What a sweep costs beside running the whole model for each of its settings, by turns:
//! `sweep_speed RUN FROM=FILE TO=FILE` (a run with means, and parallel sentences).

use std::path::Path;
use std::time::Instant;

use encoder::Request;
use models::PretrainedModel;
use shift::means::Means;
use shift::sentences;
use shift::shifter::{Kind, Shifter};
use shift::translate::{Direction, Grid, Truth, sweep};
use tensor::{Device, Mode, Tape};

const ALPHAS: [f32; 10] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, from, to] = &arguments[..] else { return Err("RUN FROM=FILE TO=FILE".into()) };
    let side = |text: &str| -> Result<(String, String), String> {
        let (language, file) = text.split_once('=').ok_or("write LANG=FILE")?;
        Ok((language.to_owned(), file.to_owned()))
    };
    let ((from, source), (to, target)) = (side(from)?, side(to)?);
    let device = Device::cpu(0)?;
    let mut model = PretrainedModel::open(Path::new(run), &device)?;
    let means = Means::open(&Path::new(run).join("means.safetensors"), &model)?;
    let direction =
        Direction { means: &means, from: means.language(&from)?, to: means.language(&to)? };
    let sides = [sentences(&model, &from, &source)?, sentences(&model, &to, &target)?];
    let layers: Vec<usize> = (1..=model.encoder.config().layers).collect();
    let grid = Grid { layers: &layers, alphas: &ALPHAS, kind: Kind::Mean };
    let truth = Truth::default();
    for turn in 1..=3 {
        let start = Instant::now();
        let both = [&sides[0], &sides[1]];
        device.run(|| sweep(&mut model, &direction, &grid, both, &truth, &mut |_| {}))?;
        let once = start.elapsed().as_secs_f64();
        let start = Instant::now();
        device.run(|| every_setting(&mut model, &direction, &layers, &sides[0]))?;
        let each = start.elapsed().as_secs_f64();
        println!(
            "turn {turn}: sweep {once:.3} s, whole model each time {each:.3} s, ratio {:.2}",
            once / each
        );
    }
    Ok(())
}

/// The whole model, once for every layer and weight, with every position decoded.
fn every_setting(
    model: &mut PretrainedModel,
    direction: &Direction<'_>,
    layers: &[usize],
    sentences: &shift::Sentences,
) -> shift::Result<()> {
    let ids: Vec<&[u32]> = sentences.ids.iter().flatten().map(Vec::as_slice).collect();
    let device = model.params.device().clone();
    for &layer in layers {
        let shifter =
            Shifter::new(direction.means, direction.from, direction.to, layer, Kind::Mean)?;
        for alpha in ALPHAS {
            let vector = shifter.vector(0);
            let table = device.tensor(1, vector.len(), vector);
            for chosen in ids.chunks(256) {
                let batch = model.batch(sentences.language, chosen.iter().copied());
                let PretrainedModel { encoder: model, params, .. } = &mut *model;
                let mut tape = Tape::new(params, Mode::Evaluate);
                let below = Request { until: Some(layer), ..Request::default() };
                let hidden = model.encode(&mut tape, &batch, below).hidden[layer];
                let rows = std::iter::repeat_n(0, batch.tokens.len()).collect();
                let shifted = device.add_rows(tape.value(hidden), &table, &rows, alpha);
                let request = Request::default();
                let output = model.encode_from(&mut tape, &batch, layer, shifted, request).output;
                std::hint::black_box(shift::translate::decode(
                    model,
                    &mut tape,
                    batch.language,
                    output,
                ));
            }
        }
    }
    Ok(())
}
