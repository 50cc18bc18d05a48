//! Records as sections select them: by setting, study, measure and factors.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;

use crate::record::{Factors, Record, TextRecord, invented};
use crate::store::natural;
use terms::{Estimate, Scale, Task};

use super::observations::{Observations, SeedSample};

/// How studies name an encoder with the weights that it was initialised with.
pub(super) const UNTRAINED: &str = "untrained";

/// A scale and a kind of languages; different settings are never averaged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReportSetting {
    pub(super) scale: String,
    pub(super) invented: bool,
}

impl ReportSetting {
    /// Smaller scales first, unknown ones last.
    fn order(&self) -> (usize, &str, bool) {
        let place = Scale::ALL.iter().position(|scale| scale.name() == self.scale);
        (place.unwrap_or(Scale::ALL.len()), &self.scale, !self.invented)
    }

    /// The setting of a record, where it names a language.
    pub(super) fn of(record: &Record) -> Option<Self> {
        let scale = record.origin.scale.clone();
        Some(Self { scale, invented: invented(&record.factors)? })
    }

    /// For file names and identifiers: letters, digits and hyphens.
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

pub(super) struct SettingView<'a> {
    pub(super) setting: ReportSetting,
    records: Vec<&'a Record>,
    texts: Vec<&'a TextRecord>,
}

/// Divides records and texts by setting. Those that name no language belong to all settings of their scale.
pub(super) fn views<'a>(records: &'a [Record], texts: &'a [TextRecord]) -> Vec<SettingView<'a>> {
    let named = records.iter().map(|record| (&record.origin.scale, &record.factors));
    let of_texts = texts.iter().map(|text| (&text.origin.scale, &text.factors));
    let mut settings: BTreeSet<ReportSetting> = named
        .chain(of_texts)
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
        texts: texts
            .iter()
            .filter(|one| within(&setting, &one.origin.scale, &one.factors))
            .collect(),
        setting,
    };
    let mut settings: Vec<ReportSetting> = settings.into_iter().collect();
    settings.sort_by(|a, b| a.order().cmp(&b.order()));
    settings.into_iter().map(view).collect()
}

/// The study that a record belongs to. Shifted transfer is the study of that name, also where `language-shift` measured it along
/// with the shift of a given model.
pub(super) fn study_of(record: &Record) -> &str {
    match record.factors.contains_key("row") {
        true => "shifted-transfer",
        false => &record.origin.study,
    }
}

impl<'a> SettingView<'a> {
    /// The records of these studies; one that several of them have counts once.
    pub(super) fn studies(&self, names: &[&str]) -> StudyData<'a> {
        let mut seen = HashSet::new();
        let records = self.records.iter().copied().filter(|record| {
            names.contains(&study_of(record))
                && seen.insert((&record.measure, &record.factors, record.origin.seed))
        });
        let records = records.collect();
        let texts = self.texts.iter().copied().filter(|text| names.contains(&&*text.origin.study));
        let depth = self.setting.scale.parse::<Scale>().ok().map(Scale::layers);
        StudyData { records, texts: texts.collect(), depth }
    }

    pub(super) fn study(&self, name: &str) -> StudyData<'a> {
        self.studies(&[name])
    }
}

/// The records of some studies in one setting.
#[derive(Clone, Default)]
pub(super) struct StudyData<'a> {
    pub(super) records: Vec<&'a Record>,
    pub(super) texts: Vec<&'a TextRecord>,
    /// The layers of the setting's encoders, where its scale has a fixed number.
    pub(super) depth: Option<usize>,
}

/// Levels of factors to select.
pub(super) type FactorFilter<'a> = [(&'a str, &'a str)];

impl<'a> StudyData<'a> {
    /// Some records, of encoders of any depth.
    pub(super) fn of(records: &'a [Record]) -> Self {
        Self { records: records.iter().collect(), ..Self::default() }
    }

    /// The records and texts whose factors are wanted.
    pub(super) fn filtered(&self, wanted: impl Fn(&Factors) -> bool) -> StudyData<'a> {
        StudyData {
            records: self.records.iter().copied().filter(|one| wanted(&one.factors)).collect(),
            texts: self.texts.iter().copied().filter(|one| wanted(&one.factors)).collect(),
            depth: self.depth,
        }
    }

    pub(super) fn only(&self, factor: &str, level: &str) -> StudyData<'a> {
        self.filtered(|factors| factors.get(factor).is_some_and(|own| own == level))
    }

    /// The records of each encoder by its name, the paper's own condition first and the untrained one last: encoders trained here
    /// are named by their condition, given models by `system`. Different encoders are never averaged.
    pub(super) fn encoders(&self) -> Vec<(String, StudyData<'a>)> {
        let name = |factors: &Factors| -> String {
            let name = factors.get("condition").or_else(|| factors.get("system"));
            name.cloned().unwrap_or_default()
        };
        let factors = self.records.iter().map(|one| &one.factors);
        let factors = factors.chain(self.texts.iter().map(|one| &one.factors));
        let mut names: Vec<String> = factors.map(name).collect();
        names.sort_by_key(|name| (name == UNTRAINED, name != "default", name.clone()));
        names.dedup();
        let own = |wanted: &String| self.filtered(|factors| name(factors) == *wanted);
        names.into_iter().map(|name| (name.clone(), own(&name))).collect()
    }
}

