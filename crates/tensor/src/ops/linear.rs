//! An affine map with an activation after it.

use crate::kernels::{Activation, LinearForward};
use crate::params::ParamId;
use crate::tape::{Tape, Var};

/// The weights of an affine map `x · weight + bias`.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    /// Inputs x outputs.
    pub weight: ParamId,
    /// 1 x outputs, where there is one.
    pub bias: Option<ParamId>,
}

impl Affine {
    fn params(&self) -> impl Iterator<Item = ParamId> + use<> {
        std::iter::once(self.weight).chain(self.bias)
    }
}

impl Tape<'_> {
    /// `activation(x · weight + bias)`.
    ///
    /// # Shapes
    /// `x`: rows x inputs; result: rows x outputs.
    pub fn linear(&mut self, x: Var, affine: Affine, activation: Activation) -> Var {
        let rows = self.value(x).rows();
        let (inputs, outputs) = self.params.value(affine.weight).shape();
        assert_eq!(self.value(x).cols(), inputs, "an affine map of that many inputs");
        let wanted = self.wants(x) || affine.params().any(|id| self.learns(id));
        let mut y = self.device.working(rows, outputs);
        // Nothing is saved for a backward pass that will not be.
        let mut saved =
            (wanted && activation.needs_saved()).then(|| self.device.working(rows, outputs));
        self.device.kernels().linear(
            self.value(x),
            self.params.value(affine.weight),
            affine.bias.map(|bias| self.params.value(bias)),
            activation,
            &mut y,
            saved.as_mut(),
        );
        self.record(y, wanted, affine.params(), move |tape, y, mut dy| {
            let device = tape.device.clone();
            let kernels = device.kernels();
            // Values are borrowed from the tape to be read while gradients of weights are written.
            let y = tape.take_value(y);
            let forward = LinearForward { activation, y: &y, saved: saved.as_ref() };
            let bias = affine.bias.and_then(|bias| tape.params.grad_slot(bias));
            kernels.bias_grad(&mut dy, forward, bias);
            drop(y);
            tape.grad_into(x, |device, params, dx| {
                device.kernels().linear_input_grad(&dy, params.value(affine.weight), dx);
            });
            let value = tape.take_value(x);
            if let Some(dw) = tape.params.grad_slot(affine.weight) {
                kernels.linear_weight_grad(&value, &dy, dw);
            }
            tape.put_value(x, value);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    fn check(activation: Activation, biased: bool) {
        let mut rig = GradRig::new();
        let weight = rig.param("weight", 5, 7, 0.5);
        let affine = Affine { weight, bias: biased.then(|| rig.param("bias", 1, 7, 0.5)) };
        let x = rig.values(3, 5, 1.0);
        rig.check(&[x], GradCheck::default(), |tape, inputs| {
            tape.linear(inputs[0], affine, activation)
        });
    }

    #[test]
    fn gradients_of_every_activation() {
        for activation in Activation::ALL {
            check(activation, true);
            check(activation, false);
        }
    }
}
