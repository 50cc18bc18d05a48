//! Quantities as files write them: `best(f1[condition=default]) - best(f1[condition=untrained])`.
//!
//! A measure stands with the levels of factors that choose its numbers; `a|b` is the first of two that was recorded. A level with
//! `?` counts where the factor was recorded at all, and `*` is any; `a|b` is the first of two that was recorded, `a,b` either, `>0` and
//! `#` numbers, and `@first` and `@last` are a factor's first and last level (`@first>0` of these numbers), as of distances. The level
//! `untrained` is the untrained encoder, whether it is named as a condition or as a system. Two measures are combined where
//! seed and all other factors are equal, and a verdict is about the mean of each seed.
//!
//! `score` is each task's own measure, and `transfer` that of the tasks of Conneau et al. 2020 above chance. `languages=@nearest` and
//! `languages=@farthest` are distances of invented languages, or pairs of real ones; `pair=@foreign` leaves out a language's own paraphrases, and
//! `condition=@one-domain` has as much text as that of another domain.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Peekable;
use std::str::Chars;

use serde::{Deserialize, Serialize};

use crate::record::invented;
use crate::record::{Factors, Record};
use crate::report::data::{FactorFilter, StudyData, UNTRAINED, best_of};
use crate::report::finding::Evidence;
use crate::report::observations::{Observations, SeedSample, chosen_by_others};
use crate::report::sections::parts::{
    halves, measures, nearest_and_farthest, pairs_of, tasks_of_paper,
};
use terms::Task;

/// A quantity, computed from the numbers of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Value {
    text: String,
    root: Expression,
}

#[derive(Clone, Debug, PartialEq)]
enum Expression {
    Number(f64),
    Select(Selection),
    Call { function: Function, factors: Vec<String>, of: Box<Expression> },
    Combine { by: char, parts: Box<[Expression; 2]> },
}

/// Some numbers of a measure.
#[derive(Clone, Debug, PartialEq)]
struct Selection {
    /// The first that was recorded counts.
    measures: Vec<String>,
    levels: Vec<Level>,
}

/// Levels that hold for every measure of a quantity which does not choose the same factor itself: `task=ner role=target`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Levels(Vec<Level>);

#[derive(Clone, Debug, PartialEq)]
struct Level {
    factor: String,
    level: String,
    /// Only where the factor was recorded.
    if_recorded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Function {
    /// At the level of a factor that is best in the other seeds.
    Best,
    /// At each seed's own best layer: for tables, since a maximum is biased upwards.
    Highest,
    /// The mean of the lower half of the layers.
    Lower,
    /// The mean of the layers from a quarter of the depth to three quarters, which are fixed in advance: the best of several layers would
    /// exceed another by selection alone.
    Middle,
    /// That of the upper half minus that of the lower half.
    Rise,
    /// The mean of each seed, so that two quantities are combined seed by seed.
    Mean,
    /// The slope of a straight line over the levels of a factor.
    Slope,
}

const FUNCTIONS: [(&str, Function); 7] = [
    ("best", Function::Best),
    ("highest", Function::Highest),
    ("lower", Function::Lower),
    ("middle", Function::Middle),
    ("rise", Function::Rise),
    ("mean", Function::Mean),
    ("slope", Function::Slope),
];

impl Value {
    /// What it is in a study's numbers, by seed and by the factors that it does not choose.
    pub(in crate::report) fn observations(&self, data: &StudyData<'_>) -> Observations {
        self.root.observations(data, &[])
    }

    /// The same as evidence for a verdict.
    pub(super) fn evidence(&self, data: &StudyData<'_>) -> Evidence {
        let sample = self.observations(data).sample();
        let leaves = self.root.leaves();
        let measured = || leaves.iter().all(|leaf| !leaf.observations(data, &[]).is_empty());
        if sample.0.values().any(|value| value.is_nan()) {
            return Evidence::Void(match self.measures()[..] {
                ["transfer", ..] => {
                    "the reference itself transfers less than 0.05 above chance in a task"
                }
                _ => "the reference itself is less than 0.05",
            });
        }
        if sample.0.is_empty() && self.root.selects() && measured() {
            return Evidence::OneSeed;
        }
        match leaves.iter().all(|leaf| leaf.measures == ["correlation"]) {
            true => Evidence::Correlations(sample),
            false => Evidence::Seeds(sample),
        }
    }

