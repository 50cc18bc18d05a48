//! Models of one language each, aligned afterwards: words, words in context, sentences (paper 1, §5.1).

use terms::Task;

use super::ReportSection;
use super::parts::{
    Series, bar, bars_panel, chosen_difference, difference, lines_figure, measures, named,
    over_layers,
};
use crate::draw::{BarGroup, Figure, Panel};
use crate::report::data::{FactorFilter, Observations, SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};

const NOT_PRINTED: fn() -> String = || "drawn, with no numbers in the text".to_owned();
const PAIRS: [&str; 4] = ["en-fr", "en-de", "en-ru", "en-zh"];

pub(in crate::report) const WORDS: ReportSection = ReportSection {
    id: "align-words",
    title: "Can words of separate models be mapped onto each other?",
    place: "Paper 1, §5.1.1",
    studies: &["align-words"],
    asks: "Two encoders are trained apart, one for each language. A rotation learned from a dictionary takes the word \
           vectors of one to those of the other, and other words of the dictionary are looked up by CSLS.",
    claims: &[
        PaperClaim {
            finding: "Words of models trained apart can be aligned by a rotation",
            place: "Paper 1, Figure 4b",
            paper: NOT_PRINTED,
            quantity: "P@1 of separate encoders minus that of untrained ones, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-words");
                let of = |system| data.by_layer("p_at_1", &[("system", system)]);
                chosen_difference(&of("monolingual"), &of("untrained"))
            },
        },
        PaperClaim {
            finding: "Higher layers align better than lower ones",
            place: "Paper 1, §5.1.1",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                upper_minus_lower(
                    &view.study("align-words"),
                    "p_at_1",
                    &[("system", "monolingual")],
                )
            },
        },
        PaperClaim {
            finding: "The embedding table aligns as well as fastText does",
            place: "Paper 1, Figure 4a",
            paper: || "slightly better than fastText".to_owned(),
            quantity: "P@1 of the embedding tables minus that of fastText's vectors",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-words");
                difference(
                    &data.cells("p_at_1", &[("system", "embeddings")]),
                    &data.cells("p_at_1", &[("system", "fasttext")]),
                )
            },
        },
    ],
    show: show_words,
};

pub(in crate::report) const CONTEXTS: ReportSection = ReportSection {
    id: "align-contexts",
    title: "Does a rotation carry a task from one model to another?",
    place: "Paper 1, §5.1.2 and appendix A",
    studies: &["align-contexts"],
    asks: "New layers for a task are trained over a frozen layer of the first language's encoder. Words of the other \
           language pass through its own encoder, then through a rotation learned from linked words of parallel text, \
           then through the same new layers.",
    claims: &[
        PaperClaim {
            finding: "A rotation makes separate models transfer",
            place: "Paper 1, Figure 5",
            paper: NOT_PRINTED,
            quantity: "score of separate models with the rotation minus without it, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "monolingual-aligned", "monolingual-raw"),
        },
        PaperClaim {
            finding: "One model of both languages transfers better than two and a rotation",
            place: "Paper 1, Figure 5",
            paper: || "so but for parsing of French".to_owned(),
            quantity: "score of the bilingual model minus that of the rotation, each at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| systems(view, "bilingual", "monolingual-aligned"),
        },
        PaperClaim {
            finding: "Middle layers transfer best, not the last",
            place: "Paper 1, §5.1.2",
            paper: NOT_PRINTED,
            quantity: "mean score of the middle half of the layers minus that of the last layer, through the rotation",
            criterion: Criterion::Above(0.0),
            measure: middle_minus_last,
        },
    ],
    show: show_contexts,
};

pub(in crate::report) const SENTENCES: ReportSection = ReportSection {
    id: "align-sentences",
    title: "Do sentences of separate models find their translations?",
    place: "Paper 1, §5.1.3",
    studies: &["align-sentences"],
    asks: "A sentence's vector is the mean of its pieces at a layer. After a rotation learned from other parallel \
           sentences, is a sentence's nearest neighbour its translation?",
    claims: &[
        PaperClaim {
            finding: "Sentences of models trained apart can be aligned by a rotation",
            place: "Paper 1, Figure 6",
            paper: NOT_PRINTED,
            quantity: "share found by separate models minus by untrained ones, both rotated, each at the layer that is best in the \
                       other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study("align-sentences");
                let of =
                    |system| data.by_layer("retrieval", &[("system", system), ("kind", "aligned")]);
                chosen_difference(&of("monolingual"), &of("untrained"))
            },
        },
        PaperClaim {
            finding: "Lower layers do it best",
            place: "Paper 1, §5.1.3",
            paper: NOT_PRINTED,
            quantity: "mean share found in the upper half of the layers minus in the lower half",
            criterion: Criterion::Below(0.0),
            measure: |view| {
                let factors = [("system", "monolingual"), ("kind", "aligned")];
                upper_minus_lower(&view.study("align-sentences"), "retrieval", &factors)
            },
        },
    ],
    show: show_sentences,
};

