//! Transfer by distance between languages (Conneau et al. 2020, §4.4).

use terms::Task;

use super::ReportSection;
use super::parts::{
    MORE, OTHERS, between_distances, chance, distances, dots, mark, measured_tasks, measures,
    named, nearest_and_farthest, pair_name, pairs_of, point, system_colour, target, tasks_of_paper,
};
use super::transfer::paper_transfer;
use crate::draw::{Chart, DotRow, Figure, LineChart, LineSeries, short};
use crate::papers;
use crate::report::data::{SettingView, StudyData, UNTRAINED, best_of};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Control, Criterion, PaperClaim, signed};
use crate::report::observations::{Observations, SeedSample};

pub(in crate::report) const DISTANCE: ReportSection = ReportSection {
    id: "distance",
    title: "Must the languages be similar?",
    place: "Conneau et al. 2020, §4.4",
    studies: &["distance"],
    method: "The paper compares English with French, Russian and Chinese. Between invented languages, distance is a parameter: \
             at 0 only the words differ; greater distances change word order, morphology and script as well.",
    claims: &[
        PaperClaim {
            finding: "Transfer decreases with distance",
            place: "Conneau et al. 2020, §4.4",
            paper: &|| "in every task, from French to Russian and Chinese".to_owned(),
            quantity: "target score of the nearest language minus of the most distant",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.study("distance");
                tasks_of_paper().map(|task| decrease_line(&data, task)).collect()
            },
        },
        PaperClaim {
            finding: "Harder tasks lose more by distance",
            place: "Conneau et al. 2020, §4.4",
            paper: &|| {
                let of = |task: Task| {
                    let own = |language| paper_transfer("default", Some(language), Some(task));
                    own("fr").zip(own("zh")).map_or(String::new(), |(a, b)| signed(a - b, 3))
                };
                format!(
                    "from French to Chinese NLI loses {}, NER {}, parsing {}",
                    of(Task::Nli),
                    of(Task::Ner),
                    of(Task::Parse)
                )
            },
            quantity: "loss from the nearest to the most distant language, of parsing minus of NLI",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.study("distance");
                let more = |[(near, parse), (_, nli)]: [(String, SeedSample); 2]| {
                    (near, parse.minus(&nli))
                };
                let tasks = [Task::Parse, Task::Nli];
                let (near, own) = more(tasks.map(|task| {
                    decrease(&data, task, |factors| under_default(&data, task, factors))
                }));
                let (_, of_untrained) =
                    more(tasks.map(|task| {
                        decrease(&data, task, |factors| untrained(&data, task, factors))
                    }));
                ClaimLine::new("", between_distances(&near, own.clone()))
                    .against(Control::of_samples("untrained", &own, of_untrained, MORE))
                    .alone()
            },
        },
    ],
    fails: "Transfer does not decrease with distance",
    numbers: &|view| {
        let data = view.study("distance");
        let Some((factor, near, far)) = nearest_and_farthest(&data, &measures()) else {
            return String::new();
        };
        let part = |task: Task| {
            let of = |level: &str| {
                let factors = [("role", "target"), ("task", task.name()), (factor, level)];
                Some(short(under_default(&data, task, &factors).sample().mean()?.mean))
            };
            Some(format!("{} {} \u{2192} {}", task.title(), of(&near)?, of(&far)?))
        };
        tasks_of_paper().filter_map(part).collect::<Vec<_>>().join(", ")
    },
    show: &show_distance,
};

/// The condition whose distances are compared: the paper's default, or without anchors.
fn compared(data: &StudyData<'_>) -> &'static str {
    let has =
        |condition: &&str| !data.levels_among("condition", &[("condition", condition)]).is_empty();
    ["default", "no-anchors"].into_iter().find(has).unwrap_or("no-anchors")
}

fn under_default(data: &StudyData<'_>, task: Task, factors: &[(&str, &str)]) -> Observations {
    let condition = [("condition", compared(data))];
    data.observations(task.measure(), &[factors, &condition].concat())
}

fn untrained(data: &StudyData<'_>, task: Task, factors: &[(&str, &str)]) -> Observations {
    data.untrained(task.measure(), factors)
}

/// The score of the nearest language minus that of the most distant, with a name of the former. The two have different languages, so
/// that only seeds can be paired.
fn decrease(
    data: &StudyData<'_>,
    task: Task,
    scores: impl Fn(&[(&str, &str)]) -> Observations,
) -> (String, SeedSample) {
    let Some((factor, near, far)) = nearest_and_farthest(data, &[task.measure()]) else {
        return Default::default();
    };
    let of = |level: &str| {
        scores(&[("role", "target"), ("task", task.name()), (factor, level)]).sample()
    };
    let difference = of(&near).minus(&of(&far));
    (near, difference)
}

fn decrease_line(data: &StudyData<'_>, task: Task) -> ClaimLine {
    let (near, own) = decrease(data, task, |factors| under_default(data, task, factors));
    let (_, of_untrained) = decrease(data, task, |factors| untrained(data, task, factors));
    let of = |language| paper_transfer(compared(data), Some(language), Some(task));
    let paper = of("fr").zip(of("zh")).map(|(near, far)| signed(near - far, 3));
    ClaimLine::new(task.title(), between_distances(&near, own.clone()))
        .against(Control::of_samples("untrained", &own, of_untrained, MORE))
        .paper(paper)
}

/// Conditions that are shown, in their order.
const CONDITIONS: [&str; 6] =
    ["default", "default-anchors", "no-anchors", "extra-anchors", "sep-emb-l1-6", "untrained"];

fn show_distance(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
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
    let title = match &*(DISTANCE.numbers)(view) {
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

/// The observations of one of them.
fn of_encoder(
    data: &StudyData<'_>,
    encoder: &str,
    measure: &str,
    factors: &[(&str, &str)],
) -> Observations {
    match encoder {
        UNTRAINED => data.untrained(measure, factors),
        _ => data.observations(measure, &[factors, &[("condition", encoder)]].concat()),
    }
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
            let sample = of_encoder(data, encoder, task.measure(), &own).sample();
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
            let sample = of_encoder(data, encoder, task.measure(), &factors).sample();
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
                let scores = of_encoder(data, encoder, task.measure(), &factors);
                TableCell::Ours(scores.sample().mean())
            };
            let found = |kind| {
                let at = |layer: &String| {
                    let factors = [(factor, &**level), ("kind", kind), ("layer", layer)];
                    of_encoder(data, encoder, "retrieval", &factors)
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
