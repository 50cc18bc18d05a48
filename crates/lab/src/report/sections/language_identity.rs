//! How much of the language is in the vector, and what removes it: a linear probe by layer; and the neurons that serve one
//! language alone.

use super::ReportSection;
use super::parts::{MORE, Series, by_pair, figure, named, over_layers, pair_name, pairs_of};
use crate::draw::{Chart, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim};
use crate::report::observations::{Observations, SeedSample};

const STUDY: &str = "language-identity";
/// The accuracy of the probe that sees more than means.
const NONLINEAR: &str = "language_id_nonlinear";
/// What is removed leaves less than this beyond shuffled labels.
const LEFT: f64 = 0.05;
const CONDITIONS: [&str; 3] = ["default", "no-anchors", "untrained"];
const TREATMENTS: [&str; 4] = ["raw", "centered", "lsar", "without-1"];

pub(in crate::report) const LANGUAGE_IDENTITY: ReportSection = ReportSection {
    id: "language-identity",
    title: "How much of the language is in the vector, and what removes it?",
    place: "beyond the papers",
    studies: &[STUDY],
    method: "A logistic regression is trained to tell the language of a sentence from its mean vector at a layer, and tested on other \
             sentences; all are translations of one another. It is repeated after each language's mean was subtracted (which a \
             shift by the difference of means equals, for a linear probe), after the subspace of the languages' means \
             was removed (LSAR), and after the leading principal direction of all vectors was removed. A linear probe sees differences of \
             means alone, and none are left after centring, whatever the encoder; so a second one also reads squares, hyperbolic tangents and \
             products of columns, in which languages of one mean differ by spread, skew and correlation. Each accuracy is read against that of the \
             same procedure after labels were shuffled, before means and directions were learned. Neurons of the feed-forward \
             layers are specific to a language where they are active in it and in no other (LAPE); they are set to 0, and the MLM \
             loss is compared with that of all neurons, beside as many random neurons of the same layers.",
    claims: &[
        PaperClaim {
            finding: "A linear probe tells the language of a sentence from its vector",
            place: "Libovický et al. 2020",
            paper: || "shown in a table, for mBERT and its relatives".to_owned(),
            quantity: "accuracy of the probe minus that with shuffled labels, means over layers",
            criterion: Criterion::Above(0.0),
            measure: told_lines,
        },
        PaperClaim {
            finding: "Centring removes language identity",
            place: "Libovický et al. 2020",
            paper: || "shown in a table".to_owned(),
            quantity: "accuracy, after centring, of the probe that sees more than means, minus that with shuffled labels, means over layers",
            criterion: Criterion::Below(LEFT),
            measure: |view| left_lines(view, "centered"),
        },
        PaperClaim {
            finding: "Removing the subspace of the languages' means removes language identity",
            place: "Xie et al. 2022",
            paper: || "shown in figures".to_owned(),
            quantity: "accuracy, after LSAR, of the probe that sees more than means, minus that with shuffled labels, means over layers",
            criterion: Criterion::Below(LEFT),
            measure: |view| left_lines(view, "lsar"),
        },
        PaperClaim {
            finding: "A language's own tokens are predicted worse without its neurons than the other language's",
            place: "Tang et al. 2024",
            paper: || "shown in a figure, for LLaMA-2 and BLOOM".to_owned(),
            quantity: "rise of the MLM loss without a language's neurons, of its own tokens minus of the other's",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                neuron_lines(view, |data, condition| {
                    let of = |of| rise(data, condition, of, "specific");
                    of("own").minus(&of("other"))
                })
            },
        },
        PaperClaim {
            finding: "A language's own tokens are predicted worse without its neurons than without random neurons",
            place: "Tang et al. 2024",
            paper: || "shown in a figure".to_owned(),
            quantity: "rise of a language's MLM loss without its own neurons minus without as many random ones",
            criterion: Criterion::Above(0.0),
            measure: |view| {
                neuron_lines(view, |data, condition| {
                    let of = |neurons| rise(data, condition, "own", neurons);
                    of("specific").minus(&of("random"))
                })
            },
        },
    ],
    fails: "A linear probe does not tell the language of a sentence from its vector",
    numbers: |view| {
        let data = view.study(STUDY);
        let of = |treatment: &str| {
            let factors = [("condition", "default"), ("treatment", treatment)];
            let mean = data.mean("language_id", &factors)?;
            Some(format!("{} {}", name(treatment), short(mean.mean)))
        };
        let parts: Vec<String> = TREATMENTS.iter().filter_map(|one| of(one)).collect();
        if parts.is_empty() { String::new() } else { format!("accuracy {}", parts.join(", ")) }
    },
    show,
};

