//! Tests: rank correlation with an exact permutation test, Student's t, and the correction for many tests. Means and
//! intervals are [`terms::Estimate`].

use std::f64::consts::PI;

/// The one-sided p of a mean over a bound: the probability that Student's t with n - 1 degrees of freedom exceeds that of
/// these numbers. None of a single number. Numbers that do not vary are certain, and equal to the bound only up to rounding.
pub fn t_test_above(numbers: &[f64], bound: f64) -> Option<f64> {
    let n = numbers.len() as f64;
    if numbers.len() < 2 {
        return None;
    }
    let mean = numbers.iter().sum::<f64>() / n;
    let excess = mean - bound;
    if excess.abs() < 1e-9 {
        return Some(0.5);
    }
    let variance = numbers.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(t_upper_tail(excess / (variance / n).sqrt(), numbers.len() - 1))
}

/// The probability that Student's t exceeds a value (Abramowitz & Stegun 26.7.3 and 26.7.4, finite sums).
fn t_upper_tail(t: f64, freedom: usize) -> f64 {
    if t.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
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
    (x.len() >= 3).then(|| correlation(&ranks(x), &ranks(y))).flatten()
}

/// The one-sided p-values of the rank correlation: the shares of all permutations of `y` that reach it, and that do not exceed
/// it. Exact, and so only for up to ten pairs; none beyond, or where there is no correlation.
pub fn permutation_p(x: &[f64], y: &[f64]) -> Option<(f64, f64)> {
    spearman(x, y)?;
    if x.len() > 10 {
        return None;
    }
    let (x, mut y) = (ranks(x), ranks(y));
    // Ranks are multiples of a half, so that all sums of their products are exact.
    let sum: f64 = x.iter().zip(&y).map(|(a, b)| a * b).sum();
    let (mut all, mut reached, mut not_exceeded) = (0_u64, 0_u64, 0_u64);
    each_permutation(&x, &mut y, sum, |permuted| {
        all += 1;
        reached += u64::from(permuted >= sum);
        not_exceeded += u64::from(permuted <= sum);
    });
    Some((reached as f64 / all as f64, not_exceeded as f64 / all as f64))
}

/// Visits the sum of products of `x` with every permutation of `y`, each a swap away from the one before (Heap 1963), which
/// changes two products.
fn each_permutation(x: &[f64], y: &mut [f64], mut sum: f64, mut visit: impl FnMut(f64)) {
    let mut counters = vec![0; y.len()];
    visit(sum);
    let mut at = 1;
    while at < y.len() {
        if counters[at] < at {
            let other = if at % 2 == 0 { 0 } else { counters[at] };
            sum += (x[at] - x[other]) * (y[other] - y[at]);
            y.swap(other, at);
            visit(sum);
            counters[at] += 1;
            at = 1;
        } else {
            counters[at] = 0;
            at += 1;
        }
    }
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

fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
    let (a, b) = (mean(x), mean(y));
    let product: f64 = x.iter().zip(y).map(|(x, y)| (x - a) * (y - b)).sum();
    let square =
        |side: &[f64], mean| side.iter().map(|one| (one - mean) * (one - mean)).sum::<f64>();
    let scale: f64 = (square(x, a) * square(y, b)).sqrt();
    (scale > 0.0).then(|| product / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against `scipy.stats.spearmanr` and, for p, `scipy.stats.permutation_test` over all orders.
    #[test]
    fn ranks_correlate() {
        let (x, y) = ([1.0, 2.0, 2.0, 5.0, 4.0], [0.3, 0.1, 0.4, 0.9, 0.5]);
        assert!((spearman(&x, &y).unwrap() - 0.820_782_68).abs() < 1e-8);
        assert!((permutation_p(&x, &y).unwrap().0 - 0.066_666_67).abs() < 1e-6);
        let ordered = [1.0, 2.0, 3.0];
        assert_eq!(permutation_p(&ordered, &ordered), Some((1.0 / 6.0, 1.0)));
        // Of the six orders one correlates better, and one other as well.
        assert_eq!(permutation_p(&ordered, &[1.0, 3.0, 2.0]), Some((0.5, 5.0 / 6.0)));
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
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
        assert_eq!(t_test_above(&[1.0, 1.0], 0.5), Some(0.0));
        assert_eq!(t_test_above(&[1.0, 1.0], 1.5), Some(1.0));
        // 0.1 + 0.2 is not quite 0.3, and still no evidence.
        assert_eq!(t_test_above(&[0.1 + 0.2, 0.1 + 0.2], 0.3), Some(0.5));
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
