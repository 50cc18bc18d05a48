//! Words and sentences aligned with their translations from hidden states: links against gold links, and mined pairs.

use super::parts::{pair_name, pairs_of};
use crate::report::data::{FactorFilter, SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};

const STUDY: &str = "bitext";
const CONDITIONS: [&str; 3] = ["default", "no-anchors", "untrained"];
const EXTRACTIONS: [&str; 3] = ["argmax", "itermax", "softmax"];
/// Ways to align that use no encoder.
const REFERENCES: [&str; 2] = ["ibm2", "diagonal"];

/// The records of a measure at each distance of the languages, the nearest first, with a name for it; all of them and no
/// name where none is known.
fn distances<'a>(data: &StudyData<'a>, measure: &str) -> Vec<(String, StudyData<'a>)> {
    let levels = data.levels(&[measure], "distance", &[]);
    if levels.is_empty() {
        return vec![(String::new(), data.clone())];
    }
    let of = |level: &String| (format!("distance {level}"), data.only("distance", level));
    levels.iter().map(of).collect()
}

fn pair_at(pair: &str, distance: &str) -> String {
    let pair = pair_name(pair);
    if distance.is_empty() { pair } else { format!("{pair}, {distance}") }
}

pub(super) fn show(_: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    vec![
        CaptionedItem::table(
            BEYOND,
            "Links against gold links, means over layers; IBM model 2 and the diagonal use no encoder.",
            links_table(&data),
        ),
        CaptionedItem::table(
            BEYOND,
            "Mined pairs, means over layers: F1 at a threshold that was chosen on other sentences, and that of as many random \
             pairs.",
            mining_table(&data),
        ),
    ]
}

fn links_table(data: &StudyData<'_>) -> ReportTable {
    let mut table =
        ReportTable::new(&["pair", "encoder", "links by", "AER", "precision", "recall", "F1"]);
    for (distance, data) in distances(data, "aer") {
        let mut row =
            |pair: &str, encoder: String, extraction: &str, factors: &FactorFilter<'_>| {
                let factors = [factors, &[("pair", pair), ("extraction", extraction)]].concat();
                let mut cells = vec![
                    TableCell::Name(pair_at(pair, &distance)),
                    TableCell::Text(encoder),
                    TableCell::Text(extraction.to_owned()),
                ];
                let of = |measure| TableCell::Ours(data.mean(measure, &factors));
                cells.extend(["aer", "precision", "recall", "f1"].map(of));
                table.rows.push(cells);
            };
        for pair in pairs_of(&data, &["aer"]) {
            for condition in data.levels(&["aer"], "condition", &CONDITIONS) {
                for extraction in EXTRACTIONS {
                    row(&pair, data.name(&condition), extraction, &[("condition", &condition)]);
                }
            }
            // The same text for every encoder.
            REFERENCES.iter().for_each(|method| row(&pair, "none".to_owned(), method, &[]));
        }
    }
    table
}

fn mining_table(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&["pair", "encoder", "F1", "random pairs"]);
    for (distance, data) in distances(data, "mining_f1") {
        for pair in pairs_of(&data, &["mining_f1"]) {
            for condition in data.levels(&["mining_f1"], "condition", &CONDITIONS) {
                let own = [("pair", &*pair), ("condition", &*condition)];
                let of = |measure| TableCell::Ours(data.mean(measure, &own));
                table.rows.push(vec![
                    TableCell::Name(pair_at(&pair, &distance)),
                    TableCell::Text(data.name(&condition)),
                    of("mining_f1"),
                    of("mining_f1_chance"),
                ]);
            }
        }
    }
    table
}
