//! What several sections draw alike.

use terms::Task;

use crate::draw::{Bar, Bars, Figure, Group, Key, Line, Lines, Mark, Panel, Point};
use crate::papers;
use crate::report::data::{Cells, Data, Sample, Where, chosen_by_others};
use crate::report::finding::Evidence;
use crate::statistics::Mean;

/// The measures of all tasks.
pub(super) fn measures() -> Vec<&'static str> {
    let mut measures: Vec<&str> = Task::all().map(Task::measure).collect();
    measures.sort_unstable();
    measures.dedup();
    measures
}

/// The tasks that a study has numbers of.
pub(super) fn measured_tasks(data: &Data<'_>) -> Vec<Task> {
    let measured = |task: &Task| data.mean(task.measure(), &[("task", task.name())]).is_some();
    Task::all().filter(measured).collect()
}

/// The tasks whose scores Conneau et al. 2020 print: claims about its numbers are claims about these.
pub(super) fn tasks_of_paper() -> impl Iterator<Item = Task> {
    let printed = |task: &Task| {
        let factors = [("condition", "default"), ("task", task.name())];
        papers::number(1, "Table 1, means", task.measure(), &factors).is_some()
    };
    Task::all().filter(printed)
}

/// The second language of `en-fr`.
pub(super) fn target(pair: &str) -> &str {
    pair.split_once('-').map_or(pair, |(_, target)| target)
}

/// A claim's evidence from the difference of two sets of cells.
pub(super) fn difference(a: &Cells, b: &Cells) -> Evidence {
    Evidence::Seeds(a.minus(b).sample())
}

/// A claim's evidence from two sets of choices (what is fixed is a choice of one): the difference of
/// what the other seeds choose from each.
pub(super) fn chosen_difference(a: &[Cells], b: &[Cells]) -> Evidence {
    let difference = chosen_by_others(a).minus(&chosen_by_others(b));
    chosen(difference.sample(), &[a, b])
}

/// A claim's evidence from what was chosen by other seeds. Where there are numbers to choose from and
/// nobody to choose, it cannot be told.
pub(super) fn chosen(sample: Sample, from: &[&[Cells]]) -> Evidence {
    let measured = |choices: &&[Cells]| choices.iter().any(|cells| !cells.is_empty());
    match sample.0.is_empty() && from.iter().all(measured) {
        true => Evidence::Void("it cannot be told from one seed, which has no other to choose by"),
        false => Evidence::Seeds(sample),
    }
}

pub(super) fn bar(colour: usize, mean: Option<Mean>, paper: Option<f64>) -> Bar {
    Bar {
        colour,
        value: mean.map(|mean| mean.value),
        interval: mean.and_then(|mean| mean.interval()),
        paper,
    }
}

/// A key for each name, and one for the paper where it has numbers.
pub(super) fn legend(names: &[String], mark: fn(usize) -> Mark, paper: bool) -> Vec<Key> {
    let ours = names.iter().enumerate().map(|(i, name)| Key { name: name.clone(), mark: mark(i) });
    let theirs = paper.then(|| Key { name: "the paper's number".to_owned(), mark: Mark::Paper });
    ours.chain(theirs).collect()
}

/// Whether any bar shows a number of the paper.
pub(super) fn has_paper(groups: &[Group]) -> bool {
    groups.iter().flat_map(|group| &group.bars).any(|bar| bar.paper.is_some())
}

/// Whether any bar shows a number of ours.
pub(super) fn has_ours(groups: &[Group]) -> bool {
    groups.iter().flat_map(|group| &group.bars).any(|bar| bar.value.is_some())
}

/// The points of a line over the levels of a factor; levels that are no numbers are left out.
pub(super) fn points(
    data: &Data<'_>,
    measure: &str,
    factors: &Where<'_>,
    across: &str,
) -> Vec<Point> {
    let levels = data.levels(&[measure], across, &[]);
    let point = |level: &String| {
        let mean = data.mean(measure, &[factors, &[(across, level.as_str())]].concat())?;
        Some(Point { x: level.parse().ok()?, y: mean.value, interval: mean.interval() })
    };
    levels.iter().filter_map(point).collect()
}

/// The name of a line, and the factors that choose its numbers.
type Named<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// What the lines of a panel are.
pub(super) type Series<'a> = [Named<'a>];

/// Lines over layers, one for each series that has numbers.
pub(super) fn over_layers(
    data: &Data<'_>,
    measure: &str,
    common: &Where<'_>,
    series: &Series<'_>,
    (title, unit): (&str, &str),
) -> Option<Panel> {
    let line = |(colour, (name, factors)): (usize, &Named<'_>)| {
        let factors = [common, factors].concat();
        let mut points = points(data, measure, &factors, "layer");
        if points.is_empty() {
            // A model without layers is one level.
            let unlayered = data.cells(measure, &factors).without("layer").sample().mean();
            points.extend(unlayered.map(|mean| Point {
                x: 0.0,
                y: mean.value,
                interval: mean.interval(),
            }));
        }
        (!points.is_empty()).then(|| Line { name: (*name).to_owned(), colour, points })
    };
    let lines: Vec<Line> = series.iter().enumerate().filter_map(line).collect();
    (!lines.is_empty()).then(|| {
        Lines {
            title: title.into(),
            across: "layer".into(),
            unit: unit.into(),
            lines,
            from_zero: true,
        }
        .panel()
    })
}

/// A figure of panels with one legend of lines.
pub(super) fn lines_figure(
    id: String,
    title: &str,
    series: &Series<'_>,
    panels: Vec<Panel>,
) -> Figure {
    let names: Vec<String> = series.iter().map(|(name, _)| (*name).to_owned()).collect();
    Figure { id, title: title.to_owned(), legend: legend(&names, Mark::Line, false), panels }
}

/// A panel of bars; none where nothing of ours is in it.
pub(super) fn bars_panel(title: &str, unit: &str, groups: Vec<Group>) -> Option<Panel> {
    let shares =
        groups.iter().flat_map(|group| &group.bars).all(|bar| bar.value.is_none_or(|v| v <= 1.0));
    let reach = shares.then_some(0.5);
    has_ours(&groups)
        .then(|| Bars { title: title.into(), unit: unit.into(), groups, reach }.panel())
}

/// The name of a setting at the end of a figure's name.
pub(super) fn named(start: &str, rest: &str) -> String {
    format!("{start}-{rest}")
}
