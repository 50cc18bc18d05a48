//! The page: HTML with its style within, well-formed as XML is, with no script and nothing to fetch.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::exhibit::{CaptionedItem, ItemContent};
use super::finding::{Judgement, PaperClaim, Verdict, printed};
use super::own::UserStudy;
use super::sections::ReportSection;
use super::table::{grouped, rows};
use super::{SectionResults, SettingResults, studies_of};
use crate::draw::{self, escaped};
use crate::record::{Origin, Record};

const STYLE: &str = include_str!("page.css");

/// The whole page.
pub(super) fn page(
    filled: &[SectionResults<'_>],
    own: &[UserStudy<'_>],
    missing: &[&ReportSection],
    records: &[Record],
) -> String {
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<title>Isogloss report</title>\n\
         <style>\n{STYLE}\n{}</style>\n</head>\n<body>\n<main>\n",
        draw::STYLE
    );
    opening(&mut html, filled, records);
    contents(&mut html, filled, own);
    for one in filled {
        section(&mut html, one);
    }
    for (number, one) in own.iter().enumerate() {
        own_study(&mut html, number, one);
    }
    not_run(&mut html, missing);
    reading(&mut html);
    html.push_str("</main>\n</body>\n</html>\n");
    html
}

fn opening(html: &mut String, filled: &[SectionResults<'_>], records: &[Record]) {
    html.push_str(
        "<header>\n<p class=\"kicker\">Isogloss</p>\n<h1>Why do languages meet in one space?</h1>\n\
         <p class=\"lead\">A masked language model learns to fill gaps in plain text. Train one on text of two languages, \
         never telling it which sentence translates which, and the two end up in one shared space: what it is taught in \
         one language it can do in the other. Two papers asked why, what is left of each language in that space, and what \
         that is good for. This report puts their findings to the test on models of our own.</p>\n",
    );
    tally(html, filled);
    provenance(html, records);
    html.push_str("</header>\n");
    if filled.iter().all(|one| one.section.claims.is_empty()) {
        return;
    }
    html.push_str(
        "<section id=\"findings\">\n<h2>What came out</h2>\n<table class=\"findings\">\n<thead><tr>\
                   <th>Finding</th><th>The paper</th><th>Here</th></tr></thead>\n<tbody>\n",
    );
    for one in filled {
        for (claim, judgements) in one.section.claims.iter().zip(&one.judgements) {
            let _ = write!(
                html,
                "<tr><th scope=\"row\"><a href=\"#{}\">{}</a><small>{}</small></th><td>{}</td><td>",
                one.section.id,
                escaped(claim.finding),
                escaped(claim.place),
                escaped(&(claim.paper)())
            );
            for (judgement, shown) in judgements.iter().zip(&one.settings) {
                let _ = write!(
                    html,
                    "<p>{} <span class=\"strength\">{}</span><small>{}: {}</small></p>",
                    chip(judgement.verdict),
                    escaped(&judgement.strength),
                    escaped(&shown.view.setting.to_string()),
                    escaped(claim.quantity)
                );
            }
            html.push_str("</td></tr>\n");
        }
    }
    html.push_str("</tbody>\n</table>\n</section>\n");
}

/// How many findings hold, in one sentence and one bar.
fn tally(html: &mut String, filled: &[SectionResults<'_>]) {
    let all: Vec<Verdict> = filled
        .iter()
        .flat_map(|one| one.judgements.iter().flatten())
        .map(|one| one.verdict)
        .collect();
    let count = |verdict| all.iter().filter(|one| **one == verdict).count();
    let kinds = [Verdict::Holds, Verdict::Fails, Verdict::Inconclusive, Verdict::NotTested];
    let tested = all.len() - count(Verdict::NotTested);
    if tested == 0 {
        html.push_str("<p class=\"verdicts\">No finding has been tested yet.</p>\n");
        return;
    }
    html.push_str("<ul class=\"tally\">");
    for kind in kinds.into_iter().filter(|kind| count(*kind) > 0) {
        let _ = write!(
            html,
            "<li class=\"{}\"><b>{}</b>{}</li>",
            kind.class(),
            count(kind),
            if kind == Verdict::Fails && count(kind) != 1 {
                "do not hold"
            } else {
                plural(kind, count(kind))
            }
        );
    }
    html.push_str("</ul>\n");
}

fn plural(verdict: Verdict, count: usize) -> &'static str {
    match verdict {
        Verdict::Holds if count != 1 => "findings hold",
        Verdict::Holds => "finding holds",
        Verdict::Fails => "does not hold",
        Verdict::Inconclusive => "too noisy to say",
        Verdict::NotTested => "not measured",
    }
}

fn provenance(html: &mut String, records: &[Record]) {
    let Some(last) = records.iter().map(|record| record.origin.finished_at).max() else { return };
    let seeds: BTreeSet<u64> = records.iter().map(|record| record.origin.seed).collect();
    let versions: BTreeSet<&str> = records.iter().map(|record| &*record.origin.build).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    let _ = writeln!(
        html,
        "<p class=\"about\">From {} numbers, {} {}, Isogloss {}; the last was made on {}.</p>",
        grouped(records.len() as f64),
        seeds.len(),
        if seeds.len() == 1 { "seed" } else { "seeds" },
        escaped(&versions.join(", ")),
        date(last)
    );
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
        "<section id=\"{}\">\n<p class=\"place\">{}</p>\n<h2>{}</h2>\n<p class=\"asks\">{}</p>\n<ul class=\"sentences\">\n",
        section.id,
        escaped(section.place),
        escaped(section.title),
        escaped(section.asks)
    );
    for (claim, judgements) in section.claims.iter().zip(&filled.judgements) {
        let _ = write!(html, "<li><b>{}.</b>", escaped(claim.finding));
        for (judgement, shown) in judgements.iter().zip(&filled.settings) {
            let _ = write!(
                html,
                "<p>{} {}</p>",
                chip(judgement.verdict),
                escaped(&sentence(claim, judgement, shown))
            );
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
    origins(html, filled);
    html.push_str("</section>\n");
}

/// Whether the finding holds here and how strongly, in plain words.
fn sentence(claim: &PaperClaim, judgement: &Judgement, shown: &SettingResults<'_>) -> String {
    let place = capital(&shown.view.setting.to_string());
    if judgement.verdict == Verdict::NotTested {
        return format!("{place}: there are no numbers for it.");
    }
    // What belongs together is not broken over two lines.
    let strength = judgement.strength.replace(", ", ",\u{a0}").replace(" = ", "\u{a0}=\u{a0}");
    format!(
        "{place}: {}, {strength}. The finding wants it {}.",
        claim.quantity,
        printed(claim.criterion)
    )
}

fn setting(html: &mut String, filled: &SectionResults<'_>, shown: &SettingResults<'_>) {
    let data = shown.view.studies(filled.section.studies);
    let seeds: BTreeSet<u64> = data.records.iter().map(|record| record.origin.seed).collect();
    let count = match seeds.len() {
        1 => "one seed only, and so no intervals".to_owned(),
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
    let caption =
        format!("<figcaption><b>{}.</b> {}</figcaption>", escaped(place), escaped(caption));
    match content {
        ItemContent::Figure(figure) => {
            let _ = writeln!(
                html,
                "<figure id=\"{}\"{}><h4>{}</h4>\n<div class=\"drawing\">{}</div>{caption}</figure>",
                figure.id,
                // One panel leaves room for its caption beside it.
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

/// A study that no paper has: its numbers, and no finding.
fn own_study(html: &mut String, number: usize, own: &UserStudy<'_>) {
    let name = escaped(own.name);
    let _ = write!(
        html,
        "<section id=\"own-{number}\">\n<p class=\"place\">A study of one\u{2019}s own</p>\n<h2>{name}</h2>\n\
         <p class=\"asks\">Means over seeds, as they were filed. No finding of the papers is asked of them.</p>\n\
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

/// The steps behind a section, each once.
fn origins(html: &mut String, filled: &SectionResults<'_>) {
    let mut steps: BTreeMap<(&str, &str), &Origin> = BTreeMap::new();
    let mut numbers = 0;
    for shown in &filled.settings {
        let data = shown.view.studies(filled.section.studies);
        numbers += data.records.len();
        let origins = data.records.iter().map(|record| &record.origin);
        for origin in origins.chain(data.notes.iter().map(|note| &note.origin)) {
            steps.insert((&origin.step, &origin.command), origin);
        }
    }
    let _ = write!(
        html,
        "<details><summary>Where these {} numbers come from</summary>\n<p>{} {} of {}. What each was made of, pretraining \
         for one, stands in the folders that it names (<code>step.json</code>). Such a study is run by {}, with flags for data, \
         seeds and training where it had some.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Steps\"><table class=\"steps\">\n<thead><tr>\
         <th>step</th><th>command</th><th>seed</th><th>version</th><th>made</th></tr></thead>\n<tbody>\n",
        grouped(numbers as f64),
        steps.len(),
        if steps.len() == 1 { "step" } else { "steps" },
        escaped(&filled.section.studies.join(", ")),
        commands(filled)
    );
    for ((step, command), origin) in steps {
        let _ = writeln!(
            html,
            "<tr><td><code>{}</code></td><td class=\"text\"><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escaped(step),
            escaped(command),
            origin.seed,
            escaped(&origin.build),
            date(origin.finished_at)
        );
    }
    html.push_str("</tbody>\n</table></div></details>\n");
}

fn commands(filled: &SectionResults<'_>) -> String {
    let scales: BTreeSet<&str> =
        filled.settings.iter().map(|shown| &*shown.view.setting.scale).collect();
    let command = |study: &&str, scale: &str| {
        format!("<code>isogloss study run {} --scale {}</code>", escaped(study), escaped(scale))
    };
    let all = scales
        .iter()
        .flat_map(|scale| filled.section.studies.iter().map(|study| command(study, scale)));
    all.collect::<Vec<_>>().join(", ")
}

fn not_run(html: &mut String, missing: &[&ReportSection]) {
    let studies = studies_of(missing);
    if studies.is_empty() {
        return;
    }
    html.push_str("<section id=\"not-run\">\n<h2>Not run yet</h2>\n<ul class=\"missing\">\n");
    for study in studies {
        // The section that is the study's own, rather than one that joins several.
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

fn reading(html: &mut String) {
    html.push_str(
        "<section id=\"reading\">\n<h2>How to read this</h2>\n\
         <p><b>Intervals</b> are of 95 %, Student\u{2019}s t over seeds. A seed decides the invented world, the text drawn, \
         the first weights and everything else left to chance. What is compared is compared seed by seed and pair by pair, \
         so that a hard world is hard for both sides. One seed has no interval, and then no difference is said to hold.</p>\n\
         <p><b>A finding</b> is a quantity and the side of a bound on which the paper puts it. It <em>holds</em> where the \
         whole interval lies on that side, <em>does not hold</em> where the whole interval lies on the other, and is \
         <em>too noisy</em> else. A rank correlation holds where fewer than 5 % of all orders give as much. \
         \u{201c}Transfer above chance\u{201d} is the score less what guessing gives: a third for inference, nothing for \
         entities and parsing. \u{201c}Costs little\u{201d} is at least 0.9 of the transfer kept.</p>\n\
         <p><b>Where a finding needs the best</b> layer, weight or system, the other seeds choose it: each seed is scored at \
         the one with the best mean over the others, since the highest of several numbers is high by chance already. So \
         one seed alone cannot say. Figures and tables of the best layer show each seed\u{2019}s own, which flatters a \
         little; nothing is judged by them.</p>\n\
         <p><b>The papers\u{2019} numbers</b> stand beside ours to compare orders and directions, not sizes: their models \
         are far larger, their languages real, their test sets others. Paper 1 is \u{201c}Emerging Cross-lingual Structure \
         in Pretrained Language Models\u{201d} (Wu et al.), paper 2 \u{201c}A Study of Cross-Lingual Ability and \
         Language-specific Information in Multilingual BERT\u{201d} (Liu et al.).</p>\n</section>\n",
    );
}

fn chip(verdict: Verdict) -> String {
    format!("<span class=\"chip {}\">{}</span>", verdict.class(), verdict.name())
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

/// The day of a moment in seconds since 1970, in UTC.
fn date(seconds: u64) -> String {
    // Days are counted from a first of March, so that a leap day is the last of its year.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        let all = [0, 951_782_400, 1_709_164_800, 1_794_700_800].map(date);
        assert_eq!(all, ["1970-01-01", "2000-02-29", "2024-02-29", "2026-11-15"]);
    }
}
