//! The demo: a bilingual encoder of two languages without a common word, and an untrained one.

use std::collections::BTreeSet;

use super::parts::{
    chance, chance_of_retrieval, chance_of_words, dots, mark, measured_tasks, named, system_colour,
};
use crate::draw::figure::percent;
use crate::draw::{Chart, DotRow, Figure};
use crate::report::claims::SectionCode;
use crate::report::data::{FactorFilter, SettingView, at_main_layers};
use crate::report::exhibit::CaptionedItem;
use crate::report::observations::SeedSample;
use crate::spaces::translating_layer;

const SYSTEMS: [&str; 2] = ["bilingual", "untrained"];

pub(super) const CODE: SectionCode = SectionCode {
    rules: &[],
    show: Some(&show),
    numbers: Some(|view| {
        let tasks =
            demo_measures(view).into_iter().filter(|measure| measure.panel == DemoPanel::Transfer);
        let score = |measure: DemoMeasure| {
            Some(format!("{} {}", measure.short, percent(measure.systems[0].mean()?.mean)))
        };
        let scores: Vec<String> = tasks.filter_map(score).collect();
        match scores.is_empty() {
            true => String::new(),
            false => format!("fine-tuned on language A alone, {} in language B", scores.join(", ")),
        }
    }),
};

#[derive(Clone, Copy, PartialEq)]
enum DemoPanel {
    Retrieval,
    Transfer,
    Rest,
}

/// A measure of the demo: a row of its closing table, and one of its figure.
pub(in crate::report) struct DemoMeasure {
    panel: DemoPanel,
    /// As the table names it.
    pub(in crate::report) name: String,
    /// As the figure does.
    short: String,
    pub(in crate::report) chance: Option<f64>,
    /// The bilingual and the untrained encoder.
    pub(in crate::report) systems: [SeedSample; 2],
}

/// All measures. Those of the space are of one layer: that of the bilingual encoder's best raw retrieval, for both encoders.
pub(in crate::report) fn demo_measures(view: &SettingView<'_>) -> Vec<DemoMeasure> {
    let data = view.study("demo");
    let layers = data.main_layers(&[("system", SYSTEMS[0])]);
    let of = |measure: &str, factors: &FactorFilter<'_>| {
        SYSTEMS.map(|system| {
            data.observations(measure, &[factors, &[("system", system)]].concat()).sample()
        })
    };
    let at_layer = |measure: &str, factors: &FactorFilter<'_>| {
        SYSTEMS.map(|system| {
            at_main_layers(&layers, |layer| {
                let own = [("system", system), ("layer", layer)];
                data.observations(measure, &[factors, &own].concat())
            })
        })
    };
    let measure = |panel, name: &str, short: &str, chance: Option<f64>, systems| {
        let (name, short) = (name.to_owned(), short.to_owned());
        DemoMeasure { panel, name, short, chance, systems }
    };
    let mut all = Vec::new();
    let found = chance_of_retrieval(&data).map(|chance| chance.value);
    for (kind, name, short) in [
        ("raw", "sentence retrieval P@1, raw", "raw"),
        ("centered", "  mean-centred", "centred"),
        ("aligned", "  after Procrustes alignment", "aligned"),
    ] {
        let systems = at_layer("retrieval", &[("kind", kind)]);
        all.push(measure(DemoPanel::Retrieval, name, short, found, systems));
    }
    let words = chance_of_words(&data, "p_at_1", &[]).map(|chance| chance.value);
    let systems = at_layer("p_at_1", &[]);
    all.push(measure(
        DemoPanel::Rest,
        "word translation P@1, Procrustes",
        "word translation, P@1",
        words,
        systems,
    ));
    for task in measured_tasks(&data) {
        let title = task.title();
        let is_acronym = title.chars().all(char::is_uppercase);
        let title = if is_acronym { title.to_owned() } else { title.to_lowercase() };
        let name = format!("zero-shot {title} {}", task.unit());
        // Where labels decide it, chance is not known.
        let chance = Some(task.chance()).filter(|chance| *chance > 0.0);
        let systems = of(task.measure(), &[("task", task.name()), ("role", "target")]);
        all.push(measure(DemoPanel::Transfer, &name, task.title(), chance, systems));
    }
    let systems = at_layer("cka_within", &[]);
    let name = "CKA within sentences of one length";
    all.push(measure(DemoPanel::Rest, name, "CKA within sentence lengths", None, systems));
    let layer = translating_layer(data.depth.unwrap_or(0)).to_string();
    let shift =
        [("alpha", "1"), ("kind", "mean"), ("direction", "qaa-qab"), ("layer", layer.as_str())];
    for (of_shift, name, short) in [
        (
            "conversion_rate",
            "token conversion rate, mean difference shift",
            "tokens converted by the shift",
        ),
        ("dictionary_accuracy", "  exact token translation", "of these, dictionary translations"),
    ] {
        all.push(measure(DemoPanel::Rest, name, short, None, of(of_shift, &shift)));
    }
    all
}

