//! The softmax over a few classes, and its cross-entropy. A row may have fewer classes than there
//! are columns: a word has as many possible heads as its sentence has words.

use crate::kernels::ClassSoftmax;
use crate::tape::{Tape, Var};
use crate::value::{Indices, Tensor};

impl Tape<'_> {
    /// Cross-entropy of the softmax of each row over its first `widths[row]` columns against
    /// `targets[row]`. When training, the gradient of `weight` times the sum of the losses goes
    /// onto the tape at once.
    ///
    /// # Shapes
    /// `scores`: rows x classes; result: 1 x 2, the sum of the losses and how many targets had the
    /// highest score.
    ///
    /// # Panics
    /// Where a target is beyond its row's width.
    pub fn cross_entropy(
        &mut self,
        scores: Var,
        widths: &Indices,
        targets: &Indices,
        weight: f32,
    ) -> Tensor {
        let (rows, cols) = self.value(scores).shape();
        assert_eq!((widths.len(), targets.len()), (rows, rows), "a target for every row");
        let mut pairs = widths.iter().zip(targets.iter());
        assert!(pairs.all(|(&w, &t)| t < w && w as usize <= cols), "a target among its classes");
        let device = self.device.clone();
        let mut score = device.empty(1, 2);
        let mut grad = self.wants(scores).then(|| device.working(rows, cols));
        let softmax = ClassSoftmax { scores: self.value(scores), widths, targets, weight };
        device.kernels().cross_entropy(softmax, &mut score, grad.as_mut());
        if let Some(grad) = grad {
            self.give_grad(scores, grad);
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use crate::ops::testing::{GradCheck, GradRig};
    use crate::value::Indices;

    #[test]
    fn gradients_of_the_softmax() {
        let mut rig = GradRig::new();
        let scores = rig.values(9, 7, 1.5);
        let (widths, targets): (Indices, Indices) =
            ([7; 9].into_iter().collect(), (0..9).map(|row| row * 5 % 7).collect());
        rig.check_loss(&[scores], GradCheck::default(), |tape, inputs| {
            tape.cross_entropy(inputs[0], &widths, &targets, 1.0)
        });
    }

    #[test]
    fn gradients_of_rows_of_different_width() {
        let mut rig = GradRig::new();
        let scores = rig.values(4, 6, 1.5);
        let (widths, targets) = (Indices::from(vec![1, 6, 3, 2]), Indices::from(vec![0, 5, 1, 1]));
        rig.check_loss(&[scores], GradCheck::default(), |tape, inputs| {
            tape.cross_entropy(inputs[0], &widths, &targets, 1.0)
        });
    }

    #[test]
    fn losses_and_correct_predictions() {
        let mut rig = GradRig::new();
        let scores = rig.values(50, 5, 2.0);
        let (widths, targets): (Indices, Indices) =
            ((0..50).map(|row| row % 4 + 2).collect(), (0..50).map(|row| row % 2).collect());
        let values = rig.forward(std::slice::from_ref(&scores), |_, inputs| inputs[0]);
        let score = rig.forward(&[scores], |tape, inputs| {
            let score = tape.cross_entropy(inputs[0], &widths, &targets, 1.0);
            tape.input(score, false)
        });
        let (mut loss, mut right) = (0.0, 0.0);
        for (row, values) in values.chunks(5).enumerate() {
            let values = &values[..widths[row] as usize];
            let target = values[targets[row] as usize];
            let sum: f64 = values.iter().map(|&value| f64::from(value).exp()).sum();
            loss += sum.ln() - f64::from(target);
            right += f32::from(values.iter().all(|&value| value <= target));
        }
        assert!((f64::from(score[0]) - loss).abs() < 1e-4 * loss, "{} {loss}", score[0]);
        assert_eq!(score[1], right);
    }
}
