//! The definition of a study: what it asks, of which languages, under which conditions.
//!
//! It is a TOML file; `keys.toml` documents every key, and `isogloss study keys` prints it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use terms::{Scale, Task};

use super::error::{Error, Result};
use super::recipes::EVALUATIONS;
use crate::record::{Factors, Record};
use crate::report::Claim;

/// Where every key is explained.
const REMEDY: &str = "`isogloss study keys` explains every key";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "the keys of a study")]
pub struct Study {
    #[serde(skip)]
    pub name: String,
    pub question: String,
    #[serde(default)]
    pub place: String,
    /// Everything is run once for each of these.
    #[serde(default = "one_seed")]
    pub seeds: Vec<u64>,
    pub evaluate: Vec<StudyEvaluation>,
    /// The tasks of `align-contexts`, `shifted-transfer` and `reinit-transfer`; all that these have if none is named.
    #[serde(default)]
    pub tasks: Vec<Task>,
    /// Presets of pretraining, each a system whose factor `condition` is its name.
    #[serde(default)]
    pub conditions: Vec<String>,
    #[serde(default)]
    pub systems: Vec<System>,
    /// The invented languages; one world of two languages if none is named.
    #[serde(default)]
    pub worlds: Vec<InventedLanguages>,
    /// Real languages in place of invented ones.
    #[serde(default)]
    pub real: Option<RealLanguages>,
    /// How the altered copies of real languages differ from them; one in a shifted script if none is named.
    #[serde(default)]
    pub alterations: Vec<LanguageAlteration>,
    #[serde(default)]
    pub scales: BTreeMap<Scale, ScaleSettings>,
    /// Findings of one's own, which `isogloss report FILE.toml` tests.
    #[serde(default)]
    pub claims: Vec<Claim>,
}

fn one_seed() -> Vec<u64> {
    vec![1]
}

/// What is measured, on every system that it can be measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum StudyEvaluation {
    /// Zero-shot transfer of a task, which names it.
    Transfer(Task),
    /// Another evaluation, by its number in the list of them.
    Other(usize),
}

impl StudyEvaluation {
    pub(super) fn name(self) -> &'static str {
        match self {
            StudyEvaluation::Transfer(task) => task.name(),
            StudyEvaluation::Other(number) => EVALUATIONS[number].name,
        }
    }

    /// Whether it trains a task, so that its results depend on the seed even of a model that is given.
    pub(super) fn is_finetuned(self) -> bool {
        match self {
            StudyEvaluation::Transfer(_) => true,
            StudyEvaluation::Other(number) => EVALUATIONS[number].is_finetuned,
        }
    }
}

impl TryFrom<String> for StudyEvaluation {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        let other = EVALUATIONS.iter().position(|known| known.name == name);
        let task = || name.parse().map(StudyEvaluation::Transfer);
        other.map(StudyEvaluation::Other).map_or_else(task, Ok).map_err(|_: String| {
            let others = EVALUATIONS.iter().map(|other| other.name);
            let known: Vec<_> = Task::all().map(Task::name).chain(others).collect();
            format!("there is no evaluation `{name}`; there are: {}", known.join(", "))
        })
    }
}

impl From<StudyEvaluation> for String {
    fn from(evaluation: StudyEvaluation) -> Self {
        evaluation.name().to_owned()
    }
}

/// A system under comparison: encoders or static vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table of `factors`, `model`, `preset`, `flags`, `folders`, `paraphrases`, `equal_text`"
)]
pub struct System {
    pub factors: Factors,
    #[serde(default)]
    pub model: SystemKind,
    /// The preset of the encoder, or of the encoder whose sentences are used.
    #[serde(default = "no_anchors")]
    pub preset: String,
    #[serde(default)]
    pub flags: Vec<String>,
    /// The folders of a given model, runs or Hugging Face folders: one, or one for each seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
    /// Compares the source language with itself, on paraphrases (en-en′), in place of the pairs.
    #[serde(default)]
    pub paraphrases: bool,
    /// Real target languages get only as much text as their text of another domain has.
    #[serde(default)]
    pub equal_text: bool,
}

impl System {
    /// A system of these factors whose encoder a preset pretrains.
    pub fn of_preset(factors: Factors, preset: &str) -> Self {
        Self {
            factors,
            model: SystemKind::Encoder,
            preset: preset.to_owned(),
            flags: Vec::new(),
            folders: Vec::new(),
            paraphrases: false,
            equal_text: false,
        }
    }

