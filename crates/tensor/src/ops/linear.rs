//! An affine map, and the activation that follows it; GELU is fused.

use crate::params::ParamId;
use crate::tape::{Backward, Tape, Var};
use crate::value::Tensor;

/// The weights of an affine map `x · weight + bias`.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    /// Inputs x outputs.
    pub weight: ParamId,
    /// 1 x outputs.
    pub bias: ParamId,
}

/// What follows an affine map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    None,
    /// `x · Φ(x)`, by the error function and not by a hyperbolic tangent.
    Gelu,
    /// `x` above 0, `e^x - 1` below.
    Elu,
}

struct Linear {
    x: Var,
    y: Var,
    affine: Affine,
    /// The derivative of the activation: rows x outputs.
    slope: Option<Tensor>,
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
        let mut y = self.device.empty(rows, outputs);
        let mut slope = (activation != Activation::None).then(|| self.device.empty(rows, outputs));
        let kernels = self.device.kernels();
        kernels.linear(
            self.value(x),
            self.params.value(affine.weight),
            self.params.value(affine.bias),
            &mut y,
            slope.as_mut().filter(|_| activation == Activation::Gelu),
        );
        if let (Activation::Elu, Some(slope)) = (activation, &mut slope) {
            kernels.elu(&mut y, slope);
        }
        let wanted = self.wants(x) || self.learns(affine.weight) || self.learns(affine.bias);
        let y = self.push(y, wanted);
        self.remember(1, Linear { x, y, affine, slope });
        y
    }
}

impl Backward for Linear {
    fn backward(self: Box<Self>, tape: &mut Tape<'_>) {
        let Some(mut dy) = tape.take_grad(self.y) else { return };
        let device = tape.device.clone();
        let kernels = device.kernels();
        if let Some(slope) = &self.slope {
            kernels.scale_by(&mut dy, slope);
        }
        tape.grad_into(self.x, |device, params, dx| {
            device.kernels().linear_input_grad(&dy, params.value(self.affine.weight), dx);
        });
        // The weights are borrowed from the tape to be written while the input is read.
        let x = tape.take_value(self.x);
        if let Some(dw) = tape.params.grad_slot(self.affine.weight) {
            kernels.linear_weight_grad(&x, &dy, dw);
        }
        tape.put_value(self.x, x);
        if let Some(db) = tape.params.grad_slot(self.affine.bias) {
            kernels.column_sum(&dy, db);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{Check, Rig};

    fn check(activation: Activation) {
        let mut rig = Rig::new();
        let affine =
            Affine { weight: rig.param("weight", 5, 7, 0.5), bias: rig.param("bias", 1, 7, 0.5) };
        let x = rig.values(3, 5, 1.0);
        rig.check(&[x], Check::default(), |tape, inputs| {
            tape.linear(inputs[0], affine, activation)
        });
    }

    #[test]
    fn gradients_of_the_plain_map() {
        check(Activation::None);
    }

    #[test]
    fn gradients_through_gelu() {
        check(Activation::Gelu);
    }

    #[test]
    fn gradients_through_elu() {
        check(Activation::Elu);
    }
}
