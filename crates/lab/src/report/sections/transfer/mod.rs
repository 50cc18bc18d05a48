//! Conditions of zero-shot transfer: domain, anchors, parameter sharing (Conneau et al. 2020, §4.1 to §4.3).

mod comparison;

pub(in crate::report) use comparison::against_paper;

use terms::Task;

use super::names::language_name;
use super::parts::{
    OTHERS, chance, chance_of_retrieval, dots, figure, kind_colour, kind_name, mark,
    measured_tasks, measures, named, pair_name, system_colour, target, tasks_of_paper,
};
use crate::draw::{Chart, DotRow, Figure, short};
use crate::papers;
use crate::record::Factors;
use crate::report::claims::SectionCode;
use crate::report::data::{SettingView, StudyData, UNTRAINED, best_of};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::Evidence;
use crate::report::observations::Observations;

const CONDITIONS: [&str; 12] = [
    "default",
    "default-equal",
    "wiki-cc",
    "default-anchors",
    "no-anchors",
    "extra-anchors",
    "sep-emb",
    "sep-emb-l1-3",
    "sep-emb-l1-6",
    "sep-l1-3",
    "sep-l1-6",
    UNTRAINED,
];

/// The studies whose conditions are rows of one table.
const TOGETHER: [&str; 4] = ["domain", "anchors", "sharing", "table-1"];

pub(super) const TABLE_1: SectionCode = SectionCode {
    rules: &[("Conditions rank", comparison::rank)],
    show: Some(&show_table),
    numbers: Some(|view| match comparison::ranks(&view.studies(&TOGETHER), None, None) {
        Evidence::Ranks { test, n, .. } => {
            format!("\u{3c1} = {} over {n} conditions", short(test.rho))
        }
        _ => String::new(),
    }),
};

pub(super) fn show_domain(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    conditions(
        id,
        view,
        &["domain", "table-1"],
        &["default", "default-equal", "wiki-cc", UNTRAINED],
    )
}

pub(super) fn show_anchors(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let own = ["default", "default-anchors", "no-anchors", "extra-anchors", UNTRAINED];
    conditions(id, view, &["anchors", "table-1"], &own)
}

/// The conditions with separate parameters, and the untrained encoder.
pub(super) fn show_sharing(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let own = [&["default", "no-anchors"], CONDITIONS.split_at(6).1].concat();
    conditions(id, view, &["sharing", "table-1"], &own)
}

/// Target scores under a condition, above chance.
fn transfer(data: &StudyData<'_>, condition: &str) -> Observations {
    above_chance(data, &[("condition", condition), ("role", "target")])
}

/// The same of one task.
fn task_transfer(data: &StudyData<'_>, condition: &str, task: Task) -> Observations {
    let factors = [("condition", condition), ("role", "target"), ("task", task.name())];
    let cells = data.observations(task.measure(), &factors);
    cells.tagged("task", task.name()).map(|_, value| value - task.chance())
}

/// The same of the untrained encoder.
fn untrained_transfer(data: &StudyData<'_>) -> Observations {
    let of = |task: Task| {
        let scores = data.untrained(task.measure(), &[("role", "target"), ("task", task.name())]);
        scores.tagged("task", task.name()).map(|_, value| value - task.chance())
    };
    tasks_of_paper().map(of).fold(Observations::default(), Observations::join)
}

fn above_chance(data: &StudyData<'_>, factors: &[(&str, &str)]) -> Observations {
    let of = |task: Task| {
        let cells =
            data.observations(task.measure(), &[factors, &[("task", task.name())]].concat());
        // The task becomes a factor again, or tasks would overwrite one another.
        cells.tagged("task", task.name()).map(|_, value| value - task.chance())
    };
    tasks_of_paper().map(of).fold(Observations::default(), Observations::join)
}

/// The paper's transfer above chance under a condition, as one seed's: of one language or of its means, of one task or of all.
fn published(condition: &str, language: Option<&str>, task: Option<Task>) -> Observations {
    let of = |task: Task| {
        let mut factors = vec![("condition", condition), ("task", task.name())];
        factors.extend(language.map(|language| ("language", language)));
        let place = if language.is_some() { "Table 1" } else { "Table 1, means" };
        let score = papers::number(1, place, task.measure(), &factors)? - task.chance();
        let cells = [((1, Factors::new()), score)].into_iter().collect();
        Some(Observations(cells).tagged("task", task.name()))
    };
    let tasks = tasks_of_paper().filter(|one| task.is_none_or(|task| task == *one));
    tasks.filter_map(of).fold(Observations::default(), Observations::join)
}