    /// A model that is given: its records have the factor `system`.
    pub fn given(name: &str, folders: Vec<PathBuf>) -> Self {
        let factors = Factors::from([("system".to_owned(), name.to_owned())]);
        Self { model: SystemKind::Given, folders, ..Self::of_preset(factors, "") }
    }
}

fn no_anchors() -> String {
    "no-anchors".to_owned()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", expecting = "the name of a kind of system")]
pub enum SystemKind {
    #[default]
    Encoder,
    Monolingual,
    /// A trained encoder of the first language beside an untrained one for the others.
    Untrained,
    /// An encoder of all languages but the last, which is then given the last one by training on its text.
    Extended,
    /// The same, trained on the text of all languages when it is given the last.
    Rehearsed,
    /// A model that exists already: a run's folder or a Hugging Face folder.
    Given,
    Word2vec,
    Glove,
    /// Skip-gram with character n-grams on each language's text.
    Fasttext,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of `factors`, `flags`, `languages`")]
pub struct InventedLanguages {
    pub factors: Factors,
    pub flags: Vec<String>,
    pub languages: Option<usize>,
}

/// How an altered copy of a real language differs from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table of `factors`, `flags`, `text`")]
pub struct LanguageAlteration {
    pub factors: Factors,
    pub flags: Vec<String>,
    /// The only text of the language that is read, by the middle of its name; all of it if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table of `data` and `pairs`, `languages` or `altered`, headed [real]"
)]
pub struct RealLanguages {
    /// The folder of the data, laid out as `isogloss data get` does.
    pub data: PathBuf,
    /// Pairs such as `en-fr`, the source first; each has systems of its own.
    #[serde(default)]
    pub pairs: Vec<String>,
    /// Languages of one multilingual system, the source first.
    #[serde(default)]
    pub languages: Vec<String>,
    /// Languages each of which is beside altered copies of itself, with systems of their own.
    #[serde(default)]
    pub altered: Vec<String>,
}

impl RealLanguages {
    /// Each choice of languages that has systems of its own, the source first.
    pub fn choices(&self) -> impl Iterator<Item = Vec<&str>> {
        let joint = (!self.languages.is_empty())
            .then(|| self.languages.iter().map(String::as_str).collect());
        self.pairs.iter().map(|pair| pair.split('-').collect()).chain(joint)
    }

    fn check(&self, refuse: &dyn Fn(&str, &str, &str) -> Result<()>) -> Result<()> {
        if self.pairs.is_empty() && self.languages.is_empty() && self.altered.is_empty() {
            let remedy = "name `pairs`, as [\"en-fr\"], the `languages` of one multilingual encoder, as \
                          [\"en\", \"fr\", \"de\"], or an `altered` one, as [\"en\"]";
            return refuse("real.pairs", "no language is named", remedy);
        }
        for pair in &self.pairs {
            match pair.split('-').collect::<Vec<_>>()[..] {
                [a, b] if !a.is_empty() && !b.is_empty() && a != b => {}
                [_, _, _, ..] => {
                    let reason = format!("`{pair}` names more than two languages");
                    let remedy = format!(
                        "write two language codes, as en-fr; for one encoder of all of them name the \
                         languages {}",
                        pair.replace('-', ",")
                    );
                    return refuse("real.pairs", &reason, &remedy);
                }
                _ => {
                    let reason = format!("`{pair}` is no pair of languages");
                    return refuse("real.pairs", &reason, "write two language codes, as en-fr");
                }
            }
        }
        let mut seen = std::collections::BTreeSet::new();
        let twice = self.languages.iter().find(|language| !seen.insert(*language));
        if let Some(language) = twice.or(self.languages.iter().find(|code| code.is_empty())) {
            let reason = format!("`{language}` is there twice, or empty");
            return refuse("real.languages", &reason, "name each language once, the source first");
        }
        if self.languages.len() == 1 {
            let remedy = "name at least two, the source first";
            return refuse("real.languages", "there is one language only", remedy);
        }
        Ok(())
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a table of `seeds`, `pretrain`, `transfer`, `layers`, `limit`"
)]
pub struct ScaleSettings {
    pub seeds: Option<Vec<u64>>,
    pub pretrain: Vec<String>,
    pub transfer: Vec<String>,
    /// The layers that costly evaluations look at, of an encoder of the scale's depth; all if none is named.
    pub layers: Vec<usize>,
    /// The most sentences that any evaluation reads of a language.
    pub limit: Option<u64>,
}

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("studies/", $name, ".toml")))),*]
    };
}

