//! The same search on a GPU: both sides are in its memory, the best of every tile of scores are
//! selected there, and only these are copied back.

use arrays::Matrix;
use tensor::search::{MOST_BEST, NearestSearch, NeighbourMeans, ScoreRule};
use tensor::{Device, Tensor};

use super::{LEAST, Measure, Neighbours, Scores, SimilarityDropout, Watch};
use crate::products::worth_a_gpu;

/// Two sets of vectors in the memory of a GPU.
pub(super) struct Resident {
    device: Device,
    source: Tensor,
    target: Tensor,
}

impl Resident {
    /// Both sides, where the device is a GPU and the search large enough for it.
    pub(super) fn new(device: &Device, source: &Matrix, target: &Matrix) -> Option<Self> {
        let operations = 2.0 * source.rows() as f64 * target.values().len() as f64;
        if !worth_a_gpu(device, operations) {
            return None;
        }
        let put = |matrix: &Matrix| device.tensor(matrix.rows(), matrix.cols(), matrix.values());
        let (source, target) = (put(source), put(target));
        Some(Self { device: device.clone(), source, target })
    }

    /// The best of each source and, where asked for, of each target; nothing where more are wanted
    /// than a GPU keeps.
    pub(super) fn best(
        &self,
        scores: &Scores,
        [wide, deep]: [usize; 2],
        watch: Watch<'_>,
    ) -> Option<[Neighbours; 2]> {
        if wide.max(deep) > MOST_BEST {
            return None;
        }
        let means = [&scores.of_source, &scores.of_target];
        let [source, target] = &means.map(|means| self.device.tensor(1, means.len(), means));
        let means = NeighbourMeans { source, target };
        let rule = match scores.measure {
            Measure::Cosine => ScoreRule::Dot,
            Measure::Csls { .. } => ScoreRule::Csls(means),
            Measure::Distance { .. } => ScoreRule::MarginDistance(means),
            Measure::Ratio { .. } => ScoreRule::MarginRatio(means, LEAST),
        };
        let search = NearestSearch {
            source: &self.source,
            target: &self.target,
            rule,
            dropout: scores.dropout.and_then(SimilarityDropout::as_bits),
            of_source: wide,
            of_target: deep,
        };
        let [rows, columns] =
            self.device.kernels().nearest(&search, &|done, all| watch(done, all))?;
        Some([(rows, wide), (columns, deep)].map(|(best, k)| Neighbours::of(best, k)))
    }
}
