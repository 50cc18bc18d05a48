//! Words and sentences aligned with their translations from hidden states: links against gold links, and mined pairs.

use super::ReportSection;
use super::parts::{MORE, Series, by_pair, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::{Chart, short};
use crate::report::data::{FactorFilter, SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::SeedSample;

const STUDY: &str = "bitext";
const CONDITIONS: [&str; 3] = ["default", "no-anchors", "untrained"];
const EXTRACTIONS: [&str; 3] = ["argmax", "itermax", "softmax"];
/// Ways to align that use no encoder.
const REFERENCES: [&str; 2] = ["ibm2", "diagonal"];

pub(in crate::report) const BITEXT: ReportSection = ReportSection {
    id: "bitext",
    title: "Are words and sentences aligned with their translations from hidden states alone?",
    place: "beyond the papers",
    studies: &[STUDY],
    method: "No parallel text is used for training. Words of translated sentences are linked where their vectors at a layer are \
             closest (mutual argmax, itermax, softmax), and the links are compared with gold links by alignment error rate; IBM \
             model 2, which is trained on the same parallel text, and the diagonal stand beside. Claims about words are about the \
             farthest languages: between languages of one word order the diagonal is right. Sentences are mined by the \
             ratio margin of their mean-centred mean vectors from two texts of which only some are translations, and compared \
             with the true pairs by F1: of every second source sentence, at the threshold that is best for the others.",
    claims: &[
        PaperClaim {
            finding: "Words are aligned from the hidden states of a trained encoder",
            place: "Jalili Sabet et al. 2020",
            paper: || "shown in a table, for mBERT and XLM-R".to_owned(),
            quantity: "alignment error rate of mutual argmax, diagonal minus encoder, means over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                of_farthest(view, "aer", |data, condition| {
                    reference(data, condition, "diagonal").minus(&links(data, condition))
                })
            },
        },
        PaperClaim {
            finding: "Words are aligned from hidden states no worse than by an IBM model",
            place: "Jalili Sabet et al. 2020",
            paper: || {
                "shown in a table: better than eflomal and fast_align with little parallel text"
                    .to_owned()
            },
            quantity: "alignment error rate of mutual argmax, IBM model 2 minus encoder, means over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                of_farthest(view, "aer", |data, condition| {
                    reference(data, condition, "ibm2").minus(&links(data, condition))
                })
            },
        },
        PaperClaim {
            finding: "Translations are mined by the hidden states of a trained encoder",
            place: "Artetxe and Schwenk 2019",
            paper: || "shown in a table, for encoders that parallel text has trained".to_owned(),
            quantity: "F1 of mined pairs minus that of random pairs, means over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                of_each_distance(view, "mining_f1", |data, condition| {
                    let of =
                        |measure| data.observations(measure, &[("condition", condition)]).sample();
                    of("mining_f1").minus(&of("mining_f1_chance"))
                })
            },
        },
    ],
    fails: "Words are not aligned from the hidden states of a trained encoder",
    numbers: |view| {
        let data = farthest(&view.study(STUDY), "aer");
        let of = |condition: &str| {
            let mean = data.mean("aer", &[("condition", condition), ("extraction", "argmax")])?;
            Some(format!("{} {condition}", short(mean.mean)))
        };
        let parts: Vec<String> = CONDITIONS.iter().filter_map(|one| of(one)).collect();
        if parts.is_empty() { String::new() } else { format!("AER {}", parts.join(", ")) }
    },
    show,
};

/// The error of links from an encoder, means over layers.
fn links(data: &StudyData<'_>, condition: &str) -> SeedSample {
    data.observations("aer", &[("condition", condition), ("extraction", "argmax")]).sample()
}

/// The error of links without an encoder.
fn reference(data: &StudyData<'_>, condition: &str, method: &str) -> SeedSample {
    data.observations("aer", &[("condition", condition), ("extraction", method)]).sample()
}

/// The records of a measure at each distance of the languages, the nearest first, with a name for it; all of them and no
/// name where none is known.
fn distances<'a>(data: &StudyData<'a>, measure: &str) -> Vec<(String, StudyData<'a>)> {
    let levels = data.levels(&[measure], "distance", &[]);
    if levels.is_empty() {
        return vec![(String::new(), data.clone())];
    }
    let of = |level: &String| (format!("distance {level}"), data.only("distance", level));
    levels.iter().map(of).collect()
}

/// The records of the farthest languages.
fn farthest<'a>(data: &StudyData<'a>, measure: &str) -> StudyData<'a> {
    distances(data, measure).pop().expect("at least one").1
}