/// The built-in studies, in the order of the papers. To add one, put its file beside the others and its name here;
/// a finding to be judged is a section of the report.
const BUILT_IN: &[(&str, &str)] = built_in![
    "demo",
    "table-1",
    "domain",
    "anchors",
    "sharing",
    "distance",
    "align-words",
    "align-many",
    "align-contexts",
    "align-sentences",
    "similarity",
    "predictors",
    "data-size",
    "window",
    "language-shift",
    "shifted-transfer",
    "reinit",
    "language-identity",
    "bitext",
    "new-language",
    "elements",
];

impl Study {
    /// A study's file with every key explained.
    pub const KEYS: &str = include_str!("keys.toml");

    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    pub fn source(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
    }

    /// A study by its name, or from a file that ends in `.toml`.
    pub fn find(name: &str) -> Result<Self> {
        if name.ends_with(".toml") {
            let path = Path::new(name);
            let text = files::limits::read_text(path).map_err(|error| {
                Error::data(name, format!("cannot read it ({error})"), "name a study's file")
            })?;
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            return Self::parse(&stem, name, &text);
        }
        let known = || Self::names().collect::<Vec<_>>().join(", ");
        let text = Self::source(name);
        let text = text.ok_or_else(|| Error::Unknown { name: name.to_owned(), known: known() })?;
        Self::parse(name, name, text)
    }

    fn parse(name: &str, place: &str, text: &str) -> Result<Self> {
        let parsed: std::result::Result<Self, _> = toml::from_str(text);
        let study = parsed.map_err(|error| located(place, text, &error))?;
        let study = Self { name: name.to_owned(), ..study };
        study.check(place)?;
        Ok(study)
    }

    /// Refuses a study that makes no sense; `place` is its file, or its name.
    pub fn check(&self, place: &str) -> Result<()> {
        let refuse = |key: &str, reason: &str, remedy: &str| {
            Err(Error::definition(place, key, reason, remedy))
        };
        // Names, factors, flags and paths become lines of scripts.
        let (question, place_of) = (String::new(), String::new());
        let written = Study { question, place: place_of, ..self.clone() };
        match serde_json::to_value((&self.name, written)).map(|all| control_character(&all, "name"))
        {
            Ok(None) => {}
            Ok(Some((key, text))) => {
                let reason = format!("{text:?} has a control character");
                return refuse(&key, &reason, "write it on one line, without tabs");
            }
            Err(error) => return refuse("?", &error.to_string(), "name files in UTF-8"),
        }
        if self.seeds.is_empty() || self.scales.values().any(|s| s.seeds.as_deref() == Some(&[])) {
            return refuse("seeds", "the list is empty", "name at least one seed, as [1, 2, 3]");
        }
        if self.evaluate.is_empty() {
            return refuse("evaluate", "the list is empty", "name what to measure, as [\"ner\"]");
        }
        if self.conditions.is_empty() && self.systems.is_empty() {
            return refuse(
                "conditions",
                "there is nothing to compare",
                "name `conditions` or add a table [[systems]]",
            );
        }
        if self.real.is_some() && !self.worlds.is_empty() {
            return refuse("real", "there are [[worlds]] as well", "keep one of the two");
        }
        for system in &self.systems {
            let given = system.model == SystemKind::Given;
            if given == system.folders.is_empty() {
                let remedy =
                    "name the folders of the model with model = \"given\", and with no other";
                return refuse(
                    "systems.folders",
                    "a model's folder and its kind do not agree",
                    remedy,
                );
            }
        }
        self.real.as_ref().map_or(Ok(()), |real| real.check(&refuse))
    }

    /// Refuses claims that no number among `records` bears on; `place` is the study's file.
    pub fn check_claims(&self, place: &str, records: &[Record]) -> Result<()> {
        let own: Vec<&Record> =
            records.iter().filter(|record| record.origin.study == self.name).collect();
        if self.claims.is_empty() || own.is_empty() {
            let (reason, remedy) = match self.claims.is_empty() {
                true => ("there are no claims to test".to_owned(), REMEDY.to_owned()),
                false => (
                    format!("the laboratory has no results of a study called `{}`", self.name),
                    format!("run it by `isogloss study run {place}`, or name its --lab"),
                ),
            };
            return Err(Error::definition(place, "claims", reason, remedy));
        }
        match self.claims.iter().find_map(|claim| claim.unrecorded(&own)) {
            Some((reason, remedy)) => Err(Error::definition(place, "claims", reason, remedy)),
            None => Ok(()),
        }
    }

    /// Everything that is compared: conditions first, then the other systems.
    pub fn compared(&self) -> Vec<System> {
        let system = |condition: &String| {
            let factors = Factors::from([("condition".to_owned(), condition.clone())]);
            System::of_preset(factors, condition)
        };
        self.conditions.iter().map(system).chain(self.systems.iter().cloned()).collect()
    }

