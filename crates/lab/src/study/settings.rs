//! The settings of a study's results: what its records do not name as factors, and must have in common to be averaged and
//! compared.
//!
//! A record is found by study, scale, seed, measure and factors. Two runs of a study with other flags of pretraining, or with
//! encoders of other languages, or on other text, would give records of the same factors: seeds of the one would be averaged
//! with seeds of the other. Data counts by its content, wherever it lies. So a laboratory holds the results of one choice of settings for each study, scale and kind of languages, and another
//! choice is refused until the former results are dropped, or goes to another laboratory.

use std::collections::{BTreeMap, BTreeSet};

use terms::Scale;

use super::error::{Error, Result};
use super::file::{Study, System, SystemKind};
use super::laboratory::Laboratory;
use super::materials::LanguageData;
use super::plan::Extraction;
use super::plan::StudyPlan;
use super::step::{StepList, StudyStep};
use super::systems::common_positions;
use crate::record::{Factors, invented};
use crate::store::{EnteredSettings, SettingsScope, Store};

/// How many hexadecimal digits of a digest a setting has.
const DIGITS: usize = 16;
const LISTED: usize = 10;
/// How settings about the data of a slot are named.
const OF_SLOT: &str = "data of ";
/// What stands between the parts of a setting about data.
const NEXT: &str = ", ";

/// The settings of a plan by name. A name stands for what a user can change: a flag, a table of the study's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StudySettings(BTreeMap<String, String>);

impl StudySettings {
    /// The settings of a study at a scale, but for those of its [data](Self::with_data).
    ///
    /// # Errors
    /// Where one plan has encoders of different languages for the same pair.
    pub(super) fn of(study: &Study, scale: Scale) -> Result<Self> {
        let mut settings = Self::default();
        let at_scale = study.at(scale);
        let limit = at_scale.limit.map_or("none".to_owned(), |limit| limit.to_string());
        settings.put("--limit", limit);
        settings.put("--transfer", at_scale.transfer.join(" "));
        let systems = study.compared();
        if systems.iter().any(|system| system.model != SystemKind::Given) {
            settings.put("--pretrain", at_scale.pretrain.join(" "));
        }
        systems.iter().for_each(|system| settings.put_system(system));
        for world in study.worlds.iter().filter(|_| study.real.is_none()) {
            let languages = world.languages.unwrap_or(2);
            let flags = world.flags.join(" ");
            settings.put(named("worlds", &world.factors), format!("{languages} languages {flags}"));
        }
        for (_, alteration) in study.altered() {
            let text = alteration.text.as_deref().unwrap_or("all text");
            let flags = alteration.flags.join(" ");
            settings.put(named("alterations", &alteration.factors), format!("{text} {flags}"));
        }
        if let Some(longest) = common_positions(study, scale).filter(|_| study.real.is_some()) {
            // Encoders are compared on the sentences that all of them read.
            settings.put("positions of the shortest encoder", longest.to_string());
        }
        if study.real.is_some() {
            // An earlier version entered the folder, which says nothing of what is in it.
            settings.put("--data", "by its content");
        }
        settings.put_languages(study)?;
        Ok(settings)
    }