/// How a treatment is named in figures and tables.
fn name(treatment: &str) -> &str {
    match treatment {
        "centered" => "centred",
        "lsar" => "LSAR",
        "without-1" => "without leading direction",
        other => other,
    }
}

/// What a probe tells after a treatment beyond what it tells of languages that do not differ.
fn excess(data: &StudyData<'_>, measure: &str, condition: &str, treatment: &str) -> Observations {
    let factors = [("condition", condition), ("treatment", treatment)];
    let found = data.observations(measure, &factors);
    found.minus(&data.observations(&format!("{measure}_shuffled"), &factors))
}

/// A line for each pair of languages: what a linear probe tells in the default encoder beside the untrained one.
fn told_lines(view: &SettingView<'_>) -> Vec<ClaimLine> {
    by_pair(&view.study(STUDY), &["language_id"], |data, _| {
        let [own, untrained] =
            ["default", "untrained"].map(|one| excess(data, "language_id", one, "raw"));
        ClaimLine::new("", Evidence::Seeds(own.sample())).against(Control::of(
            "untrained",
            &own,
            &untrained,
        ))
    })
}

/// A line for each pair of languages: what a treatment leaves to tell in the default encoder. To hold it must have removed more than
/// from an untrained one; what is left is left, whatever there is in that.
fn left_lines(view: &SettingView<'_>, treatment: &str) -> Vec<ClaimLine> {
    by_pair(&view.study(STUDY), &[NONLINEAR], |data, _| {
        let left = |condition| excess(data, NONLINEAR, condition, treatment);
        let removed = |one| excess(data, NONLINEAR, one, "raw").minus(&left(one));
        let [own, untrained] = ["default", "untrained"].map(removed);
        let left = left("default").sample();
        let interval = left.mean().and_then(|mean| mean.interval());
        let line = ClaimLine::new("", Evidence::Seeds(left));
        match interval {
            Some((low, _)) if low > LEFT => line,
            _ => line.against(Control::of("removed from untrained", &own, &untrained)),
        }
    })
}

/// By how much the MLM loss rises without neurons, means over languages.
fn rise(data: &StudyData<'_>, condition: &str, of: &str, neurons: &str) -> SeedSample {
    let factors = [("condition", condition), ("of", of), ("neurons", neurons)];
    data.observations("neuron_loss", &factors).sample()
}

