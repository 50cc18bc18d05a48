//! Every row of a sequence against every row of it: the arcs of a biaffine parser (Dozat and Manning
//! 2017), once an affine map has made queries of the dependents.

use crate::kernels::{PairGrads, PairSpans};
use crate::spans::Spans;
use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `q · kᵀ` within each sequence.
    ///
    /// # Shapes
    /// `q`: queries x dim; `k`: keys x dim; result: queries x the most keys that a sequence has.
    /// Row `i` holds its sequence's scores in their order, and 0 beyond.
    pub fn pair_scores(&mut self, q: Var, k: Var, queries: &Spans, keys: &Spans) -> Var {
        let (rows, dim) = self.value(q).shape();
        assert_eq!(self.value(k).shape(), (keys.rows(), dim), "keys as wide as queries");
        assert_eq!((rows, queries.count()), (queries.rows(), keys.count()), "rows and spans");
        let mut lengths = queries.iter().zip(keys.iter());
        assert!(lengths.all(|(q, k)| q.is_empty() || !k.is_empty()), "queries need keys");
        let mut y = self.device.working(rows, keys.longest());
        let kernels = self.device.kernels();
        let spans = PairSpans { queries, keys };
        kernels.pair_scores(self.value(q), self.value(k), spans, &mut y);
        let (queries, keys) = (queries.clone(), keys.clone());
        self.record(y, self.wants(q) || self.wants(k), [], move |tape, _, dy| {
            let (left, right) = (tape.value(q), tape.value(k));
            let mut dq = tape.device.working(left.rows(), left.cols());
            let mut dk = tape.device.working(right.rows(), right.cols());
            let spans = PairSpans { queries: &queries, keys: &keys };
            let grads = PairGrads { left: &mut dq, right: &mut dk };
            tape.device.kernels().pair_scores_grad(left, right, spans, &dy, grads);
            tape.give_grad(q, dq);
            tape.give_grad(k, dk);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    fn check(queries: [usize; 3], keys: [usize; 3]) {
        let mut rig = GradRig::new();
        let (queries, keys) = (Spans::of_lengths(queries), Spans::of_lengths(keys));
        let (q, k) = (rig.values(queries.rows(), 5, 1.0), rig.values(keys.rows(), 5, 1.0));
        rig.check(&[q, k], GradCheck::default(), |tape, inputs| {
            tape.pair_scores(inputs[0], inputs[1], &queries, &keys)
        });
    }

    #[test]
    fn gradients_within_ragged_sequences() {
        check([3, 1, 5], [4, 2, 6]);
    }

    #[test]
    fn gradients_past_empty_sequences() {
        check([0, 2, 0], [0, 3, 2]);
    }

    #[test]
    fn a_row_holds_the_scores_of_its_own_sequence() {
        let mut rig = GradRig::new();
        let (queries, keys) = (Spans::of_lengths([1, 2]), Spans::of_lengths([2, 3]));
        let (q, k) = (rig.values(3, 4, 1.0), rig.values(5, 4, 1.0));
        let value = |rig: &mut GradRig, x| rig.forward(&[x], |_, inputs| inputs[0]);
        let (qs, ks) = (value(&mut rig, q.clone()), value(&mut rig, k.clone()));
        let y = rig.forward(&[q, k], |tape, inputs| {
            tape.pair_scores(inputs[0], inputs[1], &queries, &keys)
        });
        let expected =
            |i: usize, j: usize| -> f32 { (0..4).map(|at| qs[4 * i + at] * ks[4 * j + at]).sum() };
        let rows = [(0, vec![0, 1]), (1, vec![2, 3, 4]), (2, vec![2, 3, 4])];
        for (i, keys) in rows {
            let row: Vec<f32> = keys.iter().map(|&j| expected(i, j)).chain([0.0]).take(3).collect();
            for (a, b) in y[3 * i..3 * i + 3].iter().zip(&row) {
                assert!((a - b).abs() < 1e-5, "row {i}: {a} {b}");
            }
        }
    }
}
