//! How much of an old space a new language reaches, and how fast: retrieval and transfer of a language that a trained
//! encoder was given afterwards.

use super::ReportSection;
use super::parts::{
    Series, chosen_difference, figure, named, over_layers, over_untrained, pair_name, pairs_of,
    target,
};
use crate::draw::{Chart, short};
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{ClaimLine, Criterion, PaperClaim};
use crate::report::observations::Observations;

const STUDY: &str = "new-language";
/// Updates after which the new language is measured; those of the last count in the findings.
const STEPS: [&str; 2] = ["500", "2000"];
/// How the language was given, and how it is named in figures and tables.
const SYSTEMS: [(&str, &str); 3] = [
    ("embeddings", "its embeddings alone"),
    ("all", "all weights"),
    ("rehearsed", "all weights, old text too"),
];

pub(in crate::report) const NEW_LANGUAGE: ReportSection = ReportSection {
    id: "new-language",
    title: "How much of an old space does a new language reach, and how fast?",
    place: "beyond the papers",
    studies: &[STUDY],
    method: "An encoder is pretrained on all languages but the last. It is then given the last one: subwords and embeddings of \
             its own, trained on monolingual text, either alone with everything else frozen, or together with all other \
             weights, without or with the text of the old languages. Beside it stand an encoder that was pretrained on all \
             languages jointly, and an untrained one.",
    claims: &[
        PaperClaim {
            finding: "A new language reaches an old space with its embeddings alone",
            place: "Artetxe et al. 2020",
            paper: &|| "zero-shot transfer near that of joint training, in tables".to_owned(),
            quantity: "raw P@1 of the new language, embeddings alone minus untrained",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                new_pair(view, |data, pair| {
                    let own = layers(data, "embeddings", Some(STEPS[1]), pair);
                    let untrained = layers(data, "untrained", None, pair);
                    ClaimLine::new("", chosen_difference(&own, &untrained))
                        .against(over_untrained(&own, &untrained))
                })
            },
        },
        PaperClaim {
            finding: "It reaches further where all weights are trained with it, old text too",
            place: "Wang et al. 2020",
            paper: &|| "continued pretraining with new subwords gains, in tables".to_owned(),
            quantity: "raw P@1 of the new language, all weights and old text minus embeddings alone",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                new_pair(view, |data, pair| {
                    let own = layers(data, "rehearsed", Some(STEPS[1]), pair);
                    let other = layers(data, "embeddings", Some(STEPS[1]), pair);
                    let untrained = layers(data, "untrained", None, pair);
                    ClaimLine::new("", chosen_difference(&own, &other))
                        .against(over_untrained(&own, &untrained))
                })
            },
        },
        PaperClaim {
            finding: "Without old text, training all weights breaks the old space",
            place: "McCloskey & Cohen 1989 (catastrophic forgetting)",
            paper: &|| "no number for encoders of several languages".to_owned(),
            quantity: "raw P@1 of the old languages, with old text minus without",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let line = |(data, pairs): (StudyData<'_>, Vec<String>)| {
                    let (_, old) = pairs.split_last().expect("the new language's pair is there");
                    let of = |pair: &String| {
                        let own = layers(&data, "rehearsed", Some(STEPS[1]), pair);
                        let other = layers(&data, "all", Some(STEPS[1]), pair);
                        let untrained = layers(&data, "untrained", None, pair);
                        ClaimLine::new(pair_name(pair), chosen_difference(&own, &other))
                            .against(over_untrained(&own, &untrained))
                    };
                    old.iter().map(of).collect::<Vec<_>>()
                };
                by_added(view).into_iter().flat_map(line).collect()
            },
        },
    ],
    fails: "A new language does not reach an old space with its embeddings alone",
    numbers: &|view| {
        let Some((data, mut pairs)) = by_added(view).into_iter().next() else {
            return String::new();
        };
        let new = pairs.pop().unwrap_or_default();
        let of = |system: &str, steps: Option<&str>| {
            let mean = best(&data, system, steps, &new, "raw").sample().mean()?;
            Some(short(mean.mean))
        };
        let parts = SYSTEMS
            .iter()
            .filter_map(|(system, name)| Some(format!("{name} {}", of(system, Some(STEPS[1]))?)));
        let joint = of("joint", None).map(|joint| format!("joint training {joint}"));
        let parts: Vec<String> = parts.chain(joint).collect();
        if parts.is_empty() { String::new() } else { format!("P@1 {}", parts.join(", ")) }
    },
    show: &show,
};

/// The factors of a system's retrieval.
fn factors<'a>(
    system: &'a str,
    steps: Option<&'a str>,
    pair: &'a str,
    kind: &'a str,
) -> Vec<(&'a str, &'a str)> {
    let mut factors = vec![("system", system), ("pair", pair), ("kind", kind)];
    factors.extend(steps.map(|steps| ("steps", steps)));
    factors
}

/// Raw retrieval of a system, layer by layer.
fn layers(
    data: &StudyData<'_>,
    system: &str,
    steps: Option<&str>,
    pair: &str,
) -> Vec<Observations> {
    data.by_layer("retrieval", &factors(system, steps, pair, "raw"))
}

