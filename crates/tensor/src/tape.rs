//! Reverse-mode automatic differentiation: runs operations forward, records them, and runs their backward
//! passes in reverse.
//!
//! The tape is made anew for every step: operations are methods of it (see `ops/`), each returns a
//! [`Var`], and a loss puts its gradient on the tape by itself. [`Tape::backward`] then visits the
//! recorded operations in reverse; what no later visit needs goes back to the pool at once.

use crate::device::Device;
use crate::kernels::Grad;
use crate::params::{ParamId, Params};
use crate::random::{Dropout, Key};
use crate::value::{Indices, Tensor};

/// A value on a tape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(usize);

/// What a tape is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Training: operations are recorded, and dropout is drawn from this seed and step.
    Train {
        /// The seed of the run.
        seed: u64,
        /// The number of the step, so that every step drops other elements.
        step: u32,
        /// Which micro-batch of the step, where gradients of several are accumulated.
        micro_batch: u16,
    },
    /// Evaluation: nothing is recorded, nothing is dropped.
    Evaluate,
}

/// An operation that was run.
struct RecordedOp {
    /// Takes the gradients of the outputs and adds those of the inputs.
    backward: Box<dyn FnOnce(&mut Tape<'_>)>,
    /// The weights whose gradients the backward pass adds to.
    params: Vec<ParamId>,
    outputs: std::ops::Range<usize>,
}

/// The values of one step, and how they came about.
pub struct Tape<'a> {
    pub(crate) device: Device,
    pub(crate) params: &'a mut Params,
    mode: Mode,
    streams: u32,
    slots: Vec<TapeSlot>,
    nodes: Vec<RecordedOp>,
}

/// A value, its gradient, and whether that gradient is wanted.
struct TapeSlot {
    value: Option<Tensor>,
    grad: Option<Tensor>,
    wanted: bool,
}

impl<'a> Tape<'a> {
    /// An empty tape over these weights.
    pub fn new(params: &'a mut Params, mode: Mode) -> Self {
        let device = params.device().clone();
        Self { device, params, mode, streams: 0, slots: Vec::new(), nodes: Vec::new() }
    }

    /// The weights that the tape runs over.
    pub fn params(&self) -> &Params {
        self.params
    }

