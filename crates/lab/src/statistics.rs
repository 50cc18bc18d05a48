//! The little statistics that a table of seeds needs: means, intervals, ranks.
//!
//! An interval is Student's t over seeds, 95 %. One seed gives none, and nothing pretends that it does.

/// The 97.5 % points of Student's t for 1 to 30 degrees of freedom.
const T: [f64; 30] = [
    12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157,
    2.228139, 2.200985, 2.178813, 2.160369, 2.144787, 2.131450, 2.119905, 2.109816, 2.100922,
    2.093024, 2.085963, 2.079614, 2.073873, 2.068658, 2.063899, 2.059539, 2.055529, 2.051831,
    2.048407, 2.045230, 2.042272,
];

/// A mean with what is known of its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Half the width of the interval of 95 %; none of a single value.
    pub half: Option<f64>,
    /// How many values it is of.
    pub n: usize,
}

impl Mean {
    /// The mean of some values; none of no values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len();
        if n == 0 {
            return None;
        }
        let value = values.iter().sum::<f64>() / n as f64;
        let half = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
            t_quantile(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt()
        });
        Some(Self { value, half, n })
    }

    /// From where to where the interval reaches.
    pub fn interval(&self) -> Option<(f64, f64)> {
        self.half.map(|half| (self.value - half, self.value + half))
    }
}

/// The 97.5 % point of Student's t: tabulated, and beyond the table expanded around the normal's.
fn t_quantile(freedom: usize) -> f64 {
    if let Some(&t) = T.get(freedom - 1) {
        return t;
    }
    let (z, v) = (1.959_963_985_f64, freedom as f64);
    let first = (z.powi(3) + z) / 4.0;
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0;
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0;
    z + first / v + second / v.powi(2) + third / v.powi(3)
}

/// Spearman's rank correlation; none where one side does not vary or there are fewer than three.
pub fn spearman(x: &[f64], y: &[f64]) -> Option<f64> {
    assert_eq!(x.len(), y.len(), "correlations are of pairs");
    (x.len() >= 3).then(|| correlation(&ranks(x), &ranks(y))).flatten()
}

/// The share of all orders of `y` whose rank correlation with `x` is at least the one found. Exact, and
/// so only for up to ten pairs; none beyond, or where there is no correlation.
pub fn permutation_p(x: &[f64], y: &[f64]) -> Option<f64> {
    let found = spearman(x, y)?;
    if x.len() > 10 {
        return None;
    }
    let (x, mut y) = (ranks(x), ranks(y));
    let middle = (y.len() + 1) as f64 / 2.0;
    let x: Vec<f64> = x.iter().map(|rank| rank - middle).collect();
    let spread = |side: &[f64]| side.iter().map(|r| (r - middle).powi(2)).sum::<f64>();
    let scale = (x.iter().map(|r| r * r).sum::<f64>() * spread(&y)).sqrt();
    let (mut all, mut reached) = (0_u64, 0_u64);
    each_order(&mut y, &mut |y| {
        let sum: f64 = x.iter().zip(y).map(|(a, b)| a * b).sum();
        all += 1;
        reached += u64::from(sum / scale >= found - 1e-12);
    });
    Some(reached as f64 / all as f64)
}

/// Heap's algorithm: every order once, each a swap away from the one before.
fn each_order(items: &mut [f64], visit: &mut impl FnMut(&[f64])) {
    let mut turns = vec![0; items.len()];
    visit(items);
    let mut at = 1;
    while at < items.len() {
        if turns[at] < at {
            items.swap(if at % 2 == 0 { 0 } else { turns[at] }, at);
            visit(items);
            turns[at] += 1;
            at = 1;
        } else {
            turns[at] = 0;
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

    /// Against `scipy.stats.t.interval(0.95, n - 1, mean, sem)`.
    #[test]
    fn intervals_are_students() {
        let mean = Mean::of(&[0.81, 0.84, 0.79, 0.86, 0.83]).unwrap();
        assert_eq!(mean.n, 5);
        let (low, high) = mean.interval().unwrap();
        assert!(
            (low - 0.792_452_1).abs() < 1e-6 && (high - 0.859_547_9).abs() < 1e-6,
            "{low} {high}"
        );
        let many: Vec<f64> = (0..40).map(f64::from).collect();
        let (low, high) = Mean::of(&many).unwrap().interval().unwrap();
        assert!(
            (low - 15.761_212).abs() < 1e-5 && (high - 23.238_788).abs() < 1e-5,
            "{low} {high}"
        );
        assert_eq!(Mean::of(&[0.5]).unwrap().half, None);
        assert_eq!(Mean::of(&[]), None);
    }

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
