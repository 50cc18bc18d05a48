//! Some of the rows: masked positions, first subwords, first tokens.

use crate::tape::{Tape, Var};
use crate::value::Indices;

impl Tape<'_> {
    /// The given rows of `x`, in the given order.
    ///
    /// # Shapes
    /// `x`: n x dim; result: `rows.len()` x dim.
    ///
    /// # Panics
    /// Where `x` has no such row.
    pub fn select(&mut self, x: Var, rows: &Indices) -> Var {
        rows.assert_below(self.value(x).rows(), "row");
        let mut y = self.device.working(rows.len(), self.value(x).cols());
        self.device.kernels().select(self.value(x), rows, &mut y);
        let rows = rows.clone();
        self.record(y, self.wants(x), [], move |tape, _, dy| {
            tape.grad_into(x, |device, _, dx| {
                if !dx.accumulate {
                    device.kernels().fill(dx.tensor, 0.0);
                }
                device.kernels().scatter_add(&dy, &rows, dx.tensor);
            });
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{GradCheck, GradRig};
    use crate::value::Indices;

    #[test]
    fn gradients_go_back_to_their_rows() {
        let mut rig = GradRig::new();
        let x = rig.values(6, 4, 1.0);
        let rows = Indices::from(vec![5, 0, 3, 3]);
        rig.check(&[x], GradCheck::default(), |tape, inputs| tape.select(inputs[0], &rows));
    }
}
