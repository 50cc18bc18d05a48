//! The matrix of verdicts: a row for each finding, a column for each setting, on one screen. A sign leads to the numbers.

use std::fmt::Write as _;

use super::short_name;
use crate::draw::escaped;
use crate::report::SectionResults;
use crate::report::answer::capital;
use crate::report::finding::Verdict;

/// Shows all findings that some records bear on.
pub(super) fn show(html: &mut String, filled: &[SectionResults<'_>]) {
    let tested: Vec<&SectionResults<'_>> =
        filled.iter().filter(|one| !one.section.claims.is_empty()).collect();
    if tested.is_empty() {
        return;
    }
    let mut settings: Vec<String> = Vec::new();
    for shown in tested.iter().flat_map(|one| &one.settings) {
        let name = shown.view.setting.to_string();
        if !settings.contains(&name) {
            settings.push(name);
        }
    }
    let _ = write!(
        html,
        "<section id=\"findings\">\n<h2>{}</h2>\n<p class=\"key\">{}{}. A finding has a sign for each task, pair or model that \
         it is about; all tests of a setting are corrected together (<a href=\"#method\">method</a>).</p>\n<div class=\"matrix\">\n",
        escaped(&summary(&tested)),
        match &settings[..] {
            [only] => format!("{}: ", escaped(&capital(only))),
            _ => String::new(),
        },
        key(&tested)
    );
    for one in tested {
        section(html, one, &settings);
    }
    html.push_str("</div>\n</section>\n");
}

/// How many findings hold everywhere that they are tested.
fn summary(tested: &[&SectionResults<'_>]) -> String {
    let findings = || tested.iter().flat_map(|one| &one.judgements);
    let holds = |settings: &&Vec<Vec<crate::report::finding::Judgement>>| {
        let lines: Vec<Verdict> = settings.iter().flatten().map(|line| line.verdict).collect();
        let decided = |kind| lines.iter().filter(|line| **line == kind).count();
        decided(Verdict::Holds) > 0 && decided(Verdict::Fails) == 0
    };
    let all = findings().count();
    let mut lines = findings().flatten().flatten().map(|line| line.verdict);
    if lines.all(|line| matches!(line, Verdict::OneSeed | Verdict::TwoSeeds | Verdict::NotTested)) {
        return format!("No verdicts yet on {all} findings: a verdict takes three seeds");
    }
    format!(
        "{} of {all} findings hold in at least one test and fail in none",
        findings().filter(holds).count()
    )
}

fn key(tested: &[&SectionResults<'_>]) -> String {
    let lines = || tested.iter().flat_map(|one| one.judgements.iter().flatten().flatten());
    let shown = Verdict::ALL.into_iter().filter(|kind| lines().any(|line| line.verdict == *kind));
    let entry = |kind: Verdict| {
        let about = match kind {
            Verdict::NotMeasured => " (an untrained encoder does as well)",
            Verdict::NoTest => " (seeds have no spread, or languages or encoders are too few)",
            _ => "",
        };
        format!(
            "<span class=\"sign {}\">{}</span> {}{about}",
            kind.class(),
            kind.sign(),
            kind.name()
        )
    };
    shown.map(entry).collect::<Vec<_>>().join(", ")
}

fn section(html: &mut String, one: &SectionResults<'_>, settings: &[String]) {
    let _ = write!(
        html,
        "<table><thead><tr><th scope=\"col\"><a href=\"#{}\">{}</a></th>",
        one.section.id,
        escaped(&short_name(one.section))
    );
    // One setting is named above all tables.
    let name = |setting: &String| match settings.len() {
        1 => "<td></td>".to_owned(),
        _ => format!("<th scope=\"col\">{}</th>", escaped(&setting.replace(" languages", ""))),
    };
    html.extend(settings.iter().map(name));
    html.push_str("</tr></thead>\n<tbody>\n");
    for (number, (claim, by_setting)) in one.section.claims.iter().zip(&one.judgements).enumerate()
    {
        let place = format!("{}-{}", one.section.id, number + 1);
        let _ = write!(
            html,
            "<tr><th scope=\"row\"><a href=\"#{place}\">{}</a></th>",
            escaped(claim.finding)
        );
        for setting in settings {
            html.push_str("<td>");
            let own =
                one.settings.iter().position(|shown| shown.view.setting.to_string() == *setting);
            for line in own.map(|own| &by_setting[own]).into_iter().flatten() {
                let about = match &*line.of {
                    "" => format!("{}: {}", line.verdict.name(), line.strength),
                    of => format!("{of}: {}: {}", line.verdict.name(), line.strength),
                };
                let _ = write!(
                    html,
                    "<a class=\"sign {}\" href=\"#{place}\" title=\"{}\" aria-label=\"{}\">{}</a>",
                    line.verdict.class(),
                    escaped(about.trim_end_matches(": ")),
                    escaped(about.trim_end_matches(": ")),
                    line.verdict.sign()
                );
            }
            html.push_str("</td>");
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table>\n");
}
