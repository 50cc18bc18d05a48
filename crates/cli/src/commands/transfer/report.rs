//! What came of a transfer, in words.

use std::fmt::Write as _;
use std::path::Path;

use tasks::finetune::{ShiftSummary, ShiftedSet, Summary};
use tasks::{Mean, Score, Task};

/// What came of a run, as a table.
pub(super) fn in_words(summary: &Summary, folder: &Path) -> String {
    let place = folder.display();
    let mut text = format!("{place}: {}, {}\n\n", summary.task.name(), tried(summary));
    if summary.settings.is_empty() {
        return text.trim_end().to_owned() + "\n" + &stopped(summary, folder);
    }
    let row = |name: &str, score: String, details: Vec<String>| {
        [vec![name.to_owned(), score], details].concat()
    };
    let names = columns(summary.task).map(str::to_owned).to_vec();
    let mut rows = vec![row("", summary.headline.clone(), names)];
    rows.extend(summary.dev.iter().map(|dev| row("dev", mean(dev), Vec::new())));
    for result in &summary.results {
        let details = summary.scores.get(&result.name).map(details).unwrap_or_default();
        rows.push(row(&result.name, mean(&result.score), details));
    }
    text.push_str(&table(&rows));
    if summary.settings.len() > 1 {
        let _ =
            writeln!(text, "  (columns after the first are of the setting that is best on dev)");
    }
    for (name, found) in over_characters(summary) {
        let _ = writeln!(text, "  {name}: F1 over characters {found:.4}");
    }
    let signature = summary.scores.values().next().map(Score::signature).unwrap_or_default();
    text.extend(summary.shift.as_ref().map(shifted));
    let _ = writeln!(text, "\n  {signature}");
    let speed = &summary.speed;
    if speed.train_seconds > 0.0 {
        let _ = writeln!(
            text,
            "  {:.2} M weights learned at {:.0} tokens/s; scored at {:.0} tokens/s; padding {:.1} %",
            summary.parameters as f64 / 1e6,
            speed.train(),
            speed.evaluate(),
            100.0 * summary.padding,
        );
    }
    text + &stopped(summary, folder)
}

/// How to go on with a run that is not done.
fn stopped(summary: &Summary, folder: &Path) -> String {
    match summary.finished {
        true => String::new(),
        false => {
            format!("stopped; go on with: isogloss transfer --resume --out {}\n", folder.display())
        }
    }
}

/// Scores as trained and shifted side by side, a column for each test set.
fn shifted(shift: &ShiftSummary) -> String {
    let ShiftSummary { layer, towards, sets, signature } = shift;
    let row = |name: &str, cell: &dyn Fn(&str, &ShiftedSet) -> String| -> Vec<String> {
        let cells = sets.iter().map(|(name, set)| cell(name, set));
        [name.to_owned()].into_iter().chain(cells).collect()
    };
    let weights = |set: &ShiftedSet| {
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
        row("as trained", &|_, set| mean(&set.plain)),
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

/// Where words were made of characters, the score over these.
fn over_characters(summary: &Summary) -> impl Iterator<Item = (&str, f64)> {
    summary.scores.iter().filter_map(|(name, score)| match score {
        Score::Ner(score) => Some((name.as_str(), score.characters?.f1)),
        _ => None,
    })
}

/// What the result is a mean of.
fn tried(summary: &Summary) -> String {
    let mut seeds: Vec<u64> =
        summary.settings.iter().filter_map(|setting| setting["seed"].as_u64()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let settings = summary.settings.len() / seeds.len().max(1);
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

fn mean(mean: &Mean) -> String {
    match mean.interval {
        None => format!("{:.4}", mean.mean),
        Some(interval) => format!("{:.4} ± {interval:.4}", mean.mean),
    }
}

/// What stands beside the headline, for the best setting alone.
fn columns(task: Task) -> [&'static str; 4] {
    match task {
        Task::Nli => ["pairs", "", "", ""],
        Task::Ner => ["precision", "recall", "entities", "sentences"],
        Task::Parse => ["UAS", "LAS without punct.", "UAS without punct.", "words"],
    }
}

fn details(score: &Score) -> Vec<String> {
    let share = |share: f64| format!("{share:.4}");
    match score {
        Score::Nli(score) => vec![score.pairs.to_string()],
        Score::Ner(score) => {
            let found = score.micro;
            let counts = [found.gold, score.sentences].map(|count| count.to_string());
            [vec![share(found.precision), share(found.recall)], counts.to_vec()].concat()
        }
        Score::Parse(score) => {
            let (all, without) = (score.all, score.without_punctuation);
            let shares = [all.uas, without.las, without.uas].map(share);
            [shares.to_vec(), vec![all.words.to_string()]].concat()
        }
    }
}
