//! One vector added to every row: how representations are shifted from one language to another.

use crate::tape::{Backward, Tape, Var};
use crate::value::Tensor;

struct AddRow {
    x: Var,
    y: Var,
}

impl Tape<'_> {
    /// `x + row`, with `row` a constant.
    ///
    /// # Shapes
    /// `x` and the result: rows x dim; `row`: 1 x dim.
    pub fn add_row(&mut self, x: Var, row: &Tensor) -> Var {
        let (rows, cols) = self.value(x).shape();
        assert_eq!(row.shape(), (1, cols), "one row of the same width is added");
        let mut y = self.device.working(rows, cols);
        self.device.kernels().add_row(self.value(x), row, &mut y);
        let y = self.push(y, self.wants(x));
        self.remember(1, AddRow { x, y });
        y
    }
}

impl Backward for AddRow {
    fn backward(self: Box<Self>, tape: &mut Tape<'_>) {
        if let Some(dy) = tape.take_grad(self.y) {
            tape.give_grad(self.x, dy);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{Check, Rig};

    #[test]
    fn gradients_pass_through() {
        let mut rig = Rig::new();
        let x = rig.values(3, 5, 1.0);
        let row = rig.device().tensor(1, 5, &[1.0, -2.0, 3.0, 0.5, 0.0]);
        rig.check(&[x], Check::default(), |tape, inputs| tape.add_row(inputs[0], &row));
    }
}