/// A line for each pair of languages about neurons, of the default encoder beside the untrained one.
fn neuron_lines(
    view: &SettingView<'_>,
    quantity: impl Fn(&StudyData<'_>, &str) -> SeedSample,
) -> Vec<ClaimLine> {
    by_pair(&view.study(STUDY), &["neuron_loss"], |data, _| {
        let own = quantity(data, "default");
        let control = Control::of_samples("untrained", &own, quantity(data, "untrained"), MORE);
        ClaimLine::new("", Evidence::Seeds(own)).against(control)
    })
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study(STUDY);
    let pairs = pairs_of(&data, &["language_id"]);
    let panels = |measure: &str, series: &Series<'_>, unit: &str| -> Vec<Chart> {
        let panel = |pair: &String| {
            over_layers(&data, measure, &[("pair", pair)], series, (&pair_name(pair), unit))
        };
        pairs.iter().filter_map(panel).collect()
    };
    let treatments: &Series<'_> = &TREATMENTS.map(|treatment| {
        (name(treatment), vec![("condition", "default"), ("treatment", treatment)])
    });
    let conditions: &Series<'_> = &CONDITIONS
        .map(|condition| (condition, vec![("condition", condition), ("treatment", "raw")]));
    let encoders: &Series<'_> =
        &CONDITIONS.map(|condition| (condition, vec![("condition", condition)]));
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Accuracy of the probe in the default encoder, by layer and treatment; the dashed line is the share of the most \
             frequent language.",
            figure(
                named(id, "probe"),
                "Language told",
                &panels("language_id", treatments, "accuracy"),
            ),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The same of the probe that also sees spread, skew and correlations. After centring a linear probe has nothing to see; what this \
             one tells then is in more than the means.",
            figure(
                named(id, "nonlinear"),
                "Language told by more than means",
                &panels(NONLINEAR, treatments, "accuracy"),
            ),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The share of the variance of sentence vectors that lies between languages, by layer.",
            figure(
                named(id, "variance"),
                "Variance between languages",
                &panels("variance_between", conditions, "share of variance"),
            ),
        ),
        CaptionedItem::table(
            BEYOND,
            "Means over layers: accuracy of the linear probe and of the one that sees more than means, each beside the same after labels were shuffled before the \
             treatment, and the share of variance between languages.",
            table(&data, &pairs),
        ),
        CaptionedItem::figure(
            BEYOND,
            "The share of a layer's neurons that are specific to a language, means over languages.",
            figure(
                named(id, "neurons"),
                "Language-specific neurons",
                &panels("neuron_share", encoders, "share of neurons"),
            ),
        ),
        CaptionedItem::table(
            BEYOND,
            "By how much the MLM loss (nats) rises without a language's neurons and without as many random ones of the same \
             layers, and the share of neurons that are specific to both languages among those specific to either.",
            neuron_table(&data),
        ),
    ]
}

fn neuron_table(data: &StudyData<'_>) -> ReportTable {
    let heads =
        ["pair", "encoder", "neurons set to 0", "own language", "other language", "overlap"];
    let mut table = ReportTable::new(&heads);
    for pair in pairs_of(data, &["neuron_loss"]) {
        for condition in data.levels(&["neuron_loss"], "condition", &CONDITIONS) {
            for (neurons, shown) in [("specific", "language-specific"), ("random", "random")] {
                let own = [("pair", &*pair), ("condition", &*condition)];
                let rise = |of| {
                    let factors = [&own[..], &[("of", of), ("neurons", neurons)]].concat();
                    TableCell::Ours(data.mean("neuron_loss", &factors))
                };
                let overlap = match neurons {
                    "specific" => TableCell::Ours(data.mean("neuron_overlap", &own)),
                    _ => TableCell::Text(String::new()),
                };
                table.rows.push(vec![
                    TableCell::Name(pair_name(&pair)),
                    TableCell::Text(data.name(&condition)),
                    TableCell::Text(shown.to_owned()),
                    rise("own"),
                    rise("other"),
                    overlap,
                ]);
            }
        }
    }
    table
}

fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let heads = [
        "pair",
        "encoder",
        "treatment",
        "linear",
        "shuffled labels",
        "more than means",
        "shuffled labels",
        "variance between",
    ];
    let mut table = ReportTable::new(&heads);
    for pair in pairs {
        for condition in data.levels(&["language_id"], "condition", &CONDITIONS) {
            for treatment in data.levels(&["language_id"], "treatment", &TREATMENTS) {
                let own =
                    [("pair", &**pair), ("condition", &*condition), ("treatment", &*treatment)];
                let of = |measure| TableCell::Ours(data.mean(measure, &own));
                table.rows.push(vec![
                    TableCell::Name(pair_name(pair)),
                    TableCell::Text(data.name(&condition)),
                    TableCell::Text(name(&treatment).to_owned()),
                    of("language_id"),
                    of("language_id_shuffled"),
                    of(NONLINEAR),
                    of("language_id_nonlinear_shuffled"),
                    of("variance_between"),
                ]);
            }
        }
    }
    table
}
