//! Our conditions beside those of Table 1 of Conneau et al. 2020: their order, and the share of the default's transfer that each
//! keeps.

use terms::{Estimate, Task};

use super::{
    CONDITIONS, TOGETHER, conditions_of, paper_score, paper_share, paper_transfer, task_transfer,
    transfer, under, untrained_transfer,
};
use crate::draw::{Chart, DotMark, DotRow, Figure, ReferenceLine};
use crate::report::claims::Value;
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{ReportTable, TableCell};
use crate::report::finding::{Evidence, signed};
use crate::report::observations::{Observations, SeedSample};
use crate::report::sections::names::language_name;
use crate::report::sections::parts::{
    OTHERS, dots, mark, measures, pair_name, pairs_of, target, tasks_of_paper,
};
use crate::statistics::{rank_test, spearman};

/// Transfer under a condition: of one task or of all, to one language or to all.
fn observed(
    data: &StudyData<'_>,
    condition: &str,
    task: Option<Task>,
    pair: Option<&str>,
) -> Observations {
    let data = pair.map_or_else(|| data.clone(), |pair| data.only("pair", pair));
    match task {
        Some(task) => task_transfer(&data, condition, task),
        None => transfer(&data, condition),
    }
}

/// A number of the paper: of the language of the pair, or where it has none such of the mean of its three.
fn published<T>(pair: Option<&str>, of: impl Fn(Option<&str>) -> Option<T>) -> Option<T> {
    pair.and_then(|pair| of(Some(target(pair)))).or_else(|| of(None))
}

/// Our mean under each condition that the paper has too, and the paper's.
fn both(data: &StudyData<'_>, task: Option<Task>, pair: Option<&str>) -> Vec<(Estimate, f64)> {
    let of = |condition: &&str| {
        let ours = observed(data, condition, task, pair).sample().mean()?;
        Some((ours, published(pair, |language| paper_transfer(condition, language, task))?))
    };
    CONDITIONS.iter().filter_map(of).collect()
}

/// The rank correlation of our conditions with the paper's, in all tasks or one.
pub(super) fn rank(transfer: &Value, data: &StudyData<'_>) -> Evidence {
    let task = transfer.levels().into_iter().find(|(factor, _)| *factor == "task");
    ranks(data, task.and_then(|(_, task)| task.parse().ok()), None)
}

/// The same, over one pair or all.
pub(super) fn ranks(data: &StudyData<'_>, task: Option<Task>, pair: Option<&str>) -> Evidence {
    let both = both(data, task, pair);
    if both.len() < 3 {
        return Evidence::Nothing;
    }
    let (ours, theirs): (Vec<f64>, Vec<f64>) =
        both.iter().map(|(mean, paper)| (mean.mean, *paper)).unzip();
    let (n, seeds) = (ours.len(), both.iter().map(|(mean, _)| mean.n).min().unwrap_or(0));
    match rank_test(&[[ours, theirs]]) {
        Some(test) => Evidence::Ranks { symbol: "ρ", test, n, seeds },
        None => Evidence::Void("the conditions do not differ"),
    }
}

fn columns() -> Vec<(String, Option<Task>)> {
    let tasks = tasks_of_paper().map(|task| (task.title().to_owned(), Some(task)));
    tasks.chain([("all tasks".to_owned(), None)]).collect()
}

/// Spearman's correlation with the paper's conditions, by pair and task.
pub(super) fn correlations(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let columns = columns();
    let mut table = ReportTable::new(&["pair"]);
    table.heads.extend(columns.iter().map(|(name, _)| format!("ρ, {name}")));
    table.heads.push("conditions".to_owned());
    let all = (pairs.len() > 1).then_some(None);
    for pair in pairs.iter().map(|pair| Some(&**pair)).chain(all) {
        let rho = |(_, task): &(String, Option<Task>)| {
            let (ours, theirs): (Vec<f64>, Vec<f64>) =
                both(data, *task, pair).iter().map(|(mean, paper)| (mean.mean, *paper)).unzip();
            spearman(&ours, &theirs).map_or("–".to_owned(), |rho| signed(rho, 2))
        };
        let count = both(data, None, pair).len();
        if count < 3 {
            continue;
        }
        let mut row = vec![TableCell::Name(pair.map_or("all pairs".to_owned(), pair_name))];
        row.extend(columns.iter().map(|column| TableCell::Text(rho(column))));
        row.push(TableCell::Text(count.to_string()));
        table.rows.push(row);
    }
    table
}

/// The share of the default's transfer that a condition keeps here; empty where the default has too little.
fn share(
    data: &StudyData<'_>,
    condition: &str,
    task: Option<Task>,
    pair: Option<&str>,
) -> SeedSample {
    let of = |condition: &str| match condition {
        UNTRAINED => untrained(data, task, pair),
        _ => observed(data, condition, task, pair),
    };
    // Text of another domain is less text: its share is of as much text of one domain, where that was measured.
    let equal = Some(of("default-equal")).filter(|equal| !equal.sample().0.is_empty());
    let whole = equal.filter(|_| condition == "wiki-cc").unwrap_or_else(|| of("default"));
    of(condition).share_of(&whole).unwrap_or_default()
}

/// What an untrained encoder reaches above chance, of one task or of all.
fn untrained(data: &StudyData<'_>, task: Option<Task>, pair: Option<&str>) -> Observations {
    let data = pair.map_or_else(|| data.clone(), |pair| data.only("pair", pair));
    let mut all = untrained_transfer(&data);
    all.0.retain(|(_, factors), _| {
        task.is_none_or(|task| factors.get("task").is_some_and(|one| one == task.name()))
    });
    all
}

