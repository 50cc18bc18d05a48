//! From what is asked for to a configuration: a preset at a scale, a file, text and single keys, each
//! over the one before, key by key.

use encoder::ConfigError;
use terms::{Preset, SECOND_COPY, Scale};
use toml::{Table, Value};

use super::config::{DictionaryConfig, PretrainConfig, ProbeConfig, overlay};
use super::init;
use super::presets::{self, preset_keys};

/// What a run is asked to be.
#[derive(Clone, Debug, Default)]
pub struct RunRequest {
    /// The preset; otherwise the file's, or `default`.
    pub preset: Option<Preset>,
    /// The scale; otherwise the file's, or `tiny`.
    pub scale: Option<Scale>,
    /// A configuration file: some keys, or all keys of another run.
    pub file: Table,
    /// Text to train on; otherwise the file's.
    pub text: Option<RunText>,
    /// Single keys, over all else.
    pub keys: Table,
}

/// Text to train on, and what comes with it.
#[derive(Clone, Debug, Default)]
pub struct RunText {
    /// The files of each language: paths or globs.
    pub languages: Vec<(String, Vec<String>)>,
    /// The same of languages that the model which the run begins with is given.
    pub added: Vec<(String, Vec<String>)>,
    /// Parallel sentences to measure retrieval on while training.
    pub probes: Vec<ProbeConfig>,
    /// Dictionaries for extra anchors, for the preset that has them.
    pub dictionaries: Vec<DictionaryConfig>,
    /// Whether a line is a sentence with words between spaces, as in invented languages.
    pub prepared: bool,
}

impl RunRequest {
    /// The configuration that is asked for, checked.
    ///
    /// ```
    /// use terms::Preset;
    /// use train::pretrain::{RunRequest, RunText};
    ///
    /// let files = |file: &str| vec![file.to_owned()];
    /// let languages = vec![("en".to_owned(), files("en.txt")), ("fr".to_owned(), files("fr.txt"))];
    /// let request = RunRequest {
    ///     preset: Some(Preset::NoAnchors),
    ///     text: Some(RunText { languages, ..RunText::default() }),
    ///     keys: "adam = { lr = 1e-3 }\nsteps = 100".parse().unwrap(),
    ///     ..RunRequest::default()
    /// };
    /// let config = request.config().unwrap();
    /// assert_eq!((config.adam.lr, config.steps, config.encoder.layers), (1e-3, 100, 4));
    /// ```
    pub fn config(&self) -> Result<PretrainConfig, ConfigError> {
        let preset: Preset = self.named("preset", self.preset)?;
        let scale: Scale = self.named("scale", self.scale)?;
        for key in ["kind", "merges"] {
            let existing = EXISTING.iter().find(|&&existing| of_vocabulary(&self.keys, existing));
            if let Some(existing) = existing.filter(|_| of_vocabulary(&self.keys, key)) {
                let reason = format!(
                    "is for a vocabulary to be learned, and vocabulary.{existing} is used as it is; leave \
                     one of them out"
                );
                return Err(ConfigError::new(format!("vocabulary.{key}"), reason));
            }
        }
        let mut file = self.file.clone();
        release(&mut file, &self.keys);
        let mut table = preset_keys(preset, scale);
        if self.adds_languages() {
            halve_merges(&mut table);
        }
        overlay(&mut table, file);
        table.insert("preset".to_owned(), Value::from(preset.name()));
        table.insert("scale".to_owned(), Value::from(scale.name()));
        let given = self.given(preset, &table)?;
        let mut asked = table.clone();
        overlay(&mut asked, given.clone());
        if let Some(encoder) = init::encoder_keys(preset, &asked)? {
            // As in the presets: a language's own embeddings have no rows for other subwords.
            if encoder.get("separate").and_then(Value::as_str) != Some("none") {
                let own = "[batch.mask]\nreplacements = \"own\"\n";
                overlay(&mut table, own.parse().expect("valid TOML"));
            }
            table.insert("encoder".to_owned(), Value::Table(encoder));
        }
        overlay(&mut table, given);
        refuse_dictionaries(preset, &table)?;
        complete(&mut table);
        PretrainConfig::from_table(table)
    }

    fn adds_languages(&self) -> bool {
        self.text.as_ref().is_some_and(|text| !text.added.is_empty())
            || [&self.file, &self.keys].iter().any(|table| table.contains_key("add"))
    }

