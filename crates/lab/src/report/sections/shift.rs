//! The language inside the vector, and what a shift along it makes a model say (paper 2, §4.1 and §4.2).

use super::ReportSection;
use super::parts::{chosen, chosen_difference, difference, legend, named, points};
use crate::draw::{Figure, Heatmap, LineChart, LineSeries, Panel, SeriesMark};
use crate::papers;
use crate::report::data::{Observations, SettingView, StudyData, chosen_by_others};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::store::natural;

const STUDY: &str = "language-shift";
/// The shift of the paper: one vector for all pieces.
const MEAN: (&str, &str) = ("kind", "mean");

pub(in crate::report) const LANGUAGE_SHIFT: ReportSection = ReportSection {
    id: "language-shift",
    title: "Is the language a direction that one can move along?",
    place: "Paper 2, §4.1 and §4.2",
    studies: &[STUDY],
    asks: "The mean of all vectors of a language at a layer is taken for the language itself. The difference of two such \
           means, times a weight α, is added to every vector of a sentence at one layer; then the model says what it \
           reads at every place. No translation was ever shown to it. Findings are about the paper's own condition, a \
           vocabulary that the languages share, where there is one; tables and figures have each condition by itself.",
    claims: &[
        PaperClaim {
            finding: "Adding one vector makes the model speak the other language",
            place: "Paper 2, Table 2",
            paper: || converted("3"),
            quantity: "convert rate at the layer and weight that convert most in the other seeds",
            criterion: Criterion::Above(0.5),
            measure: |view| most_converted(view, |_| true),
        },
        PaperClaim {
            finding: "The larger the weight, the more pieces are converted",
            place: "Paper 2, Figure 7",
            paper: || format!("{}; {}", converted("1"), converted("3")),
            quantity: "convert rate at the largest weight minus at the smallest above 0, over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = papers_own(view);
                let weights = positive(&data, "conversion_rate");
                let [least, .., most] = &weights[..] else { return Evidence::Nothing };
                let of = |alpha| data.cells("conversion_rate", &[MEAN, ("alpha", alpha)]);
                difference(&of(most), &of(least))
            },
        },
        PaperClaim {
            finding: "With a negative weight it stays in its own language",
            place: "Paper 2, §4.2.1",
            paper: || "always the language of the input".to_owned(),
            quantity: "convert rate at the layer and negative weight that convert most in the other seeds",
            criterion: Criterion::Below(0.05),
            measure: |view| most_converted(view, |alpha| alpha < 0.0),
        },
        PaperClaim {
            finding: "Many of the converted pieces are translations",
            place: "Paper 2, Table 2",
            paper: || {
                let best: Vec<f64> = papers::at(2, "Table 2")
                    .filter(|published| {
                        published.measure == "bleu1" && published.factors["layer"] == "best"
                    })
                    .map(|published| published.value)
                    .collect();
                let range =
                    best.iter().fold((1.0, 0.0), |(a, b), v| (f64::min(a, *v), f64::max(b, *v)));
                format!("best BLEU-1 {:.3} to {:.3} over 12 directions", range.0, range.1)
            },
            quantity: "BLEU-1 at the layer and weight that are best in the other seeds minus that of the unshifted model",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = papers_own(view);
                let of = |wanted: fn(f64) -> bool| at_places(&data, "bleu1", wanted);
                chosen_difference(&of(|alpha| alpha > 0.0), &of(|alpha| alpha == 0.0))
            },
        },
        PaperClaim {
            finding: "Shifting works best in the last layers",
            place: "Paper 2, §4.2.2",
            paper: || {
                let late = papers::at(2, "Table 2").filter(|published| {
                    published.measure == "best_layer" && published.value >= 9.0
                });
                format!(
                    "the best of 12 layers is 9 or higher for {} of 12 directions",
                    late.count()
                )
            },
            quantity: "BLEU-1 at the weight that is best for a layer in the other seeds, the upper half's mean minus the lower half's",
            criterion: Criterion::Above(0.0),
            measure: late_minus_early,
        },
    ],
    show: show_shift,
};

/// The conditions that encoders were trained under, the paper's own first, with what each has: numbers of
/// different conditions are never averaged.
fn conditions<'a>(data: &StudyData<'a>) -> Vec<(String, StudyData<'a>)> {
    let measures = ["bleu1", "conversion_rate", "subwords", "subwords_shared"];
    let levels = data.levels(&measures, "condition", &["default"]);
    if levels.is_empty() {
        return vec![(String::new(), data.clone())];
    }
    levels.into_iter().map(|level| (level.clone(), data.only("condition", &level))).collect()
}

/// What the condition has that findings are about.
fn papers_own<'a>(view: &SettingView<'a>) -> StudyData<'a> {
    conditions(&view.study(STUDY)).swap_remove(0).1
}

