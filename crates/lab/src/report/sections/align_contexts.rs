//! Transfer between separately trained encoders through a map of contextual word vectors (Conneau et al. 2020, §5.1.2).

use terms::Task;

use super::ReportSection;
use super::parts::{
    MORE, NOT_PRINTED, Series, at_layers, by_pair, chosen, chosen_difference, difference, figure,
    named, over_layers, over_untrained, pair_name, pairs_of,
};
use crate::draw::{Chart, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, SeedSample, chosen_by_others};

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
            paper: &NOT_PRINTED,
            quantity: "target score of monolingual encoders, aligned minus raw, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                by_task(view, |data, task| {
                    let of = |system| scores_by_layer(data, system, task);
                    let aligned = of("monolingual-aligned");
                    let control = over_untrained(&aligned, &of("untrained-aligned"));
                    ClaimLine::new("", chosen_difference(&aligned, &of("monolingual-raw")))
                        .against(control.if_measured())
                })
            },
        },
        PaperClaim {
            finding: "A bilingual encoder transfers better than aligned monolingual encoders",
            place: "Conneau et al. 2020, Figure 5",
            paper: &|| "except for parsing of French".to_owned(),
            quantity: "target score of the bilingual encoder minus aligned monolingual encoders, each at the layer that is best in the other \
                       seeds",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                by_task(view, |data, task| {
                    let of = |system| scores_by_layer(data, system, task);
                    ClaimLine::new(
                        "",
                        chosen_difference(&of("bilingual"), &of("monolingual-aligned")),
                    )
                    .against(bilingual_control(data, task).if_measured())
                })
            },
        },
        PaperClaim {
            finding: "The map falls further behind in NER than in parsing",
            place: "Conneau et al. 2020, §5.1.2",
            paper: &NOT_PRINTED,
            quantity: "advantage of the bilingual encoder over aligned monolingual encoders, each at the layer that is best in the other \
                       seeds: in NER minus in parsing",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.study("align-contexts");
                let gap = |task| {
                    let of = |system| chosen_by_others(&scores_by_layer(&data, system, task));
                    of("bilingual").minus(&of("monolingual-aligned")).sample()
                };
                let scores = [Task::Ner, Task::Parse]
                    .map(|task| scores_by_layer(&data, "monolingual-aligned", task));
                let gaps = gap(Task::Ner).minus(&gap(Task::Parse));
                ClaimLine::new("", chosen(gaps, &[&scores[0], &scores[1]]))
                    .against(bilingual_control(&data, Task::Ner).if_measured())
                    .alone()
            },
        },
        PaperClaim {
            finding: "Middle layers transfer better than the last",
            place: "Conneau et al. 2020, §5.1.2",
            paper: &NOT_PRINTED,
            quantity: "mean target score of the middle half of the layers minus that of the last layer, monolingual, aligned",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.study("align-contexts");
                let own = middle_minus_last(&data, "monolingual-aligned");
                let untrained = middle_minus_last(&data, "untrained-aligned");
                let control = Control::of_samples("untrained", &own, untrained, MORE);
                ClaimLine::new("", Evidence::Seeds(own)).against(control).alone()
            },
        },
        PaperClaim {
            finding: "A map within a bilingual encoder helps parsing",
            place: "Conneau et al. 2020, §5.1.2 and appendix A",
            paper: &|| "most of all from English to French".to_owned(),
            quantity: "parsing score of the bilingual encoder, aligned minus raw, over layers",
            criterion: Criterion::Above(0.0),
            measure: &|view| within_bilingual(view, Task::Parse),
        },
        PaperClaim {
            finding: "A map within a bilingual encoder does not help NER",
            place: "Conneau et al. 2020, §5.1.2 and appendix A",
            paper: &|| "an improvement in parsing only".to_owned(),
            quantity: "NER score of the bilingual encoder, aligned minus raw, over layers",
            criterion: Criterion::Below(0.01),
            measure: &|view| within_bilingual(view, Task::Ner),
        },
    ],
    fails: "No orthogonal map makes monolingual encoders transfer",
    numbers: &|view| {
        let data = view.study("align-contexts");
        let of = |system: &str, task: Task| {
            let factors = [("system", system), ("task", task.name()), ("role", "target")];
            data.best(task.measure(), &factors).sample().mean().map(|mean| short(mean.mean))
        };
        let part = |task: Task| {
            let (raw, aligned) = (of("monolingual-raw", task)?, of("monolingual-aligned", task)?);
            Some(format!("{} {raw} \u{2192} {aligned}", task.title()))
        };
        [Task::Ner, Task::Parse].into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
    },
    show: &show,
};

/// Target scores of a system in a task, layer by layer.
fn scores_by_layer(data: &StudyData<'_>, system: &str, task: Task) -> Vec<Observations> {
    let factors = [("system", system), ("task", task.name()), ("role", "target")];
    data.by_layer(task.measure(), &factors)
}

/// A line for each task, and for each pair where there are several.
fn by_task(
    view: &SettingView<'_>,
    line: impl Fn(&StudyData<'_>, Task) -> ClaimLine,
) -> Vec<ClaimLine> {
    let data = view.study("align-contexts");
    let of_task = |task: Task| {
        by_pair(&data, &[task.measure()], |data, _| ClaimLine {
            of: task.title().to_owned(),
            ..line(data, task)
        })
    };
    [Task::Ner, Task::Parse].into_iter().flat_map(of_task).collect()
}

/// The control that the bilingual encoder transfers more than an untrained one.
fn bilingual_control(data: &StudyData<'_>, task: Task) -> Control {
    let untrained: Vec<Observations> = ["untrained-aligned", "untrained-raw", "untrained"]
        .into_iter()
        .flat_map(|system| scores_by_layer(data, system, task))
        .filter(|scores| !scores.is_empty())
        .collect();
    over_untrained(&scores_by_layer(data, "bilingual", task), &untrained)
}

/// What the map changes within the bilingual encoder, over all layers.
fn within_bilingual(view: &SettingView<'_>, task: Task) -> Vec<ClaimLine> {
    let data = view.study("align-contexts");
    let of = |system| {
        let factors = [("system", system), ("task", task.name()), ("role", "target")];
        at_layers(&data, task.measure(), &factors, &data.layers(task.measure()))
    };
    ClaimLine::new("", difference(&of("bilingual-aligned"), &of("bilingual")))
        .against(bilingual_control(&data, task))
        .alone()
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
fn middle_minus_last(data: &StudyData<'_>, system: &str) -> SeedSample {
    let (mut middle, mut last) = (Observations::default(), Observations::default());
    for task in Task::all() {
        let layers = data.layers(task.measure());
        let of = |layers: &[String]| {
            let factors = [("system", system), ("task", task.name()), ("role", "target")];
            at_layers(data, task.measure(), &factors, layers).tagged("task", task.name())
        };
        middle = middle.join(of(&middle_half(&layers)));
        last = last.join(of(&layers[layers.len().saturating_sub(1)..]));
    }
    middle.sample().minus(&last.sample())
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
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
