//! Models of one language each, aligned afterwards: words, words in context, sentences (paper 1, §5.1).

use terms::Task;

use super::Section;
use super::parts::{Series, bar, bars_panel, chosen_difference, difference, lines_figure, measures, named, over_layers};
use crate::draw::{Figure, Group, Panel};
use crate::report::data::{Cells, Data, View, Where};
use crate::report::exhibit::{Cell, Exhibit, Table};
use crate::report::finding::{Claim, Evidence, Rule};

const NOT_PRINTED: fn() -> String = || "drawn, with no numbers in the text".to_owned();
const PAIRS: [&str; 4] = ["en-fr", "en-de", "en-ru", "en-zh"];

pub(in crate::report) const WORDS: Section = Section {
    id: "word-alignment",
    title: "Can words of separate models be mapped onto each other?",
    place: "Paper 1, §5.1.1",
    studies: &["word-alignment"],
    asks: "Two encoders are trained apart, one for each language. A rotation learned from a dictionary takes the word \
           vectors of one to those of the other, and other words of the dictionary are looked up by CSLS.",
    claims: &[
        Claim {
            finding: "Words of models trained apart can be aligned by a rotation",
            place: "Paper 1, Figure 4b",
            paper: NOT_PRINTED,
            quantity: "P@1 of separate encoders minus that of untrained ones, each at the layer that is best in the other seeds",
            rule: Rule::Above(0.0),
            measure: |view| {
                let data = view.study("word-alignment");
                let of = |system| data.by_layer("p@1", &[("system", system)]);
                chosen_difference(&of("monolingual"), &of("random"))
            },
        },
        Claim {
            finding: "Higher layers align better than lower ones",
            place: "Paper 1, §5.1.1",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half",
            rule: Rule::Above(0.0),
            measure: |view| {
                upper_minus_lower(
                    &view.study("word-alignment"),
                    "p@1",
                    &[("system", "monolingual")],
                )
            },
        },
        Claim {
            finding: "The embedding table aligns as well as fastText does",
            place: "Paper 1, Figure 4a",
            paper: || "slightly better than fastText".to_owned(),
            quantity: "P@1 of the embedding tables minus that of fastText's vectors",
            rule: Rule::Above(0.0),
            measure: |view| {
                let data = view.study("word-alignment");
                difference(
                    &data.cells("p@1", &[("system", "embeddings")]),
                    &data.cells("p@1", &[("system", "fasttext")]),
                )
            },
        },
    ],
    show: show_words,
};

pub(in crate::report) const CONTEXTS: Section = Section {
    id: "contextual-alignment",
    title: "Does a rotation carry a task from one model to another?",
    place: "Paper 1, §5.1.2 and appendix A",
    studies: &["contextual-alignment"],
    asks: "New layers for a task are trained over a frozen layer of the first language's encoder. Words of the other \
           language pass through its own encoder, then through a rotation learned from linked words of parallel text, \
           then through the same new layers.",
    claims: &[
        Claim {
            finding: "A rotation makes separate models transfer",
            place: "Paper 1, Figure 5",
            paper: NOT_PRINTED,
            quantity: "score of separate models with the rotation minus without it, each at the layer that is best in the other seeds",
            rule: Rule::Above(0.0),
            measure: |view| systems(view, "monolingual-mapped", "monolingual-unmapped"),
        },
        Claim {
            finding: "One model of both languages transfers better than two and a rotation",
            place: "Paper 1, Figure 5",
            paper: || "so but for parsing of French".to_owned(),
            quantity: "score of the bilingual model minus that of the rotation, each at the layer that is best in the other seeds",
            rule: Rule::Above(0.0),
            measure: |view| systems(view, "bilingual", "monolingual-mapped"),
        },
        Claim {
            finding: "Middle layers transfer best, not the last",
            place: "Paper 1, §5.1.2",
            paper: NOT_PRINTED,
            quantity: "mean score of the middle half of the layers minus that of the last layer, through the rotation",
            rule: Rule::Above(0.0),
            measure: middle_minus_last,
        },
    ],
    show: show_contexts,
};

