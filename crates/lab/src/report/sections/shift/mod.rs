//! Token translation by language mean vectors (Liu et al. 2020, §4.1 and §4.2): the claims.

mod exhibits;

use super::ReportSection;
use super::parts::{LESS, MORE, chosen, chosen_difference, over_untrained, upper_minus_lower};
use crate::papers;
use crate::report::data::{SettingView, StudyData, UNTRAINED};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, SeedSample, chosen_by_others};
use terms::Preset;

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
            paper: &|| converted("3"),
            quantity: "conversion rate at the layer and weight that are best in the other seeds",
            criterion: Criterion::Above(0.5),
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    let (own, other) = (converting(data), converting(untrained));
                    ClaimLine::new("", chosen(chosen_by_others(&own).sample(), &[&own]))
                        .against(over_untrained(&own, &other))
                })
            },
        },
        PaperClaim {
            finding: "Larger weights convert more tokens",
            place: "Liu et al. 2020, Figure 7",
            paper: &|| format!("{}; {}", converted("1"), converted("3")),
            quantity: "conversion rate at the largest weight minus at the smallest positive weight, over layers",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    let (own, other) = (growth(data), growth(untrained));
                    ClaimLine::new("", Evidence::Seeds(own.clone())).against(Control::of_samples(
                        "untrained",
                        &own,
                        other,
                        MORE,
                    ))
                })
            },
        },
        PaperClaim {
            finding: "Negative weights convert no tokens",
            place: "Liu et al. 2020, §4.2.1",
            paper: &|| "predicted tokens stay in the language of the input".to_owned(),
            quantity: "conversion rate at the layer and negative weight that convert most in the other seeds",
            criterion: Criterion::Below(0.05),
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    let negative = at_places(data, "conversion_rate", |alpha| alpha < 0.0);
                    // What converts nothing at any weight passes: positive weights must convert.
                    ClaimLine::new("", chosen(chosen_by_others(&negative).sample(), &[&negative]))
                        .against(over_untrained(&converting(data), &converting(untrained)))
                })
            },
        },
        PaperClaim {
            finding: "Many converted tokens are translations",
            place: "Liu et al. 2020, Table 2",
            paper: &|| {
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
            quantity: "BLEU-1 beyond that against permuted references, at the layer and weight that are best in the other seeds minus \
                       without a shift",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    // A constant output is right about some words of every sentence, too.
                    let shifted = chosen_by_others(&at_places(data, "bleu1", |alpha| alpha > 0.0));
                    let constant = data.observations("bleu1_frequent", &[MEAN]);
                    translated_line(data, untrained, ["bleu1", "bleu1_permuted"]).against(
                        Control::of("BLEU-1 over the most frequent words'", &shifted, &constant)
                            .by_advantage(),
                    )
                })
            },
        },
        PaperClaim {
            finding: "The mean difference shift translates words of a dictionary",
            place: "Liu et al. 2020, §4.2",
            paper: &|| "no dictionary accuracy; BLEU-1 alone".to_owned(),
            quantity: "share of words predicted in translation, of those that are no translation of themselves, beyond that where words are \
                       shuffled, at the layer and weight that are best in the other seeds minus without a shift",
            criterion: Criterion::Above(0.0),
            measure: &|view| by_encoder(view, by_dictionary),
        },
        PaperClaim {
            finding: "The shift works best in the last layers",
            place: "Liu et al. 2020, §4.2.2",
            paper: &|| {
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
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    let (own, other) = (late_minus_early(data), late_minus_early(untrained));
                    let all = at_places(data, "bleu1", |alpha| alpha > 0.0);
                    ClaimLine::new("", chosen(own.clone(), &[&all])).against(Control::of_samples(
                        "untrained",
                        &own,
                        other,
                        MORE,
                    ))
                })
            },
        },
        PaperClaim {
            finding: "No third language is decoded",
            place: "Liu et al. 2020, §4.2.1",
            paper: &|| "never a token that belongs to neither language".to_owned(),
            quantity: "share of predicted tokens in neither language's token set, over layers and positive weights",
            criterion: Criterion::Below(0.05),
            measure: &|view| {
                let mut lines = Vec::new();
                for (measure, name) in
                    [("third_rate", "in a third language's"), ("other_rate", "in neither's")]
                {
                    if view.study(STUDY).has(measure) {
                        lines.extend(by_encoder(view, |data, untrained| {
                            foreign_line(data, untrained, measure, name)
                        }));
                    }
                }
                lines
            },
        },
        PaperClaim {
            finding: "A masked token hardly ever yields the other language",
            place: "Liu et al. 2020, §4.1",
            paper: &|| {
                "the probability of a Chinese token in an English sentence is very low".to_owned()
            },
            quantity: "share of masked positions whose prediction belongs to the other language alone",
            criterion: Criterion::Below(0.05),
            measure: &|view| {
                by_encoder(view, |data, untrained| {
                    let of = |data: &StudyData<'_>, measure| data.observations(measure, &[]);
                    let own = of(data, "masked_foreign_rate").sample();
                    let other = of(untrained, "masked_foreign_rate").sample();
                    // A constant prediction is always of one language: the tokens must be predicted, too.
                    let (accuracy, unigram) =
                        (of(data, "masked_accuracy"), of(data, "masked_unigram_accuracy"));
                    ClaimLine::new("", Evidence::Seeds(own.clone()))
                        .against(Control::of_samples("untrained", &own, other, LESS))
                        .against(Control::of("most frequent token's accuracy", &accuracy, &unigram))
                })
            },
        },
    ],
    fails: "Adding one vector does not convert tokens to the other language",
    numbers: &|view| {
        let data = view.study(STUDY);
        let best = |data: &StudyData<'_>| {
            let rates = converting(data);
            let means = rates.iter().filter_map(|rate| rate.sample().mean());
            means.map(|mean| mean.mean).reduce(f64::max)
        };
        let encoders = data.encoders();
        let of = |wanted: bool| {
            let own = encoders.iter().find(|(name, _)| (name == UNTRAINED) == wanted);
            own.and_then(|(_, data)| best(data)).map(|rate| format!("{:.0} %", 100.0 * rate))
        };
        match (of(false), of(true)) {
            (Some(own), Some(untrained)) => format!("{own} at best, untrained {untrained}"),
            (Some(own), None) => format!("{own} at best"),
            _ => String::new(),
        }
    },
    show: &exhibits::show,
};

