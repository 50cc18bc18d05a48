//! Zero-shot transfer with a language shift (Liu et al. 2020, §4.3).

use std::collections::BTreeMap;

use terms::Task;

use super::names::{MEAN_ROW, language_name};
use super::parts::{OTHERS, chance, dots, figure, mark, measured_tasks, measures, named};
use crate::draw::{Chart, DotRow, short};
use crate::papers;
use crate::report::claims::{SectionCode, Value};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::Evidence;
use crate::report::observations::Observations;
use crate::statistics::rank_test;
use crate::store::natural;
use terms::Estimate;

pub(super) const CODE: SectionCode = SectionCode {
    rules: &[("The shift brings least", least_in_close)],
    show: Some(&show),
    numbers: Some(|view| {
        let data = view.study("shifted-transfer");
        let Some((_, own)) = data.encoders().into_iter().next() else { return String::new() };
        let part = |task: Task| {
            let of = |row| Some(short(scores(&own, row, task).sample().mean()?.mean));
            let [all, upper, shifted] = ["all-layers", "last-n", "last-n-shift"].map(of);
            Some(format!("{} {} all, {} upper, {} shifted", task.title(), all?, upper?, shifted?))
        };
        measured_tasks(&own).into_iter().find_map(part).unwrap_or_default()
    }),
};

/// The languages without a gain, which the paper explains by the subwords that they share with English.
const CLOSE: [&str; 2] = ["es", "fr"];

/// Whether a gain is least in the close languages. Languages are permuted, each with all of its seeds.
fn least_in_close(gain: &Value, data: &StudyData<'_>) -> Evidence {
    let mut seeds: BTreeMap<u64, [Vec<f64>; 2]> = BTreeMap::new();
    for ((seed, factors), gain) in gain.observations(data).0 {
        let close = factors.get("language").is_some_and(|one| CLOSE.contains(&&**one));
        let [others, gains] = seeds.entry(seed).or_default();
        others.push(f64::from(!close));
        gains.push(gain);
    }
    let blocks: Vec<[Vec<f64>; 2]> = seeds.into_values().collect();
    let n = blocks.iter().map(|[_, gains]| gains.len()).max().unwrap_or(0);
    // A seed that lacks a language compares others.
    let complete = blocks.iter().all(|[_, gains]| gains.len() == n);
    match rank_test(&blocks).filter(|_| complete) {
        Some(test) => Evidence::Ranks { symbol: "ρ", test, n, seeds: blocks.len() },
        None => Evidence::Nothing,
    }
}

const ROWS: [(&str, &str); 3] = [
    ("all-layers", "all layers"),
    ("last-n", "upper layers"),
    ("last-n-shift", "upper layers, shifted"),
];

fn scores(data: &StudyData<'_>, row: &str, task: Task) -> Observations {
    let factors = [("row", row), ("role", "target"), ("task", task.name())];
    data.observations(task.measure(), &factors)
}

fn paper_row(row: &str, language: &str, task: Task) -> Option<f64> {
    (task == Task::Nli)
        .then(|| papers::number(2, "Table 4", "accuracy", &[("row", row), ("language", language)]))
        .flatten()
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("shifted-transfer");
    let encoders = data.encoders();
    let several = encoders.len() > 1;
    let (mut panels, mut rows) = (Vec::new(), Vec::new());
    let languages = data.levels(&measures(), "language", &TABLE_4);
    for (encoder, own) in &encoders {
        for task in measured_tasks(own) {
            let title = match several {
                true => format!("{}, {}", task.title(), data.name(encoder)),
                false => task.title().to_owned(),
            };
            panels.extend(panel(own, task, &title));
            rows.extend(ROWS.map(|row| table_row(own, (encoder, task), row, &languages)));
        }
    }
    let topic = "Transfer with upper layers fine-tuned, without and with shift";
    let figure = figure(named(id, "scores"), topic, &panels);
    let mut table = ReportTable::new(&["task", "encoder", "fine-tuned"]);
    table.heads.extend(languages.iter().map(|language| language_name(language)));
    table
        .heads
        .extend(["mean of targets", "weights α", "Liu et al. 2020, mean"].map(str::to_owned));
    table.rows = rows;
    vec![
        CaptionedItem::figure(
            replicates(2, &["Table 4"]),
            "Scores by language; the dashed line is chance. The paper reports NLI only.",
            figure,
        ),
        CaptionedItem::table(
            replicates(2, &["Table 4"]),
            "Scores by language; weights are those selected on development data, over seeds.",
            table,
        ),
    ]
}

/// The languages of the paper's table, in its order.
const TABLE_4: [&str; 12] =
    ["en", "de", "es", "ar", "el", "fr", "hi", "ru", "th", "tr", "vi", "zh"];

fn score(data: &StudyData<'_>, task: Task, row: &str, language: &str) -> Option<Estimate> {
    let factors = [("row", row), ("task", task.name()), ("language", language)];
    data.mean(task.measure(), &factors)
}

fn panel(data: &StudyData<'_>, task: Task, title: &str) -> Option<Chart> {
    let row_of = |language: &String| {
        let of = |(place, (row, name)): (usize, &(&str, &str))| {
            let factors = [("row", *row), ("task", task.name()), ("language", language.as_str())];
            let sample = data.observations(task.measure(), &factors).sample();
            mark(name, OTHERS + place, &sample, paper_row(row, language, task))
        };
        DotRow { name: language_name(language), marks: ROWS.iter().enumerate().map(of).collect() }
    };
    let languages = data.levels(&[task.measure()], "language", &TABLE_4);
    let mut rows: Vec<DotRow> = languages.iter().map(row_of).collect();
    let mean = |(place, (row, name)): (usize, &(&str, &str))| {
        mark(name, OTHERS + place, &scores(data, row, task).sample(), paper_row(row, "mean", task))
    };
    rows.push(DotRow {
        name: MEAN_ROW.to_owned(),
        marks: ROWS.iter().enumerate().map(mean).collect(),
    });
    dots(title, task.unit(), rows, vec![chance(task.chance())])
}

fn table_row(
    data: &StudyData<'_>,
    (encoder, task): (&str, Task),
    (row, name): (&str, &str),
    languages: &[String],
) -> Vec<TableCell> {
    let mut cells = vec![
        TableCell::Name(task.title().to_owned()),
        TableCell::Text(data.name(encoder)),
        TableCell::Text(name.to_owned()),
    ];
    let of = |language: &String| TableCell::Ours(score(data, task, row, language));
    cells.extend(languages.iter().map(of));
    cells.push(TableCell::Ours(scores(data, row, task).sample().mean()));
    cells.push(TableCell::Text(chosen_weights(data, task, row)));
    cells.push(TableCell::Paper(paper_row(row, "mean", task), 3));
    cells
}

/// The selected weights, over seeds and languages.
fn chosen_weights(data: &StudyData<'_>, task: Task, row: &str) -> String {
    let chosen = data.observations("alpha", &[("row", row), ("task", task.name())]);
    let mut weights: Vec<String> = chosen.values().map(|weight| weight.to_string()).collect();
    weights.sort_by(|a, b| natural(a, b));
    weights.dedup();
    weights.join(", ")
}
