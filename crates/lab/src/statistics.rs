//! Tests: rank correlations with permutation tests, Student's t, and the correction for many tests. Means and
//! intervals are [`terms::Estimate`].

use std::f64::consts::PI;

use text::RandomStreams;

/// The one-sided p of a mean over a bound: the probability that Student's t with n - 1 degrees of freedom exceeds that of
/// these numbers. None of a single number, and of numbers without spread: nothing says how far their mean is from another draw's.
pub fn t_test_above(numbers: &[f64], bound: f64) -> Option<f64> {
    if !varies(numbers) {
        return None;
    }
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t_upper_tail((mean - bound) / (variance / n).sqrt(), numbers.len() - 1))
}

/// The ratio of two means over the same seeds, as a number for each seed: their mean is the ratio, and their spread gives its
/// standard error (linearised, Cochran 1977, §6.3). The mean of the seeds' own ratios would be that of the seed with the smallest
/// denominator. Of one seed it is its ratio.
pub fn ratio_of_means(parts: &[f64], wholes: &[f64]) -> Vec<f64> {
    let n = parts.len() as f64;
    let [part, whole] = [parts, wholes].map(|of| of.iter().sum::<f64>() / n);
    let ratio = part / whole;
    parts.iter().zip(wholes).map(|(a, b)| ratio + (a - ratio * b) / whole).collect()
}

/// Whether numbers differ by more than rounding.
pub fn varies(numbers: &[f64]) -> bool {
    let highest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    numbers.iter().any(|number| highest - number > 1e-9)
}

/// The probability that Student's t exceeds a value (Abramowitz & Stegun 26.7.3 and 26.7.4, finite sums).
fn t_upper_tail(t: f64, freedom: usize) -> f64 {
    let angle = (t.abs() / (freedom as f64).sqrt()).atan();
    let (sine, cosine) = angle.sin_cos();
    // Terms from cos⁰ (even) or cos¹ (odd) up to the power freedom - 2.
    let (mut term, mut sum, odd) = (if freedom % 2 == 1 { cosine } else { 1.0 }, 0.0, freedom % 2);
    let mut power = odd;
    while power + 2 <= freedom {
        sum += term;
        power += 2;
        term *= cosine * cosine * (power - 1) as f64 / power as f64;
    }
    let within = if odd == 1 { 2.0 / PI * (angle + sine * sum) } else { sine * sum };
    let beyond = (1.0 - within).max(0.0) / 2.0;
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The p-values of one family, adjusted for the false discovery rate (Benjamini & Hochberg 1995): those at most q are
/// discoveries at FDR q.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let (mut adjusted, mut least) = (vec![1.0; p.len()], 1.0_f64);
    for (above, number) in order.into_iter().enumerate() {
        let rank = (p.len() - above) as f64;
        least = least.min(p[number] * p.len() as f64 / rank);
        adjusted[number] = least;
    }
    adjusted
}

/// Spearman's rank correlation; none where one side does not vary or there are fewer than three.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "correlations are of pairs");
    let (x, y) = (standard_ranks(x)?, standard_ranks(y)?);
    Some(x.iter().zip(&y).map(|(x, y)| x * y).sum())
}

/// Permutations that are drawn where there are too many to visit all.
const DRAWN: u64 = 100_000;

/// A rank correlation, or a difference of two, with its permutation test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Spearman's correlation, or the difference of two.
    pub rho: f64,
    pub p: f64,
    /// The share of permutations that do not exceed it.
    pub p_reverse: f64,
    /// The smallest share that any result could have had: with three items 1/6, so that nothing could be significant.
    pub least: f64,
}

