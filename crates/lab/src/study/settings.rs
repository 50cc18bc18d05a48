//! The settings of a study's results: what its records do not name as factors, and must have in common to be averaged and
//! compared.
//!
//! A record is found by study, scale, seed, measure and factors. Two runs of a study with other flags of pretraining, or with
//! encoders of other languages, would give records of the same factors: seeds of the one would be averaged with seeds of the
//! other. So a laboratory holds the results of one choice of settings for each study, scale and kind of languages, and another
//! choice is refused until the former results are dropped, or goes to another laboratory.

use std::collections::BTreeMap;

use terms::Scale;

use super::error::{Error, Result};
use super::file::{Study, System, SystemKind};
use super::laboratory::Laboratory;
use super::plan::StudyPlan;
use super::step::StudyStep;
use super::systems::common_positions;
use crate::record::{Factors, invented};
use crate::store::{SettingsScope, Store};

/// The settings of a plan by name. A name stands for what a user can change: a flag, a table of the study's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct StudySettings(BTreeMap<String, String>);

impl StudySettings {
    /// The settings of a study at a scale whose steps are these.
    ///
    /// # Errors
    /// Where one plan has encoders of different languages for the same pair.
    pub(super) fn of(study: &Study, scale: Scale, steps: &[StudyStep]) -> Result<Self> {
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
        if let Some(real) = &study.real {
            let folder = std::fs::canonicalize(&real.data).unwrap_or_else(|_| real.data.clone());
            settings.put("--data", folder.display().to_string());
        }
        settings.put_languages(study)?;
        for step in steps {
            let name = format!("revision of `{}`", step.command.verb);
            settings.put(name, step.command.revision.to_string());
        }
        Ok(settings)
    }

    fn put(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into().trim().to_owned());
    }

    fn put_system(&mut self, system: &System) {
        let name = named("systems", &system.factors);
        if system.model == SystemKind::Given {
            for (number, folder) in system.folders.iter().enumerate() {
                let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
                self.put(format!("{name}, folder {}", number + 1), folder.display().to_string());
            }
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
        let of_kind =
            |factors: &Factors| invented(factors).is_none_or(|invented| invented == self.invented);
        let scope = SettingsScope {
            study: &self.study,
            scale: self.scale.name(),
            languages: if self.invented { "invented" } else { "real" },
            owns: &of_kind,
        };
        let differing = store.enter_settings(&scope, &self.settings.0, force)?;
        if differing.is_empty() {
            return Ok(());
        }
        let shown = |value: &String| match value.as_str() {
            "" => "nothing".to_owned(),
            value => format!("`{value}`"),
        };
        let line = |(name, there): (String, String)| match self.settings.0.get(&name) {
            Some(here) => format!("\n  {name}: {} there, {} here", shown(&there), shown(here)),
            None => format!("\n  {name}: {there}"),
        };
        let (study, scale) = (self.study.clone(), self.scale.name());
        let differing = differing.into_iter().map(line).collect();
        Err(Error::Settings { study, scale, differing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::file::RealLanguages;

    fn settings(study: &Study) -> Result<StudySettings> {
        StudySettings::of(study, Scale::Tiny, &[])
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
