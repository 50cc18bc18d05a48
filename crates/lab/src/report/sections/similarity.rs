//! Similarity of networks by layer: linear CKA (Kornblith et al. 2019; Conneau et al. 2020, §5.2).

use super::ReportSection;
use super::parts::{
    LESS, MORE, Series, between_distances, by_pair, difference, figure, layers_line, named,
    nearest_and_farthest, over_layers, pair_name, system_colour,
};
use crate::draw::{Chart, ChartPoint, LineChart, LineSeries, short};
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
            paper: &|| means(&["bilingual", "monolingual"]),
            quantity: "mean CKA over layers, bilingual minus monolingual",
            criterion: Criterion::Above(0.0),
            measure: &|view| systems(view, "bilingual", "monolingual"),
        },
        PaperClaim {
            finding: "Monolingual encoders are more similar to each other than to an untrained encoder",
            place: "Conneau et al. 2020, Figure 7",
            paper: &|| means(&["monolingual", "untrained"]),
            quantity: "mean CKA over layers, monolingual minus untrained",
            criterion: Criterion::Above(0.0),
            measure: &|view| systems(view, "monolingual", "untrained"),
        },
        PaperClaim {
            finding: "Lower layers are more similar than higher layers",
            place: "Conneau et al. 2020, §5.2",
            paper: &|| {
                let of = |layer| {
                    let factors = [("pair", "en-fr"), ("system", "bilingual"), ("layer", layer)];
                    papers::number(1, "Figure 7", "cka", &factors)
                        .map_or(String::new(), |v| format!("{v:.2}"))
                };
                format!("en-fr, bilingual: {} at layer 1, {} at layer 8", of("1"), of("8"))
            },
            quantity: "mean CKA of the upper half of the layers minus that of the lower half",
            criterion: Criterion::Below(0.0),
            measure: &|view| {
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
            paper: &|| "correlation over 0.9 for all four pairs".to_owned(),
            quantity: "correlation over layers of CKA with aligned retrieval accuracy, monolingual (Fisher's z)",
            criterion: Criterion::Above(0.9),
            measure: &|view| {
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
            paper: &|| {
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
            measure: &|view| {
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
                    format!("{} and {}", pair_name(&near), pair_name(&far)),
                    between_distances(&near, gap(&near).minus(&gap(&far))),
                )
                .against(
                    Control::of("untrained", &of("bilingual", &near), &untrained).if_measured(),
                )
                .alone()
            },
        },
    ],
    fails: "A bilingual encoder is no more similar across its languages than two monolingual encoders are",
    numbers: &|view| {
        let data = across_languages(view);
        let of = |system: &str| {
            let mean = data.mean(measure(&data), &[("system", system)])?;
            Some(format!("{} {system}", short(mean.mean)))
        };
        let parts: Vec<String> = SYSTEMS[..3].iter().filter_map(|system| of(system)).collect();
        if parts.is_empty() { String::new() } else { format!("CKA {}", parts.join(", ")) }
    },
    show: &show,
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
    let series: &Series<'_> = &SYSTEMS.map(|system| (system, vec![("system", system)]));
    let curves = |measure, unit: &str| -> Vec<Chart> {
        let panel = |pair: &String| {
            over_layers(&data, measure, &[("pair", pair)], series, (&pair_name(pair), unit))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let theirs: Vec<Chart> =
        if data.is_empty() { vec![] } else { PAIRS.iter().map(|pair| paper(pair)).collect() };
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 7"]),
            "Our results: CKA of mean-pooled sentence vectors by layer, computed as in the paper. A pair with \u{2032} is a \
             language with its own paraphrases.",
            figure(named(id, "cka"), "CKA", &curves("cka", "CKA")),
        ),
        CaptionedItem::figure(
            replicates(1, &["Figure 7"]),
            "The paper's results: English with its own back-translation (en\u{2032}) and with four languages.",
            figure(named(id, "paper"), "CKA, Conneau et al. 2020", &theirs),
        )
        .once(),
        CaptionedItem::figure(
            BEYOND,
            "The debiased estimate, which does not grow with fewer sentences.",
            figure(
                named(id, "debiased"),
                "Debiased CKA",
                &curves("cka_debiased", "CKA, debiased"),
            ),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 7"]),
            "Means over layers, by pair. Correlations are averaged on Fisher's scale.",
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
                TableCell::Name(pair_name(pair)),
                TableCell::Text(data.name(&system)),
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

/// The paper's curves of a pair.
fn paper(pair: &str) -> Chart {
    let value = |system: &str, layer: u32| {
        let factors = [("pair", pair), ("system", system), ("layer", &*layer.to_string())];
        papers::number(1, "Figure 7", "cka", &factors)
    };
    let line = |system: &&str| LineSeries {
        name: (*system).to_owned(),
        colour: system_colour(system).unwrap_or(0),
        dashed: false,
        points: (0..9)
            .filter_map(|layer| {
                let y = value(system, layer)?;
                Some(ChartPoint { x: f64::from(layer), y, ..ChartPoint::default() })
            })
            .collect(),
    };
    Chart::Lines(LineChart {
        title: pair_name(pair),
        across: "layer".to_owned(),
        unit: "CKA".to_owned(),
        lines: SYSTEMS[..3].iter().map(line).collect(),
        from_zero: true,
        ..LineChart::default()
    })
}
