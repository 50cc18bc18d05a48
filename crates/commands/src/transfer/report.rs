//! The result of a transfer as text.

use std::fmt::Write as _;
use std::path::Path;

use tasks::finetune::{ShiftResult, ShiftedTestResult, TestResult, TransferResult};
use terms::Estimate;

pub(super) fn in_words(result: &TransferResult, folder: &Path) -> String {
    let place = folder.display();
    let mut text = format!(
        "{place}: {}, {}

",
        result.task,
        tried(result)
    );
    if result.settings.is_empty() {
        return text.trim_end().to_owned()
            + "
" + &stopped(result, folder);
    }
    text.push_str(&table(&score_rows(result)));
    if result.settings.len() > 1 {
        let _ = writeln!(
            text,
            "  (columns after the baselines are of the setting that is best on dev)"
        );
    }
    text.push_str(&overlaps(result));
    text.extend(result.shift.as_ref().map(shifted));
    let _ = writeln!(
        text,
        "
  {}",
        result.signature
    );
    let speed = &result.speed;
    if speed.train_seconds > 0.0 {
        let _ = writeln!(
            text,
            "  {:.2} M parameters trained at {:.0} tokens/s; scored at {:.0} tokens/s; padding {:.1} %",
            result.parameters as f64 / 1e6,
            speed.train(),
            speed.evaluate(),
            100.0 * result.padding,
        );
    }
    text + &stopped(result, folder)
}

/// A row for each test set: the score, the baselines, and the best setting's details.
fn score_rows(result: &TransferResult) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in result.scores.values().flat_map(|score| score.details()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let heads =
        ["", result.task.unit(), "chance", "majority"].into_iter().chain(names.iter().copied());
    let mut rows = vec![heads.map(str::to_owned).collect()];
    rows.extend(result.dev.iter().map(|dev| vec!["dev".to_owned(), mean(dev)]));
    for test in &result.results {
        let details =
            result.scores.get(&test.name).map(|score| score.details()).unwrap_or_default();
        let detail = |name: &&str| {
            let found = details.iter().find(|(own, _)| own == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let majority = test.majority.map(|score| format!("{score:.4}")).unwrap_or_default();
        let scores =
            [test.name.clone(), mean(&test.score), format!("{:.4}", test.chance), majority];
        rows.push(scores.into_iter().chain(names.iter().map(detail)).collect());
    }
    rows
}

/// A line for each test set that shares sentences with the training file or with development files, with the score of its others.
fn overlaps(result: &TransferResult) -> String {
    let line = |test: &TestResult| {
        let of = result.sets.get(&test.name).map_or(0, |set| set.items);
        let others = match &test.without_overlap {
            Some(score) => format!("{} without them: {}", result.task.unit(), mean(score)),
            None => "no other is there".to_owned(),
        };
        let seen = [(test.overlap, "trained"), (test.dev_overlap, "chosen")];
        let seen = seen.iter().filter(|(count, _)| *count > 0);
        let seen: Vec<String> = seen
            .map(|(count, how)| format!("{count} of {of} items stand in what was {how} on too"))
            .collect();
        format!("  {}: {}; {others}\n", test.name, seen.join(", "))
    };
    let shares = |test: &&TestResult| test.overlap + test.dev_overlap > 0;
    result.results.iter().filter(shares).map(line).collect()
}

/// How to resume a run that is not done.
fn stopped(result: &TransferResult, folder: &Path) -> String {
    match result.finished {
        true => String::new(),
        false => {
            format!("stopped; resume with: isogloss transfer --resume --out {}\n", folder.display())
        }
    }
}

/// Scores without and with the shift, a column for each test set.
fn shifted(shift: &ShiftResult) -> String {
    let ShiftResult { layer, towards, sets, signature } = shift;
    let row = |name: &str, cell: &dyn Fn(&str, &ShiftedTestResult) -> String| -> Vec<String> {
        let cells = sets.iter().map(|(name, set)| cell(name, set));
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let weights = |set: &ShiftedTestResult| {
        let mut weights = set.alphas.clone();
        weights.sort_by(f64::total_cmp);
        weights.dedup();
        weights.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
    };
    let chosen = if sets.values().any(|set| set.curve.len() > 1) {
        "α, and nothing else, was chosen on each language's own dev file"
    } else {
        "α was given"
    };
    let rows = [
        row("", &|name, _| name.to_owned()),
        row("not shifted", &|_, set| mean(&set.plain)),
        row("shifted", &|_, set| mean(&set.shifted)),
        row("α", &|_, set| weights(set)),
    ];
    format!(
        "\n  shifted towards {towards} after layer {layer}; {chosen}\n\n{}\n  {signature}",
        table(&rows)
    )
}

/// Rows with aligned columns: names to the left, numbers to the right.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("  {cell:width$}") } else { format!("  {cell:>width$}") }
        });
        let _ = writeln!(text, "{}", cells.collect::<String>().trim_end());
    }
    text
}

fn tried(result: &TransferResult) -> String {
    let mut seeds: Vec<u64> = result.settings.iter().map(|setting| setting.setting.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let settings = result.settings.len() / seeds.len().max(1);
    let of = if settings > 2 {
        format!("best two of {settings} settings")
    } else {
        format!("{settings} setting{}", if settings == 1 { "" } else { "s" })
    };
    match seeds.len() {
        0 => "no setting done".to_owned(),
        1 => of,
        count => format!("{of}, mean of {count} seeds with its 95 % interval"),
    }
}

fn mean(mean: &Estimate) -> String {
    match mean.half_width {
        None => format!("{:.4}", mean.mean),
        Some(half) => format!("{:.4} ± {half:.4}", mean.mean),
    }
}