/// The numbers of some layers side by side.
fn at_layers(
    data: &StudyData<'_>,
    measure: &str,
    factors: &FactorFilter<'_>,
    layers: &[String],
) -> Observations {
    let cells = |layer: &String| {
        let factors = [factors, &[("layer", layer.as_str())]].concat();
        data.cells(measure, &factors).tagged("layer", layer)
    };
    layers.iter().map(cells).fold(Observations::default(), Observations::join)
}

/// The mean of the layers above the middle minus that of the layers from 1 to the middle.
pub(super) fn upper_minus_lower(
    data: &StudyData<'_>,
    measure: &str,
    factors: &FactorFilter<'_>,
) -> Evidence {
    let layers: Vec<String> =
        data.layers(measure).into_iter().filter(|layer| layer != "0").collect();
    if layers.len() < 2 {
        return Evidence::Nothing;
    }
    let (lower, upper) = layers.split_at(layers.len() / 2);
    let of = |layers: &[String]| at_layers(data, measure, factors, layers).sample();
    Evidence::Seeds(of(upper).minus(&of(lower)))
}

/// Target scores of a system over all tasks, layer by layer.
fn scores_by_layer(data: &StudyData<'_>, system: &str) -> Vec<Observations> {
    let mut layers = data.levels(&measures(), "layer", &[]);
    layers.retain(|layer| layer.parse::<u32>().is_ok());
    let at = |layer: &String| {
        let of = |task: Task| {
            let factors =
                [("system", system), ("task", task.name()), ("role", "target"), ("layer", layer)];
            data.cells(task.measure(), &factors).tagged("task", task.name())
        };
        Task::all().map(of).fold(Observations::default(), Observations::join)
    };
    layers.iter().map(at).collect()
}

fn systems(view: &SettingView<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("align-contexts");
    chosen_difference(&scores_by_layer(&data, a), &scores_by_layer(&data, b))
}

/// The layers from a quarter of the depth to three quarters: of eight, 2 to 6.
fn middle_half(layers: &[String]) -> Vec<String> {
    let number = |layer: &String| layer.parse::<usize>().unwrap_or(0);
    let last = layers.iter().map(number).max().unwrap_or(0);
    let within =
        |layer: &&String| number(layer) > 0 && (last..=3 * last).contains(&(4 * number(layer)));
    layers.iter().filter(within).cloned().collect()
}

/// The middle is fixed beforehand: the best of several layers would beat the last by chance alone.
fn middle_minus_last(view: &SettingView<'_>) -> Evidence {
    let data = view.study("align-contexts");
    let (mut middle, mut last) = (Observations::default(), Observations::default());
    for task in Task::all() {
        let layers = data.layers(task.measure());
        let of = |layers: &[String]| {
            let factors =
                [("system", "monolingual-aligned"), ("task", task.name()), ("role", "target")];
            at_layers(&data, task.measure(), &factors, layers).tagged("task", task.name())
        };
        middle = middle.join(of(&middle_half(&layers)));
        last = last.join(of(&layers[layers.len().saturating_sub(1)..]));
    }
    Evidence::Seeds(middle.sample().minus(&last.sample()))
}

fn pairs_of(data: &StudyData<'_>, measures: &[&str]) -> Vec<String> {
    data.levels(measures, "pair", &PAIRS)
}

fn show_words(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-words");
    let pairs = pairs_of(&data, &["p_at_1"]);
    let statics = |pair: &String| BarGroup {
        name: pair.clone(),
        bars: ["embeddings", "fasttext"]
            .iter()
            .enumerate()
            .map(|(i, system)| {
                bar(i, data.mean("p_at_1", &[("system", system), ("pair", pair)]), None)
            })
            .collect(),
    };
    let names = ["embedding table", "fastText"].map(str::to_owned);
    let tables = Figure {
        id: named(id, "tables"),
        title: "Word translation without context".to_owned(),
        legend: super::parts::legend(&names, crate::draw::SeriesMark::Bar, false),
        panels: bars_panel("Without context", "P@1", pairs.iter().map(statics).collect())
            .into_iter()
            .collect(),
    };
    let series: &Series<'_> = &[
        ("separate models", vec![("system", "monolingual")]),
        ("one model of both", vec![("system", "bilingual")]),
        ("untrained", vec![("system", "untrained")]),
        ("fastText", vec![("system", "fasttext")]),
    ];
    let panels = pairs
        .iter()
        .filter_map(|pair| over_layers(&data, "p_at_1", &[("pair", pair)], series, (pair, "P@1")));
    let layers =
        lines_figure(named(id, "layers"), "Word translation by layer", series, panels.collect());
    let mut table = ReportTable::new(&["system", "pair", "best layer's P@1"]);
    for system in data.levels(
        &["p_at_1"],
        "system",
        &["fasttext", "embeddings", "monolingual", "bilingual", "untrained"],
    ) {
        for pair in &pairs {
            let factors = [("system", &*system), ("pair", &**pair)];
            let layered = data.best("p_at_1", &factors).sample().mean();
            let mean =
                layered.or_else(|| data.cells("p_at_1", &factors).without("layer").sample().mean());
            if mean.is_some() {
                table.rows.push(vec![
                    TableCell::Name(system.clone()),
                    TableCell::Text(pair.clone()),
                    TableCell::Ours(mean),
                ]);
            }
        }
    }
    vec![
        CaptionedItem::figure(
            "Paper 1, Figure 4a",
            "Words looked up through a rotation of the embedding tables, beside fastText's vectors.",
            tables,
        ),
        CaptionedItem::figure(
            "Paper 1, Figure 4b",
            "Each word is the mean of its vectors in all its contexts. Bands are intervals of 95 % over seeds; a level is \
             a model without layers.",
            layers,
        ),
        CaptionedItem::table(
            "Paper 1, Figure 4",
            "The best layer of each system (of the whole vocabulary, CSLS).",
            table,
        ),
    ]
}

