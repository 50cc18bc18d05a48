//! Spaces of two languages made visible: what lengths explain is removed, points are projected onto a
//! plane, and planes are brought into register.
//!
//! Clouds that overlap in two dimensions prove nothing, since those of an untrained encoder overlap as well. So the
//! measure that belongs beside any such picture is here too: the share of variance that the language
//! explains, 0 where the means of the languages agree and near 1 where nothing but the language
//! distinguishes two points.

use arrays::Matrix;
use faer::{Mat, Side};
use serde::{Deserialize, Serialize};

use crate::map::Map;
use crate::normalize::mean;

/// Classes of lengths, at most: few enough that the mean of each is of many sentences.
const LENGTH_CLASSES: usize = 10;

/// Rows that are added to a covariance at a time.
const STRIP: usize = 4096;

/// Points on a plane, a row each.
pub type PlanePoints = Vec<[f64; 2]>;

/// A projection of points onto a plane.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaneProjection {
    /// The points of each group, in the order in which they were given.
    pub groups: Vec<PlanePoints>,
    /// The share of the variance of all points that lies along each axis.
    pub shares: [f64; 2],
}

/// The share of the variance of all points that lies between the means of their groups (η²): between
/// sum of squares over total sum of squares. 0 where nothing varies.
pub fn variance_between(groups: &[&Matrix]) -> f64 {
    let means: Vec<Vec<f64>> = groups.iter().map(|group| mean(group)).collect();
    let grand = grand_mean(groups, &means);
    let square = |row: &mut dyn Iterator<Item = f64>| {
        row.zip(&grand).map(|(x, mean)| (x - mean).powi(2)).sum::<f64>()
    };
    let (mut between, mut total) = (0.0, 0.0);
    for (group, mean) in groups.iter().zip(&means) {
        between += group.rows() as f64 * square(&mut mean.iter().copied());
        let rows = group.iter().map(|row| square(&mut row.iter().map(|&x| f64::from(x))));
        total += rows.sum::<f64>();
    }
    if total > 0.0 { between / total } else { 0.0 }
}

fn grand_mean(groups: &[&Matrix], means: &[Vec<f64>]) -> Vec<f64> {
    let count = groups.iter().map(|group| group.rows()).sum::<usize>().max(1) as f64;
    let mut grand = vec![0.0; groups.first().map_or(0, |group| group.cols())];
    for (group, mean) in groups.iter().zip(means) {
        let weight = group.rows() as f64 / count;
        grand.iter_mut().zip(mean).for_each(|(sum, x)| *sum += weight * x);
    }
    grand
}

/// Removes what the lengths of sentences explain: sentences of all groups are put into at most ten
/// classes of about equal size by their lengths, and from each vector the mean deviation of its class from
/// the means of the groups is subtracted. Differences between groups stay; what an encoder says
/// of mere length, an untrained one too, goes.
pub fn remove_lengths(groups: &mut [Matrix], lengths: &[&[usize]]) {
    let class_of = length_classes(lengths);
    let classes = class_of.iter().flatten().max().map_or(0, |last| last + 1);
    let dim = groups.first().map_or(0, Matrix::cols);
    let means: Vec<Vec<f64>> = groups.iter().map(mean).collect();
    let mut sums = vec![vec![0.0; dim]; classes];
    let mut counts = vec![0_usize; classes];
    for ((group, mean), of_row) in groups.iter().zip(&means).zip(&class_of) {
        for (row, &class) in group.iter().zip(of_row) {
            counts[class] += 1;
            let deviation = row.iter().zip(mean).map(|(&x, mean)| f64::from(x) - mean);
            sums[class].iter_mut().zip(deviation).for_each(|(sum, x)| *sum += x);
        }
    }
    for (sum, &count) in sums.iter_mut().zip(&counts) {
        sum.iter_mut().for_each(|x| *x /= count.max(1) as f64);
    }
    for (group, of_row) in groups.iter_mut().zip(&class_of) {
        for (row, &class) in group.values_mut().chunks_exact_mut(dim).zip(of_row) {
            row.iter_mut().zip(&sums[class]).for_each(|(x, y)| *x = (f64::from(*x) - y) as f32);
        }
    }
}

