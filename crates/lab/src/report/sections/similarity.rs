//! Similarity of networks by layer: linear CKA (Kornblith et al. 2019; Conneau et al. 2020, §5.2).

use super::parts::{figure, named, pair_name, system_colour};
use crate::draw::{Chart, ChartPoint, LineChart, LineSeries};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};

const SYSTEMS: [&str; 4] = ["bilingual", "monolingual", "untrained", "no-anchors"];
const PAIRS: [&str; 5] = ["en-en'", "en-fr", "en-de", "en-ru", "en-zh"];

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("similarity");
    let pairs = data.levels(&["cka", "cka_debiased"], "pair", &PAIRS);
    let theirs: Vec<Chart> =
        if data.is_empty() { vec![] } else { PAIRS.iter().map(|pair| paper(pair)).collect() };
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 7"]),
            "The paper's results: English with its own back-translation (en\u{2032}) and with four languages.",
            figure(named(id, "paper"), "CKA, Conneau et al. 2020", &theirs),
        )
        .once(),
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