fn show_contexts(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-contexts");
    let panels = |series: &Series<'_>| -> Vec<Panel> {
        let mut panels = Vec::new();
        for task in Task::all() {
            for pair in pairs_of(&data, &[task.measure()]) {
                let common = [("task", task.name()), ("role", "target"), ("pair", &*pair)];
                let title = format!("{}, {pair}", task.title());
                panels.extend(over_layers(
                    &data,
                    task.measure(),
                    &common,
                    series,
                    (&title, task.unit()),
                ));
            }
        }
        panels
    };
    let five: &Series<'_> = &[
        ("separate models, rotated", vec![("system", "monolingual-aligned")]),
        ("one model of both", vec![("system", "bilingual")]),
        ("separate models, not rotated", vec![("system", "monolingual-raw")]),
    ];
    let eight: &Series<'_> = &[
        ("one model of both", vec![("system", "bilingual")]),
        ("one model of both, rotated", vec![("system", "bilingual-aligned")]),
    ];
    let mut table = ReportTable::new(&["system", "named entities (F1)", "parsing (LAS)"]);
    let order = ["monolingual-aligned", "bilingual", "bilingual-aligned", "monolingual-raw"];
    for system in data.levels(&["f1", "las"], "system", &order) {
        let of = |measure| {
            TableCell::Ours(
                data.best(measure, &[("system", &*system), ("role", "target")]).sample().mean(),
            )
        };
        table.rows.push(vec![TableCell::Name(system.clone()), of("f1"), of("las")]);
    }
    vec![
        CaptionedItem::figure(
            "Paper 1, Figure 5",
            "Transfer of new layers over a frozen layer, by the layer that they stand on.",
            lines_figure(named(id, "mapped"), "Transfer through a rotation", five, panels(five)),
        ),
        CaptionedItem::figure(
            "Paper 1, Figure 8",
            "The same rotation put between the two languages of one model.",
            lines_figure(
                named(id, "bilingual"),
                "A rotation within one model",
                eight,
                panels(eight),
            ),
        ),
        CaptionedItem::table(
            "Paper 1, Figures 5 and 8",
            "Target scores at the best layer, over all pairs.",
            table,
        ),
    ]
}

fn show_sentences(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("align-sentences");
    let pairs = pairs_of(&data, &["retrieval"]);
    let panels = |series: &Series<'_>| {
        let panel = |pair: &String| {
            over_layers(&data, "retrieval", &[("pair", pair)], series, (pair, "share found"))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let aligned: &Series<'_> = &[
        ("separate models", vec![("system", "monolingual"), ("kind", "aligned")]),
        ("one model of both", vec![("system", "bilingual"), ("kind", "aligned")]),
        ("untrained", vec![("system", "untrained"), ("kind", "aligned")]),
    ];
    let kinds: &Series<'_> = &[
        ("as it is", vec![("system", "bilingual"), ("kind", "raw")]),
        ("means taken away", vec![("system", "bilingual"), ("kind", "centered")]),
        ("rotated", vec![("system", "bilingual"), ("kind", "aligned")]),
    ];
    let mut table = ReportTable::new(&["system", "raw", "means taken away", "rotated"]);
    for system in data.levels(&["retrieval"], "system", &["monolingual", "bilingual", "untrained"])
    {
        let of = |kind| {
            TableCell::Ours(
                data.best("retrieval", &[("system", &*system), ("kind", kind)]).sample().mean(),
            )
        };
        table.rows.push(vec![
            TableCell::Name(system.clone()),
            of("raw"),
            of("centered"),
            of("aligned"),
        ]);
    }
    vec![
        CaptionedItem::figure(
            "Paper 1, Figure 6",
            "Share of sentences whose nearest neighbour is their translation, after a rotation, by layer.",
            lines_figure(
                named(id, "aligned"),
                "Sentence retrieval after a rotation",
                aligned,
                panels(aligned),
            ),
        ),
        CaptionedItem::figure(
            "Beyond the paper",
            "One model of both languages: how much is there with no help, how much once each language's mean is gone.",
            lines_figure(
                named(id, "kinds"),
                "Sentence retrieval in one model",
                kinds,
                panels(kinds),
            ),
        ),
        CaptionedItem::table(
            "Paper 1, Figure 6",
            "At the best layer, over all pairs. The paper names over 0.95 for LASER, which is trained on millions of \
             parallel sentences.",
            table,
        ),
    ]
}
