//! How much of the language is in the vector, and what removes it: a linear probe by layer; and the neurons that serve one
//! language alone.

use super::parts::{Series, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::Chart;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};

const STUDY: &str = "language-identity";
/// The accuracy of the probe that sees more than means.
const NONLINEAR: &str = "language_id_nonlinear";
const CONDITIONS: [&str; 3] = ["default", "no-anchors", "untrained"];
const TREATMENTS: [&str; 4] = ["raw", "centered", "lsar", "without-1"];

/// How a treatment is named in figures and tables.
fn name(treatment: &str) -> &str {
    match treatment {
        "centered" => "centred",
        "lsar" => "LSAR",
        "without-1" => "without leading direction",
        other => other,
    }
}

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let pairs = pairs_of(&data, &["language_id"]);
    let panels = |measure: &str, series: &Series<'_>, unit: &str| -> Vec<Chart> {
        let panel = |pair: &String| {
            over_layers(&data, measure, &[("pair", pair)], series, (&pair_name(pair), unit))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let treatments: &Series<'_> = &TREATMENTS.map(|treatment| {
        (name(treatment), vec![("condition", "default"), ("treatment", treatment)])
    });
    let conditions: &Series<'_> = &CONDITIONS
        .map(|condition| (condition, vec![("condition", condition), ("treatment", "raw")]));
    let encoders: &Series<'_> =
        &CONDITIONS.map(|condition| (condition, vec![("condition", condition)]));
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Accuracy of the probe in the default encoder, by layer and treatment; the dashed line is the share of the most \
             frequent language.",
            figure(
                named(id, "probe"),
                "Language told",
                &panels("language_id", treatments, "accuracy"),
            ),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The same of the probe that also sees spread, skew and correlations. After centring a linear probe has nothing to see; what this \
             one tells then is in more than the means.",
            figure(
                named(id, "nonlinear"),
                "Language told by more than means",
                &panels(NONLINEAR, treatments, "accuracy"),
            ),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The share of the variance of sentence vectors that lies between languages, by layer.",
            figure(
                named(id, "variance"),
                "Variance between languages",
                &panels("variance_between", conditions, "share of variance"),
            ),
        ),
        CaptionedItem::table(
            BEYOND,
            "Means over layers: accuracy of the linear probe and of the one that sees more than means, each beside the same after labels were shuffled before the \
             treatment, and the share of variance between languages.",
            table(&data, &pairs),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The share of a layer's neurons that are specific to a language, means over languages.",
            figure(
                named(id, "neurons"),
                "Language-specific neurons",
                &panels("neuron_share", encoders, "share of neurons"),
            ),
        ),
        CaptionedItem::table(
            BEYOND,
            "By how much the MLM loss (nats) rises without a language's neurons and without as many random ones of the same \
             layers, and the share of neurons that are specific to both languages among those specific to either.",
            neuron_table(&data),
        ),
    ]
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

fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let heads = [
        "pair",
        "encoder",
        "treatment",
        "linear",
        "shuffled labels",
        "more than means",
        "shuffled labels",
        "variance between",
    ];
    let mut table = ReportTable::new(&heads);
    for pair in pairs {
        for condition in data.levels(&["language_id"], "condition", &CONDITIONS) {
            for treatment in data.levels(&["language_id"], "treatment", &TREATMENTS) {
                let own =
                    [("pair", &**pair), ("condition", &*condition), ("treatment", &*treatment)];
                let of = |measure| TableCell::Ours(data.mean(measure, &own));
                table.rows.push(vec![
                    TableCell::Name(pair_name(pair)),
                    TableCell::Text(data.name(&condition)),
                    TableCell::Text(name(&treatment).to_owned()),
                    of("language_id"),
                    of("language_id_shuffled"),
                    of(NONLINEAR),
                    of("language_id_nonlinear_shuffled"),
                    of("variance_between"),
                ]);
            }
        }
    }
    table
}
