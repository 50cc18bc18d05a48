//! Claims as data: a finding, the quantity that tests it, the criterion and what it must be better than. Sections of the report that
//! are files (`claims/*.toml`) and studies of one's own have them.

mod section;
mod value;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::value::{Levels, Value};

pub(super) use self::section::{own_section, section};
use super::data::{SettingView, StudyData, UNTRAINED};
use super::finding::{ClaimLine, Control, Criterion, PaperClaim};
use super::sections::names::pair_name;
use super::sections::parts::{LESS, MORE, measured_tasks, pairs_of};
use crate::record::Record;

/// A finding that is tested in the numbers of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `finding` and `value`, headed [[claims]]")]
pub struct Claim {
    /// The finding, as a sentence without a full stop.
    pub finding: String,
    /// Where it is stated; empty where nowhere.
    #[serde(default)]
    pub place: String,
    /// What is stated there, in words or numbers.
    #[serde(default)]
    pub paper: String,
    /// The quantity in words; that of the value where there are none.
    #[serde(default)]
    pub quantity: String,
    /// The quantity.
    pub value: Value,
    /// What it is about, and its controls: levels of factors.
    #[serde(default, rename = "where")]
    pub among: Levels,
    /// On which side of which bound the finding puts it; above 0 where nothing is said.
    #[serde(default)]
    pub criterion: Bound,
    /// A line, which is tested by itself, for each of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Each>,
    /// Whether the same quantity of the untrained encoder, in place of the one system that it names, is a control.
    #[serde(default)]
    pub untrained: bool,
    /// What else learned nothing, and must do worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ClaimControl>,
}

/// What a claim has lines for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "pair, task or distance")]
pub enum Each {
    /// Pairs of languages, where there are several.
    Pair,
    /// Tasks with scores.
    Task,
    /// Distances of invented languages, where there are several.
    Distance,
}

/// A system that learned nothing, or chance, in the quantity of a claim or in what that rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `name` and `value`")]
pub struct ClaimControl {
    /// What it is, such as `untrained`.
    pub name: String,
    /// Its quantity.
    pub value: Value,
    /// What must be greater than it; the claim's own quantity, on the side of its criterion, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained: Option<Value>,
    /// Whether there may be no numbers of it.
    #[serde(default)]
    pub if_measured: bool,
    /// Whether the finding can fail without it.
    #[serde(default)]
    pub to_hold: bool,
}

/// A side of a bound, or two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Bound(Criterion);

impl Default for Bound {
    fn default() -> Self {
        Self(Criterion::Above(0.0))
    }
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |word: &str| f64::from_str(word).ok().filter(|bound| bound.is_finite());
        let read = match words[..] {
            [">", bound] => number(bound).map(Criterion::Above),
            ["<", bound] => number(bound).map(Criterion::Below),
            ["between", low, "and", high] => number(low)
                .zip(number(high))
                .filter(|(low, high)| low < high)
                .map(|(low, high)| Criterion::Within(low, high)),
            _ => None,
        };
        read.map(Self).ok_or_else(|| {
            format!("`{text}` is no criterion; write `> 0`, `< 0.05` or `between 0.9 and 1.1`")
        })
    }
}

impl From<Bound> for String {
    fn from(Bound(criterion): Bound) -> Self {
        super::finding::printed(criterion).replace('\u{2212}', "-")
    }
}

impl Claim {
    /// With levels of factors that it does not choose itself.
    fn among(mut self, levels: &Levels) -> Self {
        self.value = self.value.among(levels);
        for control in &mut self.controls {
            control.value = control.value.clone().among(levels);
            control.trained = control.trained.take().map(|trained| trained.among(levels));
        }
        self
    }