    /// Puts a value on the tape from outside. With `wanted`, its gradient is computed too and can
    /// be read with [`Tape::grad`] after the backward pass.
    pub fn input(&mut self, value: Tensor, wanted: bool) -> Var {
        let value = self.device.kernels().working(value);
        self.push(value, wanted)
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The value.
    ///
    /// # Panics
    /// Where it was released already, by the backward pass or by [`Tape::release`].
    pub fn value(&self, var: Var) -> &Tensor {
        self.slots[var.0]
            .value
            .as_ref()
            .expect("a value is there until the backward pass releases it")
    }

    /// The gradient of an input that wanted one, after the backward pass.
    pub fn grad(&self, var: Var) -> Option<&Tensor> {
        self.slots[var.0].grad.as_ref()
    }

    /// Sets the gradient of a value from outside: where a loss is computed elsewhere.
    pub fn seed_grad(&mut self, var: Var, grad: Tensor) {
        assert_eq!(grad.shape(), self.value(var).shape(), "a gradient has its value's shape");
        let grad = self.device.kernels().working(grad);
        self.give_grad(var, grad);
    }

    /// The backward pass: from the losses to the weights, which receive their gradients.
    pub fn backward(&mut self) {
        while let Some(node) = self.nodes.pop() {
            self.visit(node);
        }
    }

    fn visit(&mut self, node: RecordedOp) {
        (node.backward)(self);
        for slot in &mut self.slots[node.outputs] {
            slot.value = None;
            slot.grad = None;
        }
    }

    /// The backward pass, with `complete` called once for every weight matrix: as soon as nothing that is left of the
    /// pass adds to its gradient. What is done with a gradient can so begin while others are still computed.
    pub fn backward_with(&mut self, complete: &mut dyn FnMut(&mut Params, ParamId)) {
        let ids: Vec<ParamId> = self.params.ids().collect();
        let mut to_come = vec![0_usize; ids.len()];
        for param in self.nodes.iter().flat_map(|node| &node.params) {
            to_come[param.number()] += 1;
        }
        for id in ids.into_iter().filter(|id| to_come[id.number()] == 0) {
            complete(self.params, id);
        }
        while let Some(mut node) = self.nodes.pop() {
            let params = std::mem::take(&mut node.params);
            self.visit(node);
            for id in params {
                to_come[id.number()] -= 1;
                if to_come[id.number()] == 0 {
                    complete(self.params, id);
                }
            }
        }
    }

    /// Whether operations apply dropout and are recorded.
    fn learning(&self) -> bool {
        self.mode != Mode::Evaluate
    }

    /// Dropout of this rate for the next operation; none when evaluating.
    pub(crate) fn dropout(&mut self, rate: f32) -> Dropout {
        let stream = self.streams;
        self.streams += 1;
        match self.mode {
            Mode::Train { seed, step, micro_batch } => {
                let stream = u32::from(micro_batch) << 16 | stream;
                Dropout { rate, key: Key { seed, step, stream } }
            }
            Mode::Evaluate => Dropout { rate: 0.0, key: Key { seed: 0, step: 0, stream } },
        }
    }

    /// Whether the gradient of this value is wanted.
    pub(crate) fn wants(&self, var: Var) -> bool {
        self.slots[var.0].wanted
    }

    /// Whether this weight is trained here.
    pub(crate) fn learns(&self, param: ParamId) -> bool {
        self.learning() && self.params.trainable(param)
    }

    pub(crate) fn push(&mut self, value: Tensor, wanted: bool) -> Var {
        self.slots.push(TapeSlot {
            value: Some(value),
            grad: None,
            wanted: wanted && self.learning(),
        });
        Var(self.slots.len() - 1)
    }

    /// Puts what an operation made on the tape, with its backward pass: from the result and its gradient to the gradients
    /// of the inputs and of `params`. It does not run where no gradient arrives.
    pub(crate) fn record(
        &mut self,
        value: Tensor,
        wanted: bool,
        params: impl IntoIterator<Item = ParamId>,
        backward: impl FnOnce(&mut Tape<'_>, Var, Tensor) + 'static,
    ) -> Var {
        let y = self.push(value, wanted);
        self.remember(1, params, move |tape| {
            if let Some(dy) = tape.take_grad(y) {
                backward(tape, y, dy);
            }
        });
        y
    }

    /// Records the operation that made the last `outputs` values, where their gradient is wanted.
    pub(crate) fn remember(
        &mut self,
        outputs: usize,
        params: impl IntoIterator<Item = ParamId>,
        backward: impl FnOnce(&mut Tape<'_>) + 'static,
    ) {
        let outputs = self.slots.len() - outputs..self.slots.len();
        if self.slots[outputs.clone()].iter().any(|slot| slot.wanted) {
            let params = params.into_iter().collect();
            self.nodes.push(RecordedOp { backward: Box::new(backward), params, outputs });
        }
    }

    /// Takes a value off the tape: for good, or for as long as the weights are being written.
    ///
    /// # Panics
    /// Where the backward pass has released it already.
    pub fn take_value(&mut self, var: Var) -> Tensor {
        self.slots[var.0]
            .value
            .take()
            .expect("a value is there until the backward pass releases it")
    }

    /// Gives the memory of a value that nothing reads any more back to the pool, where no backward pass will ask for it: in
    /// evaluation the next operation then writes where the caches already are, and no layer needs memory of its own.
    pub fn release(&mut self, var: Var) {
        if !self.learning() {
            self.slots[var.0].value = None;
        }
    }

    pub(crate) fn put_value(&mut self, var: Var, value: Tensor) {
        self.slots[var.0].value = Some(value);
    }

    /// Takes the gradient of an output, where one has arrived.
    pub(crate) fn take_grad(&mut self, var: Var) -> Option<Tensor> {
        self.slots[var.0].grad.take()
    }

    /// Lets a kernel write the gradient of an input: it is given where, and whether to add.
    /// Nothing happens where the gradient is not wanted.
    pub(crate) fn grad_into(&mut self, var: Var, write: impl FnOnce(&Device, &Params, Grad<'_>)) {
        if !self.wants(var) {
            return;
        }
        let (rows, cols) = self.value(var).shape();
        let slot = &mut self.slots[var.0];
        let accumulate = slot.grad.is_some();
        let tensor = slot.grad.get_or_insert_with(|| self.device.working(rows, cols));
        write(&self.device, self.params, Grad { tensor, accumulate });
    }

    pub(crate) fn give_grad(&mut self, var: Var, grad: Tensor) {
        if !self.wants(var) {
            return;
        }
        match &mut self.slots[var.0].grad {
            Some(sum) => self.device.kernels().add(sum, &grad),
            empty => *empty = Some(grad),
        }
    }

    /// Scatters a gradient over the rows of a table of weights, where it is trainable.
    pub(crate) fn scatter_grad(&mut self, param: ParamId, rows: &Indices, grad: &Tensor) {
        let Some(slot) = self.params.grad_slot(param) else { return };
        if !slot.accumulate {
            self.device.kernels().fill(slot.tensor, 0.0);
        }
        self.device.kernels().scatter_add(grad, rows, slot.tensor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Activation;
    use crate::ops::Affine;

    /// The table is both the embeddings' and the softmax's: its gradient is complete at the very end.
    #[test]
    fn gradients_are_reported_once_and_when_they_are_complete() {
        let device = Device::cpu(1).unwrap();
        let mut params = Params::new(&device);
        let values = |count: usize| (0..count).map(|x| (x as f32).sin()).collect::<Vec<_>>();
        let table = params.add("table", device.tensor(5, 3, &values(15)));
        let weight = params.add("weight", device.tensor(3, 3, &values(9)));
        let bias = params.add("bias", device.zeros(1, 3));
        let output_bias = params.add("output bias", device.zeros(1, 5));
        let untouched = params.add("untouched", device.zeros(1, 1));
        let mut tape = Tape::new(&mut params, Mode::Train { seed: 1, step: 1, micro_batch: 0 });
        let x = tape.embed(vec![(table, Indices::from(vec![0, 4, 2]))], None, 0.0);
        let y = tape.linear(x, Affine { weight, bias: Some(bias) }, Activation::Gelu);
        tape.tied_cross_entropy(y, table, output_bias, &vec![1, 2, 3].into(), 1.0);
        let mut reported = Vec::new();
        tape.backward_with(&mut |params, id| {
            reported.push((id, params.grad(id).map(Tensor::to_vec)));
        });
        let order: Vec<ParamId> = reported.iter().map(|(id, _)| *id).collect();
        assert_eq!(order, [output_bias, untouched, weight, bias, table]);
        for (id, grad) in reported {
            assert_eq!(grad, params.grad(id).map(Tensor::to_vec), "{}", params.name(id));
            assert_eq!(grad.is_none(), id == untouched);
        }
    }
}
