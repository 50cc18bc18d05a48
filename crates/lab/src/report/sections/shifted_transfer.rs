//! Zero-shot transfer with a language shift (Liu et al. 2020, §4.3).

use terms::Task;

use super::ReportSection;
use super::parts::{
    bar, bars_panel, difference, has_paper, legend, measured_tasks, measures, named,
};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::Observations;
use crate::store::natural;

pub(in crate::report) const SHIFTED_TRANSFER: ReportSection = ReportSection {
    id: "shifted-transfer",
    title: "Does the language shift improve transfer?",
    place: "Liu et al. 2020, §4.3",
    studies: &["shifted-transfer"],
    method: "An encoder is fine-tuned on the source language: all layers, or only the upper ones. At test time, hidden states \
             of the target language are shifted towards the source at the highest frozen layer, by a weight α selected on \
             development data.",
    claims: &[
        PaperClaim {
            finding: "Fine-tuning only the upper layers transfers better than fine-tuning all",
            place: "Liu et al. 2020, Table 4",
            paper: || table_4("last-n", "all-layers"),
            quantity: "target score with the upper layers fine-tuned minus with all",
            criterion: Criterion::Above(0.0),
            measure: |view| rows(view, "last-n", "all-layers"),
        },
        PaperClaim {
            finding: "The shift improves transfer further",
            place: "Liu et al. 2020, Table 4",
            paper: || table_4("last-n-shift", "last-n"),
            quantity: "target score with the shift minus without it",
            criterion: Criterion::Above(0.0),
            measure: |view| rows(view, "last-n-shift", "last-n"),
        },
    ],
    show: show_transfer,
};

const ROWS: [(&str, &str); 3] = [
    ("all-layers", "all layers"),
    ("last-n", "upper layers"),
    ("last-n-shift", "upper layers, shifted"),
];

/// Target scores of a row.
fn row_observations(data: &StudyData<'_>, row: &str) -> Observations {
    let of = |task: Task| {
        let factors = [("row", row), ("role", "target"), ("task", task.name())];
        data.observations(task.measure(), &factors).tagged("task", task.name())
    };
    Task::all().map(of).fold(Observations::default(), Observations::join)
}

fn rows(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("shifted-transfer");
    difference(&row_observations(&data, a), &row_observations(&data, b))
}

fn table_4(a: &str, b: &str) -> String {
    let of = |row| papers::number(2, "Table 4", "accuracy", &[("row", row), ("language", "mean")]);
    let gain = || Some(of(a)? - of(b)?);
    gain().map_or(String::new(), |gain| {
        format!("{gain:+.3} over 11 languages of XNLI").replace('-', "\u{2212}")
    })
}

fn paper_row(row: &str, language: &str, task: Task) -> Option<f64> {
    (task == Task::Nli)
        .then(|| papers::number(2, "Table 4", "accuracy", &[("row", row), ("language", language)]))
        .flatten()
}

fn show_transfer(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("shifted-transfer");
    let languages = data.levels(&measures(), "language", &[]);
    let score = |task: Task, row: &str, language: &str| {
        data.mean(task.measure(), &[("row", row), ("task", task.name()), ("language", language)])
    };
    let mut paper = false;
    let panel = |task: Task| {
        let bars = |language: &String| {
            let bar = |(i, (row, _)): (usize, &(&str, &str))| {
                bar(i, score(task, row, language), paper_row(row, language, task))
            };
            BarGroup { name: language.clone(), bars: ROWS.iter().enumerate().map(bar).collect() }
        };
        let groups: Vec<BarGroup> = languages.iter().map(bars).collect();
        paper |= has_paper(&groups);
        bars_panel(task.title(), task.unit(), groups)
    };
    let panels: Vec<Panel> = Task::all().filter_map(panel).collect();
    let names: Vec<String> = ROWS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let figure = Figure {
        id: named(id, "scores"),
        title: "Transfer with upper layers fine-tuned, without and with shift".to_owned(),
        legend: legend(&names, SeriesMark::Bar, paper),
        panels,
    };
    let mut table = ReportTable::new(&["task", "fine-tuned"]);
    table.heads.extend(languages.iter().cloned());
    table.heads.push("weights α".to_owned());
    table.heads.push("Liu et al. 2020, mean".to_owned());
    for task in measured_tasks(&data) {
        for (row, name) in ROWS {
            let mut cells =
                vec![TableCell::Name(task.title().to_owned()), TableCell::Text(name.to_owned())];
            cells.extend(
                languages.iter().map(|language| TableCell::Ours(score(task, row, language))),
            );
            cells.push(TableCell::Text(chosen_weights(&data, task, row)));
            cells.push(TableCell::Paper(paper_row(row, "mean", task), 3));
            table.rows.push(cells);
        }
    }
    vec![
        CaptionedItem::figure(
            "Liu et al. 2020, Table 4",
            "Scores by target language. The paper reports NLI only.",
            figure,
        ),
        CaptionedItem::table(
            "Liu et al. 2020, Table 4",
            "Scores by target language; weights are those selected on development data, over seeds.",
            table,
        ),
    ]
}

/// The selected weights, over seeds and languages.
fn chosen_weights(data: &StudyData<'_>, task: Task, row: &str) -> String {
    let chosen = data.observations("alpha", &[("row", row), ("task", task.name())]);
    let mut weights: Vec<String> = chosen.values().map(|weight| weight.to_string()).collect();
    weights.sort_by(|a, b| natural(a, b));
    weights.dedup();
    weights.join(", ")
}
