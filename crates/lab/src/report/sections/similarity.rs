//! Similarity of networks by layer: linear CKA (Kornblith et al. 2019; Conneau et al. 2020, §5.2).

use super::ReportSection;
use super::parts::{
    LESS, MORE, Series, by_pair, difference, layers_line, lines_figure, named,
    nearest_and_farthest, over_layers, system_name,
};
use crate::draw::{Figure, Heatmap, Panel};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim, signed};

const SYSTEMS: [&str; 4] = ["bilingual", "monolingual", "untrained", "no-anchors"];
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
            quantity: "mean CKA of the upper half of the layers minus that of the lower half",
            criterion: Criterion::Below(0.0),
            measure: |view| {
                let data = across_languages(view);
                let line = |system: &str| ClaimLine {
                    of: system.to_owned(),
                    ..layers_line(&data, measure(&data), (system, &[]), LESS)
                };
                ["bilingual", "monolingual"].map(line).into()
            },
        },
        PaperClaim {
            finding: "Similarity correlates with sentence retrieval",
            place: "Conneau et al. 2020, §5.2",
            paper: || "correlation over 0.9 for all four pairs".to_owned(),
            quantity: "correlation over layers of CKA with aligned retrieval accuracy, monolingual (Fisher's z)",
            criterion: Criterion::Above(0.9),
            measure: |view| {
                by_pair(&across_languages(view), &["correlation"], |data, _| {
                    let own =
                        data.observations("correlation", &[("system", "monolingual")]).sample();
                    let untrained = data.untrained("correlation", &[]).sample();
                    let control = Control::of_samples("untrained", &own, untrained, MORE);
                    ClaimLine::new("", Evidence::Correlations(own)).against(control)
                })
            },
        },
        PaperClaim {
            finding: "The advantage of a bilingual encoder shrinks with the distance of the languages",
            place: "Conneau et al. 2020, §5.2",
            paper: || {
                let of = |pair| {
                    let of = |system| {
                        let factors = [("pair", pair), ("system", system), ("layer", "mean")];
                        papers::number(1, "Figure 7", "cka", &factors)
                    };
                    let gap = of("bilingual").zip(of("monolingual"));
                    gap.map_or(String::new(), |(a, b)| format!("{:.2} {pair}", a - b))
                };
                format!("{}, {}, {}, {}", of("en-fr"), of("en-de"), of("en-ru"), of("en-zh"))
            },
            quantity: "mean CKA over layers, bilingual minus monolingual: of the nearest pair minus of the most distant",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = across_languages(view);
                let measure = measure(&data);
                let Some((factor, near, far)) = nearest_and_farthest(&data, &[measure]) else {
                    return vec![];
                };
                let of = |system, level: &str| {
                    data.observations(measure, &[("system", system), (factor, level)])
                };
                let gap =
                    |level: &str| of("bilingual", level).minus(&of("monolingual", level)).sample();
                let untrained = data.untrained(measure, &[(factor, &near)]);
                ClaimLine::new(
                    format!("{near} and {far}"),
                    Evidence::Seeds(gap(&near).minus(&gap(&far))),
                )
                .against(
                    Control::of("untrained", &of("bilingual", &near), &untrained).if_measured(),
                )
                .alone()
            },
        },
    ],
    show,
};

/// The debiased estimate where there is one.
fn measure(data: &StudyData<'_>) -> &'static str {
    if data.layers("cka_debiased").is_empty() { "cka" } else { "cka_debiased" }
}

/// Without pairs of a language with its own paraphrases.
fn across_languages<'a>(view: &SettingView<'a>) -> StudyData<'a> {
    let own = |pair: &String| pair.ends_with('\'');
    view.study("similarity").filtered(|factors| !factors.get("pair").is_some_and(own))
}

fn systems(view: &SettingView<'_>, a: &str, b: &str) -> Vec<ClaimLine> {
    let data = view.study("similarity");
    let measure = measure(&data);
    by_pair(&data, &[measure], |data, pair| {
        let of = |system| data.observations(measure, &[("system", system)]);
        let printed = |system| {
            let factors = [("pair", pair), ("system", system), ("layer", "mean")];
            papers::number(1, "Figure 7", "cka", &factors)
        };
        let control = Control::of("untrained", &of(a), &data.untrained(measure, &[]));
        ClaimLine::new("", difference(&of(a), &of(b)))
            .against(control)
            .paper(printed(a).zip(printed(b)).map(|(a, b)| signed(a - b, 2)))
    })
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
            replicates(1, &["Figure 7"]),
            "Our results: CKA of mean-pooled sentence vectors by layer, computed as in the paper (bi: bilingual, mono: \
             monolingual, untr.: untrained, none: bilingual without anchors). A pair with \u{2032} is a language with its own \
             paraphrases.",
            figure("cka", "CKA by layer", maps("cka", "")),
        ),
        CaptionedItem::figure(
            replicates(1, &["Figure 7"]),
            "The paper's results: English with its own back-translation (en\u{2032}) and with four languages.",
            figure("paper", "CKA by layer, Conneau et al. 2020", theirs),
        )
        .once(),
        CaptionedItem::figure(
            BEYOND,
            "The debiased estimate, which does not grow with fewer sentences. Bands are 95 % intervals over seeds.",
            lines_figure(
                named(id, "debiased"),
                "Debiased CKA by layer",
                series,
                curves("cka_debiased"),
            ),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 7"]),
            "Means over layers, by pair.",
            table(&data, &pairs),
        ),
    ]
}

fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let mut table = ReportTable::new(&[
        "pair",
        "system",
        "CKA",
        "debiased",
        "within lengths",
        "correlation with retrieval",
        "Conneau et al. 2020, CKA",
    ]);
    for pair in pairs {
        for system in data.levels(&["cka", "cka_debiased", "correlation"], "system", &SYSTEMS) {
            let own = [("system", &*system), ("pair", &**pair)];
            let of = |measure| TableCell::Ours(data.mean(measure, &own));
            if data.mean("cka", &own).is_none() {
                continue;
            }
            let factors = [("pair", &**pair), ("system", &*system), ("layer", "mean")];
            table.rows.push(vec![
                TableCell::Name(pair.clone()),
                TableCell::Text(system_name(&system).to_owned()),
                of("cka"),
                of("cka_debiased"),
                of("cka_within"),
                of("correlation"),
                TableCell::Paper(papers::number(1, "Figure 7", "cka", &factors), 2),
            ]);
        }
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
        "no-anchors" => "none",
        other => other,
    }
}
