//! What several sections share: names of systems, evidence, figures.

use terms::{Preset, Task};

use super::names::shown_by;
pub(super) use super::names::{
    OTHERS, kind_colour, kind_name, pair_name, series_style, system_colour,
};

use crate::draw::{
    Chart, ChartPoint, DotChart, DotMark, DotRow, Figure, LineChart, LineSeries, ReferenceLine,
};
use crate::papers;
use crate::report::data::{FactorFilter, StudyData, UNTRAINED};
use crate::report::finding::Evidence;
use crate::report::observations::{Observations, SeedSample};

pub(in crate::report) fn measures() -> Vec<&'static str> {
    let mut measures: Vec<&str> = Task::all().map(Task::measure).collect();
    measures.sort_unstable();
    measures.dedup();
    measures
}

pub(in crate::report) fn measured_tasks(data: &StudyData<'_>) -> Vec<Task> {
    let measured = |task: &Task| data.mean(task.measure(), &[("task", task.name())]).is_some();
    Task::all().filter(measured).collect()
}

/// The tasks whose scores Conneau et al. 2020 print: claims about its numbers are claims about these.
pub(in crate::report) fn tasks_of_paper() -> impl Iterator<Item = Task> {
    let printed = |task: &Task| {
        let factors = [("condition", "default"), ("task", task.name())];
        papers::number(1, "Table 1, means", task.measure(), &factors).is_some()
    };
    Task::all().filter(printed)
}

const PAIRS: [&str; 4] = ["en-fr", "en-de", "en-ru", "en-zh"];

/// The second language of `en-fr`.
pub(super) fn target(pair: &str) -> &str {
    pair.split_once('-').map_or(pair, |(_, target)| target)
}

/// The measure by which words are retrieved, or translated: over pairs whose strings differ, where that was measured. Equal strings
/// have equal vectors in any encoder that the languages share.
pub(super) fn of_different(data: &StudyData<'_>, measure: &'static str) -> &'static str {
    let different = match measure {
        "mrr" => "mrr_different",
        "dictionary_accuracy" => "dictionary_accuracy_different",
        _ => "p_at_1_different",
    };
    if data.has(different) { different } else { measure }
}

/// The factor by which the languages' distance varies and its levels, the nearest first: the distance of invented languages, or
/// the pair. None where there is but one.
pub(super) fn distances(
    data: &StudyData<'_>,
    measures: &[&str],
) -> Option<(&'static str, Vec<String>)> {
    let parameter = data.levels(measures, "distance", &[]);
    if parameter.len() > 1 {
        return Some(("distance", parameter));
    }
    let mut pairs = pairs_of(data, measures);
    // The distance of other real languages is for others to say; invented ones are numbered from near to far.
    let invented = |pair: &String| pair.starts_with('q');
    pairs.retain(|pair| !pair.ends_with('\'') && (PAIRS.contains(&&**pair) || invented(pair)));
    (pairs.len() > 1).then_some(("pair", pairs))
}

/// The factor by which the distance varies, with the nearest and the most distant level.
pub(in crate::report) fn nearest_and_farthest(
    data: &StudyData<'_>,
    measures: &[&str],
) -> Option<(&'static str, String, String)> {
    let (factor, mut levels) = distances(data, measures)?;
    let farthest = levels.pop()?;
    Some((factor, levels.swap_remove(0), farthest))
}

/// Evidence from a difference between near and far languages. Each seed has invented languages of its own, and their distance is
/// a parameter. Real ones are the same in all seeds, so that pairs are the units, and the four of the papers are too few to permute.
pub(in crate::report) fn between_distances(level: &str, difference: SeedSample) -> Evidence {
    match level.contains('-') && !level.starts_with('q') {
        true => Evidence::TooFew(difference),
        false => Evidence::Seeds(difference),
    }
}

