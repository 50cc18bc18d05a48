//! The neurons that serve one language alone.

use super::parts::{pair_name, pairs_of};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};

const CONDITIONS: [&str; 3] = ["default", "no-anchors", "untrained"];

pub(super) fn show(_: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let caption = "By how much the MLM loss (nats) rises without a language's neurons and without as many random ones of the same \
                   layers, and the share of neurons that are specific to both languages among those specific to either.";
    vec![CaptionedItem::table(BEYOND, caption, neuron_table(&view.study("language-identity")))]
}

fn neuron_table(data: &StudyData<'_>) -> ReportTable {
    let heads =
        ["pair", "encoder", "neurons set to 0", "own language", "other language", "overlap"];
    let mut table = ReportTable::new(&heads);
    for pair in pairs_of(data, &["neuron_loss"]) {
        for condition in data.levels(&["neuron_loss"], "condition", &CONDITIONS) {
            for (neurons, shown) in [("specific", "language-specific"), ("random", "random")] {
                let own = [("pair", &*pair), ("condition", &*condition)];
                let rise = |of| {
                    let factors = [&own[..], &[("of", of), ("neurons", neurons)]].concat();
                    TableCell::Ours(data.mean("neuron_loss", &factors))
                };
                let overlap = match neurons {
                    "specific" => TableCell::Ours(data.mean("neuron_overlap", &own)),
                    _ => TableCell::Text(String::new()),
                };
                table.rows.push(vec![
                    TableCell::Name(pair_name(&pair)),
                    TableCell::Text(data.name(&condition)),
                    TableCell::Text(shown.to_owned()),
                    rise("own"),
                    rise("other"),
                    overlap,
                ]);
            }
        }
    }
    table
}
