//! Transfer between separately trained encoders through a map of contextual word vectors (Conneau et al. 2020, §5.1.2).

use terms::Task;

use super::parts::{Series, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::Chart;
use crate::report::data::SettingView;
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-contexts");
    let panels = |series: &Series<'_>| -> Vec<Chart> {
        let mut panels = Vec::new();
        for task in Task::all() {
            for pair in pairs_of(&data, &[task.measure()]) {
                let common = [("task", task.name()), ("role", "target"), ("pair", &*pair)];
                let title = format!("{}, {}", task.title(), pair_name(&pair));
                panels.extend(over_layers(
                    &data,
                    task.measure(),
                    &common,
                    series,
                    (&title, task.unit()),
                ));
            }
        }
        panels
    };
    let five: &Series<'_> = &[
        ("monolingual-aligned", vec![("system", "monolingual-aligned")]),
        ("bilingual", vec![("system", "bilingual")]),
        ("monolingual-raw", vec![("system", "monolingual-raw")]),
        ("untrained-aligned", vec![("system", "untrained-aligned")]),
        ("no-anchors-raw", vec![("system", "no-anchors-raw")]),
    ];
    let eight: &Series<'_> = &[
        ("bilingual-raw", vec![("system", "bilingual")]),
        ("bilingual-aligned", vec![("system", "bilingual-aligned")]),
        ("untrained-aligned", vec![("system", "untrained-aligned")]),
    ];
    let mut table = ReportTable::new(&["system", "NER (F1)", "parsing (LAS)"]);
    let order = [
        "monolingual-aligned",
        "bilingual",
        "bilingual-aligned",
        "monolingual-raw",
        "untrained-aligned",
    ];
    for system in data.levels(&["f1", "las"], "system", &order) {
        let of = |measure| {
            TableCell::Ours(
                data.best(measure, &[("system", &*system), ("role", "target")]).sample().mean(),
            )
        };
        table.rows.push(vec![TableCell::Name(data.name(&system)), of("f1"), of("las")]);
    }
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 5"]),
            "Target scores of task models over a frozen layer, by layer; the dashed grey line is chance.",
            figure(named(id, "mapped"), "Transfer through an orthogonal map", &panels(five)),
        ),
        CaptionedItem::figure(
            replicates(1, &["Figure 8"]),
            "Appendix A: the same with a map between the two languages of the bilingual encoder.",
            figure(
                named(id, "bilingual"),
                "Alignment within the bilingual encoder",
                &panels(eight),
            ),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 5", "Figure 8"]),
            "Target scores at the best layer, over all pairs.",
            table,
        ),
    ]
}
