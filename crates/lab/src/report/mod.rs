//! The report: one page that opens anywhere, made of nothing but the numbers in the store.
//!
//! `sections` has what the papers asked and found, `finding` the rules by which a finding holds or does
//! not, `data` the numbers as sections ask for them, `own` the studies that no section is about, `page` the
//! page.

mod data;
mod exhibit;
mod finding;
mod own;
mod page;
mod sections;
mod table;

use serde::Serialize;

use crate::draw::Figure;
use crate::record::{Note, Record};

use self::data::{View, views};
use self::exhibit::{Content, Exhibit};
use self::finding::{Judgement, judge};
use self::sections::Section;

/// A report in memory.
#[derive(Debug)]
pub struct Report {
    /// The page.
    pub html: String,
    /// Every figure of the page as a file of its own: a name without ending, and the SVG.
    pub figures: Vec<(String, String)>,
    /// What came out, for programs.
    pub findings: Vec<Finding>,
    /// Studies of the papers that have no numbers yet.
    pub missing: Vec<&'static str>,
}

/// Whether something that a paper found holds in one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The section that it stands in.
    pub section: &'static str,
    /// The finding, as a sentence.
    pub finding: &'static str,
    /// Where the paper says so.
    pub place: &'static str,
    /// Scale and kind of languages.
    pub setting: String,
    /// What was measured for it.
    pub quantity: &'static str,
    /// Where the finding puts it.
    pub rule: String,
    /// `holds`, `does not hold`, `too noisy` or `not measured`.
    pub verdict: &'static str,
    /// The quantity with its interval, or the correlation with its p.
    pub strength: String,
}

/// A section with what our numbers say.
struct Filled<'a> {
    section: &'static Section,
    /// For each claim, a judgement for each setting.
    judgements: Vec<Vec<Judgement>>,
    settings: Vec<Shown<'a>>,
}

/// A section in one setting.
struct Shown<'a> {
    view: &'a View<'a>,
    exhibits: Vec<Exhibit>,
}

impl Report {
    /// Makes the report of all numbers of a store.
    pub fn of(records: &[Record], notes: &[Note]) -> Self {
        let views = views(records, notes);
        let (filled, empty): (Vec<_>, Vec<_>) = sections::ALL
            .iter()
            .map(|section| fill(section, &views))
            .partition(|filled| !filled.settings.is_empty());
        // The demo has a laboratory of its own, and is not missing elsewhere.
        let missing =
            empty.iter().map(|filled| filled.section).filter(|section| section.id != "demo");
        let missing: Vec<&Section> = missing.collect();
        Self {
            html: page::page(&filled, &own::studies(records), &missing, records),
            figures: filled
                .iter()
                .flat_map(figures)
                .map(|one| (one.id.clone(), one.svg()))
                .collect(),
            findings: filled.iter().flat_map(findings).collect(),
            missing: studies_of(&missing),
        }
    }
}

fn fill<'a>(section: &'static Section, views: &'a [View<'a>]) -> Filled<'a> {
    let with_numbers: Vec<&View<'_>> =
        views.iter().filter(|view| !view.studies(section.studies).is_empty()).collect();
    let judgements = section.claims.iter().map(|claim| {
        with_numbers.iter().map(|view| judge(claim.rule, &(claim.measure)(view))).collect()
    });
    let show = |(number, view): (usize, &&'a View<'a>)| {
        let id = format!("{}-{}", section.id, view.setting.slug());
        let mut exhibits = (section.show)(&id, view);
        let shown_before = |exhibit: &Exhibit| exhibit.once && number > 0;
        exhibits.retain(|exhibit| !exhibit.is_empty() && !shown_before(exhibit));
        Shown { view, exhibits }
    };
    Filled {
        section,
        judgements: judgements.collect(),
        settings: with_numbers.iter().enumerate().map(show).collect(),
    }
}

fn figures<'a>(filled: &'a Filled<'_>) -> impl Iterator<Item = &'a Figure> {
    filled.settings.iter().flat_map(|shown| &shown.exhibits).filter_map(|exhibit| {
        match &exhibit.content {
            Content::Figure(figure) => Some(figure),
            Content::Table(_) => None,
        }
    })
}

fn findings(filled: &Filled<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    for (claim, judgements) in filled.section.claims.iter().zip(&filled.judgements) {
        for (judgement, shown) in judgements.iter().zip(&filled.settings) {
            all.push(Finding {
                section: filled.section.id,
                finding: claim.finding,
                place: claim.place,
                setting: shown.view.setting.to_string(),
                quantity: claim.quantity,
                rule: finding::in_words(claim.rule),
                verdict: judgement.verdict.name(),
                strength: judgement.strength.clone(),
            });
        }
    }
    all
}

/// The studies that sections need, each once.
fn studies_of(sections: &[&Section]) -> Vec<&'static str> {
    let mut studies: Vec<&str> = Vec::new();
    for study in sections.iter().flat_map(|section| section.studies) {
        if !studies.contains(study) {
            studies.push(study);
        }
    }
    studies
}
