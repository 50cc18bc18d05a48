//! Claims as data: a finding, the quantity that tests it, the criterion and what it must be better than. Sections of the report that
//! are files (`claims/*.toml`) and studies of one's own have them.

mod section;
mod shown;
mod value;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use self::value::{Levels, Value};

pub(super) use self::section::{SectionCode, own_section, section};
use super::data::{SettingView, StudyData, UNTRAINED};
use super::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim, signed};
use super::sections::names::pair_name;
use super::sections::parts::{
    LESS, MORE, added, between_distances, measured_tasks, tasks_of_paper, trained_and_untrained,
};
use crate::papers::{self, PAPERS, PublishedValue};
use crate::record::{Factors, Record};
use terms::{Preset, Task};

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
    /// Other studies than those of its section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub studies: Vec<String>,
    /// What its lines are about, with `{nearest and farthest}` languages, the `{condition}` that was recorded, or how many layers are
    /// `{separate sep-l1-3}`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The paper's numbers, which `paper` quotes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Published>,
    /// Lines of other quantities than its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<ClaimVariant>,
}

/// Numbers of a paper beside a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The table or figure.
    pub place: String,
    /// The digits of the paper's number of each line; none where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<usize>,
    /// The quantity in these numbers, where it is another than that of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A line of a claim with a quantity, levels or controls of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimVariant {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, rename = "where")]
    pub among: Levels,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ClaimControl>,
    /// Whether there may be no numbers of it.
    #[serde(default)]
    pub if_measured: bool,
}

/// What a claim has lines for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "pair, task, paper-task, distance or encoder")]
pub enum Each {
    /// Pairs of languages, where there are several.
    Pair,
    /// Tasks that were measured.
    Task,
    /// The tasks of Conneau et al. 2020.
    PaperTask,
    /// Distances of invented languages, where there are several.
    Distance,
    /// The paper's own condition, and models that were given, each beside the untrained encoder.
    Encoder,
    /// The pair with a language that was added to an encoder.
    AddedPair,
    /// The pairs without it.
    OldPair,
}

/// A system that learned nothing, or chance, in the quantity of a claim or in what that rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table of `name` and `value`")]
pub struct ClaimControl {
    /// What it is, such as `untrained`.
    pub name: String,
    /// Where nothing is said, what must be greater than it, of the untrained encoder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// What must be greater than it; the claim's own quantity, on the side of its criterion, where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trained: Option<Value>,
    /// Whether there may be no numbers of it.
    #[serde(default)]
    pub if_measured: bool,
    /// Whether the finding can fail without it.
    #[serde(default)]
    pub to_hold: bool,
    /// Whether chance stands in its place where there are no numbers of it.
    #[serde(default)]
    pub or_chance: bool,
    /// Whether it is shown by how much less it is.
    #[serde(default)]
    pub by_advantage: bool,
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
            [">", "0", "(permutation", "test)"] => Some(Criterion::Ranks),
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

/// What is computed of a claim where no quantity says it: tests by permutation.
pub(super) type Rule = fn(&Value, &StudyData<'_>) -> Evidence;

/// The numbers that a claim's lines are computed from.
#[derive(Clone)]
struct ClaimData<'a> {
    own: StudyData<'a>,
    /// Those of the untrained encoder, where they stand apart.
    untrained: Option<StudyData<'a>>,
    /// Those of the paper.
    published: StudyData<'a>,
    rule: Option<Rule>,
}

impl ClaimData<'_> {
    fn only(&self, factor: &str, level: &str) -> Self {
        let untrained = self.untrained.as_ref().map(|data| data.only(factor, level));
        let [own, published] = [&self.own, &self.published].map(|data| data.only(factor, level));
        Self { own, untrained, published, rule: self.rule }
    }

    /// Of one task, beside what is of none.
    fn of_task(&self, task: Task) -> Self {
        let untrained = self.untrained.clone().map(|data| data.without_tasks_but(task));
        let [own, published] =
            [&self.own, &self.published].map(|data| data.clone().without_tasks_but(task));
        Self { own, untrained, published, rule: self.rule }
    }
}

