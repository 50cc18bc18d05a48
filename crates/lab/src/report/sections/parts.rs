//! What several sections draw alike.

use terms::Task;

use crate::draw::{
    Bar, BarChart, BarGroup, ChartPoint, Figure, LegendEntry, LineChart, LineSeries, Panel,
    SeriesMark,
};
use crate::papers;
use crate::report::data::{FactorFilter, Observations, SeedSample, StudyData, chosen_by_others};
use crate::report::finding::Evidence;
use terms::Estimate;

/// The measures of all tasks.
pub(super) fn measures() -> Vec<&'static str> {
    let mut measures: Vec<&str> = Task::all().map(Task::measure).collect();
    measures.sort_unstable();
    measures.dedup();
    measures
}

/// The tasks that a study has numbers of.
pub(super) fn measured_tasks(data: &StudyData<'_>) -> Vec<Task> {
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
pub(super) fn difference(a: &Observations, b: &Observations) -> Evidence {
    Evidence::Seeds(a.minus(b).sample())
}

/// A claim's evidence from two sets of choices (what is fixed is a choice of one): the difference of
/// what the other seeds choose from each.
pub(super) fn chosen_difference(a: &[Observations], b: &[Observations]) -> Evidence {
    let difference = chosen_by_others(a).minus(&chosen_by_others(b));
    chosen(difference.sample(), &[a, b])
}

/// A claim's evidence from what was chosen by other seeds. Where there are numbers to choose from and
/// nobody to choose, it cannot be told.
pub(super) fn chosen(sample: SeedSample, from: &[&[Observations]]) -> Evidence {
    let measured = |choices: &&[Observations]| choices.iter().any(|cells| !cells.is_empty());
    match sample.0.is_empty() && from.iter().all(measured) {
        true => Evidence::Void("it cannot be told from one seed, which has no other to choose by"),
        false => Evidence::Seeds(sample),
    }
}

pub(super) fn bar(colour: usize, mean: Option<Estimate>, paper: Option<f64>) -> Bar {
    Bar {
        colour,
        value: mean.map(|mean| mean.mean),
        interval: mean.and_then(|mean| mean.interval()),
        paper,
    }
}

/// A key for each name, and one for the paper where it has numbers.
pub(super) fn legend(
    names: &[String],
    mark: fn(usize) -> SeriesMark,
    paper: bool,
) -> Vec<LegendEntry> {
    let ours =
        names.iter().enumerate().map(|(i, name)| LegendEntry { name: name.clone(), mark: mark(i) });
    let theirs = paper
        .then(|| LegendEntry { name: "the paper's number".to_owned(), mark: SeriesMark::Paper });
    ours.chain(theirs).collect()
}

/// Whether any bar shows a number of the paper.
pub(super) fn has_paper(groups: &[BarGroup]) -> bool {
    groups.iter().flat_map(|group| &group.bars).any(|bar| bar.paper.is_some())
}

/// Whether any bar shows a number of ours.
pub(super) fn has_ours(groups: &[BarGroup]) -> bool {
    groups.iter().flat_map(|group| &group.bars).any(|bar| bar.value.is_some())
}

/// The points of a line over the levels of a factor; levels that are no numbers are left out.
pub(super) fn points(
    data: &StudyData<'_>,
    measure: &str,
    factors: &FactorFilter<'_>,
    across: &str,
) -> Vec<ChartPoint> {
    let levels = data.levels(&[measure], across, &[]);
    let point = |level: &String| {
        let mean = data.mean(measure, &[factors, &[(across, level.as_str())]].concat())?;
        Some(ChartPoint { x: level.parse().ok()?, y: mean.mean, interval: mean.interval() })
    };
    levels.iter().filter_map(point).collect()
}

/// The name of a line, and the factors that choose its numbers.
type NamedSeries<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// What the lines of a panel are.
pub(super) type Series<'a> = [NamedSeries<'a>];

/// Lines over layers, one for each series that has numbers.
pub(super) fn over_layers(
    data: &StudyData<'_>,
    measure: &str,
    common: &FactorFilter<'_>,
    series: &Series<'_>,
    (title, unit): (&str, &str),
) -> Option<Panel> {
    let line = |(colour, (name, factors)): (usize, &NamedSeries<'_>)| {
        let factors = [common, factors].concat();
        let mut points = points(data, measure, &factors, "layer");
        if points.is_empty() {
            // A model without layers is one level.
            let unlayered = data.cells(measure, &factors).without("layer").sample().mean();
            points.extend(unlayered.map(|mean| ChartPoint {
                x: 0.0,
                y: mean.mean,
                interval: mean.interval(),
            }));
        }
        (!points.is_empty()).then(|| LineSeries { name: (*name).to_owned(), colour, points })
    };
    let lines: Vec<LineSeries> = series.iter().enumerate().filter_map(line).collect();
    (!lines.is_empty()).then(|| {
        LineChart {
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
    Figure { id, title: title.to_owned(), legend: legend(&names, SeriesMark::Line, false), panels }
}

/// A panel of bars; none where nothing of ours is in it.
pub(super) fn bars_panel(title: &str, unit: &str, groups: Vec<BarGroup>) -> Option<Panel> {
    let shares =
        groups.iter().flat_map(|group| &group.bars).all(|bar| bar.value.is_none_or(|v| v <= 1.0));
    let reach = shares.then_some(0.5);
    has_ours(&groups)
        .then(|| BarChart { title: title.into(), unit: unit.into(), groups, reach }.panel())
}

/// The name of a setting at the end of a figure's name.
pub(super) fn named(start: &str, rest: &str) -> String {
    format!("{start}-{rest}")
}
