//! What the encoder promises, whatever its weights.

use encoder::{
    AttentionParts, Batch, Biases, Encoder, EncoderConfig, EncoderParam, HiddenActivation,
    MaskedTokens, NormPlace, ParamGroup, ParamRole, Parts, Positions, Request, Rotary,
    VocabularySize, Window,
};
use tensor::{Device, Indices, Mode, NormKind, Params, Spans, Tape};

const NORMS: [NormPlace; 3] = [NormPlace::Post, NormPlace::Pre, NormPlace::Both];
const PLANS: [&str; 8] =
    ["none", "embeddings", "embeddings, 1-2", "1-2", "embeddings, 1-3", "3", "positions", "1, 3"];

/// Every part that a decoder of today has and the papers' encoder has not; of the places of norms, one has them.
fn parts(norm: NormPlace) -> Parts {
    if norm != NormPlace::Both {
        return Parts::default();
    }
    let rotary = Rotary { base: 100.0, local_base: Some(10.0), stretch: None, columns: Some(2) };
    Parts {
        norm: NormKind::Rms,
        norm_bias: false,
        embedding_norm: Some(true),
        first_norm: false,
        embedding_scale: 1.5,
        positions: Positions::Rotary(rotary),
        attention: AttentionParts {
            sources: Some(1),
            width: Some(4),
            head_norm: true,
            causal: true,
            window: Some(Window { reach: 2, global: [2].into() }),
            scale: Some(0.4),
            cap: Some(5.0),
        },
        gated: true,
        biases: Biases { attention: true, output: false, hidden: false, head: false },
        ..Parts::default()
    }
}

fn config(norm: NormPlace, plan: &str) -> EncoderConfig {
    EncoderConfig {
        parts: parts(norm),
        languages: vec!["en".to_owned(), "fr".to_owned()],
        vocabulary: VocabularySize::Size(31),
        layers: 3,
        heads: 2,
        dim: 12,
        hidden: 20,
        positions: 8,
        dropout: 0.2,
        attention_dropout: 0.2,
        norm,
        language_embeddings: true,
        transform: true,
        separate: plan.parse().unwrap(),
        init_std: 0.3,
        ..EncoderConfig::default()
    }
}

fn model(norm: NormPlace, plan: &str) -> (Encoder, Params) {
    let mut params = Params::new(&Device::cpu(2).unwrap());
    let model = Encoder::new(config(norm, plan), &mut params, 11).unwrap();
    (model, params)
}

fn batch(language: usize) -> Batch {
    let spans = Spans::of_lengths([5, 1, 8, 3]);
    let tokens = (0..spans.rows() as u32).map(|at| at * 7 % 31).collect();
    Batch { language, tokens, spans, segments: None }
}

fn masked() -> MaskedTokens {
    MaskedTokens { rows: vec![1, 5, 9, 13, 16].into(), targets: vec![3, 1, 4, 1, 5].into() }
}

fn outputs(
    model: &Encoder,
    params: &mut Params,
    language: usize,
    request: Request<'_>,
) -> Vec<f32> {
    let mut tape = Tape::new(params, Mode::Evaluate);
    let encoded = model.encode(&mut tape, &batch(language), request);
    tape.value(encoded.output).to_vec()
}

fn assert_close(a: &[f32], b: &[f32], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (at, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-4, "{what}[{at}]: {a} {b}");
    }
}

#[test]
fn some_rows_are_like_those_rows_of_all() {
    for norm in NORMS {
        let (model, mut params) = model(norm, "none");
        let all = outputs(&model, &mut params, 0, Request::default());
        let rows = masked().rows;
        let request = Request { rows: Some(&rows), ..Request::default() };
        let some = outputs(&model, &mut params, 0, request);
        let chosen: Vec<f32> =
            rows.iter().flat_map(|&row| all[row as usize * 12..][..12].to_vec()).collect();
        assert_close(&some, &chosen, &format!("{norm:?}"));
    }
}

