//! The amount of text and the length of contexts: figures and tables.

use crate::draw::{Chart, DotMark, DotRow, Figure};
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::observations::SeedSample;
use crate::report::sections::names::{MEAN_ROW, language_name};
use crate::report::sections::parts::{
    OTHERS, chance, chance_of_words, chance_words, dots, figure, mark, named, system_colour,
};
use terms::Task;

const SIZES: [&str; 2] = ["small", "large"];
const WINDOWS: [&str; 2] = ["full", "short"];
const SYSTEMS: [&str; 4] = ["encoder", "word2vec", "glove", UNTRAINED];

/// The records of a study. Liu et al. 2020 transfer NLI here; other tasks that a study may have are left out.
fn study<'a>(view: &SettingView<'a>, name: &str) -> StudyData<'a> {
    view.study(name).without_tasks_but(Task::Nli)
}

/// The measures that are drawn: what it is, its unit.
const MEASURES: [(&str, &str, &str); 3] = [
    ("mrr", "All pairs", "MRR"),
    ("mrr_different", "Strings that differ", "MRR"),
    ("accuracy", "NLI", "accuracy"),
];

/// A measure as tables name it, outside panels of one kind.
fn row_name(measure: &str, title: &str) -> String {
    match measure {
        "accuracy" => title.to_owned(),
        _ => format!("Word retrieval, {}", title.to_lowercase()),
    }
}

/// Those of word retrieval, or of NLI, that were measured.
fn measured(data: &StudyData<'_>, words: bool) -> Vec<(&'static str, &'static str, &'static str)> {
    let wanted = |(measure, ..): &(&str, &str, &str)| {
        measure.starts_with("mrr") == words && data.has(measure)
    };
    MEASURES.into_iter().filter(wanted).collect()
}

/// A size with its number of sentences of each language, where that was recorded.
fn sized(data: &StudyData<'_>, size: &str) -> String {
    match data.levels_among("sentences", &[("size", size)]).as_slice() {
        [] => size.to_owned(),
        several => format!("{size} ({} sentences)", several.join(", ")),
    }
}

fn window_name(window: &str) -> &'static str {
    if window == "short" { "short contexts" } else { "full contexts" }
}

/// The systems of a study, those of the paper first: a given model stands beside them by its name.
fn systems(data: &StudyData<'_>) -> Vec<String> {
    data.levels(&["mrr", "mrr_different", "accuracy"], "system", &SYSTEMS)
}

/// The seeds of a system: in one language or over all, at a size and with a window where it has these.
fn score(
    data: &StudyData<'_>,
    (measure, system): (&str, &str),
    language: Option<&str>,
    more: &[(&str, &str)],
) -> SeedSample {
    let own = match language {
        Some(language) => vec![("language", language)],
        // Means over languages are over targets.
        None if measure == "accuracy" => vec![("role", "target")],
        None => vec![],
    };
    let factors = [&own[..], more].concat();
    match system {
        UNTRAINED => data.untrained(measure, &factors).sample(),
        _ => data.observations(measure, &[&[("system", system)], &factors[..]].concat()).sample(),
    }
}

/// A row for each language, and one for the mean over languages where there are several.
fn rows(
    data: &StudyData<'_>,
    measure: &str,
    marks: impl Fn(Option<&str>) -> Vec<DotMark>,
) -> Vec<DotRow> {
    let languages = data.levels(&[measure], "language", &[]);
    let row = |name: &str, language: Option<&str>| {
        let mut marks = marks(language);
        marks.retain(|mark| mark.value.is_some());
        DotRow { name: name.to_owned(), marks }
    };
    let mut rows: Vec<DotRow> =
        languages.iter().map(|language| row(&language_name(language), Some(language))).collect();
    if languages.len() > 1 {
        rows.push(row(MEAN_ROW, None));
    }
    rows.retain(|row| !row.marks.is_empty());
    rows
}

/// A panel of a measure with its chance.
fn panel(
    data: &StudyData<'_>,
    title: &str,
    (measure, unit): (&str, &str),
    rows: Vec<DotRow>,
) -> Option<Chart> {
    let chance = match measure {
        "accuracy" => Some(chance(Task::Nli.chance())),
        _ => chance_of_words(data, measure, &[]),
    };
    dots(title, unit, rows, chance.into_iter().collect())
}

