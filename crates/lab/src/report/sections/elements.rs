//! Which elements of the recipe make an encoder multilingual: ablations of positions, special tokens, masking, size and order.

use super::ReportSection;
use super::parts::{Series, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::{Chart, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::Observations;

const STUDY: &str = "elements";
const CONDITIONS: [&str; 8] = [
    "original",
    "lang-pos",
    "shift-special",
    "no-random",
    "all-three",
    "overparam",
    "all-four",
    "untrained",
];

pub(in crate::report) const ELEMENTS: ReportSection = ReportSection {
    id: "elements",
    title: "Which elements of the recipe make an encoder multilingual?",
    place: "beyond the papers",
    studies: &[STUDY],
    method: "Two languages without a common subword are trained together, and one element of the recipe is ablated at a time: \
             shared position embeddings (lang-pos), shared special tokens (shift-special), random replacement of masked tokens \
             (no-random), or all three; overparam is a larger model, and all-four has all three in it. Invented languages in inverted \
             order have every dependent on the other side of its head. A real language (xx) is the first in a shifted script, and in \
             inverted order its sentences are read from the last word to the first. Sentences retrieve their translations by the cosine of raw mean vectors.",
    claims: &[
        PaperClaim {
            finding: "Separate positions, separate special tokens and no random replacement together make an encoder less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "shown in a table: lower".to_owned(),
            quantity: "raw retrieval of the original minus all three, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| ablated(view, "all-three"),
        },
        PaperClaim {
            finding: "Position embeddings of each language's own make an encoder less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "shown in a table: lower".to_owned(),
            quantity: "raw retrieval of the original minus lang-pos, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| ablated(view, "lang-pos"),
        },
        PaperClaim {
            finding: "Special tokens of each language's own make an encoder less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "shown in a table: lower".to_owned(),
            quantity: "raw retrieval of the original minus shift-special, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| ablated(view, "shift-special"),
        },
        PaperClaim {
            finding: "Without random replacement of masked tokens an encoder is less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "shown in a table: lower".to_owned(),
            quantity: "raw retrieval of the original minus no-random, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| ablated(view, "no-random"),
        },
        PaperClaim {
            finding: "A larger encoder is less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "named among the elements: lower".to_owned(),
            quantity: "raw retrieval of the original minus overparam, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| ablated(view, "overparam"),
        },
        PaperClaim {
            finding: "In a larger encoder all three together leave even less",
            place: "Dufter & Schütze 2020, Figure 1",
            paper: || "almost nothing is left".to_owned(),
            quantity: "raw retrieval of all three minus all three in a larger encoder, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study(STUDY);
                let [three, four] =
                    ["all-three", "all-four"].map(|one| retrieval(&data, one, same(&data)));
                vec![line(&data, &three.minus(&four))]
            },
        },
        PaperClaim {
            finding: "An inverted word order makes an encoder less multilingual",
            place: "Dufter & Schütze 2020",
            paper: || "shown in a table: lower".to_owned(),
            quantity: "raw retrieval of the original, same order minus inverted, mean over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = view.study(STUDY);
                let of = |order| retrieval(&data, "original", Some(order));
                vec![line(&data, &of("same").minus(&of("inverted")))]
            },
        },
    ],
    fails: "Taking all three elements away does not make an encoder less multilingual",
    numbers: |view| {
        let data = view.study(STUDY);
        let of = |condition: &str| {
            let mean = retrieval(&data, condition, same(&data)).sample().mean()?;
            Some(format!("{condition} {}", short(mean.mean)))
        };
        let parts: Vec<String> =
            ["original", "all-three", "untrained"].iter().filter_map(|one| of(one)).collect();
        if parts.is_empty() { String::new() } else { format!("P@1 {}", parts.join(", ")) }
    },
    show,
};

/// The world whose languages have the same order; real languages have the order that they have.
fn same(data: &StudyData<'_>) -> Option<&'static str> {
    (!data.levels(&["retrieval"], "order", &[]).is_empty()).then_some("same")
}

/// Raw retrieval under a condition, by layer.
fn retrieval(data: &StudyData<'_>, condition: &str, order: Option<&str>) -> Observations {
    let mut factors = vec![("condition", condition), ("kind", "raw")];
    factors.extend(order.map(|order| ("order", order)));
    data.observations("retrieval", &factors)
}

/// A line of evidence beside the untrained encoder.
fn line(data: &StudyData<'_>, difference: &Observations) -> ClaimLine {
    let [own, untrained] =
        ["original", "untrained"].map(|condition| retrieval(data, condition, same(data)));
    ClaimLine::new("", Evidence::Seeds(difference.sample())).against(Control::of(
        "untrained",
        &own,
        &untrained,
    ))
}

/// By how much an ablation lowers retrieval.
fn ablated(view: &SettingView<'_>, condition: &str) -> Vec<ClaimLine> {
    let data = view.study(STUDY);
    let [own, other] = ["original", condition].map(|one| retrieval(&data, one, same(&data)));
    vec![line(&data, &own.minus(&other))]
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let pairs = pairs_of(&data, &["retrieval"]);
    let orders = data.levels(&["retrieval"], "order", &["same", "inverted"]);
    let conditions: &Series<'_> =
        &CONDITIONS.map(|condition| (condition, vec![("condition", condition), ("kind", "raw")]));
    let panel = |pair: &String| -> Vec<Chart> {
        let chart = |order: Option<&str>| {
            let mut common = vec![("pair", pair.as_str())];
            common.extend(order.map(|order| ("order", order)));
            let title = match order {
                Some(order) => format!("{}, {order} order", pair_name(pair)),
                None => pair_name(pair),
            };
            over_layers(&data, "retrieval", &common, conditions, (&title, "P@1"))
        };
        match orders.is_empty() {
            true => chart(None).into_iter().collect(),
            false => orders.iter().filter_map(|order| chart(Some(order))).collect(),
        }
    };
    let charts: Vec<Chart> = pairs.iter().flat_map(panel).collect();
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Raw sentence retrieval by layer, one element ablated at a time.",
            figure(named(id, "layers"), "Ablations", &charts),
        ),
        CaptionedItem::table(
            BEYOND,
            "Raw and mean-centred sentence retrieval (P@1, means over layers), and word translation without a map at the middle \
             layer (P@1) beside chance.",
            table(&data, &pairs, &orders),
        ),
    ]
}

fn table(data: &StudyData<'_>, pairs: &[String], orders: &[String]) -> ReportTable {
    let heads =
        ["pair", "order", "encoder", "sentences, raw", "sentences, centred", "words", "chance"];
    let mut table = ReportTable::new(&heads);
    let orders: Vec<Option<&str>> = match orders {
        [] => vec![None],
        some => some.iter().map(|order| Some(order.as_str())).collect(),
    };
    for pair in pairs {
        for order in &orders {
            for condition in data.levels(&["retrieval"], "condition", &CONDITIONS) {
                let mut own = vec![("pair", pair.as_str()), ("condition", condition.as_str())];
                own.extend(order.map(|order| ("order", order)));
                let of = |measure: &str, more: &[(&str, &str)]| {
                    TableCell::Ours(data.mean(measure, &[&own[..], more].concat()))
                };
                table.rows.push(vec![
                    TableCell::Name(pair_name(pair)),
                    TableCell::Text(order.unwrap_or("").to_owned()),
                    TableCell::Text(condition.clone()),
                    of("retrieval", &[("kind", "raw")]),
                    of("retrieval", &[("kind", "centered")]),
                    of("p_at_1", &[]),
                    of("p_at_1_chance", &[]),
                ]);
            }
        }
    }
    table
}
