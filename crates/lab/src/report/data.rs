//! Records as a section asks for them: a setting, a study, cells that are compared like with like.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::record::{Factors, Record, TextRecord};
use crate::store::natural;
use terms::Estimate;

/// Numbers of different settings are never averaged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReportSetting {
    pub(super) scale: String,
    pub(super) invented: bool,
}

impl ReportSetting {
    /// The smaller scales first, those that are not ours last.
    fn order(&self) -> (usize, &str, bool) {
        let known = ["tiny", "small", "paper"];
        let place = known.iter().position(|scale| *scale == self.scale);
        (place.unwrap_or(known.len()), &self.scale, !self.invented)
    }

    /// For names of files and of parts of a page: letters, digits and hyphens.
    pub(super) fn slug(&self) -> String {
        let scale: String =
            self.scale.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        format!("{scale}-{}", if self.invented { "invented" } else { "real" })
    }
}

impl fmt::Display for ReportSetting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}, {} languages", self.scale, if self.invented { "invented" } else { "real" })
    }
}

/// Everything of one setting.
pub(super) struct SettingView<'a> {
    pub(super) setting: ReportSetting,
    records: Vec<&'a Record>,
    notes: Vec<&'a TextRecord>,
}

/// Sorts records and notes by setting. What names no language goes with everything of its scale.
pub(super) fn views<'a>(records: &'a [Record], notes: &'a [TextRecord]) -> Vec<SettingView<'a>> {
    let named = records.iter().map(|record| (&record.origin.scale, &record.factors));
    let noted = notes.iter().map(|note| (&note.origin.scale, &note.factors));
    let mut settings: BTreeSet<ReportSetting> = named
        .chain(noted)
        .filter_map(|(scale, factors)| {
            Some(ReportSetting { scale: scale.clone(), invented: invented(factors)? })
        })
        .collect();
    for record in records {
        let scale = &record.origin.scale;
        if !settings.iter().any(|setting| setting.scale == *scale) {
            settings.insert(ReportSetting { scale: scale.clone(), invented: true });
        }
    }
    let within = |setting: &ReportSetting, scale: &str, factors: &Factors| {
        setting.scale == scale && invented(factors).is_none_or(|kind| kind == setting.invented)
    };
    let view = |setting: ReportSetting| SettingView {
        records: records
            .iter()
            .filter(|one| within(&setting, &one.origin.scale, &one.factors))
            .collect(),
        notes: notes
            .iter()
            .filter(|one| within(&setting, &one.origin.scale, &one.factors))
            .collect(),
        setting,
    };
    let mut settings: Vec<ReportSetting> = settings.into_iter().collect();
    settings.sort_by(|a, b| a.order().cmp(&b.order()));
    settings.into_iter().map(view).collect()
}

/// Whether the languages that factors name are invented: ISO keeps `qaa` to `qtz` for private use.
fn invented(factors: &Factors) -> Option<bool> {
    let names = ["pair", "language", "direction"];
    let mut codes =
        names.iter().filter_map(|name| factors.get(*name)).flat_map(|text| text.split('-'));
    let first = codes.next()?.as_bytes();
    Some(matches!(first, [b'q', b'a'..=b't', b'a'..=b'z']))
}

impl<'a> SettingView<'a> {
    /// What these studies have; a number that several of them record counts once.
    pub(super) fn studies(&self, names: &[&str]) -> StudyData<'a> {
        let mut seen = BTreeSet::new();
        let records = self.records.iter().copied().filter(|record| {
            names.contains(&&*record.origin.study)
                && seen.insert((&record.measure, &record.factors, record.origin.seed))
        });
        let records = records.collect();
        let notes = self.notes.iter().copied().filter(|note| names.contains(&&*note.origin.study));
        StudyData { records, notes: notes.collect() }
    }

    /// What one study has.
    pub(super) fn study(&self, name: &str) -> StudyData<'a> {
        self.studies(&[name])
    }
}

/// What some studies have in one setting.
#[derive(Clone)]
pub(super) struct StudyData<'a> {
    pub(super) records: Vec<&'a Record>,
    pub(super) notes: Vec<&'a TextRecord>,
}

/// A choice of factors.
pub(super) type FactorFilter<'a> = [(&'a str, &'a str)];

impl<'a> StudyData<'a> {
    /// What has this level of a factor.
    pub(super) fn only(&self, factor: &str, level: &str) -> StudyData<'a> {
        let has = |factors: &Factors| factors.get(factor).is_some_and(|own| own == level);
        StudyData {
            records: self.records.iter().copied().filter(|one| has(&one.factors)).collect(),
            notes: self.notes.iter().copied().filter(|one| has(&one.factors)).collect(),
        }
    }
}

