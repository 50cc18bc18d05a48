//! The report: one self-contained page, made of nothing but the records in the store.
//!
//! `sections` has the questions and claims of the papers, `finding` the criteria by which a claim holds or fails, `data` the
//! records as sections select them, `overlap` which score counts where test sets share items with training, `own` the studies that
//! no section is about, `answer` titles that state findings, `opening` the first screen, `page` the HTML.

mod answer;
mod claims;
mod data;
mod exhibit;
mod finding;
mod left_out;
mod observations;
mod opening;
mod overlap;
mod own;
mod page;
mod sections;
mod table;
mod tokens;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::demo::DemoRow;
use crate::draw::Figure;
use crate::draw::figure::SpaceFigure;
use crate::papers::PaperItem;
use crate::record::{Record, TextRecord};
use crate::study::Study;

pub use self::claims::{Bound, Claim, ClaimControl, Each, Levels, Value};
use self::data::{ReportSetting, SettingView, views};
use self::exhibit::{CaptionedItem, ItemContent};
use self::finding::{ClaimLine, Evidence, Judgement, PaperClaim, assess, judge};
use self::sections::ReportSection;

#[derive(Debug)]
pub struct ReportPage {
    pub html: String,
    pub figures: Vec<Figure>,
    pub findings: Vec<FindingVerdict>,
    /// The tables and figures of the papers that it shows.
    pub items: Vec<&'static PaperItem>,
    pub missing: Vec<&'static str>,
}

/// Whether a finding of a paper holds in one setting: one line of it, where the paper speaks of several tasks or pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingVerdict {
    pub section: &'static str,
    pub finding: &'static str,
    /// The task, pair or model that this line is about; empty where there is one line.
    pub of: String,
    pub place: &'static str,
    /// The paper's own number of this line, or its numbers in all.
    pub paper: String,
    /// Scale and kind of languages.
    pub setting: String,
    pub quantity: &'static str,
    /// The criterion, such as `> 0`.
    pub criterion: String,
    /// `holds`, `fails`, `inconclusive`, `not measured` (an untrained encoder does as well), `no test` (seeds have no spread, or
    /// units are too few to permute), `two seeds`, `one seed` or `not tested`.
    pub verdict: &'static str,
    /// The quantity with its interval, or the correlation with its p; the untrained encoder's beside it.
    pub strength: String,
    /// The two-sided p-value, adjusted for all lines of the setting.
    pub q: Option<f64>,
}

/// The setting of a record in words, where it names a language: `tiny, invented languages`.
pub(crate) fn setting_of(record: &Record) -> Option<String> {
    ReportSetting::of(record).map(|setting| setting.to_string())
}

struct SectionResults<'a> {
    section: &'static ReportSection,
    /// For each claim and each setting, a judgement for each line.
    judgements: Vec<Vec<Vec<Judgement>>>,
    settings: Vec<SettingResults<'a>>,
    /// The setting that the title is about.
    answering: Option<usize>,
}

struct SettingResults<'a> {
    view: &'a SettingView<'a>,
    exhibits: Vec<CaptionedItem>,
}

impl ReportPage {
    pub fn of(records: &[Record], texts: &[TextRecord]) -> Self {
        Self::with(records, texts, &[], &[])
    }

    /// The same, opened by pictures of representation spaces, and with verdicts on the claims that some studies' files have.
    pub fn with(
        records: &[Record],
        texts: &[TextRecord],
        spaces: &[SpaceFigure],
        files: &[Study],
    ) -> Self {
        let counted = overlap::counted(records);
        let views = views(&counted, texts);
        let judged = all_judged(&views);
        let (filled, empty): (Vec<_>, Vec<_>) = sections::ALL
            .iter()
            .map(|section| fill(section, &views, &judged))
            .partition(|filled| !filled.settings.is_empty());
        // The demo has its own laboratory, and is not missing elsewhere.
        let missing =
            empty.iter().map(|filled| filled.section).filter(|section| section.id != "demo");
        let missing: Vec<&ReportSection> = missing.collect();
        let own = own::studies(&counted, &views, files);
        let opening = page::PageOpening {
            headline: opening::headline(&views),
            spaces: match spaces {
                [] => opening_figure(&views).into_iter().collect(),
                spaces => spaces.to_vec(),
            },
        };
        let mut all: Vec<Figure> =
            opening.spaces.iter().map(|space| space.figure.clone()).collect();
        all.extend(drawings(&filled, &own));
        Self {
            html: page::page(&opening, &filled, &own, &missing, &counted),
            figures: all,
            findings: listed(&sections::ALL, &views, &judged)
                .into_iter()
                .chain(own.iter().filter_map(|study| study.tested.as_ref()).flat_map(of_own))
                .collect(),
            items: filled.iter().flat_map(items).collect(),
            missing: studies_of(&missing),
        }
    }
}