impl<'a> StudyData<'a> {
    /// Without the records of other tasks: for sections about the task of a paper.
    pub(super) fn without_tasks_but(mut self, task: Task) -> StudyData<'a> {
        let other = |factors: &Factors| factors.get("task").is_some_and(|own| own != task.name());
        self.records.retain(|one| !other(&one.factors));
        self
    }
}

impl StudyData<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.texts.is_empty()
    }

    /// The observations of a measure at these levels, by seed and by all other factors.
    pub(super) fn observations(&self, measure: &str, factors: &FactorFilter<'_>) -> Observations {
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

    /// The observations of the untrained encoder, which studies of conditions name as a condition. It has no size of text
    /// and no window, and where these are asked for, its only ones are taken.
    pub(super) fn untrained(&self, measure: &str, factors: &FactorFilter<'_>) -> Observations {
        for name in ["system", "condition"] {
            let found = self.observations(measure, &[&[(name, UNTRAINED)], factors].concat());
            if !found.is_empty() {
                return found;
            }
        }
        let of_text = |(name, _): &&(&str, &str)| !["size", "window", "vocabulary"].contains(name);
        let fewer: Vec<(&str, &str)> = factors.iter().filter(of_text).copied().collect();
        match fewer.len() < factors.len() {
            true => self.untrained(measure, &fewer),
            false => Observations::default(),
        }
    }

    /// Whether any record is of this measure.
    pub(super) fn has(&self, measure: &str) -> bool {
        self.records.iter().any(|record| record.measure == measure)
    }

    /// The mean over seeds of a measure at these levels; of correlations on Fisher's scale.
    pub(super) fn mean(&self, measure: &str, factors: &FactorFilter<'_>) -> Option<Estimate> {
        let sample = self.observations(measure, factors).sample();
        if measure == "correlation" { sample.mean_correlation() } else { sample.mean() }
    }

    /// The levels of a factor among the records of these measures; `first` come first, in their order.
    pub(super) fn levels(&self, measures: &[&str], factor: &str, first: &[&str]) -> Vec<String> {
        let of = self.records.iter().filter(|record| measures.contains(&&*record.measure));
        let found: BTreeSet<&String> = of.filter_map(|record| record.factors.get(factor)).collect();
        let mut levels: Vec<String> = found.into_iter().cloned().collect();
        let place = |level: &str| first.iter().position(|one| *one == level).unwrap_or(first.len());
        levels.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| natural(a, b)));
        levels
    }

    /// The levels of a factor among records at some levels of others.
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

    pub(super) fn layers(&self, measure: &str) -> Vec<String> {
        let mut layers = self.levels(&[measure], "layer", &[]);
        layers.retain(|layer| layer.parse::<u32>().is_ok());
        layers
    }

    pub(super) fn by_layer(&self, measure: &str, factors: &FactorFilter<'_>) -> Vec<Observations> {
        let of =
            |layer: String| self.observations(measure, &[factors, &[("layer", &layer)]].concat());
        self.layers(measure).into_iter().map(of).collect()
    }

    /// The best layer's observations: as recorded, or the maximum over layers. For display only: a maximum is biased
    /// upwards, and verdicts rest on [`chosen_by_others`](super::observations::chosen_by_others).
    pub(super) fn best(&self, measure: &str, factors: &FactorFilter<'_>) -> Observations {
        let recorded = self.observations(measure, &[factors, &[("layer", "best")]].concat());
        if !recorded.0.is_empty() {
            return recorded;
        }
        best_of(self.by_layer(measure, factors))
    }

    /// For each seed the layer of a system's best raw retrieval, of equals the lowest: the one at which pages and tables about
    /// that system give every measure of it, and of what stands beside it.
    pub(super) fn main_layers(&self, system: &FactorFilter<'_>) -> BTreeMap<u64, String> {
        let mut best: BTreeMap<u64, (f64, String)> = BTreeMap::new();
        for layer in self.layers("retrieval") {
            let factors = [system, &[("kind", "raw"), ("layer", &layer)]].concat();
            for (seed, value) in self.observations("retrieval", &factors).sample().0 {
                if best.get(&seed).is_none_or(|(most, _)| value > *most) {
                    best.insert(seed, (value, layer.clone()));
                }
            }
        }
        best.into_iter().map(|(seed, (_, layer))| (seed, layer)).collect()
    }
}

/// Each seed's number at its own layer.
pub(super) fn at_main_layers(
    layers: &BTreeMap<u64, String>,
    at: impl Fn(&str) -> Observations,
) -> SeedSample {
    let of = |(seed, layer): (&u64, &String)| Some((*seed, *at(layer).sample().0.get(seed)?));
    SeedSample(layers.iter().filter_map(of).collect())
}

/// The maximum of several candidates, observation by observation. For display only.
pub(super) fn best_of(candidates: Vec<Observations>) -> Observations {
    let mut best = BTreeMap::new();
    for (key, value) in candidates.into_iter().flat_map(|candidate| candidate.0) {
        let most = best.entry(key).or_insert(value);
        *most = f64::max(*most, value);
    }
    Observations(best)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A record for tests, its factors written `name=value name=value`.
    pub(in super::super) fn record(
        study: &str,
        seed: u64,
        measure: &str,
        factors: &str,
        value: f64,
    ) -> Record {
        Record::written(study, seed, measure, factors, value)
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
