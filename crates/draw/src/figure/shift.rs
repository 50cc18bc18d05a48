//! What adding a part of the difference of two languages' mean vectors does: token translation (Liu et al. 2020) at weights from 0 to
//! 1, a sentence a panel and a weight a row.

use std::collections::HashMap;
use std::fmt::Write as _;

use shift::translate::{
    ConversionCounts, OutputSubword, TokenTranslation, TranslatedSentence, TranslationResult,
};

use super::curves::{ShareChart, ShareCurve, row};
use super::findings::of_shift;
use super::{SpaceFigure, language_legend, language_name, layer_name, percent};
use crate::svg::{escaped, fitting, text, width};
use crate::{Figure, LegendEntry, Panel, SeriesMark};

const WIDTH: f64 = 550.0;
const ROW: f64 = 17.0;
const LEFT: f64 = 66.0;
/// The room for a row's conversion rate.
const RIGHT: f64 = 58.0;
/// Sentences that are shown, and the most words that one may have.
const SHOWN: usize = 3;
const WORDS: usize = 9;

/// Draws token translations at several weights. `glosses` has the meaning of each word of each sentence, where it is known.
pub fn shift(result: &TranslationResult, glosses: &[Option<String>]) -> SpaceFigure {
    let gloss = |number: usize| glosses.get(number).and_then(Option::as_deref);
    let fits = |sentence: &TranslatedSentence| {
        let most = sentence.outputs.iter().map(|output| output.subwords.len()).max();
        most.is_some_and(|most| (4..=WORDS).contains(&most))
    };
    let short = result.sentences.iter().enumerate().filter(|(_, sentence)| fits(sentence));
    let mut panels: Vec<Panel> = short
        .take(SHOWN)
        .map(|(number, sentence)| sentence_panel(sentence, gloss(number)))
        .collect();
    let conversion = conversion(result);
    panels.push(chart(result, &conversion));
    let (source, target) = (language_name(&result.from), language_name(&result.to));
    let (first, last) =
        (conversion.first().map_or(0.0, |c| c.1), conversion.last().map_or(0.0, |c| c.1));
    let mut legend = language_legend(&[result.from.clone(), result.to.clone()]);
    legend.push(LegendEntry { name: "both, or neither".to_owned(), mark: SeriesMark::Dot(6) });
    let figure = Figure {
        id: "shift".to_owned(),
        title: of_shift(&target, [first, last], in_reference(result)),
        legend,
        panels,
    };
    let caption = format!(
        "Sentences of {source}. α times the difference of the two languages' mean vectors ({target} less {source}) is added to every \
         hidden state after {layer}; the layers above run, and every position is decoded. Words are coloured by the language that uses \
         them; below the sentence{gloss} The first sentences that fit are shown, not the best. On the right of each row: the token \
         conversion rate, of the predicted tokens that not both languages use the share that only {target} uses.",
        layer = layer_name(result.layer),
        gloss = if glosses.iter().any(Option::is_some) {
            ", its meaning."
        } else {
            ", its predictions."
        },
    );
    SpaceFigure { figure, caption }
}

/// The weight and the token conversion rate over all sentences.
fn conversion(result: &TranslationResult) -> Vec<(f32, f64)> {
    let weights = result.sentences.first().map_or(0, |sentence| sentence.outputs.len());
    let at = |number: usize| {
        let mut counts = ConversionCounts::default();
        for sentence in &result.sentences {
            let subwords = sentence.outputs[number].subwords.iter();
            counts.add(subwords.map(|subword| (subword.source, subword.target)));
        }
        (result.sentences[0].outputs[number].alpha, counts.rate().unwrap_or(0.0))
    };
    (0..weights).map(at).collect()
}

/// The share of predicted words that stand in the reference, each as often as there, at the first and the last
/// weight; none where a sentence has no reference.
fn in_reference(result: &TranslationResult) -> Option<[f64; 2]> {
    let share = |of: fn(&TranslatedSentence) -> &str| {
        let (mut right, mut all) = (0, 0);
        for sentence in &result.sentences {
            let mut left: HashMap<&str, usize> = HashMap::new();
            for word in sentence.reference.as_ref()?.split_whitespace() {
                *left.entry(word).or_default() += 1;
            }
            for word in of(sentence).split_whitespace() {
                all += 1;
                if let Some(count) = left.get_mut(word).filter(|count| **count > 0) {
                    *count -= 1;
                    right += 1;
                }
            }
        }
        Some(f64::from(right) / f64::from(all.max(1)))
    };
    let first = share(|sentence| sentence.outputs.first().map_or("", |output| &output.text))?;
    let last = share(|sentence| sentence.outputs.last().map_or("", |output| &output.text))?;
    Some([first, last])
}

/// The class of a subword: the colour of the language that alone uses it.
fn colour(subword: &OutputSubword) -> &'static str {
    match (subword.source, subword.target) {
        (true, false) => "word c0",
        (false, true) => "word c1",
        _ => "word c6",
    }
}