impl StudyData<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.notes.is_empty()
    }

    /// The numbers of a measure with these factors, by seed and by all other factors.
    pub(super) fn cells(&self, measure: &str, factors: &FactorFilter<'_>) -> Observations {
        let chosen = self.records.iter().filter(|record| {
            record.measure == measure
                && factors
                    .iter()
                    .all(|(name, value)| record.factors.get(*name).is_some_and(|own| own == value))
        });
        let rest = |record: &Record| {
            let mut rest = record.factors.clone();
            rest.retain(|name, _| !factors.iter().any(|(chosen, _)| chosen == name));
            rest
        };
        Observations(
            chosen.map(|record| ((record.origin.seed, rest(record)), record.value)).collect(),
        )
    }

    /// The mean over seeds of the numbers of a measure with these factors.
    pub(super) fn mean(&self, measure: &str, factors: &FactorFilter<'_>) -> Option<Estimate> {
        self.cells(measure, factors).sample().mean()
    }

    /// The values that a factor takes among the numbers of these measures; `first` come first, in
    /// their order.
    pub(super) fn levels(&self, measures: &[&str], factor: &str, first: &[&str]) -> Vec<String> {
        let of = self.records.iter().filter(|record| measures.contains(&&*record.measure));
        let found: BTreeSet<&String> = of.filter_map(|record| record.factors.get(factor)).collect();
        let mut levels: Vec<String> = found.into_iter().cloned().collect();
        let place = |level: &str| first.iter().position(|one| *one == level).unwrap_or(first.len());
        levels.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| natural(a, b)));
        levels
    }

    /// The levels of a factor among numbers of some factors.
    pub(super) fn levels_among(&self, factor: &str, among: &FactorFilter<'_>) -> Vec<String> {
        let meant = |record: &&&Record| {
            among
                .iter()
                .all(|(name, level)| record.factors.get(*name).is_some_and(|is| is == level))
        };
        let found: BTreeSet<&String> = self
            .records
            .iter()
            .filter(meant)
            .filter_map(|record| record.factors.get(factor))
            .collect();
        found.into_iter().cloned().collect()
    }

    /// The numbered layers of a measure.
    pub(super) fn layers(&self, measure: &str) -> Vec<String> {
        let mut layers = self.levels(&[measure], "layer", &[]);
        layers.retain(|layer| layer.parse::<u32>().is_ok());
        layers
    }

    /// The numbers of each layer, to choose among.
    pub(super) fn by_layer(&self, measure: &str, factors: &FactorFilter<'_>) -> Vec<Observations> {
        let of = |layer: String| self.cells(measure, &[factors, &[("layer", &layer)]].concat());
        self.layers(measure).into_iter().map(of).collect()
    }

    /// The best layer's numbers: as recorded, or the highest of all layers. For showing only: being
    /// the highest, they flatter, and a finding is judged by [`chosen_by_others`].
    pub(super) fn best(&self, measure: &str, factors: &FactorFilter<'_>) -> Observations {
        let recorded = self.cells(measure, &[factors, &[("layer", "best")]].concat());
        if !recorded.0.is_empty() {
            return recorded;
        }
        let mut best = BTreeMap::new();
        for layer in self.by_layer(measure, factors) {
            for (key, value) in layer.0 {
                let most = best.entry(key).or_insert(value);
                *most = f64::max(*most, value);
            }
        }
        Observations(best)
    }
}

/// Numbers by seed and by what they depend on besides.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Observations(BTreeMap<(u64, Factors), f64>);

impl Observations {
    /// Combines like with like; what has no partner is left out.
    pub(super) fn with(&self, other: &Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        let both = |(key, a): (&(u64, Factors), &f64)| {
            Some((key.clone(), combine(*a, *other.0.get(key)?)))
        };
        Self(self.0.iter().filter_map(both).collect())
    }

    pub(super) fn minus(&self, other: &Self) -> Self {
        self.with(other, |a, b| a - b)
    }

    pub(super) fn map(&self, change: impl Fn(&Factors, f64) -> f64) -> Self {
        Self(self.0.iter().map(|(key, value)| (key.clone(), change(&key.1, *value))).collect())
    }

    /// With a factor put back, so that cells of different choices can stand together.
    pub(super) fn tagged(self, factor: &str, value: &str) -> Self {
        let tag = |((seed, mut factors), number): ((u64, Factors), f64)| {
            factors.insert(factor.to_owned(), value.to_owned());
            ((seed, factors), number)
        };
        Self(self.0.into_iter().map(tag).collect())
    }

    /// Without a factor that only repeats what another says.
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

    /// Those that do not depend on a factor.
    pub(super) fn without(mut self, factor: &str) -> Self {
        self.0.retain(|(_, factors), _| !factors.contains_key(factor));
        self
    }

