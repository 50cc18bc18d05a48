//! The gradients of a whole parser against finite differences.

use tasks::heads::{Head, Parser, ParserSizes};
use tasks::registry::HeadShape;
use tasks::{Annotation, Example, LabelSet, NONE};
use tensor::random::{Draws, Key};
use tensor::{Device, Mode, Params, Tape};

const DIM: usize = 6;

fn parser(params: &mut Params, labels: &LabelSet, sizes: ParserSizes) -> Parser {
    let parser = Some(sizes);
    Parser::new(params, &HeadShape { seed: 3, dim: DIM, labels, dropout: 0.0, parser })
}

fn example(heads: &[u32], labels: &[u32]) -> Example {
    let gold = heads.iter().zip(labels).map(|(&head, &label)| Annotation { label, head });
    let positions = (0..=heads.len() as u32).collect();
    Example { tokens: vec![], positions, gold: gold.collect(), item: 0 }
}

/// The mean loss of arcs and relations, with gradients where they are asked for.
fn loss(
    params: &mut Params,
    parser: &Parser,
    vectors: &[f32],
    batch: &[&Example],
    learn: bool,
) -> f64 {
    let mode =
        if learn { Mode::Train { seed: 1, step: 1, micro_batch: 0 } } else { Mode::Evaluate };
    let device = params.device().clone();
    let rows = vectors.len() / DIM;
    let mut tape = Tape::new(params, mode);
    let input = tape.input(device.tensor(rows, DIM, vectors), learn);
    let score = parser.loss(&mut tape, input, batch).to_vec();
    if learn {
        tape.backward();
    }
    let known = batch.iter().flat_map(|example| &example.gold);
    f64::from(score[0]) / known.filter(|gold| gold.head != NONE).count() as f64
}

#[test]
fn gradients_equal_finite_differences() {
    let device = Device::cpu(2).unwrap();
    let mut params = Params::new(&device);
    let labels = LabelSet::new(["det", "nsubj", "root"]);
    let sizes = ParserSizes { arc: 5, label: 4 };
    let parser = parser(&mut params, &labels, sizes);
    let mut draws = Draws::new(Key { seed: 9, step: 0, stream: 0 });
    // The forms start at zero, where half of the gradients would be zero too.
    for (_, value, _) in params.iter_mut() {
        value.as_mut_slice().iter_mut().for_each(|weight| *weight += 0.3 * draws.normal());
    }
    let first = example(&[2, 0, 2, NONE], &[0, 2, 1, 1]);
    let second = example(&[0], &[2]);
    let third = example(&[3, 1, 0], &[0, 1, 2]);
    let batch = [&first, &second, &third];
    let rows: usize = batch.iter().map(|example| example.positions.len()).sum();
    let vectors: Vec<f32> = (0..rows * DIM).map(|_| draws.normal()).collect();
    loss(&mut params, &parser, &vectors, &batch, true);
    let grads: Vec<Vec<f32>> =
        params.ids().map(|id| params.grad(id).expect("every weight learns").to_vec()).collect();
    let mut checked = 0;
    for (id, grads) in params.ids().zip(grads) {
        for (at, &grad) in grads.iter().enumerate().step_by(1 + grads.len() / 25) {
            let original = params.value(id).as_slice()[at];
            let mut moved = |offset: f32| {
                params.value_mut(id).as_mut_slice()[at] = original + offset;
                loss(&mut params, &parser, &vectors, &batch, false)
            };
            let difference = (moved(5e-3) - moved(-5e-3)) / 1e-2;
            params.value_mut(id).as_mut_slice()[at] = original;
            let (name, grad) = (params.name(id), f64::from(grad));
            assert!(
                (grad - difference).abs() < 2e-3 * (1.0 + difference.abs()),
                "{name}[{at}]: {grad} {difference}"
            );
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

#[test]
fn a_parser_learns_the_trees_it_is_trained_on_and_predicts_trees() {
    let device = Device::cpu(2).unwrap();
    let mut params = Params::new(&device);
    let labels = LabelSet::new(["det", "nsubj", "root"]);
    let parser = parser(&mut params, &labels, ParserSizes { arc: 8, label: 8 });
    let examples = [example(&[2, 0, 2], &[0, 2, 1]), example(&[0, 1], &[2, 0])];
    let batch: Vec<&Example> = examples.iter().collect();
    let mut draws = Draws::new(Key { seed: 2, step: 0, stream: 0 });
    let vectors: Vec<f32> = (0..7 * DIM).map(|_| draws.normal()).collect();
    for _ in 0..300 {
        params.clear_grads();
        loss(&mut params, &parser, &vectors, &batch, true);
        for (_, value, grad) in params.iter_mut() {
            let Some(grad) = grad else { continue };
            let steps = value.as_mut_slice().iter_mut().zip(grad.as_slice());
            steps.for_each(|(value, grad)| *value -= 0.2 * grad);
        }
    }
    let mut tape = Tape::new(&mut params, Mode::Evaluate);
    let input = tape.input(device.tensor(7, DIM, &vectors), false);
    let predictions = parser.predict(&mut tape, input, &batch);
    assert_eq!(predictions, [examples[0].gold.clone(), examples[1].gold.clone()]);
}
