//! The report: one self-contained page, made of nothing but the records in the store.
//!
//! `sections` has the questions and claims of the papers, `finding` the criteria by which a claim holds or fails, `data` the
//! records as sections select them, `own` the studies that no section is about, `page` the HTML.

mod data;
mod exhibit;
mod finding;
mod observations;
mod own;
mod page;
mod sections;
mod table;

use serde::Serialize;

use crate::draw::Figure;
use crate::record::{Record, TextRecord};

use self::data::{SettingView, views};
use self::exhibit::{CaptionedItem, ItemContent};
use self::finding::{Judgement, judge};
use self::sections::ReportSection;

/// A report.
#[derive(Debug)]
pub struct ReportPage {
    /// The page.
    pub html: String,
    /// Every figure of the page: a file name without its ending, and the SVG.
    pub figures: Vec<(String, String)>,
    /// The verdicts, for programs.
    pub findings: Vec<FindingVerdict>,
    /// Studies of the papers without results.
    pub missing: Vec<&'static str>,
}

/// Whether a finding of a paper holds in one setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingVerdict {
    /// The section of the report.
    pub section: &'static str,
    /// The finding, as a sentence.
    pub finding: &'static str,
    /// Where the paper states it.
    pub place: &'static str,
    /// Scale and kind of languages.
    pub setting: String,
    /// The quantity that tests it.
    pub quantity: &'static str,
    /// The criterion, such as `> 0`.
    pub criterion: String,
    /// `holds`, `fails`, `inconclusive` or `not tested`.
    pub verdict: &'static str,
    /// The quantity with its interval, or the correlation with its p.
    pub strength: String,
}

/// A section with our results.
struct SectionResults<'a> {
    section: &'static ReportSection,
    /// For each claim, a judgement for each setting.
    judgements: Vec<Vec<Judgement>>,
    settings: Vec<SettingResults<'a>>,
}

/// A section in one setting.
struct SettingResults<'a> {
    view: &'a SettingView<'a>,
    exhibits: Vec<CaptionedItem>,
}

impl ReportPage {
    /// The report of all records of a store.
    pub fn of(records: &[Record], texts: &[TextRecord]) -> Self {
        let views = views(records, texts);
        let (filled, empty): (Vec<_>, Vec<_>) = sections::ALL
            .iter()
            .map(|section| fill(section, &views))
            .partition(|filled| !filled.settings.is_empty());
        // The demo has its own laboratory, and is not missing elsewhere.
        let missing =
            empty.iter().map(|filled| filled.section).filter(|section| section.id != "demo");
        let missing: Vec<&ReportSection> = missing.collect();
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

fn fill<'a>(section: &'static ReportSection, views: &'a [SettingView<'a>]) -> SectionResults<'a> {
    let with_numbers: Vec<&SettingView<'_>> =
        views.iter().filter(|view| !view.studies(section.studies).is_empty()).collect();
    let judgements = section.claims.iter().map(|claim| {
        with_numbers.iter().map(|view| judge(claim.criterion, &(claim.measure)(view))).collect()
    });
    let show = |(number, view): (usize, &&'a SettingView<'a>)| {
        let id = format!("{}-{}", section.id, view.setting.slug());
        let mut exhibits = (section.show)(&id, view);
        let shown_before = |exhibit: &CaptionedItem| exhibit.once && number > 0;
        exhibits.retain(|exhibit| !exhibit.is_empty() && !shown_before(exhibit));
        SettingResults { view, exhibits }
    };
    SectionResults {
        section,
        judgements: judgements.collect(),
        settings: with_numbers.iter().enumerate().map(show).collect(),
    }
}

fn figures<'a>(filled: &'a SectionResults<'_>) -> impl Iterator<Item = &'a Figure> {
    filled.settings.iter().flat_map(|shown| &shown.exhibits).filter_map(|exhibit| {
        match &exhibit.content {
            ItemContent::Figure(figure) => Some(figure),
            ItemContent::Table(_) => None,
        }
    })
}

fn findings(filled: &SectionResults<'_>) -> Vec<FindingVerdict> {
    let mut all = Vec::new();
    for (claim, judgements) in filled.section.claims.iter().zip(&filled.judgements) {
        for (judgement, shown) in judgements.iter().zip(&filled.settings) {
            all.push(FindingVerdict {
                section: filled.section.id,
                finding: claim.finding,
                place: claim.place,
                setting: shown.view.setting.to_string(),
                quantity: claim.quantity,
                criterion: finding::printed(claim.criterion),
                verdict: judgement.verdict.name(),
                strength: judgement.strength.clone(),
            });
        }
    }
    all
}

/// The studies that sections need, each once.
fn studies_of(sections: &[&ReportSection]) -> Vec<&'static str> {
    let mut studies: Vec<&str> = Vec::new();
    for study in sections.iter().flat_map(|section| section.studies) {
        if !studies.contains(study) {
            studies.push(study);
        }
    }
    studies
}