    pub(super) fn measures(&self) -> Vec<&str> {
        let names = self.root.leaves().into_iter().flat_map(|leaf| &leaf.measures);
        names.map(String::as_str).collect()
    }

    /// The pairs of languages that it is about.
    pub(super) fn pairs(&self, data: &StudyData<'_>) -> Vec<String> {
        let mut pairs = pairs_of(data, &recorded(&self.root));
        let meant = |leaf: &Selection, pair: &String| {
            leaf.levels.iter().all(|one| one.factor != "pair" || one.admits(pair))
        };
        pairs.retain(|pair| self.root.leaves().iter().any(|leaf| meant(leaf, pair)));
        pairs
    }

    /// With its levels as these numbers have them: the first that was recorded, the nearest and the most distant languages.
    pub(super) fn resolved(mut self, data: &StudyData<'_>) -> Self {
        let found = nearest_and_farthest(data, &recorded(&self.root));
        self.root.visit(&mut |leaf: &mut Selection| {
            let compares = leaf.levels.iter().any(|one| one.factor == "languages");
            let ends = found.as_ref().filter(|_| compares);
            leaf.levels.iter_mut().for_each(|one| one.resolve(data, ends));
        });
        self
    }

    /// The nearest and the most distant languages where it compares them, with the factor that they are levels of.
    pub(super) fn ends(&self, data: &StudyData<'_>) -> Option<(&'static str, String, String)> {
        let compares = self.levels().iter().any(|(factor, _)| *factor == "languages");
        compares.then(|| nearest_and_farthest(data, &recorded(&self.root))).flatten()
    }

    /// The quantities that its last sign combines; of one alone it itself, twice.
    pub(in crate::report) fn operands(&self) -> [Self; 2] {
        let of = |root: &Expression| Self { text: self.text.clone(), root: root.clone() };
        match &self.root {
            Expression::Combine { parts, .. } => parts.each_ref().map(of),
            root => [of(root), of(root)],
        }
    }

    pub(super) fn is_recorded(&self, data: &StudyData<'_>) -> bool {
        recorded(&self.root).iter().any(|measure| data.has(measure))
    }

    /// Whether it asks for text of one domain where all that there is has more of it than that of two.
    pub(super) fn is_confounded(&self) -> bool {
        self.levels().contains(&("condition", MORE_TEXT))
    }

    /// The factors that it chooses by, with their levels.
    pub(in crate::report) fn levels(&self) -> Vec<(&str, &str)> {
        let levels = self.root.leaves().into_iter().flat_map(|leaf| &leaf.levels);
        levels.map(|one| (one.factor.as_str(), one.level.as_str())).collect()
    }

    /// What it names and no record has, with what there is instead.
    pub(super) fn unrecorded(&self, records: &[&Record]) -> Option<(String, String)> {
        self.root.leaves().into_iter().find_map(|leaf| leaf.unrecorded(records))
    }

    /// The same of the untrained encoder, in place of the systems and conditions that it names.
    pub(super) fn of_untrained(mut self) -> Self {
        self.root.visit(&mut |leaf: &mut Selection| {
            let named = |one: &&mut Level| ["condition", "system"].contains(&&*one.factor);
            let named = leaf.levels.iter_mut().filter(named);
            named.for_each(|one| UNTRAINED.clone_into(&mut one.level));
        });
        self
    }

