//! Scaled dot-product attention within every sequence, all heads at once (Vaswani et al. 2017).

use std::ops::Range;

use crate::kernels::{AttentionForward, AttentionGrads, AttentionShape, Heads};
use crate::spans::Spans;
use crate::tape::{Tape, Var};

impl Tape<'_> {
    /// `softmax(q · kᵀ / √width) · v` for each head, within each sequence, over the keys within its reach. Queries may be
    /// fewer than keys: where only some positions are wanted, only those are computed.
    ///
    /// # Shapes
    /// `q`: queries x heads·width; `kv`: keys x 2·sources·width, keys before values; result: queries x heads·width.
    pub fn attention(
        &mut self,
        q: Var,
        kv: Var,
        heads: impl Into<Heads>,
        queries: &Spans,
        keys: &Spans,
        rate: f32,
    ) -> Var {
        let (rows, dim) = self.value(q).shape();
        assert_eq!((rows, self.value(kv).rows()), (queries.rows(), keys.rows()), "rows and spans");
        let heads = heads.into();
        let Heads { count, sources, .. } = heads;
        assert!(count > 0 && dim % count == 0, "heads divide the dimension");
        assert!(sources > 0 && count % sources == 0, "each source serves as many heads");
        let side_by_side = 2 * sources * (dim / count);
        assert_eq!(self.value(kv).cols(), side_by_side, "keys and values side by side");
        assert!(queries.count() == keys.count(), "queries and keys of the same sequences");
        let plain = heads.reach == Default::default();
        let sees = |(number, (q, k)): (usize, (Range<usize>, Range<usize>))| {
            let has_key = |row: usize| plain || queries.place(number, row) < k.len();
            q.is_empty() || !k.is_empty() && has_key(q.end - 1)
        };
        assert!(queries.iter().zip(keys.iter()).enumerate().all(sees), "queries need keys");
        let dropout = self.dropout(rate);
        let shape = AttentionShape { heads, queries: queries.clone(), keys: keys.clone(), dropout };
        let width = self.device.kernels().attention_stats(&shape);
        // What the device saves of each query: logsumexp and dropout mask.
        let (mut y, mut stats) = (self.device.working(rows, dim), self.device.empty(rows, width));
        self.device.kernels().attention(self.value(q), self.value(kv), &shape, &mut y, &mut stats);
        self.record(y, self.wants(q) || self.wants(kv), [], move |tape, y, dy| {
            let forward = AttentionForward {
                q: tape.value(q),
                kv: tape.value(kv),
                y: tape.value(y),
                stats: &stats,
            };
            let mut dq = tape.device.working(forward.q.rows(), forward.q.cols());
            let mut dkv = tape.device.working(forward.kv.rows(), forward.kv.cols());
            let grads = AttentionGrads { q: &mut dq, kv: &mut dkv };
            tape.device.kernels().attention_grad(forward, &shape, &dy, grads);
            tape.give_grad(q, dq);
            tape.give_grad(kv, dkv);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::Reach;
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

    /// Heads of every kind: two of queries for each of keys, reaching back, on, and both, with a scale and a cap.
    fn special() -> impl Iterator<Item = Heads> {
        let reaches = [(None, Some(0)), (Some(2), Some(0)), (Some(1), Some(1)), (None, None)];
        reaches.into_iter().flat_map(|(before, after)| {
            let reach = Reach { before, after };
            [None, Some(0.8)].map(|cap| Heads {
                count: 4,
                sources: 2,
                reach,
                scale: cap.map(|cap| cap / 2.0),
                cap,
                sloped: cap.is_none(),
            })
        })
    }

    #[test]
    fn gradients_of_every_kind_of_head() {
        for heads in special() {
            for rate in [0.0, 0.25] {
                let mut rig = GradRig::new();
                let keys = Spans::of_lengths([4, 0, 6]);
                for queries in [keys.clone(), keys.choose(&[1, 4, 6, 9])] {
                    let (q, kv) = (rig.values(queries.rows(), 12, 1.0), rig.values(10, 12, 1.0));
                    rig.check(&[q, kv], GradCheck::default(), |tape, inputs| {
                        tape.attention(inputs[0], inputs[1], heads, &queries, &keys, rate)
                    });
                }
            }
        }
    }

    /// Attention written as it is defined, one query at a time.
    fn by_definition(q: &[f32], kv: &[f32], heads: Heads, spans: &Spans, width: usize) -> Vec<f32> {
        let (dim, half) = (heads.count * width, heads.sources * width);
        let mut y = vec![0.0; q.len()];
        for span in spans.iter() {
            for (query, head) in
                span.clone().flat_map(|row| (0..heads.count).map(move |h| (row, h)))
            {
                let source = head / (heads.count / heads.sources);
                let key = |row: usize, from: usize| {
                    &kv[row * 2 * half + from + source * width..][..width]
                };
                let seen = span.clone().filter(|&row| {
                    let (before, after) = (query.saturating_sub(row), row.saturating_sub(query));
                    heads.reach.before.is_none_or(|most| before <= most)
                        && heads.reach.after.is_none_or(|most| after <= most)
                });
                let score = |row: usize| {
                    let dot = |(a, b): (&f32, &f32)| f64::from(*a) * f64::from(*b);
                    let q = &q[query * dim + head * width..][..width];
                    let dot: f64 = q.iter().zip(key(row, 0)).map(dot).sum();
                    let scale = heads.scale.map_or(1.0 / (width as f64).sqrt(), f64::from);
                    let cap = |cap| f64::from(cap) * (dot * scale / f64::from(cap)).tanh();
                    let far = f64::from(heads.slope(head)) * (query as f64 - row as f64);
                    (row, (heads.cap.map_or(dot * scale, cap) - far).exp())
                };
                let weights: Vec<(usize, f64)> = seen.map(score).collect();
                let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
                for (row, weight) in weights {
                    let y = &mut y[query * dim + head * width..][..width];
                    let add = |(y, v): (&mut f32, &f32)| *y += (weight / sum) as f32 * v;
                    y.iter_mut().zip(key(row, half)).for_each(add);
                }
            }
        }
        y
    }

    #[test]
    fn every_kind_of_head_is_what_its_definition_says() {
        // 300 queries are more than one block of the CPU's kernel.
        let (mut rig, spans, width) = (GradRig::new(), Spans::of_lengths([3, 300, 1]), 6);
        for heads in special() {
            let (q, kv) = (rig.values(304, 24, 1.0), rig.values(304, 24, 1.0));
            let expected = by_definition(q.elements(), kv.elements(), heads, &spans, width);
            let attend = |tape: &mut Tape<'_>, x: &[Var], queries: &Spans| {
                tape.attention(x[0], x[1], heads, queries, &spans, 0.0)
            };
            let y = rig.forward(&[q.clone(), kv.clone()], |tape, x| attend(tape, x, &spans));
            for (at, (a, b)) in y.iter().zip(&expected).enumerate() {
                assert!((a - b).abs() < 1e-5, "{heads:?}, element {at}: {a} {b}");
            }
            // A few queries alone see what they see among all.
            let rows = [2, 5, 200, 302, 303];
            let some = q.choose(&rows);
            let queries = spans.choose(&rows);
            let y = rig.forward(&[some, kv], |tape, x| attend(tape, x, &queries));
            for (y, row) in y.chunks(24).zip(rows) {
                let expected = &expected[row as usize * 24..][..24];
                assert!(y.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5), "row {row}");
            }
        }
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
