//! Token translation by language mean vectors (Liu et al. 2020, §4.1 and §4.2): the claims.

mod exhibits;

use super::ReportSection;
use super::parts::{chosen, chosen_difference, difference};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, chosen_by_others};

const STUDY: &str = "language-shift";
/// The shift of the paper: one vector for all subwords.
const MEAN: (&str, &str) = ("kind", "mean");

pub(in crate::report) const LANGUAGE_SHIFT: ReportSection = ReportSection {
    id: "language-shift",
    title: "Is language identity a direction in the space?",
    place: "Liu et al. 2020, §4.1 and §4.2",
    studies: &[STUDY],
    method: "A language is represented by the mean of its hidden states at a layer. The difference of two language mean \
             vectors, times a weight α, is added to every hidden state of a sentence at one layer, and the MLM head predicts \
             a token at every position. No translations are used. The token conversion rate is the share of predicted tokens that \
             belong to the target language alone. Verdicts are about the paper's own condition, a shared vocabulary, where there \
             is one; tables and figures show each condition separately.",
    claims: &[
        PaperClaim {
            finding: "Adding one vector converts tokens to the other language",
            place: "Liu et al. 2020, Table 2",
            paper: || converted("3"),
            quantity: "conversion rate at the layer and weight that are best in the other seeds",
            criterion: Criterion::Above(0.5),
            measure: |view| most_converted(view, |_| true),
        },
        PaperClaim {
            finding: "Larger weights convert more tokens",
            place: "Liu et al. 2020, Figure 7",
            paper: || format!("{}; {}", converted("1"), converted("3")),
            quantity: "conversion rate at the largest weight minus at the smallest positive weight, over layers",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = papers_own(view);
                let weights = positive(&data, "conversion_rate");
                let [least, .., most] = &weights[..] else { return Evidence::Nothing };
                let of = |alpha| data.observations("conversion_rate", &[MEAN, ("alpha", alpha)]);
                difference(&of(most), &of(least))
            },
        },
        PaperClaim {
            finding: "Negative weights convert no tokens",
            place: "Liu et al. 2020, §4.2.1",
            paper: || "predicted tokens stay in the language of the input".to_owned(),
            quantity: "conversion rate at the layer and negative weight that convert most in the other seeds",
            criterion: Criterion::Below(0.05),
            measure: |view| most_converted(view, |alpha| alpha < 0.0),
        },
        PaperClaim {
            finding: "Many converted tokens are translations",
            place: "Liu et al. 2020, Table 2",
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
            quantity: "BLEU-1 at the layer and weight that are best in the other seeds minus that without a shift",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                let data = papers_own(view);
                let of = |wanted: fn(f64) -> bool| at_places(&data, "bleu1", wanted);
                chosen_difference(&of(|alpha| alpha > 0.0), &of(|alpha| alpha == 0.0))
            },
        },
        PaperClaim {
            finding: "The shift works best in the last layers",
            place: "Liu et al. 2020, §4.2.2",
            paper: || {
                let late = papers::at(2, "Table 2").filter(|published| {
                    published.measure == "best_layer" && published.value >= 9.0
                });
                format!(
                    "the best of 12 layers is 9 or higher for {} of 12 directions",
                    late.count()
                )
            },
            quantity: "BLEU-1 at each layer's best weight in the other seeds: mean of the upper half of the layers minus that of the lower half",
            criterion: Criterion::Above(0.0),
            measure: late_minus_early,
        },
    ],
    show: exhibits::show,
};

/// The conditions of pretraining, the paper's own first, each with its data: different conditions are never averaged.
fn conditions<'a>(data: &StudyData<'a>) -> Vec<(String, StudyData<'a>)> {
    let measures = ["bleu1", "conversion_rate", "subwords", "subwords_shared"];
    let levels = data.levels(&measures, "condition", &["default"]);
    if levels.is_empty() {
        return vec![(String::new(), data.clone())];
    }
    levels.into_iter().map(|level| (level.clone(), data.only("condition", &level))).collect()
}

/// The data of the condition that verdicts are about.
fn papers_own<'a>(view: &SettingView<'a>) -> StudyData<'a> {
    conditions(&view.study(STUDY)).swap_remove(0).1
}

/// The range of the paper's conversion rates at a weight.
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

/// The observations at every layer and at some weights, as candidates.
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
        let of = |alpha: &String| {
            data.observations("bleu1", &[MEAN, ("layer", layer), ("alpha", alpha)])
        };
        weights.iter().map(of).collect()
    };
    let best = |layer: &String| chosen_by_others(&at(layer)).tagged("layer", layer);
    let half = |layers: &[String]| {
        layers.iter().map(best).fold(Observations::default(), Observations::join).sample()
    };
    let all: Vec<Observations> = layers.iter().flat_map(at).collect();
    chosen(half(late).minus(&half(early)), &[&all])
}