    /// With levels of factors that its measures do not choose themselves.
    pub(super) fn among(mut self, Levels(more): &Levels) -> Self {
        self.root.visit(&mut |leaf: &mut Selection| {
            let chosen = |one: &&Level| leaf.levels.iter().any(|own| own.factor == one.factor);
            let added: Vec<Level> = more.iter().filter(|one| !chosen(one)).cloned().collect();
            leaf.levels.extend(added);
        });
        self
    }
}

/// The condition with more text than that of another domain has.
const MORE_TEXT: &str = "@more-text";

impl Level {
    /// Whether it names no single level: several, numbers, or those between languages.
    fn is_open(&self) -> bool {
        self.level.contains([',', '>', '<', '#']) || self.level == "@foreign"
    }

    /// Whether it is among those that an open one leaves.
    fn admits(&self, level: &str) -> bool {
        let bound = |text: &str| text.parse::<f64>().unwrap_or_default();
        let number = level.parse::<f64>().ok();
        let sign = |text: &str| match text.split_at_checked(1) {
            Some((">", least)) => number.is_some_and(|number| number > bound(least)),
            Some(("<", most)) => number.is_some_and(|number| number < bound(most)),
            _ => number.is_some(),
        };
        match &*self.level {
            "@foreign" => !level.ends_with('\''),
            several if several.contains(',') => several.split(',').any(|one| one == level),
            numbers if self.is_open() => {
                sign(numbers.trim_start_matches(|c: char| c == '@' || c.is_alphabetic()))
            }
            _ => true,
        }
    }

    fn resolve(&mut self, data: &StudyData<'_>, found: Option<&(&str, String, String)>) {
        // Where languages are compared, in both.
        let measured = |factor: &str, level: &str| {
            let at = |more: &[(&str, &str)]| {
                !data.levels_among(factor, &[&[(factor, level)], more].concat()).is_empty()
            };
            found.map_or_else(
                || at(&[]),
                |(of, near, far)| at(&[(of, near.as_str())]) && at(&[(of, far.as_str())]),
            )
        };
        match (&*self.factor, &*self.level) {
            ("languages", level) => {
                let Some((factor, near, far)) = found else { return };
                let level = if level == "@nearest" { near } else { far };
                (self.factor, self.level) = ((*factor).to_owned(), level.clone());
            }
            ("condition", "@one-domain" | "@all-text") => {
                // Invented text is of one amount; of real text, the default has all that there is, and a difference from it
                // would be of amount as much as of domain.
                let real =
                    data.records.iter().find_map(|one| invented(&one.factors)) == Some(false);
                let equal = measured("condition", "default-equal");
                let confounded = !equal && real && measured("condition", "default");
                self.level = match (&*self.level, confounded) {
                    ("@one-domain", true) | ("@all-text", false) => MORE_TEXT,
                    _ if equal => "default-equal",
                    _ => "default",
                }
                .to_owned();
            }
            (factor, several) if several.contains('|') => {
                let levels = || several.split('|');
                let first = levels().find(|level| measured(factor, level));
                self.level = first.or(levels().next_back()).unwrap_or_default().to_owned();
            }
            _ => {}
        }
    }
}

/// The measures of an expression, as records name them.
fn recorded(of: &Expression) -> Vec<&str> {
    let named = of.leaves().into_iter().flat_map(|leaf| &leaf.measures);
    let mut all = Vec::new();
    for name in named {
        match name.as_str() {
            "score" | "transfer" => all.extend(measures()),
            name => all.push(name),
        }
    }
    all
}

impl Selection {
    fn unrecorded(&self, records: &[&Record]) -> Option<(String, String)> {
        let listed = |names: BTreeSet<&str>| {
            format!("there are {}", names.into_iter().collect::<Vec<_>>().join(", "))
        };
        let measures: BTreeSet<&str> = records.iter().map(|one| &*one.measure).collect();
        let leaf = Expression::Select(self.clone());
        if !recorded(&leaf).into_iter().any(|measure| measures.contains(measure)) {
            let reason = format!("no result is of the measure `{}`", self.measures.join("|"));
            return Some((reason, listed(measures)));
        }
        let certain = |one: &&Level| {
            !one.if_recorded && !one.is_open() && !["*", UNTRAINED].contains(&&*one.level)
        };
        for Level { factor, level, .. } in self.levels.iter().filter(certain) {
            let levels: BTreeSet<&str> =
                records.iter().filter_map(|one| Some(&**one.factors.get(factor)?)).collect();
            if levels.is_empty() {
                let names = records.iter().flat_map(|one| one.factors.keys()).map(|name| &**name);
                return Some((
                    format!("no result has the factor `{factor}`"),
                    listed(names.collect()),
                ));
            }
            if !level.starts_with('@') && !level.split('|').any(|one| levels.contains(one)) {
                return Some((format!("no result has {factor}={level}"), listed(levels)));
            }
        }
        None
    }

