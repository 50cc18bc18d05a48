//! A value times a number.

use crate::tape::{Backward, Tape, Var};

struct Scale {
    x: Var,
    y: Var,
    factor: f32,
}

impl Tape<'_> {
    /// `factor · x`.
    pub fn scale(&mut self, x: Var, factor: f32) -> Var {
        let (rows, cols) = self.value(x).shape();
        let mut y = self.device.working(rows, cols);
        self.device.kernels().scale(self.value(x), factor, &mut y);
        let y = self.push(y, self.wants(x));
        self.remember(1, Scale { x, y, factor });
        y
    }
}

impl Backward for Scale {
    fn backward(self: Box<Self>, tape: &mut Tape<'_>) {
        let Some(dy) = tape.take_grad(self.y) else { return };
        let mut dx = tape.device.working(dy.rows(), dy.cols());
        tape.device.kernels().scale(&dy, self.factor, &mut dx);
        tape.give_grad(self.x, dx);
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