#[test]
fn a_sequence_does_not_see_its_neighbours() {
    let (model, mut params) = model(NormPlace::Post, "none");
    let all = outputs(&model, &mut params, 0, Request::default());
    let whole = batch(0);
    for span in whole.spans.iter() {
        let tokens: Indices = whole.tokens[span.clone()].iter().copied().collect();
        let alone =
            Batch { language: 0, tokens, spans: Spans::of_lengths([span.len()]), segments: None };
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let encoded = model.encode(&mut tape, &alone, Request::default());
        let alone = tape.value(encoded.output).to_vec();
        assert_close(&alone, &all[span.start * 12..span.end * 12], "a sequence");
    }
}

/// Every hidden state and neuron, as a training pass has them, which keeps everything, and as an evaluation has them, which
/// gives memory back as soon as it can: the same bits.
#[test]
fn what_an_evaluation_releases_is_not_read_again() {
    for norm in NORMS {
        let states = |model: &Encoder, params: &mut Params, mode: Mode| -> Vec<f32> {
            let mut tape = Tape::new(params, mode);
            let request = Request { neurons: true, ..Request::default() };
            let encoded = model.encode(&mut tape, &batch(0), request);
            let wanted = encoded.hidden.iter().chain(&encoded.feed_forward);
            wanted.flat_map(|&var| tape.value(var).to_vec()).collect()
        };
        // Without dropout a training pass computes what an evaluation does.
        let still = EncoderConfig { dropout: 0.0, attention_dropout: 0.0, ..config(norm, "none") };
        let mut params = Params::new(&Device::cpu(2).unwrap());
        let model = Encoder::new(still, &mut params, 11).unwrap();
        let training = Mode::Train { seed: 1, step: 1, micro_batch: 0 };
        let kept = states(&model, &mut params, training);
        let released = states(&model, &mut params, Mode::Evaluate);
        assert_eq!(kept.len(), 17 * (4 * 12 + 3 * 20));
        assert_eq!(kept, released, "{norm:?}");
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let encoded = model.encode(&mut tape, &batch(0), Request::default());
        assert!(encoded.feed_forward.is_empty(), "neurons are kept where they are asked for");
    }
}

/// In bf16 a model has the states that it has in f32, but for rounding; and it is not f32 under another name.
#[test]
fn bf16_on_the_cpu_is_f32_but_for_rounding() {
    let device = match Device::named("cpu-bf16", 2) {
        Ok(device) => device,
        Err(error) => return terms::tests::left_out(&error.to_string()),
    };
    for norm in NORMS {
        let (model, mut params) = model(norm, "none");
        let exact = outputs(&model, &mut params, 0, Request::default());
        let mut params = Params::new(&device);
        let model = Encoder::new(config(norm, "none"), &mut params, 11).unwrap();
        let rounded = outputs(&model, &mut params, 0, Request::default());
        let square = |x: &[f32]| x.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
        let off: Vec<f32> = exact.iter().zip(&rounded).map(|(a, b)| a - b).collect();
        let error = (square(&off) / square(&exact)).sqrt();
        assert!(error > 1e-5 && error < 2e-2, "{norm:?}: relative error {error}");
    }
}

