//! Sections of the report that are files.

use serde::Deserialize;

use super::{Claim, ClaimControl, Levels, Value};
use crate::draw::short;
use crate::report::data::{SettingView, StudyData};
use crate::report::finding::signed;
use crate::report::sections::{ReportSection, ShowSection};
use crate::study::Study;

/// A section's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SectionFile {
    id: String,
    title: String,
    place: String,
    studies: Vec<String>,
    method: String,
    fails: String,
    /// What all its claims and numbers are about.
    #[serde(default, rename = "where")]
    among: Levels,
    /// Those of claims that have none of their own.
    #[serde(default)]
    controls: Vec<ClaimControl>,
    numbers: Numbers,
    claims: Vec<Claim>,
}

/// The numbers that a section's title ends with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    start: String,
    /// A text in which `{}` is the mean (`{3}` with three digits), and the quantity.
    values: Vec<(String, Value)>,
}

impl Numbers {
    fn shown(&self, data: &StudyData<'_>) -> String {
        let of = |(text, value): &(String, Value)| {
            let mean = value.observations(data).sample().mean()?;
            Some(text.replace("{}", &short(mean.mean)).replace("{3}", &signed(mean.mean, 3)))
        };
        let parts: Vec<String> = self.values.iter().filter_map(of).collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!("{} {}", self.start, parts.join(", ")),
        }
    }
}

/// A section from its file, with its figures and tables. It is kept as long as the process.
pub(in crate::report) fn section(text: &str, show: &'static ShowSection) -> &'static ReportSection {
    let file: SectionFile = toml::from_str(text).expect("our own file is right");
    let studies: Vec<&str> = file.studies.into_iter().map(|study| &*study.leak()).collect();
    let studies: &'static [&'static str] = studies.leak();
    let claim = |mut claim: Claim| {
        if claim.controls.is_empty() {
            claim.controls.clone_from(&file.controls);
        }
        let own = claim.among.clone();
        claim.among(&own).among(&file.among).in_section(studies)
    };
    let claims: Vec<_> = file.claims.into_iter().map(claim).collect();
    let mut numbers = file.numbers;
    numbers.values =
        numbers.values.into_iter().map(|(text, value)| (text, value.among(&file.among))).collect();
    Box::leak(Box::new(ReportSection {
        id: file.id.leak(),
        title: file.title.leak(),
        place: file.place.leak(),
        studies,
        method: file.method.leak(),
        claims: claims.leak(),
        fails: file.fails.leak(),
        numbers: Box::leak(Box::new(move |view: &SettingView<'_>| {
            numbers.shown(&view.studies(studies))
        })),
        show,
    }))
}

/// The claims of a study's own file as a section, of which only the verdicts are shown.
pub(in crate::report) fn own_section(number: usize, study: &Study) -> &'static ReportSection {
    let studies: &'static [&'static str] = vec![&*study.name.clone().leak()].leak();
    let claims = study.claims.iter().cloned().map(|claim| claim.in_section(studies));
    Box::leak(Box::new(ReportSection {
        id: format!("own-{number}").leak(),
        title: "",
        place: "",
        studies,
        method: "",
        claims: claims.collect::<Vec<_>>().leak(),
        fails: "",
        numbers: &|_| String::new(),
        show: &|_, _| Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use super::*;
    use crate::report::sections::ALL;

    /// Every file is a section of the page, and the conditions and systems of its claims are those of its study.
    #[test]
    fn files_name_what_studies_have() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/claims");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        assert!(!files.is_empty());
        for path in files {
            let file: SectionFile = toml::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            assert!(ALL.iter().any(|section| section.id == file.id), "{}", path.display());
            let study = Study::find(&file.studies[0]).unwrap();
            let systems: BTreeSet<(String, String)> =
                study.compared().into_iter().flat_map(|system| system.factors).collect();
            let controls =
                file.claims.iter().flat_map(|claim| &claim.controls).chain(&file.controls);
            let controls = controls.flat_map(|one| one.trained.iter().chain([&one.value]));
            let values = file.claims.iter().map(|claim| &claim.value).chain(controls);
            let values = values.chain(file.numbers.values.iter().map(|(_, value)| value));
            for (factor, level) in values.flat_map(Value::levels) {
                // The tables of embeddings come with the words of the encoders that have them.
                let known = level == "embeddings"
                    || systems.contains(&(factor.to_owned(), level.to_owned()));
                assert!(known || !["condition", "system"].contains(&factor), "{factor}={level}");
            }
        }
    }
}
