//! Scaled dot-product attention within every sequence, all heads at once (Vaswani et al. 2017).

use crate::kernels::{AttentionForward, AttentionGrads, AttentionShape};
use crate::spans::Spans;
use crate::tape::{Backward, Tape, Var};
use crate::value::Tensor;

struct Attention {
    q: Var,
    kv: Var,
    y: Var,
    shape: AttentionShape,
    /// What the device saved of each query: logsumexp and dropout mask.
    stats: Tensor,
}

impl Tape<'_> {
    /// `softmax(q · kᵀ / √(dim / heads)) · v` for each head, within each sequence. Queries may be
    /// fewer than keys: where only some positions are wanted, only those are computed.
    ///
    /// # Shapes
    /// `q`: queries x dim; `kv`: keys x 2·dim, keys before values; result: queries x dim.
    pub fn attention(
        &mut self,
        q: Var,
        kv: Var,
        heads: usize,
        queries: &Spans,
        keys: &Spans,
        rate: f32,
    ) -> Var {
        let (rows, dim) = self.value(q).shape();
        assert_eq!((rows, self.value(kv).rows()), (queries.rows(), keys.rows()), "rows and spans");
        assert_eq!(self.value(kv).cols(), 2 * dim, "keys and values side by side");
        assert!(heads > 0 && dim % heads == 0, "heads divide the dimension");
        let mut lengths = queries.iter().zip(keys.iter());
        assert!(queries.count() == keys.count(), "queries and keys of the same sequences");
        assert!(lengths.all(|(q, k)| q.is_empty() || !k.is_empty()), "queries need keys");
        let dropout = self.dropout(rate);
        let shape = AttentionShape { heads, queries: queries.clone(), keys: keys.clone(), dropout };
        let width = self.device.kernels().attention_stats(&shape);
        let (mut y, mut stats) = (self.device.working(rows, dim), self.device.empty(rows, width));
        self.device.kernels().attention(self.value(q), self.value(kv), &shape, &mut y, &mut stats);
        let y = self.push(y, self.wants(q) || self.wants(kv));
        self.remember(1, Attention { q, kv, y, shape, stats });
        y
    }
}

impl Backward for Attention {
    fn backward(self: Box<Self>, tape: &mut Tape<'_>) {
        let Some(dy) = tape.take_grad(self.y) else { return };
        let (q, kv) = (tape.value(self.q), tape.value(self.kv));
        let mut dq = tape.device.working(q.rows(), q.cols());
        let mut dkv = tape.device.working(kv.rows(), kv.cols());
        let forward = AttentionForward { q, kv, y: tape.value(self.y), stats: &self.stats };
        let grads = AttentionGrads { q: &mut dq, kv: &mut dkv };
        tape.device.kernels().attention_grad(forward, &self.shape, &dy, grads);
        tape.give_grad(self.q, dq);
        tape.give_grad(self.kv, dkv);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    fn check(queries: [usize; 3], keys: [usize; 3], rate: f32) {
        let mut rig = GradRig::new();
        let (queries, keys) = (Spans::of_lengths(queries), Spans::of_lengths(keys));
        let (q, kv) = (rig.values(queries.rows(), 8, 1.0), rig.values(keys.rows(), 16, 1.0));
        rig.check(&[q, kv], GradCheck::default(), |tape, inputs| {
            tape.attention(inputs[0], inputs[1], 2, &queries, &keys, rate)
        });
    }

    #[test]
    fn gradients_within_ragged_sequences() {
        check([3, 1, 5], [3, 1, 5], 0.0);
    }

    #[test]
    fn gradients_with_dropout() {
        check([4, 2, 3], [4, 2, 3], 0.25);
    }

    #[test]
    fn gradients_of_some_queries_only() {
        check([1, 0, 2], [4, 2, 3], 0.0);
    }

    #[test]
    fn gradients_past_empty_sequences() {
        check([0, 3, 0], [0, 3, 2], 0.0);
        check([2, 0, 0], [2, 3, 0], 0.0);
    }

    #[test]
    fn queries_in_several_blocks_are_like_queries_in_one() {
        // 300 queries are more than one block of the CPU's kernel.
        let mut rig = GradRig::new();
        let long = Spans::of_lengths([300]);
        let (q, kv) = (rig.values(300, 4, 1.0), rig.values(300, 8, 1.0));
        let whole = rig.forward(&[q.clone(), kv.clone()], |tape, inputs| {
            tape.attention(inputs[0], inputs[1], 1, &long, &long, 0.0)
        });
        for row in [0, 127, 128, 299] {
            let one = rig.forward(&[q.rows(row..row + 1), kv.clone()], |tape, inputs| {
                let queries = Spans::of_lengths([1]);
                tape.attention(inputs[0], inputs[1], 1, &queries, &long, 0.0)
            });
            for (a, b) in whole[4 * row..4 * row + 4].iter().zip(&one) {
                assert!((a - b).abs() < 1e-5, "row {row}: {a} {b}");
            }
        }
    }
}
