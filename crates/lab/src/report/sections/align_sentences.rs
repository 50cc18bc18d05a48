//! Sentence retrieval between separately trained encoders (Conneau et al. 2020, §5.1.3).

use super::parts::{Series, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::Chart;
use crate::report::data::SettingView;
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-sentences");
    let pairs = pairs_of(&data, &["retrieval"]);
    let panels = |series: &Series<'_>| {
        let panel = |pair: &String| {
            let title = pair_name(pair);
            over_layers(&data, "retrieval", &[("pair", pair)], series, (&title, "P@1"))
        };
        pairs.iter().filter_map(panel).collect::<Vec<Chart>>()
    };
    let aligned: &Series<'_> = &[
        ("monolingual", vec![("system", "monolingual"), ("kind", "aligned")]),
        ("bilingual", vec![("system", "bilingual"), ("kind", "aligned")]),
        ("untrained", vec![("system", "untrained"), ("kind", "aligned")]),
        ("no-anchors", vec![("system", "no-anchors"), ("kind", "aligned")]),
    ];
    let kinds: &Series<'_> = &[
        ("raw", vec![("system", "bilingual"), ("kind", "raw")]),
        ("centred", vec![("system", "bilingual"), ("kind", "centered")]),
        ("aligned", vec![("system", "bilingual"), ("kind", "aligned")]),
        ("untrained (raw)", vec![("system", "untrained"), ("kind", "raw")]),
        ("untrained (aligned)", vec![("system", "untrained"), ("kind", "aligned")]),
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
            TableCell::Name(data.name(&system)),
            of("raw"),
            of("centered"),
            of("aligned"),
        ]);
    }
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 6"]),
            "Sentence retrieval accuracy after Procrustes alignment, by layer; the dashed line is chance.",
            figure(named(id, "aligned"), "Sentence retrieval after alignment", &panels(aligned)),
        ),
        CaptionedItem::figure(
            BEYOND,
            "Sentence retrieval accuracy of the bilingual encoder: raw, mean-centred, and after Procrustes alignment; the \
             untrained encoder beside it, dashed.",
            figure(
                named(id, "kinds"),
                "Sentence retrieval within one bilingual encoder",
                &panels(kinds),
            ),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 6"]),
            "P@1 at the best layer, over all pairs. The paper cites over 0.95 for LASER, which is trained on millions of \
             parallel sentences.",
            table,
        ),
    ]
}
