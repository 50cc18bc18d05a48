//! What becomes of queries and keys before they meet: a norm of each head, and a turn by angles that grow with the
//! position.

use std::sync::Arc;

use crate::kernels::{HeadTurn, NormGrads, NormWeights};
use crate::ops::norm::Norm;
use crate::tape::{Tape, Var};
use crate::value::{Indices, Tensor};

/// A norm, a turn, or both.
#[derive(Clone)]
pub struct Turn {
    /// Columns of a head.
    pub width: usize,
    /// Heads at the beginning of each row; what stands behind them stays as it is.
    pub heads: usize,
    /// The norm of each head, before the turn.
    pub norm: Option<Norm>,
    /// Positions x turned columns: cosines, then sines ([`HeadTurn::angles`]).
    pub angles: Option<Arc<Tensor>>,
    /// The position of each row.
    pub places: Indices,
}

impl Tape<'_> {
    /// The rows with their heads normalised and turned (RoPE, Su et al. 2021).
    ///
    /// # Shapes
    /// `x` and the result: rows x (heads·width + what stays).
    ///
    /// # Panics
    /// Where a position has no angles.
    pub fn turn(&mut self, x: Var, turn: Turn) -> Var {
        let (rows, cols) = self.value(x).shape();
        let Turn { width, heads, .. } = turn;
        assert!(width * heads <= cols && turn.places.len() == rows, "heads and rows to turn");
        if let Some(angles) = &turn.angles {
            assert!(angles.cols() <= width && angles.cols() % 2 == 0, "pairs of columns of a head");
            turn.places.assert_below(angles.rows(), "position");
        }
        let mut y = self.device.working(rows, cols);
        let mut stats = turn.norm.map(|_| self.device.empty(rows, 2 * heads));
        let norm = turn.norm.map(|norm| norm.weights(self.params));
        let angles = turn.angles.as_deref();
        let head_turn = HeadTurn { width, heads, norm, angles, places: &turn.places };
        self.device.kernels().turn(self.value(x), head_turn, &mut y, stats.as_mut());
        let wanted = self.wants(x) || turn.norm.is_some_and(|norm| norm.learns(self));
        let params = turn.norm.map(|norm| norm.params()).into_iter().flatten();
        self.record(y, wanted, params, move |tape, _, dy| {
            let value = tape.take_value(x);
            let mut dx = tape.device.working(value.rows(), value.cols());
            let (angles, device) = (turn.angles.as_deref(), &tape.device);
            let mut run = |norm: Option<NormWeights<'_>>, grads: NormGrads<'_>| {
                let head_turn = HeadTurn { width, heads, norm, angles, places: &turn.places };
                device.kernels().turn_grad(&value, head_turn, stats.as_ref(), &dy, &mut dx, grads);
            };
            match turn.norm {
                Some(norm) => norm.with_grads(tape.params, |norm, grads| run(Some(norm), grads)),
                None => run(None, NormGrads { gamma: None, beta: None }),
            }
            tape.put_value(x, value);
            tape.give_grad(x, dx);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::NormKind;
    use crate::ops::testing::{GradCheck, GradRig};

    /// Angles of `positions` for the first `cols` columns of a head.
    fn angles(rig: &GradRig, positions: usize, cols: usize) -> Option<Arc<Tensor>> {
        let angle = |at: usize| {
            let (position, wave) = (at / cols, at % cols % (cols / 2));
            let angle = position as f32 * 0.7 / (1 + wave) as f32;
            if at % cols < cols / 2 { angle.cos() } else { angle.sin() }
        };
        let elements: Vec<f32> = (0..positions * cols).map(angle).collect();
        Some(Arc::new(rig.device().tensor(positions, cols, &elements)))
    }

    #[test]
    fn gradients_of_norm_and_turn() {
        for (kind, normed, turned) in [
            (NormKind::Rms, true, 6),
            (NormKind::Layer, true, 4),
            (NormKind::Rms, true, 0),
            (NormKind::Rms, false, 6),
        ] {
            let mut rig = GradRig::new();
            let gamma = normed.then(|| rig.param("gamma", 1, 6, 1.0));
            let norm = gamma.map(|gamma| Norm { kind, gamma, beta: None, epsilon: 1e-5 });
            let angles = (turned > 0).then(|| angles(&rig, 5, turned)).flatten();
            let places = Indices::from(vec![0, 4, 2]);
            let turn = Turn { width: 6, heads: 2, norm, angles, places };
            let x = rig.values(3, 17, 1.0);
            rig.check(&[x], GradCheck::default(), |tape, inputs| {
                tape.turn(inputs[0], turn.clone())
            });
        }
    }

    /// Scores of turned queries and keys depend on how far apart the two stand, and on nothing else of their positions.
    #[test]
    fn only_distances_are_seen() {
        let mut rig = GradRig::new();
        let angles = angles(&rig, 30, 4);
        let (q, k) = (rig.values(1, 4, 1.0), rig.values(1, 4, 1.0));
        let mut score = |places: [u32; 2]| {
            let mut turned = |x: &_, place| {
                let places = vec![place].into();
                let turn = Turn { width: 4, heads: 1, norm: None, angles: angles.clone(), places };
                rig.forward(std::slice::from_ref(x), |tape, x| tape.turn(x[0], turn.clone()))
            };
            let (q, k) = (turned(&q, places[0]), turned(&k, places[1]));
            q.iter().zip(k).map(|(q, k)| q * k).sum::<f32>()
        };
        assert!((score([3, 5]) - score([27, 29])).abs() < 1e-4);
        assert!((score([3, 5]) - score([3, 6])).abs() > 1e-2);
    }
}
