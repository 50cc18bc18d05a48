//! Whether shifting a language helps to transfer to it (paper 2, §4.3).

use terms::Task;

use super::ReportSection;
use super::parts::{
    bar, bars_panel, difference, has_paper, legend, measured_tasks, measures, named,
};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::papers;
use crate::report::data::{Observations, SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::store::natural;

pub(in crate::report) const SHIFTED_TRANSFER: ReportSection = ReportSection {
    id: "shifted-transfer",
    title: "Does shifting help transfer?",
    place: "Paper 2, §4.3",
    studies: &["shifted-transfer"],
    asks: "A model is fine-tuned on one language: all its layers, or only the upper ones. In testing, the other \
           language's vectors are shifted towards the first at the highest layer that was not trained, by a weight chosen \
           on development data.",
    claims: &[
        PaperClaim {
            finding: "Training only the upper layers transfers better than training all",
            place: "Paper 2, Table 4",
            paper: || table_4("last-n", "all-layers"),
            quantity: "target score with the upper layers trained minus with all",
            criterion: Criterion::Above(0.0),
            measure: |view| rows(view, "last-n", "all-layers"),
        },
        PaperClaim {
            finding: "The shift adds to that",
            place: "Paper 2, Table 4",
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
fn row_cells(data: &StudyData<'_>, row: &str) -> Observations {
    let of = |task: Task| {
        let factors = [("row", row), ("role", "target"), ("task", task.name())];
        data.cells(task.measure(), &factors).tagged("task", task.name())
    };
    Task::all().map(of).fold(Observations::default(), Observations::join)
}

fn rows(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("shifted-transfer");
    difference(&row_cells(&data, a), &row_cells(&data, b))
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
        title: "Transfer with the upper layers trained, and shifted".to_owned(),
        legend: legend(&names, SeriesMark::Bar, paper),
        panels,
    };
    let mut table = ReportTable::new(&["task", "trained"]);
    table.heads.extend(languages.iter().cloned());
    table.heads.push("weights α".to_owned());
    table.heads.push("paper 2, mean".to_owned());
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
            "Paper 2, Table 4",
            "Scores by language. The paper has inference only.",
            figure,
        ),
        CaptionedItem::table(
            "Paper 2, Table 4",
            "The weights are those that development data chose, over seeds.",
            table,
        ),
    ]
}

/// The weights that were chosen, whichever the seed and language.
fn chosen_weights(data: &StudyData<'_>, task: Task, row: &str) -> String {
    let chosen = data.cells("alpha", &[("row", row), ("task", task.name())]);
    let mut weights: Vec<String> = chosen.values().map(|weight| weight.to_string()).collect();
    weights.sort_by(|a, b| natural(a, b));
    weights.dedup();
    weights.join(", ")
}
