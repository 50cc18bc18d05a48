//! The amount of text and the length of contexts (Liu et al. 2020, §3).

use super::ReportSection;
use super::parts::{
    NOT_PRINTED, bar, bars_panel, chosen, chosen_difference, difference, legend, named, system_name,
};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, chosen_by_others};
use terms::{Estimate, Task};

const SYSTEMS: [&str; 4] = ["encoder", "word2vec", "glove", "untrained"];
const SIZES: [&str; 2] = ["small", "large"];
const WINDOWS: [&str; 2] = ["full", "short"];

pub(in crate::report) const DATA_SIZE: ReportSection = ReportSection {
    id: "data-size",
    title: "How much text is needed?",
    place: "Liu et al. 2020, §3.2.1 and §3.2.2",
    studies: &["data-size"],
    method: "An encoder, Word2Vec and GloVe are trained on the same multilingual text, small (200,000 sentences of each \
             language in the paper) or large (1,000,000). Word retrieval is the mean reciprocal rank (MRR) of a word's \
             translation, without a map; NLI is zero-shot transfer.",
    claims: &[
        PaperClaim {
            finding: "With little text, static vectors retrieve translations better than the encoder",
            place: "Liu et al. 2020, Figure 1",
            paper: NOT_PRINTED,
            quantity: "MRR of Word2Vec or GloVe, whichever is better in the other seeds, minus the encoder's, small",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = study(view, "data-size");
                chosen_difference(&statics(&data, "small"), &[mrr(&data, "encoder", "small")])
            },
        },
        PaperClaim {
            finding: "With more text, the encoder is better than static vectors",
            place: "Liu et al. 2020, Figure 3",
            paper: NOT_PRINTED,
            quantity: "MRR of the encoder minus that of Word2Vec or GloVe, whichever is better in the other seeds, large",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = study(view, "data-size");
                chosen_difference(&[mrr(&data, "encoder", "large")], &statics(&data, "large"))
            },
        },
        PaperClaim {
            finding: "More text helps the encoder more than static vectors",
            place: "Liu et al. 2020, §3.2.2",
            paper: NOT_PRINTED,
            quantity: "gain in MRR from small to large, the encoder's minus that of the static vectors that are better in the other \
                       seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = study(view, "data-size");
                let encoder = mrr(&data, "encoder", "large").minus(&mrr(&data, "encoder", "small"));
                let (large, small) = (statics(&data, "large"), statics(&data, "small"));
                let gain = chosen_by_others(&large).minus(&chosen_by_others(&small));
                chosen(encoder.minus(&gain).sample(), &[&[encoder], &large, &small])
            },
        },
    ],
    show: show_sizes,
};

pub(in crate::report) const WINDOW: ReportSection = ReportSection {
    id: "window",
    title: "How long must contexts be?",
    place: "Liu et al. 2020, §3.2.3",
    studies: &["window"],
    method: "The same text is split into segments of at most 20 tokens before training, so that no longer dependency can be \
             learned.",
    claims: &[
        PaperClaim {
            finding: "With much text, short contexts reduce word retrieval",
            place: "Liu et al. 2020, Figure 5",
            paper: NOT_PRINTED,
            quantity: "MRR of the encoder with full contexts minus with short ones, large",
            criterion: Criterion::Above(0.0),
            measure: |view| windows(&study(view, "window"), "mrr"),
        },
        PaperClaim {
            finding: "With much text, short contexts reduce transfer",
            place: "Liu et al. 2020, Figure 6b",
            paper: NOT_PRINTED,
            quantity: "NLI accuracy of the encoder with full contexts minus with short ones, large",
            criterion: Criterion::Above(0.0),
            measure: |view| windows(&study(view, "window"), "accuracy"),
        },
    ],
    show: show_windows,
};

/// The records of a study. Liu et al. 2020 transfer NLI here; other tasks that a study may have are left out.
fn study<'a>(view: &SettingView<'a>, name: &str) -> StudyData<'a> {
    view.study(name).without_tasks_but(Task::Nli)
}

/// Word retrieval of a system. The factor `sentences` repeats what `size` says, and is dropped.
fn mrr(data: &StudyData<'_>, system: &str, size: &str) -> Observations {
    data.observations("mrr", &[("system", system), ("size", size)]).dropped("sentences")
}