pub(in crate::report) const SENTENCES: Section = Section {
    id: "sentence-alignment",
    title: "Do sentences of separate models find their translations?",
    place: "Paper 1, §5.1.3",
    studies: &["sentence-alignment"],
    asks: "A sentence's vector is the mean of its pieces at a layer. After a rotation learned from other parallel \
           sentences, is a sentence's nearest neighbour its translation?",
    claims: &[
        Claim {
            finding: "Sentences of models trained apart can be aligned by a rotation",
            place: "Paper 1, Figure 6",
            paper: NOT_PRINTED,
            quantity: "share found by separate models minus by untrained ones, both rotated, each at the layer that is best in the \
                       other seeds",
            rule: Rule::Above(0.0),
            measure: |view| {
                let data = view.study("sentence-alignment");
                let of =
                    |system| data.by_layer("retrieval", &[("system", system), ("kind", "aligned")]);
                chosen_difference(&of("monolingual"), &of("random"))
            },
        },
        Claim {
            finding: "Lower layers do it best",
            place: "Paper 1, §5.1.3",
            paper: NOT_PRINTED,
            quantity: "mean share found in the upper half of the layers minus in the lower half",
            rule: Rule::Below(0.0),
            measure: |view| {
                let factors = [("system", "monolingual"), ("kind", "aligned")];
                upper_minus_lower(&view.study("sentence-alignment"), "retrieval", &factors)
            },
        },
    ],
    show: show_sentences,
};

/// The numbers of some layers side by side.
fn at_layers(data: &Data<'_>, measure: &str, factors: &Where<'_>, layers: &[String]) -> Cells {
    let cells = |layer: &String| {
        let factors = [factors, &[("layer", layer.as_str())]].concat();
        data.cells(measure, &factors).tagged("layer", layer)
    };
    layers.iter().map(cells).fold(Cells::default(), Cells::join)
}

/// The mean of the layers above the middle minus that of the layers from 1 to the middle.
pub(super) fn upper_minus_lower(data: &Data<'_>, measure: &str, factors: &Where<'_>) -> Evidence {
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
fn scores_by_layer(data: &Data<'_>, system: &str) -> Vec<Cells> {
    let mut layers = data.levels(&measures(), "layer", &[]);
    layers.retain(|layer| layer.parse::<u32>().is_ok());
    let at = |layer: &String| {
        let of = |task: Task| {
            let factors =
                [("system", system), ("task", task.name()), ("role", "target"), ("layer", layer)];
            data.cells(task.measure(), &factors).tagged("task", task.name())
        };
        Task::all().map(of).fold(Cells::default(), Cells::join)
    };
    layers.iter().map(at).collect()
}

fn systems(view: &View<'_>, a: &str, b: &str) -> Evidence {
    let data = view.study("contextual-alignment");
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
fn middle_minus_last(view: &View<'_>) -> Evidence {
    let data = view.study("contextual-alignment");
    let (mut middle, mut last) = (Cells::default(), Cells::default());
    for task in Task::all() {
        let layers = data.layers(task.measure());
        let of = |layers: &[String]| {
            let factors =
                [("system", "monolingual-mapped"), ("task", task.name()), ("role", "target")];
            at_layers(&data, task.measure(), &factors, layers).tagged("task", task.name())
        };
        middle = middle.join(of(&middle_half(&layers)));
        last = last.join(of(&layers[layers.len().saturating_sub(1)..]));
    }
    Evidence::Seeds(middle.sample().minus(&last.sample()))
}

fn pairs_of(data: &Data<'_>, measures: &[&str]) -> Vec<String> {
    data.levels(measures, "pair", &PAIRS)
}

fn show_words(id: &str, view: &View<'_>) -> Vec<Exhibit> {
    let data = view.study("word-alignment");
    let pairs = pairs_of(&data, &["p@1"]);
    let statics = |pair: &String| Group {
        name: pair.clone(),
        bars: ["embeddings", "fasttext"]
            .iter()
            .enumerate()
            .map(|(i, system)| {
                bar(i, data.mean("p@1", &[("system", system), ("pair", pair)]), None)
            })
            .collect(),
    };
    let names = ["embedding table", "fastText"].map(str::to_owned);
    let tables = Figure {
        id: named(id, "tables"),
        title: "Word translation without context".to_owned(),
        legend: super::parts::legend(&names, crate::draw::Mark::Bar, false),
        panels: bars_panel("Without context", "P@1", pairs.iter().map(statics).collect())
            .into_iter()
            .collect(),
    };
    let series: &Series<'_> = &[
        ("separate models", vec![("system", "monolingual")]),
        ("one model of both", vec![("system", "bilingual")]),
        ("untrained", vec![("system", "random")]),
        ("fastText", vec![("system", "fasttext")]),
    ];
    let panels = pairs
        .iter()
        .filter_map(|pair| over_layers(&data, "p@1", &[("pair", pair)], series, (pair, "P@1")));
    let layers =
        lines_figure(named(id, "layers"), "Word translation by layer", series, panels.collect());
    let mut table = Table::new(&["system", "pair", "best layer's P@1"]);
    for system in data.levels(
        &["p@1"],
        "system",
        &["fasttext", "embeddings", "monolingual", "bilingual", "random"],
    ) {
        for pair in &pairs {
            let factors = [("system", &*system), ("pair", &**pair)];
            let layered = data.best("p@1", &factors).sample().mean();
            let mean =
                layered.or_else(|| data.cells("p@1", &factors).without("layer").sample().mean());
            if mean.is_some() {
                table.rows.push(vec![
                    Cell::Name(system.clone()),
                    Cell::Text(pair.clone()),
                    Cell::Ours(mean),
                ]);
            }
        }
    }
    vec![
        Exhibit::figure(
            "Paper 1, Figure 4a",
            "Words looked up through a rotation of the embedding tables, beside fastText's vectors.",
            tables,
        ),
        Exhibit::figure(
            "Paper 1, Figure 4b",
            "Each word is the mean of its vectors in all its contexts. Bands are intervals of 95 % over seeds; a level is \
             a model without layers.",
            layers,
        ),
        Exhibit::table(
            "Paper 1, Figure 4",
            "The best layer of each system (of the whole vocabulary, CSLS).",
            table,
        ),
    ]
}

fn show_contexts(id: &str, view: &View<'_>) -> Vec<Exhibit> {
    let data = view.study("contextual-alignment");
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
        ("separate models, rotated", vec![("system", "monolingual-mapped")]),
        ("one model of both", vec![("system", "bilingual")]),
        ("separate models, not rotated", vec![("system", "monolingual-unmapped")]),
    ];
    let eight: &Series<'_> = &[
        ("one model of both", vec![("system", "bilingual")]),
        ("one model of both, rotated", vec![("system", "bilingual-mapped")]),
    ];
    let mut table = Table::new(&["system", "named entities (F1)", "parsing (LAS)"]);
    let order = ["monolingual-mapped", "bilingual", "bilingual-mapped", "monolingual-unmapped"];
    for system in data.levels(&["f1", "las"], "system", &order) {
        let of = |measure| {
            Cell::Ours(
                data.best(measure, &[("system", &*system), ("role", "target")]).sample().mean(),
            )
        };
        table.rows.push(vec![Cell::Name(system.clone()), of("f1"), of("las")]);
    }
    vec![
        Exhibit::figure(
            "Paper 1, Figure 5",
            "Transfer of new layers over a frozen layer, by the layer that they stand on.",
            lines_figure(named(id, "mapped"), "Transfer through a rotation", five, panels(five)),
        ),
        Exhibit::figure(
            "Paper 1, Figure 8",
            "The same rotation put between the two languages of one model.",
            lines_figure(
                named(id, "bilingual"),
                "A rotation within one model",
                eight,
                panels(eight),
            ),
        ),
        Exhibit::table(
            "Paper 1, Figures 5 and 8",
            "Target scores at the best layer, over all pairs.",
            table,
        ),
    ]
}