/// States that never leave the device are shifted by [`Device::add_rows`], and the layers above run on them.
#[test]
fn shifted_states_run_through_the_layers_above() {
    for norm in NORMS {
        let (model, mut params) = model(norm, "none");
        let device = params.device().clone();
        let (rows, dim) = (batch(0).spans.rows(), 12);
        // Not the same in all columns, which LayerNorm would take away.
        let vector: Vec<f32> = (0..dim).map(|col| 0.1 * col as f32 - 0.3).collect();
        let table = device.tensor(2, dim, &[&[0.0; 12], &vector[..]].concat());
        let classes: Indices = (0..rows as u32).map(|row| row % 2).collect();
        for layer in 0..=3 {
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let plain = model.encode(&mut tape, &batch(0), Request::default());
            let whole = tape.value(plain.output).to_vec();
            let states = tape.take_value(plain.hidden[layer]);
            let above = |tape: &mut Tape<'_>, scale: f32| {
                let shifted = device.add_rows(&states, &table, &classes, &[scale]);
                let request = Request::default();
                let encoded = model.encode_from(tape, &batch(0), layer, shifted, request);
                (tape.value(encoded.hidden[0]).to_vec(), tape.value(encoded.output).to_vec())
            };
            let (_, unshifted) = above(&mut tape, 0.0);
            assert_eq!(unshifted, whole, "{norm:?}, layer {layer}: a shift by nothing");
            let (shifted, output) = above(&mut tape, 2.0);
            for (at, (shifted, state)) in shifted.iter().zip(states.as_slice()).enumerate() {
                let step = if at / dim % 2 == 1 { 2.0 * vector[at % dim] } else { 0.0 };
                assert!((shifted - state - step).abs() < 1e-5, "{norm:?}, layer {layer}: [{at}]");
            }
            let moved: f32 = output.iter().zip(&whole).map(|(a, b)| (a - b).abs()).sum();
            assert!(moved > 0.1, "{norm:?}, layer {layer}: {moved}");
        }
    }
}

/// Each activation gives other states, and the MLM head has the same unless the configuration names another.
#[test]
fn activations_differ() {
    use HiddenActivation::{Gelu, GeluTanh, Relu, Silu};
    let logits = |activation, head_activation| {
        let mut params = Params::new(&Device::cpu(2).unwrap());
        let config =
            EncoderConfig { activation, head_activation, ..config(NormPlace::Post, "none") };
        let model = Encoder::new(config, &mut params, 11).unwrap();
        let mut tape = Tape::new(&mut params, Mode::Evaluate);
        let encoded = model.encode(&mut tape, &batch(0), Request::default());
        model.logits(&mut tape, 0, encoded.output).to_vec()
    };
    let all = [Gelu, GeluTanh, Relu, Silu].map(|activation| logits(activation, None));
    for (at, a) in all.iter().enumerate() {
        for b in &all[..at] {
            assert_ne!(a, b);
        }
    }
    assert_eq!(logits(Relu, Some(Relu)), all[2]);
    assert_ne!(logits(Relu, Some(Gelu)), all[2]);
}

/// Names of the weights that a batch of the language must reach: the shared ones and its own.
fn reached(params: &Params, language: &str, other: &str) -> Vec<(String, bool)> {
    let name = |id| params.name(id).to_owned();
    let names = params.ids().map(name);
    names
        .map(|name| {
            assert!(!name.starts_with(&format!("{language}.{other}")));
            let own = !name.starts_with(&format!("{other}."));
            (name, own)
        })
        .collect()
}

#[test]
fn what_should_learn_receives_a_gradient_and_nothing_else_does() {
    for norm in NORMS {
        for plan in PLANS {
            for (language, other) in [("en", "fr"), ("fr", "en")] {
                let (model, mut params) = model(norm, plan);
                let number = model.config().language(language).unwrap();
                let mut tape =
                    Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
                model.mlm_loss(&mut tape, &batch(number), &masked(), 0.2);
                tape.backward();
                for (name, expected) in reached(&params, language, other) {
                    let grad = params.grad(params.find(&name).unwrap());
                    let learns = grad.is_some_and(|grad| grad.as_slice().iter().any(|&x| x != 0.0));
                    assert_eq!(learns, expected, "{norm:?}, {plan}, {language}: {name}");
                    assert_eq!(grad.is_some(), expected, "{norm:?}, {plan}, {language}: {name}");
                }
            }
        }
    }
}