    fn observations(&self, data: &StudyData<'_>, at: &FactorFilter<'_>) -> Observations {
        let tasks: Vec<Task> = match self.measures.first().map(String::as_str) {
            Some("transfer") => tasks_of_paper().collect(),
            Some("score") => Task::all().collect(),
            _ => return self.of_measure(data, at, None),
        };
        let above = self.measures[0] == "transfer";
        let of = |task: Task| {
            let at = [at, &[("task", task.name())]].concat();
            let scores = self.of_measure(data, &at, Some(task.measure()));
            let chance = if above { task.chance() } else { 0.0 };
            scores.tagged("task", task.name()).map(|_, score| score - chance)
        };
        let chosen = |task: &Task| {
            let mut levels = self.levels.iter().filter(|one| one.factor == "task");
            levels.all(|one| one.is_open() || one.level == task.name())
                && at.iter().all(|(factor, level)| *factor != "task" || *level == task.name())
        };
        tasks.into_iter().filter(chosen).map(of).fold(Observations::default(), Observations::join)
    }

    fn of_measure(
        &self,
        data: &StudyData<'_>,
        at: &FactorFilter<'_>,
        measure: Option<&str>,
    ) -> Observations {
        let recorded = self.measures.iter().find(|measure| data.has(measure));
        let measure =
            measure.unwrap_or(recorded.or(self.measures.last()).map_or("", String::as_str));
        // What is asked for here stands in place of the quantity's own.
        let levels =
            self.levels.iter().filter(|one| at.iter().all(|(name, _)| *name != one.factor));
        let (open, levels): (Vec<&Level>, Vec<&Level>) = levels.partition(|one| {
            one.is_open() && !one.level.starts_with(['@']) || one.level == "@foreign"
        });
        let admitted = |factors: &Factors| {
            open.iter().all(|one| factors.get(&one.factor).is_some_and(|own| one.admits(own)))
        };
        let filtered = (!open.is_empty()).then(|| data.filtered(admitted));
        let data = filtered.as_ref().unwrap_or(data);
        let certain = |one: &Level| !one.if_recorded && !["*", UNTRAINED].contains(&&*one.level);
        let certain: Vec<&Level> = levels.iter().copied().filter(|one| certain(one)).collect();
        let own = data.filtered(|factors| {
            certain.iter().all(|one| {
                one.level.starts_with('@') || factors.get(&one.factor) == Some(&one.level)
            })
        });
        let levels: Vec<(&Level, Vec<String>)> = levels
            .into_iter()
            .filter(|one| one.level != "*")
            .map(|one| (one, own.levels(&[measure], &one.factor, &[])))
            .filter(|(one, found)| !one.if_recorded || !found.is_empty())
            .collect();
        let named = levels.iter().map(|(one, found)| {
            let mut found = found.iter().filter(|level| one.admits(level));
            let level = match one.level.get(..5) {
                Some("@firs") => found.next(),
                Some("@last") => found.next_back(),
                _ => None,
            };
            (one.factor.as_str(), level.unwrap_or(&one.level).as_str())
        });
        let named: Vec<(&str, &str)> = named.chain(at.iter().copied()).collect();
        let others: Vec<(&str, &str)> =
            named.iter().copied().filter(|(_, level)| *level != UNTRAINED).collect();
        // What repeats the size of the text, or that of none, tells nothing apart.
        match others.len() < named.len() {
            true => ["sentences", "size", "window"]
                .into_iter()
                .fold(data.untrained(measure, &others), Observations::dropped),
            false if named.iter().any(|(factor, _)| *factor == "size") => {
                data.observations(measure, &named).dropped("sentences")
            }
            false => data.observations(measure, &named),
        }
    }
}

impl Levels {
    /// Each factor with its level.
    pub(super) fn named(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|one| (&*one.factor, &*one.level)).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Levels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(levels: I) -> Self {
        let level = |(factor, level): (&str, &str)| Level {
            factor: factor.to_owned(),
            level: level.to_owned(),
            if_recorded: false,
        };
        Self(levels.into_iter().map(level).collect())
    }
}

impl Expression {
    fn leaves(&self) -> Vec<&Selection> {
        match self {
            Self::Number(_) => vec![],
            Self::Select(leaf) => vec![leaf],
            Self::Call { of, .. } => of.leaves(),
            Self::Combine { parts, .. } => parts.iter().flat_map(Self::leaves).collect(),
        }
    }

