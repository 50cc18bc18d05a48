//! `isogloss bench search`: the time of a nearest-neighbour search.

use std::time::Instant;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use geometry::Matrix;
use geometry::search::{Measure, Scores, unwatched};
use serde::Serialize;
use tensor::Device;
use tensor::random::{Draws, Key};

use crate::failure::Failure;
use crate::models::Compute;
use crate::outcome::Outcome;
use crate::progress::Progress;

#[derive(Args)]
pub struct BenchSearch {
    /// Vectors of one side.
    #[arg(long, default_value_t = 20_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000_000))]
    rows: usize,
    /// Vectors of the other side.
    #[arg(long, default_value_t = 20_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000_000))]
    columns: usize,
    /// Their dimension.
    #[arg(long, default_value_t = 300, value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536))]
    dim: usize,
    /// Neighbours of each.
    #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    neighbors: usize,
    /// Repeats; the first warms up, and the median of the others counts.
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    repeats: usize,
    /// Seed of the vectors.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    compute: Compute,
}

/// What was measured: purely timing, so it lives here.
#[derive(Serialize)]
struct SearchTimes {
    device: String,
    seconds: f64,
    fastest_s: f64,
    first_s: f64,
    gflops: f64,
    /// The mean cosine of all nearest neighbours, the same on every device to six digits.
    mean_cosine: f64,
}

impl BenchSearch {
    pub fn run(self) -> Result<Outcome, Failure> {
        let (source, target) = (self.noise(self.rows, 0), self.noise(self.columns, 1));
        let mut progress = Progress::new("repeats", self.repeats as u64);
        let (mut seconds_each, mut mean_cosine) = (Vec::with_capacity(self.repeats), 0.0);
        for _ in 0..self.repeats {
            let (source, target) = (source.clone(), target.clone());
            let (seconds, cosine) = self.compute.run(|device| self.time(source, target, device))?;
            seconds_each.push(seconds);
            mean_cosine = cosine;
            progress.step("");
        }
        drop(progress);
        let first_s = seconds_each[0];
        let counted = &mut seconds_each[usize::from(self.repeats > 1)..];
        counted.sort_unstable_by(f64::total_cmp);
        let seconds = counted[counted.len() / 2];
        let operations = 2.0 * self.rows as f64 * self.columns as f64 * self.dim as f64;
        let times = SearchTimes {
            device: format!("{:?}", self.compute.device()?),
            seconds,
            fastest_s: counted[0],
            first_s,
            gflops: operations / seconds / 1e9,
            mean_cosine,
        };
        Ok(Outcome::new(times.text(), &times))
    }

    /// The time of one search, and the mean cosine of what was found.
    fn time(&self, source: Matrix, target: Matrix, device: &Device) -> (f64, f64) {
        let start = Instant::now();
        let scores = Scores::new(source, target, Measure::Cosine, device, &unwatched);
        let (there, back) = scores.both_ways(self.neighbors, &unwatched);
        let seconds = start.elapsed().as_secs_f64();
        let means = [there.means(), back.means()].concat();
        let mean = means.iter().map(|&x| f64::from(x)).sum::<f64>() / means.len() as f64;
        (seconds, mean)
    }

    fn noise(&self, rows: usize, step: u32) -> Matrix {
        let mut draws = Draws::new(Key { seed: self.seed, step, stream: 0 });
        let values = (0..rows * self.dim).map(|_| draws.normal());
        Matrix::new(rows, self.dim, values.collect())
    }
}

impl SearchTimes {
    fn text(&self) -> String {
        format!(
            "device            {}\n\
             search            {:.3} s (fastest {:.3} s, first {:.3} s)\n\
             GFLOP/s           {:.1}\n\
             mean cosine       {:.6}",
            self.device, self.seconds, self.fastest_s, self.first_s, self.gflops, self.mean_cosine,
        )
    }
}