    /// Whether some of its systems are given the last language after the others.
    pub(super) fn adds_language(&self) -> bool {
        let adds =
            |system: &System| matches!(system.model, SystemKind::Extended | SystemKind::Rehearsed);
        self.systems.iter().any(adds)
    }

    /// Each language that is beside an altered copy of itself, with the alteration.
    pub fn altered(&self) -> impl Iterator<Item = (&str, LanguageAlteration)> {
        let languages = self.real.iter().flat_map(|real| &real.altered);
        let alterations = match self.alterations.as_slice() {
            [] => vec![LanguageAlteration::default()],
            named => named.to_vec(),
        };
        languages.flat_map(move |language| {
            alterations.clone().into_iter().map(move |alteration| (language.as_str(), alteration))
        })
    }

    /// Puts models that are given, by name and folder, in the place of all systems; folders of one name are its seeds.
    pub fn give(&mut self, models: &[(String, PathBuf)]) {
        self.conditions.clear();
        self.systems.clear();
        for (name, folder) in models {
            let named = |system: &&mut System| system.factors["system"] == *name;
            match self.systems.iter_mut().find(named) {
                Some(system) => system.folders.push(folder.clone()),
                None => self.systems.push(System::given(name, vec![folder.clone()])),
            }
        }
    }

    /// Measures transfer of these tasks in place of the study's own.
    pub fn choose_tasks(&mut self, tasks: &[Task]) {
        let plain = |one: &StudyEvaluation| matches!(one, StudyEvaluation::Transfer(_));
        let of_tasks = |one: &StudyEvaluation| !plain(one) && one.is_finetuned();
        // A study whose evaluations have tasks of their own needs no plain transfer beside.
        if self.evaluate.iter().any(plain) || !self.evaluate.iter().any(of_tasks) {
            self.evaluate.retain(|one| !plain(one));
            self.evaluate.extend(tasks.iter().copied().map(StudyEvaluation::Transfer));
        }
        self.tasks = tasks.to_vec();
    }

    pub fn at(&self, scale: Scale) -> ScaleSettings {
        self.scales.get(&scale).cloned().unwrap_or_default()
    }
}

/// The first text with a control character, and its key.
fn control_character(value: &Value, key: &str) -> Option<(String, String)> {
    let of = |text: &str, key: &str| {
        text.contains(char::is_control).then(|| (key.to_owned(), text.to_owned()))
    };
    match value {
        Value::String(text) => of(text, key),
        Value::Array(values) => values.iter().find_map(|value| control_character(value, key)),
        Value::Object(values) => values
            .iter()
            .find_map(|(name, value)| of(name, key).or_else(|| control_character(value, name))),
        _ => None,
    }
}

/// A TOML error with the line and the key that it is about.
fn located(place: &str, text: &str, error: &toml::de::Error) -> Error {
    let message = error.message().trim_end().replace('\n', " ");
    let named = || message.split('`').nth(1).map(str::to_owned);
    // A missing key has no line of its own; an unknown one is named by the message.
    let of_key = message.starts_with("missing field") || message.starts_with("unknown field");
    let start = error.span().map(|span| span.start);
    let key = if of_key { named() } else { None };
    let key = key.or_else(|| start.and_then(|start| key_at(text, start)));
    let place = match start.filter(|_| !message.starts_with("missing field")) {
        Some(start) => format!("{place}, line {}", text[..start].matches('\n').count() + 1),
        None => place.to_owned(),
    };
    Error::definition(place, key.unwrap_or_else(|| "?".to_owned()), message, REMEDY)
}