    pub(super) fn join(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// One number for each seed. A seed that lacks what others have is left out, since its mean would
    /// be of something else.
    pub(super) fn sample(&self) -> SeedSample {
        let all: BTreeSet<&Factors> = self.0.keys().map(|(_, factors)| factors).collect();
        let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for ((seed, _), value) in &self.0 {
            seeds.entry(*seed).or_default().push(*value);
        }
        // A seed has a cell of each kind once: as many as there are kinds are all of them.
        seeds.retain(|_, values| values.len() == all.len());
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        SeedSample(seeds.into_iter().map(|(seed, values)| (seed, mean(values))).collect())
    }
}

/// Of several choices (layers, weights, systems) the one that the *other* seeds find best, seed by seed
/// and cell by cell. The highest of several numbers is high by chance already; a choice that was made
/// without the number it is judged by is not. One seed alone has nobody to choose for it.
pub(super) fn chosen_by_others(choices: &[Observations]) -> Observations {
    let keys: BTreeSet<&(u64, Factors)> = choices.iter().flat_map(|cells| cells.0.keys()).collect();
    let seeds: BTreeSet<u64> = keys.iter().map(|(seed, _)| *seed).collect();
    let choose = |key: &(u64, Factors)| {
        let (own, factors) = key;
        let open: Vec<&Observations> =
            choices.iter().filter(|cells| cells.0.contains_key(key)).collect();
        let at = |cells: &Observations, seed: u64| cells.0.get(&(seed, factors.clone())).copied();
        // Like with like: by the seeds that have all of these choices.
        let has_all = |seed: &u64| open.iter().all(|cells| at(cells, *seed).is_some());
        let others: Vec<u64> =
            seeds.iter().copied().filter(|seed| seed != own).filter(has_all).collect();
        let sum =
            |cells: &Observations| others.iter().filter_map(|seed| at(cells, *seed)).sum::<f64>();
        // Of equals the first.
        let best = open.into_iter().rev().max_by(|a, b| sum(a).total_cmp(&sum(b)))?;
        (!others.is_empty()).then(|| at(best, *own)).flatten()
    };
    let chosen = |key: &(u64, Factors)| Some((key.clone(), choose(key)?));
    Observations(keys.into_iter().filter_map(chosen).collect())
}

/// One number for each seed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SeedSample(pub(super) BTreeMap<u64, f64>);

impl SeedSample {
    pub(super) fn mean(&self) -> Option<Estimate> {
        Estimate::of(&self.0.values().copied().collect::<Vec<_>>())
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
pub(super) mod tests {
    use super::*;
    use crate::record::Origin;

    /// A record for tests, its factors written `name=value name=value`.
    pub(in super::super) fn record(
        study: &str,
        seed: u64,
        measure: &str,
        factors: &str,
        value: f64,
    ) -> Record {
        let origin = Origin {
            study: study.into(),
            scale: "tiny".into(),
            seed,
            step: format!("{study}-{seed}"),
            command: "isogloss pretrain".into(),
            build: "0.1.0".into(),
            finished_at: 1_794_000_000,
        };
        let pair =
            |text: &str| text.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        let factors = factors.split(' ').filter(|part| !part.is_empty()).map(pair).collect();
        Record {
            origin,
            measure: measure.into(),
            factors,
            value,
            signature: String::new(),
            files: vec![],
        }
    }

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
        let (a, b) =
            (data.cells("f1", &[("condition", "a")]), data.cells("f1", &[("condition", "b")]));
        let difference = a.minus(&b).sample();
        let near = |value: f64, other: f64| (value - other).abs() < 1e-12;
        assert!(near(difference.0[&1], 0.3) && near(difference.0[&2], 0.2), "{difference:?}");
        // Seed 2 lacks a pair that seed 1 has.
        assert_eq!(a.sample().0.keys().collect::<Vec<_>>(), [&1]);
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
            let data = StudyData { records: records.to_vec(), notes: vec![] };
            data.cells("f1", &[]).sample().0.into_keys().collect::<Vec<_>>()
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
        // What is no choice stays as it is, but one seed has nobody to choose for it.
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

    #[test]
    fn settings_are_kept_apart() {
        let mut records = vec![
            record("similarity", 1, "cka", "pair=en-fr layer=0", 0.9),
            record("similarity", 1, "cka", "pair=qaa-qab layer=0", 0.5),
            record("similarity", 1, "correlation", "system=bilingual", 0.7),
        ];
        records[1].origin.scale = "small".into();
        let shown: Vec<(String, usize)> = views(&records, &[])
            .iter()
            .map(|view| (view.setting.to_string(), view.study("similarity").records.len()))
            .collect();
        assert_eq!(
            shown,
            [("tiny, real languages".to_owned(), 2), ("small, invented languages".to_owned(), 1)]
        );
    }

    #[test]
    fn the_best_layer_is_the_recorded_one_or_the_highest() {
        let mut records = vec![
            record("anchors", 1, "retrieval", "kind=raw layer=0", 0.1),
            record("anchors", 1, "retrieval", "kind=raw layer=10", 0.4),
            record("anchors", 1, "retrieval", "kind=raw layer=2", 0.3),
        ];
        let best = |records: &[Record]| {
            views(records, &[])[0].study("anchors").best("retrieval", &[("kind", "raw")]).sample().0
                [&1]
        };
        assert_eq!(best(&records), 0.4);
        let data = &views(&records, &[])[0].study("anchors");
        assert_eq!(data.layers("retrieval"), ["0", "2", "10"]);
        records.push(record("anchors", 1, "retrieval", "kind=raw layer=best", 0.35));
        assert_eq!(best(&records), 0.35);
    }
}