/// The same as a number.
pub(super) fn paper_transfer(
    condition: &str,
    language: Option<&str>,
    task: Option<Task>,
) -> Option<f64> {
    published(condition, language, task).sample().mean().map(|mean| mean.mean)
}

/// The share of another condition's transfer that a condition keeps in the paper.
fn paper_share(
    condition: &str,
    of: &str,
    language: Option<&str>,
    task: Option<Task>,
) -> Option<f64> {
    let whole = published(of, language, task);
    let share = published(condition, language, task).share_of(&whole)?;
    share.mean().map(|share| share.mean)
}

fn pairs(data: &StudyData<'_>) -> Vec<String> {
    data.levels(&measures(), "pair", &["en-fr", "en-ru", "en-zh"])
}

/// The paper's name of a condition: its default has as much text as its text of another domain.
fn as_published(condition: &str) -> &str {
    if condition == "default-equal" { "default" } else { condition }
}

/// The paper's score: of the pair's own language where it has it, else its mean.
fn paper_score(task: Task, condition: &str, pair: &str) -> Option<f64> {
    let condition = as_published(condition);
    let own = [("condition", condition), ("task", task.name()), ("language", target(pair))];
    papers::number(1, "Table 1", task.measure(), &own).or_else(|| paper_mean(task, condition))
}

fn paper_mean(task: Task, condition: &str) -> Option<f64> {
    papers::number(
        1,
        "Table 1, means",
        task.measure(),
        &[("condition", as_published(condition)), ("task", task.name())],
    )
}

/// The conditions of a study, the untrained encoder last where it was measured.
fn conditions_of(data: &StudyData<'_>, measures: &[&str]) -> Vec<String> {
    let mut levels = data.levels(measures, "condition", &CONDITIONS);
    let as_system = data.levels(measures, "system", &[]).iter().any(|level| level == UNTRAINED);
    if as_system && !levels.iter().any(|level| level == UNTRAINED) {
        levels.push(UNTRAINED.to_owned());
    }
    levels
}

/// The observations under a condition, which may be the untrained encoder.
pub(super) fn under(
    data: &StudyData<'_>,
    condition: &str,
    measure: &str,
    factors: &[(&str, &str)],
) -> Observations {
    match condition {
        UNTRAINED => data.untrained(measure, factors),
        _ => data.observations(measure, &[&[("condition", condition)], factors].concat()),
    }
}

/// A panel for each task: a row for each condition; a series for each pair where there are several.
fn task_panels(data: &StudyData<'_>, pairs: &[String]) -> Vec<Chart> {
    let levels = conditions_of(data, &measures());
    let panel = |task: Task| {
        let mark_of = |condition: &String, (place, pair): (usize, &String)| {
            let factors = [("pair", &**pair), ("task", task.name()), ("role", "target")];
            let sample = under(data, condition, task.measure(), &factors).sample();
            let paper = paper_score(task, condition, pair);
            match pairs {
                [_] => mark("", system_colour(condition).unwrap_or(OTHERS), &sample, paper),
                _ => mark(&pair_name(pair), OTHERS + place, &sample, paper),
            }
        };
        let row = |condition: &String| DotRow {
            name: data.name(condition),
            marks: pairs.iter().enumerate().map(|pair| mark_of(condition, pair)).collect(),
        };
        let unit = format!("{}, target language", task.unit());
        let rows = levels.iter().map(row).collect();
        dots(task.title(), &unit, rows, vec![chance(task.chance())])
    };
    Task::all().filter_map(panel).collect()
}

/// The records of a section's own conditions, and of conditions that no section is about.
fn among<'a>(data: &StudyData<'a>, own: &[&str]) -> StudyData<'a> {
    data.filtered(|factors| {
        let condition = factors.get("condition").map_or("", String::as_str);
        own.contains(&condition) || !CONDITIONS.contains(&condition)
    })
}

/// Dots for each task, then retrieval, then the numbers.
fn conditions(
    id: &str,
    view: &SettingView<'_>,
    studies: &[&str],
    own: &[&str],
) -> Vec<CaptionedItem> {
    let (items, data) = (&["Figure 3", "Table 1"], &among(&view.studies(studies), own));
    let pairs = pairs(data);
    let scores = figure(
        named(id, "transfer"),
        "Zero-shot transfer by condition",
        &task_panels(data, &pairs),
    );
    vec![
        CaptionedItem::figure(
            replicates(1, items),
            "Zero-shot scores in the target language. A diamond is the paper's number (of the same language, or its mean over \
             three), from other data and a much larger model. The dashed line is what a prediction without knowledge scores.",
            scores,
        ),
        CaptionedItem::figure(
            BEYOND,
            "Sentence retrieval accuracy (P@1, mean of both directions) at each seed's best layer: raw, mean-centred, and after \
             Procrustes alignment learned from other sentences.",
            retrieval(id, data),
        ),
        CaptionedItem::table(replicates(1, items), TABLE_CAPTION, table(data, &pairs)),
    ]
}

