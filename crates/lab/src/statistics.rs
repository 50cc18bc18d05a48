//! Rank correlation with an exact permutation test. Means and intervals are [`terms::Estimate`].

/// Spearman's rank correlation; none where one side does not vary or there are fewer than three.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "correlations are of pairs");
    (x.len() >= 3).then(|| correlation(&ranks(x), &ranks(y))).flatten()
}

/// The one-sided p of the rank correlation: the share of all permutations of `y` that reach it. Exact, and so only for up
/// to ten pairs; none beyond, or where there is no correlation.
pub fn permutation_p(x: &[f64], y: &[f64]) -> Option<f64> {
    let observed = spearman(x, y)?;
    if x.len() > 10 {
        return None;
    }
    let (x, mut y) = (ranks(x), ranks(y));
    let middle = (y.len() + 1) as f64 / 2.0;
    let x: Vec<f64> = x.iter().map(|rank| rank - middle).collect();
    let spread = |side: &[f64]| side.iter().map(|r| (r - middle).powi(2)).sum::<f64>();
    let scale = (x.iter().map(|r| r * r).sum::<f64>() * spread(&y)).sqrt();
    let (mut all, mut reached) = (0_u64, 0_u64);
    each_permutation(&mut y, &mut |y| {
        let sum: f64 = x.iter().zip(y).map(|(a, b)| a * b).sum();
        all += 1;
        reached += u64::from(sum / scale >= observed - 1e-12);
    });
    Some(reached as f64 / all as f64)
}

/// Every permutation once, each a swap away from the one before (Heap 1963).
fn each_permutation(items: &mut [f64], visit: &mut impl FnMut(&[f64])) {
    let mut counters = vec![0; items.len()];
    visit(items);
    let mut at = 1;
    while at < items.len() {
        if counters[at] < at {
            items.swap(if at % 2 == 0 { 0 } else { counters[at] }, at);
            visit(items);
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
        assert!((permutation_p(&x, &y).unwrap() - 0.066_666_67).abs() < 1e-6);
        assert_eq!(permutation_p(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), Some(1.0 / 6.0));
        assert_eq!(spearman(&[1.0, 1.0, 1.0], &[1.0, 2.0, 3.0]), None);
        assert_eq!(spearman(&[1.0, 2.0], &[1.0, 2.0]), None);
    }
}