/// The key whose value stands at an offset, after the name of its table.
fn key_at(text: &str, offset: usize) -> Option<String> {
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
    let name = |line: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        let name = line.trim();
        (!name.is_empty() && name.chars().all(plain)).then(|| name.to_owned())
    };
    let mut lines = text[..end].lines().rev();
    let table = |line: &str| name(line.trim().strip_prefix('[')?.trim_matches(['[', ']']));
    let own = text[start..end].split_once('=').and_then(|(key, _)| name(key));
    // A value may go over several lines: its key is on an earlier one.
    let key = own.or_else(|| lines.clone().find_map(|line| name(line.split_once('=')?.0)));
    let table = lines.find_map(table);
    match (table, key) {
        (Some(table), Some(key)) => Some(format!("{table}.{key}")),
        (table, key) => key.or(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_study_can_be_read() {
        for name in Study::names() {
            let study = Study::find(name).unwrap();
            assert!(study.question.ends_with('?'), "{name}: {}", study.question);
            assert!(!study.compared().is_empty());
        }
    }

    /// Every key of the types above stands in the file that explains them, and every evaluation.
    #[test]
    fn every_key_is_explained() {
        let study = Study::parse("keys", "keys.toml", Study::KEYS).unwrap();
        let real = RealLanguages {
            data: "data".into(),
            pairs: vec!["en-fr".to_owned()],
            languages: vec!["en".to_owned()],
            altered: vec!["en".to_owned()],
        };
        let mut study = Study { real: Some(real), ..study };
        study.systems[0].folders.push("run".into());
        study.scales.get_mut(&Scale::Tiny).unwrap().limit = Some(1);
        study.alterations[0].text = Some("wiki".to_owned());
        let Ok(toml::Value::Table(all)) = toml::Value::try_from(&study) else { panic!() };
        let mut keys: Vec<String> = all.keys().cloned().collect();
        let first = |value: &toml::Value| match value {
            toml::Value::Array(tables) => tables[0].clone(),
            other => other.clone(),
        };
        for name in ["systems", "worlds", "alterations", "real", "scales", "claims"] {
            let table = first(&all[name]);
            let table = if name == "scales" { table["tiny"].clone() } else { table };
            keys.extend(table.as_table().unwrap().keys().cloned());
        }
        for key in keys {
            let set = |line: &str| {
                let line = line.trim_start_matches("# ").trim_start_matches('[');
                line.strip_prefix(&*key).is_some_and(|rest| rest.starts_with([' ', ']', '.']))
            };
            assert!(Study::KEYS.lines().any(set), "{key}");
        }
        let names = Task::all().map(Task::name).chain(EVALUATIONS.iter().map(|other| other.name));
        for name in names.chain(Scale::ALL.map(Scale::name)) {
            assert!(Study::KEYS.contains(name), "{name}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_its_place() {
        let refused = |text: &str| Study::parse("mine", "mine.toml", text).unwrap_err().to_string();
        let base = "question = \"?\"\n";
        assert!(refused("question = 3").starts_with("mine.toml, line 1, `question`: "));
        let gold = refused(&format!("{base}evaluate = [\"gold\"]"));
        assert!(
            gold.starts_with("mine.toml, line 2, `evaluate`: there is no evaluation `gold`"),
            "{gold}"
        );
        let none = refused(&format!("{base}evaluate = [\"ner\"]"));
        assert_eq!(
            none,
            "mine.toml, `conditions`: there is nothing to compare; name `conditions` or add a table [[systems]]"
        );
        let base = format!("{base}evaluate = [\"ner\"]\nconditions = [\"default\"]\n");
        assert!(refused(&format!("{base}seeds = []")).contains("`seeds`"));
        let real = refused(&format!("{base}real = 3"));
        assert!(
            real.starts_with("mine.toml, line 4, `real`: ") && real.contains("`data` and `pairs`"),
            "{real}"
        );
        let unknown = refused(&format!("{base}[[systems]]\nfactor = {{ a = \"b\" }}"));
        assert!(unknown.contains("line 5, `factor`: unknown field"), "{unknown}");
        let model =
            refused(&format!("{base}[[systems]]\nfactors = {{ a = \"b\" }}\nmodel = \"big\""));
        assert!(
            model.contains("line 6, `systems.model`: ") && model.contains("fasttext"),
            "{model}"
        );
        let scale = refused(&format!("{base}[scales.huge]\nseeds = [1]"));
        assert!(scale.contains("huge") && scale.contains("tiny"), "{scale}");
        let missing = refused("evaluate = [\"ner\"]");
        assert!(missing.starts_with("mine.toml, `question`: missing field"), "{missing}");
        let pair = format!("{base}[real]\ndata = \"d\"\npairs = [\"en\"]");
        assert!(refused(&pair).contains("write two language codes"));
        let several = refused(&pair.replace("\"en\"", "\"en-fr-de\""));
        assert!(several.contains("more than two") && several.contains("en,fr,de"), "{several}");
        let alone = refused(&pair.replace("pairs", "languages"));
        assert!(alone.contains("`real.languages`: there is one language only"), "{alone}");
        let nothing = refused(&format!("{base}[real]\ndata = \"d\""));
        assert!(nothing.contains("no language is named") && nothing.contains("`altered`"));
        for text in [&*pair, "question = 3", "evaluate = [\"ner\"]"] {
            assert!(!refused(text).contains("struct"), "{}", refused(text));
        }
        let unknown = Study::find("anchor").unwrap_err().to_string();
        assert!(unknown.contains("anchors") && unknown.contains("`anchor`"), "{unknown}");
    }
}
