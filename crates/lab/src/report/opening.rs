//! The first screen: one sentence that states the main result, and a figure.

use super::data::{SettingView, StudyData, UNTRAINED, best_of};
use super::observations::Observations;
use super::sections::names::system_colour;
use super::sections::parts::{chance, chance_of_retrieval, dots, mark, measured_tasks};
use crate::draw::figure::percent;
use crate::draw::{Chart, DotRow, Figure};
use terms::Estimate;

/// The main result in a sentence, and its details in another.
pub(super) struct Headline {
    pub(super) text: String,
    pub(super) details: String,
}

/// The encoder that the headline is about.
struct MainSystem<'a> {
    data: StudyData<'a>,
    /// The factor and level that choose its records.
    chosen: (&'static str, &'static str),
    /// How it begins the sentence.
    about: &'static str,
}

const NO_SHARED_WORD: &str = "Two languages, no shared word";
const NO_TRANSLATIONS: &str = "Two languages, no translations to learn from";

/// Studies and encoders, the clearest first: no shared word, then the default.
const CANDIDATES: [(&[&str], (&str, &str), &str); 4] = [
    (&["demo"], ("system", "bilingual"), NO_SHARED_WORD),
    (&["table-1", "anchors", "sharing"], ("condition", "no-anchors"), NO_SHARED_WORD),
    (&["table-1", "anchors", "sharing", "domain"], ("condition", "default"), NO_TRANSLATIONS),
    (&["align-sentences"], ("system", "bilingual"), NO_TRANSLATIONS),
];

fn main_system<'a>(views: &'a [SettingView<'a>]) -> Option<(&'a SettingView<'a>, MainSystem<'a>)> {
    for (studies, chosen, about) in CANDIDATES {
        // Of several settings that with most seeds.
        let found = views
            .iter()
            .map(|view| (view, view.studies(studies)))
            .filter(|(_, data)| !data.by_layer("retrieval", &[chosen]).is_empty())
            .filter(|(_, data)| best(data, chosen, "raw").is_some())
            .max_by_key(|(_, data)| best(data, chosen, "raw").map_or(0, |mean| mean.n));
        if let Some((view, data)) = found {
            return Some((view, MainSystem { data, chosen, about }));
        }
    }
    None
}

fn at_best_layer(data: &StudyData<'_>, chosen: (&str, &str), kind: &str) -> Observations {
    let of = |layer: &String| {
        let factors = [("kind", kind), ("layer", layer.as_str())];
        match chosen.1 {
            UNTRAINED => data.untrained("retrieval", &factors),
            _ => data.observations("retrieval", &[&[chosen], &factors[..]].concat()),
        }
    };
    best_of(data.layers("retrieval").iter().map(of).collect())
}

fn best(data: &StudyData<'_>, chosen: (&str, &str), kind: &str) -> Option<Estimate> {
    at_best_layer(data, chosen, kind).sample().mean()
}

/// The headline of all records; none without sentence retrieval.
pub(super) fn headline(views: &[SettingView<'_>]) -> Option<Headline> {
    let (view, MainSystem { data, chosen, about }) = main_system(views)?;
    let (raw, centred) = (best(&data, chosen, "raw")?, best(&data, chosen, "centered"));
    // Where the languages stand apart, their means hide what they share: then the centred score is said to be that.
    let apart = centred.filter(|centred| centred.mean > 1.5 * raw.mean);
    let (kind, own) = apart.map_or(("raw", raw), |centred| ("centered", centred));
    let mut beside = Vec::new();
    let untrained = best(&data, ("system", UNTRAINED), kind);
    beside.extend(untrained.map(|mean| format!("{} untrained", percent(mean.mean))));
    let chance = chance_of_retrieval(&data);
    beside.extend(chance.map(|chance| format!("{} chance", percent(chance.value))));
    let after = if kind == "raw" { "" } else { " once each language\u{2019}s mean is subtracted" };
    let text = format!(
        "{about}: {} of sentences find their translation{after}{}{}",
        percent(own.mean),
        if beside.is_empty() { "" } else { "; " },
        beside.join(", ")
    );
    let seeds = match own.half_width {
        Some(half) => format!("mean of {} seeds, \u{b1}{} points", own.n, (100.0 * half).round()),
        None => "one seed".to_owned(),
    };
    let details = format!(
        "Nearest neighbour among the sentences of the other language, at each seed\u{2019}s best layer ({}, {seeds}).",
        view.setting
    );
    Some(Headline { text, details })
}

/// The figure below the headline where no run has saved its training: retrieval and transfer of the same encoder.
pub(super) fn figure(views: &[SettingView<'_>]) -> Option<Figure> {
    let (view, MainSystem { data, chosen, .. }) = main_system(views)?;
    if !view.study("demo").is_empty() {
        // Its own section is the next thing on the page.
        return None;
    }
    let systems = [chosen, ("system", UNTRAINED)];
    let named = |(_, system): (&str, &str)| {
        let colour = system_colour(system).unwrap_or(0);
        (data.name(system), colour)
    };
    let kinds =
        [("raw", "raw"), ("centered", "mean-centred"), ("aligned", "after Procrustes alignment")];
    let kind = |(kind, name): (&str, &str)| DotRow {
        name: name.to_owned(),
        marks: systems
            .map(|system| {
                let (name, colour) = named(system);
                mark(&name, colour, &at_best_layer(&data, system, kind).sample(), None)
            })
            .to_vec(),
    };
    let references = chance_of_retrieval(&data).into_iter().collect();
    let mut charts: Vec<Chart> =
        dots("Sentence retrieval", "P@1", kinds.map(kind).to_vec(), references)
            .into_iter()
            .collect();
    for task in measured_tasks(&data).into_iter().take(3) {
        let of = |role: &str| {
            let marks = systems.map(|system| {
                let (name, colour) = named(system);
                let factors = [("task", task.name()), ("role", role)];
                let scores = match system.1 {
                    UNTRAINED => data.untrained(task.measure(), &factors),
                    _ => data.observations(task.measure(), &[&[system], &factors[..]].concat()),
                };
                mark(&name, colour, &scores.sample(), None)
            });
            let name = if role == "source" {
                "language of fine-tuning"
            } else {
                "other language, zero-shot"
            };
            DotRow { name: name.to_owned(), marks: marks.to_vec() }
        };
        let rows = ["source", "target"].map(of).to_vec();
        charts.extend(dots(task.title(), task.unit(), rows, vec![chance(task.chance())]));
    }
    let title = "What a bilingual encoder shares, beside an untrained one".to_owned();
    Some(Figure::of("main-result".to_owned(), title, &charts))
}
