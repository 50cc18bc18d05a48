//! Our conditions beside those of Table 1 of Conneau et al. 2020: their order, and the share of the default's transfer that each
//! keeps.

use terms::{Estimate, Task};

use super::{CONDITIONS, paper_share, paper_transfer, task_transfer, transfer};
use crate::report::data::StudyData;
use crate::report::exhibit::{ReportTable, TableCell};
use crate::report::finding::{Evidence, signed};
use crate::report::observations::Observations;
use crate::report::sections::parts::{pair_name, target, tasks_of_paper};
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

/// The rank correlation of our conditions with the paper's.
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
            let cells = |(_, task): &(String, Option<Task>)| {
                let of = |condition| observed(data, condition, *task, Some(pair));
                // Text of another domain is less text: its share is of as much text of one domain, where that was measured.
                let equal = Some(of("default-equal")).filter(|equal| !equal.sample().0.is_empty());
                let whole =
                    equal.filter(|_| *condition == "wiki-cc").unwrap_or_else(|| of("default"));
                let ours = of(condition).share_of(&whole).and_then(|share| share.mean());
                let theirs = published(Some(pair), |language| {
                    paper_share(condition, "default", language, *task)
                });
                [TableCell::Ours(ours), TableCell::Paper(theirs, 2)]
            };
            let cells: Vec<TableCell> = columns.iter().flat_map(cells).collect();
            if cells.iter().any(|cell| matches!(cell, TableCell::Ours(Some(_)))) {
                let names =
                    [TableCell::Name(pair_name(pair)), TableCell::Text(data.name(condition))];
                table.rows.push(names.into_iter().chain(cells).collect());
            }
        }
    }
    table
}
