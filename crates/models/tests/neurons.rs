//! Neurons against transformers and the published procedure; the fixture comes from `fixtures/neurons.py`.

use std::convert::Infallible;
use std::path::Path;

use models::PretrainedModel;
use models::masked::MaskedSentences;
use models::neurons::{
    LanguageNeuronsConfig, Neuron, activation_counts, language_neurons, lape, masked_loss,
    without_neurons,
};
use models::parallel::ParallelSide;
use models::states::for_each;
use serde::Deserialize;
use tensor::Device;

#[derive(Deserialize)]
struct Fixture {
    encoder: EncoderFixture,
    lape: LapeFixture,
}

#[derive(Deserialize)]
struct EncoderFixture {
    sentences: Vec<Vec<u32>>,
    singles: Vec<Vec<u32>>,
    ablated: Vec<[usize; 2]>,
    tokens: u64,
    active: Vec<u64>,
    states: Vec<Vec<f32>>,
    states_ablated: Vec<Vec<f32>>,
    loss: f64,
    loss_ablated: f64,
}

#[derive(Deserialize)]
struct LapeFixture {
    share: f64,
    probabilities: Vec<Vec<f64>>,
    entropies: Vec<f64>,
    threshold: f64,
    specific: Vec<Vec<usize>>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("fixtures/neurons.json")).unwrap()
}

fn bert() -> PretrainedModel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hub/tests/fixtures/bert");
    PretrainedModel::open(&folder, &Device::cpu(1).unwrap()).unwrap()
}

/// The largest difference of the last layer's states from some others.
fn difference(model: &mut PretrainedModel, sentences: &[Vec<u32>], states: &[Vec<f32>]) -> f32 {
    let mut found: Vec<f32> = Vec::new();
    let last = model.encoder.config().layers;
    let ids = sentences.iter().map(Ok::<_, Infallible>);
    let Ok(()) = for_each(model.parts(), 0, ids, |states| {
        found.extend(states.hidden[last].elements().iter());
        Ok(())
    });
    let theirs = states.concat();
    assert_eq!(found.len(), theirs.len());
    found.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn activations_are_those_of_transformers() {
    let EncoderFixture { sentences, tokens, active, .. } = fixture().encoder;
    let counts = activation_counts(&mut bert(), 0, &sentences).unwrap();
    assert_eq!((counts.layers.as_slice(), counts.width, counts.tokens), (&[1, 2][..], 16, tokens));
    assert_eq!(counts.active, active);
}

#[test]
fn neurons_set_to_zero_change_what_they_change_in_transformers() {
    let wanted = fixture().encoder;
    let mut model = bert();
    let neurons: Vec<Neuron> =
        wanted.ablated.iter().map(|&[layer, neuron]| Neuron { layer, neuron }).collect();
    let singles = MaskedSentences::new(&model.vocabulary, &wanted.singles, 1);
    let [before, ablated, after] = {
        let before = (
            difference(&mut model, &wanted.sentences, &wanted.states),
            masked_loss(&mut model, 0, &singles),
        );
        let ablated = without_neurons(&mut model, &neurons, |model| {
            let states = difference(model, &wanted.sentences, &wanted.states_ablated);
            (states, masked_loss(model, 0, &singles))
        });
        let after = (
            difference(&mut model, &wanted.sentences, &wanted.states),
            masked_loss(&mut model, 0, &singles),
        );
        [before, ablated, after]
    };
    assert_eq!(before, after, "the model has its own weights again");
    for ((states, (masked, loss)), wanted) in
        [(before, wanted.loss), (ablated, wanted.loss_ablated)]
    {
        assert!(states < 1e-5, "{states}");
        assert_eq!(masked, 7);
        assert!((loss - wanted).abs() < 1e-5, "{loss} {wanted}");
    }
    assert!((wanted.loss - wanted.loss_ablated).abs() > 1e-4);
}

#[test]
fn neurons_are_chosen_as_published() {
    let LapeFixture { share, probabilities, entropies, threshold, specific } = fixture().lape;
    let found = lape(&probabilities, share);
    assert_eq!((found.threshold, &found.specific), (threshold, &specific));
    assert!(specific.iter().all(|of| !of.is_empty()));
    for (ours, theirs) in found.entropies.iter().zip(&entropies) {
        assert!((ours - theirs).abs() < 1e-12, "{ours} {theirs}");
    }
}

#[test]
fn a_whole_model_gives_every_number_and_wrong_requests_are_refused() {
    let mut model = bert();
    let language = model.vocabulary.languages().next().unwrap().to_owned();
    let words = ["the", "cat", "sat", "on", "mat", "it", "le", "chat", "sur", "tapis"];
    let side = |step: usize| {
        let line =
            |n: usize| format!("{} {} {}", words[n % 10], words[n * step % 10], words[n / 10 % 10]);
        ParallelSide::new(&language, "text", (0..60).map(line).collect())
    };
    let sides = [side(3), side(7)];
    let config = LanguageNeuronsConfig { share: 0.1, draws: 2, seed: 1 };
    let found = language_neurons(&mut model, &sides, config, &|_, _| {}).unwrap();
    assert_eq!((found.layers.len(), found.ablations.len(), found.overlaps.len()), (2, 4, 1));
    let chosen: usize = found.languages.iter().map(|one| one.neurons).sum();
    let by_layer: usize = found.layers.iter().flat_map(|layer| &layer.specific).map(Vec::len).sum();
    assert!(chosen > 0 && chosen == by_layer, "{chosen} {by_layer}");
    for one in &found.ablations {
        assert_eq!(one.random.len(), 2);
        assert!(one.loss.is_finite());
    }
    // The same request gives the same numbers.
    assert_eq!(language_neurons(&mut model, &sides, config, &|_, _| {}).unwrap(), found);
    let refused = |sides: &[ParallelSide], config, words: &str| {
        let error = language_neurons(&mut bert(), sides, config, &|_, _| {}).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(&sides[..1], config, "at least two");
    refused(&sides, LanguageNeuronsConfig { share: 0.5, ..config }, "at most 0.2");
    let short = [side(3), ParallelSide::new(&language, "few", vec!["the cat".to_owned()])];
    refused(&short, config, "few: has 1 different sentences");
}
