//! Which layers hold what transfers: zero-shot transfer with a part of the layers re-initialised before fine-tuning.

use terms::Task;

use super::names::language_name;
use super::parts::{OTHERS, chance, figure, halves, measured_tasks, measures, named, points};
use crate::draw::{Chart, LineChart, LineSeries, ReferenceLine, short};
use crate::report::claims::SectionCode;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::observations::Observations;

const STUDY: &str = "reinit";
/// The factor that names the part of the layers that is new: `none`, or its number from the lowest.
const PART: &str = "new_part";
const NONE: &str = "none";

pub(super) const CODE: SectionCode = SectionCode {
    rules: &[],
    show: Some(&show),
    numbers: Some(|view| {
        let data = view.study(STUDY);
        let Some((_, own)) = data.encoders().into_iter().next() else { return String::new() };
        let part = |task: Task| {
            let of = |part: &str| scores(&own, task, "target", part);
            let none = of(NONE).sample().mean()?.mean;
            let [lower, upper] = halves(&parts(&own), of).map(|half| half.mean());
            let [none, lower, upper] = [none, lower?.mean, upper?.mean].map(short);
            Some(format!("{} {none}, lower new {lower}, upper new {upper}", task.title()))
        };
        measured_tasks(&own).into_iter().filter_map(part).collect::<Vec<_>>().join("; ")
    }),
};

/// The parts that began anew, from the lowest.
fn parts(data: &StudyData<'_>) -> Vec<String> {
    let mut parts = data.levels(&measures(), PART, &[]);
    parts.retain(|part| part != NONE);
    parts
}

/// Scores in the source language or in the others, with a part new or none.
fn scores(data: &StudyData<'_>, task: Task, role: &str, part: &str) -> Observations {
    let factors = [("task", task.name()), ("role", role), (PART, part)];
    data.observations(task.measure(), &factors)
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let mut charts = Vec::new();
    let mut table = ReportTable::new(&["task", "encoder", "new part", "language", "score", "lost"]);
    for (encoder, own) in data.encoders() {
        for task in measured_tasks(&own) {
            let title = format!("{}, {}", task.title(), data.name(&encoder));
            charts.extend(chart(&own, task, &title));
            table.rows.extend(rows(&own, task, &data.name(&encoder)));
        }
    }
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Scores with one part of the layers re-initialised before fine-tuning, from the lowest (1) to the highest; dashed lines \
             are those of the encoder as pretrained, and chance.",
            figure(named(id, "parts"), "Layers that begin anew", &charts),
        ),
        CaptionedItem::table(
            BEYOND,
            "Scores by the part of the layers that was re-initialised, numbered from the lowest, and what was lost by it.",
            table,
        ),
    ]
}

/// Scores over parts; none of an encoder of which no part was new.
fn chart(data: &StudyData<'_>, task: Task, title: &str) -> Option<Chart> {
    let mut references = vec![chance(task.chance())];
    let mut lines = Vec::new();
    for (place, (role, name)) in
        [("target", "other languages"), ("source", "source language")].into_iter().enumerate()
    {
        let factors = [("task", task.name()), ("role", role)];
        let points = points(data, task.measure(), &factors, PART);
        if points.is_empty() {
            continue;
        }
        let none = scores(data, task, role, NONE).sample().mean();
        references.extend(
            none.map(|none| ReferenceLine { name: format!("{name}, none new"), value: none.mean }),
        );
        lines.push(LineSeries { name: name.into(), colour: OTHERS + place, dashed: false, points });
    }
    (!lines.is_empty()).then(|| {
        Chart::Lines(LineChart {
            title: title.into(),
            across: "part of the layers".into(),
            unit: task.unit().into(),
            lines,
            from_zero: true,
            references,
            highest_only: false,
        })
    })
}

fn rows(data: &StudyData<'_>, task: Task, encoder: &str) -> Vec<Vec<TableCell>> {
    let none = [NONE.to_owned()];
    let languages = data.levels(&[task.measure()], "language", &[]);
    let parts = parts(data);
    let row = |part: &String, language: &String| {
        let of = |part: &str| {
            let factors = [("task", task.name()), ("language", &**language), (PART, part)];
            data.observations(task.measure(), &factors).sample()
        };
        let lost = (part != NONE).then(|| of(NONE).minus(&of(part)).mean()).flatten();
        vec![
            TableCell::Name(task.title().to_owned()),
            TableCell::Text(encoder.to_owned()),
            TableCell::Text(part.clone()),
            TableCell::Text(language_name(language)),
            TableCell::Ours(of(part).mean()),
            TableCell::Ours(lost),
        ]
    };
    let of_part = |part| languages.iter().map(move |language| row(part, language));
    none.iter().chain(&parts).flat_map(of_part).collect()
}
