//! Links from a matrix of similarities between the subwords (or words) of two sentences.
//!
//! Mutual argmax and iterative-max are those of SimAlign (Jalili Sabet et al. 2020), softmax thresholding is that
//! of awesome-align (Dou and Neubig 2021), both as their programs compute them: two iterations and a discount of
//! 0.9 there, unscaled dot products here. `tests/extraction.rs` compares all three with numpy.

use serde::{Deserialize, Serialize};

/// How often iterative-max looks for links, and how it discounts words that have one already.
const ITERATIONS: usize = 2;
const DISCOUNT: f32 = 0.9;

/// How links are extracted from similarities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkExtraction {
    /// Pairs of which each is the most similar to the other. Precise.
    Argmax,
    /// The same, and once more among what has no link yet on at least one side (SimAlign).
    Itermax,
    /// Pairs whose softmax probability exceeds a threshold in both directions (awesome-align).
    Softmax,
}

terms::named!(LinkExtraction { Argmax => "argmax", Itermax => "itermax", Softmax => "softmax" });

/// The similarities of two sentences: a row for each unit of the source, a column for each of the target.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarityMatrix {
    cols: usize,
    /// Dot products of the vectors.
    dots: Vec<f32>,
    /// Cosines, moved to between 0 and 1 as SimAlign does.
    cosines: Vec<f32>,
}

/// A link of two units, with its confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitLink {
    /// The place of the source unit.
    pub source: usize,
    /// The place of the target unit.
    pub target: usize,
    /// Between 0 and 1: of argmax and itermax (1 + cosine) / 2, of softmax the harmonic mean of the probabilities in
    /// both directions, each at a temperature of the square root of the other sentence's length (awesome-align's).
    pub confidence: f32,
}

impl SimilarityMatrix {
    /// The similarities of two lists of vectors, each `dim` values long.
    ///
    /// # Panics
    /// If a list is not a multiple of `dim` long.
    pub fn new(source: &[f32], target: &[f32], dim: usize) -> Self {
        let whole = |side: &[f32]| side.len().is_multiple_of(dim);
        assert!(whole(source) && whole(target), "whole vectors");
        let norms = |side: &[f32]| -> Vec<f32> {
            side.chunks_exact(dim).map(|row| dot(row, row).sqrt()).collect()
        };
        let (of_source, of_target) = (norms(source), norms(target));
        let (mut dots, mut cosines) = (Vec::new(), Vec::new());
        for (a, length) in source.chunks_exact(dim).zip(&of_source) {
            for (b, other) in target.chunks_exact(dim).zip(&of_target) {
                let product = dot(a, b);
                dots.push(product);
                let lengths = length * other;
                let cosine = if lengths > 0.0 { product / lengths } else { 0.0 };
                cosines.push((cosine + 1.0) / 2.0);
            }
        }
        Self { cols: of_target.len(), dots, cosines }
    }

    fn rows(&self) -> usize {
        self.dots.len().checked_div(self.cols).unwrap_or(0)
    }

    /// Extracts links, in the order of rows and columns; `threshold` is that of softmax.
    pub fn extract(&self, extraction: LinkExtraction, threshold: f32) -> Vec<UnitLink> {
        let (rows, cols) = (self.rows(), self.cols);
        if rows == 0 || cols == 0 {
            return Vec::new();
        }
        match extraction {
            LinkExtraction::Argmax => self.similar(&mutual(&self.cosines, cols)),
            LinkExtraction::Itermax => self.similar(&self.iterative_max()),
            LinkExtraction::Softmax => self.probable(threshold),
        }
    }

    fn similar(&self, chosen: &[bool]) -> Vec<UnitLink> {
        let places = (0..chosen.len()).filter(|&at| chosen[at]);
        places.map(|at| self.link(at, self.cosines[at])).collect()
    }

    fn link(&self, at: usize, confidence: f32) -> UnitLink {
        UnitLink { source: at / self.cols, target: at % self.cols, confidence }
    }

    fn iterative_max(&self) -> Vec<bool> {
        let (rows, cols) = (self.rows(), self.cols);
        let mut links = mutual(&self.cosines, cols);
        if rows.min(cols) <= 2 {
            return links;
        }
        for _ in 1..ITERATIONS {
            let row_has: Vec<bool> = links.chunks(cols).map(|row| row.contains(&true)).collect();
            let col_has: Vec<bool> =
                (0..cols).map(|col| links.iter().skip(col).step_by(cols).any(|&l| l)).collect();
            if !row_has.contains(&false) || !col_has.contains(&false) {
                break;
            }
            let weight = |at: usize| match (row_has[at / cols], col_has[at % cols]) {
                (false, false) => 1.0,
                (true, true) => 0.0,
                _ => DISCOUNT,
            };
            let discounted: Vec<f32> =
                self.cosines.iter().enumerate().map(|(at, x)| x * weight(at)).collect();
            let found = mutual(&discounted, cols);
            let before = links.iter().filter(|&&link| link).count();
            for (at, link) in links.iter_mut().enumerate() {
                *link |= found[at] && weight(at) > 0.0;
            }
            if links.iter().filter(|&&link| link).count() == before {
                break;
            }
        }
        links
    }