impl ClaimControl {
    fn untrained() -> Self {
        Self {
            name: UNTRAINED.to_owned(),
            value: None,
            trained: None,
            if_measured: false,
            to_hold: false,
            or_chance: false,
            by_advantage: false,
        }
    }

    fn among(&mut self, levels: &Levels) {
        for value in [&mut self.value, &mut self.trained] {
            *value = value.take().map(|value| value.among(levels));
        }
    }

    /// What it is in the numbers of a claim whose quantity is `own`.
    fn measured(&'static self, own: &Value, data: &ClaimData<'_>, better: Better) -> Control {
        let trained = self.trained.as_ref().map(|one| one.clone().resolved(&data.own));
        let other = match &self.value {
            Some(value) => value.clone().resolved(&data.own).observations(&data.own),
            None => {
                let of = trained.as_ref().unwrap_or(own).clone().of_untrained();
                of.observations(data.untrained.as_ref().unwrap_or(&data.own))
            }
        };
        let trained = trained.map(|trained| trained.observations(&data.own));
        let control = match trained {
            Some(trained) if self.or_chance && other.is_empty() => {
                let chance = |factors: &Factors| {
                    factors.get("task").and_then(|task| task.parse().ok()).map_or(0.0, Task::chance)
                };
                Control::of("chance", &trained, &trained.map(|factors, _| chance(factors)))
            }
            Some(trained) => Control::of(&self.name, &trained, &other),
            None => {
                let own = own.observations(&data.own).sample();
                Control::of_samples(&self.name, &own, other.sample(), better)
            }
        };
        let control = if self.by_advantage { control.by_advantage() } else { control };
        if self.if_measured { control.if_measured() } else { control }
    }
}

/// By how much one score is better than another.
type Better = fn(f64, f64) -> f64;

impl Claim {
    /// With levels of factors that it does not choose itself.
    fn among(mut self, levels: &Levels) -> Self {
        self.value = self.value.among(levels);
        self.controls.iter_mut().for_each(|control| control.among(levels));
        for line in &mut self.lines {
            line.value = line.value.take().map(|value| value.among(&line.among).among(levels));
            line.controls.iter_mut().for_each(|control| control.among(levels));
        }
        self
    }

    /// What it names and no record has, with what there is instead.
    pub(crate) fn unrecorded(&self, records: &[&Record]) -> Option<(String, String)> {
        let claim = self.clone().among(&self.among);
        let controls = claim.controls.iter().filter(|control| !control.if_measured);
        let controls = controls.flat_map(|one| one.trained.iter().chain(&one.value));
        controls.chain([&claim.value]).find_map(|value| value.unrecorded(records))
    }

