//! Sentence retrieval between separately trained encoders (Conneau et al. 2020, §5.1.3).

use super::ReportSection;
use super::parts::{
    LESS, NOT_PRINTED, Series, by_pair, chance_of_retrieval, chosen_difference, figure,
    layers_line, named, over_layers, pair_name, pairs_of,
};
use crate::draw::{Chart, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Criterion, PaperClaim};
use crate::report::observations::Observations;

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
                by_pair(&view.study("align-sentences"), &["retrieval"], |data, _| {
                    let aligned = [("kind", "aligned")];
                    let own = [("system", "monolingual"), ("kind", "aligned")];
                    let (own, untrained) =
                        (data.by_layer("retrieval", &own), untrained_by_layer(data, &aligned));
                    ClaimLine::new("", chosen_difference(&own, &untrained))
                })
            },
        },
        PaperClaim {
            finding: "Lower layers align better than higher layers",
            place: "Conneau et al. 2020, §5.1.3",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half, monolingual, aligned",
            criterion: Criterion::Below(0.0),
            measure: |view| {
                by_pair(&view.study("align-sentences"), &["retrieval"], |data, _| {
                    layers_line(data, "retrieval", ("monolingual", &[("kind", "aligned")]), LESS)
                })
            },
        },
    ],
    fails: "Sentence vectors of monolingual encoders cannot be aligned by an orthogonal map",
    numbers: |view| {
        let data = view.study("align-sentences");
        let of = |system: &str| {
            let factors = [("system", system), ("kind", "aligned")];
            data.best("retrieval", &factors).sample().mean().map(|mean| short(mean.mean))
        };
        let (Some(own), Some(untrained)) = (of("monolingual"), of("untrained")) else {
            return String::new();
        };
        let chance = chance_of_retrieval(&data).map_or(String::new(), |chance| {
            format!(", chance {}", crate::report::finding::signed(chance.value, 3))
        });
        format!("P@1 {own}, untrained {untrained}{chance}")
    },
    show,
};

/// Retrieval by the untrained encoder, layer by layer.
fn untrained_by_layer(data: &StudyData<'_>, factors: &[(&str, &str)]) -> Vec<Observations> {
    let at = |layer: &String| {
        data.untrained("retrieval", &[factors, &[("layer", layer.as_str())]].concat())
    };
    data.layers("retrieval").iter().map(at).collect()
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
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
