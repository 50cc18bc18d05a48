//! Transfer by distance between languages (Conneau et al. 2020, §4.4).

use terms::Task;

use super::parts::{
    OTHERS, chance, distances, dots, mark, measured_tasks, measures, named, pair_name, pairs_of,
    point, system_colour, target,
};
use super::transfer::under;
use crate::draw::{Chart, DotRow, Figure, LineChart, LineSeries};
use crate::papers;
use crate::report::data::{SettingView, StudyData, UNTRAINED, best_of};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};

const CONDITIONS: [&str; 6] =
    ["default", "default-anchors", "no-anchors", "extra-anchors", "sep-emb-l1-6", "untrained"];

pub(super) fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("distance");
    let Some((factor, levels)) = shown_levels(&data) else { return vec![] };
    let real = factor == "pair";
    let encoders = encoders(&data);
    let panel = |task: Task| match real {
        true => of_pairs(&data, task, &levels, &encoders),
        false => of_distance(&data, task, &encoders),
    };
    let charts: Vec<Chart> = Task::all().filter_map(panel).collect();
    // From the nearest to the most distant, as the section's title has it; the highest points would say nothing.
    let section = super::ALL.iter().find(|section| section.id == "distance").expect("it is one");
    let title = match &*(section.numbers)(view) {
        "" => "Transfer by distance".to_owned(),
        numbers => format!("Transfer by distance: {numbers}"),
    };
    let figure = Figure::of(named(id, "transfer"), title, &charts);
    vec![
        CaptionedItem::figure(
            replicates(1, &["Table 1"]),
            "Column by column (§4.4): zero-shot scores in the target language, by its distance from the source. The dashed line is chance.",
            figure,
        ),
        CaptionedItem::table(
            replicates(1, &["Table 1"]),
            "Target scores and, at the best layer, sentence retrieval accuracy (P@1).",
            table(&data, factor, &levels, &encoders),
        ),
    ]
}

/// Distances or pairs: all that there are.
fn shown_levels(data: &StudyData<'_>) -> Option<(&'static str, Vec<String>)> {
    distances(data, &measures()).or_else(|| {
        let pairs = pairs_of(data, &measures());
        (!pairs.is_empty()).then_some(("pair", pairs))
    })
}

/// The conditions that were measured, and the untrained encoder.
fn encoders(data: &StudyData<'_>) -> Vec<String> {
    let mut names = data.levels(&measures(), "condition", &CONDITIONS);
    let systems = data.levels(&measures(), "system", &[]);
    names.extend(systems.into_iter().filter(|system| system == UNTRAINED));
    names.dedup();
    names
}

/// Real languages: a row for each pair with its conditions, beside the paper's.
fn of_pairs(
    data: &StudyData<'_>,
    task: Task,
    pairs: &[String],
    encoders: &[String],
) -> Option<Chart> {
    let row = |pair: &String| {
        let own = [("pair", &**pair), ("task", task.name()), ("role", "target")];
        let of = |encoder: &String| {
            let theirs =
                [("condition", &**encoder), ("task", task.name()), ("language", target(pair))];
            let paper = papers::number(1, "Table 1", task.measure(), &theirs);
            let sample = under(data, encoder, task.measure(), &own).sample();
            mark(&data.name(encoder), system_colour(encoder).unwrap_or(OTHERS), &sample, paper)
        };
        DotRow { name: pair_name(pair), marks: encoders.iter().map(of).collect() }
    };
    let unit = format!("{}, target language", task.unit());
    dots(task.title(), &unit, pairs.iter().map(row).collect(), vec![chance(task.chance())])
}

/// Invented languages: a line over distances for each condition.
fn of_distance(data: &StudyData<'_>, task: Task, encoders: &[String]) -> Option<Chart> {
    let line = |encoder: &String| {
        let at = |level: &String| {
            let factors = [("task", task.name()), ("role", "target"), ("distance", level.as_str())];
            let sample = under(data, encoder, task.measure(), &factors).sample();
            point(level.parse().ok()?, &sample)
        };
        let levels = data.levels(&[task.measure()], "distance", &[]);
        let points = levels.iter().filter_map(at).collect();
        let colour = system_colour(encoder).unwrap_or(OTHERS);
        LineSeries { name: data.name(encoder), colour, points, dashed: false }
    };
    let lines = encoders.iter().map(line);
    let lines: Vec<LineSeries> = lines.filter(|line| !line.points.is_empty()).collect();
    (!lines.is_empty()).then(|| {
        Chart::Lines(LineChart {
            title: task.title().to_owned(),
            across: "distance".to_owned(),
            unit: task.unit().to_owned(),
            lines,
            from_zero: true,
            references: vec![chance(task.chance())],
            highest_only: false,
        })
    })
}

fn table(
    data: &StudyData<'_>,
    factor: &str,
    levels: &[String],
    encoders: &[String],
) -> ReportTable {
    let tasks = measured_tasks(data);
    let titles = tasks.iter().map(|task| task.title());
    let ends = ["retrieval, raw", "retrieval, centred"];
    let heads: Vec<&str> = [factor, "condition"].into_iter().chain(titles).chain(ends).collect();
    let mut table = ReportTable::new(&heads);
    for level in levels {
        for encoder in encoders {
            let of = |task: Task| {
                let factors = [(factor, &**level), ("task", task.name()), ("role", "target")];
                let scores = under(data, encoder, task.measure(), &factors);
                TableCell::Ours(scores.sample().mean())
            };
            let found = |kind| {
                let at = |layer: &String| {
                    let factors = [(factor, &**level), ("kind", kind), ("layer", layer)];
                    under(data, encoder, "retrieval", &factors)
                };
                let layers = data.layers("retrieval");
                TableCell::Ours(best_of(layers.iter().map(at).collect()).sample().mean())
            };
            let level = if factor == "pair" { pair_name(level) } else { level.clone() };
            let mut row = vec![TableCell::Name(level), TableCell::Text(data.name(encoder))];
            row.extend(tasks.iter().copied().map(of));
            row.extend(["raw", "centered"].map(found));
            table.rows.push(row);
        }
    }
    table
}