    /// What it names and no record has, with what there is instead.
    pub(crate) fn unrecorded(&self, records: &[&Record]) -> Option<(String, String)> {
        let claim = self.clone().among(&self.among);
        let controls = claim.controls.iter().filter(|control| !control.if_measured);
        let controls = controls.flat_map(|one| one.trained.iter().chain([&one.value]));
        controls.chain([&claim.value]).find_map(|value| value.unrecorded(records))
    }

    /// The claim as a section has it, about the data that `study` takes from a setting. A process has few of them and keeps them.
    fn in_section(self, studies: &'static [&'static str]) -> PaperClaim {
        let levels = self.among.clone();
        let mut claim = self.among(&levels);
        if claim.untrained {
            let value = claim.value.clone().of_untrained();
            let name = UNTRAINED.to_owned();
            let control =
                ClaimControl { name, value, trained: None, if_measured: false, to_hold: false };
            claim.controls.insert(0, control);
        }
        let claim: &'static Self = Box::leak(Box::new(claim));
        let quantity = match &*claim.quantity {
            "" => &*format!("value of {}", String::from(claim.value.clone())).leak(),
            quantity => quantity,
        };
        PaperClaim {
            finding: &claim.finding,
            place: &claim.place,
            paper: Box::leak(Box::new(move || claim.paper.clone())),
            quantity,
            criterion: claim.criterion.0,
            measure: Box::leak(Box::new(move |view: &SettingView<'_>| {
                claim.lines(&view.studies(studies), &claim.each)
            })),
        }
    }

    /// A line for each of several things, the last of which is named first.
    fn lines(&'static self, data: &StudyData<'_>, each: &[Each]) -> Vec<ClaimLine> {
        let Some((each, rest)) = each.split_first() else { return vec![self.line(data)] };
        let measures = self.value.measures();
        let within = |data: &StudyData<'_>, name: String| {
            let named = |line: ClaimLine| {
                let parts = [line.of.as_str(), name.as_str()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                ClaimLine { of: parts.join(", "), ..line }
            };
            self.lines(data, rest).into_iter().map(named).collect::<Vec<_>>()
        };
        let levels =
            |factor: &str, levels: Vec<String>, name: &dyn Fn(&str) -> String| match &levels[..] {
                [] => self.lines(data, rest),
                [_] if *each == Each::Pair => self.lines(data, rest),
                levels => {
                    let of = |level: &String| within(&data.only(factor, level), name(level));
                    levels.iter().flat_map(of).collect()
                }
            };
        match each {
            Each::Pair => levels("pair", pairs_of(data, &measures), &pair_name),
            Each::Distance => {
                let found = data.levels(&measures, "distance", &[]);
                levels("distance", found, &|level| format!("distance {level}"))
            }
            Each::Task => {
                let of = |task: terms::Task| {
                    within(&data.only("task", task.name()), task.title().to_owned())
                };
                measured_tasks(data).into_iter().flat_map(of).collect()
            }
        }
    }

    fn line(&'static self, data: &StudyData<'_>) -> ClaimLine {
        let own = self.value.observations(data);
        let better = if matches!(self.criterion.0, Criterion::Below(_)) { LESS } else { MORE };
        let control = |one: &'static ClaimControl| {
            let other = one.value.observations(data);
            let control = match &one.trained {
                Some(trained) => Control::of(&one.name, &trained.observations(data), &other),
                None => Control::of_samples(&one.name, &own.sample(), other.sample(), better),
            };
            if one.if_measured { control.if_measured() } else { control }
        };
        let fails =
            own.sample().mean().and_then(|mean| mean.interval()).is_some_and(|(low, high)| {
                match self.criterion.0 {
                    Criterion::Below(bound) => low > bound,
                    Criterion::Above(bound) => high < bound,
                    Criterion::Within(..) | Criterion::Ranks => false,
                }
            });
        let line = ClaimLine::new("", self.value.evidence(data));
        let controls = self.controls.iter().filter(|one| !(fails && one.to_hold));
        controls.map(control).fold(line, ClaimLine::against)
    }
}
