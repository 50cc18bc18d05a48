//! Token, position and language embeddings added up, with LayerNorm and dropout after them.

use crate::kernels::Grad;
use crate::ops::norm::Norm;
use crate::params::ParamId;
use crate::tape::{Tape, Var};
use crate::value::Indices;

/// Tables of embeddings and the row that each position takes from each.
pub type EmbedTables = Vec<(ParamId, Indices)>;

impl Tape<'_> {
    /// `dropout(LayerNorm(Σ table[row]))`; without `norm`, no LayerNorm.
    ///
    /// # Shapes
    /// Each table: entries x dim, each list of rows equally long; result: that length x dim.
    ///
    /// # Panics
    /// Where a row is not in its table: token ids are checked here, before a kernel reads them.
    pub fn embed(&mut self, tables: EmbedTables, norm: Option<Norm>, rate: f32) -> Var {
        let dropout = self.dropout(rate);
        let (rows, cols) = (tables[0].1.len(), self.params.value(tables[0].0).cols());
        let equal = |(table, list): &(ParamId, Indices)| {
            list.len() == rows && self.params.value(*table).cols() == cols
        };
        assert!(tables.iter().all(equal), "a row of every table for every position");
        for (table, list) in &tables {
            list.assert_below(self.params.value(*table).rows(), "row");
        }
        let kernels = self.device.kernels();
        let mut sum = self.device.working(rows, cols);
        let values: Vec<_> =
            tables.iter().map(|(table, rows)| (self.params.value(*table), rows)).collect();
        kernels.gather_sum(&values, &mut sum);
        let (mut y, normed) = match norm {
            None => (sum, None),
            Some(norm) => {
                let (mut y, mut stats) =
                    (self.device.working(rows, cols), self.device.empty(rows, 2));
                kernels.norm(&sum, norm.weights(self.params), &mut y, &mut stats);
                (y, Some((norm, sum, stats)))
            }
        };
        if dropout.rate > 0.0 {
            let mut dropped = self.device.working(rows, cols);
            kernels.dropout(&y, dropout, &mut dropped);
            y = dropped;
        }
        let wanted = tables.iter().any(|(table, _)| self.learns(*table))
            || norm.is_some_and(|norm| norm.learns(self));
        let mut params: Vec<ParamId> = tables.iter().map(|(table, _)| *table).collect();
        params.extend(norm.iter().flat_map(Norm::params));
        self.record(y, wanted, params, move |tape, _, mut grad| {
            if dropout.rate > 0.0 {
                let mut kept = tape.device.working(grad.rows(), grad.cols());
                tape.device.kernels().dropout(&grad, dropout, &mut kept);
                grad = kept;
            }
            if let Some((norm, sum, stats)) = &normed {
                let mut dsum = tape.device.working(grad.rows(), grad.cols());
                let slot = Grad { tensor: &mut dsum, accumulate: false };
                norm.backward(tape, sum, stats, &grad, slot, None);
                grad = dsum;
            }
            for (table, rows) in &tables {
                tape.scatter_grad(*table, rows, &grad);
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{GradCheck, GradRig};

    fn check(with_norm: bool, rate: f32) {
        let mut rig = GradRig::new();
        let tokens = rig.param("tokens", 6, 8, 1.0);
        let positions = rig.param("positions", 4, 8, 1.0);
        let mut weights = || [rig.param("gamma", 1, 8, 1.0), rig.param("beta", 1, 8, 1.0)];
        let norm = with_norm.then(|| Norm::layer(weights(), 1e-5));
        let tables = vec![
            (tokens, Indices::from(vec![5, 0, 5, 2, 1])),
            (positions, Indices::from(vec![0, 1, 2, 0, 1])),
        ];
        rig.check(&[], GradCheck::default(), |tape, _| tape.embed(tables.clone(), norm, rate));
    }

    #[test]
    fn gradients_with_norm_and_dropout() {
        check(true, 0.3);
    }

    #[test]
    fn gradients_of_the_plain_sum() {
        check(false, 0.0);
    }
}
