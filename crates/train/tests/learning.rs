//! What training promises: it learns, resumes exactly, stops when lost, and repeats itself.

use encoder::{
    Batch, Encoder, EncoderConfig, MaskedTokens, NormPlace, ParamGroup, PositionStart, SharingPlan,
    VocabularySize,
};
use tensor::random::{Draws, Key};
use tensor::{Device, Params, Spans};
use train::{AdamConfig, AdamGroup, Schedule, StepReport, TrainError, Trainer};

fn config(norm: NormPlace) -> EncoderConfig {
    EncoderConfig {
        languages: vec!["en".to_owned(), "fr".to_owned()],
        vocabulary: VocabularySize::Size(600),
        layers: 2,
        heads: 4,
        dim: 64,
        hidden: 256,
        positions: 32,
        norm,
        separate: "embeddings, 1".parse().unwrap(),
        ..EncoderConfig::default()
    }
}

fn adam() -> AdamConfig {
    AdamConfig {
        lr: 2e-3,
        schedule: Schedule::Linear { warmup: 5, total: 200 },
        clip: Some(1.0),
        ..AdamConfig::default()
    }
}

fn trainer(norm: NormPlace, threads: usize, adam: AdamConfig) -> (Encoder, Trainer) {
    let mut params = Params::new(&Device::cpu(threads).unwrap());
    let model = Encoder::new(config(norm), &mut params, 3).unwrap();
    let trainer = Trainer::new(model.config(), params, adam, 9, |_| AdamGroup::default()).unwrap();
    (model, trainer)
}

/// Ragged text in which every sequence says one word over and over, out of so many words.
fn micro_batches(step: u32, words: u32) -> Vec<(Batch, MaskedTokens)> {
    let micro_batch = |language: usize| {
        let mut draws = Draws::new(Key { seed: 77, step, stream: language as u32 });
        let spans = Spans::of_lengths((0..24).map(|_| 2 + draws.below(31) as usize));
        let mut tokens = Vec::with_capacity(spans.rows());
        for span in spans.iter() {
            let word = 1 + draws.below(words);
            tokens.extend(span.map(|_| word));
        }
        let rows: Vec<u32> = (0..spans.rows() as u32).filter(|_| draws.below(100) < 15).collect();
        let targets = rows.iter().map(|&row| tokens[row as usize]).collect();
        rows.iter().for_each(|&row| tokens[row as usize] = 0);
        let batch = Batch { language, tokens: tokens.into(), spans, segments: None };
        (batch, MaskedTokens { rows: rows.into(), targets })
    };
    vec![micro_batch(0), micro_batch(1)]
}

fn step(model: &Encoder, trainer: &mut Trainer) -> Result<StepReport, TrainError> {
    step_on(model, trainer, micro_batches(trainer.steps() as u32, 599))
}

fn step_on(
    model: &Encoder,
    trainer: &mut Trainer,
    micro_batches: Vec<(Batch, MaskedTokens)>,
) -> Result<StepReport, TrainError> {
    let targets = micro_batches.iter().map(|(_, masked)| masked.rows.len()).sum();
    trainer.step(&micro_batches, targets, |tape, (batch, masked)| {
        model.mlm_loss(tape, batch, masked, 1.0 / targets as f32)
    })
}

fn weights(trainer: &Trainer) -> Vec<Vec<u32>> {
    let params = trainer.params();
    let bits = |id| params.value(id).as_slice().iter().map(|x| x.to_bits()).collect();
    params.ids().map(bits).collect()
}