/// The layer of most of them: of several seeds, the layers.
pub(in crate::report) fn demo_layer(view: &SettingView<'_>) -> String {
    let layers = view.study("demo").main_layers(&[("system", SYSTEMS[0])]);
    let different: BTreeSet<String> = layers.into_values().collect();
    different.into_iter().collect::<Vec<_>>().join(", ")
}

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let (data, measures) = (view.study("demo"), demo_measures(view));
    let row = |measure: &DemoMeasure| {
        let chance = measure.chance.filter(|_| measure.panel != DemoPanel::Retrieval);
        let chance =
            chance.map_or(String::new(), |chance| format!(" (chance {})", percent(chance)));
        let marks = SYSTEMS.iter().zip(&measure.systems).map(|(system, sample)| {
            mark(&data.name(system), system_colour(system).unwrap_or(0), sample, None)
        });
        DotRow { name: format!("{}{chance}", measure.short), marks: marks.collect() }
    };
    let panel = |panel: DemoPanel, title: &str, unit: &str, level: Option<f64>| {
        let rows = measures.iter().filter(|measure| measure.panel == panel).map(row).collect();
        dots(title, unit, rows, level.map(chance).into_iter().collect())
    };
    let found = measures[0].chance;
    let charts: Vec<Chart> = [
        panel(DemoPanel::Retrieval, "Sentence retrieval", "P@1", found),
        panel(DemoPanel::Transfer, "Zero-shot transfer", "score", None),
        panel(DemoPanel::Rest, "Words, CKA, shift", "value", None),
    ]
    .into_iter()
    .flatten()
    .collect();
    let retrieval = measures[0].systems.each_ref().map(|sample| sample.mean());
    let title = match retrieval {
        [Some(trained), Some(untrained)] => format!(
            "Bilingual and untrained encoder: raw sentence retrieval {} and {}",
            percent(trained.mean),
            percent(untrained.mean)
        ),
        _ => "Bilingual and untrained encoder".to_owned(),
    };
    let caption = format!(
        "Sentence retrieval accuracy{}: raw, mean-centred, and after Procrustes alignment. Zero-shot transfer to the target \
         language. Word translation after Procrustes alignment (P@1), CKA within sentence lengths, and token conversion rate and \
         dictionary accuracy under the language shift from A to B, α = 1, after layer {}. Retrieval, words and CKA are of layer {}, \
         where the bilingual encoder\u{2019}s raw retrieval is best, for both encoders.",
        found.map_or(String::new(), |chance| format!(" (chance {})", percent(chance))),
        translating_layer(data.depth.unwrap_or(0)),
        demo_layer(view),
    );
    let figure = Figure::of(named(id, "overview"), title, &charts);
    vec![CaptionedItem::figure("In miniature", &caption, figure)]
}
