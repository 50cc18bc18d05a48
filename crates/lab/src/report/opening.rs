//! The first screen: one sentence that states the main result, and a figure.

use std::collections::BTreeMap;

use super::data::{SettingView, StudyData, UNTRAINED, at_main_layers};
use super::observations::SeedSample;
use super::sections::names::{pair_name, system_colour};
use super::sections::parts::{chance, chance_of_retrieval, dots, mark, measured_tasks, pairs_of};
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
    disjoint: bool,
}

/// Studies and encoders, the clearest first: disjoint vocabularies, then the default.
const CANDIDATES: [(&[&str], (&str, &str), bool); 4] = [
    (&["demo"], ("system", "bilingual"), true),
    (&["table-1", "anchors", "sharing"], ("condition", "no-anchors"), true),
    (&["table-1", "anchors", "sharing", "domain"], ("condition", "default"), false),
    (&["align-sentences"], ("system", "bilingual"), false),
];

fn main_system<'a>(views: &'a [SettingView<'a>]) -> Option<(&'a SettingView<'a>, MainSystem<'a>)> {
    for (studies, chosen, disjoint) in CANDIDATES {
        // Of several settings that with most seeds.
        let found = views
            .iter()
            .map(|view| (view, view.studies(studies)))
            .map(|(view, data)| (view, data.main_layers(&[chosen]).len(), data))
            .filter(|(_, seeds, _)| *seeds > 0)
            .max_by_key(|(_, seeds, _)| *seeds);
        if let Some((view, _, data)) = found {
            return Some((view, MainSystem { data, chosen, disjoint }));
        }
    }
    None
}

/// A pair of languages, and the layer of each seed at which all of its retrieval is read.
struct MainPair<'a> {
    name: String,
    data: StudyData<'a>,
    chosen: (&'static str, &'static str),
    layers: BTreeMap<u64, String>,
}

impl<'a> MainSystem<'a> {
    /// Each pair that was measured: what differs between pairs is not averaged.
    fn pairs(&self) -> Vec<MainPair<'a>> {
        let of = |pair: &String| {
            let data = self.data.only("pair", pair);
            let layers = data.main_layers(&[self.chosen]);
            MainPair { name: pair_name(pair), data, chosen: self.chosen, layers }
        };
        let pairs = pairs_of(&self.data, &["retrieval"]).iter().map(of).collect::<Vec<_>>();
        pairs.into_iter().filter(|pair| !pair.layers.is_empty()).collect()
    }
}

impl MainPair<'_> {
    /// Retrieval of the encoder, or of the untrained one at the same layer.
    fn retrieval(&self, system: &str, kind: &str) -> SeedSample {
        at_main_layers(&self.layers, |layer| {
            let factors = [("kind", kind), ("layer", layer)];
            match system {
                UNTRAINED => self.data.untrained("retrieval", &factors),
                _ => self.data.observations("retrieval", &[&[self.chosen], &factors[..]].concat()),
            }
        })
    }

    fn mean(&self, system: &str, kind: &str) -> Option<Estimate> {
        self.retrieval(system, kind).mean()
    }
}

/// The lowest and the highest of some shares.
fn span(shares: &[f64]) -> Option<String> {
    let (low, high) = shares
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
    let mut ends = [low, high].map(percent).to_vec();
    ends.dedup();
    (!shares.is_empty()).then(|| ends.join(" to "))
}

