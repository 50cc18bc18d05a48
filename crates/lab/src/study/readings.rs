//! From the result of a command to records.

use serde_json::Value;
use terms::Task;

use super::step::StepId;
use crate::record::Factors;

/// What is extracted from a step's result, and the factors of its records.
pub struct Extraction {
    /// The step.
    pub step: StepId,
    /// How its result is read.
    pub extractor: Extractor,
    /// The seed that the records belong to.
    pub seed: u64,
    /// What the records depend on; the extractor adds more.
    pub factors: Factors,
}

/// How a result is read: one variant for each kind of command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extractor {
    /// `transfer`: the headline score of each language.
    Transfer {
        /// The task.
        task: Task,
        /// The language that was trained in.
        source: String,
    },
    /// `transfer` with a shift: the scores without and with it.
    ShiftedTransfer {
        /// The task.
        task: Task,
        /// The language that was trained in.
        source: String,
    },
    /// `retrieve`: P@1 by layer: raw, centred and aligned; the mean of both directions.
    Retrieval,
    /// `align words` with a map.
    AlignWords,
    /// `align words` without one.
    WordRetrieval,
    /// `cka` of two stacks: the same layer of both.
    Similarity {
        /// Whether vectors were centred within groups of sentences of the same length.
        within: bool,
    },
    /// `shift sweep`: every cell.
    Sweep,
    /// `shift translate`: the predicted tokens.
    Translation,
    /// `vocab stats`: the subwords of each language, and those that two share.
    Vocabulary,
}

/// A number of a result.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// What was measured.
    pub measure: String,
    /// What it depends on.
    pub factors: Factors,
    /// The number.
    pub value: f64,
}

/// A text of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSample {
    /// What it is.
    pub name: String,
    /// What it depends on.
    pub factors: Factors,
    /// The text.
    pub text: String,
}

/// All that is extracted from a result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResults {
    /// Numbers.
    pub measurements: Vec<Measurement>,
    /// Texts.
    pub texts: Vec<TextSample>,
    /// What exactly was computed.
    pub signature: String,
}

/// What a result lacks.
pub(super) type Mismatch = String;

impl Extraction {
    /// Extracts records from a result; the error names the field that is missing or wrong.
    pub fn read(&self, result: &Value) -> Result<StepResults, Mismatch> {
        let mut found = StepResults { signature: signature(result), ..StepResults::default() };
        let mut reader = ResultCollector { found: &mut found, factors: &self.factors };
        match &self.extractor {
            Extractor::Transfer { task, source } => reader.transfer(result, *task, source)?,
            Extractor::ShiftedTransfer { task, source } => reader.shifted(result, *task, source)?,
            Extractor::Retrieval => reader.retrieval(result)?,
            Extractor::AlignWords => {
                for (measure, key) in [("p_at_1", "p_at_1"), ("p_at_5", "p_at_5"), ("mrr", "mrr")] {
                    reader.number(measure, &[], result, &[key])?;
                }
            }
            Extractor::WordRetrieval => {
                reader.number("mrr", &[], result, &["candidates", "mrr"])?;
                reader.number("p_at_1", &[], result, &["candidates", "p_at_1"])?;
            }
            Extractor::Similarity { within } => reader.similarity(result, *within)?,
            Extractor::Sweep => reader.sweep(result)?,
            Extractor::Translation => reader.translation(result)?,
            Extractor::Vocabulary => reader.vocabulary(result)?,
        }
        Ok(found)
    }
}

/// The signature of a result; that of the first score, where scores have their own.
fn signature(result: &Value) -> String {
    let own = result.get("signature");
    let first = || result.get("scores")?.as_object()?.values().next()?.get("signature");
    own.or_else(first).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Result<&'a Value, Mismatch> {
    path.iter().try_fold(value, |value, key| value.get(key)).ok_or_else(|| path.join("."))
}

fn list<'a>(value: &'a Value, path: &[&str]) -> Result<&'a [Value], Mismatch> {
    at(value, path)?.as_array().map(Vec::as_slice).ok_or_else(|| path.join("."))
}