/// The class of each length: classes are of neighbouring lengths and about as large as one another; equal lengths are
/// never parted.
fn length_classes(lengths: &[&[usize]]) -> Vec<Vec<usize>> {
    let mut sorted: Vec<usize> = lengths.iter().flat_map(|group| group.iter().copied()).collect();
    sorted.sort_unstable();
    let total = sorted.len();
    // The first length of each class after the first.
    let mut bounds: Vec<usize> =
        (1..LENGTH_CLASSES).map(|class| sorted[class * total / LENGTH_CLASSES]).collect();
    bounds.dedup();
    bounds.retain(|&bound| bound > sorted[0]);
    let class = |length: &usize| bounds.partition_point(|bound| bound <= length);
    lengths.iter().map(|group| group.iter().map(class).collect()).collect()
}

/// Principal component analysis (Pearson 1901) of the points of all groups together: their coordinates on
/// the two directions of greatest variance. Each direction points to where its largest coefficient is
/// positive.
pub fn principal_plane(groups: &[&Matrix]) -> PlaneProjection {
    let means: Vec<Vec<f64>> = groups.iter().map(|group| mean(group)).collect();
    let grand = grand_mean(groups, &means);
    let (points, total) = deviations(groups, &vec![grand; groups.len()]);
    let directions = leading_directions(&points, 2);
    on_axes(groups, &points, total, &directions)
}

/// The directions of greatest variance of the points of all groups together, about their common mean: as many as are asked for,
/// of length 1 and at right angles to one another. From the covariance, so that many points cost no more memory than few.
pub(crate) fn principal_directions(groups: &[&Matrix], count: usize) -> Vec<Vec<f64>> {
    let means: Vec<Vec<f64>> = groups.iter().map(|group| mean(group)).collect();
    let grand = grand_mean(groups, &means);
    let dim = grand.len();
    let mut covariance = Mat::<f64>::zeros(dim, dim);
    for strip in groups.iter().flat_map(|group| group.values().chunks(STRIP * dim)) {
        let rows = strip.len() / dim;
        let points =
            Mat::from_fn(rows, dim, |row, col| f64::from(strip[row * dim + col]) - grand[col]);
        covariance += points.transpose() * &points;
    }
    let eigen = covariance.self_adjoint_eigen(Side::Lower).expect("a finite symmetric matrix");
    // They come in rising order of variance.
    let direction = |place: usize| (0..dim).map(|row| eigen.U()[(row, dim - 1 - place)]).collect();
    (0..count.min(dim)).map(direction).collect()
}

/// A plane for two groups whose first axis is *supervised*: the difference of their means, from the
/// first to the second. The second axis is the direction of greatest variance within the
/// groups at a right angle to it.
pub fn mean_difference_plane(groups: [&Matrix; 2]) -> PlaneProjection {
    let means = groups.map(mean);
    let grand = grand_mean(&groups, &means);
    let mut axis: Vec<f64> = means[1].iter().zip(&means[0]).map(|(b, a)| b - a).collect();
    let length = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    axis.iter_mut().for_each(|x| *x /= length.max(f64::MIN_POSITIVE));
    let (mut within, _) = deviations(&groups, &means);
    for row in 0..within.nrows() {
        let along: f64 = axis.iter().enumerate().map(|(col, x)| within[(row, col)] * x).sum();
        axis.iter().enumerate().for_each(|(col, x)| within[(row, col)] -= along * x);
    }
    let second = leading_directions(&within, 1).remove(0);
    let (points, total) = deviations(&groups, &[grand.clone(), grand]);
    on_axes(&groups, &points, total, &[axis, second])
}

/// All points less the centre of their group, rows x dim, and their sum of squares.
fn deviations(groups: &[&Matrix], centres: &[Vec<f64>]) -> (Mat<f64>, f64) {
    let dim = groups.first().map_or(0, |group| group.cols());
    let rows: Vec<(&[f32], &Vec<f64>)> = groups
        .iter()
        .zip(centres)
        .flat_map(|(group, centre)| group.iter().map(move |row| (row, centre)))
        .collect();
    let points =
        Mat::from_fn(rows.len(), dim, |row, col| f64::from(rows[row].0[col]) - rows[row].1[col]);
    let total = (0..dim).map(|col| points.col(col).squared_norm_l2()).sum();
    (points, total)
}