/// The headline of all records; none without sentence retrieval.
pub(super) fn headline(views: &[SettingView<'_>]) -> Option<Headline> {
    let (view, main) = main_system(views)?;
    let (pairs, chosen) = (main.pairs(), main.chosen.1);
    let shares = |system: &str, kind: &str| -> Vec<f64> {
        pairs.iter().filter_map(|pair| Some(pair.mean(system, kind)?.mean)).collect()
    };
    let sum = |kind| shares(chosen, kind).iter().sum::<f64>();
    // Where the languages stand apart, their means hide what they share: then the centred score is said to be that.
    let kind = if sum("centered") > 1.5 * sum("raw") { "centered" } else { "raw" };
    let after = if kind == "raw" { "" } else { " once each language\u{2019}s mean is subtracted" };
    let apart = match (main.disjoint, view.setting.invented) {
        // The words of invented languages differ; real ones have words in common, whatever their vocabularies.
        (true, true) => "no shared word",
        (true, false) => "disjoint vocabularies",
        (false, _) => "no translations to learn from",
    };
    let own: Vec<Estimate> = pairs.iter().filter_map(|pair| pair.mean(chosen, kind)).collect();
    let found = match (&pairs[..], &own[..]) {
        ([pair], [own]) => {
            let of = if view.setting.invented { "Two languages" } else { &pair.name };
            format!(
                "{of}, {apart}: {} of sentences find their translation{after}",
                percent(own.mean)
            )
        }
        _ => {
            let of = |(pair, own): (&MainPair<'_>, &Estimate)| {
                format!("{} {}", pair.name, percent(own.mean))
            };
            let each: Vec<String> = pairs.iter().zip(&own).map(of).collect();
            format!("Sentences that find their translation{after}: {}; {apart}", each.join(", "))
        }
    };
    let untrained = span(&shares(UNTRAINED, kind)).map(|share| format!("{share} untrained"));
    let chance = chance_of_retrieval(&main.data);
    let chance = chance.map(|chance| format!("{} chance", percent(chance.value)));
    let beside: Vec<String> = untrained.into_iter().chain(chance).collect();
    let text = [found, beside.join(", ")].join("; ").trim_end_matches("; ").to_owned();
    let seeds = match &own[..] {
        [Estimate { half_width: Some(half), n, .. }] => {
            format!("mean of {n} seeds, \u{b1}{} points", (100.0 * half).round())
        }
        own => match own.iter().map(|own| own.n).max() {
            Some(most) if most > 1 => format!("means of up to {most} seeds"),
            _ => "one seed".to_owned(),
        },
    };
    let details = format!(
        "Nearest neighbour among the sentences of the other language, at the layer where the trained encoder\u{2019}s raw retrieval \
         is best ({}, {seeds}).",
        view.setting
    );
    Some(Headline { text, details })
}

/// The figure below the headline where no run has saved its training: retrieval and transfer of the same encoder.
pub(super) fn figure(views: &[SettingView<'_>]) -> Option<Figure> {
    let (view, main) = main_system(views)?;
    if !view.study("demo").is_empty() {
        // Its own section is the next thing on the page.
        return None;
    }
    let (pairs, data) = (main.pairs(), &main.data);
    let systems = [main.chosen, ("system", UNTRAINED)];
    let named = |(_, system): (&str, &str)| {
        let colour = system_colour(system).unwrap_or(0);
        (data.name(system), colour)
    };
    let kinds =
        [("raw", "raw"), ("centered", "mean-centred"), ("aligned", "after Procrustes alignment")];
    // A row for each pair, where there are several.
    let row_name = |name: &str, pair: &MainPair<'_>| match pairs.len() {
        1 => name.to_owned(),
        _ => format!("{name}, {}", pair.name),
    };
    let rows = kinds.iter().flat_map(|(kind, name)| {
        let row = |pair: &MainPair<'_>| DotRow {
            name: row_name(name, pair),
            marks: systems
                .map(|system| {
                    let (name, colour) = named(system);
                    mark(&name, colour, &pair.retrieval(system.1, kind), None)
                })
                .to_vec(),
        };
        pairs.iter().map(row).collect::<Vec<_>>()
    });
    let rows = rows.collect();
    let references = chance_of_retrieval(data).into_iter().collect();
    let mut charts: Vec<Chart> =
        dots("Sentence retrieval", "P@1", rows, references).into_iter().collect();
    for task in measured_tasks(data).into_iter().take(3) {
        let of = |data: &StudyData<'_>, role: &str, name: String| {
            let marks = systems.map(|system| {
                let (name, colour) = named(system);
                let factors = [("task", task.name()), ("role", role)];
                let scores = match system.1 {
                    UNTRAINED => data.untrained(task.measure(), &factors),
                    _ => data.observations(task.measure(), &[&[system], &factors[..]].concat()),
                };
                mark(&name, colour, &scores.sample(), None)
            });
            DotRow { name, marks: marks.to_vec() }
        };
        let source = of(data, "source", "language of fine-tuning".to_owned());
        let targets = pairs
            .iter()
            .map(|pair| of(&pair.data, "target", row_name("other language, zero-shot", pair)));
        let rows = std::iter::once(source).chain(targets).collect();
        charts.extend(dots(task.title(), task.unit(), rows, vec![chance(task.chance())]));
    }
    let title = "What a bilingual encoder shares, beside an untrained one".to_owned();
    Some(Figure::of("main-result".to_owned(), title, &charts))
}
