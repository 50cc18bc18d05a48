//! Sections of the report that are files.

use serde::Deserialize;

use super::shown::ShownFile;
use super::{Claim, ClaimControl, Levels, Rule, Value};
use crate::draw::short;
use crate::record::Record;
use crate::report::data::{SettingView, StudyData};
use crate::report::finding::signed;
use crate::report::sections::{ReportSection, ShowSection};
use crate::study::Study;

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
    #[serde(default)]
    numbers: Numbers,
    #[serde(default)]
    claims: Vec<Claim>,
    /// Figures and tables, in their order; those that code makes follow where it names none.
    #[serde(default)]
    exhibits: Vec<ShownFile>,
}

/// The numbers that a section's title ends with.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Numbers {
    #[serde(default)]
    start: String,
    /// A text in which each `{}` is the mean (`{3}` with three digits) of a quantity.
    values: Vec<(String, Quantities)>,
    #[serde(skip)]
    among: Levels,
}

#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum Quantities {
    One(Value),
    Several(Vec<Value>),
}

impl Quantities {
    fn all(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}

impl Numbers {
    fn shown(&self, data: &StudyData<'_>) -> String {
        let of = |(text, values): &(String, Quantities)| {
            let mut text = text.clone();
            for value in values.all() {
                let value = value.clone().among(&self.among).resolved(data);
                let mean = value.observations(data).sample().mean()?.mean;
                text = text.replacen("{}", &short(mean), 1).replacen("{3}", &signed(mean, 3), 1);
            }
            Some(text)
        };
        let parts: Vec<String> = self.values.iter().filter_map(of).collect();
        match parts.is_empty() {
            true => String::new(),
            false => format!("{} {}", self.start, parts.join(", ")).trim_start().to_owned(),
        }
    }
}

/// A text in which `{+3 QUANTITY}` stands for a number of a paper: with this many digits and its sign, `s` with the sign of negative ones alone,
/// `%` as points, `r` from the least to the greatest.
pub(super) fn quoted(text: &str, published: &'static [Record]) -> String {
    let data = StudyData::of(published);
    let mut parts = text.split('{');
    let mut quoted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (number, rest) = part.split_once('}').expect("a brace is closed");
        let (format, value) = number.split_once(' ').expect("a number has a format");
        let value = Value::try_from(value.to_owned()).unwrap_or_else(|error| panic!("{error}"));
        let values = value.observations(&data);
        let mean = values.sample().mean().map_or(f64::NAN, |mean| mean.mean);
        let (kind, digits) = format.split_at(1);
        let digits: usize = digits.parse().expect("a format has digits");
        quoted += &match kind {
            "+" => format!("{mean:+.digits$}").replace('-', "\u{2212}"),
            "%" => format!("{:.digits$}", 100.0 * mean),
            "r" => {
                let (low, high) = values
                    .values()
                    .fold((f64::MAX, f64::MIN), |(low, high), one| (low.min(one), high.max(one)));
                format!("{low:.digits$} to {high:.digits$}")
            }
            _ => signed(mean, digits),
        };
        quoted += rest;
    }
    quoted
}

/// What a file cannot say.
#[derive(Default)]
pub(in crate::report) struct SectionCode {
    /// By how their findings begin.
    pub(in crate::report) rules: &'static [(&'static str, Rule)],
    /// Figures and tables of one setting.
    pub(in crate::report) show: Option<&'static ShowSection>,
    /// The numbers that its title ends with.
    pub(in crate::report) numbers: Option<fn(&SettingView<'_>) -> String>,
}

/// A section from its file, with its figures and tables. It is kept as long as the process.
pub(in crate::report) fn section(text: &str, code: SectionCode) -> &'static ReportSection {
    let file: SectionFile = toml::from_str(text).expect("our own file is right");
    let studies: Vec<&str> = file.studies.into_iter().map(|study| &*study.leak()).collect();
    let studies: &'static [&'static str] = studies.leak();
    let claim = |mut claim: Claim| {
        if claim.controls.is_empty() {
            claim.controls.clone_from(&file.controls);
        }
        let rule = code.rules.iter().find(|(start, _)| claim.finding.starts_with(start));
        claim.in_section(studies, &file.among, rule.map(|(_, rule)| *rule))
    };
    let claims: Vec<_> = file.claims.into_iter().map(claim).collect();
    let numbers = Numbers { among: file.among, ..file.numbers };
    let exhibits = file.exhibits;
    Box::leak(Box::new(ReportSection {
        id: file.id.leak(),
        title: file.title.leak(),
        place: file.place.leak(),
        studies,
        method: file.method.leak(),
        claims: claims.leak(),
        fails: file.fails.leak(),
        numbers: Box::leak(Box::new(move |view: &SettingView<'_>| match code.numbers {
            Some(of) => of(view),
            None => numbers.shown(&view.studies(studies)),
        })),
        show: Box::leak(Box::new(move |id: &str, view: &SettingView<'_>| {
            let own = code.show.map_or_else(Vec::new, |show| show(id, view));
            let (data, mut own) = (view.studies(studies), own.into_iter());
            let described = exhibits.iter().filter_map(|one| one.item(id, &data, &mut own));
            let described: Vec<_> = described.collect();
            described.into_iter().chain(own).collect()
        })),
    }))
}

/// The claims of a study's own file as a section, of which only the verdicts are shown.
pub(in crate::report) fn own_section(number: usize, study: &Study) -> &'static ReportSection {
    let studies: &'static [&'static str] = vec![&*study.name.clone().leak()].leak();
    let claims = study.claims.iter().cloned();
    let claims = claims.map(|claim| claim.in_section(studies, &Levels::default(), None));
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
            let studies = file.claims.iter().flat_map(|claim| &claim.studies).chain(&file.studies);
            let systems: BTreeSet<(String, String)> = studies
                .flat_map(|study| Study::find(study).unwrap().compared())
                .flat_map(|system| system.factors)
                .collect();
            let controls =
                file.claims.iter().flat_map(|claim| &claim.controls).chain(&file.controls);
            let controls = controls.flat_map(|one| one.trained.iter().chain(&one.value));
            let values = file.claims.iter().map(|claim| &claim.value).chain(controls);
            let lines = file.claims.iter().flat_map(|claim| &claim.lines);
            let values = values.chain(lines.filter_map(|line| line.value.as_ref()));
            let values = values.chain(file.numbers.values.iter().flat_map(|(_, of)| of.all()));
            for (factor, levels) in values.flat_map(Value::levels) {
                // The tables of embeddings come with the words of the encoders that have them.
                let known = levels.starts_with('@')
                    || levels.split(['|', ',']).any(|level| {
                        // A map between encoders is part of a system's name.
                        let system = level.trim_end_matches("-aligned").trim_end_matches("-raw");
                        level == "embeddings"
                            || systems.contains(&(factor.to_owned(), system.to_owned()))
                    });
                assert!(
                    known || !["condition", "system"].contains(&factor),
                    "{}: {factor}={levels}",
                    file.id
                );
            }
        }
    }
}