    /// The claim as a section has it, about the data that `study` takes from a setting. A process has few of them and keeps them.
    fn in_section(
        self,
        studies: &'static [&'static str],
        among: &Levels,
        rule: Option<Rule>,
    ) -> PaperClaim {
        let own = self.among.clone();
        let mut claim = self.among(&own).among(among);
        if claim.untrained {
            claim.controls.insert(0, ClaimControl::untrained());
        }
        let studies = match &*claim.studies {
            [] => studies,
            own => own.iter().map(|study| &*study.clone().leak()).collect::<Vec<_>>().leak(),
        };
        let claim: &'static Self = Box::leak(Box::new(claim));
        let lines: &'static [(&str, bool, Self)] = Vec::leak(claim.each_line());
        let quantity = match &*claim.quantity {
            "" => &*format!("value of {}", String::from(claim.value.clone())).leak(),
            quantity => quantity,
        };
        let published: &'static [Record] = Vec::leak(claim.numbers_of_paper());
        PaperClaim {
            finding: &claim.finding,
            place: &claim.place,
            paper: Box::leak(Box::new(move || section::quoted(&claim.paper, published))),
            quantity,
            criterion: claim.criterion.0,
            measure: Box::leak(Box::new(move |view: &SettingView<'_>| {
                let (own, published) = (view.studies(studies), StudyData::of(published));
                let data = ClaimData { own, untrained: None, published, rule };
                let measured = lines
                    .iter()
                    .filter(|(_, always, one)| *always || one.value.is_recorded(&data.own));
                let of = |(name, _, one): &'static (&str, bool, Self)| {
                    named(one.lines(&data, &claim.each), name)
                };
                measured.flat_map(of).collect()
            })),
        }
    }

    /// The claims of its lines, each with its name and whether it has a line wherever there are no numbers of it; itself where it has none.
    fn each_line(&self) -> Vec<(&str, bool, Self)> {
        let of = |line: &'_ ClaimVariant| {
            let mut claim = self.clone();
            claim.value = line.value.clone().unwrap_or(claim.value).among(&line.among);
            claim.controls.extend(line.controls.iter().cloned());
            claim.controls.iter_mut().for_each(|control| control.among(&line.among));
            claim
        };
        match &self.lines[..] {
            [] => vec![("", true, self.clone())],
            // Levels of a line go before those of its claim.
            lines => lines.iter().map(|one| (&*one.name, !one.if_measured, of(one))).collect(),
        }
    }

    /// The numbers of the place that it quotes.
    fn numbers_of_paper(&self) -> Vec<Record> {
        let Some(Published { place, .. }) = &self.published else { return vec![] };
        let paper = PAPERS.iter().position(|paper| self.place.starts_with(paper.citation));
        let paper = paper.expect("a claim with numbers is of a paper") as u8 + 1;
        papers::at(paper, place).map(PublishedValue::record).collect()
    }

    /// A line for each of several things, the last of which is named first.
    fn lines(&'static self, data: &ClaimData<'_>, each: &[Each]) -> Vec<ClaimLine> {
        let Some((each, rest)) = each.split_first() else { return vec![self.line(data)] };
        let at = |factor: &str, level: &str, name: &str| {
            named(self.lines(&data.only(factor, level), rest), name)
        };
        let tasks = |tasks: Vec<Task>| {
            let of = |task: Task| named(self.lines(&data.of_task(task), rest), task.title());
            tasks.into_iter().flat_map(of).collect()
        };
        match each {
            Each::Pair => match &self.value.pairs(&data.own)[..] {
                [] => self.lines(data, rest),
                [pair] => {
                    let published = data.published.only("pair", pair);
                    self.lines(&ClaimData { published, ..data.clone() }, rest)
                }
                pairs => pairs.iter().flat_map(|one| at("pair", one, &pair_name(one))).collect(),
            },
            Each::Distance => match &data.own.levels(&self.value.measures(), "distance", &[])[..] {
                [] => self.lines(data, rest),
                levels => {
                    let of = |level: &String| at("distance", level, &format!("distance {level}"));
                    levels.iter().flat_map(of).collect()
                }
            },
            Each::Task => tasks(measured_tasks(&data.own)),
            Each::PaperTask => tasks(tasks_of_paper().collect()),
            Each::Encoder => {
                let (trained, untrained) = trained_and_untrained(&data.own);
                let several = trained.len() > 1;
                let of = |(name, own): (String, StudyData<'_>)| {
                    let untrained = Some(untrained.clone());
                    let published = data.published.clone();
                    let lines =
                        self.lines(&ClaimData { own, untrained, published, rule: data.rule }, rest);
                    // An encoder is named before what it is measured in.
                    let before =
                        |line: ClaimLine| ClaimLine { of: joined(&[&name, &line.of]), ..line };
                    if several { lines.into_iter().map(before).collect() } else { lines }
                };
                trained.into_iter().flat_map(of).collect()
            }
            Each::AddedPair | Each::OldPair => {
                let added = added(&data.own);
                let several = added.len() > 1;
                let of = |(own, pairs): &(StudyData<'_>, Vec<String>)| {
                    let (new, old) = pairs.split_last().expect("the new language's pair is there");
                    let data = ClaimData { own: own.clone(), ..data.clone() };
                    let at = |pair: &String, name: &str| {
                        named(self.lines(&data.only("pair", pair), rest), name)
                    };
                    match each {
                        Each::OldPair => {
                            old.iter().flat_map(|one| at(one, &pair_name(one))).collect()
                        }
                        _ if several => at(new, &pair_name(new)),
                        _ => at(new, ""),
                    }
                };
                added.iter().flat_map(of).collect()
            }
        }
    }

    fn line(&'static self, data: &ClaimData<'_>) -> ClaimLine {
        let value = self.value.clone().resolved(&data.own);
        if value.is_confounded() {
            let reason = "Default has more text here than Wiki-CC: `default-equal` was not run";
            return ClaimLine::new("", Evidence::Void(reason));
        }
        let own = value.observations(&data.own);
        let better = if matches!(self.criterion.0, Criterion::Below(_)) { LESS } else { MORE };
        let fails =
            own.sample().mean().and_then(|mean| mean.interval()).is_some_and(|(low, high)| {
                match self.criterion.0 {
                    Criterion::Below(bound) => low > bound,
                    Criterion::Above(bound) => high < bound,
                    Criterion::Within(..) | Criterion::Ranks => false,
                }
            });
        let ends = self.value.ends(&data.own);
        let evidence = match data.rule {
            Some(rule) => rule(&value, &data.own),
            None => value.evidence(&data.own),
        };
        let evidence = match (evidence, &ends) {
            (Evidence::Seeds(sample), Some((_, near, _))) => between_distances(near, sample),
            (evidence, _) => evidence,
        };
        let line = ClaimLine::new(self.about(&value, data, ends), evidence);
        let controls = self.controls.iter().filter(|one| !(fails && one.to_hold));
        let line =
            controls.map(|one| one.measured(&value, data, better)).fold(line, ClaimLine::against);
        line.paper(self.number_of_paper(data))
    }

    /// What a line is about, beside what it is one of several of.
    fn about(
        &self,
        value: &Value,
        ClaimData { own, .. }: &ClaimData<'_>,
        ends: Option<(&str, String, String)>,
    ) -> String {
        let mut about = self.about.clone();
        if about.contains("nearest") {
            let Some((factor, near, far)) = ends else { return String::new() };
            let [near, far] = [near, far].map(|level| pair_name(&level));
            let start = if factor == "distance" { "distances " } else { "" };
            about = about.replace("{nearest and farthest}", &format!("{start}{near} and {far}"));
            about = about.replace("{farthest and nearest}", &format!("{start}{far} and {near}"));
        }
        if about.contains("{condition}") {
            let mut chosen = self.value.levels().into_iter().zip(value.levels());
            let chosen = chosen.find(|((_, asked), _)| asked.contains('|'));
            let name = chosen.map_or(String::new(), |(_, (_, level))| own.name(level));
            about = about.replace("{condition}", &name);
        }
        let preset = about.strip_prefix("{separate ").and_then(|rest| rest.strip_suffix('}'));
        if let Some(preset) = preset.and_then(|name| name.parse::<Preset>().ok()) {
            let layers = own.depth.and_then(|depth| Some((preset.separate_layers(depth)?, depth)));
            about = layers.map_or(String::new(), |(separate, depth)| {
                format!("{separate} of {depth} layers separate")
            });
        }
        about
    }

    fn number_of_paper(&self, data: &ClaimData<'_>) -> Option<String> {
        let Published { digits, value, .. } = self.published.as_ref()?;
        let value = value.as_ref().unwrap_or(&self.value).clone().resolved(&data.own);
        let mean = value.observations(&data.published).sample().mean()?;
        digits.map(|digits| signed(mean.mean, digits))
    }
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

/// Lines with a name after their own.
fn named(lines: Vec<ClaimLine>, name: &str) -> Vec<ClaimLine> {
    let named = |line: ClaimLine| ClaimLine { of: joined(&[&line.of, name]), ..line };
    lines.into_iter().map(named).collect()
}
