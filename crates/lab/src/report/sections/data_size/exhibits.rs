//! The amount of text and the length of contexts: figures and tables.

use super::{SIZES, WINDOWS, study};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::sections::parts::{bar, bars_panel, legend, named, system_name};
use terms::Estimate;

const SYSTEMS: [&str; 4] = ["encoder", "word2vec", "glove", UNTRAINED];

/// The measures that are drawn: what it is, its unit.
const MEASURES: [(&str, &str, &str); 3] = [
    ("mrr", "Word retrieval, all pairs", "MRR"),
    ("mrr_different", "Word retrieval, strings that differ", "MRR"),
    ("accuracy", "NLI", "accuracy"),
];

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

/// The mean of a system: in one language or over all, at a size and with a window where it has these.
fn score(
    data: &StudyData<'_>,
    (measure, system): (&str, &str),
    language: Option<&str>,
    more: &[(&str, &str)],
) -> Option<Estimate> {
    let own = match language {
        Some(language) => vec![("language", language)],
        // Means over languages are over targets.
        None if measure == "accuracy" => vec![("role", "target")],
        None => vec![],
    };
    let factors = [&own[..], more].concat();
    match system {
        UNTRAINED => data.untrained(measure, &factors).sample().mean(),
        _ => data.mean(measure, &[&[("system", system)], &factors[..]].concat()),
    }
}

/// A name and the bars of a language, and of the mean over languages where there are several.
fn groups(
    data: &StudyData<'_>,
    measure: &str,
    bars: impl Fn(Option<&str>) -> Vec<Option<Estimate>>,
) -> Vec<BarGroup> {
    let languages = data.levels(&[measure], "language", &[]);
    let group = |name: &str, language: Option<&str>| BarGroup {
        name: name.to_owned(),
        bars: bars(language)
            .into_iter()
            .enumerate()
            .filter_map(|(colour, mean)| mean.map(|mean| bar(colour, Some(mean), None)))
            .collect(),
    };
    let mut groups: Vec<BarGroup> =
        languages.iter().map(|language| group(language, Some(language))).collect();
    if languages.len() > 1 {
        groups.push(group("mean of targets", None));
    }
    groups
}

pub(super) fn sizes(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "data-size");
    let systems = systems(&data);
    let names: Vec<String> = systems.iter().map(|system| system_name(system).to_owned()).collect();
    let figure = |size: &str, words: bool| {
        let panel = |(measure, title, unit): (&str, &str, &str)| {
            let bars = |language: Option<&str>| {
                let of =
                    |system: &String| score(&data, (measure, system), language, &[("size", size)]);
                systems.iter().map(of).collect()
            };
            bars_panel(title, unit, groups(&data, measure, bars))
        };
        let what = if words { "Word retrieval" } else { "Zero-shot NLI" };
        Figure {
            id: named(id, &format!("{size}-{}", if words { "words" } else { "nli" })),
            title: format!("{what}, {} text", sized(&data, size)),
            legend: legend(&names, SeriesMark::Bar, false),
            panels: measured(&data, words).into_iter().filter_map(panel).collect(),
        }
    };
    let words = "MRR of word retrieval by target language: over all pairs, and over pairs whose strings differ. Equal strings are \
                 found by any encoder, as the untrained one shows.";
    let nli = "Zero-shot NLI accuracy, by language.";
    vec![
        CaptionedItem::figure(replicates(2, &["Figure 1"]), words, figure("small", true)),
        CaptionedItem::figure(replicates(2, &["Figure 2"]), nli, figure("small", false)),
        CaptionedItem::figure(replicates(2, &["Figure 3"]), words, figure("large", true)),
        CaptionedItem::figure(replicates(2, &["Figure 4"]), nli, figure("large", false)),
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
            let of = |size| score(data, (measure, system), None, &[("size", size)]);
            let cells = SIZES.map(of);
            if cells.iter().any(Option::is_some) {
                let names = [
                    TableCell::Name(title.to_owned()),
                    TableCell::Text(system_name(system).to_owned()),
                ];
                table.rows.push(names.into_iter().chain(cells.map(TableCell::Ours)).collect());
            }
        }
    }
    table
}

