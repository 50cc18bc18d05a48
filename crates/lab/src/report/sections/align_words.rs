//! Word translation between separately trained encoders (Conneau et al. 2020, §5.1.1).

use super::ReportSection;
use super::parts::{
    MORE, NOT_PRINTED, by_pair, chance_of_words, chance_words, chosen_difference, difference, dots,
    figure, layers_line, mark, named, of_different, over_layers, over_untrained, pair_name,
    pairs_of, system_colour,
};
use crate::draw::{Chart, DotRow, Figure, short};
use crate::report::data::{SettingView, StudyData, UNTRAINED, best_of};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Control, Criterion, PaperClaim};
use crate::report::observations::Observations;

pub(in crate::report) const ALIGN_WORDS: ReportSection = ReportSection {
    id: "align-words",
    title: "Are the word spaces of monolingual encoders isomorphic?",
    place: "Conneau et al. 2020, §5.1.1",
    studies: &[STUDY],
    method: "Two monolingual encoders are trained separately. An orthogonal map learned from a bilingual dictionary \
             (Procrustes) takes the word vectors of one to those of the other; held-out words of the dictionary are \
             translated by CSLS retrieval (Lample et al. 2018).",
    claims: &[
        PaperClaim {
            finding: "Word vectors of monolingual encoders can be aligned by an orthogonal map",
            place: "Conneau et al. 2020, Figure 4b",
            paper: NOT_PRINTED,
            quantity: "P@1 over pairs whose strings differ, of monolingual minus untrained encoders, each at the layer that is best in the \
                       other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                by_pair(&view.study(STUDY), &[P_AT_1], |data, _| {
                    let of = |system| by_layer(data, system);
                    ClaimLine::new("", chosen_difference(&of("monolingual"), &of(UNTRAINED)))
                })
            },
        },
        PaperClaim {
            finding: "Higher layers align better than lower layers",
            place: "Conneau et al. 2020, §5.1.1",
            paper: NOT_PRINTED,
            quantity: "mean P@1 of the upper half of the layers minus that of the lower half, monolingual",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                by_pair(&view.study(STUDY), &[P_AT_1], |data, _| {
                    let vocabulary = vocabulary(data, "monolingual");
                    layers_line(
                        data,
                        of_different(data, P_AT_1),
                        ("monolingual", &vocabulary),
                        MORE,
                    )
                })
            },
        },
        PaperClaim {
            finding: "Embedding tables align as well as fastText vectors",
            place: "Conneau et al. 2020, Figure 4a",
            paper: || "slightly better than fastText".to_owned(),
            quantity: "P@1 of the embedding tables minus that of fastText vectors, on a common vocabulary",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                by_pair(&view.study(STUDY), &[P_AT_1], |data, _| {
                    let (tables, vectors) =
                        (unlayered(data, "embeddings"), unlayered(data, "fasttext"));
                    let bottom = at_layer(data, UNTRAINED, "0");
                    ClaimLine::new("", difference(&tables, &vectors)).against(Control::of(
                        "untrained",
                        &tables,
                        &bottom,
                    ))
                })
            },
        },
        PaperClaim {
            finding: "Contextual word vectors stay below fastText vectors",
            place: "Conneau et al. 2020, Figure 4b",
            paper: || "decent, though below fastText".to_owned(),
            quantity: "P@1 of fastText vectors minus that of monolingual encoders at the layer that is best in the other seeds",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                by_pair(&view.study(STUDY), &[P_AT_1], |data, _| {
                    let contextual = by_layer(data, "monolingual");
                    let vectors = unlayered(data, "fasttext");
                    ClaimLine::new("", chosen_difference(&[vectors], &contextual))
                        .against(over_untrained(&contextual, &by_layer(data, UNTRAINED)))
                })
            },
        },
    ],
    fails: "Word vectors of monolingual encoders cannot be aligned by an orthogonal map",
    numbers: |view| {
        let data = view.study(STUDY);
        let of = |system: &str| {
            best_of(by_layer(&data, system)).sample().mean().map(|mean| short(mean.mean))
        };
        match (of("monolingual"), of(UNTRAINED)) {
            (Some(own), Some(untrained)) => format!("P@1 {own}, untrained {untrained}"),
            _ => String::new(),
        }
    },
    show,
};

const STUDY: &str = "align-words";
const P_AT_1: &str = "p_at_1";

/// The common vocabulary, where a system was measured on it: words that all systems have. Else what it was measured on.
fn vocabulary(data: &StudyData<'_>, system: &str) -> Vec<(&'static str, &'static str)> {
    let common = ("vocabulary", "common");
    let measured = data.levels_among("vocabulary", &[("system", system), common]);
    if measured.is_empty() { vec![] } else { vec![common] }
}

/// P@1 of a system under some factors, over pairs whose strings differ where that was measured.
fn words(data: &StudyData<'_>, system: &str, more: &[(&str, &str)]) -> Observations {
    let factors = [&[("system", system)], &vocabulary(data, system)[..], more].concat();
    data.observations(of_different(data, P_AT_1), &factors).dropped("vocabulary")
}

fn at_layer(data: &StudyData<'_>, system: &str, layer: &str) -> Observations {
    words(data, system, &[("layer", layer)])
}

