//! Transfer between separately trained encoders through a map of contextual word vectors (Conneau et al. 2020, §5.1.2).

use terms::Task;

use super::ReportSection;
use super::parts::{
    NOT_PRINTED, Series, at_layers, chosen_difference, lines_figure, measures, named, over_layers,
    pairs_of, system_name,
};
use crate::draw::Panel;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::Observations;

pub(in crate::report) const ALIGN_CONTEXTS: ReportSection = ReportSection {
    id: "align-contexts",
    title: "Does a task transfer between monolingual encoders through a map?",
    place: "Conneau et al. 2020, §5.1.2 and appendix A",
    studies: &["align-contexts"],
    method: "A task model is trained over a frozen layer of the source language's encoder. At test time, words of the \
             target language pass through the target's own encoder, then through an orthogonal map learned from \
             word-aligned parallel text, then through the same task model.",
    claims: &[
        PaperClaim {
            finding: "An orthogonal map makes monolingual encoders transfer",
            place: "Conneau et al. 2020, Figure 5",
            paper: NOT_PRINTED,
            quantity: "target score of monolingual encoders, aligned minus raw, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "monolingual-aligned", "monolingual-raw"),
        },
        PaperClaim {
            finding: "A bilingual encoder transfers better than aligned monolingual encoders",
            place: "Conneau et al. 2020, Figure 5",
            paper: || "except for parsing of French".to_owned(),
            quantity: "target score of the bilingual encoder minus aligned monolingual encoders, each at the layer that is best in the other \
                       seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "bilingual", "monolingual-aligned"),
        },
        PaperClaim {
            finding: "Middle layers transfer better than the last",
            place: "Conneau et al. 2020, §5.1.2",
            paper: NOT_PRINTED,
            quantity: "mean target score of the middle half of the layers minus that of the last layer, monolingual, aligned",
            criterion: Criterion::Above(0.0),
            measure: middle_minus_last,
        },
    ],
    show,
};

/// Target scores of a system over all tasks, layer by layer.
fn scores_by_layer(data: &StudyData<'_>, system: &str) -> Vec<Observations> {
    let mut layers = data.levels(&measures(), "layer", &[]);
    layers.retain(|layer| layer.parse::<u32>().is_ok());
    let at = |layer: &String| {
        let of = |task: Task| {
            let factors =
                [("system", system), ("task", task.name()), ("role", "target"), ("layer", layer)];
            data.observations(task.measure(), &factors).tagged("task", task.name())
        };
        Task::all().map(of).fold(Observations::default(), Observations::join)
    };
    layers.iter().map(at).collect()
}

fn systems(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("align-contexts");
    chosen_difference(&scores_by_layer(&data, a), &scores_by_layer(&data, b))
}

/// The layers from a quarter of the depth to three quarters: of eight, 2 to 6.
fn middle_half(layers: &[String]) -> Vec<String> {
    let number = |layer: &String| layer.parse::<usize>().unwrap_or(0);
    let last = layers.iter().map(number).max().unwrap_or(0);
    let within =
        |layer: &&String| number(layer) > 0 && (last..=3 * last).contains(&(4 * number(layer)));
    layers.iter().filter(within).cloned().collect()
}

/// The middle layers are fixed in advance: the best of several layers would exceed the last by selection alone.
fn middle_minus_last(view: &SettingView<'_>) -> Evidence {
    let data = view.study("align-contexts");
    let (mut middle, mut last) = (Observations::default(), Observations::default());
    for task in Task::all() {
        let layers = data.layers(task.measure());
        let of = |layers: &[String]| {
            let factors =
                [("system", "monolingual-aligned"), ("task", task.name()), ("role", "target")];
            at_layers(&data, task.measure(), &factors, layers).tagged("task", task.name())
        };
        middle = middle.join(of(&middle_half(&layers)));
        last = last.join(of(&layers[layers.len().saturating_sub(1)..]));
    }
    Evidence::Seeds(middle.sample().minus(&last.sample()))
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-contexts");
    let panels = |series: &Series<'_>| -> Vec<Panel> {
        let mut panels = Vec::new();
        for task in Task::all() {
            for pair in pairs_of(&data, &[task.measure()]) {
                let common = [("task", task.name()), ("role", "target"), ("pair", &*pair)];
                let title = format!("{}, {pair}", task.title());
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
        ("monolingual, aligned", vec![("system", "monolingual-aligned")]),
        ("bilingual", vec![("system", "bilingual")]),
        ("monolingual, raw", vec![("system", "monolingual-raw")]),
    ];
    let eight: &Series<'_> = &[
        ("bilingual, raw", vec![("system", "bilingual")]),
        ("bilingual, aligned", vec![("system", "bilingual-aligned")]),
    ];
    let mut table = ReportTable::new(&["system", "NER (F1)", "parsing (LAS)"]);
    let order = ["monolingual-aligned", "bilingual", "bilingual-aligned", "monolingual-raw"];
    for system in data.levels(&["f1", "las"], "system", &order) {
        let of = |measure| {
            TableCell::Ours(
                data.best(measure, &[("system", &*system), ("role", "target")]).sample().mean(),
            )
        };
        table.rows.push(vec![
            TableCell::Name(system_name(&system).to_owned()),
            of("f1"),
            of("las"),
        ]);
    }
    vec![
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 5",
            "Target scores of task models over a frozen layer, by layer.",
            lines_figure(
                named(id, "mapped"),
                "Transfer through an orthogonal map",
                five,
                panels(five),
            ),
        ),
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 8",
            "The same with a map between the two languages of the bilingual encoder.",
            lines_figure(
                named(id, "bilingual"),
                "Alignment within the bilingual encoder",
                eight,
                panels(eight),
            ),
        ),
        CaptionedItem::table(
            "Conneau et al. 2020, Figures 5 and 8",
            "Target scores at the best layer, over all pairs.",
            table,
        ),
    ]
}