    fn visit(&mut self, change: &mut impl FnMut(&mut Selection)) {
        match self {
            Self::Number(_) => {}
            Self::Select(leaf) => change(leaf),
            Self::Call { of, .. } => of.visit(change),
            Self::Combine { parts, .. } => parts.iter_mut().for_each(|one| one.visit(change)),
        }
    }

    /// Whether the other seeds select something.
    fn selects(&self) -> bool {
        match self {
            Self::Number(_) | Self::Select(_) => false,
            Self::Call { function, of, .. } => *function == Function::Best || of.selects(),
            Self::Combine { parts, .. } => parts.iter().any(Self::selects),
        }
    }

    fn observations(&self, data: &StudyData<'_>, at: &FactorFilter<'_>) -> Observations {
        match self {
            Self::Number(_) => Observations::default(),
            Self::Select(leaf) => leaf.observations(data, at),
            Self::Call { function, factors, of } => called(*function, factors, of, data, at),
            Self::Combine { by, parts } => match (&parts[0], &parts[1]) {
                (Self::Number(a), b) => b.observations(data, at).map(|_, b| combined(*by, *a, b)),
                (a, Self::Number(b)) => a.observations(data, at).map(|_, a| combined(*by, a, *b)),
                (a, b) => {
                    let [a, b] = [a, b].map(|one| one.observations(data, at));
                    match *by {
                        // NaN where there is too little to have a share of.
                        '/' => of_seeds(
                            a.share_of(&b).unwrap_or_else(|| a.with(&b, |_, _| f64::NAN).sample()),
                        ),
                        _ => a.with(&b, |a, b| combined(*by, a, b)),
                    }
                }
            },
        }
    }
}

fn combined(by: char, a: f64, b: f64) -> f64 {
    match by {
        '+' => a + b,
        '-' => a - b,
        '*' => a * b,
        _ => a / b,
    }
}

fn of_seeds(sample: SeedSample) -> Observations {
    let of = |(seed, value)| ((seed, Factors::new()), value);
    Observations(sample.0.into_iter().map(of).collect())
}

/// The levels of a factor that an expression can be taken at.
fn levels_of(
    of: &Expression,
    factor: &str,
    function: Function,
    data: &StudyData<'_>,
) -> Vec<String> {
    let recorded = recorded(of).into_iter().filter(|measure| data.has(measure));
    let mut levels = data.levels(&recorded.collect::<Vec<_>>(), factor, &[]);
    if function != Function::Best || factor == "layer" {
        levels.retain(|level| level.parse::<f64>().is_ok());
    }
    let leaves = of.leaves();
    let open = leaves.iter().flat_map(|leaf| &leaf.levels).find(|one| one.factor == factor);
    if let Some(open) = open.filter(|one| one.is_open()) {
        levels.retain(|level| open.admits(level));
        levels.sort_by_key(|level| open.level.split(',').position(|one| one == level));
    }
    levels
}

/// At every combination of levels, of which that of the last factor varies fastest.
fn candidates(
    factors: &[String],
    of: &Expression,
    data: &StudyData<'_>,
    at: &FactorFilter<'_>,
) -> Vec<Observations> {
    let Some((factor, rest)) = factors.split_first() else {
        return vec![of.observations(data, at)];
    };
    let at = |level: &String| candidates(rest, of, data, &[at, &[(factor, level)]].concat());
    levels_of(of, factor, Function::Best, data).iter().flat_map(at).collect()
}

fn called(
    function: Function,
    factors: &[String],
    of: &Expression,
    data: &StudyData<'_>,
    at: &FactorFilter<'_>,
) -> Observations {
    let factor = &*factors[0];
    let mut levels = levels_of(of, factor, function, data);
    let at_level = |level: &str| of.observations(data, &[at, &[(factor, level)]].concat());
    match function {
        Function::Best => chosen_by_others(&candidates(factors, of, data, at)),
        Function::Highest => match at_level("best") {
            recorded if recorded.is_empty() => {
                best_of(levels.iter().map(|one| at_level(one)).collect())
            }
            recorded => recorded,
        },
        Function::Lower => of_seeds(halves(&levels, at_level)[0].clone()),
        Function::Middle => {
            let number = |level: &String| level.parse::<f64>().unwrap_or_default();
            let last = levels.iter().map(number).fold(0.0, f64::max);
            levels.retain(|one| {
                number(one) > 0.0 && (last..=3.0 * last).contains(&(4.0 * number(one)))
            });
            let tagged = levels.iter().map(|one| at_level(one).tagged(factor, one));
            of_seeds(tagged.fold(Observations::default(), Observations::join).sample())
        }
        Function::Rise => {
            let [lower, upper] = halves(&levels, at_level);
            of_seeds(upper.minus(&lower))
        }
        Function::Mean => of_seeds(of.observations(data, at).sample()),
        Function::Slope => {
            let points = |level: &String| {
                let x: f64 = level.parse().unwrap_or_default();
                let sample = at_level(level).sample();
                sample.0.into_iter().map(move |(seed, y)| (seed, [x, y])).collect::<Vec<_>>()
            };
            let mut seeds: BTreeMap<u64, Vec<[f64; 2]>> = BTreeMap::new();
            for (seed, point) in levels.iter().flat_map(points) {
                seeds.entry(seed).or_default().push(point);
            }
            // A seed that lacks a level has a line over others.
            seeds.retain(|_, points| points.len() == levels.len() && points.len() > 1);
            of_seeds(SeedSample(seeds.into_iter().map(|(seed, of)| (seed, slope(&of))).collect()))
        }
    }
}

/// The slope of the line of least squares.
fn slope(points: &[[f64; 2]]) -> f64 {
    let mean = |axis: usize| points.iter().map(|one| one[axis]).sum::<f64>() / points.len() as f64;
    let [x, y] = [mean(0), mean(1)];
    let sum = |of: &dyn Fn(&[f64; 2]) -> f64| points.iter().map(of).sum::<f64>();
    sum(&|one| (one[0] - x) * (one[1] - y)) / sum(&|one| (one[0] - x).powi(2))
}

impl From<Value> for String {
    fn from(value: Value) -> Self {
        value.text
    }
}

impl TryFrom<String> for Value {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut reader = Reader { letters: text.chars().peekable() };
        let root = reader.sum().and_then(|root| match reader.next() {
            None => Ok(root),
            Some(letter) => Err(format!("`{letter}` is one too many")),
        });
        let root = root.and_then(|root| match root.leaves().is_empty() {
            true => Err("no measure is named".to_owned()),
            false => Ok(root),
        });
        let root = root.map_err(|reason| {
            format!(
                "`{text}` is no quantity: {reason}; write one as best(f1[condition=default]) - 0.5"
            )
        })?;
        Ok(Self { text, root })
    }
}