    fn probable(&self, threshold: f32) -> Vec<UnitLink> {
        let (rows, cols) = (self.rows(), self.cols);
        let (forward, backward) = softmaxes(&self.dots, cols, [1.0, 1.0]);
        let lengths = [cols, rows].map(|length| (length as f32).sqrt());
        let (given_source, given_target) = softmaxes(&self.dots, cols, lengths);
        let chosen =
            (0..self.dots.len()).filter(|&at| forward[at] > threshold && backward[at] > threshold);
        chosen
            .map(|at| {
                let (p, q) = (given_source[at], given_target[at]);
                self.link(at, 2.0 * p * q / (p + q + 1e-9))
            })
            .collect()
    }
}

/// A dot product, summed in lanes that a processor adds at once; the order depends on the length alone.
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0.0_f32; LANES];
    let (whole_a, whole_b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f32 = whole_a.remainder().iter().zip(whole_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in whole_a.zip(whole_b) {
        sums.iter_mut().zip(x.iter().zip(y)).for_each(|(sum, (x, y))| *sum += x * y);
    }
    sums.iter().sum::<f32>() + rest
}

/// Which places are the largest of their row and of their column; of equals the first, as in numpy.
fn mutual(values: &[f32], cols: usize) -> Vec<bool> {
    let largest = |places: &mut dyn Iterator<Item = usize>| {
        places.reduce(|best, at| if values[at] > values[best] { at } else { best })
    };
    let of_col: Vec<Option<usize>> =
        (0..cols).map(|col| largest(&mut (col..values.len()).step_by(cols))).collect();
    let mut links = vec![false; values.len()];
    for start in (0..values.len()).step_by(cols) {
        if let Some(at) = largest(&mut (start..start + cols)) {
            links[at] = of_col[at - start] == Some(at);
        }
    }
    links
}

/// The softmax over each row and over each column, of values divided by a temperature for either.
fn softmaxes(values: &[f32], cols: usize, temperatures: [f32; 2]) -> (Vec<f32>, Vec<f32>) {
    let (mut by_row, mut by_col) = (values.to_vec(), values.to_vec());
    for start in (0..values.len()).step_by(cols) {
        softmax(&mut by_row, start..start + cols, temperatures[0]);
    }
    for col in 0..cols {
        softmax(&mut by_col, (col..values.len()).step_by(cols), temperatures[1]);
    }
    (by_row, by_col)
}

fn softmax(values: &mut [f32], places: impl Iterator<Item = usize> + Clone, temperature: f32) {
    let largest = places.clone().map(|at| values[at]).fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for at in places.clone() {
        values[at] = ((values[at] - largest) / temperature).exp();
        sum += values[at];
    }
    for at in places {
        values[at] /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(source: &[f32], target: &[f32], extraction: LinkExtraction) -> Vec<(usize, usize)> {
        let found = SimilarityMatrix::new(source, target, 2).extract(extraction, 0.1);
        found.iter().map(|link| (link.source, link.target)).collect()
    }

    /// Worked by hand: the second source word is as close to the second target word as to nothing else, the third has
    /// no counterpart, and equal words are linked in order.
    #[test]
    fn by_hand() {
        let (a, b) = ([1.0, 0.0, 0.0, 1.0, 0.6, 0.8], [0.0, 2.0, 3.0, 0.0]);
        for extraction in [LinkExtraction::Argmax, LinkExtraction::Itermax] {
            assert_eq!(links(&a, &b, extraction), [(0, 1), (1, 0)], "{extraction:?}");
        }
        assert_eq!(links(&[0.0, 0.0], &[0.0, 0.0], LinkExtraction::Argmax), [(0, 0)]);
        assert_eq!(links(&[], &b, LinkExtraction::Softmax), []);
    }

    /// The second iteration links what the first left over, even to words that have a link.
    #[test]
    fn a_second_iteration_links_more() {
        let (a, b) = ([1.0, 0.0, 0.9, 0.1, 0.0, 1.0, -1.0, 0.5], [1.0, 0.0, 0.0, 1.0, -0.5, 0.6]);
        let once = links(&a, &b, LinkExtraction::Argmax);
        let twice = links(&a, &b, LinkExtraction::Itermax);
        assert_eq!(once, [(0, 0), (2, 1), (3, 2)]);
        assert_eq!(twice, once, "every column has a link, so that SimAlign stops");
        let fourth = [&b[..], &[0.7, 0.7]].concat();
        let more = links(&a, &fourth, LinkExtraction::Itermax);
        assert!(more.len() > links(&a, &fourth, LinkExtraction::Argmax).len(), "{more:?}");
    }

    #[test]
    fn confidences_lie_between_0_and_1() {
        let (a, b) = ([3.0, -1.0, 2.0, 2.0, -4.0, 1.0], [-5.0, 0.5, 1.0, 1.0, 2.0, -1.0]);
        let matrix = SimilarityMatrix::new(&a, &b, 2);
        for kind in [LinkExtraction::Argmax, LinkExtraction::Itermax, LinkExtraction::Softmax] {
            let links = matrix.extract(kind, 0.001);
            assert!(!links.is_empty());
            assert!(links.iter().all(|link| (0.0..=1.0).contains(&link.confidence)), "{links:?}");
        }
    }
}