/// One series of a row: its seeds, mean and interval, beside the paper's number.
pub(in crate::report) fn mark(
    series: &str,
    colour: usize,
    sample: &SeedSample,
    paper: Option<f64>,
) -> DotMark {
    let mean = sample.mean();
    DotMark {
        series: series.to_owned(),
        colour,
        dashed: false,
        seeds: sample.values(),
        value: mean.map(|mean| mean.mean),
        interval: mean.and_then(|mean| mean.interval()),
        paper,
    }
}

/// Chance, as a line across a panel.
pub(in crate::report) fn chance(value: f64) -> ReferenceLine {
    ReferenceLine { name: "chance".to_owned(), value }
}

/// The chance of retrieving the one translation among all candidates, where they were counted.
pub(in crate::report) fn chance_of_retrieval(data: &StudyData<'_>) -> Option<ReferenceLine> {
    let used = data.observations("used", &[("of", "retrieval")]);
    let fewest = used.values().fold(f64::INFINITY, f64::min);
    (fewest.is_finite() && fewest > 0.0).then(|| chance(1.0 / fewest))
}

/// The chance of word retrieval, by P@1 or MRR, where candidates were counted: the mean over what was measured.
pub(super) fn chance_of_words(
    data: &StudyData<'_>,
    measure: &str,
    factors: &FactorFilter<'_>,
) -> Option<ReferenceLine> {
    let recorded = format!("{}_chance", measure.trim_end_matches("_different"));
    data.observations(&recorded, factors).sample().mean().map(|mean| chance(mean.mean))
}

/// How captions name the line of chance, where candidates were counted.
pub(super) fn chance_words(data: &StudyData<'_>, measure: &str) -> &'static str {
    chance_of_words(data, measure, &[]).map_or("", |_| " The dashed line is chance.")
}

/// The points of a line over the levels of a factor; levels that are not numbers are left out.
pub(super) fn points(
    data: &StudyData<'_>,
    measure: &str,
    factors: &FactorFilter<'_>,
    across: &str,
) -> Vec<ChartPoint> {
    let levels = data.levels(&[measure], across, &[]);
    let at = |level: &String| {
        let factors = [factors, &[(across, level.as_str())]].concat();
        point(level.parse().ok()?, &data.observations(measure, &factors).sample())
    };
    levels.iter().filter_map(at).collect()
}

/// A point of a line: mean, interval and seeds.
pub(in crate::report) fn point(x: f64, sample: &SeedSample) -> Option<ChartPoint> {
    let mean = sample.mean()?;
    Some(ChartPoint { x, y: mean.mean, interval: mean.interval(), seeds: sample.values() })
}

/// The system or condition of a line, or another name, and the factors that choose its numbers.
type NamedSeries<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// What the lines of a panel are.
pub(in crate::report) type Series<'a> = [NamedSeries<'a>];

/// Lines over layers, one for each series that has numbers.
pub(in crate::report) fn over_layers(
    data: &StudyData<'_>,
    measure: &str,
    common: &FactorFilter<'_>,
    series: &Series<'_>,
    (title, unit): (&str, &str),
) -> Option<Chart> {
    let line = |(place, (name, factors)): (usize, &NamedSeries<'_>)| {
        let factors = [common, factors].concat();
        let mut points = points(data, measure, &factors, "layer");
        if points.is_empty() {
            // A system without layers is a horizontal line.
            let unlayered = data.observations(measure, &factors).without("layer").sample();
            points.extend(point(0.0, &unlayered));
        }
        let (colour, dashed) = series_style(name, place);
        (!points.is_empty()).then(|| LineSeries { name: data.name(name), colour, dashed, points })
    };
    let lines: Vec<LineSeries> = series.iter().enumerate().filter_map(line).collect();
    // Retrieval has a chance wherever candidates were counted, a task always.
    let task = common.iter().find(|(factor, _)| *factor == "task");
    let chance = match (measure, task.and_then(|(_, name)| name.parse::<Task>().ok())) {
        ("retrieval", _) => chance_of_retrieval(data),
        (_, Some(task)) => Some(chance(task.chance())),
        _ => chance_of_words(data, measure, common),
    };
    (!lines.is_empty()).then(|| {
        Chart::Lines(LineChart {
            title: title.into(),
            across: "layer".into(),
            unit: unit.into(),
            lines,
            from_zero: true,
            references: chance.into_iter().collect(),
            highest_only: false,
        })
    })
}

