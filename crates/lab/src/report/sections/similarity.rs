//! Similarity of networks by layer: linear CKA (Kornblith et al. 2019; Conneau et al. 2020, §5.2).

use super::ReportSection;
use super::parts::{
    Series, difference, lines_figure, named, over_layers, system_name, upper_minus_lower,
};
use crate::draw::{Figure, Heatmap, Panel};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};

const SYSTEMS: [&str; 4] = ["bilingual", "monolingual", "untrained", "same-language"];
const PAIRS: [&str; 5] = ["en-en'", "en-fr", "en-de", "en-ru", "en-zh"];

pub(in crate::report) const SIMILARITY: ReportSection = ReportSection {
    id: "similarity",
    title: "How similar are the networks themselves?",
    place: "Conneau et al. 2020, §5.2",
    studies: &["similarity"],
    method: "Linear CKA compares the representations of parallel sentences in two networks; it is invariant to rotation and \
             isotropic scaling, and 1 for representations that are equal up to these. The paper's estimate is biased upwards \
             where sentences are few; the debiased estimate is not.",
    claims: &[
        PaperClaim {
            finding: "A bilingual encoder is more similar across its languages than two monolingual encoders are",
            place: "Conneau et al. 2020, Figure 7",
            paper: || means(&["bilingual", "monolingual"]),
            quantity: "mean CKA over layers, bilingual minus monolingual",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "bilingual", "monolingual"),
        },
        PaperClaim {
            finding: "Monolingual encoders are more similar to each other than to an untrained encoder",
            place: "Conneau et al. 2020, Figure 7",
            paper: || means(&["monolingual", "untrained"]),
            quantity: "mean CKA over layers, monolingual minus untrained",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "monolingual", "untrained"),
        },
        PaperClaim {
            finding: "Lower layers are more similar than higher layers",
            place: "Conneau et al. 2020, §5.2",
            paper: || {
                let of = |layer| {
                    let factors = [("pair", "en-fr"), ("system", "bilingual"), ("layer", layer)];
                    papers::number(1, "Figure 7", "cka", &factors)
                        .map_or(String::new(), |v| format!("{v:.2}"))
                };
                format!("en-fr, bilingual: {} at layer 1, {} at layer 8", of("1"), of("8"))
            },
            quantity: "mean CKA of the upper half of the layers minus that of the lower half, bilingual",
            criterion: Criterion::Below(0.0),
            measure: |view| {
                upper_minus_lower(
                    &view.study("similarity"),
                    measure(&view.study("similarity")),
                    &[("system", "bilingual")],
                )
            },
        },
        PaperClaim {
            finding: "Similarity correlates with sentence retrieval",
            place: "Conneau et al. 2020, §5.2",
            paper: || "correlation over 0.9".to_owned(),
            quantity: "correlation of CKA with aligned retrieval accuracy over layers, monolingual",
            criterion: Criterion::Above(0.5),
            measure: |view| {
                let data = view.study("similarity");
                let of = |system| data.observations("correlation", &[("system", system)]).sample();
                let monolingual = of("monolingual");
                Evidence::Seeds(if monolingual.0.is_empty() {
                    of("bilingual")
                } else {
                    monolingual
                })
            },
        },
    ],
    show,
};