/// The paper's convert rates at a weight.
fn converted(alpha: &str) -> String {
    let all: Vec<f64> = papers::at(2, "Table 2")
        .filter(|published| {
            published.measure == "conversion_rate" && published.factors["alpha"] == alpha
        })
        .map(|published| published.value)
        .collect();
    let (low, high) = all.iter().fold((1.0, 0.0), |(a, b), v| (f64::min(a, *v), f64::max(b, *v)));
    format!("{low:.2} to {high:.2} at layer 10 with α = {alpha}")
}

fn weights(data: &StudyData<'_>, measure: &str) -> Vec<String> {
    let mut weights = data.levels(&[measure], "alpha", &[]);
    weights.retain(|alpha| alpha.parse::<f64>().is_ok());
    weights
}

fn positive(data: &StudyData<'_>, measure: &str) -> Vec<String> {
    let mut weights = weights(data, measure);
    weights.retain(|alpha| alpha.parse::<f64>().is_ok_and(|alpha| alpha > 0.0));
    weights
}

/// The numbers at every layer and at the weights that are wanted, to choose among.
fn at_places(data: &StudyData<'_>, measure: &str, wanted: fn(f64) -> bool) -> Vec<Observations> {
    let mut weights = weights(data, measure);
    weights.retain(|alpha| alpha.parse().is_ok_and(wanted));
    let of = |alpha: &String| data.by_layer(measure, &[MEAN, ("alpha", alpha)]);
    weights.iter().flat_map(of).collect()
}

fn most_converted(view: &SettingView<'_>, wanted: fn(f64) -> bool) -> Evidence {
    let places = at_places(&papers_own(view), "conversion_rate", wanted);
    chosen(chosen_by_others(&places).sample(), &[&places])
}

fn late_minus_early(view: &SettingView<'_>) -> Evidence {
    let data = papers_own(view);
    let layers: Vec<String> =
        data.layers("bleu1").into_iter().filter(|layer| layer != "0").collect();
    if layers.len() < 2 {
        return Evidence::Nothing;
    }
    let (early, late) = layers.split_at(layers.len() / 2);
    let weights = positive(&data, "bleu1");
    let at = |layer: &String| -> Vec<Observations> {
        let of = |alpha: &String| data.cells("bleu1", &[MEAN, ("layer", layer), ("alpha", alpha)]);
        weights.iter().map(of).collect()
    };
    let best = |layer: &String| chosen_by_others(&at(layer)).tagged("layer", layer);
    let half = |layers: &[String]| {
        layers.iter().map(best).fold(Observations::default(), Observations::join).sample()
    };
    let all: Vec<Observations> = layers.iter().flat_map(at).collect();
    chosen(half(late).minus(&half(early)), &[&all])
}

/// An encoder's condition and a direction, with the numbers of both.
struct Case<'a> {
    condition: String,
    direction: String,
    data: StudyData<'a>,
}

impl Case<'_> {
    fn title(&self) -> String {
        let direction = self.direction.replace('-', " → ");
        match &*self.condition {
            "" => direction,
            condition => format!("{direction}, {condition}"),
        }
    }
}

fn cases<'a>(data: &StudyData<'a>) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (condition, own) in conditions(data) {
        for direction in own.levels(&["bleu1", "conversion_rate"], "direction", &[]) {
            let data = own.only("direction", &direction);
            cases.push(Case { condition: condition.clone(), direction, data });
        }
    }
    cases
}

fn show_shift(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let cases = cases(&data);
    let maps = cases.iter().filter_map(heat).collect();
    vec![
        CaptionedItem::table(
            "Paper 2, Table 1",
            "Sentences, and what the model says when they are shifted.",
            sentences(&data),
        ),
        CaptionedItem::table(
            "Paper 2, Table 2",
            "Best over layers and weights; the layer and weight are those of the best mean.",
            best_table(&cases),
        ),
        CaptionedItem::table(
            "Paper 2, Table 2",
            "The paper's own (multilingual BERT, 12 layers).",
            paper_table(&data),
        )
        .once(),
        CaptionedItem::table(
            "Paper 2, Table 3",
            "Pieces that occur in each language, and those that occur in both.",
            tokens(&data),
        ),
        CaptionedItem::figure(
            "Paper 2, Figure 7",
            "Share of the pieces said that belong to the other language alone, by layer and weight.",
            Figure {
                id: named(id, "converted"),
                title: "Convert rate".to_owned(),
                legend: vec![],
                panels: maps,
            },
        ),
        CaptionedItem::figure(
            "Paper 2, Figure 8a",
            "BLEU-1 over weights, for some layers.",
            bleu(id, &data, &cases, ("alpha", "layer")),
        ),
        CaptionedItem::figure(
            "Paper 2, Figure 8b",
            "BLEU-1 over layers, for some weights.",
            bleu(id, &data, &cases, ("layer", "alpha")),
        ),
    ]
}