/// The mean over the layers from 1 to the middle, and that over the layers above; of fewer than two layers none.
pub(in crate::report) fn halves(
    layers: &[String],
    at: impl Fn(&str) -> Observations,
) -> [SeedSample; 2] {
    let layers: Vec<&String> = layers.iter().filter(|layer| *layer != "0").collect();
    if layers.len() < 2 {
        return Default::default();
    }
    let (lower, upper) = layers.split_at(layers.len() / 2);
    [lower, upper].map(|layers| {
        let tagged = layers.iter().map(|layer| at(layer).tagged("layer", layer));
        tagged.fold(Observations::default(), Observations::join).sample()
    })
}

/// Higher is better.
pub(in crate::report) const MORE: fn(f64, f64) -> f64 = |own, other| own - other;
/// Lower is better.
pub(in crate::report) const LESS: fn(f64, f64) -> f64 = |own, other| other - own;

/// The encoder of the paper's own condition and each given model, beside the untrained encoder: conditions are compared in figures.
pub(in crate::report) fn trained_and_untrained<'a>(
    data: &StudyData<'a>,
) -> (Vec<(String, StudyData<'a>)>, StudyData<'a>) {
    let mut encoders = data.encoders();
    let untrained = encoders.pop_if(|(name, _)| name == UNTRAINED);
    let (given, mut trained): (Vec<_>, Vec<_>) =
        encoders.into_iter().partition(|(name, _)| name.parse::<Preset>().is_err());
    trained.truncate(1);
    trained.extend(given);
    (trained, untrained.map_or_else(StudyData::default, |(_, data)| data))
}

/// The records of each language that was added to an encoder, with its pairs of languages, that of the new language last.
pub(in crate::report) fn added<'a>(data: &StudyData<'a>) -> Vec<(StudyData<'a>, Vec<String>)> {
    let of = |language: &String| {
        let data = data.only("added", language);
        let mut pairs = pairs_of(&data, &["retrieval"]);
        // False before true, and otherwise as they were.
        pairs.sort_by_key(|pair| target(pair) == language);
        pairs.last().is_some_and(|last| target(last) == language).then_some((data, pairs))
    };
    data.levels(&["retrieval"], "added", &[]).iter().filter_map(of).collect()
}

/// The pairs of a measure, those of the papers first.
pub(in crate::report) fn pairs_of(data: &StudyData<'_>, measures: &[&str]) -> Vec<String> {
    data.levels(measures, "pair", &PAIRS)
}

/// A figure whose title ends with what its charts show.
pub(in crate::report) fn figure(id: String, topic: &str, charts: &[Chart]) -> Figure {
    let found = shown_by(charts);
    let title = match found.is_empty() {
        true => topic.to_owned(),
        false => format!("{topic}: {found}"),
    };
    Figure::of(id, title, charts)
}

/// A panel of dots; none without results of ours.
pub(in crate::report) fn dots(
    title: &str,
    unit: &str,
    rows: Vec<DotRow>,
    references: Vec<ReferenceLine>,
) -> Option<Chart> {
    let marks = || rows.iter().flat_map(|row| &row.marks);
    let shares = marks().all(|mark| mark.value.is_none_or(|value| value <= 1.0));
    let reach = shares.then_some(0.5);
    let measured = marks().any(|mark| mark.value.is_some());
    measured.then(|| {
        let (title, unit) = (title.to_owned(), unit.to_owned());
        Chart::Dots(DotChart { title, unit, rows, reach, references })
    })
}

/// The identifier of a figure.
pub(in crate::report) fn named(start: &str, rest: &str) -> String {
    format!("{start}-{rest}")
}