/// Word retrieval of both kinds of static vectors, as candidates.
fn statics(data: &StudyData<'_>, size: &str) -> [Observations; 2] {
    ["word2vec", "glove"].map(|system| mrr(data, system, size))
}

/// Full contexts minus short ones, for the encoder at the large size.
fn windows(data: &StudyData<'_>, measure: &str) -> Evidence {
    let of = |window| {
        data.observations(measure, &[("system", "encoder"), ("size", "large"), ("window", window)])
    };
    difference(&of("full"), &of("short"))
}

/// A size with its number of sentences of each language, where that was recorded.
fn sized(data: &StudyData<'_>, size: &str) -> String {
    match data.levels_among("sentences", &[("size", size)]).as_slice() {
        [] => size.to_owned(),
        several => format!("{size} ({} sentences)", several.join(", ")),
    }
}

fn languages(data: &StudyData<'_>, measure: &str) -> Vec<String> {
    data.levels(&[measure], "language", &[])
}

/// Groups of languages, a bar for each system; the mean over languages last, where there are several.
fn system_bars(data: &StudyData<'_>, measure: &str, size: &str) -> Vec<BarGroup> {
    let score = |system: &str, language: Option<&str>| {
        let mut factors = vec![("system", system), ("size", size)];
        factors.extend(language.map(|language| ("language", language)));
        data.mean(measure, &factors)
    };
    let group = |name: &str, language: Option<&str>| BarGroup {
        name: name.to_owned(),
        bars: SYSTEMS
            .iter()
            .enumerate()
            .filter_map(|(i, system)| score(system, language).map(|mean| bar(i, Some(mean), None)))
            .collect(),
    };
    let languages = languages(data, measure);
    let mut groups: Vec<BarGroup> =
        languages.iter().map(|language| group(language, Some(language))).collect();
    if languages.len() > 1 {
        groups.push(group("mean", None));
    }
    groups
}

fn show_sizes(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "data-size");
    let names: Vec<String> = SYSTEMS.map(|system| system_name(system).to_owned()).to_vec();
    let figure = |size: &str| {
        let panels = [("mrr", "Word retrieval", "MRR"), ("accuracy", "NLI", "accuracy")];
        let panel = |(measure, title, unit): (&str, &str, &str)| {
            bars_panel(title, unit, system_bars(&data, measure, size))
        };
        Figure {
            id: named(id, size),
            title: format!("Cross-lingual ability, {} text", sized(&data, size)),
            legend: legend(&names, SeriesMark::Bar, false),
            panels: panels.into_iter().filter_map(panel).collect(),
        }
    };
    let [small, large] = SIZES.map(|size| sized(&data, size));
    let columns = [("MRR", &small), ("MRR", &large), ("accuracy", &small), ("accuracy", &large)];
    let columns = columns.map(|(measure, size)| format!("{measure}, {size}"));
    let mut table =
        ReportTable::new(&["system", &columns[0], &columns[1], &columns[2], &columns[3]]);
    for system in data.levels(&["mrr", "accuracy"], "system", &SYSTEMS) {
        let of = |measure, size| {
            TableCell::Ours(data.mean(measure, &[("system", &*system), ("size", size)]))
        };
        table.rows.push(vec![
            TableCell::Name(system_name(&system).to_owned()),
            of("mrr", "small"),
            of("mrr", "large"),
            of("accuracy", "small"),
            of("accuracy", "large"),
        ]);
    }
    vec![
        CaptionedItem::figure(
            "Liu et al. 2020, Figures 1 and 2",
            "Small corpus: MRR of word retrieval and zero-shot NLI accuracy, by target language.",
            figure("small"),
        ),
        CaptionedItem::figure(
            "Liu et al. 2020, Figures 3 and 4",
            "Large corpus: the same.",
            figure("large"),
        ),
        CaptionedItem::table(
            "Liu et al. 2020, Figures 1 to 4",
            "Means over target languages.",
            table,
        ),
    ]
}