fn share_in_paper(condition: &str, task: Option<Task>, pair: Option<&str>) -> Option<f64> {
    published(pair, |language| paper_share(condition, "default", language, task))
}

/// What an encoder's languages are called in a figure over all settings.
fn named(view: &SettingView<'_>, pair: &str) -> String {
    match view.setting.invented {
        true => format!("here, invented ({})", view.setting.scale),
        false => format!("here, {} ({})", language_name(target(pair)), view.setting.scale),
    }
}

/// The share of the default's transfer that each condition keeps: in every setting, and in the paper. None without conditions.
pub(in crate::report) fn against_paper(views: &[SettingView<'_>]) -> Option<Figure> {
    let measured: Vec<(String, StudyData<'_>, Option<String>)> = views
        .iter()
        .flat_map(|view| {
            let data = view.studies(&TOGETHER);
            let pairs = pairs_of(&data, &measures());
            // Invented languages are the same at every distance but in it, and the paper has no such pair.
            let pairs = if view.setting.invented { &pairs[..pairs.len().min(1)] } else { &pairs };
            let of = |pair: &String| {
                let pair_or_all = (!view.setting.invented).then(|| pair.clone());
                (named(view, pair), data.clone(), pair_or_all)
            };
            pairs.iter().map(of).collect::<Vec<_>>()
        })
        .collect();
    let conditions = CONDITIONS[1..].iter().filter(|condition| **condition != "default-equal");
    let row = |condition: &&str, task: Option<Task>| -> Option<DotRow> {
        let of =
            |(place, (name, data, pair)): (usize, &(String, StudyData<'_>, Option<String>))| {
                let sample = share(data, condition, task, pair.as_deref());
                mark(
                    name,
                    OTHERS + place,
                    &sample,
                    share_in_paper(condition, task, pair.as_deref()),
                )
            };
        let marks: Vec<DotMark> = measured.iter().enumerate().map(of).collect();
        // Of several settings the deepest, which comes last, counts layers as the paper does.
        let name = measured.last()?.1.name(condition);
        marks.iter().any(|mark| mark.value.is_some()).then_some(DotRow { name, marks })
    };
    let panel = |(name, task): (String, Option<Task>)| -> Option<Chart> {
        let rows: Vec<DotRow> =
            conditions.clone().filter_map(|condition| row(condition, task)).collect();
        let whole = ReferenceLine { name: "default".to_owned(), value: 1.0 };
        dots(&name, "share of the default\u{2019}s transfer", rows, vec![whole])
    };
    let charts: Vec<Chart> = columns().into_iter().rev().filter_map(panel).collect();
    let title = "What each condition keeps of the default\u{2019}s transfer, here and in the paper";
    (!charts.is_empty())
        .then(|| Figure::of("paper-against-here".to_owned(), title.to_owned(), &charts))
}

/// The same here and in the paper, as cells.
fn kept(data: &StudyData<'_>, condition: &str, task: Option<Task>, pair: &str) -> [TableCell; 2] {
    let ours = share(data, condition, task, Some(pair)).mean();
    [TableCell::Ours(ours), TableCell::Paper(share_in_paper(condition, task, Some(pair)), 2)]
}

/// A real pair beside the paper's own language: for each condition the scores and the share of the default's transfer that is kept.
pub(super) fn beside(data: &StudyData<'_>, pair: &str) -> ReportTable {
    let mut table = ReportTable::new(&["condition"]);
    table.groups.push((String::new(), 1));
    for task in tasks_of_paper() {
        table.groups.push((format!("{} ({})", task.title(), task.unit()), 2));
    }
    table.groups.push(("kept, mean of tasks".to_owned(), 2));
    table.heads.extend(
        table.groups[1..].iter().flat_map(|_| ["here", "Conneau et al. 2020"].map(str::to_owned)),
    );
    for condition in conditions_of(data, &measures()) {
        let score = |task: Task| {
            let factors = [("task", task.name()), ("role", "target"), ("pair", pair)];
            let ours = under(data, &condition, task.measure(), &factors).sample().mean();
            [TableCell::Ours(ours), TableCell::Paper(paper_score(task, &condition, pair), 3)]
        };
        let mut row = vec![TableCell::Name(data.name(&condition))];
        row.extend(tasks_of_paper().flat_map(score));
        row.extend(kept(data, &condition, None, pair));
        table.rows.push(row);
    }
    table
}

/// The share of the default's transfer that each condition keeps, here and in the paper.
pub(super) fn shares(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let columns = columns();
    let mut table = ReportTable {
        groups: vec![(String::new(), 2)],
        heads: vec!["pair".to_owned(), "condition".to_owned()],
        rows: vec![],
    };
    for (name, _) in &columns {
        table.groups.push((name.clone(), 2));
        table.heads.extend(["here".to_owned(), "Conneau et al. 2020".to_owned()]);
    }
    for pair in pairs {
        for condition in &CONDITIONS[1..] {
            let cells = columns.iter().flat_map(|(_, task)| kept(data, condition, *task, pair));
            let cells: Vec<TableCell> = cells.collect();
            if cells.iter().any(|cell| matches!(cell, TableCell::Ours(Some(_)))) {
                let names =
                    [TableCell::Name(pair_name(pair)), TableCell::Text(data.name(condition))];
                table.rows.push(names.into_iter().chain(cells).collect());
            }
        }
    }
    table
}