/// The debiased estimate where there is one.
fn measure(data: &StudyData<'_>) -> &'static str {
    if data.layers("cka_debiased").is_empty() { "cka" } else { "cka_debiased" }
}

fn systems(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("similarity");
    let measure = measure(&data);
    difference(
        &data.observations(measure, &[("system", a)]),
        &data.observations(measure, &[("system", b)]),
    )
}

/// The paper's means over layers and the four pairs of languages.
fn means(systems: &[&str]) -> String {
    let mean = |system: &&str| {
        let of = |pair: &&str| {
            papers::number(
                1,
                "Figure 7",
                "cka",
                &[("pair", pair), ("system", system), ("layer", "mean")],
            )
        };
        let values: Option<Vec<f64>> = PAIRS[1..].iter().map(of).collect();
        values.map_or(String::new(), |values| {
            format!("{system} {:.2}", values.iter().sum::<f64>() / values.len() as f64)
        })
    };
    format!("mean CKA {}", systems.iter().map(mean).collect::<Vec<_>>().join(", "))
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("similarity");
    let pairs = data.levels(&["cka", "cka_debiased"], "pair", &PAIRS);
    let maps = |measure: &str, suffix: &str| {
        pairs.iter().filter_map(|pair| ours(&data, measure, pair, suffix)).collect::<Vec<_>>()
    };
    let figure = |name: &str, title: &str, panels: Vec<Panel>| Figure {
        id: named(id, name),
        title: title.to_owned(),
        legend: vec![],
        panels,
    };
    let series: &Series<'_> = &SYSTEMS.map(|system| (system, vec![("system", system)]));
    let curves = |measure| -> Vec<Panel> {
        let panel = |pair: &String| {
            over_layers(&data, measure, &[("pair", pair)], series, (pair, "CKA, debiased"))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let theirs =
        if data.is_empty() { vec![] } else { PAIRS.iter().map(|pair| paper(pair)).collect() };
    vec![
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 7",
            "Our results: CKA of mean-pooled sentence vectors by layer, computed as in the paper (bi: bilingual, mono: \
             monolingual, untr.: untrained, same: same-language).",
            figure("cka", "CKA by layer", maps("cka", "")),
        ),
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 7",
            "The paper's results: English with its own back-translation (en\u{2032}) and with four languages.",
            figure("paper", "CKA by layer, Conneau et al. 2020", theirs),
        )
        .once(),
        CaptionedItem::figure(
            "Beyond the paper",
            "The debiased estimate, which does not grow with fewer sentences. Bands are 95 % intervals over seeds.",
            lines_figure(
                named(id, "debiased"),
                "Debiased CKA by layer",
                series,
                curves("cka_debiased"),
            ),
        ),
        CaptionedItem::table("Conneau et al. 2020, Figure 7", "Means over layers and pairs.", table(&data)),
    ]
}

fn table(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&[
        "system",
        "CKA",
        "debiased",
        "correlation with retrieval",
        "Conneau et al. 2020, CKA",
    ]);
    for system in data.levels(&["cka", "cka_debiased", "correlation"], "system", &SYSTEMS) {
        let of = |measure| TableCell::Ours(data.mean(measure, &[("system", &*system)]));
        let printed: Option<Vec<f64>> = PAIRS[1..]
            .iter()
            .map(|pair| {
                papers::number(
                    1,
                    "Figure 7",
                    "cka",
                    &[("pair", pair), ("system", &system), ("layer", "mean")],
                )
            })
            .collect();
        let printed = printed.map(|values| values.iter().sum::<f64>() / values.len() as f64);
        table.rows.push(vec![
            TableCell::Name(system_name(&system).to_owned()),
            of("cka"),
            of("cka_debiased"),
            of("correlation"),
            TableCell::Paper(printed, 2),
        ]);
    }
    table
}

fn ours(data: &StudyData<'_>, measure: &str, pair: &str, suffix: &str) -> Option<Panel> {
    let layers = data.layers(measure);
    let has = |system: &&str| data.mean(measure, &[("pair", pair), ("system", system)]).is_some();
    let systems: Vec<&str> = SYSTEMS.into_iter().filter(has).collect();
    let value = |layer: &str, system: &str| {
        data.mean(measure, &[("pair", pair), ("system", system), ("layer", layer)])
            .map(|mean| mean.mean)
    };
    (!systems.is_empty() && !layers.is_empty())
        .then(|| map(&format!("{pair}{suffix}"), &layers, &systems, value))
}

fn paper(pair: &str) -> Panel {
    let layers: Vec<String> = (0..9).map(|layer| layer.to_string()).collect();
    map(pair, &layers, &SYSTEMS[..3], |layer, system| {
        papers::number(
            1,
            "Figure 7",
            "cka",
            &[("pair", pair), ("system", system), ("layer", layer)],
        )
    })
}

fn map(
    title: &str,
    layers: &[String],
    systems: &[&str],
    value: impl Fn(&str, &str) -> Option<f64>,
) -> Panel {
    Heatmap {
        title: title.to_owned(),
        down: ("layer".to_owned(), layers.to_vec()),
        across: (
            "system".to_owned(),
            systems.iter().map(|system| abbreviated(system).to_owned()).collect(),
        ),
        values: layers
            .iter()
            .map(|layer| systems.iter().map(|system| value(layer, system)).collect())
            .collect(),
        range: (0.0, 1.0),
    }
    .panel()
}

/// The name of a system above a narrow column.
fn abbreviated(system: &str) -> &str {
    match system {
        "bilingual" => "bi",
        "monolingual" => "mono",
        "untrained" => "untr.",
        _ => "same",
    }
}
