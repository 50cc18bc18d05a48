//! The exponential linear unit.

use crate::tape::{Backward, Tape, Var};

struct Elu {
    x: Var,
    y: Var,
}

impl Tape<'_> {
    /// `x` above 0, `e^x - 1` below.
    ///
    /// # Shapes
    /// `x` and the result: rows x dim.
    pub fn elu(&mut self, x: Var) -> Var {
        let (rows, cols) = self.value(x).shape();
        let mut y = self.device.working(rows, cols);
        self.device.kernels().elu(self.value(x), &mut y);
        let y = self.push(y, self.wants(x));
        self.remember(1, Elu { x, y });
        y
    }
}

impl Backward for Elu {
    fn backward(self: Box<Self>, tape: &mut Tape<'_>) {
        let Some(dy) = tape.take_grad(self.y) else { return };
        let mut dx = tape.device.working(dy.rows(), dy.cols());
        tape.device.kernels().elu_grad(tape.value(self.y), &dy, &mut dx);
        tape.give_grad(self.x, dx);
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{Check, Rig};

    #[test]
    fn gradients_on_both_sides_of_zero() {
        let mut rig = Rig::new();
        let x = rig.values(5, 7, 2.0);
        rig.check(&[x], Check::default(), |tape, inputs| tape.elu(inputs[0]));
    }
}