/// The leading right singular vectors of some rows, each with its largest coefficient positive; zeros where there
/// are no more.
fn leading_directions(points: &Mat<f64>, count: usize) -> Vec<Vec<f64>> {
    let dim = points.ncols();
    let svd = points.thin_svd().expect("the decomposition of a finite matrix converges");
    let direction = |number: usize| {
        if number >= svd.V().ncols() {
            return vec![0.0; dim];
        }
        let mut direction: Vec<f64> = (0..dim).map(|row| svd.V()[(row, number)]).collect();
        let largest =
            direction.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        if largest < 0.0 {
            direction.iter_mut().for_each(|x| *x = -*x);
        }
        direction
    };
    (0..count).map(direction).collect()
}

fn on_axes(
    groups: &[&Matrix],
    points: &Mat<f64>,
    total: f64,
    axes: &[Vec<f64>],
) -> PlaneProjection {
    let along = |row: usize, axis: usize| -> f64 {
        axes[axis].iter().enumerate().map(|(col, x)| points[(row, col)] * x).sum()
    };
    let all: PlanePoints = (0..points.nrows()).map(|row| [along(row, 0), along(row, 1)]).collect();
    let share = |axis: usize| {
        let squares = all.iter().map(|point| point[axis].powi(2)).sum::<f64>();
        if total > 0.0 { squares / total } else { 0.0 }
    };
    let shares = [share(0), share(1)];
    let mut rest = all.into_iter();
    let of_group = |group: &&Matrix| rest.by_ref().take(group.rows()).collect();
    PlaneProjection { groups: groups.iter().map(of_group).collect(), shares }
}

