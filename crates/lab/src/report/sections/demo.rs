//! The demo: one encoder of two languages without a common word, beside one that learned nothing.

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
    title: "One encoder, two languages without a common word",
    place: "Both papers, in miniature",
    studies: &["demo"],
    asks: "Two languages are invented that speak of one world and share no word. One small encoder reads plain text of both and \
           learns to guess hidden words; no sentence is ever translated for it. Beside it stands the same encoder before it \
           learned anything, which shows what position and sentence length give for nothing.",
    claims: &[],
    show,
};

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("demo");
    let names: Vec<String> = SYSTEMS.iter().map(|(_, name)| (*name).to_owned()).collect();
    let panels = [retrieval(&data), transfer(&data), rest(&data)].into_iter().flatten().collect();
    let figure = Figure {
        id: named(id, "overview"),
        title: "Trained and untrained".to_owned(),
        legend: legend(&names, SeriesMark::Bar, false),
        panels,
    };
    vec![
        CaptionedItem::figure(
            "In miniature",
            "Sentences that find their translation among 1,000 (chance is 0.001): as the points are, with each \
             language's mean taken away, after a rotation. Then tasks learned in one language and asked in the other. \
             Then words found by a rotation, similarity of layers within sentences of a length, and words said in the \
             other language when a sentence is moved by the difference of the means.",
            figure,
        ),
        CaptionedItem::table(
            "After paper 2, Table 1",
            "A sentence, what the encoder says when it is moved by α times the difference of the means, and its \
             translation. Nothing was masked and nothing was trained for this.",
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
    let kinds = [("raw", "as they are"), ("shifted", "less means"), ("aligned", "rotated")];
    let groups = kinds.map(|(kind, name)| group(data, name, "retrieval", &[("kind", kind)]));
    bars_panel("Translations found", "share of 1,000 sentences", groups.to_vec())
}

fn transfer(data: &StudyData<'_>) -> Option<Panel> {
    let groups = measured_tasks(data).into_iter().map(|task| {
        group(data, task.title(), task.measure(), &[("task", task.name()), ("role", "target")])
    });
    bars_panel("The other language", "score", groups.collect())
}

fn rest(data: &StudyData<'_>) -> Option<Panel> {
    let shifted = [("alpha", "1"), ("kind", "mean"), ("direction", "qaa-qab")];
    let groups = vec![
        group(data, "words", "p_at_1", &[]),
        group(data, "CKA", "cka_within", &[]),
        group(data, "converted", "conversion_rate", &shifted),
        group(data, "and right", "dictionary_accuracy", &shifted),
    ];
    bars_panel("Words, layers, shift", "share", groups)
}

fn translations(data: &StudyData<'_>) -> ReportTable {
    let columns = [
        ("input", "read"),
        ("0", "said, α = 0"),
        ("1", "said, moved by α = 1"),
        ("2", "by α = 2"),
        ("reference", "the translation"),
    ];
    let said = |line: &str, alpha: &str| {
        let is = |note: &&&TextRecord, factor: &str, value: &str| {
            note.factors.get(factor).is_some_and(|own| own == value)
        };
        let note = data.notes.iter().find(|note| {
            is(note, "system", "bilingual") && is(note, "line", line) && is(note, "alpha", alpha)
        });
        Some(TableCell::Text(note?.text.clone()))
    };
    let row = |line: &&str| columns.iter().map(|(alpha, _)| said(line, alpha)).collect();
    let mut table = ReportTable::new(&columns.map(|(_, name)| name));
    table.rows = LINES.iter().filter_map(row).collect();
    table
}
