//! The best few of many, for each of some rows.

use tensor::search::BestScores;

/// The best scores of each row so far, best first, and whose they are.
pub(crate) struct Top {
    k: usize,
    /// Rows x k.
    scores: Vec<f32>,
    /// Rows x k.
    ids: Vec<u32>,
    /// The last of each row's scores, side by side: what a score must reach to matter.
    pub(super) floors: Vec<f32>,
}

impl Top {
    pub(crate) fn new(rows: usize, k: usize) -> Self {
        Self {
            k,
            scores: vec![f32::NEG_INFINITY; rows * k],
            ids: vec![u32::MAX; rows * k],
            floors: vec![f32::NEG_INFINITY; rows],
        }
    }

    /// From scores and ids that were taken off another: rows x k each.
    pub(crate) fn of(k: usize, scores: Vec<f32>, ids: Vec<u32>) -> Self {
        let floors = scores.chunks_exact(k).map(|row| row[k - 1]).collect();
        Self { k, scores, ids, floors }
    }

    /// Scores and ids: rows x k each.
    pub(crate) fn parts(&self) -> (&[f32], &[u32]) {
        (&self.scores, &self.ids)
    }

    /// Takes a score in where it belongs. What comes out does not depend on the order of offers.
    pub(crate) fn offer(&mut self, row: usize, score: f32, id: u32) {
        let range = row * self.k..(row + 1) * self.k;
        let (scores, ids) = (&mut self.scores[range.clone()], &mut self.ids[range]);
        let better = |at: usize, scores: &[f32], ids: &[u32]| {
            score > scores[at] || score == scores[at] && id < ids[at]
        };
        let mut at = self.k;
        while at > 0 && better(at - 1, scores, ids) {
            at -= 1;
        }
        if at == self.k {
            return;
        }
        scores.copy_within(at..self.k - 1, at + 1);
        ids.copy_within(at..self.k - 1, at + 1);
        (scores[at], ids[at]) = (score, id);
        self.floors[row] = scores[self.k - 1];
    }
}

/// The nearest of each row, best first.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    k: usize,
    scores: Vec<f32>,
    ids: Vec<u32>,
}

impl Neighbours {
    pub(super) fn of(best: BestScores, k: usize) -> Self {
        Self { k, scores: best.scores, ids: best.ids }
    }

    pub(crate) fn join(blocks: Vec<Top>, k: usize) -> Self {
        let (mut scores, mut ids) = (Vec::new(), Vec::new());
        for block in blocks {
            scores.extend(block.scores);
            ids.extend(block.ids);
        }
        Self { k, scores, ids }
    }

    /// How many rows have neighbours here.
    pub fn rows(&self) -> usize {
        self.ids.len() / self.k
    }

    /// Whose neighbours a row has, best first.
    pub fn ids(&self, row: usize) -> &[u32] {
        &self.ids[row * self.k..(row + 1) * self.k]
    }

    /// The scores of a row's neighbours, best first.
    pub fn scores(&self, row: usize) -> &[f32] {
        &self.scores[row * self.k..(row + 1) * self.k]
    }

    /// The mean score of each row's neighbours.
    pub fn means(&self) -> Vec<f32> {
        let mean = |scores: &[f32]| {
            (scores.iter().map(|&x| f64::from(x)).sum::<f64>() / scores.len() as f64) as f32
        };
        self.scores.chunks_exact(self.k).map(mean).collect()
    }
}
