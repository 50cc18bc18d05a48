//! Dropout by itself, where there is nothing to fuse it with.

use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `dropout(x)`; `x` itself when evaluating.
    ///
    /// # Shapes
    /// `x` and the result: rows x dim.
    pub fn drop(&mut self, x: Var, rate: f32) -> Var {
        let dropout = self.dropout(rate);
        if dropout.rate == 0.0 {
            return x;
        }
        let (rows, cols) = self.value(x).shape();
        let mut y = self.device.working(rows, cols);
        self.device.kernels().dropout(self.value(x), dropout, &mut y);
        self.record(y, self.wants(x), [], move |tape, _, dy| {
            let mut dx = tape.device.working(dy.rows(), dy.cols());
            tape.device.kernels().dropout(&dy, dropout, &mut dx);
            tape.give_grad(x, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{GradCheck, GradRig};

    #[test]
    fn gradients_of_what_is_kept() {
        let mut rig = GradRig::new();
        let x = rig.values(6, 11, 1.0);
        rig.check(&[x], GradCheck::default(), |tape, inputs| tape.drop(inputs[0], 0.3));
    }

    #[test]
    fn evaluating_drops_nothing() {
        let mut rig = GradRig::new();
        let x = rig.values(3, 4, 1.0);
        let kept = rig.forward(std::slice::from_ref(&x), |tape, inputs| tape.drop(inputs[0], 0.9));
        let same = rig.forward(&[x], |_, inputs| inputs[0]);
        assert_eq!(kept, same);
    }
}