    /// The updates that are asked for of a run that is resumed. All other keys that are given must be
    /// those that it was begun with.
    pub(super) fn steps_over(&self, config: &PretrainConfig) -> Result<u64, ConfigError> {
        let before = config.to_table();
        let mut asked = before.clone();
        overlay(&mut asked, self.file.clone());
        if let Some(preset) = self.preset {
            asked.insert("preset".to_owned(), Value::from(preset.name()));
        }
        if let Some(scale) = self.scale {
            asked.insert("scale".to_owned(), Value::from(scale.name()));
        }
        overlay(&mut asked, self.given(config.preset, &before)?);
        let steps = asked.insert("steps".to_owned(), before["steps"].clone());
        complete(&mut asked);
        let asked = PretrainConfig::from_table(asked)?.to_table();
        if let Some((key, [begun, asked])) = first_difference("", &before, &asked) {
            let reason = format!(
                "the run was begun with {begun}, and {asked} is asked for; a run is resumed as it was begun: \
                 leave it out, or begin another run"
            );
            return Err(ConfigError::new(key, reason));
        }
        let steps = steps.as_ref().and_then(Value::as_integer).map(u64::try_from);
        let wrong = || ConfigError::new("steps", "is not a whole number, 0 or more");
        steps.and_then(Result::ok).ok_or_else(wrong)
    }

    /// The keys of text and the single ones.
    fn given(&self, preset: Preset, base: &Table) -> Result<Table, ConfigError> {
        let existing = |table: &Table| of_vocabulary(table, "folder") || table.contains_key("init");
        let vocabulary = existing(&self.keys) || existing(base);
        let mut table = match &self.text {
            Some(text) => text.keys(preset, vocabulary)?,
            None => Table::new(),
        };
        overlay(&mut table, self.keys.clone());
        Ok(table)
    }

    /// The name of a preset or scale. A file's keys are of its own preset and scale: under another name
    /// they would be mislabelled.
    fn named<T>(&self, key: &'static str, asked: Option<T>) -> Result<T, ConfigError>
    where
        T: std::str::FromStr<Err = String> + std::fmt::Display + PartialEq + Default,
    {
        let in_file = self.file.get(key).and_then(Value::as_str).map(str::parse::<T>).transpose();
        let in_file = in_file.map_err(|reason| ConfigError::new(key, reason))?;
        match (in_file, asked) {
            (Some(in_file), Some(asked)) if in_file != asked => {
                let reason = format!(
                    "the file's configuration is of {key} `{in_file}`, and its keys would stay so; leave \
                     {key} `{asked}` out, or begin from it without the file"
                );
                Err(ConfigError::new(key, reason))
            }
            (in_file, asked) => Ok(asked.or(in_file).unwrap_or_default()),
        }
    }
}

impl RunText {
    /// As keys of a configuration under a preset: some train on the first language alone. A vocabulary
    /// that is used as it is says for itself what a word is.
    fn keys(&self, preset: Preset, vocabulary: bool) -> Result<Table, ConfigError> {
        let mut text = self.clone();
        match preset {
            Preset::Monolingual => text.keep_first(),
            Preset::SameLanguage => text.duplicate_first(),
            _ => {}
        }
        let mut table = Table::new();
        let all = || text.languages.iter().chain(&text.added);
        if all().next().is_some() {
            let codes: Vec<_> = all().map(|(code, _)| code.as_str()).collect();
            table.insert("languages".to_owned(), Value::from(codes));
            let files = all();
            let files = files.map(|(code, files)| (code.clone(), Value::from(files.clone())));
            table.insert("files".to_owned(), Value::Table(files.collect()));
        }
        if !text.added.is_empty() {
            let codes: Vec<_> = text.added.iter().map(|(code, _)| code.as_str()).collect();
            let keys = Table::from_iter([("languages".to_owned(), Value::from(codes))]);
            table.insert("add".to_owned(), Value::Table(keys));
        }
        if !text.probes.is_empty() || text.prepared {
            table.insert("probes".to_owned(), as_toml(&text.probes));
        }
        if text.prepared {
            let key = if vocabulary { "lines" } else { "prepared" };
            let keys = Table::from_iter([(key.to_owned(), Value::Boolean(true))]);
            table.insert("text".to_owned(), Value::Table(keys));
        }
        if preset == Preset::ExtraAnchors && !text.dictionaries.is_empty() {
            let list = as_toml(&text.dictionaries);
            let switch = Table::from_iter([("dictionaries".to_owned(), list)]);
            table.insert("switch".to_owned(), Value::Table(switch));
        }
        Ok(table)
    }

    fn keep_first(&mut self) {
        self.languages.truncate(1);
        self.probes.clear();
    }

