//! Where each sequence of a ragged batch begins and ends.

use std::ops::Range;

use crate::value::Indices;

/// The boundaries of consecutive sequences: sequence `i` holds rows `starts[i]..starts[i + 1]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spans {
    starts: Indices,
    /// Where each row stood in its sequence before some were chosen.
    places: Option<Indices>,
}

impl Spans {
    /// Spans of the given lengths, one after another.
    pub fn of_lengths(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0;
        let ends = lengths.into_iter().map(|length| {
            end += length as u32;
            end
        });
        let starts = std::iter::once(0).chain(ends.collect::<Vec<_>>()).collect();
        Self { starts, places: None }
    }

    /// `count` spans of `length` rows each.
    pub fn uniform(count: usize, length: usize) -> Self {
        Self::of_lengths(std::iter::repeat_n(length, count))
    }

    /// Where each begins, and where the last ends.
    pub(crate) fn starts(&self) -> &Indices {
        &self.starts
    }

    /// How many sequences there are.
    pub fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// How many rows there are in all.
    pub fn rows(&self) -> usize {
        self.starts[self.count()] as usize
    }

    /// The rows of sequence `i`.
    pub fn get(&self, i: usize) -> Range<usize> {
        self.starts[i] as usize..self.starts[i + 1] as usize
    }

    /// The rows of each sequence in turn.
    pub fn iter(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        (0..self.count()).map(|i| self.get(i))
    }

    /// The length of the longest sequence, 0 where there is none.
    pub fn longest(&self) -> usize {
        self.iter().map(|span| span.len()).max().unwrap_or(0)
    }

    /// The place of every row in its sequence, from 0.
    pub fn places(&self) -> Indices {
        let counted = || self.iter().flat_map(|span| 0..span.len() as u32).collect();
        self.places.clone().unwrap_or_else(counted)
    }

    /// The place of one row of sequence `i`.
    pub(crate) fn place(&self, i: usize, row: usize) -> usize {
        self.places.as_ref().map_or(row - self.get(i).start, |places| places[row] as usize)
    }

    /// How the given rows, sorted in ascending order, fall into these spans: the same number of
    /// sequences, each holding only its chosen rows, which keep their places.
    ///
    /// # Panics
    /// Where the rows are not in order: they would fall to the wrong sequence.
    pub fn choose(&self, rows: &[u32]) -> Self {
        assert!(rows.is_sorted(), "rows are chosen in ascending order");
        let chosen = Self::of_lengths(self.iter().map(|span| {
            rows.partition_point(|&row| (row as usize) < span.end)
                - rows.partition_point(|&row| (row as usize) < span.start)
        }));
        let places = self.places();
        let places = rows.iter().map(|&row| places[row as usize]).collect();
        Self { places: Some(places), ..chosen }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_rows_keep_their_sequence() {
        let spans = Spans::of_lengths([3, 0, 5, 2]);
        assert_eq!((spans.count(), spans.rows(), spans.longest()), (4, 10, 5));
        let chosen = spans.choose(&[0, 2, 7, 9]);
        assert_eq!(chosen.starts(), Spans::of_lengths([2, 0, 1, 1]).starts());
        assert_eq!(chosen.places(), vec![0, 2, 4, 1].into());
        assert_eq!(spans.choose(&[]).starts(), Spans::of_lengths([0, 0, 0, 0]).starts());
    }
}