/// A line for the encoder of the paper's own condition, and one for each given model, each beside the untrained encoder.
fn by_encoder(
    view: &SettingView<'_>,
    line: impl Fn(&StudyData<'_>, &StudyData<'_>) -> ClaimLine,
) -> Vec<ClaimLine> {
    judged_encoders(&view.study(STUDY), line)
}

/// The same over some records.
pub(super) fn judged_encoders(
    data: &StudyData<'_>,
    line: impl Fn(&StudyData<'_>, &StudyData<'_>) -> ClaimLine,
) -> Vec<ClaimLine> {
    let mut encoders = data.encoders();
    let none = StudyData { records: vec![], texts: vec![], depth: None };
    let untrained = match encoders.last() {
        Some((name, _)) if name == UNTRAINED => encoders.pop().map_or(none, |(_, data)| data),
        _ => none,
    };
    // Conditions are compared in figures; verdicts are about the paper's own, and about models that were given.
    let given = |name: &str| name.parse::<Preset>().is_err();
    let mut trained = encoders.iter().filter(|(name, _)| !given(name)).take(1).collect::<Vec<_>>();
    trained.extend(encoders.iter().filter(|(name, _)| given(name)));
    let several = trained.len() > 1;
    let named = |(name, data): &&(String, StudyData<'_>)| {
        let mut one = line(data, &untrained);
        if several {
            one.of = [name.as_str(), one.of.as_str()].join(", ").trim_end_matches(", ").to_owned();
        }
        one
    };
    trained.iter().map(named).collect()
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

/// By how much more a measure exceeds its control at the best place with a shift than without one.
fn translated_line(
    data: &StudyData<'_>,
    untrained: &StudyData<'_>,
    [measure, control]: [&str; 2],
) -> ClaimLine {
    let places = |data: &StudyData<'_>, wanted: fn(f64) -> bool| -> Vec<Observations> {
        let mut weights = weights(data, control);
        weights.retain(|alpha| alpha.parse().is_ok_and(wanted));
        let at = |alpha: &String, layer: &String| {
            let factors = [MEAN, ("layer", layer), ("alpha", alpha)];
            data.observations(measure, &factors).minus(&data.observations(control, &factors))
        };
        let layers = data.layers(control);
        weights.iter().flat_map(|alpha| layers.iter().map(|layer| at(alpha, layer))).collect()
    };
    let both = |data| [places(data, |alpha| alpha > 0.0), places(data, |alpha| alpha == 0.0)];
    let gain = |[shifted, still]: &[Vec<Observations>; 2]| {
        chosen_by_others(shifted).minus(&chosen_by_others(still))
    };
    let (own, other) = (both(data), both(untrained));
    ClaimLine::new("", chosen_difference(&own[0], &own[1])).against(Control::of(
        "untrained",
        &gain(&own),
        &gain(&other),
    ))
}