/// The sentences of the first seed that has any: each with its translation, then what encoders make of it.
fn sentences(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&["direction", "condition", "weight", "subwords"]);
    let mut notes: Vec<_> = data.notes.iter().filter(|note| note.name == "translation").collect();
    let first = notes.iter().map(|note| note.origin.seed).min();
    notes.retain(|note| Some(note.origin.seed) == first);
    let of = |note: &crate::record::TextRecord, name: &str| {
        note.factors.get(name).cloned().unwrap_or_default()
    };
    let place = |alpha: &str| match alpha {
        "input" => 0,
        "reference" => 1,
        _ => 2,
    };
    notes.sort_by(|a, b| {
        let (x, y) = (of(a, "alpha"), of(b, "alpha"));
        natural(&of(a, "direction"), &of(b, "direction"))
            .then_with(|| natural(&of(a, "line"), &of(b, "line")))
            .then_with(|| place(&x).cmp(&place(&y)))
            .then_with(|| of(a, "condition").cmp(&of(b, "condition")))
            .then_with(|| natural(&of(a, "layer"), &of(b, "layer")))
            .then_with(|| natural(&x, &y))
    });
    // What is given is the same for all encoders, however their pieces cut it.
    let given = |alpha: &str| ["input", "reference"].contains(&alpha);
    notes.dedup_by(|next, last| {
        let same = |name| of(next, name) == of(last, name);
        given(&of(next, "alpha")) && ["alpha", "direction", "line"].into_iter().all(same)
    });
    for note in notes {
        let (alpha, layer) = (of(note, "alpha"), of(note, "layer"));
        let weight = match &*alpha {
            "input" => "input".to_owned(),
            "reference" => "translation".to_owned(),
            _ if layer.is_empty() => format!("α = {alpha}"),
            _ => format!("α = {alpha}, layer {layer}"),
        };
        let condition = if given(&alpha) { String::new() } else { of(note, "condition") };
        table.rows.push(vec![
            TableCell::Name(of(note, "direction")),
            TableCell::Text(condition),
            TableCell::Text(weight),
            TableCell::Text(note.text.clone()),
        ]);
    }
    table
}

/// The layer and weight whose mean over seeds is the highest.
fn best_place(data: &StudyData<'_>, measure: &str, kind: &str) -> Option<(String, String)> {
    let mut best: Option<(f64, String, String)> = None;
    for layer in data.layers(measure) {
        for alpha in positive(data, measure) {
            let factors = [("kind", kind), ("layer", &*layer), ("alpha", &*alpha)];
            let Some(mean) = data.mean(measure, &factors) else { continue };
            if best.as_ref().is_none_or(|(value, ..)| mean.mean > *value) {
                best = Some((mean.mean, layer.clone(), alpha));
            }
        }
    }
    best.map(|(_, layer, alpha)| (layer, alpha))
}

