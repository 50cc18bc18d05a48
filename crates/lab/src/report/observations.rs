//! Observations by seed and factors, compared pairwise, and what the other seeds select among candidates.

use std::collections::{BTreeMap, BTreeSet};

use terms::Estimate;

use crate::record::Factors;
use crate::statistics::ratio_of_means;

/// What is smaller has no shares.
const LEAST_WHOLE: f64 = 0.05;

/// Observations by seed and by the factors that were not selected on.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Observations(pub(super) BTreeMap<(u64, Factors), f64>);

impl Observations {
    /// Combines observations of equal seed and factors; those without a counterpart are left out.
    pub(super) fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = |(key, a): (&(u64, Factors), &f64)| {
            Some((key.clone(), combine(*a, *other.0.get(key)?)))
        };
        Self(self.0.iter().filter_map(both).collect())
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a - b)
    }

    /// The share of another quantity that this one keeps, over the observations that both have: of each task the ratio of the two
    /// means over seeds and all other factors, then the mean over tasks. None where of some task there is too little to have a share of.
    pub(super) fn share_of(&self, whole: &Self) -> Option<SeedSample> {
        let (part, whole) = (self.with(whole, |a, _| a), whole.with(self, |b, _| b));
        let task = |(_, factors): &(u64, Factors)| factors.get("task").cloned();
        let tasks: BTreeSet<Option<String>> = part.0.keys().map(task).collect();
        let of = |cells: &Self, wanted: &Option<String>| {
            let own = cells.0.iter().filter(|(key, _)| task(key) == *wanted);
            Self(own.map(|(key, value)| (key.clone(), *value)).collect()).sample()
        };
        let mut shares = Self::default();
        for one in tasks {
            let (part, whole) = (of(&part, &one), of(&whole, &one));
            if whole.mean().is_some_and(|whole| whole.mean < LEAST_WHOLE) {
                return None;
            }
            let factors: Factors = one.map(|task| ("task".to_owned(), task)).into_iter().collect();
            let values = ratio_of_means(&part.values(), &whole.values());
            let seeds = part.0.into_keys().map(|seed| (seed, factors.clone()));
            shares.0.extend(seeds.zip(values));
        }
        Some(shares.sample())
    }

    pub(super) fn map(&self, change: impl Fn(&Factors, f64) -> f64) -> Self {
        Self(self.0.iter().map(|(key, value)| (key.clone(), change(&key.1, *value))).collect())
    }

    /// With a factor added, so that different selections can be joined.
    pub(super) fn tagged(self, factor: &str, value: &str) -> Self {
        let tag = |((seed, mut factors), number): ((u64, Factors), f64)| {
            factors.insert(factor.to_owned(), value.to_owned());
            ((seed, factors), number)
        };
        Self(self.0.into_iter().map(tag).collect())
    }

    /// With a redundant factor removed.
    pub(super) fn dropped(self, factor: &str) -> Self {
        let drop = |((seed, mut factors), number): ((u64, Factors), f64)| {
            factors.remove(factor);
            ((seed, factors), number)
        };
        Self(self.0.into_iter().map(drop).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = f64> {
        self.0.values().copied()
    }

    /// The observations that do not have a factor.
    pub(super) fn without(mut self, factor: &str) -> Self {
        self.0.retain(|(_, factors), _| !factors.contains_key(factor));
        self
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// One number for each seed: the mean over factors. A seed that lacks observations that others have is left out,
    /// since its mean would be of other things.
    pub(super) fn sample(&self) -> SeedSample {
        let all: BTreeSet<&Factors> = self.0.keys().map(|(_, factors)| factors).collect();
        let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for ((seed, _), value) in &self.0 {
            seeds.entry(*seed).or_default().push(*value);
        }
        // Factors are distinct within a seed: as many as there are in all means all of them.
        seeds.retain(|_, values| values.len() == all.len());
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        SeedSample(seeds.into_iter().map(|(seed, values)| (seed, mean(values))).collect())
    }
}

/// Leave-one-out selection among candidates (layers, weights, systems): for each seed and each combination of factors, the
/// candidate with the best mean over the *other* seeds. The maximum of several numbers is biased upwards; a
/// selection made without the number that it is judged by is not. A single seed has no others to select by.
pub(super) fn chosen_by_others(choices: &[Observations]) -> Observations {
    let keys: BTreeSet<&(u64, Factors)> = choices.iter().flat_map(|cells| cells.0.keys()).collect();
    let seeds: BTreeSet<u64> = keys.iter().map(|(seed, _)| *seed).collect();
    let choose = |key: &(u64, Factors)| {
        let (own, factors) = key;
        let open: Vec<&Observations> =
            choices.iter().filter(|cells| cells.0.contains_key(key)).collect();
        let at = |cells: &Observations, seed: u64| cells.0.get(&(seed, factors.clone())).copied();
        // By the seeds that have all of these candidates.
        let has_all = |seed: &u64| open.iter().all(|cells| at(cells, *seed).is_some());
        let others: Vec<u64> =
            seeds.iter().copied().filter(|seed| seed != own).filter(has_all).collect();
        let sum =
            |cells: &Observations| others.iter().filter_map(|seed| at(cells, *seed)).sum::<f64>();
        // Of ties the first.
        let best = open.into_iter().rev().max_by(|a, b| sum(a).total_cmp(&sum(b)))?;
        (!others.is_empty()).then(|| at(best, *own)).flatten()
    };
    let chosen = |key: &(u64, Factors)| Some((key.clone(), choose(key)?));
    Observations(keys.into_iter().filter_map(chosen).collect())
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SeedSample(pub(super) BTreeMap<u64, f64>);

impl SeedSample {
    /// The numbers, in the order of seeds.
    pub(super) fn values(&self) -> Vec<f64> {
        self.0.values().copied().collect()
    }

    pub(super) fn mean(&self) -> Option<Estimate> {
        Estimate::of(&self.values())
    }

    /// The mean of correlations, on Fisher's scale, where they are nearly normal; half the width of the interval that comes back
    /// from it.
    pub(super) fn mean_correlation(&self) -> Option<Estimate> {
        let z: Vec<f64> = self.0.values().map(|r| r.clamp(-0.999_999, 0.999_999).atanh()).collect();
        let mean = Estimate::of(&z)?;
        let half = mean.interval().map(|(low, high)| (high.tanh() - low.tanh()) / 2.0);
        Some(Estimate { mean: mean.mean.tanh(), half_width: half, ..mean })
    }

    /// Combines seed with seed.
    pub(super) fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = |(seed, a): (&u64, &f64)| Some((*seed, combine(*a, *other.0.get(seed)?)));
        Self(self.0.iter().filter_map(both).collect())
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a - b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Record;
    use crate::report::data::tests::record;
    use crate::report::data::{StudyData, views};

    #[test]
    fn like_is_compared_with_like() {
        let records = [
            record("sharing", 1, "f1", "condition=a pair=qaa-qab", 0.9),
            record("sharing", 1, "f1", "condition=a pair=qaa-qac", 0.5),
            record("sharing", 1, "f1", "condition=b pair=qaa-qab", 0.6),
            record("sharing", 2, "f1", "condition=a pair=qaa-qab", 0.8),
            record("sharing", 2, "f1", "condition=b pair=qaa-qab", 0.6),
        ];
        let views = views(&records, &[]);
        assert_eq!(views.len(), 1);
        let data = views[0].study("sharing");
        let (a, b) = (
            data.observations("f1", &[("condition", "a")]),
            data.observations("f1", &[("condition", "b")]),
        );
        let difference = a.minus(&b).sample();
        let near = |value: f64, other: f64| (value - other).abs() < 1e-12;
        assert!(near(difference.0[&1], 0.3) && near(difference.0[&2], 0.2), "{difference:?}");
        // Seed 2 lacks a pair that seed 1 has.
        assert_eq!(a.sample().0.keys().collect::<Vec<_>>(), [&1]);
    }

    /// NLI keeps (.04 + .02) / (.10 + .06), NER (.6 + .8) / (.8 + .8): the mean of the two, and not the ratio of the sums.
    #[test]
    fn shares_are_means_over_tasks_of_ratios_of_means() {
        let cells = |values: [[f64; 2]; 2]| {
            let of = |(task, seeds): (&str, [f64; 2])| {
                let cell = |(seed, value)| ((seed, Factors::new()), value);
                Observations([1, 2].into_iter().zip(seeds).map(cell).collect()).tagged("task", task)
            };
            ["nli", "ner"].into_iter().zip(values).map(of).reduce(Observations::join).unwrap()
        };
        let (part, whole) = (cells([[0.04, 0.02], [0.6, 0.8]]), cells([[0.10, 0.06], [0.8, 0.8]]));
        let share = part.share_of(&whole).unwrap().mean().unwrap().mean;
        assert!((share - (0.375 + 0.875) / 2.0).abs() < 1e-12, "{share}");
        assert_eq!(part.share_of(&cells([[0.05, 0.04], [0.8, 0.8]])), None);
        assert_eq!(part.share_of(&Observations::default()), Some(SeedSample::default()));
    }

    #[test]
    fn seeds_that_lack_different_things_are_not_averaged_together() {
        let records = [
            record("sharing", 1, "f1", "pair=qaa-qab", 0.9),
            record("sharing", 1, "f1", "pair=qaa-qac", 0.5),
            record("sharing", 2, "f1", "pair=qaa-qab", 0.8),
            record("sharing", 2, "f1", "pair=qaa-qad", 0.1),
            record("sharing", 3, "f1", "pair=qaa-qab", 0.7),
            record("sharing", 3, "f1", "pair=qaa-qac", 0.6),
        ];
        let views = views(&records, &[]);
        let sample = |records: &[&Record]| {
            let data = StudyData { records: records.to_vec(), texts: vec![], depth: None };
            data.observations("f1", &[]).sample().0.into_keys().collect::<Vec<_>>()
        };
        let data = views[0].study("sharing");
        // Each seed has two cells; none has all three.
        assert_eq!(sample(&data.records), [0_u64; 0]);
        let [a, b, _, d, e, f] = data.records[..] else { panic!("six records") };
        assert_eq!(sample(&[a, b, e, f]), [1, 3]);
        assert_eq!(sample(&[a, b, d]), [0_u64; 0]);
        assert_eq!(sample(&[a, e]), [1, 3]);
    }

    #[test]
    fn a_choice_is_made_by_the_other_seeds() {
        let cells = |values: &[(u64, f64)]| {
            let cell = |&(seed, value): &(u64, f64)| ((seed, Factors::new()), value);
            Observations(values.iter().map(cell).collect())
        };
        let low = cells(&[(1, 0.9), (2, 0.1), (3, 0.1)]);
        let high = cells(&[(1, 0.2), (2, 0.5), (3, 0.6)]);
        // Seed 1 would take the first; the others send it to the second, and it sends them to the first.
        let chosen = chosen_by_others(&[low.clone(), high.clone()]).sample().0;
        assert_eq!(chosen, BTreeMap::from([(1, 0.2), (2, 0.1), (3, 0.1)]));
        // A single candidate needs no selection; a single seed has no others to select by.
        assert_eq!(chosen_by_others(std::slice::from_ref(&low)), low);
        assert_eq!(
            chosen_by_others(&[cells(&[(1, 0.9)]), cells(&[(1, 0.2)])]),
            Observations::default()
        );
        // A seed chooses among what it has, by seeds that have the same.
        let more = cells(&[(2, 0.9), (3, 0.0)]);
        let chosen = chosen_by_others(&[low, high, more]).sample().0;
        assert_eq!(chosen[&1], 0.2);
        assert_eq!((chosen[&2], chosen[&3]), (0.5, 0.0));
    }
}