fn text<'a>(value: &'a Value, path: &[&str]) -> Result<&'a str, Mismatch> {
    at(value, path)?.as_str().ok_or_else(|| path.join("."))
}

/// Adds to what is found.
struct ResultCollector<'a> {
    found: &'a mut StepResults,
    factors: &'a Factors,
}

impl ResultCollector<'_> {
    fn factors(&self, more: &[(&str, &str)]) -> Factors {
        let mut factors = self.factors.clone();
        factors.extend(more.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
        factors
    }

    /// Adds the number at a path.
    fn number(
        &mut self,
        measure: &str,
        more: &[(&str, &str)],
        value: &Value,
        path: &[&str],
    ) -> Result<(), Mismatch> {
        let value = at(value, path)?.as_f64().ok_or_else(|| path.join("."))?;
        let factors = self.factors(more);
        self.found.measurements.push(Measurement { measure: measure.to_owned(), factors, value });
        Ok(())
    }

    /// Adds a number of a language, filed by its role and the pair that it makes with the source.
    fn score(
        &mut self,
        measure: &str,
        source: &str,
        name: &str,
        row: &[(&str, &str)],
        (value, path): (&Value, &[&str]),
    ) -> Result<(), Mismatch> {
        let pair = format!("{source}-{name}");
        let mut more = vec![("language", name)];
        match name == source {
            true => more.push(("role", "source")),
            false => more.extend([("role", "target"), ("pair", &pair)]),
        }
        more.extend(row);
        self.number(measure, &more, value, path)
    }

    fn transfer(&mut self, result: &Value, task: Task, source: &str) -> Result<(), Mismatch> {
        for language in list(result, &["results"])? {
            let name = text(language, &["name"])?;
            self.score(task.measure(), source, name, &[], (language, &["mean"]))?;
        }
        Ok(())
    }

    fn shifted(&mut self, result: &Value, task: Task, source: &str) -> Result<(), Mismatch> {
        for language in list(result, &["results"])? {
            let name = text(language, &["name"])?;
            let row = [("row", "last-n")];
            self.score(task.measure(), source, name, &row, (language, &["mean"]))?;
        }
        let sets = at(result, &["shift", "sets"])?.as_object().ok_or("shift.sets")?;
        for (name, set) in sets {
            let row = [("row", "last-n-shift")];
            self.score(task.measure(), source, name, &row, (set, &["shifted", "mean"]))?;
            // The weight was chosen: it is an outcome, and nothing that the score is known by.
            self.score("alpha", source, name, &row, (set, &["alpha"]))?;
        }
        Ok(())
    }

    fn retrieval(&mut self, result: &Value) -> Result<(), Mismatch> {
        for layer in list(result, &["layers"])? {
            let number = &plain(at(layer, &["layer"])?);
            for (key, kind) in [("raw", "raw"), ("centered", "centered"), ("aligned", "aligned")] {
                let Some(found) = layer.get(key).filter(|found| !found.is_null()) else {
                    continue;
                };
                let side = |side: &str| at(found, &[side])?.as_f64().ok_or_else(|| kind.to_owned());
                let value = (side("forward")? + side("backward")?) / 2.0;
                let factors = self.factors(&[("layer", number), ("kind", kind)]);
                let measure = "retrieval".to_owned();
                self.found.measurements.push(Measurement { measure, factors, value });
            }
        }
        Ok(())
    }

    fn similarity(&mut self, result: &Value, within: bool) -> Result<(), Mismatch> {
        let names: &[(&str, &str)] = match within {
            true => &[("cka_within", "cka")],
            false => &[("cka", "cka"), ("cka_debiased", "debiased")],
        };
        for (measure, key) in names {
            for (layer, row) in list(result, &[key])?.iter().enumerate() {
                let value = row.get(layer).ok_or_else(|| (*key).to_owned())?;
                // Where a layer does not vary there is no similarity.
                if value.is_null() {
                    continue;
                }
                let value = value.as_f64().ok_or_else(|| (*key).to_owned())?;
                let factors = self.factors(&[("layer", &layer.to_string())]);
                self.found.measurements.push(Measurement {
                    measure: (*measure).to_owned(),
                    factors,
                    value,
                });
            }
        }
        let correlation = result.get("pearson").and_then(|pearson| pearson.get("aligned"));
        if let Some(value) = correlation.and_then(Value::as_f64).filter(|_| !within) {
            let (measure, factors) = ("correlation".to_owned(), self.factors(&[]));
            self.found.measurements.push(Measurement { measure, factors, value });
        }
        Ok(())
    }

    fn sweep(&mut self, result: &Value) -> Result<(), Mismatch> {
        for sweep in list(result, &["sweeps"])? {
            let direction = format!("{}-{}", text(sweep, &["from"])?, text(sweep, &["to"])?);
            let kind = text(sweep, &["kind"])?;
            for cell in list(sweep, &["cells"])? {
                let [layer, alpha] = [at(cell, &["layer"])?, at(cell, &["alpha"])?].map(plain);
                let more = [
                    ("direction", direction.as_str()),
                    ("kind", kind),
                    ("layer", &layer),
                    ("alpha", &alpha),
                ];
                let bleu = at(cell, &["bleu1"])?.as_f64().ok_or("bleu1")?;
                let (measure, factors) = ("bleu1".to_owned(), self.factors(&more));
                self.found.measurements.push(Measurement { measure, factors, value: bleu });
                self.number("repeated", &more, cell, &["repeated"])?;
                // Where nothing could be converted or looked up there is no share.
                for (measure, key) in
                    [("conversion_rate", "conversion_rate"), ("dictionary_accuracy", "translated")]
                {
                    if cell.get(key).is_some_and(Value::is_number) {
                        self.number(measure, &more, cell, &[key])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn translation(&mut self, result: &Value) -> Result<(), Mismatch> {
        for (line, sentence) in list(result, &["sentences"])?.iter().enumerate() {
            let line = (line + 1).to_string();
            self.say(&[("line", &line), ("alpha", "input")], text(sentence, &["sentence"])?);
            for said in list(sentence, &["outputs"])? {
                let alpha = plain(at(said, &["alpha"])?);
                let pieces = list(said, &["subwords"])?.iter();
                let pieces: Vec<_> =
                    pieces.filter_map(|piece| piece.get("text")?.as_str()).collect();
                self.say(&[("line", &line), ("alpha", &alpha)], &pieces.join(" "));
            }
            if let Some(reference) = sentence.get("reference").and_then(Value::as_str) {
                self.say(&[("line", &line), ("alpha", "reference")], reference);
            }
        }
        Ok(())
    }

    fn say(&mut self, more: &[(&str, &str)], text: &str) {
        let (name, factors) = ("translation".to_owned(), self.factors(more));
        self.found.texts.push(TextSample { name, factors, text: text.to_owned() });
    }

    fn vocabulary(&mut self, result: &Value) -> Result<(), Mismatch> {
        for language in list(result, &["languages"])? {
            let name = text(language, &["language"])?;
            self.number("subwords", &[("language", name)], language, &["types"])?;
        }
        for pair in list(result, &["pairs"])? {
            let name = format!("{}-{}", text(pair, &["first"])?, text(pair, &["second"])?);
            self.number("subwords_shared", &[("pair", &name)], pair, &["shared_types"])?;
        }
        Ok(())
    }
}

/// A number as it is written in factors: 1.0 is `1`.
fn plain(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(reader: Extractor, result: &Value) -> Result<StepResults, Mismatch> {
        let factors = Factors::from([("condition".to_owned(), "default".to_owned())]);
        Extraction { step: StepId(0), extractor: reader, seed: 1, factors }.read(result)
    }

    #[test]
    fn scores_are_filed_by_language_and_role() {
        let result = json!({
            "results": [{ "name": "qaa", "mean": 0.9 }, { "name": "qab", "mean": 0.5 }],
            "scores": { "qaa": { "signature": "ner|f1" } },
        });
        let reader = Extractor::Transfer { task: Task::Ner, source: "qaa".to_owned() };
        let found = read(reader, &result).unwrap();
        assert_eq!(found.signature, "ner|f1");
        let second = &found.measurements[1];
        assert_eq!((second.measure.as_str(), second.value), ("f1", 0.5));
        assert_eq!(second.factors["role"], "target");
        assert_eq!(second.factors["condition"], "default");
    }

    #[test]
    fn retrieval_is_the_mean_of_both_directions() {
        let layer = json!({
            "layer": 2, "raw": { "forward": 0.2, "backward": 0.4 },
            "centered": { "forward": 0.5, "backward": 0.5 }, "aligned": null,
        });
        let found = read(Extractor::Retrieval, &json!({ "layers": [layer] })).unwrap();
        assert_eq!(found.measurements.len(), 2);
        assert!((found.measurements[0].value - 0.3).abs() < 1e-12);
        assert_eq!(found.measurements[0].factors["kind"], "raw");
    }

    #[test]
    fn a_chosen_weight_is_a_number_of_its_own() {
        let shifted = |alpha: f64, score: f64| {
            let set = json!({ "alpha": alpha, "shifted": { "mean": score } });
            let result = json!({
                "results": [{ "name": "qaa", "mean": 0.9 }, { "name": "qab", "mean": 0.5 }],
                "shift": { "sets": { "qab": set } },
            });
            let reader = Extractor::ShiftedTransfer { task: Task::Ner, source: "qaa".to_owned() };
            read(reader, &result).unwrap().measurements
        };
        let (one, other) = (shifted(0.5, 0.6), shifted(1.0, 0.7));
        // Whatever was chosen, the same numbers are known by the same factors.
        let known = |numbers: &[Measurement]| -> Vec<(String, Factors)> {
            numbers.iter().map(|n| (n.measure.clone(), n.factors.clone())).collect()
        };
        assert_eq!(known(&one), known(&other));
        let of = |measure: &str| {
            let wanted =
                |n: &&Measurement| n.measure == measure && n.factors["row"] == "last-n-shift";
            other.iter().find(wanted).unwrap().value
        };
        assert_eq!((of("f1"), of("alpha")), (0.7, 1.0));
    }

    #[test]
    fn a_layer_without_similarity_is_left_out() {
        let result = json!({
            "cka": [[1.0, 0.5], [0.5, 0.8]], "debiased": [[null, 0.5], [0.5, 0.7]],
        });
        let found = read(Extractor::Similarity { within: false }, &result).unwrap().measurements;
        let debiased: Vec<_> = found.iter().filter(|n| n.measure == "cka_debiased").collect();
        assert_eq!((found.len(), debiased.len()), (3, 1));
        assert_eq!((debiased[0].factors["layer"].as_str(), debiased[0].value), ("1", 0.7));
        let short = json!({ "cka": [[1.0], []], "debiased": [] });
        assert_eq!(read(Extractor::Similarity { within: false }, &short).unwrap_err(), "cka");
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = read(Extractor::WordRetrieval, &json!({ "candidates": {} })).unwrap_err();
        assert_eq!(missing, "candidates.mrr");
        assert_eq!(read(Extractor::Sweep, &json!({})).unwrap_err(), "sweeps");
    }

    #[test]
    fn a_sweep_without_a_dictionary_has_no_exact_translations() {
        let cell = json!({
            "alpha": 1.0, "layer": 2, "bleu1": 0.3, "repeated": 0.1, "conversion_rate": 0.5,
            "translated": null,
        });
        let sweep = json!({ "from": "a", "to": "b", "kind": "mean", "cells": [cell] });
        let found = read(Extractor::Sweep, &json!({ "sweeps": [sweep] })).unwrap();
        let measures: Vec<_> =
            found.measurements.iter().map(|number| number.measure.as_str()).collect();
        assert_eq!(measures, ["bleu1", "repeated", "conversion_rate"]);
        assert_eq!(found.measurements[0].factors["alpha"], "1");
        assert!((found.measurements[0].value - 0.3).abs() < 1e-12);
    }
}
