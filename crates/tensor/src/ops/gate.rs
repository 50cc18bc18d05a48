//! The product of a gated feed-forward part (Shazeer 2020): GeGLU, SwiGLU and their kin.

use crate::kernels::Activation;
use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `activation(a) · b`, where `a` is the first half of each row and `b` the second.
    ///
    /// # Shapes
    /// `x`: rows x 2·hidden; result: rows x hidden.
    pub fn gate(&mut self, x: Var, activation: Activation) -> Var {
        let (rows, cols) = self.value(x).shape();
        assert!(cols % 2 == 0, "a gate and what goes through it");
        let mut y = self.device.working(rows, cols / 2);
        self.device.kernels().gate(self.value(x), activation, &mut y);
        self.record(y, self.wants(x), [], move |tape, _, dy| {
            let value = tape.value(x);
            let mut dx = tape.device.working(value.rows(), value.cols());
            tape.device.kernels().gate_grad(value, activation, &dy, &mut dx);
            tape.give_grad(x, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    #[test]
    fn gradients_of_every_gate() {
        for activation in Activation::ALL {
            let mut rig = GradRig::new();
            let x = rig.values(3, 10, 1.0);
            rig.check(&[x], GradCheck::default(), |tape, inputs| tape.gate(inputs[0], activation));
        }
    }

    #[test]
    fn the_first_half_is_the_gate() {
        let mut rig = GradRig::new();
        let x = rig.of(&[&[-1.0, 2.0, 5.0, 7.0]]);
        let y = rig.forward(&[x], |tape, inputs| tape.gate(inputs[0], Activation::Relu));
        assert_eq!(y, [0.0, 14.0]);
    }
}
