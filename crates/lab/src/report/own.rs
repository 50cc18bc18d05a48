//! Studies of one's own: no finding is tested, and their results are tabulated.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::exhibit::{ReportTable, TableCell};
use super::sections;
use crate::record::{Factors, Record};
use crate::store::natural;
use terms::Estimate;

/// The most rows that are shown of a study.
const MOST: usize = 60;

/// A study that no section is about.
pub(super) struct UserStudy<'a> {
    pub(super) name: &'a str,
    /// Means over seeds.
    pub(super) table: ReportTable,
    /// How many means the table leaves out.
    pub(super) left_out: usize,
}

/// The studies among the records that no section is about.
pub(super) fn studies(records: &[Record]) -> Vec<UserStudy<'_>> {
    let known = |study: &str| sections::ALL.iter().any(|section| section.studies.contains(&study));
    let mut studies: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| !known(&record.origin.study)) {
        studies.entry(&record.origin.study).or_default().push(record);
    }
    studies.into_iter().map(|(name, records)| UserStudy::of(name, &records)).collect()
}

impl<'a> UserStudy<'a> {
    fn of(name: &'a str, records: &[&Record]) -> Self {
        let mut seeds: BTreeMap<(&str, &str, &Factors), Vec<f64>> = BTreeMap::new();
        for record in records {
            let key = (&*record.origin.scale, &*record.measure, &record.factors);
            seeds.entry(key).or_default().push(record.value);
        }
        let mut means: Vec<_> = seeds.into_iter().collect();
        means.sort_by(|((a, b, c), _), ((x, y, z), _)| {
            a.cmp(x).then_with(|| b.cmp(y)).then_with(|| in_order(c, z))
        });
        let left_out = means.len().saturating_sub(MOST);
        let mut table = ReportTable::new(&["measure", "scale", "factors", "mean"]);
        for ((scale, measure, factors), values) in means.into_iter().take(MOST) {
            table.rows.push(vec![
                TableCell::Name(measure.to_owned()),
                TableCell::Text(scale.to_owned()),
                TableCell::Text(described(factors)),
                TableCell::Ours(Estimate::of(&values)),
            ]);
        }
        Self { name, table, left_out }
    }
}

fn described(factors: &Factors) -> String {
    let each = factors.iter().map(|(name, level)| format!("{name} {level}"));
    each.collect::<Vec<_>>().join(", ")
}

/// By levels in natural order: layer 2 before layer 10.
fn in_order(a: &Factors, b: &Factors) -> Ordering {
    let pairs = a.iter().zip(b);
    let each = |((a, x), (b, y)): ((&String, &String), (&String, &String))| {
        a.cmp(b).then_with(|| natural(x, y))
    };
    pairs.map(each).find(|order| order.is_ne()).unwrap_or_else(|| a.len().cmp(&b.len()))
}
