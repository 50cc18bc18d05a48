//! Token translation by language mean vectors: figures and tables.

use crate::draw::{Chart, Figure, Heatmap, LineChart, LineSeries};
use crate::papers;
use crate::report::claims::SectionCode;
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::observations::Observations;
use crate::report::sections::names::{direction_name, language_name};
use crate::report::sections::parts::{figure, named, of_different, pair_name, points};
use crate::report::tokens::TokenSentence;

const STUDY: &str = "language-shift";
/// The shift of the paper: one vector for all subwords.
const MEAN: (&str, &str) = ("kind", "mean");

/// The highest conversion rates, of the first encoder and of the untrained one.
pub(super) const CODE: SectionCode = SectionCode {
    rules: &[],
    show: Some(&show),
    numbers: Some(|view| {
        let encoders = view.study(STUDY).encoders();
        let best = |wanted: bool| {
            let (_, data) = encoders.iter().find(|(name, _)| (name == UNTRAINED) == wanted)?;
            let rate = highest(data, "conversion_rate", "mean")?.0;
            Some(format!("{:.0} %", 100.0 * rate))
        };
        match (best(false), best(true)) {
            (Some(own), Some(untrained)) => format!("{own} at best, untrained {untrained}"),
            (Some(own), None) => format!("{own} at best"),
            _ => String::new(),
        }
    }),
};

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

/// A condition and a direction, with their data.
struct Case<'a> {
    condition: String,
    direction: String,
    data: StudyData<'a>,
}

impl Case<'_> {
    fn title(&self) -> String {
        let direction = direction_name(&self.direction);
        match &*self.condition {
            "" => direction,
            condition => format!("{direction}, {}", self.data.name(condition)),
        }
    }
}

fn cases<'a>(data: &StudyData<'a>) -> Vec<Case<'a>> {
    let mut cases = Vec::new();
    for (condition, own) in data.encoders() {
        for direction in own.levels(&["bleu1", "conversion_rate"], "direction", &[]) {
            let data = own.only("direction", &direction);
            cases.push(Case { condition: condition.clone(), direction, data });
        }
    }
    cases
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let cases = cases(&data);
    let maps: Vec<Chart> = cases.iter().filter_map(heat).collect();
    vec![
        CaptionedItem::sentences(
            replicates(2, &["Table 1"]),
            "Sentences, and the tokens that are predicted at every position when α times the difference of the language mean \
             vectors is added. Words are coloured by the language in whose sentences they occur here; sentences with fewest common words \
             come first.",
            TokenSentence::all(&data),
        ),
        CaptionedItem::table(
            replicates(2, &["Table 2"]),
            "BLEU-1 at the layer and weight with the best mean over seeds. What it scores without translating stands beside it: the same \
             output against other sentences' references, and the most frequent words of the language in its place. Dictionary accuracy \
             is over words that are no translation of themselves, and beside it where the words are shuffled; without such a record, \
             over all.",
            best_table(&cases),
        ),
        CaptionedItem::table(
            replicates(2, &["Table 2"]),
            "The paper's results (multilingual BERT, 12 layers).",
            paper_table(&data),
        )
        .once(),
        CaptionedItem::table(
            replicates(2, &["Table 3"]),
            "Subwords that occur in each language, and those that occur in both.",
            subwords(&data),
        ),
        CaptionedItem::table(
            BEYOND,
            "Predictions at masked positions, without a shift (§4.1): the share that belongs to the other language alone, accuracy, \
             and the accuracy of always predicting the most frequent token; and the share of tokens of neither language when shifted \
             by positive weights (§4.2.1).",
            other_languages(&cases),
        ),
        CaptionedItem::figure(
            replicates(2, &["Figure 7"]),
            "Token conversion rate by layer and weight.",
            figure(named(id, "converted"), &converted_title(&cases), &maps),
        ),
        CaptionedItem::figure(
            replicates(2, &["Figure 8a"]),
            "BLEU-1 over weights; each line is a layer, and the layer with the highest BLEU-1 is coloured.",
            bleu(id, &data, &cases, ("alpha", "layer")),
        ),
        CaptionedItem::figure(
            replicates(2, &["Figure 8b"]),
            "BLEU-1 over layers; each line is a weight, and the weight with the highest BLEU-1 is coloured.",
            bleu(id, &data, &cases, ("layer", "alpha")),
        ),
    ]
}

/// The highest mean over seeds, with its layer and weight.
fn highest(data: &StudyData<'_>, measure: &str, kind: &str) -> Option<(f64, String, String)> {
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
    best
}

