//! Transfer by distance between languages (Conneau et al. 2020, §4.4).

use terms::Task;

use super::ReportSection;
use super::parts::{bar, bars_panel, legend, measured_tasks, measures, named, points, target};
use super::transfer::{above_chance, paper_transfer};
use crate::draw::{BarGroup, Figure, LineChart, LineSeries, Panel, SeriesMark};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::SeedSample;

pub(in crate::report) const DISTANCE: ReportSection = ReportSection {
    id: "distance",
    title: "Must the languages be similar?",
    place: "Conneau et al. 2020, §4.4",
    studies: &["distance"],
    method: "The paper compares English with French, Russian and Chinese. Between invented languages, distance is a parameter: \
             at 0 only the words differ; greater distances change word order, morphology and script as well.",
    claims: &[PaperClaim {
        finding: "Transfer decreases with distance",
        place: "Conneau et al. 2020, §4.4",
        paper: || {
            let of = |language| paper_transfer("no-anchors", Some(language));
            let number =
                |language| of(language).map_or("none".to_owned(), |value| format!("{value:.3}"));
            format!(
                "transfer above chance without anchors: {} fr, {} ru, {} zh",
                number("fr"),
                number("ru"),
                number("zh")
            )
        },
        quantity: "transfer above chance to the nearest language minus to the most distant",
        criterion: Criterion::Above(0.0),
        measure: nearest_minus_farthest,
    }],
    show: show_distance,
};

/// The one series of the figure.
const LINE: &str = "no-anchors";

/// The factor by which languages differ, and its levels: distance, or the pair itself.
fn distances(data: &StudyData<'_>) -> (&'static str, Vec<String>) {
    let parameter = data.levels(&measures(), "distance", &[]);
    if parameter.is_empty() {
        return ("pair", data.levels(&measures(), "pair", &["en-fr", "en-de", "en-ru", "en-zh"]));
    }
    ("distance", parameter)
}

fn nearest_minus_farthest(view: &SettingView<'_>) -> Evidence {
    let data = view.study("distance");
    let (factor, levels) = distances(&data);
    let [nearest, .., farthest] = &levels[..] else { return Evidence::Nothing };
    // The two have different languages, so that only tasks and seeds can be paired.
    let of = |level: &str| -> SeedSample {
        above_chance(&data, &[("role", "target"), (factor, level)]).sample()
    };
    Evidence::Seeds(of(nearest).minus(&of(farthest)))
}

fn show_distance(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("distance");
    let (factor, levels) = distances(&data);
    let real = factor == "pair";
    let panel =
        |task: Task| if real { of_pairs(&data, task, &levels) } else { of_distance(&data, task) };
    let figure = Figure {
        id: named(id, "transfer"),
        title: "Transfer by distance".to_owned(),
        legend: legend(
            &[LINE.to_owned()],
            if real { SeriesMark::Bar } else { SeriesMark::Line },
            real,
        ),
        panels: Task::all().filter_map(panel).collect(),
    };
    let place = "Conneau et al. 2020, §4.4 (Table 1, column by column)";
    vec![
        CaptionedItem::figure(
            place,
            "Zero-shot scores in the target language, by its distance from the source.",
            figure,
        ),
        CaptionedItem::table(
            place,
            "Target scores and, at the best layer, sentence retrieval accuracy (P@1).",
            table(&data, factor, &levels),
        ),
    ]
}

/// Real languages: a bar for each pair, beside the paper's.
fn of_pairs(data: &StudyData<'_>, task: Task, pairs: &[String]) -> Option<Panel> {
    let group = |pair: &String| {
        let own = [("pair", &**pair), ("task", task.name()), ("role", "target")];
        let theirs =
            [("condition", "no-anchors"), ("task", task.name()), ("language", target(pair))];
        let paper = papers::number(1, "Table 1", task.measure(), &theirs);
        BarGroup { name: pair.clone(), bars: vec![bar(0, data.mean(task.measure(), &own), paper)] }
    };
    let unit = format!("{}, target language", task.unit());
    bars_panel(task.title(), &unit, pairs.iter().map(group).collect())
}

/// Invented languages: a line over distances.
fn of_distance(data: &StudyData<'_>, task: Task) -> Option<Panel> {
    let points =
        points(data, task.measure(), &[("task", task.name()), ("role", "target")], "distance");
    let line = LineSeries { name: LINE.to_owned(), colour: 0, points };
    (!line.points.is_empty()).then(|| {
        LineChart {
            title: task.title().to_owned(),
            across: "distance".to_owned(),
            unit: task.unit().to_owned(),
            lines: vec![line],
            from_zero: true,
        }
        .panel()
    })
}

fn table(data: &StudyData<'_>, factor: &str, levels: &[String]) -> ReportTable {
    let tasks = measured_tasks(data);
    let titles = tasks.iter().map(|task| task.title());
    let ends = ["retrieval, raw", "retrieval, shifted"];
    let heads: Vec<&str> = [factor].into_iter().chain(titles).chain(ends).collect();
    let mut table = ReportTable::new(&heads);
    for level in levels {
        let of = |task: Task| {
            let factors = [(factor, &**level), ("task", task.name()), ("role", "target")];
            TableCell::Ours(data.mean(task.measure(), &factors))
        };
        let found = |kind| {
            let best = data.best("retrieval", &[(factor, level), ("kind", kind)]);
            TableCell::Ours(best.sample().mean())
        };
        let mut row = vec![TableCell::Name(level.clone())];
        row.extend(tasks.iter().copied().map(of));
        row.extend(["raw", "centered"].map(found));
        table.rows.push(row);
    }
    table
}
