//! One row against another under many labels: with an affine map before it, the bilinear form that
//! scores the labels of an arc.

use crate::kernels::PairGrads;
use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `y[i][c] = x[i][c·dim..(c + 1)·dim] · z[i]`.
    ///
    /// # Shapes
    /// `x`: rows x (blocks · dim); `z`: rows x dim; result: rows x blocks.
    pub fn block_dots(&mut self, x: Var, z: Var) -> Var {
        let ((rows, wide), (other, dim)) = (self.value(x).shape(), self.value(z).shape());
        assert!(rows == other && dim > 0 && wide % dim == 0, "blocks as wide as the other row");
        let mut y = self.device.working(rows, wide / dim);
        self.device.kernels().block_dots(self.value(x), self.value(z), &mut y);
        self.record(y, self.wants(x) || self.wants(z), [], move |tape, _, dy| {
            let (left, right) = (tape.value(x), tape.value(z));
            let mut dx = tape.device.working(left.rows(), left.cols());
            let mut dz = tape.device.working(right.rows(), right.cols());
            let grads = PairGrads { left: &mut dx, right: &mut dz };
            tape.device.kernels().block_dots_grad(left, right, &dy, grads);
            tape.give_grad(x, dx);
            tape.give_grad(z, dz);
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::kernels::Activation;
    use crate::ops::Affine;
    use crate::ops::testing::{GradCheck, GradRig};

    #[test]
    fn gradients_of_every_label() {
        let mut rig = GradRig::new();
        let (x, z) = (rig.values(4, 15, 1.0), rig.values(4, 5, 1.0));
        rig.check(&[x, z], GradCheck::default(), |tape, inputs| {
            tape.block_dots(inputs[0], inputs[1])
        });
    }

    #[test]
    fn gradients_of_a_bilinear_form() {
        let mut rig = GradRig::new();
        let affine = Affine {
            weight: rig.param("weight", 4, 15, 0.5),
            bias: Some(rig.param("bias", 1, 15, 0.5)),
        };
        let (x, z) = (rig.values(3, 4, 1.0), rig.values(3, 5, 1.0));
        rig.check(&[x, z], GradCheck::default(), |tape, inputs| {
            let wide = tape.linear(inputs[0], affine, Activation::None);
            tape.block_dots(wide, inputs[1])
        });
    }
}