fn show_windows(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = study(view, "window");
    let sizes = data.levels(&["mrr", "accuracy"], "size", &SIZES);
    let score = |measure: &str, window: &str, more: &[(&str, &str)]| {
        data.mean(measure, &[&[("system", "encoder"), ("window", window)], more].concat())
    };
    let panel = |measure: &str, title: &str, unit: &str| -> Vec<Panel> {
        let of_size = |size: &String| {
            let group = |language: &String| BarGroup {
                name: language.clone(),
                bars: WINDOWS
                    .iter()
                    .enumerate()
                    .map(|(i, window)| {
                        bar(
                            i,
                            score(measure, window, &[("size", size), ("language", language)]),
                            None,
                        )
                    })
                    .collect(),
            };
            bars_panel(
                &format!("{title}, {}", sized(&data, size)),
                unit,
                languages(&data, measure).iter().map(group).collect(),
            )
        };
        sizes.iter().filter_map(of_size).collect()
    };
    let names = ["full contexts", "20 tokens"].map(str::to_owned);
    let figure = |name: &str, title: &str, panels: Vec<Panel>| Figure {
        id: named(id, name),
        title: title.to_owned(),
        legend: legend(&names, SeriesMark::Bar, false),
        panels,
    };
    let mut changes = figure("change", "Effect of short contexts", change_panels(&data, &sizes));
    changes.legend = legend(&sizes, SeriesMark::Bar, false);
    vec![
        CaptionedItem::figure(
            "Liu et al. 2020, Figure 5",
            "Word retrieval (MRR) of the encoder, by target language.",
            figure(
                "mrr",
                "Word retrieval by context length",
                panel("mrr", "Word retrieval", "MRR"),
            ),
        ),
        CaptionedItem::figure(
            "Liu et al. 2020, Figure 6a",
            "Zero-shot NLI accuracy of the encoder, by target language.",
            figure("accuracy", "NLI by context length", panel("accuracy", "NLI", "accuracy")),
        ),
        CaptionedItem::figure(
            "Liu et al. 2020, Figure 6b",
            "Relative change from full to short contexts, in per cent.",
            changes,
        ),
        CaptionedItem::table(
            "Liu et al. 2020, Figures 5 and 6",
            "Means over target languages; relative changes are computed for each seed.",
            window_table(&data, &sizes),
        ),
    ]
}

/// The relative change from full to short contexts in per cent, seed by seed.
fn change(data: &StudyData<'_>, measure: &str, more: &[(&str, &str)]) -> Option<Estimate> {
    let of = |window| {
        data.observations(measure, &[&[("system", "encoder"), ("window", window)], more].concat())
    };
    let (full, short) = (of("full"), of("short"));
    let (a, b) = (full.with(&short, |a, _| a).sample(), short.with(&full, |a, _| a).sample());
    a.with(&b, |full, short| 100.0 * (short - full) / full)
        .mean()
        .filter(|mean| mean.mean.is_finite())
}

fn change_panels(data: &StudyData<'_>, sizes: &[String]) -> Vec<Panel> {
    let panel = |(measure, title): (&str, &str)| {
        let group = |language: &String| BarGroup {
            name: language.clone(),
            bars: sizes
                .iter()
                .enumerate()
                .map(|(i, size)| {
                    bar(i, change(data, measure, &[("size", size), ("language", language)]), None)
                })
                .collect(),
        };
        bars_panel(title, "change, %", languages(data, measure).iter().map(group).collect())
    };
    [("mrr", "Word retrieval"), ("accuracy", "NLI")].into_iter().filter_map(panel).collect()
}

fn window_table(data: &StudyData<'_>, sizes: &[String]) -> ReportTable {
    let mut table = ReportTable::new(&["measure", "size", "full contexts", "20 tokens", "change"]);
    for (measure, title) in [("mrr", "MRR"), ("accuracy", "accuracy")] {
        for size in sizes {
            let of =
                |window| {
                    TableCell::Ours(data.mean(
                        measure,
                        &[("system", "encoder"), ("window", window), ("size", size)],
                    ))
                };
            table.rows.push(vec![
                TableCell::Name(title.to_owned()),
                TableCell::Text(sized(data, size)),
                of("full"),
                of("short"),
                TableCell::Percent(change(data, measure, &[("size", size)])),
            ]);
        }
    }
    table
}
