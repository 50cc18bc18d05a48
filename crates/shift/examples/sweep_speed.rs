//! What a sweep over all layers and ten weights costs, beside as many forward passes of the whole model:
//! `sweep_speed RUN MEANS FROM=FILE TO=FILE` (a model, its language mean vectors, and parallel sentences).

use std::path::Path;
use std::time::Instant;

use encoder::Request;
use models::PretrainedModel;
use models::states::for_each_batch;
use shift::means::MeanVectors;
use shift::shifter::ShiftKind;
use shift::token_sets::TokenSets;
use shift::translate::{GoldTranslations, ShiftDirection, SweepGrid, sweep};
use shift::{TokenizedSentences, tokenize_parallel};
use tensor::{Device, Mode, Tape};

const ALPHAS: [f32; 10] = [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, means, from, to] = &arguments[..] else {
        return Err("RUN MEANS FROM=FILE TO=FILE".into());
    };
    let side = |text: &str| -> Result<(String, String), String> {
        let (language, file) = text.split_once('=').ok_or("write LANG=FILE")?;
        Ok((language.to_owned(), file.to_owned()))
    };
    let texts =
        models::parallel::read_pair(&[side(from)?, side(to)?], &text::TsvColumns::default())?;
    let device = Device::named("auto", 0)?;
    let mut model = PretrainedModel::open(Path::new(run), &device)?;
    let means = MeanVectors::open(Path::new(means), &model)?;
    let [from, to] = [&texts[0], &texts[1]].map(|text| text.language.as_str());
    let direction = ShiftDirection::new(&means, &TokenSets::of_means(&means), from, to)?;
    let text = tokenize_parallel(&model, &texts, 1000)?;
    let layers: Vec<usize> = (1..=model.encoder.config().layers).collect();
    let grid = SweepGrid { layers: &layers, alphas: &ALPHAS, kind: ShiftKind::Mean, seed: 1 };
    let gold = GoldTranslations::default();
    for turn in 1..=3 {
        let start = Instant::now();
        let both = (&text, [0, 1]);
        device.run(|| sweep(&mut model, &direction, &grid, both, &gold, None, &mut |_| true))?;
        let once = start.elapsed().as_secs_f64();
        let start = Instant::now();
        device.run(|| whole_model(&mut model, &text.sides[0], layers.len() * ALPHAS.len()))?;
        let each = start.elapsed().as_secs_f64();
        println!(
            "turn {turn}: sweep {once:.3} s, whole model each time {each:.3} s, ratio {:.2}",
            once / each
        );
    }
    Ok(())
}

/// The whole model `times` times, with every position decoded.
fn whole_model(
    model: &mut PretrainedModel,
    sentences: &TokenizedSentences,
    times: usize,
) -> shift::Result<()> {
    for _ in 0..times {
        let ids = sentences.ids.iter().flatten().map(Ok::<_, shift::Error>);
        for_each_batch(model.parts(), sentences.language, ids, |parts, tokens| {
            let mut tape = Tape::new(parts.params, Mode::Evaluate);
            let output = parts.encoder.encode(&mut tape, tokens.batch, Request::default()).output;
            let language = sentences.language;
            std::hint::black_box(parts.encoder.best_tokens(&mut tape, language, output, 1));
            Ok(())
        })?;
    }
    Ok(())
}