fn best_table(cases: &[Case<'_>]) -> ReportTable {
    let heads = [
        "direction",
        "condition",
        "shift",
        "BLEU-1",
        "layer",
        "α",
        "convert rate there",
        "exact there",
        "ceiling",
        "unshifted BLEU-1",
    ];
    let mut table = ReportTable::new(&heads);
    for Case { condition, direction, data } in cases {
        for kind in data.levels(&["bleu1"], "kind", &["mean"]) {
            let Some((layer, alpha)) = best_place(data, "bleu1", &kind) else { continue };
            let at = |measure, layer: &str, alpha: &str| {
                let factors = [("kind", &*kind), ("layer", layer), ("alpha", alpha)];
                TableCell::Ours(data.mean(measure, &factors))
            };
            table.rows.push(vec![
                TableCell::Name(direction.clone()),
                TableCell::Text(condition.clone()),
                TableCell::Text(kind.clone()),
                at("bleu1", &layer, &alpha),
                TableCell::Text(layer.clone()),
                TableCell::Text(alpha.clone()),
                at("conversion_rate", &layer, &alpha),
                at("dictionary_accuracy", &layer, &alpha),
                at("repeated", &layer, "0"),
                at("bleu1", &layer, "0"),
            ]);
        }
    }
    table
}

fn paper_table(data: &StudyData<'_>) -> ReportTable {
    let heads = [
        "direction",
        "best BLEU-1",
        "layer",
        "α",
        "layer 11, α = 3",
        "convert rate, α = 1",
        "α = 2",
        "α = 3",
    ];
    let mut table = ReportTable::new(&heads);
    let best =
        |published: &&papers::PublishedValue| published.measure == "best_layer" && !data.is_empty();
    for published in papers::at(2, "Table 2").filter(best) {
        let direction = &*published.factors["direction"];
        let of = |measure, more: &[(&str, &str)], digits| {
            let factors = [&[("direction", direction)], more].concat();
            TableCell::Paper(papers::number(2, "Table 2", measure, &factors), digits)
        };
        let rate = |alpha| of("conversion_rate", &[("layer", "10"), ("alpha", alpha)], 3);
        table.rows.push(vec![
            TableCell::Name(direction.replace('-', " → ")),
            of("bleu1", &[("layer", "best"), ("alpha", "best")], 3),
            of("best_layer", &[], 0),
            of("best_alpha", &[], 1),
            of("bleu1", &[("layer", "11"), ("alpha", "3")], 3),
            rate("1"),
            rate("2"),
            rate("3"),
        ]);
    }
    table
}

fn tokens(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&[
        "language or pair",
        "condition",
        "pieces",
        "pieces in both",
        "paper 2: pieces",
        "in both with English",
    ]);
    let printed = |measure, language: &str| {
        TableCell::Paper(papers::number(2, "Table 3", measure, &[("language", language)]), 0)
    };
    for (condition, own) in conditions(data) {
        let start =
            |name: &str| vec![TableCell::Name(name.to_owned()), TableCell::Text(condition.clone())];
        for language in own.levels(&["subwords"], "language", &[]) {
            let mut row = start(&language);
            row.push(TableCell::Count(own.mean("subwords", &[("language", &language)])));
            row.push(TableCell::Count(None));
            row.extend(["subwords", "subwords_shared"].map(|measure| printed(measure, &language)));
            table.rows.push(row);
        }
        for pair in own.levels(&["subwords_shared"], "pair", &[]) {
            let mut row = start(&pair);
            row.push(TableCell::Count(None));
            row.push(TableCell::Count(own.mean("subwords_shared", &[("pair", &pair)])));
            row.extend([TableCell::Paper(None, 0), TableCell::Paper(None, 0)]);
            table.rows.push(row);
        }
    }
    table
}

fn heat(case: &Case<'_>) -> Option<Panel> {
    let data = &case.data;
    let (layers, weights) = (data.layers("conversion_rate"), weights(data, "conversion_rate"));
    let rate = |layer: &str, alpha: &str| {
        let factors = [MEAN, ("layer", layer), ("alpha", alpha)];
        data.mean("conversion_rate", &factors).map(|mean| mean.mean)
    };
    let values: Vec<Vec<Option<f64>>> = layers
        .iter()
        .map(|layer| weights.iter().map(|alpha| rate(layer, alpha)).collect())
        .collect();
    values.iter().flatten().any(Option::is_some).then(|| {
        Heatmap {
            title: case.title(),
            down: ("layer".to_owned(), layers.clone()),
            across: (
                "weight α".to_owned(),
                weights.iter().map(|alpha| alpha.replace('-', "\u{2212}")).collect(),
            ),
            values,
            range: (0.0, 1.0),
        }
        .panel()
    })
}

/// BLEU-1 over one factor, a line for some levels of the other: at most six, evenly chosen.
fn bleu(id: &str, data: &StudyData<'_>, cases: &[Case<'_>], (across, by): (&str, &str)) -> Figure {
    let levels = if by == "layer" { data.layers("bleu1") } else { positive(data, "bleu1") };
    let step = levels.len().div_ceil(6).max(1);
    // From the end, since the last layer and the largest weight are the ones of interest.
    let mut chosen: Vec<&String> = levels.iter().rev().step_by(step).collect();
    chosen.reverse();
    let panel = |case: &Case<'_>| {
        let line = |(colour, level): (usize, &&String)| LineSeries {
            name: format!("{by} {level}"),
            colour,
            points: points(&case.data, "bleu1", &[MEAN, (by, level)], across),
        };
        let lines: Vec<LineSeries> =
            chosen.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
        let across = if across == "alpha" { "weight α" } else { across };
        (!lines.is_empty()).then(|| {
            let (title, unit) = (case.title(), "BLEU-1".to_owned());
            LineChart { title, across: across.to_owned(), unit, lines, from_zero: true }.panel()
        })
    };
    let label = if by == "alpha" { "α =" } else { "layer" };
    let names: Vec<String> = chosen.iter().map(|level| format!("{label} {level}")).collect();
    Figure {
        id: named(id, &format!("bleu-{across}")),
        title: "BLEU-1 of token translation".to_owned(),
        legend: legend(&names, SeriesMark::Line, false),
        panels: cases.iter().filter_map(panel).collect(),
    }
}