/// The rows of the demo's closing table, as the report computes them for its figure, and the layer that they are of.
pub(crate) fn demo_rows(records: &[Record]) -> (Vec<DemoRow>, String) {
    let row = |measure: &sections::DemoMeasure| {
        let [trained, untrained] = measure.systems.each_ref().map(|sample| sample.mean());
        DemoRow {
            measure: measure.name.clone(),
            chance: measure.chance,
            untrained: untrained.map(|mean| mean.mean),
            trained: trained.map(|mean| mean.mean),
        }
    };
    let counted = overlap::counted(records);
    let views = views(&counted, &[]);
    let rows = |view| sections::demo_measures(view).iter().map(row).collect();
    views.first().map_or_else(Default::default, |view| (rows(view), sections::demo_layer(view)))
}

/// The figures of all sections and of one's own studies, without the page around them, which takes longer.
pub fn study_figures(records: &[Record], texts: &[TextRecord]) -> Vec<Figure> {
    let counted = overlap::counted(records);
    let views = views(&counted, texts);
    let judged = all_judged(&views);
    let filled = sections::ALL.iter().map(|section| fill(section, &views, &judged));
    let filled: Vec<SectionResults<'_>> = filled.collect();
    drawings(&filled, &own::studies(&counted, &views, &[]))
}

/// The figures that sections and one's own studies have.
fn drawings(filled: &[SectionResults<'_>], own: &[own::UserStudy<'_>]) -> Vec<Figure> {
    let of_sections = filled.iter().flat_map(figures).cloned();
    let tested = own.iter().filter_map(|study| study.tested.as_ref()).flat_map(figures).cloned();
    let all = of_sections.chain(own.iter().map(|study| study.figure.clone())).chain(tested);
    all.filter(|figure| !figure.panels.is_empty()).collect()
}

/// The studies of the papers that have no results.
pub fn missing_studies(records: &[Record], texts: &[TextRecord]) -> Vec<&'static str> {
    let views = views(records, texts);
    let empty = sections::ALL.iter().filter(|section| {
        section.id != "demo" && views.iter().all(|view| view.studies(section.studies).is_empty())
    });
    studies_of(&empty.copied().collect::<Vec<_>>())
}

/// The paper's central table against ours or, without its conditions, what one encoder shares.
fn opening_figure(views: &[SettingView<'_>]) -> Option<SpaceFigure> {
    let of = |figure: Option<Figure>, caption: &str| {
        figure.map(|figure| SpaceFigure { figure, caption: caption.to_owned() })
    };
    of(sections::against_paper(views), AGAINST).or_else(|| of(opening::figure(views), OPENING))
}

/// The caption of the figure that compares conditions with the paper's.
const AGAINST: &str = "Zero-shot transfer above chance under each condition of Conneau et al. 2020, Table 1, as a share of the default\u{2019}s: of a \
                       task the ratio of the means over seeds, of all tasks the mean of these ratios, with 95 % intervals. A diamond is the \
                       paper\u{2019}s share (of the same language, or of its mean over three).";

/// The caption of the opening figure.
const OPENING: &str = "A bilingual encoder beside an untrained one of the same architecture: sentence retrieval between the languages \
                       at the layer where the trained one's raw retrieval is best, and tasks learned from labels of one language alone. The dashed line is chance.";

/// The judgements of one setting, by section and number of the claim.
type SettingJudgements = BTreeMap<(&'static str, usize), Vec<Judgement>>;

fn all_judged(views: &[SettingView<'_>]) -> Vec<SettingJudgements> {
    views.iter().map(|view| judged(view, &sections::ALL)).collect()
}

/// Judges all claims of some sections in a setting together: the correction for many tests is over all of them.
fn judged(view: &SettingView<'_>, sections: &[&'static ReportSection]) -> SettingJudgements {
    let (mut places, mut lines) = (Vec::new(), Vec::new());
    let measured = sections.iter().filter(|one| !view.studies(one.studies).is_empty());
    for section in measured {
        for (number, claim) in section.claims.iter().enumerate() {
            let mut own = (claim.measure)(view);
            if own.is_empty() {
                own.push(ClaimLine::new("", Evidence::Nothing));
            }
            for line in own {
                places.push((section.id, number));
                lines.push(assess(claim.criterion, line));
            }
        }
    }
    let mut judged = SettingJudgements::new();
    for (place, judgement) in places.into_iter().zip(judge(lines)) {
        judged.entry(place).or_default().push(judgement);
    }
    judged
}

fn fill<'a>(
    section: &'static ReportSection,
    views: &'a [SettingView<'a>],
    judged: &[SettingJudgements],
) -> SectionResults<'a> {
    let (with_numbers, judged): (Vec<&SettingView<'_>>, Vec<&SettingJudgements>) = views
        .iter()
        .zip(judged)
        .filter(|(view, _)| !view.studies(section.studies).is_empty())
        .unzip();
    let judgements = (0..section.claims.len()).map(|number| {
        judged.iter().map(|of_setting| of_setting[&(section.id, number)].clone()).collect()
    });
    let judgements: Vec<Vec<Vec<Judgement>>> = judgements.collect();
    let show = |(number, view): (usize, &&'a SettingView<'a>)| {
        let id = format!("{}-{}", section.id, view.setting.slug());
        let mut exhibits = (section.show)(&id, view);
        let own: Vec<&Vec<Judgement>> = judgements.iter().map(|claim| &claim[number]).collect();
        exhibits.push(answer::quantities(&id, section, &own));
        let data = view.studies(section.studies);
        exhibits.extend([overlap::exhibit(&data), left_out::exhibit(&data)]);
        let shown_before = |exhibit: &CaptionedItem| exhibit.once && number > 0;
        exhibits.retain(|exhibit| !exhibit.is_empty() && !shown_before(exhibit));
        SettingResults { view, exhibits }
    };
    let settings = with_numbers.iter().enumerate().map(show).collect();
    let answering = answer::answering(&judgements);
    SectionResults { section, judgements, settings, answering }
}

