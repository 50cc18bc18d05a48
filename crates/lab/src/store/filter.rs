//! Which records are selected, and the order in which they come.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::record::{Factors, Origin};

/// Which records are selected. An empty list selects everything; of several values in a list, any matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordFilter {
    pub studies: Vec<String>,
    pub scales: Vec<String>,
    pub seeds: Vec<u64>,
    pub measures: Vec<String>,
    /// For each of these factors, its levels. A record without the factor is not selected.
    pub factors: BTreeMap<String, Vec<String>>,
}

impl RecordFilter {
    pub fn study(name: &str) -> Self {
        Self { studies: vec![name.to_owned()], ..Self::default() }
    }

    pub(super) fn keeps(&self, origin: &Origin, measure: &str, factors: &Factors) -> bool {
        let among =
            |list: &[String], value: &str| list.is_empty() || list.iter().any(|one| one == value);
        among(&self.studies, &origin.study)
            && among(&self.scales, &origin.scale)
            && among(&self.measures, measure)
            && (self.seeds.is_empty() || self.seeds.contains(&origin.seed))
            && self
                .factors
                .iter()
                .all(|(name, values)| factors.get(name).is_some_and(|value| values.contains(value)))
    }
}

/// What records and texts are ordered by: origin, measure or name, and factors.
type Key<'a> = (&'a Origin, &'a String, &'a Factors);

/// By study, scale, measure, factors and seed.
pub(super) fn order((a, what_a, of_a): Key<'_>, (b, what_b, of_b): Key<'_>) -> Ordering {
    (&a.study, &a.scale, what_a)
        .cmp(&(&b.study, &b.scale, what_b))
        .then_with(|| of_a.keys().cmp(of_b.keys()))
        .then_with(|| {
            let pairs = of_a.values().zip(of_b.values());
            pairs.map(|(a, b)| natural(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        })
        .then_with(|| a.seed.cmp(&b.seed))
}

/// Natural order: numbers by size and before words, so that layer 10 comes after layer 2.
pub fn natural(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}