    /// These with the revisions of all steps, the content of the text that all systems read, and for each slot the content of
    /// all files that its step and those before it read. Of a given model, whose folders are seeds, each folder is a setting.
    pub(super) fn with_data(
        mut self,
        study: &Study,
        list: &StepList,
        steps: &[StudyStep],
        extractions: &[Extraction],
    ) -> Self {
        for step in steps {
            let name = format!("revision of `{}`", step.command.verb);
            self.put(name, step.command.revision.to_string());
        }
        let short = |digest: &str| digest[..DIGITS].to_owned();
        for system in study.compared() {
            for (number, folder) in system.folders.iter().enumerate() {
                if let Some(content) = list.content(folder) {
                    let name =
                        format!("{}, model {}", named("systems", &system.factors), number + 1);
                    self.put(name, short(content));
                }
            }
        }
        for (real, languages) in study
            .real
            .iter()
            .flat_map(|real| real.choices().map(move |languages| (real, languages)))
        {
            let data = LanguageData::real(&real.data, &languages);
            for language in languages {
                let files = data.text_paths(language);
                let contents: Option<Vec<&str>> =
                    files.iter().map(|file| list.content(file)).collect();
                if let Some(contents) = contents.filter(|contents| !contents.is_empty()) {
                    let contents = contents.into_iter().map(short).collect::<Vec<_>>();
                    self.put(format!("text of {language}"), contents.join(NEXT));
                }
            }
        }
        let mut read: Vec<BTreeSet<String>> = Vec::new();
        for step in steps {
            let own = step.reads().map(|(by, content)| format!("{by} {}", short(content)));
            let before = step.needs.iter().flat_map(|need| read[need.0].iter().cloned());
            read.push(own.chain(before).collect());
        }
        let mut slots: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for extraction in extractions {
            let data = read[extraction.step.0].iter().map(String::as_str);
            slots.entry(extraction.slot(&steps[extraction.step.0])).or_default().extend(data);
        }
        for (slot, data) in slots.into_iter().filter(|(_, data)| !data.is_empty()) {
            self.put(format!("{OF_SLOT}{slot}"), data.into_iter().collect::<Vec<_>>().join(NEXT));
        }
        self
    }

    fn put(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into().trim().to_owned());
    }

    fn put_system(&mut self, system: &System) {
        let name = named("systems", &system.factors);
        if system.model == SystemKind::Given {
            return;
        }
        let System { model, preset, flags, paraphrases, equal_text, .. } = system;
        let marks = [(*paraphrases, " paraphrases"), (*equal_text, " equal text")];
        let marks: String = marks.iter().filter(|(set, _)| *set).map(|(_, mark)| *mark).collect();
        let model = format!("{model:?}").to_lowercase();
        self.put(name, format!("{model} {preset} {}{marks}", flags.join(" ")));
    }

    /// The languages of the encoders that each pair of real languages is measured with.
    fn put_languages(&mut self, study: &Study) -> Result<()> {
        for languages in study.real.iter().flat_map(|real| real.choices()) {
            let Some((source, targets)) = languages.split_first() else { continue };
            for target in targets {
                let (name, together) =
                    (format!("languages with {source}-{target}"), languages.join(","));
                if let Some(other) = self.0.get(&name).filter(|other| **other != together) {
                    let reason = format!(
                        "the pair {source}-{target} would be measured with encoders of {other} and with encoders of \
                         {together}, under the same name"
                    );
                    let remedy = "run one of them in another laboratory (--lab DIR)";
                    return Err(Error::definition(&study.name, "real.languages", reason, remedy));
                }
                self.put(name, together);
            }
        }
        Ok(())
    }
}

/// A table of a study's file, by what its records are labelled with.
fn named(table: &str, factors: &Factors) -> String {
    let factors = factors.iter().map(|(name, level)| format!("{name}={level}"));
    match factors.collect::<Vec<_>>().join(" ") {
        none if none.is_empty() => table.to_owned(),
        factors => format!("{table} {factors}"),
    }
}

impl Laboratory {
    /// Enters the settings of plans, whose records may then be stored. With `force`, results of other settings are dropped first;
    /// the steps that gave them are kept.
    ///
    /// # Errors
    /// Where the laboratory has results with other settings and `force` is not set.
    pub fn enter_settings(&self, plans: &[StudyPlan], force: bool) -> Result<()> {
        let store = self.store()?;
        plans.iter().try_for_each(|plan| plan.enter_settings(&store, force))
    }
}

impl StudyPlan {
    /// Enters its settings, or refuses. Done again with every step whose records are stored: another run may have entered
    /// others in between.
    pub(super) fn enter_settings(&self, store: &Store, force: bool) -> Result<()> {
        let entered = EnteredSettings {
            study: self.study.clone(),
            scale: self.scale.name().to_owned(),
            languages: if self.invented { INVENTED } else { "real" }.to_owned(),
            settings: self.settings.0.clone(),
        };
        enter(store, &entered, force)
    }
}

