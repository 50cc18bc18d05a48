//! Word translation between all of several languages in one space: maps learned together, and maps onto a hub.

use super::parts::{OTHERS, dots, figure, mark, named, pair_name, pairs_of};
use crate::draw::{Chart, DotRow};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::observations::Observations;
use crate::report::table::grouped;

const STUDY: &str = "align-many";
const P_AT_1: &str = "p_at_1";
const SYSTEMS: [&str; 3] = ["fasttext", "monolingual", "untrained"];
const MAPS: [(&str, &str); 3] =
    [("unmapped", "unmapped"), ("onto-hub", "onto the hub"), ("together", "together")];
/// Which dictionary a pair of languages had to learn from, in words.
const DICTIONARIES: [(&str, &str); 3] = [
    ("with-hub", "with the hub"),
    ("own", "of the pair, beside those with the hub"),
    ("none", "with the hub alone"),
];

fn words(data: &StudyData<'_>, system: &str, map: &str, dictionary: &str) -> Observations {
    let factors = [("system", system), ("map", map), ("dictionary", dictionary)];
    data.observations(P_AT_1, &factors)
}

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let systems = data.levels(&[P_AT_1], "system", &SYSTEMS);
    let panel = |system: &String| -> Option<Chart> {
        let row = |pair: &String| {
            let of = |(place, (map, name)): (usize, &(&str, &str))| {
                let factors = [("system", system.as_str()), ("pair", pair), ("map", map)];
                mark(name, OTHERS + place, &data.observations(P_AT_1, &factors).sample(), None)
            };
            DotRow { name: pair_name(pair), marks: MAPS.iter().enumerate().map(of).collect() }
        };
        let rows = pairs_of(&data, &[P_AT_1]).iter().map(row).collect();
        dots(&data.name(system), "P@1", rows, Vec::new())
    };
    let charts: Vec<Chart> = systems.iter().filter_map(panel).collect();
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Word translation between every two languages in one space.",
            figure(named(id, "pairs"), "Many languages in one space", &charts),
        ),
        CaptionedItem::table(
            BEYOND,
            "P@1 (CSLS), means over pairs, by the dictionaries that a pair had to learn from; words of a pair that were \
             looked up, and those left out since a map was learned from them.",
            table(&data, &systems),
        ),
    ]
}

fn table(data: &StudyData<'_>, systems: &[String]) -> ReportTable {
    let mut table = ReportTable::new(&["vectors", "dictionary"]);
    table.heads.extend(MAPS.map(|(_, name)| name.to_owned()));
    table.heads.extend(["words", "left out"].map(str::to_owned));
    for system in systems {
        for (dictionary, name) in DICTIONARIES {
            let means = MAPS.map(|(map, _)| words(data, system, map, dictionary).sample().mean());
            if means.iter().any(Option::is_some) {
                let names = [TableCell::Name(data.name(system)), TableCell::Text(name.to_owned())];
                let counts = ["queries", "queries_seen"].map(|measure| {
                    let factors = [("system", system.as_str()), ("dictionary", dictionary)];
                    let mean = data.observations(measure, &factors).sample().mean();
                    TableCell::Text(mean.map_or("–".to_owned(), |mean| grouped(mean.mean)))
                });
                let cells = means.map(TableCell::Ours).into_iter().chain(counts);
                table.rows.push(names.into_iter().chain(cells).collect());
            }
        }
    }
    table
}