pub(super) fn sizes(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "data-size");
    let systems = systems(&data);
    let of_size = |size: &str, words: bool| {
        let chart = |(measure, title, unit): (&str, &str, &str)| {
            let marks = |language: Option<&str>| {
                let of = |system: &String| {
                    let sample = score(&data, (measure, system), language, &[("size", size)]);
                    mark(&data.name(system), system_colour(system).unwrap_or(OTHERS), &sample, None)
                };
                systems.iter().map(of).collect()
            };
            panel(&data, title, (measure, unit), rows(&data, measure, marks))
        };
        let what = if words { "Word retrieval" } else { "Zero-shot NLI" };
        let charts: Vec<Chart> = measured(&data, words).into_iter().filter_map(chart).collect();
        let name = format!("{size}-{}", if words { "words" } else { "nli" });
        let topic = format!("{what}, {} text", sized(&data, size));
        figure(named(id, &name), &topic, &charts)
    };
    let words = "MRR of word retrieval by target language: over all pairs, and over pairs whose strings differ. Equal strings are \
                 found by any encoder, as the untrained one shows.";
    let words = &(words.to_owned() + chance_words(&data, "mrr"));
    let nli = "Zero-shot NLI accuracy, by language.";
    vec![
        CaptionedItem::figure(replicates(2, &["Figure 1"]), words.as_str(), of_size("small", true)),
        CaptionedItem::figure(replicates(2, &["Figure 2"]), nli, of_size("small", false)),
        CaptionedItem::figure(replicates(2, &["Figure 3"]), words.as_str(), of_size("large", true)),
        CaptionedItem::figure(replicates(2, &["Figure 4"]), nli, of_size("large", false)),
        CaptionedItem::table(
            replicates(2, &["Figure 1", "Figure 2", "Figure 3", "Figure 4"]),
            "Means over target languages.",
            sizes_table(&data, &systems),
        ),
    ]
}

fn sizes_table(data: &StudyData<'_>, systems: &[String]) -> ReportTable {
    let mut table = ReportTable::new(&["measure", "system"]);
    table.heads.extend(SIZES.map(|size| sized(data, size)));
    for (measure, title, _) in MEASURES {
        for system in systems {
            let of = |size| score(data, (measure, system), None, &[("size", size)]).mean();
            let cells = SIZES.map(of);
            if cells.iter().any(Option::is_some) {
                let names =
                    [TableCell::Name(row_name(measure, title)), TableCell::Text(data.name(system))];
                table.rows.push(names.into_iter().chain(cells.map(TableCell::Ours)).collect());
            }
        }
    }
    table
}

pub(super) fn windows(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "window");
    let sizes = data.levels(&["mrr", "accuracy"], "size", &SIZES);
    let changes = figure(
        named(id, "change"),
        "Effect of short contexts on NLI, in per cent",
        &change_panels(&data, &sizes),
    );
    vec![
        CaptionedItem::figure(
            replicates(2, &["Figure 5"]),
            "MRR of word retrieval with full contexts and, by dashed intervals, with short ones, by target language."
                .to_owned()
                + chance_words(&data, "mrr"),
            retrieval_figure(id, &data, &sizes),
        ),
        CaptionedItem::figure(
            replicates(2, &["Figure 6a"]),
            "Zero-shot NLI accuracy of the encoder by amount of text, with full and with short contexts.",
            amount_figure(id, &data, &sizes),
        ),
        CaptionedItem::figure(
            replicates(2, &["Figure 6b"]),
            "Relative change of the encoder's NLI accuracy from full to short contexts, in per cent.",
            changes,
        ),
        CaptionedItem::table(
            replicates(2, &["Figure 5", "Figure 6a", "Figure 6b"]),
            "Means over target languages; relative changes are computed for each seed.",
            window_table(&data, &sizes),
        ),
    ]
}

