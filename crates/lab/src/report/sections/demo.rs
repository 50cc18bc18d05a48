//! The demo: a bilingual encoder of two languages without a common word, and an untrained one.

use super::ReportSection;
use super::parts::{bar, bars_panel, legend, measured_tasks, named};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::record::TextRecord;
use crate::report::data::{FactorFilter, SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use terms::Estimate;

const SYSTEMS: [(&str, &str); 2] = [("untrained", "untrained"), ("bilingual", "bilingual")];
/// Sentences of the translation table.
const LINES: [&str; 5] = ["1", "2", "3", "4", "5"];

pub(in crate::report) const DEMO: ReportSection = ReportSection {
    id: "demo",
    title: "A bilingual encoder of two languages without a common word",
    place: "Both papers, in miniature",
    studies: &["demo"],
    method: "Two languages are generated over one world of meaning; they share no word. One small encoder is pretrained on \
             monolingual text of both by masked language modelling, without any translations. The untrained encoder, of the \
             same architecture, shows what positions and sentence length give by themselves.",
    claims: &[],
    show,
};

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("demo");
    let names: Vec<String> = SYSTEMS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let panels = [retrieval(&data), transfer(&data), rest(&data)].into_iter().flatten().collect();
    let figure = Figure {
        id: named(id, "overview"),
        title: "Bilingual and untrained encoder".to_owned(),
        legend: legend(&names, SeriesMark::Bar, false),
        panels,
    };
    vec![
        CaptionedItem::figure(
            "In miniature",
            "Sentence retrieval accuracy among 1,000 (chance 0.001): raw, mean-centred, and after Procrustes alignment. \
             Zero-shot transfer to the target language. Word translation after Procrustes alignment (P@1), CKA within sentence \
             lengths, and token conversion rate and dictionary accuracy under the language shift.",
            figure,
        ),
        CaptionedItem::table(
            "After Liu et al. 2020, Table 1",
            "A sentence, the predicted tokens when α times the difference of the language mean vectors is added to its \
             hidden states, and its translation. Nothing is masked, and nothing was trained for this.",
            translations(&data),
        ),
    ]
}

/// The bars of both systems for the best layer of a measure.
fn group(data: &StudyData<'_>, name: &str, measure: &str, factors: &FactorFilter<'_>) -> BarGroup {
    let of = |(colour, (system, _)): (usize, &(&str, &str))| {
        let factors = [factors, &[("system", *system)]].concat();
        let layered = data.best(measure, &factors).sample().mean();
        let mean: Option<Estimate> = layered.or_else(|| data.mean(measure, &factors));
        bar(colour, mean, None)
    };
    BarGroup { name: name.to_owned(), bars: SYSTEMS.iter().enumerate().map(of).collect() }
}

fn retrieval(data: &StudyData<'_>) -> Option<Panel> {
    let kinds = [("raw", "raw"), ("centered", "centred"), ("aligned", "aligned")];
    let groups = kinds.map(|(kind, name)| group(data, name, "retrieval", &[("kind", kind)]));
    bars_panel("Sentence retrieval", "P@1", groups.to_vec())
}

fn transfer(data: &StudyData<'_>) -> Option<Panel> {
    let groups = measured_tasks(data).into_iter().map(|task| {
        group(data, task.title(), task.measure(), &[("task", task.name()), ("role", "target")])
    });
    bars_panel("Zero-shot transfer", "score", groups.collect())
}

fn rest(data: &StudyData<'_>) -> Option<Panel> {
    let shifted = [("alpha", "1"), ("kind", "mean"), ("direction", "qaa-qab")];
    let groups = vec![
        group(data, "words, P@1", "p_at_1", &[]),
        group(data, "CKA", "cka_within", &[]),
        group(data, "conversion", "conversion_rate", &shifted),
        group(data, "dictionary", "dictionary_accuracy", &shifted),
    ];
    bars_panel("Words, CKA, shift", "value", groups)
}

fn translations(data: &StudyData<'_>) -> ReportTable {
    let columns = [
        ("input", "input"),
        ("0", "predicted, α = 0"),
        ("1", "α = 1"),
        ("2", "α = 2"),
        ("reference", "reference translation"),
    ];
    let text = |line: &str, alpha: &str| {
        let is = |note: &&&TextRecord, factor: &str, value: &str| {
            note.factors.get(factor).is_some_and(|own| own == value)
        };
        let note = data.texts.iter().find(|note| {
            is(note, "system", "bilingual") && is(note, "line", line) && is(note, "alpha", alpha)
        });
        Some(TableCell::Text(note?.text.clone()))
    };
    let row = |line: &&str| columns.iter().map(|(alpha, _)| text(line, alpha)).collect();
    let mut table = ReportTable::new(&columns.map(|(_, name)| name));
    table.rows = LINES.iter().filter_map(row).collect();
    table
}