pub(super) fn windows(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "window");
    let sizes = data.levels(&["mrr", "accuracy"], "size", &SIZES);
    let mut changes = figure(id, "change", "Effect of short contexts on NLI", &sizes);
    changes.panels = change_panels(&data, &sizes);
    vec![
        CaptionedItem::figure(
            replicates(2, &["Figure 5"]),
            "MRR of word retrieval with full and with short contexts, by target language.",
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

fn figure(id: &str, name: &str, title: &str, series: &[String]) -> Figure {
    Figure {
        id: named(id, name),
        title: title.to_owned(),
        legend: legend(series, SeriesMark::Bar, false),
        panels: vec![],
    }
}

/// A panel for each size and measure: a bar for each system and window.
fn retrieval_figure(id: &str, data: &StudyData<'_>, sizes: &[String]) -> Figure {
    let mut series: Vec<(String, &str)> = Vec::new();
    for system in systems(data) {
        let windows = if system == UNTRAINED { &WINDOWS[..1] } else { &WINDOWS[..] };
        series.extend(windows.iter().map(|window| (system.clone(), *window)));
    }
    let name = |(system, window): &(String, &str)| match system.as_str() {
        UNTRAINED => system.clone(),
        _ => format!("{}, {}", system_name(system), window_name(window)),
    };
    let names: Vec<String> = series.iter().map(name).collect();
    let mut drawn = figure(id, "mrr", "Word retrieval by context length", &names);
    for size in sizes {
        for (measure, title, unit) in measured(data, true) {
            let bars = |language: Option<&str>| {
                let of = |(system, window): &(String, &str)| {
                    let more = [("size", &**size), ("window", *window)];
                    score(data, (measure, system), language, &more)
                };
                series.iter().map(of).collect()
            };
            let title = format!("{title}, {}", sized(data, size));
            drawn.panels.extend(bars_panel(&title, unit, groups(data, measure, bars)));
        }
    }
    drawn
}

/// A panel for each window: a bar for each size.
fn amount_figure(id: &str, data: &StudyData<'_>, sizes: &[String]) -> Figure {
    let names: Vec<String> = sizes.iter().map(|size| sized(data, size)).collect();
    let mut drawn = figure(id, "accuracy", "NLI by amount of text", &names);
    let panel = |window: &str| {
        let bars = |language: Option<&str>| {
            let of = |size: &String| {
                let more = [("size", &**size), ("window", window)];
                score(data, ("accuracy", "encoder"), language, &more)
            };
            sizes.iter().map(of).collect()
        };
        bars_panel(window_name(window), "accuracy", groups(data, "accuracy", bars))
    };
    drawn.panels = WINDOWS.into_iter().filter_map(panel).collect::<Vec<Panel>>();
    drawn
}

/// The relative change from full to short contexts in per cent, seed by seed.
fn change(
    data: &StudyData<'_>,
    (measure, system): (&str, &str),
    more: &[(&str, &str)],
) -> Option<Estimate> {
    let of = |window| {
        data.observations(measure, &[&[("system", system), ("window", window)], more].concat())
    };
    let (full, short) = (of("full"), of("short"));
    let (a, b) = (full.with(&short, |a, _| a).sample(), short.with(&full, |a, _| a).sample());
    a.with(&b, |full, short| 100.0 * (short - full) / full)
        .mean()
        .filter(|mean| mean.mean.is_finite())
}

fn change_panels(data: &StudyData<'_>, sizes: &[String]) -> Vec<Panel> {
    let languages = data.levels(&["accuracy"], "language", &[]);
    let group = |language: &String| BarGroup {
        name: language.clone(),
        bars: sizes
            .iter()
            .enumerate()
            .map(|(i, size)| {
                let more = [("size", &**size), ("language", &**language)];
                bar(i, change(data, ("accuracy", "encoder"), &more), None)
            })
            .collect(),
    };
    bars_panel("NLI", "change, %", languages.iter().map(group).collect()).into_iter().collect()
}

fn window_table(data: &StudyData<'_>, sizes: &[String]) -> ReportTable {
    let heads = ["measure", "system", "size", "full contexts", "short contexts", "change"];
    let mut table = ReportTable::new(&heads);
    for (measure, title, _) in MEASURES {
        for system in systems(data) {
            for size in sizes {
                let of = |window| {
                    score(data, (measure, &system), None, &[("window", window), ("size", size)])
                };
                let [full, short] = WINDOWS.map(of);
                if full.or(short).is_none() {
                    continue;
                }
                table.rows.push(vec![
                    TableCell::Name(title.to_owned()),
                    TableCell::Text(system_name(&system).to_owned()),
                    TableCell::Text(sized(data, size)),
                    TableCell::Ours(full),
                    TableCell::Ours(short),
                    TableCell::Percent(change(data, (measure, &system), &[("size", size)])),
                ]);
            }
        }
    }
    table
}
