//! Which elements of the recipe make an encoder multilingual: figures and tables.

use super::parts::{Series, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::Chart;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};

const STUDY: &str = "elements";
const CONDITIONS: [&str; 8] = [
    "original",
    "lang-pos",
    "shift-special",
    "no-random",
    "all-three",
    "overparam",
    "all-four",
    "untrained",
];

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let pairs = pairs_of(&data, &["retrieval"]);
    let orders = data.levels(&["retrieval"], "order", &["same", "inverted"]);
    let conditions: &Series<'_> =
        &CONDITIONS.map(|condition| (condition, vec![("condition", condition), ("kind", "raw")]));
    let panel = |pair: &String| -> Vec<Chart> {
        let chart = |order: Option<&str>| {
            let mut common = vec![("pair", pair.as_str())];
            common.extend(order.map(|order| ("order", order)));
            let title = match order {
                Some(order) => format!("{}, {order} order", pair_name(pair)),
                None => pair_name(pair),
            };
            over_layers(&data, "retrieval", &common, conditions, (&title, "P@1"))
        };
        match orders.is_empty() {
            true => chart(None).into_iter().collect(),
            false => orders.iter().filter_map(|order| chart(Some(order))).collect(),
        }
    };
    let charts: Vec<Chart> = pairs.iter().flat_map(panel).collect();
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Raw sentence retrieval by layer, one element ablated at a time.",
            figure(named(id, "layers"), "Ablations", &charts),
        ),
        CaptionedItem::table(
            BEYOND,
            "Raw and mean-centred sentence retrieval (P@1, means over layers), and word translation without a map at the middle \
             layer (P@1) beside chance.",
            table(&data, &pairs, &orders),
        ),
    ]
}

fn table(data: &StudyData<'_>, pairs: &[String], orders: &[String]) -> ReportTable {
    let heads =
        ["pair", "order", "encoder", "sentences, raw", "sentences, centred", "words", "chance"];
    let mut table = ReportTable::new(&heads);
    let orders: Vec<Option<&str>> = match orders {
        [] => vec![None],
        some => some.iter().map(|order| Some(order.as_str())).collect(),
    };
    for pair in pairs {
        for order in &orders {
            for condition in data.levels(&["retrieval"], "condition", &CONDITIONS) {
                let mut own = vec![("pair", pair.as_str()), ("condition", condition.as_str())];
                own.extend(order.map(|order| ("order", order)));
                let of = |measure: &str, more: &[(&str, &str)]| {
                    TableCell::Ours(data.mean(measure, &[&own[..], more].concat()))
                };
                table.rows.push(vec![
                    TableCell::Name(pair_name(pair)),
                    TableCell::Text(order.unwrap_or("").to_owned()),
                    TableCell::Text(condition.clone()),
                    of("retrieval", &[("kind", "raw")]),
                    of("retrieval", &[("kind", "centered")]),
                    of("p_at_1", &[]),
                    of("p_at_1_chance", &[]),
                ]);
            }
        }
    }
    table
}