#[test]
fn what_is_frozen_receives_none() {
    for norm in NORMS {
        let (model, mut params) = model(norm, "embeddings, 1");
        // As in the papers' fine-tuning: what is separate is frozen, and here layer 2 as well.
        let learns = |param: &EncoderParam| {
            param.language.is_none() && param.group() != ParamGroup::Layer(2)
        };
        model.set_trainable(&mut params, learns);
        let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
        model.mlm_loss(&mut tape, &batch(0), &masked(), 0.2);
        tape.backward();
        let mut learning = 0;
        for param in model.params() {
            let (id, expected) = (param.id, learns(param));
            // Below the lowest part that is trained, no gradient is even computed; shared language
            // embeddings lie there too, but are trained.
            assert_eq!(params.grad(id).is_some(), expected, "{norm:?}: {}", params.name(id));
            learning += usize::from(expected);
        }
        assert!(learning > 0 && learning < model.params().len());
    }
}

#[test]
fn separate_parts_are_what_the_plan_says() {
    let (_, params) = model(NormPlace::Post, "embeddings, 1-2");
    let names: Vec<String> = params.ids().map(|id| params.name(id).to_owned()).collect();
    for (name, separate) in [
        ("embeddings.tokens", true),
        ("embeddings.positions", true),
        ("embeddings.norm.gamma", true),
        ("head.bias", true),
        ("layers.1.query.weight", true),
        ("layers.2.down.bias", true),
        ("layers.3.query.weight", false),
        ("embeddings.languages", false),
        ("head.dense.weight", false),
    ] {
        assert_eq!(names.contains(&name.to_owned()), !separate, "{name}");
        assert_eq!(names.contains(&format!("fr.{name}")), separate, "fr.{name}");
    }
}

#[test]
fn every_weight_is_reached_by_its_role() {
    let (model, params) = model(NormPlace::Pre, "embeddings, 1");
    assert_eq!(model.params().len(), params.ids().count());
    for param in model.params() {
        assert!(params.name(param.id).ends_with(&param.role.to_string()));
        assert_eq!(model.param(param.role, param.language), Some(param.id));
        let unnamed = model.param(param.role, None);
        assert_eq!(unnamed.is_some(), param.language.is_none(), "{}", params.name(param.id));
    }
    assert_eq!(model.param(ParamRole::SegmentEmbedding, None), None);
}

#[test]
fn adding_a_language_leaves_the_start_of_all_else_as_it_was() {
    let (_, two) = model(NormPlace::Pre, "1");
    let mut three = config(NormPlace::Pre, "1");
    three.languages.push("ru".to_owned());
    let mut params = Params::new(two.device());
    Encoder::new(three, &mut params, 11).unwrap();
    for id in two.ids().filter(|&id| two.name(id) != "embeddings.languages") {
        let same = params.find(two.name(id)).unwrap();
        assert_eq!(two.value(id).as_slice(), params.value(same).as_slice(), "{}", two.name(id));
    }
}

#[test]
fn the_layers_can_be_run_in_two_halves() {
    for norm in NORMS {
        let (model, mut params) = model(norm, "none");
        let device = params.device().clone();
        let whole = outputs(&model, &mut params, 0, Request::default());
        for layer in 0..=3 {
            let mut tape = Tape::new(&mut params, Mode::Evaluate);
            let request = Request { until: Some(layer), ..Request::default() };
            let lower = model.encode(&mut tape, &batch(0), request);
            assert_eq!(lower.hidden.len(), layer + 1, "no layer above is run");
            let states = tape.value(lower.hidden[layer]);
            let states = device.tensor(states.rows(), 12, &states.to_vec());
            let upper = model.encode_from(&mut tape, &batch(0), layer, states, Request::default());
            assert_close(tape.value(upper.output).as_slice(), &whole, "both halves");
            let rows = masked().rows;
            let request = Request { rows: Some(&rows), ..Request::default() };
            let states = tape.value(lower.hidden[layer]);
            let states = device.tensor(states.rows(), 12, &states.to_vec());
            let some = model.encode_from(&mut tape, &batch(0), layer, states, request);
            let chosen: Vec<f32> =
                rows.iter().flat_map(|&row| whole[row as usize * 12..][..12].to_vec()).collect();
            assert_close(tape.value(some.output).as_slice(), &chosen, "some rows of the second");
        }
    }
}