/// A panel for each size and measure: a series for each system and window.
fn retrieval_figure(id: &str, data: &StudyData<'_>, sizes: &[String]) -> Figure {
    let mut series: Vec<(String, &str)> = Vec::new();
    for system in systems(data) {
        let windows = if system == UNTRAINED { &WINDOWS[..1] } else { &WINDOWS[..] };
        series.extend(windows.iter().map(|window| (system.clone(), *window)));
    }
    let name = |system: &str, window: &str| match system {
        UNTRAINED => system.to_owned(),
        _ => format!("{} ({})", data.name(system), window_name(window)),
    };
    let mut charts = Vec::new();
    for size in sizes {
        for (measure, title, unit) in measured(data, true) {
            let marks = |language: Option<&str>| {
                let of = |(system, window): &(String, &str)| {
                    let more = [("size", &**size), ("window", *window)];
                    let sample = score(data, (measure, system), language, &more);
                    let colour = system_colour(system).unwrap_or(OTHERS);
                    // Short contexts are dashed, in the system's colour.
                    let mark = mark(&name(system, window), colour, &sample, None);
                    DotMark { dashed: *window == "short", ..mark }
                };
                series.iter().map(of).collect()
            };
            let title = format!("{title}, {}", sized(data, size));
            charts.extend(panel(data, &title, (measure, unit), rows(data, measure, marks)));
        }
    }
    figure(named(id, "mrr"), "Word retrieval by context length", &charts)
}

/// A panel for each window: a series for each size.
fn amount_figure(id: &str, data: &StudyData<'_>, sizes: &[String]) -> Figure {
    let chart = |window: &str| {
        let marks = |language: Option<&str>| {
            let of = |(place, size): (usize, &String)| {
                let more = [("size", &**size), ("window", window)];
                let sample = score(data, ("accuracy", "encoder"), language, &more);
                mark(&sized(data, size), OTHERS + place, &sample, None)
            };
            let untrained = score(data, ("accuracy", UNTRAINED), language, &[]);
            let colour = system_colour(UNTRAINED).unwrap_or(OTHERS);
            let untrained = mark(UNTRAINED, colour, &untrained, None);
            sizes.iter().enumerate().map(of).chain([untrained]).collect()
        };
        panel(data, window_name(window), ("accuracy", "accuracy"), rows(data, "accuracy", marks))
    };
    let charts: Vec<Chart> = WINDOWS.into_iter().filter_map(chart).collect();
    figure(named(id, "accuracy"), "NLI by amount of text", &charts)
}

/// The relative change from full to short contexts in per cent, seed by seed.
fn change(
    data: &StudyData<'_>,
    (measure, system): (&str, &str),
    more: &[(&str, &str)],
) -> SeedSample {
    let of = |window| {
        data.observations(measure, &[&[("system", system), ("window", window)], more].concat())
    };
    let (full, short) = (of("full"), of("short"));
    let (a, b) = (full.with(&short, |a, _| a).sample(), short.with(&full, |a, _| a).sample());
    let mut change = a.with(&b, |full, short| 100.0 * (short - full) / full);
    change.0.retain(|_, value| value.is_finite());
    change
}

fn change_panels(data: &StudyData<'_>, sizes: &[String]) -> Vec<Chart> {
    let languages = data.levels(&["accuracy"], "language", &[]);
    let row = |name: String, which: (&str, &str)| {
        let of = |(place, size): (usize, &String)| {
            let change = change(data, ("accuracy", "encoder"), &[("size", &**size), which]);
            mark(&sized(data, size), OTHERS + place, &change, None)
        };
        DotRow { name, marks: sizes.iter().enumerate().map(of).collect() }
    };
    let of = |language: &String| row(language_name(language), ("language", language));
    let mut rows: Vec<DotRow> = languages.iter().map(of).collect();
    rows.push(row(MEAN_ROW.to_owned(), ("role", "target")));
    dots("NLI, short minus full contexts", "change, %", rows, vec![]).into_iter().collect()
}

fn window_table(data: &StudyData<'_>, sizes: &[String]) -> ReportTable {
    let heads = ["measure", "system", "size", "full contexts", "short contexts", "change"];
    let mut table = ReportTable::new(&heads);
    for (measure, title, _) in MEASURES {
        for system in systems(data) {
            for size in sizes {
                let of = |window| {
                    let more = [("window", window), ("size", &**size)];
                    score(data, (measure, &system), None, &more).mean()
                };
                let [full, short] = WINDOWS.map(of);
                if full.or(short).is_none() {
                    continue;
                }
                table.rows.push(vec![
                    TableCell::Name(row_name(measure, title)),
                    TableCell::Text(data.name(&system)),
                    TableCell::Text(sized(data, size)),
                    TableCell::Ours(full),
                    TableCell::Ours(short),
                    TableCell::Percent(change(data, (measure, &system), &[("size", size)]).mean()),
                ]);
            }
        }
    }
    table
}