/// One sentence: its words and their meanings, then what is predicted at each weight.
fn sentence_panel(sentence: &TranslatedSentence, gloss: Option<&str>) -> Panel {
    let words: Vec<&str> = sentence.sentence.split_whitespace().collect();
    let glosses: Vec<&str> = gloss.map_or(Vec::new(), |gloss| gloss.split_whitespace().collect());
    let rows: Vec<Vec<&str>> = sentence
        .outputs
        .iter()
        .map(|output| output.subwords.iter().map(|subword| subword.text.as_str()).collect())
        .collect();
    let reference: Vec<&str> =
        sentence.reference.as_deref().map_or(Vec::new(), |text| text.split_whitespace().collect());
    // Columns as wide as their widest word, and no wider together than there is room.
    let count = rows.iter().chain([&words, &reference]).map(Vec::len).max().unwrap_or(0).max(1);
    let widest = |column: usize| {
        let cells = rows.iter().chain([&glosses, &reference]);
        let plain = cells.filter_map(|row| row.get(column)).map(|word| width(word) + 10.0);
        // The input is in larger type.
        let input = words.get(column).map(|word| 1.15 * width(word) + 10.0);
        plain.chain(input).fold(20.0, f64::max)
    };
    let mut columns: Vec<f64> = (0..count).map(widest).collect();
    let room = WIDTH - LEFT - RIGHT;
    let whole: f64 = columns.iter().sum();
    if whole > room {
        columns.iter_mut().for_each(|column| *column *= room / whole);
    }
    let starts: Vec<f64> = columns
        .iter()
        .scan(LEFT, |x, column| {
            let start = *x;
            *x += column;
            Some(start)
        })
        .collect();
    let mut body = String::new();
    let put = |body: &mut String, y: f64, column: usize, class: &str, word: &str| {
        let word = fitting(word, columns[column]);
        text(body, (starts[column], y), class, &word);
    };
    let mut y = 14.0;
    text(&mut body, (0.0, y), "small", "input");
    words
        .iter()
        .enumerate()
        .for_each(|(column, word)| put(&mut body, y, column, "name c0 word", word));
    if !glosses.is_empty() {
        y += ROW - 2.0;
        for (column, word) in glosses.iter().enumerate().take(count) {
            put(&mut body, y, column, "small gloss", word);
        }
    }
    y += 8.0;
    let _ = writeln!(
        body,
        "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
    );
    for (output, row) in sentence.outputs.iter().zip(&rows) {
        y += ROW;
        let label = if (output.alpha * 10.0).round() == 0.0 {
            "α = 0".to_owned()
        } else {
            format!("{:.1}", output.alpha)
        };
        text(&mut body, (0.0, y), "small", &label);
        for (column, (word, subword)) in row.iter().zip(&output.subwords).enumerate() {
            put(&mut body, y, column, colour(subword), word);
        }
        rate(&mut body, y, output.conversion_rate);
    }
    if !reference.is_empty() {
        y += 8.0;
        let _ = writeln!(
            body,
            "<line class=\"grid\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/>"
        );
        y += ROW - 1.0;
        text(&mut body, (0.0, y), "small", "reference");
        for (column, word) in reference.iter().enumerate() {
            put(&mut body, y, column, "word c1", word);
        }
    }
    let said = |output: Option<&TokenTranslation>| {
        output.map_or(String::new(), |output| output.text.clone())
    };
    let description = format!(
        "Token translation of “{}”: without shift “{}”, with all of it “{}”.",
        sentence.sentence,
        said(sentence.outputs.first()),
        said(sentence.outputs.last())
    );
    let data = sentence.outputs.iter().map(|output| {
        vec![
            ("sentence", sentence.sentence.clone()),
            ("alpha", format!("{}", output.alpha)),
            ("predicted", output.text.clone()),
            ("value", output.conversion_rate.map_or(String::new(), crate::data::number)),
        ]
    });
    Panel { width: WIDTH, height: y + 8.0, description, body, data: data.collect() }
}

/// The conversion rate of a row, as a bar.
fn rate(body: &mut String, y: f64, rate: Option<f64>) {
    let Some(rate) = rate else { return };
    let (x, whole) = (WIDTH - RIGHT + 8.0, RIGHT - 8.0);
    let _ = writeln!(
        body,
        "<rect class=\"none\" x=\"{x:.1}\" y=\"{0:.1}\" width=\"{whole:.1}\" height=\"7\" rx=\"2\"/>\
         <rect class=\"c1 bar\" x=\"{x:.1}\" y=\"{0:.1}\" width=\"{1:.1}\" height=\"7\" rx=\"2\"><title>{2}</title></rect>",
        y - 8.0,
        whole * rate,
        escaped(&percent(rate)),
    );
}

fn chart(result: &TranslationResult, conversion: &[(f32, f64)]) -> Panel {
    let most = conversion.iter().map(|(alpha, _)| f64::from(*alpha)).fold(0.0, f64::max).max(1e-9);
    let place = |alpha: f32| f64::from(alpha) / most;
    let curve = ShareCurve {
        name: "converted".to_owned(),
        colour: 1,
        points: conversion.iter().map(|&(alpha, rate)| (place(alpha), rate)).collect(),
    };
    let sentences = result.sentences.len();
    let chart = ShareChart {
        title: format!("Predicted tokens of {} ({sentences} sentences)", language_name(&result.to)),
        width: WIDTH,
        across: "α".to_owned(),
        ticks: conversion.iter().map(|&(alpha, _)| (place(alpha), format!("{alpha:.1}"))).collect(),
        ruled: false,
        curves: vec![curve],
        levels: Vec::new(),
        data: conversion
            .iter()
            .map(|(alpha, rate)| row("alpha", alpha.to_string(), "conversion rate", *rate))
            .collect(),
    };
    chart.panel()
}
