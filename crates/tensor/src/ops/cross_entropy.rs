//! The softmax over a vocabulary whose output weights are the embedding table (Press and Wolf 2017), and
//! its cross-entropy.

use crate::kernels::{TiedGrads, TiedSoftmax};
use crate::params::ParamId;
use crate::tape::{Tape, Var};
use crate::value::{Indices, Tensor};

impl Tape<'_> {
    /// The logits of every row over the whole vocabulary: `hidden · tableᵀ + bias`. For reading
    /// predictions; no gradient passes through.
    ///
    /// # Shapes
    /// `hidden`: rows x dim; `table`: vocabulary x dim; `bias`: 1 x vocabulary; result: rows x
    /// vocabulary.
    pub fn logits(&mut self, hidden: Var, table: ParamId, bias: ParamId) -> Tensor {
        let (table, bias) = (self.params.value(table), self.params.value(bias));
        let mut y = self.device.empty(self.value(hidden).rows(), table.rows());
        self.device.kernels().logits(self.value(hidden), table, bias, &mut y);
        y
    }

    /// For each row, the entry of the table with the largest logit, the first of equals. `hidden` may be several `copies` of some
    /// rows that resemble each other (1 if they do not), which saves time and changes nothing.
    ///
    /// # Shapes
    /// `hidden`: rows x dim; `table`: vocabulary x dim; `bias`: 1 x vocabulary; result: a number a row.
    pub fn best_tokens(
        &self,
        hidden: Var,
        table: ParamId,
        bias: ParamId,
        copies: usize,
    ) -> Vec<u32> {
        let (table, bias) = (self.params.value(table), self.params.value(bias));
        self.device.kernels().best_tokens(self.value(hidden), table, bias, copies)
    }

    /// Cross-entropy of `softmax(hidden · tableᵀ + bias)` against `targets`. When training, the
    /// gradients of `weight` times the sum of the losses are put on the tape at once, since the
    /// logits are at hand only now: they are never in memory whole.
    ///
    /// # Shapes
    /// `hidden`: rows x dim; `table`: vocabulary x dim; `bias`: 1 x vocabulary; result: 1 x 2, the
    /// sum of the losses and how many targets had the highest score.
    ///
    /// # Panics
    /// Where a target is not in the table.
    pub fn tied_cross_entropy(
        &mut self,
        hidden: Var,
        table: ParamId,
        bias: ParamId,
        targets: &Indices,
        weight: f32,
    ) -> Tensor {
        let (rows, dim) = self.value(hidden).shape();
        assert_eq!(rows, targets.len(), "a target for every row");
        targets.assert_below(self.params.value(table).rows(), "target");
        let device = self.device.clone();
        let kernels = device.kernels();
        let mut score = device.empty(1, 2);
        if !(self.wants(hidden) || self.learns(table) || self.learns(bias)) {
            let (table, bias) = (self.params.value(table), self.params.value(bias));
            let hidden = self.value(hidden);
            let softmax = TiedSoftmax { hidden, table, bias, targets, weight };
            kernels.tied_cross_entropy(softmax, &mut score, None);
            return score;
        }
        let h = self.take_value(hidden);
        let mut dhidden = device.working(rows, dim);
        let [(table, table_grad), (bias, bias_grad)] = self.params.split([table, bias]);
        let grads = TiedGrads { hidden: &mut dhidden, table: table_grad, bias: bias_grad };
        let softmax = TiedSoftmax { hidden: &h, table, bias, targets, weight };
        kernels.tied_cross_entropy(softmax, &mut score, Some(grads));
        self.put_value(hidden, h);
        self.give_grad(hidden, dhidden);
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    /// More rows than one chunk of the CPU's kernel, and more entries than one of its blocks.
    const ROWS: usize = 131;
    const VOCABULARY: usize = 521;

    fn targets() -> Indices {
        (0..ROWS as u32).map(|row| row * 37 % VOCABULARY as u32).collect()
    }

    #[test]
    fn gradients_of_the_tied_softmax() {
        let mut rig = GradRig::new();
        let (table, bias) =
            (rig.param("table", VOCABULARY, 4, 0.7), rig.param("bias", 1, VOCABULARY, 0.7));
        let hidden = rig.values(ROWS, 4, 1.0);
        rig.check_loss(
            &[hidden],
            GradCheck { step: 0.05, tolerance: 5e-3, samples: 40 },
            |tape, inputs| tape.tied_cross_entropy(inputs[0], table, bias, &targets(), 1.0),
        );
    }

    #[test]
    fn no_targets_give_no_gradient() {
        let mut rig = GradRig::new();
        let (table, bias) = (rig.param("table", 9, 4, 0.7), rig.param("bias", 1, 9, 0.7));
        let hidden = rig.values(3, 4, 1.0);
        // A first pass leaves gradients behind in the memory that the second is given.
        let some = Indices::from(vec![1, 2, 3]);
        let first = rig.param_grads(&[hidden], |tape, inputs| {
            tape.tied_cross_entropy(inputs[0], table, bias, &some, 1.0)
        });
        assert!(first.iter().flatten().any(|&grad| grad != 0.0));
        let nothing = rig.values(0, 4, 1.0);
        let none = rig.param_grads(&[nothing], |tape, inputs| {
            tape.tied_cross_entropy(inputs[0], table, bias, &Vec::new().into(), 1.0)
        });
        assert!(none.iter().flatten().all(|&grad| grad == 0.0), "{none:?}");
    }

    #[test]
    fn the_loss_is_that_of_the_logits() {
        let mut rig = GradRig::new();
        let (table, bias) =
            (rig.param("table", VOCABULARY, 4, 0.7), rig.param("bias", 1, VOCABULARY, 0.7));
        let hidden = rig.values(ROWS, 4, 2.0);
        let logits = rig.forward(std::slice::from_ref(&hidden), |tape, inputs| {
            let logits = tape.logits(inputs[0], table, bias);
            tape.input(logits, false)
        });
        let score = rig.forward(&[hidden], |tape, inputs| {
            let score = tape.tied_cross_entropy(inputs[0], table, bias, &targets(), 1.0);
            tape.input(score, false)
        });
        let (mut loss, mut correct) = (0.0, 0.0);
        for (row, &target) in logits.chunks(VOCABULARY).zip(targets().iter()) {
            let sum: f64 = row.iter().map(|&x| f64::from(x).exp()).sum();
            loss += sum.ln() - f64::from(row[target as usize]);
            let best = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            correct += f32::from(row[target as usize] == best);
        }
        assert!((f64::from(score[0]) - loss).abs() < 1e-3 * loss, "{} {loss}", score[0]);
        assert_eq!(score[1], correct);
    }
}
