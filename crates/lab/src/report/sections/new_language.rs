//! How much of an old space a new language reaches, and how fast: retrieval and transfer of a language that a trained
//! encoder was given afterwards.

use super::parts::{Series, added, figure, named, over_layers, pair_name, target};
use crate::draw::{Chart, short};
use crate::report::claims::SectionCode;
use crate::report::data::SettingView;
use crate::report::data::StudyData;
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell};
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

pub(super) const CODE: SectionCode = SectionCode {
    rules: &[],
    show: Some(&show),
    numbers: Some(|view| {
        let Some((data, mut pairs)) = added(&view.study(STUDY)).into_iter().next() else {
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
    }),
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

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    added(&view.study(STUDY)).iter().flat_map(|(data, pairs)| show_added(id, data, pairs)).collect()
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
        let [(_, pairs)] = &added(&views[0].study(STUDY))[..] else {
            panic!("one language was added")
        };
        assert_eq!(pairs, &["en-de", "en-fr"]);
        // Without results of the new language no other is judged in its place.
        let old = &records[..1];
        assert!(added(&crate::report::data::views(old, &[])[0].study(STUDY)).is_empty());
    }
}
