//! How similar the networks are, layer by layer (paper 1, §5.2).

use super::ReportSection;
use super::alignment::upper_minus_lower;
use super::parts::{Series, difference, lines_figure, named, over_layers};
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
    place: "Paper 1, §5.2",
    studies: &["similarity"],
    asks: "Linear CKA compares what two networks make of the same sentences, and does not change when one is rotated. \
           1 is the same up to rotation and scale. The paper's value is biased upwards where sentences are few; the \
           debiased one beside it is not.",
    claims: &[
        PaperClaim {
            finding: "One model of both languages is more similar to itself across them than two models are",
            place: "Paper 1, Figure 7",
            paper: || means(&["bilingual", "monolingual"]),
            quantity: "mean CKA over layers, bilingual minus separate",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "bilingual", "monolingual"),
        },
        PaperClaim {
            finding: "Models trained apart are more similar than an untrained one is",
            place: "Paper 1, Figure 7",
            paper: || means(&["monolingual", "untrained"]),
            quantity: "mean CKA over layers, separate minus untrained",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "monolingual", "random"),
        },
        PaperClaim {
            finding: "The first layers are the most similar",
            place: "Paper 1, §5.2",
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
            finding: "Similarity goes with how well sentences align",
            place: "Paper 1, §5.2",
            paper: || "correlation over 0.9".to_owned(),
            quantity: "correlation of CKA with retrieval over layers, separate models",
            criterion: Criterion::Above(0.5),
            measure: |view| {
                let data = view.study("similarity");
                let of = |system| data.cells("correlation", &[("system", system)]).sample();
                let separate = of("monolingual");
                Evidence::Seeds(if separate.0.is_empty() { of("bilingual") } else { separate })
            },
        },
    ],
    show,
};

/// The debiased value where there is one.
fn measure(data: &StudyData<'_>) -> &'static str {
    if data.layers("cka_debiased").is_empty() { "cka" } else { "cka_debiased" }
}

fn systems(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("similarity");
    let measure = measure(&data);
    difference(&data.cells(measure, &[("system", a)]), &data.cells(measure, &[("system", b)]))
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
            "Paper 1, Figure 7",
            "Ours: CKA of mean-pooled sentences, layer by layer, as the paper computes it.",
            figure("cka", "CKA by layer", maps("cka", "")),
        ),
        CaptionedItem::figure(
            "Paper 1, Figure 7",
            "The paper's own: English beside a paraphrase of itself (en\u{2032}) and four languages.",
            figure("paper", "CKA by layer, paper 1", theirs),
        )
        .once(),
        CaptionedItem::figure(
            "Beyond the paper",
            "The debiased value, which is not raised by having few sentences. Bands are intervals of 95 % over seeds.",
            lines_figure(
                named(id, "debiased"),
                "Debiased CKA by layer",
                series,
                curves("cka_debiased"),
            ),
        ),
        CaptionedItem::table("Paper 1, Figure 7", "Means over layers and pairs.", table(&data)),
    ]
}

fn table(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&[
        "system",
        "CKA",
        "debiased",
        "correlation with retrieval",
        "paper 1, CKA",
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
            TableCell::Name(system.clone()),
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
    let short = |system: &&str| match *system {
        "bilingual" => "one",
        "monolingual" => "two",
        "random" => "random",
        _ => "same",
    };
    Heatmap {
        title: title.to_owned(),
        down: ("layer".to_owned(), layers.to_vec()),
        across: (
            "encoders".to_owned(),
            systems.iter().map(|system| short(system).to_owned()).collect(),
        ),
        values: layers
            .iter()
            .map(|layer| systems.iter().map(|system| value(layer, system)).collect())
            .collect(),
        range: (0.0, 1.0),
    }
    .panel()
}
