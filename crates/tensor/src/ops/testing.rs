//! Gradient checks by finite differences.

use std::ops::Range;

use crate::device::Device;
use crate::params::{ParamId, Params};
use crate::random::{Draws, Key};
use crate::tape::{Mode, Tape, Var};
use crate::value::Tensor;

#[derive(Clone)]
pub(crate) struct Values {
    cols: usize,
    elements: Vec<f32>,
}

impl Values {
    pub(crate) fn elements(&self) -> &[f32] {
        &self.elements
    }

    pub(crate) fn choose(&self, rows: &[u32]) -> Self {
        let row = |&row: &u32| &self.elements[row as usize * self.cols..][..self.cols];
        Self { cols: self.cols, elements: rows.iter().flat_map(row).copied().collect() }
    }

    pub(crate) fn rows(&self, rows: Range<usize>) -> Self {
        let elements = self.elements[rows.start * self.cols..rows.end * self.cols].to_vec();
        Self { cols: self.cols, elements }
    }
}

pub(crate) struct GradCheck {
    /// How far to move an element to each side.
    pub(crate) step: f32,
    /// How far the two gradients may differ, in units of the larger plus one.
    pub(crate) tolerance: f64,
    /// How many elements of each matrix to try at most.
    pub(crate) samples: usize,
}

impl Default for GradCheck {
    fn default() -> Self {
        Self { step: 5e-3, tolerance: 4e-3, samples: 60 }
    }
}

/// A model of a few random weights to check operations on.
pub(crate) struct GradRig {
    params: Params,
    draws: Draws,
}

impl GradRig {
    pub(crate) fn new() -> Self {
        let device = Device::cpu(2).expect("two threads");
        let draws = Draws::new(Key { seed: 5, step: 0, stream: 0 });
        Self { params: Params::new(&device), draws }
    }

    pub(crate) fn device(&self) -> &Device {
        self.params.device()
    }

    /// A random weight matrix, normal with this deviation.
    pub(crate) fn param(&mut self, name: &str, rows: usize, cols: usize, scale: f32) -> ParamId {
        let values = self.values(rows, cols, scale);
        let tensor = self.device().tensor(rows, cols, &values.elements);
        self.params.add(name, tensor)
    }

    /// A random input, normal with this deviation.
    pub(crate) fn values(&mut self, rows: usize, cols: usize, scale: f32) -> Values {
        let elements = (0..rows * cols).map(|_| scale * self.draws.normal()).collect();
        Values { cols, elements }
    }

    /// An input of these rows.
    pub(crate) fn of(&self, rows: &[&[f32]]) -> Values {
        Values { cols: rows[0].len(), elements: rows.concat() }
    }