fn show_sentences(id: &str, view: &View<'_>) -> Vec<Exhibit> {
    let data = view.study("sentence-alignment");
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
        ("untrained", vec![("system", "random"), ("kind", "aligned")]),
    ];
    let kinds: &Series<'_> = &[
        ("as it is", vec![("system", "bilingual"), ("kind", "raw")]),
        ("means taken away", vec![("system", "bilingual"), ("kind", "shifted")]),
        ("rotated", vec![("system", "bilingual"), ("kind", "aligned")]),
    ];
    let mut table = Table::new(&["system", "raw", "means taken away", "rotated"]);
    for system in data.levels(&["retrieval"], "system", &["monolingual", "bilingual", "random"]) {
        let of = |kind| {
            Cell::Ours(
                data.best("retrieval", &[("system", &*system), ("kind", kind)]).sample().mean(),
            )
        };
        table.rows.push(vec![Cell::Name(system.clone()), of("raw"), of("shifted"), of("aligned")]);
    }
    vec![
        Exhibit::figure(
            "Paper 1, Figure 6",
            "Share of sentences whose nearest neighbour is their translation, after a rotation, by layer.",
            lines_figure(
                named(id, "aligned"),
                "Sentence retrieval after a rotation",
                aligned,
                panels(aligned),
            ),
        ),
        Exhibit::figure(
            "Beyond the paper",
            "One model of both languages: how much is there with no help, how much once each language's mean is gone.",
            lines_figure(
                named(id, "kinds"),
                "Sentence retrieval in one model",
                kinds,
                panels(kinds),
            ),
        ),
        Exhibit::table(
            "Paper 1, Figure 6",
            "At the best layer, over all pairs. The paper names over 0.95 for LASER, which is trained on millions of \
             parallel sentences.",
            table,
        ),
    ]
}