#[test]
fn it_learns() {
    let config = EncoderConfig {
        dropout: 0.0,
        attention_dropout: 0.0,
        start_positions: PositionStart::Sinusoid,
        separate: SharingPlan::none(),
        ..config(NormPlace::Pre)
    };
    let mut params = Params::new(&Device::cpu(2).unwrap());
    let model = Encoder::new(config, &mut params, 3).unwrap();
    let adam = AdamConfig { lr: 5e-3, beta2: 0.98, ..adam() };
    let mut trainer =
        Trainer::new(model.config(), params, adam, 9, |_| AdamGroup::default()).unwrap();
    let reports: Vec<StepReport> = (0..200)
        .map(|number| step_on(&model, &mut trainer, micro_batches(number, 20)).unwrap())
        .collect();
    let (first, last) = (&reports[0], &reports[199]);
    assert!(first.loss > 6.0 && first.accuracy < 0.1, "{first:?}");
    assert!(last.loss < 0.5 && last.accuracy > 0.8, "{last:?}");
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for norm in [NormPlace::Post, NormPlace::Pre] {
        let run = |threads| {
            let (model, mut trainer) = trainer(norm, threads, adam());
            let losses: Vec<u64> =
                (0..4).map(|_| step(&model, &mut trainer).unwrap().loss.to_bits()).collect();
            (losses, weights(&trainer))
        };
        let one = run(1);
        assert!(one == run(2), "{norm:?}: two threads");
        assert!(one == run(3), "{norm:?}: three threads");
    }
}

#[test]
fn a_resumed_run_is_the_run_that_never_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    let (model, mut whole) = trainer(NormPlace::Post, 2, adam());
    (0..3).for_each(|_| _ = step(&model, &mut whole).unwrap());
    whole.save(&path, &"where the data stands").unwrap();
    let after: Vec<StepReport> = (0..3).map(|_| step(&model, &mut whole).unwrap()).collect();

    let (model, mut resumed) = trainer(NormPlace::Post, 1, adam());
    let rest: String = resumed.resume(&path).unwrap();
    assert_eq!((rest.as_str(), resumed.steps()), ("where the data stands", 3));
    let again: Vec<StepReport> = (0..3).map(|_| step(&model, &mut resumed).unwrap()).collect();
    assert_eq!(after, again);
    assert!(weights(&whole) == weights(&resumed));
}

#[test]
fn a_checkpoint_of_another_run_is_refused_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    let (_, run) = trainer(NormPlace::Post, 1, adam());
    run.save(&path, &()).unwrap();
    let (_, mut other) = trainer(NormPlace::Post, 1, AdamConfig { lr: 1e-3, ..adam() });
    let before = weights(&other);
    let error = other.resume::<()>(&path).unwrap_err().to_string();
    assert!(error.contains("\"lr\":0.002") && error.contains("\"lr\":0.001"), "{error}");
    let (_, mut other) = trainer(NormPlace::Pre, 1, adam());
    let error = other.resume::<()>(&path).unwrap_err().to_string();
    assert!(error.contains("norm \"post\"") && error.contains("norm \"pre\""), "{error}");
    // The same shapes, but another model all the same.
    let mut params = Params::new(&Device::cpu(1).unwrap());
    let heads = EncoderConfig { heads: 2, ..config(NormPlace::Post) };
    let model = Encoder::new(heads, &mut params, 3).unwrap();
    let slow = AdamGroup { lr_scale: 0.1, ..AdamGroup::default() };
    let mut other = Trainer::new(model.config(), params, adam(), 9, |_| slow).unwrap();
    let error = other.resume::<()>(&path).unwrap_err().to_string();
    assert!(error.contains("heads 4") && error.contains("heads 2"), "{error}");
    let mut params = Params::new(&Device::cpu(1).unwrap());
    let model = Encoder::new(config(NormPlace::Post), &mut params, 3).unwrap();
    let mut other = Trainer::new(model.config(), params, adam(), 9, |_| slow).unwrap();
    let error = other.resume::<()>(&path).unwrap_err().to_string();
    assert!(error.contains("parameter group"), "{error}");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    std::fs::write(&path, bytes).unwrap();
    let (_, mut same) = trainer(NormPlace::Post, 1, adam());
    let error = same.resume::<()>(&path).unwrap_err().to_string();
    assert!(error.contains("was altered"), "{error}");
    assert!(weights(&same) == before && same.steps() == 0);
}

