//! The page: HTML that is well-formed XML, with its style sheet and its files inside and nothing to fetch.
//!
//! It opens with the result and a figure, then a matrix of verdicts, then a section for each question. Every figure has a number,
//! an address within the page, and itself as SVG, PDF and CSV. All of it can be read without the script (`page.js`), which
//! saves files, marks the section that is read, and says of tables whether they can be scrolled.

mod figures;
mod matrix;
mod method;
mod provenance;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use self::figures::ItemNumbers;
use crate::draw::figure::SpaceFigure;
use crate::draw::{self, escaped};
use crate::record::Record;
use crate::report::answer::{self, capital};
use crate::report::finding::{Judgement, PaperClaim, Verdict, printed};
use crate::report::opening::Headline;
use crate::report::own::UserStudy;
use crate::report::sections::ReportSection;
use crate::report::table::grouped;
use crate::report::{SectionResults, SettingResults, overlap, studies_of};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The first screen.
pub(super) struct PageOpening {
    pub(super) headline: Option<Headline>,
    /// Pictures of spaces; the first is the one below the headline.
    pub(super) spaces: Vec<SpaceFigure>,
}

/// The whole page.
pub(super) fn page(
    opening: &PageOpening,
    filled: &[SectionResults<'_>],
    own: &[UserStudy<'_>],
    missing: &[&ReportSection],
    records: &[Record],
) -> String {
    let mut numbers = ItemNumbers::default();
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>{}</title>\n\
         <style>\n{STYLE}\n{}</style>\n<noscript><style>.files {{ display: none; }}</style></noscript>\n</head>\n<body>\n<a class=\"skip\" href=\"#main\">To the findings</a>\n",
        escaped(opening.headline.as_ref().map_or("Isogloss report", |headline| &headline.text)),
        draw::STYLE
    );
    head(&mut html, opening, (filled, own), &mut numbers);
    html.push_str("<div class=\"frame\">\n");
    contents(&mut html, opening, filled, own);
    html.push_str("<main id=\"main\">\n");
    spaces(&mut html, opening, &mut numbers);
    matrix::show(&mut html, filled);
    for one in filled {
        section(&mut html, one, &mut numbers);
    }
    for (number, one) in own.iter().enumerate() {
        own_study(&mut html, number, one, &mut numbers);
    }
    not_run(&mut html, missing);
    method::explain(&mut html, overlap::remark(records));
    provenance::summary(&mut html, records);
    let _ = write!(html, "</main>\n</div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

/// Headline, tally, figure: what a reader sees first.
fn head(
    html: &mut String,
    opening: &PageOpening,
    (filled, own): (&[SectionResults<'_>], &[UserStudy<'_>]),
    numbers: &mut ItemNumbers,
) {
    html.push_str("<header>\n<p class=\"kicker\">Isogloss: cross-lingual structure in masked language models</p>\n");
    match &opening.headline {
        Some(Headline { text, details }) => {
            let _ = writeln!(
                html,
                "<h1>{}</h1>\n<p class=\"lead\">{} {}</p>",
                escaped(text),
                escaped(details),
                tally(filled, own)
            );
        }
        None => {
            let _ = writeln!(
                html,
                "<h1>Which findings of two papers hold on models trained here</h1>\n<p class=\"lead\">{}</p>",
                tally(filled, own)
            );
        }
    }
    if let Some(SpaceFigure { figure, caption }) = opening.spaces.first() {
        figures::figure(html, ("h2", figure), "", caption, numbers);
    }
    html.push_str("</header>\n");
}

/// The other pictures of the space.
fn spaces(html: &mut String, opening: &PageOpening, numbers: &mut ItemNumbers) {
    let Some(others) = opening.spaces.get(1..).filter(|others| !others.is_empty()) else { return };
    html.push_str("<section id=\"space\">\n<h2>The space, layer by layer and shifted</h2>\n");
    for SpaceFigure { figure, caption } in others {
        figures::figure(html, ("h3", figure), "", caption, numbers);
    }
    html.push_str("</section>\n");
}

/// How many findings hold, fail, are inconclusive or not tested, in a sentence.
fn tally(filled: &[SectionResults<'_>], own: &[UserStudy<'_>]) -> String {
    let all: Vec<Verdict> = filled
        .iter()
        .flat_map(|one| one.judgements.iter().flatten().flatten())
        .map(|one| one.verdict)
        .collect();
    let count = |verdict| all.iter().filter(|one| **one == verdict).count();
    if all.len() == count(Verdict::NotTested) {
        let tested = own.iter().any(|one| one.tested.is_some());
        return match filled.iter().any(|one| !one.section.claims.is_empty())
            || filled.is_empty() && !tested
        {
            true => "No finding has been tested yet.".to_owned(),
            false => String::new(),
        };
    }
    let shown = Verdict::ALL.into_iter().filter(|kind| count(*kind) > 0);
    let shown: Vec<String> = shown
        .map(|kind| {
            format!(
                "<b class=\"{}\">{}\u{a0}{}</b>",
                kind.class(),
                count(kind),
                plural(kind, count(kind))
            )
        })
        .collect();
    format!(
        "Of <a href=\"#findings\">{} tests</a> of two papers\u{2019} findings: {}.",
        all.len(),
        shown.join(", ")
    )
}

fn plural(verdict: Verdict, count: usize) -> &'static str {
    match verdict {
        Verdict::Holds if count != 1 => "hold",
        Verdict::Fails if count != 1 => "fail",
        Verdict::NoTest => "without a test",
        other => other.name(),
    }
}

/// A section's name in the column of contents: its study's.
fn short_name(section: &ReportSection) -> String {
    capital(&section.id.replace('-', " "))
}

fn contents(
    html: &mut String,
    opening: &PageOpening,
    filled: &[SectionResults<'_>],
    own: &[UserStudy<'_>],
) {
    html.push_str("<nav aria-label=\"Contents\"><ol>\n");
    if opening.spaces.len() > 1 {
        html.push_str("<li><a href=\"#space\">The space</a></li>\n");
    }
    if filled.iter().any(|one| !one.section.claims.is_empty()) {
        html.push_str("<li><a href=\"#findings\">All findings</a></li>\n");
    }
    for one in filled {
        let section = one.section;
        let lines = one.judgements.iter().flatten().flatten();
        let signs: String = Verdict::ALL[..2]
            .iter()
            .filter_map(|kind| {
                let count = lines.clone().filter(|line| line.verdict == *kind).count();
                (count > 0).then(|| {
                    format!(" <span class=\"{}\">{}{count}</span>", kind.class(), kind.sign())
                })
            })
            .collect();
        let _ = writeln!(
            html,
            "<li><a href=\"#{}\">{}</a>{signs}</li>",
            section.id,
            escaped(&short_name(section))
        );
    }
    for (number, one) in own.iter().enumerate() {
        let _ = writeln!(html, "<li><a href=\"#own-{number}\">{}</a></li>", escaped(one.name));
    }
    html.push_str("<li><a href=\"#method\">Method</a></li>\n</ol></nav>\n");
}

fn section(html: &mut String, filled: &SectionResults<'_>, numbers: &mut ItemNumbers) {
    let section = filled.section;
    let _ = write!(
        html,
        "<section id=\"{}\">\n<p class=\"place\">{} · {}</p>\n<h2>{}</h2>\n",
        section.id,
        escaped(section.title),
        escaped(section.place),
        escaped(&answer::title(filled))
    );
    if let Some(setting) = filled.answering {
        answered(html, filled, setting);
    }
    let _ = writeln!(html, "<p class=\"method\">{}</p>", escaped(section.method));
    claims(html, filled);
    for shown in &filled.settings {
        setting(html, filled, shown, numbers);
    }
    provenance::steps(html, filled);
    html.push_str("</section>\n");
}

/// The answer to a section's question in one line: the quantity here, and in the paper.
fn answered(html: &mut String, filled: &SectionResults<'_>, setting: usize) {
    let (claim, lines) = (&filled.section.claims[0], &filled.judgements[0][setting]);
    // The line that the title rests on: one that is decided, where there is one.
    let decided = |line: &&Judgement| matches!(line.verdict, Verdict::Holds | Verdict::Fails);
    let tested = |line: &&Judgement| line.verdict != Verdict::NotTested;
    let Some(line) = lines.iter().find(decided).or_else(|| lines.iter().find(tested)) else {
        return;
    };
    let paper = line.paper.clone().unwrap_or_else(claim.paper);
    let _ = writeln!(
        html,
        "<p class=\"answer\">{} Here ({}): {}, {}. In the paper: {}.</p>",
        chip(line.verdict),
        escaped(&filled.settings[setting].view.setting.to_string()),
        escaped(claim.quantity),
        unbroken(&labelled(line, &line.strength)),
        escaped(&paper)
    );
}

/// The claims of a section as a table: verdict, estimate, criterion, the paper.
fn claims(html: &mut String, filled: &SectionResults<'_>) {
    if filled.section.claims.is_empty() {
        return;
    }
    html.push_str(
        "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Findings of this section\"><table class=\"claims\">\n\
         <thead><tr><th scope=\"col\">Finding and quantity</th><th scope=\"col\">Verdict and estimate</th>\
         <th scope=\"col\">Criterion</th><th scope=\"col\">Paper</th></tr></thead>\n<tbody>\n",
    );
    for (number, (claim, by_setting)) in
        filled.section.claims.iter().zip(&filled.judgements).enumerate()
    {
        let _ = write!(
            html,
            "<tr id=\"{}-{}\"><th scope=\"row\">{}<small>{}</small></th><td>",
            filled.section.id,
            number + 1,
            escaped(claim.finding),
            escaped(&capital(claim.quantity))
        );
        for (lines, shown) in by_setting.iter().zip(&filled.settings) {
            if filled.settings.len() > 1 {
                let _ = write!(
                    html,
                    "<p><small>{}</small></p>",
                    escaped(&shown.view.setting.to_string())
                );
            }
            for judgement in lines {
                let _ = write!(html, "<p>{}</p>", estimate(judgement));
            }
        }
        let _ = writeln!(
            html,
            "</td><td>{}</td><td>{}<small>{}</small></td></tr>",
            escaped(&printed(claim.criterion)),
            escaped(&paper(claim, by_setting)),
            escaped(claim.place)
        );
    }
    html.push_str("</tbody></table></div>\n");
}

fn paper(claim: &PaperClaim, by_setting: &[Vec<Judgement>]) -> String {
    let own: Vec<String> = by_setting
        .iter()
        .flatten()
        .filter_map(|line| Some(format!("{}: {}", line.of, line.paper.as_ref()?)))
        .collect();
    match own.is_empty() {
        true => (claim.paper)(),
        false => format!("{}; {}", (claim.paper)(), own.join(", ")),
    }
}

/// A verdict, its estimate with the interval, and on a line of their own seeds, p-values and controls.
fn estimate(judgement: &Judgement) -> String {
    let chip = chip(judgement.verdict);
    if judgement.verdict == Verdict::NotTested {
        return format!("{chip} no results");
    }
    let strength = &*judgement.strength;
    let end = strength.find(", n =").or_else(|| strength.find("; ")).unwrap_or(strength.len());
    let (main, rest) = strength.split_at(end);
    let rest = rest.trim_start_matches([',', ';', ' ']);
    let small = match rest {
        "" => String::new(),
        rest => format!("<small>{}</small>", unbroken(rest)),
    };
    format!("{chip} <span>{}</span>{small}", unbroken(&labelled(judgement, main)))
}

/// An estimate that is not broken over two lines but after its semicolons.
fn unbroken(strength: &str) -> String {
    escaped(&strength.replace(", ", ",\u{a0}").replace(" = ", "\u{a0}=\u{a0}"))
}

/// What a judgement is about, then a text.
fn labelled(judgement: &Judgement, text: &str) -> String {
    match &*judgement.of {
        "" => text.to_owned(),
        of => format!("{of}: {text}"),
    }
}

fn setting(
    html: &mut String,
    filled: &SectionResults<'_>,
    shown: &SettingResults<'_>,
    numbers: &mut ItemNumbers,
) {
    let data = shown.view.studies(filled.section.studies);
    let seeds: BTreeSet<u64> = data.records.iter().map(|record| record.origin.seed).collect();
    let count = match seeds.len() {
        1 => "one seed, no intervals".to_owned(),
        n => format!("{n} seeds"),
    };
    let _ = writeln!(
        html,
        "<h3>{} <small>{count}</small></h3>",
        escaped(&capital(&shown.view.setting.to_string()))
    );
    for exhibit in &shown.exhibits {
        figures::exhibit(html, exhibit, numbers);
    }
}

/// A study that no section is about: its claims, where its file has some, and its results.
fn own_study(html: &mut String, number: usize, own: &UserStudy<'_>, numbers: &mut ItemNumbers) {
    let name = escaped(own.name);
    let _ = write!(
        html,
        "<section id=\"own-{number}\">\n<p class=\"place\">Own study</p>\n<h2>{name}</h2>\n\
         <p class=\"method\">{}</p>\n",
        match own.tested {
            Some(_) =>
                "The claims of the study\u{2019}s own file, tested together; below them means over seeds.",
            None => "Means over seeds. No finding of the papers is tested.",
        }
    );
    if let Some(tested) = &own.tested {
        claims(html, tested);
        for shown in &tested.settings {
            setting(html, tested, shown, numbers);
        }
    }
    if !own.figure.panels.is_empty() {
        let caption =
            "Each measure over the factor with most levels; other factors are averaged over.";
        figures::figure(html, ("h3", &own.figure), "", caption, numbers);
    }
    figures::table(html, &own.table, own.name, "Means over seeds, by all factors.", numbers);
    if own.left_out > 0 {
        let _ = writeln!(
            html,
            "<p>{} more: <code>isogloss results --study {name} --mean</code>.</p>",
            grouped(own.left_out as f64)
        );
    }
    html.push_str("</section>\n");
}

/// What could be run, for those who want to.
fn not_run(html: &mut String, missing: &[&ReportSection]) {
    let studies = studies_of(missing);
    if studies.is_empty() {
        return;
    }
    let _ = writeln!(
        html,
        "<section id=\"not-run\">\n<details><summary>{} {} not run here: {}</summary>\n<ul class=\"missing\">",
        studies.len(),
        if studies.len() == 1 { "study was" } else { "studies were" },
        escaped(&studies.join(", "))
    );
    for study in studies {
        // The section of this study alone, rather than one that joins several.
        let about = missing
            .iter()
            .filter(|section| section.studies.contains(&study))
            .min_by_key(|section| section.studies.len());
        let (title, place) = about.map_or(("", ""), |section| (section.title, section.place));
        let _ = writeln!(
            html,
            "<li><b>{}</b> {} <small>{}</small><code>isogloss study run {} --scale tiny</code></li>",
            escaped(study),
            escaped(title),
            escaped(place),
            escaped(study)
        );
    }
    html.push_str("</ul></details>\n</section>\n");
}

fn chip(verdict: Verdict) -> String {
    format!("<span class=\"chip {}\">{}</span>", verdict.class(), verdict.name())
}