fn figures<'a>(filled: &'a SectionResults<'_>) -> impl Iterator<Item = &'a Figure> {
    filled.settings.iter().flat_map(|shown| &shown.exhibits).filter_map(|exhibit| {
        match &exhibit.content {
            ItemContent::Figure(figure) => Some(figure),
            ItemContent::Table(_) | ItemContent::Sentences(_) => None,
        }
    })
}

/// The items of the papers that a section shows.
fn items(filled: &SectionResults<'_>) -> impl Iterator<Item = &'static PaperItem> {
    let exhibits = filled.settings.iter().flat_map(|shown| &shown.exhibits);
    exhibits.flat_map(|exhibit| exhibit.place.items.iter().copied())
}

/// The verdicts on all findings of the papers that some records bear on, section by section.
pub fn verdicts(records: &[Record], texts: &[TextRecord]) -> Vec<FindingVerdict> {
    let counted = overlap::counted(records);
    let views = views(&counted, texts);
    let judged = all_judged(&views);
    listed(&sections::ALL, &views, &judged)
}

fn listed(
    sections: &[&'static ReportSection],
    views: &[SettingView<'_>],
    judged: &[SettingJudgements],
) -> Vec<FindingVerdict> {
    let mut all = Vec::new();
    for section in sections {
        for (number, claim) in section.claims.iter().enumerate() {
            for (view, of_setting) in views.iter().zip(judged) {
                let lines = of_setting.get(&(section.id, number)).into_iter().flatten();
                all.extend(lines.map(|line| verdict(section.id, claim, view, line)));
            }
        }
    }
    all
}

/// The verdicts on a study's own claims, which are listed by its name.
fn of_own(tested: &SectionResults<'_>) -> Vec<FindingVerdict> {
    let mut all = Vec::new();
    for (claim, settings) in tested.section.claims.iter().zip(&tested.judgements) {
        for (shown, lines) in tested.settings.iter().zip(settings) {
            let study = tested.section.studies[0];
            all.extend(lines.iter().map(|line| verdict(study, claim, shown.view, line)));
        }
    }
    all
}

fn verdict(
    section: &'static str,
    claim: &PaperClaim,
    view: &SettingView<'_>,
    line: &Judgement,
) -> FindingVerdict {
    FindingVerdict {
        section,
        finding: claim.finding,
        of: line.of.clone(),
        place: claim.place,
        paper: line.paper.clone().unwrap_or_else(claim.paper),
        setting: view.setting.to_string(),
        quantity: claim.quantity,
        criterion: finding::printed(claim.criterion),
        verdict: line.verdict.name(),
        strength: line.strength.clone(),
        q: line.q,
    }
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