fn by_layer(data: &StudyData<'_>, system: &str) -> Vec<Observations> {
    data.layers(P_AT_1).iter().map(|layer| at_layer(data, system, layer)).collect()
}

/// P@1 of a system without layers.
fn unlayered(data: &StudyData<'_>, system: &str) -> Observations {
    words(data, system, &[]).without("layer")
}

/// The two ways of counting, where both were measured.
fn countings(data: &StudyData<'_>) -> Vec<(&'static str, &'static str)> {
    let all = [(P_AT_1, "all pairs"), ("p_at_1_different", "strings that differ")];
    all.into_iter().filter(|(measure, _)| data.has(measure)).collect()
}

const SYSTEMS: [&str; 6] =
    ["monolingual", "bilingual", "no-anchors", UNTRAINED, "fasttext", "embeddings"];

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let chance = chance_words(&data, P_AT_1);
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 4a"]),
            "Word translation by the aligned embedding tables and by aligned fastText vectors, on a common vocabulary where there is \
             one: over all pairs, and over pairs whose strings differ. An untrained encoder's embeddings are its layer 0."
                .to_owned()
                + chance,
            static_figure(id, &data),
        ),
        CaptionedItem::figure(
            replicates(1, &["Figure 4b"]),
            "Word translation by averaged contextual vectors, by layer. A horizontal line is a system without layers."
                .to_owned()
                + chance,
            layers_figure(id, &data),
        ),
        CaptionedItem::table(
            replicates(1, &["Figure 4a", "Figure 4b"]),
            "P@1 (CSLS) at the best layer of each system, over all pairs and over pairs whose strings differ.",
            table(&data),
        ),
    ]
}

fn static_figure(id: &str, data: &StudyData<'_>) -> Figure {
    let systems = ["embeddings", "fasttext", UNTRAINED];
    let panel = |(measure, title): (&str, &str)| {
        let row = |pair: &String| {
            let of = |system: &str| {
                let vocabulary = vocabulary(data, system);
                let factors = [&[("system", system), ("pair", pair)], &vocabulary[..]].concat();
                let all = data.observations(measure, &factors);
                let layer = [&factors[..], &[("layer", "0")]].concat();
                let own = match system {
                    UNTRAINED => data.observations(measure, &layer),
                    _ => all.without("layer"),
                };
                let colour = system_colour(system).unwrap_or(0);
                mark(&data.name(system), colour, &own.sample(), None)
            };
            DotRow { name: pair_name(pair), marks: systems.map(of).to_vec() }
        };
        let rows = pairs_of(data, &[P_AT_1]).iter().map(row).collect();
        dots(title, "P@1", rows, chance_of_words(data, measure, &[]).into_iter().collect())
    };
    let charts: Vec<Chart> = countings(data).into_iter().filter_map(panel).collect();
    figure(named(id, "tables"), "Word translation by static vectors", &charts)
}

fn layers_figure(id: &str, data: &StudyData<'_>) -> Figure {
    let systems = SYSTEMS.into_iter().filter(|system| *system != "embeddings");
    let series: Vec<_> = systems
        .map(|system| {
            let factors = [&[("system", system)], &vocabulary(data, system)[..]].concat();
            (system, factors)
        })
        .collect();
    let mut panels = Vec::new();
    for pair in pairs_of(data, &[P_AT_1]) {
        for (measure, counted) in countings(data) {
            let title = format!("{}, {counted}", pair_name(&pair));
            panels.extend(over_layers(data, measure, &[("pair", &pair)], &series, (&title, "P@1")));
        }
    }
    figure(named(id, "layers"), "Word translation by layer", &panels)
}

fn table(data: &StudyData<'_>) -> ReportTable {
    let countings = countings(data);
    let mut table = ReportTable::new(&["system", "pair", "vocabulary"]);
    table.heads.extend(countings.iter().map(|(_, name)| format!("P@1, {name}")));
    for system in data.levels(&[P_AT_1], "system", &SYSTEMS) {
        for pair in pairs_of(data, &[P_AT_1]) {
            let own = data.only("system", &system).only("pair", &pair);
            let mut vocabularies = own.levels(&[P_AT_1], "vocabulary", &["own", "common"]);
            if vocabularies.is_empty() {
                vocabularies.push(String::new());
            }
            for vocabulary in vocabularies {
                let of = |(measure, _): &(&str, &str)| {
                    let mut factors = vec![("system", &*system), ("pair", &*pair)];
                    factors
                        .extend((!vocabulary.is_empty()).then_some(("vocabulary", &*vocabulary)));
                    let layered = own.best(measure, &factors).sample().mean();
                    let single =
                        || own.observations(measure, &factors).without("layer").sample().mean();
                    TableCell::Ours(layered.or_else(single))
                };
                let cells: Vec<TableCell> = countings.iter().map(of).collect();
                if cells.iter().any(|cell| matches!(cell, TableCell::Ours(Some(_)))) {
                    let names = [
                        TableCell::Name(data.name(&system)),
                        TableCell::Text(pair_name(&pair)),
                        TableCell::Text(vocabulary.clone()),
                    ];
                    table.rows.push(names.into_iter().chain(cells).collect());
                }
            }
        }
    }
    table
}