#[test]
fn a_loss_that_is_not_finite_stops_the_run_and_spares_the_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.safetensors");
    let (model, mut trainer) = trainer(NormPlace::Post, 2, adam());
    step(&model, &mut trainer).unwrap();
    trainer.save(&path, &()).unwrap();
    let good = std::fs::read(&path).unwrap();
    let poisoned = trainer.params().find("layers.2.up.weight").unwrap();
    for poison in [f32::NAN, f32::INFINITY] {
        trainer.params_mut().value_mut(poisoned).as_mut_slice()[7] = poison;
        let before = weights(&trainer);
        let error = step(&model, &mut trainer).unwrap_err().to_string();
        assert!(error.starts_with("diverged at step 2: the loss is NaN"), "{error}");
        assert!(error.contains("lower learning rate"), "{error}");
        assert!(weights(&trainer) == before && trainer.steps() == 1);
    }
    assert_eq!(good, std::fs::read(&path).unwrap());
    trainer.resume::<()>(&path).unwrap();
    step(&model, &mut trainer).unwrap();
}

#[test]
fn two_halves_make_the_gradient_of_the_whole() {
    let mut config = config(NormPlace::Post);
    (config.dropout, config.attention_dropout) = (0.0, 0.0);
    let halves = micro_batches(1, 599).swap_remove(0);
    let (batch, masked) = &halves;
    let cut = batch.spans.get(12).start;
    let split = |rows: std::ops::Range<usize>, spans: std::ops::Range<usize>| {
        let inside = |&(row, _): &(&u32, &u32)| rows.contains(&(*row as usize));
        let chosen: Vec<_> = masked.rows.iter().zip(masked.targets.iter()).filter(inside).collect();
        let part = Batch {
            language: 0,
            tokens: batch.tokens[rows.clone()].to_vec().into(),
            spans: Spans::of_lengths(spans.map(|span| batch.spans.get(span).len())),
            segments: None,
        };
        let rows = chosen.iter().map(|(row, _)| **row - rows.start as u32).collect();
        (part, MaskedTokens { rows, targets: chosen.iter().map(|(_, target)| **target).collect() })
    };
    let parts = [split(0..cut, 0..12), split(cut..batch.spans.rows(), 12..24)];
    let targets = masked.rows.len();
    let run = |micro_batches: &[(Batch, MaskedTokens)]| {
        let mut params = Params::new(&Device::cpu(2).unwrap());
        let model = Encoder::new(config.clone(), &mut params, 3).unwrap();
        let mut trainer =
            Trainer::new(model.config(), params, adam(), 9, |_| AdamGroup::default()).unwrap();
        let report = trainer.step(micro_batches, targets, |tape, (batch, masked)| {
            model.mlm_loss(tape, batch, masked, 1.0 / targets as f32)
        });
        report.unwrap()
    };
    let (whole, halves) = (run(std::slice::from_ref(&halves)), run(&parts));
    assert!((whole.loss - halves.loss).abs() < 1e-5, "{whole:?} {halves:?}");
    assert!((whole.norm - halves.norm).abs() < 1e-4 * whole.norm, "{whole:?} {halves:?}");
}

#[test]
fn groups_have_learning_rates_of_their_own() {
    let mut params = Params::new(&Device::cpu(1).unwrap());
    let model = Encoder::new(config(NormPlace::Post), &mut params, 3).unwrap();
    let still = |group| matches!(group, ParamGroup::Layer(_));
    let of_model = model.params();
    let group = |id| {
        let param = of_model.iter().find(|param| param.id == id).unwrap();
        AdamGroup { lr_scale: if still(param.group()) { 0.0 } else { 1.0 }, decay_scale: 1.0 }
    };
    let mut trainer = Trainer::new(model.config(), params, adam(), 9, group).unwrap();
    let before = weights(&trainer);
    step(&model, &mut trainer).unwrap();
    let after = weights(&trainer);
    for param in of_model {
        let at = trainer.params().ids().position(|other| other == param.id).unwrap();
        let name = trainer.params().name(param.id);
        assert_eq!(before[at] == after[at], still(param.group()), "{name}");
    }
}