/// The rank correlation of two variables over the same items in one or several blocks, such as encoders in seeds and pairs of
/// languages: the mean of the blocks' correlations. The items are what is permuted, each with its values of all blocks, since
/// blocks that repeat the same items are no further evidence. Exact for up to ten items; beyond, 100,000 permutations are drawn
/// and the observed one counts among them (Phipson & Smyth 2010). None where a side of a block does not vary, or for
/// fewer than three items.
pub fn rank_test(blocks: &[[Vec<f64>; 2]]) -> Option<RankTest> {
    let n = blocks.first()?[0].len();
    // products[i * n + j]: the mean over blocks of the product of item i's first and item j's second standardised rank.
    let mut products = vec![0.0; n * n];
    for [x, y] in blocks {
        let (x, y) = (standard_ranks(x)?, standard_ranks(y)?);
        for (row, x) in products.chunks_mut(n).zip(&x) {
            row.iter_mut().zip(&y).for_each(|(sum, y)| *sum += x * y / blocks.len() as f64);
        }
    }
    let rho = (0..n).map(|item| products[item * n + item]).sum();
    let mut counts = PermutationCounts::of(rho);
    let mut order: Vec<usize> = (0..n).collect();
    if n <= 10 {
        each_permutation(&products, &mut order, rho, |sum| counts.add(sum));
    } else {
        counts.add(rho);
        let mut stream = RandomStreams::new(1, "permutations").stream(0);
        for _ in 1..DRAWN {
            stream.shuffle(&mut order);
            counts.add(order.iter().enumerate().map(|(item, to)| products[item * n + to]).sum());
        }
    }
    Some(counts.test())
}

/// Whether a first variable correlates better with a third than a second does: the difference of the rank correlations, the
/// mean over blocks. If neither predicts better, the two could be exchanged in any item: all exchanges are visited for up to
/// sixteen items, and drawn beyond.
pub fn rank_difference_test(blocks: &[[Vec<f64>; 3]]) -> Option<RankTest> {
    let n = blocks.first()?[0].len();
    let mut differences = vec![0.0; n];
    for [first, second, third] in blocks {
        let third = standard_ranks(third)?;
        let (first, second) = (standard_ranks(first)?, standard_ranks(second)?);
        for (item, sum) in differences.iter_mut().enumerate() {
            *sum += (first[item] - second[item]) * third[item] / blocks.len() as f64;
        }
    }
    let mut counts = PermutationCounts::of(differences.iter().sum());
    let mut visit = |exchanged: &mut dyn FnMut(usize) -> bool| {
        let signed = |(item, one): (usize, &f64)| if exchanged(item) { -one } else { *one };
        counts.add(differences.iter().enumerate().map(signed).sum());
    };
    if n <= 16 {
        (0..1_u32 << n).for_each(|bits| visit(&mut |item| bits >> item & 1 == 1));
    } else {
        visit(&mut |_| false);
        let mut stream = RandomStreams::new(1, "exchanges").stream(0);
        (1..DRAWN).for_each(|_| visit(&mut |_| stream.below(2) == 1));
    }
    Some(counts.test())
}

/// How many permutations reach the observed sum, and how many do not exceed it.
struct PermutationCounts {
    observed: f64,
    all: u64,
    reached: u64,
    not_exceeded: u64,
    /// The greatest sum, and the greatest negative one, with how many permutations have it.
    extremes: [(f64, u64); 2],
}

impl PermutationCounts {
    fn of(observed: f64) -> Self {
        Self {
            observed,
            all: 0,
            reached: 0,
            not_exceeded: 0,
            extremes: [(f64::NEG_INFINITY, 0); 2],
        }
    }

    /// Equal sums are equal up to rounding only.
    fn add(&mut self, sum: f64) {
        self.all += 1;
        self.reached += u64::from(sum >= self.observed - 1e-9);
        self.not_exceeded += u64::from(sum <= self.observed + 1e-9);
        for (extreme, sum) in self.extremes.iter_mut().zip([sum, -sum]) {
            match sum - extreme.0 {
                more if more > 1e-9 => *extreme = (sum, 1),
                as_much if as_much > -1e-9 => extreme.1 += 1,
                _ => {}
            }
        }
    }

    fn test(self) -> RankTest {
        let share = |count: u64| count as f64 / self.all as f64;
        RankTest {
            rho: self.observed,
            p: share(self.reached),
            p_reverse: share(self.not_exceeded),
            least: share(self.extremes[0].1.min(self.extremes[1].1)),
        }
    }
}

