//! How many sentences were read, repeated, too long and used: what was left out stands beside what was measured.

use std::collections::{BTreeMap, BTreeSet};

use super::data::StudyData;
use super::exhibit::{CaptionedItem, ReportTable, TableCell};
use super::sections::names::{language_name, pair_name};
use super::table::grouped;
use crate::record::Factors;

const COUNTS: [(&str, &str); 5] = [
    ("rows", "read"),
    ("repeated", "repeated"),
    ("too_long", "too long"),
    ("in_tests", "of tests"),
    ("used", "used"),
];

/// The counts of all systems and seeds, for each column.
type CountRow = [BTreeSet<u64>; COUNTS.len()];

/// Whether sentences were counted, and none was left out.
pub(super) fn is_complete(data: &StudyData<'_>) -> bool {
    let counts = counts(data);
    !counts.is_empty() && !counts.values().any(leaves_out)
}

/// Whether sentences were repeated, too long or of tests.
fn leaves_out(row: &CountRow) -> bool {
    row[1..COUNTS.len() - 1].iter().any(|counts| counts.last().is_some_and(|most| *most > 0))
}

/// A table of the counts of a section's studies; empty where nothing was left out.
pub(super) fn exhibit(data: &StudyData<'_>) -> CaptionedItem {
    let caption = "Sentences (or pairs of them) that were read, those equal to an earlier one, those longer than the encoder \
                   takes (in rows of length: than all encoders of the study take), those of text for pretraining that stand in \
                   the parallel test sets, and those that remain, over all systems and seeds.";
    let apart = unequal(data);
    let remark = match apart.is_empty() {
        true => String::new(),
        false => format!(
            " Not on the same sentences: systems left out different numbers of long ones in {}.",
            apart.into_iter().collect::<Vec<_>>().join("; ")
        ),
    };
    CaptionedItem::table("What was left out", format!("{caption}{remark}"), table(data))
}

/// Where systems that are compared left out different numbers of long sentences, so that their numbers are of different text:
/// study, purpose and languages.
fn unequal(data: &StudyData<'_>) -> BTreeSet<String> {
    let mut counts: BTreeMap<(&str, &str, String, u64), BTreeSet<u64>> = BTreeMap::new();
    for record in data.records.iter().filter(|record| record.measure == "too_long") {
        let purpose = record.factors.get("of").map_or("", String::as_str);
        let origin = &record.origin;
        let place = (&*origin.study, purpose, languages(&record.factors), origin.seed);
        counts.entry(place).or_default().insert(record.value as u64);
    }
    let apart = counts.into_iter().filter(|(_, counts)| counts.len() > 1);
    let named = |((study, purpose, languages, _), _): ((&str, &str, String, u64), _)| {
        format!("{study}, {purpose}, {languages}")
    };
    apart.map(named).collect()
}

/// The counts by study, purpose and languages.
fn counts<'a>(data: &StudyData<'a>) -> BTreeMap<(&'a str, &'a str, String), CountRow> {
    let mut counts: BTreeMap<(&str, &str, String), CountRow> = BTreeMap::new();
    for record in &data.records {
        let Some(column) = COUNTS.iter().position(|(measure, _)| record.measure == *measure) else {
            continue;
        };
        let purpose = record.factors.get("of").map_or("", String::as_str);
        let place = (&*record.origin.study, purpose, languages(&record.factors));
        let row = counts.entry(place).or_default();
        row[column].insert(record.value as u64);
    }
    counts
}

fn table(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&["study", "read for", "languages"]);
    table.heads.extend(COUNTS.map(|(_, name)| name.to_owned()));
    let rows = counts(data).into_iter().filter(|(_, row)| leaves_out(row));
    for ((study, purpose, languages), row) in rows {
        let text = |text: &str| TableCell::Text(text.to_owned());
        let names = [TableCell::Name(study.to_owned()), text(purpose), TableCell::Text(languages)];
        table
            .rows
            .push(names.into_iter().chain(row.iter().map(|counts| text(&range(counts)))).collect());
    }
    table
}

fn languages(factors: &Factors) -> String {
    // Text of one language, for the encoder of a pair.
    if let (Some(language), Some(pair), None) =
        (factors.get("language"), factors.get("pair"), factors.get("direction"))
    {
        return format!("{} ({})", language_name(language), pair_name(pair));
    }
    let of = ["direction", "pair", "language"].into_iter().find_map(|name| factors.get(name));
    of.map_or(String::new(), |codes| pair_name(codes))
}

/// One count, or the least and the greatest.
pub(super) fn range(counts: &BTreeSet<u64>) -> String {
    let shown = |count: &u64| grouped(*count as f64);
    match (counts.first(), counts.last()) {
        (Some(least), Some(most)) if least < most => format!("{} to {}", shown(least), shown(most)),
        (Some(one), _) => shown(one),
        _ => "–".to_owned(),
    }
}
