//! LayerNorm (Ba et al. 2016) and RMSNorm (Zhang and Sennrich 2019), alone or fused with the residual connection and
//! dropout before it.

use crate::kernels::{Grad, NormForward, NormGrads, NormKind, NormWeights, ResidualSum};
use crate::params::{ParamId, Params};
use crate::random::Dropout;
use crate::tape::{Tape, Var};
use crate::value::Tensor;

/// The weights of a norm.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// What it does to a row.
    pub kind: NormKind,
    /// The scale: 1 x dim.
    pub gamma: ParamId,
    /// The offset, where there is one: 1 x dim.
    pub beta: Option<ParamId>,
    /// Added to the variance, so that the division stays finite.
    pub epsilon: f32,
}

impl Norm {
    /// A LayerNorm.
    pub fn layer([gamma, beta]: [ParamId; 2], epsilon: f32) -> Self {
        Self { kind: NormKind::Layer, gamma, beta: Some(beta), epsilon }
    }

    pub(crate) fn weights<'p>(&self, params: &'p Params) -> NormWeights<'p> {
        let (gamma, beta) = (params.value(self.gamma), self.beta.map(|beta| params.value(beta)));
        NormWeights { kind: self.kind, gamma, beta, epsilon: self.epsilon }
    }

    pub(crate) fn params(&self) -> impl Iterator<Item = ParamId> + use<> {
        std::iter::once(self.gamma).chain(self.beta)
    }

    /// Whether its weights are trained on this tape.
    pub(crate) fn learns(&self, tape: &Tape<'_>) -> bool {
        self.params().any(|id| tape.learns(id))
    }

    /// Lends the weights and, where they are trained, the memory of their gradients.
    pub(crate) fn with_grads<R>(
        &self,
        params: &mut Params,
        run: impl FnOnce(NormWeights<'_>, NormGrads<'_>) -> R,
    ) -> R {
        let (kind, epsilon) = (self.kind, self.epsilon);
        match self.beta {
            Some(beta) => {
                let [(gamma, dgamma), (beta, dbeta)] = params.split([self.gamma, beta]);
                let weights = NormWeights { kind, gamma, beta: Some(beta), epsilon };
                run(weights, NormGrads { gamma: dgamma, beta: dbeta })
            }
            None => {
                let [(gamma, dgamma)] = params.split([self.gamma]);
                let weights = NormWeights { kind, gamma, beta: None, epsilon };
                run(weights, NormGrads { gamma: dgamma, beta: None })
            }
        }
    }

    /// The gradient at the input `x`, given that at the output, and its dropout where that is wanted; the
    /// weights receive theirs.
    pub(crate) fn backward(
        &self,
        tape: &mut Tape<'_>,
        x: &Tensor,
        stats: &Tensor,
        dy: &Tensor,
        dx: Grad<'_>,
        dropped: Option<(Dropout, &mut Tensor)>,
    ) {
        let device = tape.device.clone();
        self.with_grads(tape.params, |weights, grads| {
            let forward = NormForward { x, stats, weights };
            device.kernels().norm_grad(forward, dy, dx, dropped, grads);
        });
    }
}

