//! Which layers hold what transfers: zero-shot transfer with a part of the layers re-initialised before fine-tuning.

use terms::Task;

use super::ReportSection;
use super::names::language_name;
use super::parts::{OTHERS, chance, figure, measured_tasks, measures, named, over_chance, points};
use super::shift::judged_encoders;
use crate::draw::{Chart, LineChart, LineSeries, ReferenceLine, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, SeedSample};

const STUDY: &str = "reinit";
/// The factor that names the part of the layers that is new: `none`, or its number from the lowest.
const PART: &str = "new_part";
const NONE: &str = "none";
/// The most of a score that is called hardly any.
const HARDLY: f64 = 0.05;

pub(in crate::report) const REINIT: ReportSection = ReportSection {
    id: "reinit",
    title: "Which layers hold what transfers?",
    place: "beyond the papers",
    studies: &[STUDY],
    method: "The layers of a pretrained encoder are cut into four parts. One of them is given new random weights, the encoder is \
             fine-tuned on the source language with all its layers, and tested in the source language and in the others: what a \
             part had learned in pretraining is missing, and fine-tuning brings back what the source language can teach. Of an \
             untrained encoder all parts are new.",
    claims: &[
        PaperClaim {
            finding: "Transfer is in the lower layers: it loses more where these begin anew than where upper ones do",
            place: "Muller et al. 2021",
            paper: &|| "shown in tables: large losses at the lowest layers alone".to_owned(),
            quantity: "target score with an upper part re-initialised minus with a lower part",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                lines(view, |data, task| {
                    let of = |half| over(data, task, "target", half);
                    of(Half::Upper).minus(&of(Half::Lower))
                })
            },
        },
        PaperClaim {
            finding: "Where lower layers begin anew, the other language loses more than the source language",
            place: "Muller et al. 2021",
            paper: &|| "shown in tables: the source language loses a few points".to_owned(),
            quantity: "score lost with a lower part re-initialised, target minus source",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                lines(view, |data, task| {
                    let lost = |role| {
                        let none = scores(data, task, role, NONE).sample();
                        none.minus(&over(data, task, role, Half::Lower))
                    };
                    lost("target").minus(&lost("source"))
                })
            },
        },
        PaperClaim {
            finding: "The highest layers begin anew at hardly any loss of transfer",
            place: "Muller et al. 2021, Tamkin et al. 2020",
            paper: &|| "shown in tables: no loss, or a gain".to_owned(),
            quantity: "target score lost with the highest part re-initialised",
            criterion: Criterion::Below(HARDLY),
            measure: &|view| {
                lines(view, |data, task| {
                    let highest = parts(data).pop().unwrap_or_default();
                    let of = |part: &str| scores(data, task, "target", part).sample();
                    of(NONE).minus(&of(&highest))
                })
            },
        },
    ],
    fails: "Transfer loses no more where lower layers begin anew than where upper ones do",
    numbers: &|view| {
        let data = view.study(STUDY);
        let Some((_, own)) = data.encoders().into_iter().next() else { return String::new() };
        let part = |task: Task| {
            let none = scores(&own, task, "target", NONE).sample().mean()?.mean;
            let of = |half| Some(over(&own, task, "target", half).mean()?.mean);
            let (lower, upper) = (of(Half::Lower)?, of(Half::Upper)?);
            let [none, lower, upper] = [none, lower, upper].map(short);
            Some(format!("{} {none}, lower new {lower}, upper new {upper}", task.title()))
        };
        measured_tasks(&own).into_iter().filter_map(part).collect::<Vec<_>>().join("; ")
    },
    show: &show,
};

/// The lower or the upper parts.
#[derive(Clone, Copy, PartialEq)]
enum Half {
    Lower,
    Upper,
}

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

/// The mean score of each seed over the parts of a half, of which one is new at a time.
fn over(data: &StudyData<'_>, task: Task, role: &str, half: Half) -> SeedSample {
    let parts = parts(data);
    let (lower, upper) = parts.split_at(parts.len() / 2);
    let chosen = if half == Half::Lower { lower } else { upper };
    let tagged = chosen.iter().map(|part| scores(data, task, role, part).tagged(PART, part));
    tagged.fold(Observations::default(), Observations::join).sample()
}

/// A line for each task and encoder, controlled by what there is to lose: transfer above an untrained encoder's, or chance where
/// none was fine-tuned.
fn lines(
    view: &SettingView<'_>,
    quantity: impl Fn(&StudyData<'_>, Task) -> SeedSample,
) -> Vec<ClaimLine> {
    let data = view.study(STUDY);
    let of_task = |task: Task| {
        judged_encoders(&data, |data, untrained| {
            let own = scores(data, task, "target", NONE);
            let untrained = scores(untrained, task, "target", NONE);
            let control = match untrained.is_empty() {
                true => over_chance(&own, task.chance()),
                false => Control::of("untrained", &own, &untrained),
            };
            ClaimLine::new(task.title(), Evidence::Seeds(quantity(data, task))).against(control)
        })
    };
    measured_tasks(&data).into_iter().flat_map(of_task).collect()
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
