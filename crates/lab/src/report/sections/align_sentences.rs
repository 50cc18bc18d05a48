//! Sentence retrieval between separately trained encoders (Conneau et al. 2020, §5.1.3).

use super::ReportSection;
use super::parts::{
    NOT_PRINTED, Series, chosen_difference, lines_figure, named, over_layers, pairs_of,
    system_name, upper_minus_lower,
};
use crate::report::data::SettingView;
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, PaperClaim};

pub(in crate::report) const ALIGN_SENTENCES: ReportSection = ReportSection {
    id: "align-sentences",
    title: "Do sentences of monolingual encoders retrieve their translations?",
    place: "Conneau et al. 2020, §5.1.3",
    studies: &["align-sentences"],
    method: "A sentence vector is the mean over its subwords at a layer. After Procrustes alignment learned from other \
             parallel sentences, the accuracy (P@1) is the share of sentences whose nearest neighbour in the other language is \
             their translation, averaged over both directions.",
    claims: &[
        PaperClaim {
            finding: "Sentence vectors of monolingual encoders can be aligned by an orthogonal map",
            place: "Conneau et al. 2020, Figure 6",
            paper: NOT_PRINTED,
            quantity: "P@1 of monolingual minus untrained encoders, both aligned, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-sentences");
                let of =
                    |system| data.by_layer("retrieval", &[("system", system), ("kind", "aligned")]);
                chosen_difference(&of("monolingual"), &of("untrained"))
            },
        },
        PaperClaim {
            finding: "Lower layers align better than higher layers",
            place: "Conneau et al. 2020, §5.1.3",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half, monolingual, aligned",
            criterion: Criterion::Below(0.0),
            measure: |view| {
                let factors = [("system", "monolingual"), ("kind", "aligned")];
                upper_minus_lower(&view.study("align-sentences"), "retrieval", &factors)
            },
        },
    ],
    show,
};

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-sentences");
    let pairs = pairs_of(&data, &["retrieval"]);
    let panels = |series: &Series<'_>| {
        let panel = |pair: &String| {
            over_layers(&data, "retrieval", &[("pair", pair)], series, (pair, "P@1"))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let aligned: &Series<'_> = &[
        ("monolingual", vec![("system", "monolingual"), ("kind", "aligned")]),
        ("bilingual", vec![("system", "bilingual"), ("kind", "aligned")]),
        ("untrained", vec![("system", "untrained"), ("kind", "aligned")]),
    ];
    let kinds: &Series<'_> = &[
        ("raw", vec![("system", "bilingual"), ("kind", "raw")]),
        ("centred", vec![("system", "bilingual"), ("kind", "centered")]),
        ("aligned", vec![("system", "bilingual"), ("kind", "aligned")]),
    ];
    let mut table = ReportTable::new(&["system", "raw", "centred", "aligned"]);
    for system in data.levels(&["retrieval"], "system", &["monolingual", "bilingual", "untrained"])
    {
        let of = |kind| {
            TableCell::Ours(
                data.best("retrieval", &[("system", &*system), ("kind", kind)]).sample().mean(),
            )
        };
        table.rows.push(vec![
            TableCell::Name(system_name(&system).to_owned()),
            of("raw"),
            of("centered"),
            of("aligned"),
        ]);
    }
    vec![
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 6",
            "Sentence retrieval accuracy after Procrustes alignment, by layer.",
            lines_figure(
                named(id, "aligned"),
                "Sentence retrieval after alignment",
                aligned,
                panels(aligned),
            ),
        ),
        CaptionedItem::figure(
            "Beyond the paper",
            "Sentence retrieval accuracy of the bilingual encoder: raw, mean-centred, and after Procrustes alignment.",
            lines_figure(
                named(id, "kinds"),
                "Sentence retrieval, bilingual encoder",
                kinds,
                panels(kinds),
            ),
        ),
        CaptionedItem::table(
            "Conneau et al. 2020, Figure 6",
            "P@1 at the best layer, over all pairs. The paper cites over 0.95 for LASER, which is trained on millions of \
             parallel sentences.",
            table,
        ),
    ]
}
