//! Titles and figures that state what was found: a section's title from the verdict on its first claim, and the quantities
//! that all its verdicts rest on, seed by seed.

use super::SectionResults;
use super::exhibit::CaptionedItem;
use super::finding::{Judgement, PaperClaim, Verdict, bounds, printed};
use super::sections::ReportSection;
use crate::draw::{Chart, DotChart, DotMark, DotRow, Figure, ReferenceLine};

/// The setting that a section's title is about: the one with most verdicts on the first claim, of several the largest scale.
pub(super) fn answering(judgements: &[Vec<Vec<Judgement>>]) -> Option<usize> {
    let decided = |lines: &Vec<Judgement>| {
        let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
        (count(Verdict::Holds) + count(Verdict::Fails), count(Verdict::Inconclusive))
    };
    let settings = judgements.first()?;
    (0..settings.len()).max_by_key(|setting| decided(&settings[*setting]))
}

/// The title of a section: what was found, with its numbers. The question where nothing was.
pub(super) fn title(filled: &SectionResults<'_>) -> String {
    let section = filled.section;
    let Some(setting) = filled.answering else {
        let numbers = filled.settings.first().map(|shown| (section.numbers)(shown.view));
        return match numbers.filter(|numbers| !numbers.is_empty()) {
            Some(numbers) => format!("{}: {numbers}", section.title),
            None => section.title.to_owned(),
        };
    };
    let stated = stated(section, &filled.judgements[0][setting]);
    match &*(section.numbers)(filled.settings[setting].view) {
        "" => stated,
        numbers => format!("{stated}: {numbers}"),
    }
}

/// The first claim, as its verdicts have it.
fn stated(section: &ReportSection, lines: &[Judgement]) -> String {
    let finding = section.claims[0].finding;
    let count = |verdict| lines.iter().filter(|line| line.verdict == verdict).count();
    let (holds, fails, all) = (count(Verdict::Holds), count(Verdict::Fails), lines.len());
    match (holds, fails) {
        (0, 0) => {
            let first = lines.first().map_or(Verdict::NotTested, |line| line.verdict);
            let because = match first {
                Verdict::NotMeasured => "not measured here",
                Verdict::NoTest => "no test here",
                Verdict::TwoSeeds | Verdict::OneSeed => "too few seeds for a verdict",
                Verdict::NotTested => return section.title.to_owned(),
                _ => "inconclusive",
            };
            format!("{finding}? {}", capital(because))
        }
        (holds, 0) if holds == all => finding.to_owned(),
        (0, fails) if fails == all => section.fails.to_owned(),
        (holds, 0) => format!("{finding} in {holds} of {all} tests"),
        (0, fails) => format!("{} in {fails} of {all} tests", section.fails),
        (holds, _) => format!("{finding} in {holds} of {all} tests only"),
    }
}

pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The quantities that verdicts rest on, most of them paired differences: a panel for each claim.
pub(super) fn quantities(
    id: &str,
    section: &ReportSection,
    judgements: &[&Vec<Judgement>],
) -> CaptionedItem {
    let charts: Vec<Chart> = section
        .claims
        .iter()
        .zip(judgements)
        .filter_map(|(claim, lines)| quantity(claim, lines))
        .collect();
    let count = |verdict| {
        judgements.iter().copied().flatten().filter(|line| line.verdict == verdict).count()
    };
    let parts = [
        (count(Verdict::Holds), "hold"),
        (count(Verdict::Fails), "fail"),
        (count(Verdict::Inconclusive), "inconclusive"),
        (count(Verdict::NotMeasured), "not measured"),
        (count(Verdict::NoTest), "without a test"),
    ];
    let words: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let title = match words.is_empty() {
        true => "The quantities that are tested".to_owned(),
        false => format!("The quantities that are tested: {}", words.join(", ")),
    };
    CaptionedItem::figure(
        "What the verdicts rest on",
        "Each quantity by seed, most of them paired differences; the dashed line is the bound of the criterion. Adjusted p-values \
         (Benjamini and Hochberg) are in the table above.",
        Figure::of(format!("{id}-tested"), title, &charts),
    )
}

fn quantity(claim: &PaperClaim, lines: &[Judgement]) -> Option<Chart> {
    let row = |line: &Judgement| {
        let mean = line.sample.mean()?;
        let mark = DotMark {
            series: line.verdict.name().to_owned(),
            colour: match line.verdict {
                Verdict::Holds => 2,
                Verdict::Fails => 1,
                Verdict::Inconclusive => 4,
                Verdict::NoTest => 3,
                _ => 6,
            },
            dashed: false,
            seeds: line.sample.values(),
            value: Some(mean.mean),
            interval: mean.interval(),
            paper: None,
        };
        let name =
            if line.of.is_empty() { line.verdict.name().to_owned() } else { line.of.clone() };
        Some(DotRow { name, marks: vec![mark] })
    };
    let rows: Vec<DotRow> = lines.iter().filter_map(row).collect();
    let criterion = printed(claim.criterion);
    let bound = |value| ReferenceLine { name: "bound".to_owned(), value };
    (!rows.is_empty()).then(|| {
        Chart::Dots(DotChart {
            title: claim.finding.to_owned(),
            unit: format!("criterion: {criterion}"),
            rows,
            reach: None,
            references: bounds(claim.criterion).into_iter().map(bound).collect(),
        })
    })
}