/// The same of words by a dictionary: those that both languages write alike are right without a shift.
fn by_dictionary(data: &StudyData<'_>, untrained: &StudyData<'_>) -> ClaimLine {
    let measures = ["dictionary_accuracy_different", "dictionary_accuracy_shuffled"];
    translated_line(data, untrained, measures)
}

/// The conversion rate at every layer and positive weight, as candidates.
fn converting(data: &StudyData<'_>) -> Vec<Observations> {
    at_places(data, "conversion_rate", |alpha| alpha > 0.0)
}

/// The conversion rate at the largest weight minus at the smallest positive one, over layers.
fn growth(data: &StudyData<'_>) -> SeedSample {
    let weights = positive(data, "conversion_rate");
    let [least, .., most] = &weights[..] else { return SeedSample::default() };
    let of = |alpha| data.observations("conversion_rate", &[MEAN, ("alpha", alpha)]);
    of(most).minus(&of(least)).sample()
}

/// The share of tokens of neither language, over layers and positive weights.
fn foreign_line(
    data: &StudyData<'_>,
    untrained: &StudyData<'_>,
    measure: &str,
    name: &str,
) -> ClaimLine {
    let rate = |data: &StudyData<'_>| {
        let at = |alpha: &String| {
            data.observations(measure, &[MEAN, ("alpha", alpha)]).tagged("alpha", alpha)
        };
        let weights = positive(data, measure);
        weights.iter().map(at).fold(Observations::default(), Observations::join).sample()
    };
    let own = rate(data);
    // What repeats its input decodes no third language either: tokens must be converted, too.
    ClaimLine::new(name, Evidence::Seeds(own.clone()))
        .against(Control::of_samples("untrained", &own, rate(untrained), LESS))
        .against(over_untrained(&converting(data), &converting(untrained)))
}

/// The mean of the upper half of the layers minus that of the lower half, each layer at the weight that is best in the other
/// seeds.
fn late_minus_early(data: &StudyData<'_>) -> SeedSample {
    let weights = positive(data, "bleu1");
    upper_minus_lower(&data.layers("bleu1"), |layer| {
        let of = |alpha: &String| {
            data.observations("bleu1", &[MEAN, ("layer", layer), ("alpha", alpha)])
        };
        chosen_by_others(&weights.iter().map(of).collect::<Vec<_>>())
    })
}
