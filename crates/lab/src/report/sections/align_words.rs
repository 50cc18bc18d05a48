//! Word translation between separately trained encoders (Conneau et al. 2020, §5.1.1).

use super::parts::{
    chance_of_words, chance_words, dots, figure, mark, named, over_layers, pair_name, pairs_of,
    system_colour,
};
use crate::draw::{Chart, DotRow, Figure};
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};

const STUDY: &str = "align-words";
const P_AT_1: &str = "p_at_1";

/// The common vocabulary, where a system was measured on it: words that all systems have. Else what it was measured on.
fn vocabulary(data: &StudyData<'_>, system: &str) -> Vec<(&'static str, &'static str)> {
    let common = ("vocabulary", "common");
    let measured = data.levels_among("vocabulary", &[("system", system), common]);
    if measured.is_empty() { vec![] } else { vec![common] }
}

/// The two ways of counting, where both were measured.
fn countings(data: &StudyData<'_>) -> Vec<(&'static str, &'static str)> {
    let all = [(P_AT_1, "all pairs"), ("p_at_1_different", "strings that differ")];
    all.into_iter().filter(|(measure, _)| data.has(measure)).collect()
}

const SYSTEMS: [&str; 6] =
    ["monolingual", "bilingual", "no-anchors", UNTRAINED, "fasttext", "embeddings"];

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let chance = chance_words(&data, P_AT_1);
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 4a"]),
            "Word translation by the aligned embedding tables and by aligned fastText vectors, on a common vocabulary where there is \
             one: over all pairs, and over pairs whose strings differ. An untrained encoder's embeddings are its layer 0."
                .to_owned()
                + chance,
            static_figure(id, &data),
        ),
        CaptionedItem::figure(
            replicates(1, &["Figure 4b"]),
            "Word translation by averaged contextual vectors, by layer. A horizontal line is a system without layers."
                .to_owned()
                + chance,
            layers_figure(id, &data),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 4a", "Figure 4b"]),
            "P@1 (CSLS) at the best layer of each system, over all pairs and over pairs whose strings differ.",
            table(&data),
        ),
    ]
}

fn static_figure(id: &str, data: &StudyData<'_>) -> Figure {
    let systems = ["embeddings", "fasttext", UNTRAINED];
    let panel = |(measure, title): (&str, &str)| {
        let row = |pair: &String| {
            let of = |system: &str| {
                let vocabulary = vocabulary(data, system);
                let factors = [&[("system", system), ("pair", pair)], &vocabulary[..]].concat();
                let all = data.observations(measure, &factors);
                let layer = [&factors[..], &[("layer", "0")]].concat();
                let own = match system {
                    UNTRAINED => data.observations(measure, &layer),
                    _ => all.without("layer"),
                };
                let colour = system_colour(system).unwrap_or(0);
                mark(&data.name(system), colour, &own.sample(), None)
            };
            DotRow { name: pair_name(pair), marks: systems.map(of).to_vec() }
        };
        let rows = pairs_of(data, &[P_AT_1]).iter().map(row).collect();
        dots(title, "P@1", rows, chance_of_words(data, measure, &[]).into_iter().collect())
    };
    let charts: Vec<Chart> = countings(data).into_iter().filter_map(panel).collect();
    figure(named(id, "tables"), "Word translation by static vectors", &charts)
}

fn layers_figure(id: &str, data: &StudyData<'_>) -> Figure {
    let systems = SYSTEMS.into_iter().filter(|system| *system != "embeddings");
    let series: Vec<_> = systems
        .map(|system| {
            let factors = [&[("system", system)], &vocabulary(data, system)[..]].concat();
            (system, factors)
        })
        .collect();
    let mut panels = Vec::new();
    for pair in pairs_of(data, &[P_AT_1]) {
        for (measure, counted) in countings(data) {
            let title = format!("{}, {counted}", pair_name(&pair));
            panels.extend(over_layers(data, measure, &[("pair", &pair)], &series, (&title, "P@1")));
        }
    }
    figure(named(id, "layers"), "Word translation by layer", &panels)
}

fn table(data: &StudyData<'_>) -> ReportTable {
    let countings = countings(data);
    let mut table = ReportTable::new(&["system", "pair", "vocabulary"]);
    table.heads.extend(countings.iter().map(|(_, name)| format!("P@1, {name}")));
    for system in data.levels(&[P_AT_1], "system", &SYSTEMS) {
        for pair in pairs_of(data, &[P_AT_1]) {
            let own = data.only("system", &system).only("pair", &pair);
            let mut vocabularies = own.levels(&[P_AT_1], "vocabulary", &["own", "common"]);
            if vocabularies.is_empty() {
                vocabularies.push(String::new());
            }
            for vocabulary in vocabularies {
                let of = |(measure, _): &(&str, &str)| {
                    let mut factors = vec![("system", &*system), ("pair", &*pair)];
                    factors
                        .extend((!vocabulary.is_empty()).then_some(("vocabulary", &*vocabulary)));
                    let layered = own.best(measure, &factors).sample().mean();
                    let single =
                        || own.observations(measure, &factors).without("layer").sample().mean();
                    TableCell::Ours(layered.or_else(single))
                };
                let cells: Vec<TableCell> = countings.iter().map(of).collect();
                if cells.iter().any(|cell| matches!(cell, TableCell::Ours(Some(_)))) {
                    let names = [
                        TableCell::Name(data.name(&system)),
                        TableCell::Text(pair_name(&pair)),
                        TableCell::Text(vocabulary.clone()),
                    ];
                    table.rows.push(names.into_iter().chain(cells).collect());
                }
            }
        }
    }
    table
}