impl From<Levels> for String {
    fn from(Levels(levels): Levels) -> Self {
        let shown = |one: &Level| {
            format!("{}={}{}", one.factor, one.level, if one.if_recorded { "?" } else { "" })
        };
        levels.iter().map(shown).collect::<Vec<_>>().join(" ")
    }
}

impl TryFrom<String> for Levels {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let bracketed = format!("[{text}]");
        let mut reader = Reader { letters: bracketed.chars().peekable() };
        let levels = reader.levels().map_err(|reason| {
            format!("`{text}` names no levels: {reason}; write factors as task=ner role=target")
        })?;
        Ok(Self(levels))
    }
}

/// Reads a quantity from the left.
struct Reader<'a> {
    letters: Peekable<Chars<'a>>,
}

impl Reader<'_> {
    /// The next letter that is no space.
    fn peek(&mut self) -> Option<char> {
        while self.letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        self.letters.peek().copied()
    }

    fn next(&mut self) -> Option<char> {
        self.peek()?;
        self.letters.next()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        match self.next() {
            Some(letter) if letter == wanted => Ok(()),
            Some(letter) => Err(format!("`{letter}` stands where `{wanted}` is expected")),
            None => Err(format!("`{wanted}` is missing at the end")),
        }
    }

    /// Letters up to one that ends a word.
    fn word(&mut self, ends: &str) -> Result<String, String> {
        self.peek();
        let mut word = String::new();
        while let Some(letter) =
            self.letters.next_if(|one| !one.is_whitespace() && !ends.contains(*one))
        {
            word.push(letter);
        }
        match word.is_empty() {
            true => Err("a name is missing".to_owned()),
            false => Ok(word),
        }
    }

    fn sum(&mut self) -> Result<Expression, String> {
        self.chain("+-", Self::product)
    }

    fn product(&mut self) -> Result<Expression, String> {
        self.chain("*/", Self::operand)
    }

    fn chain(
        &mut self,
        signs: &str,
        part: fn(&mut Self) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut whole = part(self)?;
        while let Some(by) = self.peek().filter(|sign| signs.contains(*sign)) {
            self.next();
            whole = Expression::Combine { by, parts: Box::new([whole, part(self)?]) };
        }
        Ok(whole)
    }

    fn operand(&mut self) -> Result<Expression, String> {
        if self.peek() == Some('(') {
            return self.parenthesis();
        }
        let name = self.word("()[]+-*/,=")?;
        if let Ok(number) = name.parse() {
            return Ok(Expression::Number(number));
        }
        if self.peek() == Some('(') {
            return self.call(&name);
        }
        let measures = name.split('|').map(str::to_owned).collect();
        Ok(Expression::Select(Selection { measures, levels: self.levels()? }))
    }

    fn parenthesis(&mut self) -> Result<Expression, String> {
        self.expect('(')?;
        let inner = self.sum()?;
        self.expect(')').map(|()| inner)
    }

    /// The arguments of a function: a quantity, and before it a factor where it is not that of layers.
    fn call(&mut self, name: &str) -> Result<Expression, String> {
        let function = FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, one)| *one);
        let function = function.ok_or_else(|| {
            let known = FUNCTIONS.map(|(name, _)| name).join(", ");
            format!("there is no function `{name}`; there are {known}")
        })?;
        let mut ahead = Reader { letters: self.letters.clone() };
        ahead.expect('(')?;
        let mut factors = Vec::new();
        while let Ok(factor) = ahead.word("()[]+-*/,=") {
            factors.push(factor);
        }
        let factors = match ahead.next() == Some(',') && !factors.is_empty() {
            true => {
                self.letters = ahead.letters;
                factors
            }
            false if function == Function::Slope => {
                return Err("slope needs a factor, as slope(distance, f1)".to_owned());
            }
            false => {
                self.expect('(')?;
                vec!["layer".to_owned()]
            }
        };
        let of = Box::new(self.sum()?);
        self.expect(')').map(|()| Expression::Call { function, factors, of })
    }

    /// `[factor=level factor=level]`; none where there is no bracket.
    fn levels(&mut self) -> Result<Vec<Level>, String> {
        let mut levels = Vec::new();
        if self.peek() != Some('[') {
            return Ok(levels);
        }
        self.next();
        while self.peek() != Some(']') {
            let factor = self.word("=[]()")?;
            self.expect('=')?;
            let level = self.word("=[]()")?;
            let (level, if_recorded) = match level.strip_suffix('?') {
                Some(level) => (level.to_owned(), true),
                None => (level, false),
            };
            levels.push(Level { factor, level, if_recorded });
        }
        self.expect(']').map(|()| levels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::tests::record;
    use crate::report::data::views;

    fn value(text: &str) -> Value {
        Value::try_from(text.to_owned()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Three seeds of two systems and an untrained one, at layers and distances.
    fn means(text: &str) -> Vec<f64> {
        let mut records = Vec::new();
        for seed in [1, 2, 3] {
            for (system, score) in
                [("condition=a", 0.5), ("condition=b", 0.25), ("system=untrained", 0.0)]
            {
                for distance in [0, 1, 2] {
                    for layer in [0, 1, 2] {
                        // Layer 1 is best, but in seed 3.
                        let best = if seed == 3 { 2 } else { 1 };
                        let layered = if layer == best { 0.125 } else { 0.0 };
                        let factors =
                            format!("{system} distance=0.{distance} layer={layer} pair=qaa-qab");
                        let score = score + layered + 0.0625 * f64::from(distance);
                        records.push(record("mine", seed, "f1", &factors, score));
                    }
                }
            }
        }
        let views = views(&records, &[]);
        let found = value(text).observations(&views[0].study("mine")).sample();
        found.values().into_iter().map(|value| (1e6 * value).round() / 1e6).collect()
    }

    #[test]
    fn quantities_are_what_they_say() {
        assert_eq!(means("f1[condition=a] - f1[condition=b]"), [0.25; 3]);
        assert_eq!(means("2 * (f1[condition=a layer=0 distance=@first] - 0.5)"), [0.0; 3]);
        assert_eq!(means("f1[condition=a layer=0 distance=@last]"), [0.625; 3]);
        assert_eq!(means("f1[condition=a layer=0 distance=0.0 window=full?]"), [0.5; 3]);
        assert_eq!(means("f2|f1[condition=untrained layer=0 distance=0.0]"), [0.0; 3]);
        assert_eq!(means("f1[condition=b layer=0] / f1[condition=a layer=0]"), [0.555556; 3]);
        // The others of seeds 1 and 2 agree on no layer, and the first of equals is taken.
        assert_eq!(means("best(f1[condition=a distance=0.0])"), [0.625, 0.625, 0.5]);
        assert_eq!(means("highest(f1[condition=a distance=0.0])"), [0.625; 3]);
        assert_eq!(means("rise(f1[condition=a distance=0.0])"), [-0.125, -0.125, 0.125]);
        assert_eq!(means("slope(distance, f1[condition=a layer=0])"), [0.625; 3]);
        assert!(means("f1[condition=a window=full]").is_empty());
        let shares = means("f1[condition=a layer=0] / (0.1 * f1[condition=b layer=0])");
        assert!(shares.len() == 3 && shares.iter().all(|share| share.is_nan()), "{shares:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, reason) in [
            ("", "a name is missing"),
            ("0.5 - 1", "no measure is named"),
            ("f1[condition]", "`]` stands where `=` is expected"),
            ("best(f1", "`)` is missing at the end"),
            ("f1) - f1", "`)` is one too many"),
            ("top(f1)", "there is no function `top`"),
            ("slope(f1)", "slope needs a factor"),
        ] {
            let error = Value::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