/// Retrieval of a system at its best layer.
fn best(
    data: &StudyData<'_>,
    system: &str,
    steps: Option<&str>,
    pair: &str,
    kind: &str,
) -> Observations {
    data.best("retrieval", &factors(system, steps, pair, kind))
}

/// The records of each language that was added, with its pairs of languages, that of the new language last.
fn by_added<'a>(view: &SettingView<'a>) -> Vec<(StudyData<'a>, Vec<String>)> {
    let data = view.study(STUDY);
    let added = data.levels(&["retrieval"], "added", &[]);
    let of = |language: &String| {
        let data = data.only("added", language);
        let mut pairs = pairs_of(&data, &["retrieval"]);
        // False before true, and otherwise as they were.
        pairs.sort_by_key(|pair| target(pair) == language);
        pairs.last().is_some_and(|last| target(last) == language).then_some((data, pairs))
    };
    added.iter().filter_map(of).collect()
}

/// A line about the pair of the source and each new language.
fn new_pair(
    view: &SettingView<'_>,
    line: impl Fn(&StudyData<'_>, &str) -> ClaimLine,
) -> Vec<ClaimLine> {
    let by_added = by_added(view);
    let several = by_added.len() > 1;
    let of = |(data, pairs): (StudyData<'_>, Vec<String>)| {
        let new = pairs.last().expect("there is a pair");
        let of = if several { pair_name(new) } else { String::new() };
        ClaimLine { of, ..line(&data, new) }
    };
    by_added.into_iter().map(of).collect()
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    by_added(view).iter().flat_map(|(data, pairs)| show_added(id, data, pairs)).collect()
}

fn show_added(id: &str, data: &StudyData<'_>, pairs: &[String]) -> Vec<CaptionedItem> {
    let mut series: Vec<(&str, Vec<(&str, &str)>)> = SYSTEMS
        .map(|(system, name)| {
            (name, vec![("system", system), ("steps", STEPS[1]), ("kind", "raw")])
        })
        .to_vec();
    series.push(("joint training", vec![("system", "joint"), ("kind", "raw")]));
    series.push(("untrained", vec![("system", "untrained"), ("kind", "raw")]));
    let series: &Series<'_> = &series;
    let panel = |pair: &String| {
        over_layers(data, "retrieval", &[("pair", pair)], series, (&pair_name(pair), "P@1, raw"))
    };
    let panels: Vec<Chart> = pairs.iter().filter_map(panel).collect();
    let new = pairs.last().map_or("", |pair| target(pair));
    let topic = format!("Retrieval of a new language, {new}");
    vec![
        CaptionedItem::figure(
            BEYOND,
            "Raw sentence retrieval by layer after 2,000 updates with the new language, which is that of the last panel.",
            figure(named(id, &format!("layers-{new}")), &topic, &panels),
        ),
        CaptionedItem::table(
            BEYOND,
            "Sentence retrieval (P@1 at the best layer) and NER (F1) by updates with the new language, which is that of the last pair.",
            table(data, pairs),
        ),
    ]
}

fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let mut table =
        ReportTable::new(&["pair", "trained", "updates", "P@1, raw", "P@1, centred", "NER, F1"]);
    let added = SYSTEMS
        .iter()
        .flat_map(|(system, name)| STEPS.iter().map(move |steps| (*system, *name, Some(*steps))));
    let others = [("joint", "jointly", None), ("untrained", "nothing", None)];
    let systems: Vec<_> = added.chain(others).collect();
    for pair in pairs {
        for &(system, name, steps) in &systems {
            let of = |kind| TableCell::Ours(best(data, system, steps, pair, kind).sample().mean());
            let mut scores = vec![("system", system), ("pair", &**pair), ("role", "target")];
            scores.push(("task", "ner"));
            scores.extend(steps.map(|steps| ("steps", steps)));
            table.rows.push(vec![
                TableCell::Name(pair_name(pair)),
                TableCell::Text(name.to_owned()),
                TableCell::Text(steps.unwrap_or("").to_owned()),
                of("raw"),
                of("centered"),
                TableCell::Ours(data.mean("f1", &scores)),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::data::tests::record;
    use crate::report::data::views;

    /// French comes before German in the order of pairs, and is still the one that was added.
    #[test]
    fn the_language_that_was_added_is_judged() {
        let of = |pair: &str| {
            let factors =
                format!("system=embeddings steps=2000 added=fr pair={pair} kind=raw layer=0");
            record(STUDY, 1, "retrieval", &factors, 0.5)
        };
        let records = [of("en-de"), of("en-fr")];
        let views = views(&records, &[]);
        let [(_, pairs)] = &by_added(&views[0])[..] else { panic!("one language was added") };
        assert_eq!(pairs, &["en-de", "en-fr"]);
        // Without results of the new language no other is judged in its place.
        let old = &records[..1];
        assert!(by_added(&crate::report::data::views(old, &[])[0]).is_empty());
    }
}