impl PlaneProjection {
    /// Turns and mirrors these points so that they lie as closely as possible to those of another projection
    /// of the same items (orthogonal Procrustes after each is scaled to unit size): axes of a
    /// principal plane have no direction of their own, and of a series of pictures each would spin otherwise.
    #[must_use]
    pub fn turned_to(&self, other: &PlaneProjection) -> Self {
        let flat = |projection: &PlaneProjection| {
            let values: Vec<f64> = projection.groups.iter().flatten().flatten().copied().collect();
            let size = values.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
            let values = values.iter().map(|x| (x / size) as f32).collect::<Vec<_>>();
            Matrix::new(values.len() / 2, 2, values)
        };
        let map = Map::procrustes(&flat(self), &flat(other));
        let w = map.values();
        let turn = |&[x, y]: &[f64; 2]| [w[0] * x + w[1] * y, w[2] * x + w[3] * y];
        let groups = self.groups.iter().map(|group| group.iter().map(turn).collect()).collect();
        Self { groups, shares: self.shares }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-5, "{a} is not {b}");
    }

    /// By hand: means (0, 0) and (4, 0), grand mean (2, 0); between 2·2²·2 = 16, within 2·1² + 2·1² = 4.
    #[test]
    fn the_share_of_variance_between_groups() {
        let a = Matrix::new(2, 2, vec![0.0, 1.0, 0.0, -1.0]);
        let b = Matrix::new(2, 2, vec![4.0, 1.0, 4.0, -1.0]);
        near(variance_between(&[&a, &b]), 16.0 / 20.0);
        near(variance_between(&[&a, &a]), 0.0);
        let point = Matrix::new(2, 2, vec![1.0; 4]);
        near(variance_between(&[&point, &point]), 0.0);
    }

    /// As `numpy.linalg.svd` has it (NumPy 2.4): X = [[2,0,1],[0,1,3],[1,1,0],[5,2,2],[3,4,1]];
    /// X -= X.mean(0); U, S, V = svd(X); X @ V[:2].T with the signs of this crate; S² / sum(S²).
    #[test]
    fn principal_components_are_those_of_numpy() {
        let first = Matrix::new(3, 3, vec![2., 0., 1., 0., 1., 3., 1., 1., 0.]);
        let second = Matrix::new(2, 3, vec![5., 2., 2., 3., 4., 1.]);
        let plane = principal_plane(&[&first, &second]);
        for (point, wanted) in plane.groups.iter().flatten().zip(NUMPY) {
            near(point[0], wanted[0]);
            near(point[1], wanted[1]);
        }
        near(plane.shares[0], NUMPY_SHARES[0]);
        near(plane.shares[1], NUMPY_SHARES[1]);
        assert_eq!(plane.groups.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
    }

    const NUMPY: [[f64; 2]; 5] = [
        [-0.9874953, -1.2835852],
        [-2.2455759, 0.7054575],
        [-1.2879355, 0.0379343],
        [2.5782107, -1.0764698],
        [1.9427961, 1.6166632],
    ];
    const NUMPY_SHARES: [f64; 2] = [0.6198001, 0.2027085];

    /// The first axis is the difference of means, whatever else varies more; the second has none of it.
    #[test]
    fn the_first_axis_of_two_groups_is_the_difference_of_means() {
        let rows = |x: f32| (0..20).flat_map(|i| [x, 0.3 * i as f32, (i % 3) as f32]).collect();
        let [a, b] = [Matrix::new(20, 3, rows(0.0)), Matrix::new(20, 3, rows(1.0))];
        let plane = mean_difference_plane([&a, &b]);
        for (group, x) in plane.groups.iter().zip([-0.5, 0.5]) {
            assert!(group.iter().all(|point| (point[0] - x).abs() < 1e-6), "{group:?}");
        }
        near(plane.shares[0], variance_between(&[&a, &b]));
    }

    /// A picture that was turned and mirrored comes back to where it was; its scale stays.
    #[test]
    fn planes_are_brought_into_register() {
        let points: PlanePoints = vec![[3.0, 0.2], [-1.0, 1.0], [-2.0, -1.2], [0.5, 0.1]];
        let original = PlaneProjection { groups: vec![points.clone()], shares: [0.6, 0.2] };
        let (sin, cos) = 2.1_f64.sin_cos();
        let turned =
            points.iter().map(|[x, y]| [2.0 * (cos * x + sin * y), 2.0 * (sin * x - cos * y)]);
        let other = PlaneProjection { groups: vec![turned.collect()], shares: [0.6, 0.2] };
        let back = other.turned_to(&original);
        for (point, wanted) in back.groups[0].iter().zip(&points) {
            near(point[0], 2.0 * wanted[0]);
            near(point[1], 2.0 * wanted[1]);
        }
    }

    /// Vectors that are nothing but a function of length and the group's offset become the offset.
    #[test]
    fn what_lengths_explain_is_removed_and_groups_stay_apart() {
        let lengths: Vec<usize> = (0..60).map(|i| 3 + i % 10).collect();
        let of = |offset: f32| {
            let row = |&length: &usize| [offset, (length as f32).sin(), (length * length) as f32];
            Matrix::new(60, 3, lengths.iter().flat_map(row).collect())
        };
        let mut groups = [of(0.0), of(2.0)];
        remove_lengths(&mut groups, &[&lengths, &lengths]);
        assert!(variance_between(&[&groups[0], &groups[1]]) > 0.999);
        let spread = |group: &Matrix| {
            group.iter().map(|row| (row[2] - group.row(0)[2]).abs()).fold(0.0, f32::max)
        };
        assert!(spread(&groups[0]) < 1e-3 && spread(&groups[1]) < 1e-3);
    }

    /// Ten classes at most, of about equal size, and none parts equal lengths.
    #[test]
    fn classes_of_lengths() {
        let lengths: Vec<usize> = (0..100).collect();
        let classes = length_classes(&[&lengths]);
        assert_eq!((classes[0][0], classes[0][9], classes[0][10], classes[0][99]), (0, 0, 1, 9));
        assert_eq!(length_classes(&[&[5, 5, 5], &[5]]), [vec![0, 0, 0], vec![0]]);
    }
}