const INVENTED: &str = "invented";

pub(super) fn enter(store: &Store, entered: &EnteredSettings, force: bool) -> Result<()> {
    let EnteredSettings { study, scale, languages, settings } = entered;
    let owns = |factors: &Factors| {
        invented(factors).is_none_or(|invented| invented == (languages == INVENTED))
    };
    let scope = SettingsScope { study, scale, languages, owns: &owns };
    let differing = store.enter_settings(&scope, settings, force)?;
    if differing.is_empty() {
        return Ok(());
    }
    // What is of one slot alone comes last.
    let (slots, all): (Vec<_>, Vec<_>) =
        differing.iter().partition(|(name, _)| name.starts_with(OF_SLOT));
    let differing = all.into_iter().chain(slots);
    let mut lines: Vec<String> =
        differing.map(|(name, there)| differs(name, there, settings.get(name))).collect();
    let more = lines.len().saturating_sub(LISTED);
    lines.truncate(LISTED);
    lines.extend((more > 0).then(|| format!("\n  and {more} more")));
    Err(Error::Settings { study: study.clone(), scale: scale.clone(), differing: lines.concat() })
}

/// The line about a setting that differs: of data, the files that do.
fn differs(name: &str, there: &str, here: Option<&String>) -> String {
    let Some(here) = here else { return format!("\n  {name}: {there}") };
    let parts = |text: &str, but: &str| match name.starts_with(OF_SLOT) {
        true => {
            let other: BTreeSet<&str> = but.split(NEXT).collect();
            let own = text.split(NEXT).filter(|part| !other.contains(part));
            own.collect::<Vec<_>>().join(NEXT)
        }
        false => text.to_owned(),
    };
    let shown = |value: String| match value.as_str() {
        "" => "nothing".to_owned(),
        value => format!("`{value}`"),
    };
    let (there, here) = (parts(there, here), parts(here, there));
    format!("\n  {name}: {} there, {} here", shown(there), shown(here))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::file::RealLanguages;

    fn settings(study: &Study) -> Result<StudySettings> {
        StudySettings::of(study, Scale::Tiny)
    }

    #[test]
    fn what_records_do_not_name_is_a_setting() {
        let study = Study::find("predictors").unwrap();
        let own = settings(&study).unwrap();
        assert_eq!(own.0["systems condition=default steps=1500"], "encoder default --steps 1500");
        let mut other = study.clone();
        other.scales.entry(Scale::Tiny).or_default().limit = Some(5);
        assert_ne!(settings(&other).unwrap(), own);
        // Seeds, conditions and evaluations are in the records themselves, or only say how many there are.
        let mut fewer = study.clone();
        fewer.seeds = vec![7];
        fewer.conditions.truncate(1);
        fewer.evaluate.truncate(1);
        let fewer = settings(&fewer).unwrap();
        assert!(fewer.0.iter().all(|(name, value)| own.0[name] == *value));
    }

    /// Records of both would have the factor `pair=en-fr`.
    #[test]
    fn a_pair_is_measured_with_encoders_of_the_same_languages() {
        let mut study = Study::find("anchors").unwrap();
        let mut real = RealLanguages {
            data: "data".into(),
            pairs: vec!["en-fr".to_owned()],
            languages: ["en", "ru", "de"].map(str::to_owned).into(),
            altered: vec![],
        };
        study.real = Some(real.clone());
        assert_eq!(settings(&study).unwrap().0["languages with en-de"], "en,ru,de");
        real.languages[1] = "fr".to_owned();
        study.real = Some(real);
        let refused = settings(&study).unwrap_err().to_string();
        assert!(refused.contains("en-fr") && refused.contains("--lab"), "{refused}");
    }
}