fn best_table(cases: &[Case<'_>]) -> ReportTable {
    let heads = [
        "direction",
        "encoder",
        "shift",
        "BLEU-1",
        "layer",
        "α",
        "conversion rate",
        "permuted references",
        "most frequent words",
        "dictionary accuracy",
        "shuffled words",
        "reproduced at α = 0",
        "BLEU-1 at α = 0",
        "dictionary accuracy at α = 0",
    ];
    let mut table = ReportTable::new(&heads);
    for Case { condition, direction, data } in cases {
        let accuracy = of_different(data, "dictionary_accuracy");
        for kind in data.levels(&["bleu1"], "kind", &["mean"]) {
            let Some((_, layer, alpha)) = highest(data, "bleu1", &kind) else { continue };
            let at = |measure, layer: &str, alpha: &str| {
                let factors = [("kind", &*kind), ("layer", layer), ("alpha", alpha)];
                TableCell::Ours(data.mean(measure, &factors))
            };
            table.rows.push(vec![
                TableCell::Name(direction_name(direction)),
                TableCell::Text(data.name(condition)),
                TableCell::Text(kind.clone()),
                at("bleu1", &layer, &alpha),
                TableCell::Text(layer.clone()),
                TableCell::Text(alpha.clone()),
                at("conversion_rate", &layer, &alpha),
                at("bleu1_permuted", &layer, &alpha),
                TableCell::Ours(data.mean("bleu1_frequent", &[("kind", &kind)])),
                at(accuracy, &layer, &alpha),
                at("dictionary_accuracy_shuffled", &layer, &alpha),
                at("copied", &layer, "0"),
                at("bleu1", &layer, "0"),
                at(accuracy, &layer, "0"),
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
        "conversion rate, α = 1",
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

fn other_languages(cases: &[Case<'_>]) -> ReportTable {
    let heads = [
        "direction",
        "encoder",
        "masked: other language",
        "masked: accuracy",
        "most frequent token",
        "shifted: neither language",
        "shifted: a third language",
    ];
    let mut table = ReportTable::new(&heads);
    for Case { condition, direction, data } in cases {
        let masked = |measure| data.mean(measure, &[]);
        let shifted = |measure: &str| {
            let at = |alpha: &String| {
                data.observations(measure, &[MEAN, ("alpha", alpha)]).tagged("alpha", alpha)
            };
            let weights = positive(data, measure);
            let all = weights.iter().map(at).fold(Observations::default(), Observations::join);
            all.sample().mean()
        };
        let cells = [
            masked("masked_foreign_rate"),
            masked("masked_accuracy"),
            masked("masked_unigram_accuracy"),
            shifted("other_rate"),
            shifted("third_rate"),
        ];
        if cells.iter().any(Option::is_some) {
            let names =
                [TableCell::Name(direction_name(direction)), TableCell::Text(data.name(condition))];
            table.rows.push(names.into_iter().chain(cells.map(TableCell::Ours)).collect());
        }
    }
    table
}

fn subwords(data: &StudyData<'_>) -> ReportTable {
    let mut table = ReportTable::new(&[
        "language or pair",
        "encoder",
        "subwords",
        "shared subwords",
        "Liu et al. 2020: tokens",
        "shared with English",
    ]);
    let printed = |measure, language: &str| {
        TableCell::Paper(papers::number(2, "Table 3", measure, &[("language", language)]), 0)
    };
    for (condition, own) in data.encoders() {
        let start =
            |name: String| vec![TableCell::Name(name), TableCell::Text(data.name(&condition))];
        for language in own.levels(&["subwords"], "language", &[]) {
            let mut row = start(language_name(&language));
            row.push(TableCell::Count(own.mean("subwords", &[("language", &language)])));
            row.push(TableCell::Count(None));
            row.extend(["subwords", "subwords_shared"].map(|measure| printed(measure, &language)));
            table.rows.push(row);
        }
        for pair in own.levels(&["subwords_shared"], "pair", &[]) {
            let mut row = start(pair_name(&pair));
            row.push(TableCell::Count(None));
            row.push(TableCell::Count(own.mean("subwords_shared", &[("pair", &pair)])));
            row.extend([TableCell::Paper(None, 0), TableCell::Paper(None, 0)]);
            table.rows.push(row);
        }
    }
    table
}

fn heat(case: &Case<'_>) -> Option<Chart> {
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
        Chart::Heat(Heatmap {
            title: case.title(),
            down: ("layer".to_owned(), layers.clone()),
            across: (
                "weight α".to_owned(),
                weights.iter().map(|alpha| alpha.replace('-', "\u{2212}")).collect(),
            ),
            values,
            range: (0.0, 1.0),
        })
    })
}

/// The highest mean conversion rate of the first encoder, and of the untrained one.
fn converted_title(cases: &[Case<'_>]) -> String {
    let best = |case: &Case<'_>| {
        let (mean, layer, alpha) = highest(&case.data, "conversion_rate", "mean")?;
        let name = case.data.name(&case.condition);
        Some(format!("{:.0} % {name} (layer {layer}, α = {alpha})", 100.0 * mean))
    };
    let mut seen: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for case in cases {
        if !seen.contains(&&*case.condition) {
            seen.push(&case.condition);
            parts.extend(best(case));
        }
    }
    match parts.is_empty() {
        true => "Token conversion rate".to_owned(),
        false => format!("Tokens converted at best: {}", parts.join(", ")),
    }
}

/// BLEU-1 over one factor, a line for each level of the other.
fn bleu(id: &str, data: &StudyData<'_>, cases: &[Case<'_>], (across, by): (&str, &str)) -> Figure {
    let levels = if by == "layer" { data.layers("bleu1") } else { positive(data, "bleu1") };
    let label = if by == "alpha" { "α =" } else { "layer" };
    let panel = |case: &Case<'_>| {
        let line = |level: &String| LineSeries {
            name: format!("{label} {level}"),
            colour: 0,
            dashed: false,
            points: points(&case.data, "bleu1", &[MEAN, (by, level)], across),
        };
        let lines: Vec<LineSeries> =
            levels.iter().map(line).filter(|line| !line.points.is_empty()).collect();
        let across = if across == "alpha" { "weight α" } else { across };
        (!lines.is_empty()).then(|| {
            Chart::Lines(LineChart {
                title: case.title(),
                across: across.to_owned(),
                unit: "BLEU-1".to_owned(),
                lines,
                from_zero: true,
                highest_only: true,
                ..LineChart::default()
            })
        })
    };
    let charts: Vec<Chart> = cases.iter().filter_map(panel).collect();
    figure(named(id, &format!("bleu-{across}")), "BLEU-1 of token translation at best", &charts)
}