    /// The first language twice (Conneau et al. 2020, §5.2): the second has its text and a code of its
    /// own, so that both have embeddings of their own, and the translation of a sentence is the sentence
    /// itself. Commands are given the two sides under these codes: `--parallel en=… --parallel en-b=…`.
    fn duplicate_first(&mut self) {
        self.languages.truncate(1);
        let Some((first, files)) = self.languages.first().cloned() else { return };
        let second = format!("{first}{SECOND_COPY}");
        self.probes.truncate(1);
        for probe in &mut self.probes {
            probe.languages = [first.clone(), second.clone()];
            probe.files[1] = probe.files[0].clone();
        }
        self.languages.push((second, files));
    }
}

/// Keys of a vocabulary that is used as it is.
const EXISTING: [&str; 2] = ["folder", "file"];

fn as_toml(value: &impl serde::Serialize) -> Value {
    Value::try_from(value).expect("plain data is valid TOML")
}

/// The new subwords of a language are as many as where each language has a vocabulary of its own: half of those that two
/// share.
fn halve_merges(table: &mut Table) {
    let merges = table.get_mut("vocabulary").and_then(|vocabulary| vocabulary.get_mut("merges"));
    if let Some(Value::Integer(merges)) = merges {
        *merges /= 2;
    }
}

/// Whether a table has this key of the vocabulary.
fn of_vocabulary(table: &Table, key: &str) -> bool {
    table.get("vocabulary").is_some_and(|vocabulary| vocabulary.get(key).is_some())
}

/// Dictionaries without a share of words to replace would replace nothing.
fn refuse_dictionaries(preset: Preset, table: &Table) -> Result<(), ConfigError> {
    let useless = table.get("switch").is_some_and(|switch| switch.get("probability").is_none());
    if !useless {
        return Ok(());
    }
    let reason = format!(
        "is for extra anchors, and preset `{preset}` has none; take preset `extra-anchors`, or set \
         switch.probability = 0.3 and switch.most = 0.15"
    );
    Err(ConfigError::new("switch.dictionaries", reason))
}

/// The first key whose values differ, with both.
fn first_difference(path: &str, a: &Table, b: &Table) -> Option<(String, [String; 2])> {
    let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
    keys.sort_unstable();
    keys.dedup();
    let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    keys.into_iter().find_map(|key| {
        let full = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (a.get(key), b.get(key)) {
            (Some(Value::Table(a)), Some(Value::Table(b))) => first_difference(&full, a, b),
            (a, b) if a != b => Some((full, [shown(a), shown(b)])),
            _ => None,
        }
    })
}

/// Removes from a file what [`complete`] had filled in and single keys change: updates, layers.
fn release(file: &mut Table, keys: &Table) {
    if keys.contains_key("steps") {
        release_schedule(file);
    }
    if keys.get("encoder").is_some_and(|encoder| encoder.get("layers").is_some()) {
        presets::release_separate(file);
    }
}

/// A schedule that ended with the run ends with the new one, and a warm-up that was cut to it is as long
/// as the preset has it.
fn release_schedule(file: &mut Table) {
    let steps = file.get("steps").and_then(Value::as_integer);
    let schedule = file.get_mut("adam").and_then(|adam| adam.get_mut("schedule"));
    let Some(Value::Table(schedule)) = schedule else { return };
    let ends_with_run = |key: &str, schedule: &Table| {
        steps.is_some() && schedule.get(key).and_then(Value::as_integer) == steps
    };
    if ends_with_run("total", schedule) {
        schedule.remove("total");
        if ends_with_run("warmup", schedule) {
            schedule.remove("warmup");
        }
    }
}

/// Fills in what follows from other keys: a linear schedule ends with the run, stages that are given as shares
/// of the run get their number of updates, the layers that a preset separates follow the depth, and where a vocabulary is used as it is, a preset has nothing to say of
/// the one to learn.
pub(super) fn complete(table: &mut Table) {
    presets::complete_separate(table);
    let (init, add) = (table.contains_key("init"), table.contains_key("add"));
    if let Some(Value::Table(vocabulary)) = table.get_mut("vocabulary")
        && (init || EXISTING.iter().any(|&key| vocabulary.contains_key(key)))
    {
        vocabulary.retain(|key, _| key != "kind" && (key != "merges" || add));
    }
    if let Some(added) = first_added(table) {
        table.entry("select_by").or_insert(added);
    }
    let steps = table.get("steps").and_then(Value::as_integer).unwrap_or(1).max(1);
    complete_stages(table, steps);
    let schedule = table.get_mut("adam").and_then(|adam| adam.get_mut("schedule"));
    let Some(Value::Table(schedule)) = schedule else { return };
    if schedule.get("kind").and_then(Value::as_str) == Some("linear") {
        schedule.entry("total").or_insert(Value::Integer(steps));
        let total = schedule["total"].as_integer().unwrap_or(steps);
        if let Some(Value::Integer(warmup)) = schedule.get_mut("warmup") {
            *warmup = (*warmup).min(total);
        }
    }
}

/// The first language that a model is given: the best weights are those that know it best.
fn first_added(table: &Table) -> Option<Value> {
    table.get("add")?.get("languages")?.as_array()?.first().cloned()
}

/// Replaces the `share` of a stage by its `steps`, so that a run that is extended keeps the stages that it had.
fn complete_stages(table: &mut Table, steps: i64) {
    let Some(Value::Array(stages)) = table.get_mut("stages") else { return };
    for stage in stages.iter_mut().filter_map(Value::as_table_mut) {
        let share = stage.get("share").and_then(Value::as_float);
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        // Any other share stays, and is refused as an unknown key.
        if let Some(share) = share.filter(|_| !stage.contains_key("steps")) {
            stage.remove("share");
            stage.insert("steps".to_owned(), Value::Integer((share * steps as f64).round() as i64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Schedule;

    #[test]
    fn a_stage_may_be_a_share_of_the_run() {
        let stages = |keys: &str| {
            let mut table: Table = keys.parse().unwrap();
            complete(&mut table);
            table["stages"].to_string()
        };
        let share = "stages = [{ share = 0.75, length = 64 }]";
        assert_eq!(stages(&format!("steps = 8000\n{share}")), "[{ length = 64, steps = 6000 }]");
        assert_eq!(stages(&format!("steps = 0\n{share}")), "[{ length = 64, steps = 1 }]");
        for kept in ["[{ share = 1.5 }]", "[{ steps = 5, share = 0.5 }]"] {
            let stayed = stages(&format!("steps = 8\nstages = {kept}"));
            assert!(stayed.contains("share"), "{stayed}");
        }
    }

    fn request(preset: Preset, keys: &str) -> RunRequest {
        let files = |file: &str| vec![file.to_owned()];
        let languages = vec![("en".to_owned(), files("a")), ("fr".to_owned(), files("b"))];
        RunRequest {
            preset: Some(preset),
            text: Some(RunText { languages, ..RunText::default() }),
            keys: keys.parse().unwrap(),
            ..RunRequest::default()
        }
    }

    /// As `resume` has it.
    fn over(
        request: &RunRequest,
        begun: &PretrainConfig,
        done: u64,
    ) -> Result<PretrainConfig, ConfigError> {
        let steps = request.steps_over(begun)?;
        if begun.has_goal(steps) { Ok(begun.clone()) } else { begun.extended(steps, done) }
    }

    #[test]
    fn some_presets_train_on_the_first_language() {
        let languages = |preset| request(preset, "").config().unwrap().languages;
        assert_eq!(languages(Preset::Default), ["en", "fr"]);
        assert_eq!(languages(Preset::Monolingual), ["en"]);
        assert_eq!(languages(Preset::SameLanguage), ["en", "en-b"]);
    }

    #[test]
    fn the_same_keys_are_accepted_again_and_others_refused_with_both_values() {
        let begun = request(Preset::NoAnchors, "steps = 40\nadam = { lr = 1 }");
        let config = begun.config().unwrap();
        assert_eq!(over(&begun, &config, 10).unwrap(), config);
        assert_eq!(over(&RunRequest::default(), &config, 10).unwrap(), config);
        for (other, key, says) in [
            (request(Preset::Default, ""), "preset", ["\"no-anchors\"", "\"default\""]),
            (request(Preset::NoAnchors, "adam = { lr = 2.5 }"), "adam.lr", ["1.0", "2.5"]),
            (request(Preset::NoAnchors, "steps = 39"), "steps", ["40", "39"]),
            (request(Preset::NoAnchors, "files = { en = ['c'] }"), "files.en", ["[\"a\"]", "c"]),
        ] {
            let error = over(&other, &config, 10).unwrap_err();
            assert_eq!(error.key, key);
            assert!(says.iter().all(|value| error.reason.contains(value)), "{error}");
        }
    }

    #[test]
    fn more_steps_extend_a_run_and_its_schedule() {
        let config = request(Preset::NoAnchors, "steps = 400").config().unwrap();
        let more: Table = "steps = 600".parse().unwrap();
        let again = RunRequest { keys: more, ..RunRequest::default() };
        let longer = over(&again, &config, 300).unwrap();
        let linear = |total| Schedule::Linear { warmup: 100, total };
        assert_eq!((longer.steps, longer.adam.schedule), (600, linear(600)));
        assert_eq!(longer.schedule_at(300), linear(400));
        assert_eq!(longer.schedule_at(301), linear(600));
        assert_eq!((longer.goal_at(300), longer.goal_at(301)), (400, 600));
        // A former goal is one that the run was begun with.
        assert_eq!(over(&request(Preset::NoAnchors, "steps = 400"), &longer, 500).unwrap(), longer);
        assert_eq!(over(&again, &longer, 500).unwrap(), longer);
        // Before the first update there is nothing to extend: the run is planned anew.
        let planned = over(&again, &config, 0).unwrap();
        assert_eq!((planned.extensions.len(), planned.schedule_at(1)), (0, linear(600)));
        let text: Table = longer.to_toml().parse().unwrap();
        assert_eq!(PretrainConfig::from_table(text).unwrap(), longer);
    }
}