impl Tape<'_> {
    /// `norm(x)`.
    ///
    /// # Shapes
    /// `x` and the result: rows x dim.
    pub fn norm(&mut self, x: Var, norm: Norm) -> Var {
        let (rows, cols) = self.value(x).shape();
        assert_eq!(self.params.value(norm.gamma).cols(), cols, "a norm of that width");
        let (mut y, mut stats) = (self.device.working(rows, cols), self.device.empty(rows, 2));
        let weights = norm.weights(self.params);
        self.device.kernels().norm(self.value(x), weights, &mut y, &mut stats);
        let wanted = self.wants(x) || norm.learns(self);
        self.record(y, wanted, norm.params(), move |tape, _, dy| {
            let value = tape.take_value(x);
            let mut sum = tape.take_grad(x);
            let accumulate = sum.is_some();
            let dx = sum.get_or_insert_with(|| tape.device.working(value.rows(), value.cols()));
            norm.backward(tape, &value, &stats, &dy, Grad { tensor: dx, accumulate }, None);
            tape.put_value(x, value);
            tape.give_grad(x, sum.expect("it was filled above"));
        })
    }

    /// `x + dropout(update)`.
    ///
    /// # Shapes
    /// All: rows x dim.
    pub fn residual(&mut self, x: Var, update: Var, rate: f32) -> Var {
        let dropout = self.dropout(rate);
        let (rows, cols) = self.value(x).shape();
        assert_eq!(self.value(update).shape(), (rows, cols), "an update has its stream's shape");
        let mut sum = self.device.working(rows, cols);
        let terms = ResidualSum { x: self.value(x), update: self.value(update), dropout };
        self.device.kernels().residual(terms, &mut sum);
        self.record(sum, self.wants(x) || self.wants(update), [], move |tape, _, dsum| {
            tape.share([x, update], dropout, dsum);
        })
    }

    /// `sum = x + dropout(update)` and `norm(sum)`, in one pass.
    ///
    /// # Shapes
    /// All: rows x dim.
    pub fn residual_norm(&mut self, x: Var, update: Var, rate: f32, norm: Norm) -> (Var, Var) {
        let dropout = self.dropout(rate);
        let (rows, cols) = self.value(x).shape();
        assert_eq!(self.value(update).shape(), (rows, cols), "an update has its stream's shape");
        assert_eq!(self.params.value(norm.gamma).cols(), cols, "a norm of that width");
        let mut sum = self.device.working(rows, cols);
        let (mut y, mut stats) = (self.device.working(rows, cols), self.device.empty(rows, 2));
        let terms = ResidualSum { x: self.value(x), update: self.value(update), dropout };
        let weights = norm.weights(self.params);
        self.device.kernels().residual_norm(terms, weights, &mut sum, &mut y, &mut stats);
        let wanted = self.wants(x) || self.wants(update);
        let sum = self.push(sum, wanted);
        let y = self.push(y, wanted || norm.learns(self));
        self.remember(2, norm.params(), move |tape| {
            let value = tape.take_value(sum);
            let dsum = tape.take_grad(sum);
            let Some(dy) = tape.take_grad(y) else {
                return dsum.into_iter().for_each(|dsum| tape.share([x, update], dropout, dsum));
            };
            let empty = || tape.device.working(value.rows(), value.cols());
            let accumulate = dsum.is_some();
            let mut dsum = dsum.unwrap_or_else(empty);
            let mut dupdate = tape.wants(update).then(empty);
            let dropped = dupdate.as_mut().map(|dupdate| (dropout, dupdate));
            let slot = Grad { tensor: &mut dsum, accumulate };
            norm.backward(tape, &value, &stats, &dy, slot, dropped);
            dupdate.into_iter().for_each(|dupdate| tape.give_grad(update, dupdate));
            tape.give_grad(x, dsum);
        });
        (sum, y)
    }

    /// Hands the gradient of a sum to both of its terms.
    fn share(&mut self, [x, update]: [Var; 2], dropout: Dropout, dsum: Tensor) {
        if self.wants(update) {
            let mut dupdate = self.device.working(dsum.rows(), dsum.cols());
            self.device.kernels().dropout(&dsum, dropout, &mut dupdate);
            self.give_grad(update, dupdate);
        }
        self.give_grad(x, dsum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    fn norm(rig: &mut GradRig, dim: usize) -> Norm {
        Norm::layer([rig.param("gamma", 1, dim, 1.0), rig.param("beta", 1, dim, 1.0)], 1e-5)
    }

    #[test]
    fn gradients_of_every_norm() {
        for kind in [NormKind::Layer, NormKind::Rms] {
            for offset in [true, false] {
                let mut rig = GradRig::new();
                let gamma = rig.param("gamma", 1, 9, 1.0);
                let beta = offset.then(|| rig.param("beta", 1, 9, 1.0));
                let (norm, x) = (Norm { kind, gamma, beta, epsilon: 1e-5 }, rig.values(4, 9, 2.0));
                rig.check(&[x], GradCheck::default(), |tape, inputs| tape.norm(inputs[0], norm));
            }
        }
    }

    #[test]
    fn a_mean_square_becomes_one_and_a_mean_stays() {
        let mut rig = GradRig::new();
        let gamma = rig.param("gamma", 1, 4, 0.0);
        rig.device().clone().kernels().fill(rig.params_mut().value_mut(gamma), 1.0);
        let norm = Norm { kind: NormKind::Rms, gamma, beta: None, epsilon: 0.0 };
        let x = rig.values(1, 4, 3.0);
        let y = rig.forward(std::slice::from_ref(&x), |tape, inputs| tape.norm(inputs[0], norm));
        let x = rig.forward(&[x], |tape, inputs| tape.residual(inputs[0], inputs[0], 0.0));
        let root = (x.iter().map(|x| x * x / 4.0).sum::<f32>() / 4.0).sqrt();
        for (x, y) in x.iter().zip(y) {
            assert!((x / 2.0 / root - y).abs() < 1e-6, "{x} {y}");
        }
    }

    #[test]
    fn gradients_of_the_residual_with_dropout() {
        let mut rig = GradRig::new();
        let (x, update) = (rig.values(6, 11, 1.0), rig.values(6, 11, 1.0));
        rig.check(&[x, update], GradCheck::default(), |tape, inputs| {
            tape.residual(inputs[0], inputs[1], 0.3)
        });
    }

    #[test]
    fn gradients_of_the_fused_residual_and_norm() {
        let mut rig = GradRig::new();
        let (norm, x, update) =
            (norm(&mut rig, 10), rig.values(5, 10, 1.0), rig.values(5, 10, 1.0));
        rig.check(&[x, update], GradCheck::default(), |tape, inputs| {
            let (sum, normed) = tape.residual_norm(inputs[0], inputs[1], 0.3, norm);
            // Both outputs are used, as where LayerNorm comes before a layer.
            tape.residual(sum, normed, 0.0)
        });
    }
}
