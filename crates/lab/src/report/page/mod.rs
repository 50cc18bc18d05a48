//! The page: HTML that is well-formed XML, with its style sheet inside, no script and nothing to fetch.

mod method;
mod provenance;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::draw::figure::SpaceFigure;
use crate::draw::{self, escaped};
use crate::record::Record;
use crate::report::exhibit::{CaptionedItem, ItemContent};
use crate::report::finding::{Judgement, PaperClaim, Verdict, printed};
use crate::report::own::UserStudy;
use crate::report::sections::ReportSection;
use crate::report::table::{grouped, rows};
use crate::report::{SectionResults, SettingResults, studies_of};

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn page(
    filled: &[SectionResults<'_>],
    own: &[UserStudy<'_>],
    missing: &[&ReportSection],
    records: &[Record],
    spaces: &[SpaceFigure],
) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>Isogloss report</title>\n\
         <style>\n{STYLE}\n{}</style>\n</head>\n<body>\n<main>\n",
        draw::STYLE
    );
    html.extend(spaces.iter().map(SpaceFigure::html));
    opening(&mut html, filled, records);
    contents(&mut html, filled, own);
    for one in filled {
        section(&mut html, one);
    }
    for (number, one) in own.iter().enumerate() {
        own_study(&mut html, number, one);
    }
    not_run(&mut html, missing);
    method::explain(&mut html);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn opening(html: &mut String, filled: &[SectionResults<'_>], records: &[Record]) {
    html.push_str(
        "<header>\n<p class=\"kicker\">Isogloss</p>\n<h1>Cross-lingual structure in masked language models</h1>\n\
         <p class=\"lead\">A masked language model that is pretrained on monolingual text of two languages, without any \
         translations, represents both in one space: fine-tuned on one language, it performs the task in the other. Conneau et \
         al. 2020 ask which conditions this needs; Liu et al. 2020 ask how language identity is represented in that space. This \
         report tests their findings on models trained here.</p>\n",
    );
    tally(html, filled);
    provenance::summary(html, records);
    html.push_str("</header>\n");
    if filled.iter().all(|one| one.section.claims.is_empty()) {
        return;
    }
    html.push_str(
        "<section id=\"findings\">\n<h2>Findings</h2>\n<table class=\"findings\">\n<thead><tr>\
                   <th>Finding</th><th>Paper</th><th>Here</th></tr></thead>\n<tbody>\n",
    );
    for one in filled {
        for (claim, by_setting) in one.section.claims.iter().zip(&one.judgements) {
            let _ = write!(
                html,
                "<tr><th scope=\"row\"><a href=\"#{}\">{}</a><small>{}</small></th><td>{}</td><td>",
                one.section.id,
                escaped(claim.finding),
                escaped(claim.place),
                escaped(&(claim.paper)())
            );
            for (lines, shown) in by_setting.iter().zip(&one.settings) {
                for judgement in lines {
                    let _ = write!(
                        html,
                        "<p>{} <span class=\"strength\">{}</span></p>",
                        chip(judgement.verdict),
                        escaped(&labelled(judgement, &judgement.strength)),
                    );
                }
                let _ = write!(
                    html,
                    "<p><small>{}: {}</small></p>",
                    escaped(&shown.view.setting.to_string()),
                    escaped(claim.quantity)
                );
            }
            html.push_str("</td></tr>\n");
        }
    }
    html.push_str("</tbody>\n</table>\n</section>\n");
}

/// How many findings hold, fail, are inconclusive or not tested.
fn tally(html: &mut String, filled: &[SectionResults<'_>]) {
    let all: Vec<Verdict> = filled
        .iter()
        .flat_map(|one| one.judgements.iter().flatten().flatten())
        .map(|one| one.verdict)
        .collect();
    let count = |verdict| all.iter().filter(|one| **one == verdict).count();
    let tested = all.len() - count(Verdict::NotTested);
    if tested == 0 {
        html.push_str("<p class=\"verdicts\">No finding has been tested yet.</p>\n");
        return;
    }
    html.push_str("<ul class=\"tally\">");
    for kind in Verdict::ALL.into_iter().filter(|kind| count(*kind) > 0) {
        let _ = write!(
            html,
            "<li class=\"{}\"><b>{}</b>{}</li>",
            kind.class(),
            count(kind),
            plural(kind, count(kind))
        );
    }
    html.push_str("</ul>\n");
}

fn plural(verdict: Verdict, count: usize) -> &'static str {
    match verdict {
        Verdict::Holds if count != 1 => "hold",
        Verdict::Fails if count != 1 => "fail",
        other => other.name(),
    }
}

fn contents(html: &mut String, filled: &[SectionResults<'_>], own: &[UserStudy<'_>]) {
    if filled.is_empty() && own.is_empty() {
        return;
    }
    html.push_str("<nav aria-label=\"Sections\"><ol>\n");
    for one in filled {
        let section = one.section;
        let _ =
            writeln!(html, "<li><a href=\"#{}\">{}</a></li>", section.id, escaped(section.title));
    }
    for (number, one) in own.iter().enumerate() {
        let _ = writeln!(html, "<li><a href=\"#own-{number}\">{}</a></li>", escaped(one.name));
    }
    html.push_str("</ol></nav>\n");
}

fn section(html: &mut String, filled: &SectionResults<'_>) {
    let section = filled.section;
    let _ = write!(
        html,
        "<section id=\"{}\">\n<p class=\"place\">{}</p>\n<h2>{}</h2>\n<p class=\"method\">{}</p>\n<ul class=\"sentences\">\n",
        section.id,
        escaped(section.place),
        escaped(section.title),
        escaped(section.method)
    );
    for (claim, by_setting) in section.claims.iter().zip(&filled.judgements) {
        let _ = write!(html, "<li><b>{}.</b>", escaped(claim.finding));
        for (lines, shown) in by_setting.iter().zip(&filled.settings) {
            for judgement in lines {
                let _ = write!(
                    html,
                    "<p>{} {}</p>",
                    chip(judgement.verdict),
                    escaped(&sentence(claim, judgement, shown))
                );
            }
        }
        let _ = writeln!(
            html,
            "<p class=\"paper\">{}: {}.</p></li>",
            escaped(claim.place),
            escaped(&(claim.paper)())
        );
    }
    html.push_str("</ul>\n");
    for shown in &filled.settings {
        setting(html, filled, shown);
    }
    provenance::steps(html, filled);
    html.push_str("</section>\n");
}

/// What a judgement is about, then a text.
fn labelled(judgement: &Judgement, text: &str) -> String {
    match &*judgement.of {
        "" => text.to_owned(),
        of => format!("{of}: {text}"),
    }
}

/// The quantity, its estimate and the criterion.
fn sentence(claim: &PaperClaim, judgement: &Judgement, shown: &SettingResults<'_>) -> String {
    let place = capital(&shown.view.setting.to_string());
    let place = match &*judgement.of {
        "" => place,
        of => format!("{place}, {of}"),
    };
    if judgement.verdict == Verdict::NotTested {
        return format!("{place}: no results.");
    }
    // An estimate is not broken over two lines.
    let strength = judgement.strength.replace(", ", ",\u{a0}").replace(" = ", "\u{a0}=\u{a0}");
    let paper = judgement.paper.as_ref().map_or(String::new(), |paper| format!(" Paper: {paper}."));
    format!(
        "{place}: {}, {strength}. Criterion: {}.{paper}",
        claim.quantity,
        printed(claim.criterion)
    )
}

fn setting(html: &mut String, filled: &SectionResults<'_>, shown: &SettingResults<'_>) {
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
        show(html, exhibit);
    }
}

fn show(html: &mut String, exhibit: &CaptionedItem) {
    let CaptionedItem { place, caption, content, .. } = exhibit;
    let place = &place.text;
    let caption =
        format!("<figcaption><b>{}.</b> {}</figcaption>", escaped(place), escaped(caption));
    match content {
        ItemContent::Figure(figure) => {
            let _ = writeln!(
                html,
                "<figure id=\"{}\"{}><h4>{}</h4>\n<div class=\"drawing\">{}</div>{caption}</figure>",
                figure.id,
                // One panel leaves space for its caption beside it.
                if figure.panels.len() == 1 { " class=\"one\"" } else { "" },
                escaped(&figure.title),
                figure.html()
            );
        }
        ItemContent::Table(table) => {
            let _ = writeln!(
                html,
                "<figure class=\"tabular\">{caption}<div class=\"scroll\" tabindex=\"0\" role=\"group\" \
                 aria-label=\"{}\">{}</div></figure>",
                escaped(place),
                rows(table)
            );
        }
    }
}

/// A study that no section is about: its results, without findings.
fn own_study(html: &mut String, number: usize, own: &UserStudy<'_>) {
    let name = escaped(own.name);
    let _ = write!(
        html,
        "<section id=\"own-{number}\">\n<p class=\"place\">Own study</p>\n<h2>{name}</h2>\n\
         <p class=\"method\">Means over seeds. No finding of the papers is tested.</p>\n\
         <figure class=\"tabular\"><div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{name}\">{}</div></figure>\n",
        rows(&own.table)
    );
    if own.left_out > 0 {
        let _ = writeln!(
            html,
            "<p>{} more: <code>isogloss results --study {name} --mean</code>.</p>",
            grouped(own.left_out as f64)
        );
    }
    html.push_str("</section>\n");
}

fn not_run(html: &mut String, missing: &[&ReportSection]) {
    let studies = studies_of(missing);
    if studies.is_empty() {
        return;
    }
    html.push_str("<section id=\"not-run\">\n<h2>Not run</h2>\n<ul class=\"missing\">\n");
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
    html.push_str("</ul>\n</section>\n");
}

fn chip(verdict: Verdict) -> String {
    format!("<span class=\"chip {}\">{}</span>", verdict.class(), verdict.name())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