/// Visits the sum of products under every permutation of the items, each a swap away from the one before (Heap 1963), which
/// changes two products.
fn each_permutation(
    products: &[f64],
    order: &mut [usize],
    mut sum: f64,
    mut visit: impl FnMut(f64),
) {
    let n = order.len();
    let mut counters = vec![0; n];
    visit(sum);
    let mut at = 1;
    while at < n {
        if counters[at] < at {
            let other = if at % 2 == 0 { 0 } else { counters[at] };
            let (a, b) = (order[at], order[other]);
            sum += products[at * n + b] + products[other * n + a];
            sum -= products[at * n + a] + products[other * n + b];
            order.swap(other, at);
            visit(sum);
            counters[at] += 1;
            at = 1;
        } else {
            counters[at] = 0;
            at += 1;
        }
    }
}

/// Ranks with mean 0 and a sum of squares of 1, so that the correlation of two is the sum of their products; none where they do
/// not vary, or of fewer than three.
fn standard_ranks(values: &[f64]) -> Option<Vec<f64>> {
    let ranks = ranks(values);
    let mean = ranks.iter().sum::<f64>() / ranks.len() as f64;
    let length = ranks.iter().map(|rank| (rank - mean).powi(2)).sum::<f64>().sqrt();
    let varies = values.len() >= 3 && length > 0.0;
    varies.then(|| ranks.iter().map(|rank| (rank - mean) / length).collect())
}