const TABLE_CAPTION: &str = "Means over seeds ± half the width of the 95 % interval. \u{201c}Source\u{201d} is the language of fine-tuning. The paper\u{2019}s columns are its \
                             means over French, Russian and Chinese.";

fn retrieval(id: &str, data: &StudyData<'_>) -> Figure {
    let kinds = data.levels(&["retrieval"], "kind", &["raw", "centered", "aligned"]);
    let levels = conditions_of(data, &["retrieval"]);
    let of = |condition: &str, (place, kind): (usize, &String)| {
        let at =
            |layer: &str| under(data, condition, "retrieval", &[("kind", kind), ("layer", layer)]);
        let best = best_of(data.layers("retrieval").iter().map(|layer| at(layer)).collect());
        mark(kind_name(kind), kind_colour(kind).unwrap_or(OTHERS + place), &best.sample(), None)
    };
    let row = |condition: &String| DotRow {
        name: data.name(condition),
        marks: kinds.iter().enumerate().map(|kind| of(condition, kind)).collect(),
    };
    let chance = chance_of_retrieval(data).into_iter().collect();
    let panel = dots("Sentence retrieval", "P@1", levels.iter().map(row).collect(), chance);
    let charts: Vec<Chart> = panel.into_iter().collect();
    figure(named(id, "retrieval"), "The same encoders without a task", &charts)
}

/// Rows of conditions; for each task the source, each pair, and the paper.
fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let mut table = ReportTable {
        groups: vec![(String::new(), 1)],
        heads: vec!["condition".to_owned()],
        rows: vec![],
    };
    let tasks = measured_tasks(data);
    for &task in &tasks {
        table.groups.push((format!("{} ({})", task.title(), task.unit()), pairs.len() + 2));
        table.heads.push("source".to_owned());
        table.heads.extend(pairs.iter().map(|pair| language_name(target(pair))));
        table.heads.push("Conneau et al. 2020".to_owned());
    }
    for condition in conditions_of(data, &measures()) {
        let mut row = vec![TableCell::Name(data.name(&condition))];
        for &task in &tasks {
            let of = |role, more: &[(&str, &str)]| {
                let factors = [&[("task", task.name()), ("role", role)], more].concat();
                let scores = under(data, &condition, task.measure(), &factors);
                TableCell::Ours(scores.sample().mean())
            };
            row.push(of("source", &[]));
            row.extend(pairs.iter().map(|pair| of("target", &[("pair", pair)])));
            row.push(TableCell::Paper(paper_mean(task, &condition), 3));
        }
        table.rows.push(row);
    }
    table
}

fn show_table(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.studies(&TOGETHER);
    let pairs = pairs(&data);
    let charts = task_panels(&data, &pairs);
    let figure = figure(named(id, "transfer"), "Zero-shot transfer under all conditions", &charts);
    let real = pairs.iter().filter(|pair| !pair.starts_with('q'));
    let beside = real.map(|pair| {
        let caption = format!(
            "{}: zero-shot scores in {}, means over seeds \u{b1} half the width of the 95 % interval, and the share of the \
             default's transfer that is kept: the mean over tasks of the ratio of the mean scores above chance. The paper's numbers are of \
             the same language where it has it, else its means over three.",
            pair_name(pair),
            language_name(target(pair))
        );
        CaptionedItem::table(replicates(1, &["Table 1"]), caption, comparison::beside(&data, pair))
    });
    let mut items = vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 3"]),
            "Zero-shot scores under all conditions, by task, with the paper's numbers.",
            figure,
        ),
        CaptionedItem::table(replicates(1, &["Table 1"]), TABLE_CAPTION, table(&data, &pairs)),
        CaptionedItem::table(
            replicates(1, &["Table 1"]),
            "Spearman's ρ of our conditions with the paper's (its own language where it has it, else its mean over three), by \
             zero-shot transfer above chance.",
            comparison::correlations(&data, &pairs),
        ),
        CaptionedItem::table(
            replicates(1, &["Table 1"]),
            "The share of the default's transfer that each condition keeps, here and in the paper: of a task the ratio of the mean \
             scores above chance, of all tasks the mean of these ratios.",
            comparison::shares(&data, &pairs),
        ),
    ];
    items.splice(1..1, beside);
    items
}