/// Layers that are named are those of a new encoder of the seed; all else is as it was.
#[test]
fn reinitialised_layers_are_new_and_the_others_are_not() {
    for (norm, plan) in [(NormPlace::Post, "embeddings, 1-2"), (NormPlace::Pre, "none")] {
        let (model, mut params) = model(norm, plan);
        let values = |params: &Params| -> Vec<Vec<f32>> {
            model.params().iter().map(|param| params.value(param.id).to_vec()).collect()
        };
        let before = values(&params);
        let mut other = Params::new(&Device::cpu(2).unwrap());
        let new = Encoder::new(config(norm, plan), &mut other, 5).unwrap();
        let new: Vec<Vec<f32>> =
            new.params().iter().map(|param| other.value(param.id).to_vec()).collect();
        model.reinitialize(&mut params, &[1, 3].into(), 5);
        let after = values(&params);
        let mut changed = 0;
        for (at, param) in model.params().iter().enumerate() {
            let named = matches!(param.group(), ParamGroup::Layer(1 | 3));
            assert_eq!(after[at], if named { &new[at] } else { &before[at] }[..], "{}", param.role);
            changed += usize::from(after[at] != before[at]);
        }
        // Biases and LayerNorm begin as they were here; each of the six weights of a layer is drawn.
        let layers = if plan == "none" { 2 } else { 3 };
        assert!(changed >= 5 * layers, "{changed}");
        model.reinitialize(&mut params, &[1, 3].into(), 5);
        assert_eq!(values(&params), after);
    }
}

/// What is not the papers' is written and read again; what is, is not written.
#[test]
fn parts_are_read_as_they_were_written() {
    let whole = config(NormPlace::Both, "embeddings");
    let text = toml::to_string(&whole).unwrap();
    assert_eq!(toml::from_str::<EncoderConfig>(&text).unwrap(), whole, "{text}");
    let text = toml::to_string(&config(NormPlace::Post, "none")).unwrap();
    assert!(!text.contains("parts"), "{text}");
    let part: EncoderConfig = toml::from_str("[parts]\ngated = true").unwrap();
    assert_eq!(part.parts, Parts { gated: true, ..Parts::default() });
    assert!(toml::from_str::<EncoderConfig>("[parts]\ngates = true").is_err());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let refused = |change: &dyn Fn(&mut EncoderConfig)| {
        let mut config = config(NormPlace::Both, "none");
        config.check().expect("sound before the change");
        change(&mut config);
        config.check().expect_err("refused after it").to_string()
    };
    let sources = refused(&|config| config.parts.attention.sources = Some(3));
    assert_eq!(sources, "parts.attention.sources: 3 do not divide 2 heads");
    let nothing = refused(&|config| config.parts.attention.sources = Some(0));
    assert_eq!(nothing, "parts.attention: must not be 0");
    let odd = refused(&|config| config.parts.attention.width = Some(1));
    assert!(odd.contains("columns are turned in pairs, not 2 of a head of 1"), "{odd}");
    let layer = refused(&|config| {
        config.parts.attention.window = Some(Window { reach: 1, global: [4].into() });
    });
    assert!(layer.contains("names layer 4, but layers = 3"), "{layer}");
    let scale = refused(&|config| config.parts.embedding_scale = f32::NAN);
    assert!(scale.contains("is not a positive number"), "{scale}");
    let first = refused(&|config| config.norm = NormPlace::Post);
    assert!(first.contains("only norms that stand before can be left out"), "{first}");
    let slopes = refused(&|config| config.parts.positions = Positions::Slopes);
    assert!(slopes.contains("slopes are of decoders, without a cap"), "{slopes}");
}