    pub(crate) fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }

    pub(crate) fn forward(
        &mut self,
        inputs: &[Values],
        operation: impl Fn(&mut Tape<'_>, &[Var]) -> Var,
    ) -> Vec<f32> {
        let mut tape = Tape::new(&mut self.params, Mode::Evaluate);
        let vars = put(&mut tape, inputs);
        let y = operation(&mut tape, &vars);
        tape.value(y).to_vec()
    }

    /// The gradients of all weights after one pass through a loss.
    pub(crate) fn param_grads(
        &mut self,
        inputs: &[Values],
        loss: impl Fn(&mut Tape<'_>, &[Var]) -> Tensor,
    ) -> Vec<Vec<f32>> {
        self.params.clear_grads();
        let mut tape =
            Tape::new(&mut self.params, Mode::Train { seed: 3, step: 1, micro_batch: 0 });
        let vars = put(&mut tape, inputs);
        loss(&mut tape, &vars);
        tape.backward();
        let grad = |id| self.params.grad(id).map(Tensor::to_vec).unwrap_or_default();
        self.params.ids().map(grad).collect()
    }

    /// Checks an operation through a random linear function of its result.
    pub(crate) fn check(
        &mut self,
        inputs: &[Values],
        check: GradCheck,
        operation: impl Fn(&mut Tape<'_>, &[Var]) -> Var,
    ) {
        let weights = self.values(1, 1 << 12, 1.0).elements;
        self.compare(inputs, check, |tape, inputs, backward| {
            let y = operation(tape, inputs);
            let (rows, cols) = tape.value(y).shape();
            let pairs = tape.value(y).as_slice().iter().zip(&weights);
            let loss = pairs.map(|(&y, &w)| f64::from(y) * f64::from(w)).sum();
            if backward {
                let seed = tape.device.tensor(rows, cols, &weights[..rows * cols]);
                tape.seed_grad(y, seed);
            }
            loss
        });
    }

    /// Checks an operation that is a loss itself.
    pub(crate) fn check_loss(
        &mut self,
        inputs: &[Values],
        check: GradCheck,
        operation: impl Fn(&mut Tape<'_>, &[Var]) -> Tensor,
    ) {
        self.compare(inputs, check, |tape, inputs, _| {
            f64::from(operation(tape, inputs).as_slice()[0])
        });
    }

    fn compare(
        &mut self,
        inputs: &[Values],
        check: GradCheck,
        loss: impl Fn(&mut Tape<'_>, &[Var], bool) -> f64,
    ) {
        let mode = Mode::Train { seed: 3, step: 1, micro_batch: 0 };
        self.params.clear_grads();
        let mut tape = Tape::new(&mut self.params, mode);
        let vars = put(&mut tape, inputs);
        loss(&mut tape, &vars, true);
        tape.backward();
        let input_grads: Vec<Vec<f32>> =
            vars.iter().map(|&var| tape.grad(var).expect("every input is used").to_vec()).collect();
        let param_grad = |id| (id, self.params.grad(id).map(Tensor::to_vec));
        let param_grads: Vec<_> = self.params.ids().map(param_grad).collect();

        let mut moved = inputs.to_vec();
        for (at, grads) in input_grads.iter().enumerate() {
            for element in sampled(grads.len(), check.samples) {
                let original = moved[at].elements[element];
                let mut at_offset = |offset: f32| {
                    moved[at].elements[element] = original + offset;
                    let mut tape = Tape::new(&mut self.params, mode);
                    let vars = put(&mut tape, &moved);
                    loss(&mut tape, &vars, false)
                };
                let difference =
                    (at_offset(check.step) - at_offset(-check.step)) / f64::from(2.0 * check.step);
                moved[at].elements[element] = original;
                close(
                    &format!("input {at}[{element}]"),
                    grads[element],
                    difference,
                    check.tolerance,
                );
            }
        }
        for (id, grads) in param_grads {
            let name = self.params.name(id).to_owned();
            let grads = grads.unwrap_or_else(|| panic!("{name} received no gradient"));
            for element in sampled(grads.len(), check.samples) {
                let original = self.params.value(id).as_slice()[element];
                let mut at_offset = |offset: f32| {
                    self.params.value_mut(id).as_mut_slice()[element] = original + offset;
                    let mut tape = Tape::new(&mut self.params, mode);
                    let vars = put(&mut tape, inputs);
                    loss(&mut tape, &vars, false)
                };
                let difference =
                    (at_offset(check.step) - at_offset(-check.step)) / f64::from(2.0 * check.step);
                self.params.value_mut(id).as_mut_slice()[element] = original;
                close(&format!("{name}[{element}]"), grads[element], difference, check.tolerance);
            }
        }
    }
}

fn put(tape: &mut Tape<'_>, inputs: &[Values]) -> Vec<Var> {
    let put = |values: &Values| {
        let (rows, cols) = (values.elements.len() / values.cols, values.cols);
        let tensor = tape.device.tensor(rows, cols, &values.elements);
        tape.input(tensor, true)
    };
    inputs.iter().map(put).collect()
}

fn sampled(len: usize, samples: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(len.div_ceil(samples))
}

fn close(what: &str, analytic: f32, numeric: f64, tolerance: f64) {
    let analytic = f64::from(analytic);
    let allowed = tolerance * (1.0 + analytic.abs().max(numeric.abs()));
    assert!((analytic - numeric).abs() < allowed, "{what}: {analytic} but measured {numeric}");
}
