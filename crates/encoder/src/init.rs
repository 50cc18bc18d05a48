//! Initial weights.
//!
//! Each matrix draws from the random stream of its own name, so that adding a part to a model leaves
//! the initial values of every other part as they were.

use tensor::random::{Key, normals};
use tensor::{Device, ParamId, Params};

use crate::config::{EncoderConfig, PositionStart};

/// Adds weights to a model under construction.
pub(crate) struct Builder<'a> {
    pub(crate) config: &'a EncoderConfig,
    pub(crate) params: &'a mut Params,
    /// None where the caller writes the weights.
    pub(crate) seed: Option<u64>,
}

impl Builder<'_> {
    fn device(&self) -> Device {
        self.params.device().clone()
    }

    /// Normal noise of the configured deviation, divided by `shrink`.
    pub(crate) fn normal(
        &mut self,
        name: String,
        rows: usize,
        cols: usize,
        shrink: f32,
    ) -> ParamId {
        let Some(seed) = self.seed else { return self.empty(name, rows, cols) };
        let (key, std) = (Key::named(seed, &name), self.config.init_std / shrink);
        let device = self.device();
        let elements = device.run(|| normals(key, std, rows * cols));
        let value = device.tensor(rows, cols, &elements);
        self.params.add(name, value)
    }

    /// Content that is yet to be written.
    fn empty(&mut self, name: String, rows: usize, cols: usize) -> ParamId {
        let value = self.device().empty(rows, cols);
        self.params.add(name, value)
    }

    /// One row of the same number.
    pub(crate) fn constant(&mut self, name: String, cols: usize, number: f32) -> ParamId {
        let value = self.device().tensor(1, cols, &vec![number; cols]);
        self.params.add(name, value)
    }

    /// The position embeddings.
    pub(crate) fn positions(&mut self, name: String) -> ParamId {
        let (positions, dim) = (self.config.positions, self.config.dim);
        if self.seed.is_none() || self.config.start_positions == PositionStart::Normal {
            return self.normal(name, positions, dim, 1.0);
        }
        let half = dim / 2;
        let angle = |position: usize, wave: usize| {
            let share = wave as f32 / (half.max(2) - 1) as f32;
            let shortest = std::f32::consts::FRAC_PI_2;
            position as f32 * shortest * (2.0 / positions as f32).powf(share)
        };
        let element = |at: usize| match (at / dim, at % dim) {
            (position, col) if col < half => 0.1 * angle(position, col).sin(),
            (position, col) if col < 2 * half => 0.1 * angle(position, col - half).cos(),
            _ => 0.0,
        };
        let elements: Vec<f32> = (0..positions * dim).map(element).collect();
        let value = self.device().tensor(positions, dim, &elements);
        self.params.add(name, value)
    }
}