/// Ranks from 1, equal values sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let rank = |one: &f64| {
        let below = values.iter().filter(|other| *other < one).count();
        let equal = values.iter().filter(|other| *other == one).count();
        below as f64 + (equal + 1) as f64 / 2.0
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `scipy.stats.spearmanr` and, for p, `scipy.stats.permutation_test` over all orders.
    #[test]
    fn ranks_correlate() {
        let (x, y) = ([1.0, 2.0, 2.0, 5.0, 4.0], [0.3, 0.1, 0.4, 0.9, 0.5]);
        assert!((spearman(&x, &y).unwrap() - 0.820_782_68).abs() < 1e-8);
        let test = |x: &[f64], y: &[f64]| rank_test(&[[x.to_vec(), y.to_vec()]]).unwrap();
        assert!((test(&x, &y).p - 0.066_666_67).abs() < 1e-6);
        assert!((test(&x, &y).rho - 0.820_782_68).abs() < 1e-8);
        let ordered = [1.0, 2.0, 3.0];
        let shares = |test: RankTest| (test.p, test.p_reverse);
        assert_eq!(shares(test(&ordered, &ordered)), (1.0 / 6.0, 1.0));
        // Items that share ranks are exchanged for nothing: of six orders two are the best.
        let least = |y: &[f64]| test(&ordered, y).least;
        assert_eq!([least(&[3.0, 1.0, 2.0]), least(&[0.0, 1.0, 0.0])], [1.0 / 6.0, 1.0 / 3.0]);
        // Of the six orders one correlates better, and one other as well.
        assert_eq!(shares(test(&ordered, &[1.0, 3.0, 2.0])), (0.5, 5.0 / 6.0));
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
        assert_eq!(rank_test(&[[vec![1.0; 3], ordered.to_vec()]]), None);
    }

    /// Three blocks that repeat the same five items are no more evidence than one; drawn permutations agree with all of them.
    #[test]
    fn items_and_not_blocks_are_permuted() {
        let block = [vec![1.0, 2.0, 3.0, 4.0, 5.0], vec![1.0, 3.0, 2.0, 4.0, 5.0]];
        let (one, three) = (rank_test(std::slice::from_ref(&block)), rank_test(&vec![block; 3]));
        let (one, three) = (one.unwrap(), three.unwrap());
        assert_eq!((one.p, one.p_reverse), (three.p, three.p_reverse));
        assert!((one.rho - three.rho).abs() < 1e-12 && (one.rho - 0.9).abs() < 1e-12);
        // Five of the 120 orders reach .9: the identity and four swaps of neighbours.
        assert!((one.p - 5.0 / 120.0).abs() < 1e-12, "{one:?}");
        let items: Vec<f64> = (0..11).map(f64::from).collect();
        let mixed = [4.0, 0.0, 6.0, 1.0, 3.0, 8.0, 2.0, 10.0, 5.0, 7.0, 9.0];
        // Against 2,000,000 permutations in NumPy.
        let drawn = rank_test(&[[items, mixed.to_vec()]]).unwrap();
        assert!((drawn.rho - 0.609_090_909).abs() < 1e-9, "{drawn:?}");
        assert!((drawn.p - 0.025_97).abs() < 2e-3, "{drawn:?}");
    }

    /// The first variable is the third, the second its reverse: only the exchange of none of the items that differ reaches that.
    #[test]
    fn predictors_are_exchanged_item_by_item() {
        let third = vec![1.0, 2.0, 3.0, 4.0, 5.0];
        let reverse: Vec<f64> = third.iter().rev().copied().collect();
        let block = [third.clone(), reverse, third];
        let test = rank_difference_test(&[block.clone(), block]).unwrap();
        assert!((test.rho - 2.0).abs() < 1e-12);
        // The middle item has the same rank in both, so that two of the 32 exchanges reach it.
        assert_eq!((test.p, test.p_reverse), (2.0 / 32.0, 1.0));
    }

    /// Against `scipy.stats.t.sf`, and against the quantiles of [`terms::Estimate`]'s table.
    #[test]
    fn tails_are_students() {
        let cases = [(2.0, 3, 0.069_662_98), (1.0, 1, 0.25), (3.182_446, 3, 0.025)];
        let more = [(2.776_445, 4, 0.025), (2.570_582, 5, 0.025), (12.706_205, 1, 0.025)];
        for (t, freedom, p) in cases.into_iter().chain(more).chain([(4.302_653, 2, 0.025)]) {
            let tail = t_upper_tail(t, freedom);
            assert!((tail - p).abs() < 1e-6, "t {t}, {freedom}: {tail} and {p}");
            assert!((t_upper_tail(-t, freedom) - (1.0 - p)).abs() < 1e-6);
        }
        assert!((t_upper_tail(2.042_272, 30) - 0.025).abs() < 1e-6);
    }

    /// By hand: mean 0.11, standard error 0.01 / sqrt 3, t = 19.05 with two degrees of freedom: 1/2 - t / (2 sqrt(2 + t²)).
    #[test]
    fn means_are_tested_against_bounds() {
        let p = t_test_above(&[0.10, 0.11, 0.12], 0.0).unwrap();
        let t = 0.11 * 3_f64.sqrt() / 0.01;
        assert!((p - (0.5 - t / (2.0 * (2.0 + t * t).sqrt()))).abs() < 1e-12, "{p}");
        assert_eq!(t_test_above(&[0.5], 0.0), None);
        assert_eq!(t_test_above(&[1.0, 1.0], 0.5), None);
        // 0.1 + 0.2 is not quite 0.3, and that is no spread.
        assert_eq!(t_test_above(&[0.1 + 0.2, 0.3, 0.3], 0.2), None);
    }

    /// Two seeds of 1/2 and 1/4, of which the second counts twice: 1/3, and neither seed's ratio; a constant ratio has no spread.
    #[test]
    fn ratios_are_of_means() {
        let seeds = ratio_of_means(&[0.05, 0.05], &[0.1, 0.2]);
        assert!((seeds[0] + seeds[1] - 2.0 / 3.0).abs() < 1e-12, "{seeds:?}");
        // By hand: (0.05 - 0.1 / 3) / 0.15 = 1/9 to either side.
        assert!((seeds[0] - 4.0 / 9.0).abs() < 1e-12, "{seeds:?}");
        let constant = ratio_of_means(&[0.2, 0.4, 0.1], &[0.4, 0.8, 0.2]);
        assert!(constant.iter().all(|one| (one - 0.5).abs() < 1e-12), "{constant:?}");
        assert_eq!(ratio_of_means(&[0.3], &[0.6]), [0.5]);
    }

    /// Against `p.adjust(p, "BH")` of R.
    #[test]
    fn many_tests_are_adjusted() {
        let near = |a: Vec<f64>, b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(near(benjamini_hochberg(&[0.01, 0.04, 0.03, 0.005]), &[0.02, 0.04, 0.04, 0.02]));
        assert!(near(benjamini_hochberg(&[0.9, 0.8, 0.02]), &[0.9, 0.9, 0.06]));
        assert!(benjamini_hochberg(&[]).is_empty());
    }
}
