//! Word translation between separately trained encoders (Conneau et al. 2020, §5.1.1).

use super::ReportSection;
use super::parts::{
    NOT_PRINTED, Series, bar, bars_panel, chosen_difference, difference, legend, lines_figure,
    named, over_layers, pairs_of, system_name, upper_minus_lower,
};
use crate::draw::{BarGroup, Figure, SeriesMark};
use crate::report::data::SettingView;
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, PaperClaim};

pub(in crate::report) const ALIGN_WORDS: ReportSection = ReportSection {
    id: "align-words",
    title: "Are the word spaces of monolingual encoders isomorphic?",
    place: "Conneau et al. 2020, §5.1.1",
    studies: &["align-words"],
    method: "Two monolingual encoders are trained separately. An orthogonal map learned from a bilingual dictionary \
             (Procrustes) takes the word vectors of one to those of the other; held-out words of the dictionary are \
             translated by CSLS retrieval (Lample et al. 2018).",
    claims: &[
        PaperClaim {
            finding: "Word vectors of monolingual encoders can be aligned by an orthogonal map",
            place: "Conneau et al. 2020, Figure 4b",
            paper: NOT_PRINTED,
            quantity: "P@1 of monolingual minus untrained encoders, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-words");
                let of = |system| data.by_layer("p_at_1", &[("system", system)]);
                chosen_difference(&of("monolingual"), &of("untrained"))
            },
        },
        PaperClaim {
            finding: "Higher layers align better than lower layers",
            place: "Conneau et al. 2020, §5.1.1",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                upper_minus_lower(
                    &view.study("align-words"),
                    "p_at_1",
                    &[("system", "monolingual")],
                )
            },
        },
        PaperClaim {
            finding: "Embedding tables align as well as fastText vectors",
            place: "Conneau et al. 2020, Figure 4a",
            paper: || "slightly better than fastText".to_owned(),
            quantity: "P@1 of the embedding tables minus that of fastText vectors",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-words");
                difference(
                    &data.observations("p_at_1", &[("system", "embeddings")]),
                    &data.observations("p_at_1", &[("system", "fasttext")]),
                )
            },
        },
    ],
    show,
};

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-words");
    let pairs = pairs_of(&data, &["p_at_1"]);
    let statics = |pair: &String| BarGroup {
        name: pair.clone(),
        bars: ["embeddings", "fasttext"]
            .iter()
            .enumerate()
            .map(|(i, system)| {
                bar(i, data.mean("p_at_1", &[("system", system), ("pair", pair)]), None)
            })
            .collect(),
    };
    let names = ["embeddings", "fasttext"].map(|system| system_name(system).to_owned());
    let tables = Figure {
        id: named(id, "tables"),
        title: "Word translation by static vectors".to_owned(),
        legend: legend(&names, SeriesMark::Bar, false),
        panels: bars_panel("Static vectors", "P@1", pairs.iter().map(statics).collect())
            .into_iter()
            .collect(),
    };
    let series: &Series<'_> = &[
        ("monolingual", vec![("system", "monolingual")]),
        ("bilingual", vec![("system", "bilingual")]),
        ("untrained", vec![("system", "untrained")]),
        ("fastText", vec![("system", "fasttext")]),
    ];
    let panels = pairs
        .iter()
        .filter_map(|pair| over_layers(&data, "p_at_1", &[("pair", pair)], series, (pair, "P@1")));
    let layers =
        lines_figure(named(id, "layers"), "Word translation by layer", series, panels.collect());
    let mut table = ReportTable::new(&["system", "pair", "P@1 at the best layer"]);
    for system in data.levels(
        &["p_at_1"],
        "system",
        &["fasttext", "embeddings", "monolingual", "bilingual", "untrained"],
    ) {
        for pair in &pairs {
            let factors = [("system", &*system), ("pair", &**pair)];
            let layered = data.best("p_at_1", &factors).sample().mean();
            let mean = layered
                .or_else(|| data.observations("p_at_1", &factors).without("layer").sample().mean());
            if mean.is_some() {
                table.rows.push(vec![
                    TableCell::Name(system_name(&system).to_owned()),
                    TableCell::Text(pair.clone()),
                    TableCell::Ours(mean),
                ]);
            }
        }
    }
    vec![
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 4a",
            "Word translation by the aligned embedding tables and by aligned fastText vectors.",
            tables,
        ),
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 4b",
            "Word translation by averaged contextual vectors, by layer. Bands are 95 % intervals over seeds; a horizontal line \
             is a system without layers.",
            layers,
        ),
        CaptionedItem::table(
            "Conneau et al. 2020, Figure 4",
            "P@1 over the whole vocabulary (CSLS), at the best layer of each system.",
            table,
        ),
    ]
}
