//! Selecting the best scores of a tile: almost none of them matters, so most are skipped sixteen at a
//! time.

use super::top::Top;

/// Scores that are looked at together.
const LANES: usize = 16;

/// Where a tile stands, and what its rows have kept so far.
pub(super) struct Sieve<'a> {
    pub(super) rows: &'a mut Top,
    pub(super) first_row: usize,
    pub(super) first_col: usize,
}

impl Sieve<'_> {
    /// Offers every score to its row: rows x width.
    pub(super) fn one_way(&mut self, tile: &[f32], width: usize) {
        tensor::dispatch!(pulp::Arch::new(), || {
            for (row, scores) in tile.chunks_exact(width).enumerate() {
                let (lanes, rest) = scores.as_chunks::<LANES>();
                for (at, lanes) in lanes.iter().enumerate() {
                    let floor = self.rows.floors[row];
                    if lanes.iter().fold(false, |any, &x| any | (x >= floor)) {
                        self.offer_to_row(row, at * LANES, lanes);
                    }
                }
                self.offer_to_row(row, scores.len() - rest.len(), rest);
            }
        });
    }

    /// Offers every score to its row and to its column: rows x as many as the block has.
    pub(super) fn both_ways(&mut self, tile: &[f32], columns: &mut Top) {
        let width = columns.floors.len();
        tensor::dispatch!(pulp::Arch::new(), || {
            for (row, scores) in tile.chunks_exact(width).enumerate() {
                let (lanes, rest) = scores.as_chunks::<LANES>();
                for (at, lanes) in lanes.iter().enumerate() {
                    let (floor, first) = (self.rows.floors[row], at * LANES);
                    let floors = &columns.floors[first..first + LANES];
                    let matters = |any, (&x, &own): (&f32, &f32)| any | (x >= floor) | (x >= own);
                    if lanes.iter().zip(floors).fold(false, matters) {
                        self.offer_to_row(row, first, lanes);
                        self.offer_to_columns(row, first, lanes, columns);
                    }
                }
                let first = scores.len() - rest.len();
                self.offer_to_row(row, first, rest);
                self.offer_to_columns(row, first, rest, columns);
            }
        });
    }

    fn offer_to_row(&mut self, row: usize, first: usize, scores: &[f32]) {
        for (at, &score) in scores.iter().enumerate() {
            if score >= self.rows.floors[row] {
                self.rows.offer(row, score, (self.first_col + first + at) as u32);
            }
        }
    }

    fn offer_to_columns(&self, row: usize, first: usize, scores: &[f32], columns: &mut Top) {
        for (at, &score) in scores.iter().enumerate() {
            if score >= columns.floors[first + at] {
                columns.offer(first + at, score, (self.first_row + row) as u32);
            }
        }
    }
}
