//! A value times a number.

use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `factor · x`.
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        let (rows, cols) = self.value(x).shape();
        let mut y = self.device.working(rows, cols);
        self.device.kernels().scale(self.value(x), factor, &mut y);
        self.record(y, self.wants(x), [], move |tape, _, dy| {
            let mut dx = tape.device.working(dy.rows(), dy.cols());
            tape.device.kernels().scale(&dy, factor, &mut dx);
            tape.give_grad(x, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{GradCheck, GradRig};

    #[test]
    fn gradients_of_a_multiple() {
        let mut rig = GradRig::new();
        let x = rig.values(3, 5, 1.0);
        rig.check(&[x], GradCheck::default(), |tape, inputs| tape.scale(inputs[0], -1.5));
    }
}
