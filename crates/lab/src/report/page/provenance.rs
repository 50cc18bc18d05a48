//! Where the numbers of the page come from: steps, commands, seeds and builds.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::figures::files;
use crate::build::BuildCounts;
use crate::draw::escaped;
use crate::draw::quoted;
use crate::record::{Origin, Record};
use crate::report::table::grouped;
use crate::report::{SectionResults, left_out};

/// How many numbers, seeds and builds the page is made of.
pub(super) fn summary(html: &mut String, records: &[Record]) {
    let Some(last) = records.iter().map(|record| record.origin.finished_at).max() else { return };
    let seeds: BTreeSet<u64> = records.iter().map(|record| record.origin.seed).collect();
    let builds = BuildCounts::of(records.iter().map(|record| &*record.origin.build));
    let builds = match builds.0.keys().collect::<Vec<_>>()[..] {
        [one] => format!("build {one}"),
        _ => builds.warning("results").unwrap_or_default(),
    };
    let _ = writeln!(
        html,
        "<p class=\"about\">{} results, {} {}; {}; the latest of {}.</p>",
        grouped(records.len() as f64),
        seeds.len(),
        if seeds.len() == 1 { "seed" } else { "seeds" },
        escaped(&builds),
        date(last)
    );
}

/// The steps behind a section, each once.
pub(super) fn steps(html: &mut String, filled: &SectionResults<'_>) {
    let mut steps: BTreeMap<(&str, &str), &Origin> = BTreeMap::new();
    let mut numbers = 0;
    for shown in &filled.settings {
        let data = shown.view.studies(filled.section.studies);
        numbers += data.records.len();
        let origins = data.records.iter().map(|record| &record.origin);
        for origin in origins.chain(data.texts.iter().map(|note| &note.origin)) {
            steps.insert((&origin.step, &origin.command), origin);
        }
    }
    let mut csv = "step,command,seed,build,finished\n".to_owned();
    for ((step, command), origin) in &steps {
        let seed = origin.seed.to_string();
        csv.extend([*step, *command, &*seed, &*origin.build].map(|cell| quoted(cell) + ","));
        csv += &(date(origin.finished_at) + "\n");
    }
    let count = steps.len();
    let name = format!("{}-steps.csv", filled.section.id);
    let complete = filled.settings.iter().all(|shown| {
        let data = shown.view.studies(filled.section.studies);
        left_out::is_complete(&data)
    });
    let _ = writeln!(
        html,
        "<p class=\"steps\">{} results of {} {}, with their commands, seeds and builds:{} {}Run again by {}, with flags for data, seeds \
         and training where it had some.</p>",
        grouped(numbers as f64),
        grouped(count as f64),
        if count == 1 { "step" } else { "steps" },
        files(&[("CSV", &*name, "text/csv", csv.as_bytes())]),
        if complete { "No sentence was left out as repeated or too long. " } else { "" },
        commands(filled)
    );
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

/// The date (UTC) of a time in seconds since 1970.
fn date(seconds: u64) -> String {
    // Days are counted from 1 March of year 0, so that a leap day is the last of its year.
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