/// A line for each pair of languages, of the default encoder beside the untrained one.
fn lines(
    data: &StudyData<'_>,
    (measure, of): (&str, &str),
    quantity: impl Fn(&StudyData<'_>, &str) -> SeedSample,
) -> Vec<ClaimLine> {
    by_pair(data, &[measure], |data, _| {
        let own = quantity(data, "default");
        let control = Control::of_samples("untrained", &own, quantity(data, "untrained"), MORE);
        ClaimLine::new(of, Evidence::Seeds(own)).against(control)
    })
}

fn of_farthest(
    view: &SettingView<'_>,
    measure: &str,
    quantity: impl Fn(&StudyData<'_>, &str) -> SeedSample,
) -> Vec<ClaimLine> {
    lines(&farthest(&view.study(STUDY), measure), (measure, ""), quantity)
}

fn of_each_distance(
    view: &SettingView<'_>,
    measure: &str,
    quantity: impl Fn(&StudyData<'_>, &str) -> SeedSample,
) -> Vec<ClaimLine> {
    let distances = distances(&view.study(STUDY), measure);
    distances.iter().flat_map(|(name, data)| lines(data, (measure, name), &quantity)).collect()
}

/// A pair at a distance, in words.
fn pair_at(pair: &str, distance: &str) -> String {
    let pair = pair_name(pair);
    if distance.is_empty() { pair } else { format!("{pair}, {distance}") }
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let panels = |measure: &str, series: &Series<'_>, unit: &str| -> Vec<Chart> {
        let mut charts = Vec::new();
        for (distance, data) in distances(&data, measure) {
            for pair in pairs_of(&data, &[measure]) {
                let title = pair_at(&pair, &distance);
                charts.extend(over_layers(
                    &data,
                    measure,
                    &[("pair", &pair)],
                    series,
                    (&title, unit),
                ));
            }
        }
        charts
    };
    let by_argmax: &Series<'_> = &CONDITIONS
        .map(|condition| (condition, vec![("condition", condition), ("extraction", "argmax")]));
    let mined: &Series<'_> =
        &CONDITIONS.map(|condition| (condition, vec![("condition", condition)]));
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Alignment error rate of links by mutual argmax, by layer: less is better.",
            figure(named(id, "links"), "Words aligned", &panels("aer", by_argmax, "AER")),
        ),
        CaptionedItem::table(
            BEYOND,
            "Links against gold links, means over layers; IBM model 2 and the diagonal use no encoder.",
            links_table(&data),
        ),
        CaptionedItem::figure(
            BEYOND,
            "F1 of mined pairs by layer, at a threshold that was chosen on other sentences.",
            figure(named(id, "mining"), "Pairs mined", &panels("mining_f1", mined, "F1")),
        ),
        CaptionedItem::table(
            BEYOND,
            "Mined pairs, means over layers: F1 at a threshold that was chosen on other sentences, and that of as many random \
             pairs.",
            mining_table(&data),
        ),
    ]
}

fn links_table(data: &StudyData<'_>) -> ReportTable {
    let mut table =
        ReportTable::new(&["pair", "encoder", "links by", "AER", "precision", "recall", "F1"]);
    for (distance, data) in distances(data, "aer") {
        let mut row =
            |pair: &str, encoder: String, extraction: &str, factors: &FactorFilter<'_>| {
                let factors = [factors, &[("pair", pair), ("extraction", extraction)]].concat();
                let mut cells = vec![
                    TableCell::Name(pair_at(pair, &distance)),
                    TableCell::Text(encoder),
                    TableCell::Text(extraction.to_owned()),
                ];
                let of = |measure| TableCell::Ours(data.mean(measure, &factors));
                cells.extend(["aer", "precision", "recall", "f1"].map(of));
                table.rows.push(cells);
            };
        for pair in pairs_of(&data, &["aer"]) {
            for condition in data.levels(&["aer"], "condition", &CONDITIONS) {
                for extraction in EXTRACTIONS {
                    row(&pair, data.name(&condition), extraction, &[("condition", &condition)]);
                }
            }
            // The same text for every encoder.
            REFERENCES.iter().for_each(|method| row(&pair, "none".to_owned(), method, &[]));
        }
    }
    table
}

fn mining_table(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&["pair", "encoder", "F1", "random pairs"]);
    for (distance, data) in distances(data, "mining_f1") {
        for pair in pairs_of(&data, &["mining_f1"]) {
            for condition in data.levels(&["mining_f1"], "condition", &CONDITIONS) {
                let own = [("pair", &*pair), ("condition", &*condition)];
                let of = |measure| TableCell::Ours(data.mean(measure, &own));
                table.rows.push(vec![
                    TableCell::Name(pair_at(&pair, &distance)),
                    TableCell::Text(data.name(&condition)),
                    of("mining_f1"),
                    of("mining_f1_chance"),
                ]);
            }
        }
    }
    table
}
