//! From the result of a command to records.
//!
//! Results are read through the types of the crates that compute them, so that a changed field is a compile error here
//! and not a missing number.

use std::collections::BTreeMap;

use align::{AlignmentScore, EncoderAlignResult};
use geometry::align::AlignWordsResult;
use geometry::cka::CkaResult;
use geometry::joint::AlignManyResult;
use geometry::language_id::LanguageIdResult;
use geometry::mining::MiningResult;
use geometry::retrieval::RetrievalResult;
use geometry::similarity::SimilarityResult;
use models::neurons::LanguageNeuronsResult;
use models::row_filter::RowFilterResult;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shift::translate::{DirectionSweep, SweepResult, TranslationResult};
use tasks::ScoreResult;
use tasks::finetune::TransferResult;
use terms::{RowCounts, Task};
use text::{ExclusionResult, VocabularySharing};

/// What a number depends on, by name: `condition` → `no-anchors`, `layer` → `3`.
pub type Factors = BTreeMap<String, String>;

/// How a result is read: one variant for each kind of command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extractor {
    /// `transfer`: the score of each test language.
    Transfer { task: Task, source: String },
    /// `transfer` with a shift: the scores without and with it.
    ShiftedTransfer { task: Task, source: String },
    /// `retrieve`: P@1 by layer: raw, centred and aligned; the mean of both directions.
    Retrieval,
    /// `align words` with a map.
    AlignWords,
    /// `align many`: P@1 of every two languages, by all maps.
    AlignMany,
    /// `align words` without one.
    WordRetrieval,
    /// `cka` of parallel text in two encoders: the same layer of both.
    Similarity,
    /// `similarity`: every measure at every layer, and its chance level.
    Measures,
    /// `language-id`: what a probe tells at every layer, after each treatment.
    LanguageId,
    /// `language-neurons`: their share by layer, their overlap, and by how much the MLM loss rises without them.
    LanguageNeurons,
    /// `shift sweep`: every layer and weight.
    Sweep,
    /// `shift translate`: the predicted tokens.
    Translation,
    /// `score`: the score of a file of predictions.
    Score(Task),
    /// `word-align score`: precision, recall, F1 and AER of links.
    WordAlignment,
    /// `word-align --model DIR --gold`: the same by layer and extraction, and of the IBM model and the diagonal.
    EncoderAlignment,
    /// `mine --gold`: F1 at the threshold that was given or, of every second sentence, at the best one of the others; beside
    /// them F1 at the threshold that is best for all.
    Mining,
    /// `corpus filter`: how many rows of parallel text all encoders are measured on; the text says what they are read for.
    RowFilter(&'static str),
    /// `corpus exclude`: how many sentences of text stand in tests; the text says what is trained on it.
    TestExclusion(&'static str),
    /// `vocab stats`: the subwords of each language, and those that two share.
    Vocabulary,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub measure: String,
    pub factors: Factors,
    pub value: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextSample {
    pub name: String,
    pub factors: Factors,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepResults {
    pub measurements: Vec<Measurement>,
    pub texts: Vec<TextSample>,
    /// What exactly was computed.
    pub signature: String,
}

/// Why a result could not be read: the field that is missing or wrong.
pub type Mismatch = String;

impl Extractor {
    /// Extracts records from a result, under some factors; the error names the field that is missing or wrong.
    pub fn read(&self, result: &Value, factors: &Factors) -> Result<StepResults, Mismatch> {
        let mut collector = ResultCollector { results: StepResults::default(), factors };
        match self {
            Extractor::Transfer { task, source } => {
                collector.transfer(&parse(result)?, *task, source, None)
            }
            Extractor::ShiftedTransfer { task, source } => {
                collector.shifted(&parse(result)?, *task, source)?;
            }
            Extractor::Retrieval => collector.retrieval(&parse(result)?),
            Extractor::AlignWords => collector.align_words(&parse(result)?)?,
            Extractor::AlignMany => collector.align_many(&parse(result)?),
            Extractor::WordRetrieval => collector.word_retrieval(&parse(result)?)?,
            Extractor::Similarity => collector.similarity(&parse(result)?)?,
            Extractor::Measures => collector.measures(&parse(result)?),
            Extractor::LanguageId => collector.language_id(&parse(result)?),
            Extractor::LanguageNeurons => collector.language_neurons(&parse(result)?),
            Extractor::Sweep => collector.sweep(&parse(result)?),
            Extractor::Translation => collector.translation(&parse(result)?),
            Extractor::RowFilter(of) => {
                let result: RowFilterResult = parse(result)?;
                collector.rows(&result.counts, of, &[]);
            }
            Extractor::TestExclusion(of) => {
                let ExclusionResult { rows, in_tests, used, .. } = parse(result)?;
                for (measure, count) in [("rows", rows), ("in_tests", in_tests), ("used", used)] {
                    collector.number(measure, &[("of", of)], count as f64);
                }
            }
            Extractor::Vocabulary => collector.vocabulary(&parse(result)?),
            Extractor::Score(task) => collector.score_of(&parse(result)?, *task),
            Extractor::WordAlignment => collector.word_alignment(&parse(result)?),
            Extractor::Mining => collector.mining(&parse(result)?)?,
            Extractor::EncoderAlignment => collector.encoder_alignment(&parse(result)?),
        }
        Ok(collector.results)
    }
}

fn parse<T: DeserializeOwned>(result: &Value) -> Result<T, Mismatch> {
    T::deserialize(result).map_err(|error| error.to_string())
}

fn missing(field: &str) -> Mismatch {
    format!("missing field `{field}`")
}

struct ResultCollector<'a> {
    results: StepResults,
    factors: &'a Factors,
}

impl ResultCollector<'_> {
    fn factors(&self, more: &[(&str, &str)]) -> Factors {
        let mut factors = self.factors.clone();
        factors.extend(more.iter().map(|&(name, level)| (name.to_owned(), level.to_owned())));
        factors
    }

    fn number(&mut self, measure: &str, more: &[(&str, &str)], value: f64) {
        let (measure, factors) = (measure.to_owned(), self.factors(more));
        self.results.measurements.push(Measurement { measure, factors, value });
    }

    fn text(&mut self, more: &[(&str, &str)], text: &str) {
        let (name, factors) = ("translation".to_owned(), self.factors(more));
        self.results.texts.push(TextSample { name, factors, text: text.to_owned() });
    }

    /// Adds how many rows of parallel text there were, and what became of them; `of` says what they were read for.
    fn rows(&mut self, counts: &RowCounts, of: &str, more: &[(&str, &str)]) {
        let RowCounts { rows, repeated, too_long, used } = *counts;
        let more = [&[("of", of)], more].concat();
        for (measure, count) in
            [("rows", rows), ("repeated", repeated), ("too_long", too_long), ("used", used)]
        {
            self.number(measure, &more, count as f64);
        }
    }

    /// Adds a number of a language: its role, and the pair of a target with the source, are factors.
    fn score(
        &mut self,
        measure: &str,
        source: &str,
        language: &str,
        row: Option<&str>,
        value: f64,
    ) {
        let pair = format!("{source}-{language}");
        let mut more = vec![("language", language)];
        match language == source {
            true => more.push(("role", "source")),
            false => more.extend([("role", "target"), ("pair", &pair)]),
        }
        more.extend(row.map(|row| ("row", row)));
        self.number(measure, &more, value);
    }

    fn transfer(&mut self, result: &TransferResult, task: Task, source: &str, row: Option<&str>) {
        self.results.signature.clone_from(&result.signature);
        for test in &result.results {
            self.score(task.measure(), source, &test.name, row, test.score.mean);
            if let Some(others) = &test.without_overlap {
                let measure = format!("{}_without_overlap", task.measure());
                let seen = test.overlap + test.dev_overlap;
                self.score("overlap", source, &test.name, row, seen as f64);
                self.score(&measure, source, &test.name, row, others.mean);
            }
        }
    }

    fn shifted(
        &mut self,
        result: &TransferResult,
        task: Task,
        source: &str,
    ) -> Result<(), Mismatch> {
        self.transfer(result, task, source, Some("last-n"));
        let shift = result.shift.as_ref().ok_or_else(|| missing("shift"))?;
        for (name, set) in &shift.sets {
            let row = Some("last-n-shift");
            self.score(task.measure(), source, name, row, set.shifted.mean);
            // The weight was selected: it is an outcome, and no factor of the score.
            self.score("alpha", source, name, row, set.alpha);
        }
        Ok(())
    }

    fn retrieval(&mut self, result: &RetrievalResult) {
        self.results.signature.clone_from(&result.signature);
        self.rows(&result.counts, "retrieval", &[]);
        result.train.iter().for_each(|counts| self.rows(counts, "map", &[]));
        for layer in &result.layers {
            let number = layer.layer.to_string();
            let kinds = [
                ("raw", Some(layer.raw)),
                ("centered", Some(layer.centered)),
                ("aligned", layer.aligned),
            ];
            for (kind, accuracy) in kinds {
                if let Some(accuracy) = accuracy {
                    self.number("retrieval", &[("layer", &number), ("kind", kind)], accuracy.mean);
                }
            }
        }
    }

    fn align_words(&mut self, result: &AlignWordsResult) -> Result<(), Mismatch> {
        self.results.signature.clone_from(&result.signature);
        let accuracy = result.accuracy.ok_or_else(|| missing("p_at_1"))?;
        self.number("p_at_1", &[], accuracy.p_at_1);
        self.number("p_at_5", &[], accuracy.p_at_5);
        self.number("mrr", &[], accuracy.mrr);
        if let (Some([_, words]), Some([_, pairs]), Some(targets)) =
            (result.words, result.pairs, result.target_words)
        {
            // A word may have several translations, each of which is right.
            let right = pairs as f64 / words.max(1) as f64;
            self.number("p_at_1_chance", &[], right / targets.max(1) as f64);
        }
        if let Some(different) = &result.different {
            self.number("p_at_1_different", &[], different.accuracy.p_at_1);
            self.number("mrr_different", &[], different.accuracy.mrr);
        }
        Ok(())
    }

    fn align_many(&mut self, result: &AlignManyResult) {
        self.results.signature.clone_from(&result.signature);
        for pair in &result.pairs {
            let name = format!("{}-{}", pair.source, pair.target);
            let with_hub = [&pair.source, &pair.target].contains(&&result.hub);
            let dictionary = match (with_hub, pair.trained) {
                (true, _) => "with-hub",
                (false, true) => "own",
                (false, false) => "none",
            };
            for (map, accuracy) in [
                ("unmapped", pair.p_at_1_unmapped),
                ("onto-hub", pair.p_at_1_hub),
                ("together", pair.p_at_1_joint),
            ] {
                let more = [("pair", name.as_str()), ("map", map), ("dictionary", dictionary)];
                self.number("p_at_1", &more, accuracy);
            }
            let more = [("pair", name.as_str()), ("dictionary", dictionary)];
            self.number("queries", &more, pair.queries as f64);
            self.number("queries_seen", &more, pair.seen as f64);
        }
    }

    fn word_retrieval(&mut self, result: &AlignWordsResult) -> Result<(), Mismatch> {
        self.results.signature.clone_from(&result.signature);
        let found = result.candidates.ok_or_else(|| missing("candidates"))?;
        self.number("mrr", &[], found.accuracy.mrr);
        self.number("p_at_1", &[], found.accuracy.p_at_1);
        // One translation is right, and every rank is as likely as any other.
        let words = found.words.max(1);
        let reciprocals: f64 = (1..=words).map(|rank| 1.0 / rank as f64).sum();
        self.number("mrr_chance", &[], reciprocals / words as f64);
        self.number("p_at_1_chance", &[], 1.0 / words as f64);
        if let Some(different) = &result.different {
            let accuracy = different.candidates.accuracy;
            self.number("mrr_different", &[], accuracy.mrr);
            self.number("p_at_1_different", &[], accuracy.p_at_1);
        }
        Ok(())
    }

    fn similarity(&mut self, result: &CkaResult) -> Result<(), Mismatch> {
        self.results.signature.clone_from(&result.signature);
        let whole = |rows: &[Vec<f64>]| -> Vec<Vec<Option<f64>>> {
            rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect()
        };
        self.rows(&result.counts, "cka", &[]);
        let tables = [
            ("cka", "cka", whole(&result.cka)),
            ("cka_debiased", "debiased", result.debiased.clone()),
            ("cka_within", "within_length", result.within_length.as_deref().map_or(vec![], whole)),
        ];
        for (measure, field, rows) in tables {
            for (layer, row) in rows.iter().enumerate() {
                let value =
                    row.get(layer).ok_or_else(|| format!("`{field}` has no column {layer}"))?;
                // Where a layer does not vary there is no similarity.
                if let Some(value) = value {
                    self.number(measure, &[("layer", &layer.to_string())], *value);
                }
            }
        }
        if let Some(Some(correlation)) = result.pearson.get("aligned") {
            self.number("correlation", &[], *correlation);
        }
        Ok(())
    }

    fn measures(&mut self, result: &SimilarityResult) {
        self.results.signature.clone_from(&result.signature);
        self.rows(&result.counts, "similarity", &[]);
        for layer in &result.layers {
            let number = layer.layer.to_string();
            for (measure, found) in &layer.measures {
                let more = [("layer", number.as_str()), ("measure", measure.name())];
                self.number("similarity", &more, found.value);
                self.number("similarity_chance", &more, found.chance);
            }
        }
    }

    fn language_id(&mut self, result: &LanguageIdResult) {
        self.results.signature.clone_from(&result.signature);
        self.number("language_id_chance", &[], result.chance);
        for layer in &result.layers {
            let number = layer.layer.to_string();
            for found in &layer.treatments {
                let more = [("layer", number.as_str()), ("treatment", &found.treatment)];
                self.number("language_id", &more, found.accuracy);
                self.number("language_id_shuffled", &more, found.shuffled);
                if let Some(nonlinear) = found.nonlinear {
                    self.number("language_id_nonlinear", &more, nonlinear.accuracy);
                    self.number("language_id_nonlinear_shuffled", &more, nonlinear.shuffled);
                }
                self.number("variance_between", &more, found.variance_between);
            }
        }
    }

    fn language_neurons(&mut self, result: &LanguageNeuronsResult) {
        self.results.signature.clone_from(&result.signature);
        for layer in &result.layers {
            let number = layer.layer.to_string();
            for (language, specific) in result.languages.iter().zip(&layer.specific) {
                let more = [("layer", number.as_str()), ("language", &language.language)];
                self.number("neuron_share", &more, specific.len() as f64 / layer.neurons as f64);
            }
        }
        for overlap in &result.overlaps {
            let [first, second] = &overlap.languages;
            let more = [("first", first.as_str()), ("second", second)];
            // Of no neurons there is no overlap.
            overlap.jaccard.iter().for_each(|&share| self.number("neuron_overlap", &more, share));
        }
        for one in &result.ablations {
            let mut languages = result.languages.iter();
            let all = languages.find(|known| known.language == one.measured);
            let Some(all) = all.and_then(|known| known.loss) else { continue };
            let own = if one.ablated == one.measured { "own" } else { "other" };
            let losses = [("specific", Some(one.loss)), ("random", one.random_mean())];
            for (neurons, loss) in losses {
                let more = [
                    ("ablated", one.ablated.as_str()),
                    ("measured", &one.measured),
                    ("of", own),
                    ("neurons", neurons),
                ];
                loss.iter().for_each(|loss| self.number("neuron_loss", &more, loss - all));
            }
        }
    }

    fn sweep(&mut self, result: &SweepResult) {
        self.results.signature.clone_from(&result.signature);
        for sweep in &result.sweeps {
            let direction = format!("{}-{}", sweep.from, sweep.to);
            let &DirectionSweep { rows, repeated, too_long, used, .. } = sweep;
            // Every kind of shift is over the same rows.
            let counts = RowCounts { rows, repeated, too_long, used };
            self.rows(&counts, "shift", &[("direction", &direction)]);
            if let Some(masked) = &sweep.masked {
                for (measure, share) in [
                    ("masked_accuracy", masked.accuracy),
                    ("masked_unigram_accuracy", masked.unigram_accuracy),
                    ("masked_own_rate", masked.own_rate),
                    ("masked_foreign_rate", masked.foreign_rate),
                ] {
                    self.number(measure, &[("direction", &direction)], share);
                }
            }
            if let Some(bleu1) = sweep.bleu1_frequent {
                let more = [("direction", direction.as_str()), ("kind", &sweep.kind)];
                self.number("bleu1_frequent", &more, bleu1);
            }
            for cell in &sweep.cells {
                let (layer, alpha) = (cell.layer.to_string(), cell.alpha.to_string());
                let more = [
                    ("direction", direction.as_str()),
                    ("kind", &sweep.kind),
                    ("layer", &layer),
                    ("alpha", &alpha),
                ];
                self.number("bleu1", &more, cell.bleu1);
                self.number("copied", &more, cell.repeated);
                self.number("other_rate", &more, cell.other_rate);
                // Rates of nothing are undefined.
                let rates = [
                    ("bleu1_permuted", cell.bleu1_permuted),
                    ("conversion_rate", cell.conversion_rate),
                    ("dictionary_accuracy", cell.translated),
                    ("dictionary_accuracy_different", cell.translated_different),
                    ("dictionary_accuracy_shuffled", cell.translated_shuffled),
                    ("third_rate", cell.third_rate),
                ];
                for (measure, rate) in rates {
                    if let Some(rate) = rate {
                        self.number(measure, &more, rate);
                    }
                }
            }
        }
    }

    fn translation(&mut self, result: &TranslationResult) {
        for (number, sentence) in result.sentences.iter().enumerate() {
            let line = (number + 1).to_string();
            self.text(&[("line", &line), ("alpha", "input")], &sentence.sentence);
            for translation in &sentence.outputs {
                let subwords: Vec<&str> =
                    translation.subwords.iter().map(|subword| subword.text.as_str()).collect();
                let alpha = translation.alpha.to_string();
                self.text(&[("line", &line), ("alpha", &alpha)], &subwords.join(" "));
            }
            if let Some(reference) = &sentence.reference {
                self.text(&[("line", &line), ("alpha", "reference")], reference);
            }
        }
    }

    fn score_of(&mut self, result: &ScoreResult, task: Task) {
        self.results.signature = result.signature().to_owned();
        self.number(task.measure(), &[("task", task.name())], result.value());
    }

    fn word_alignment(&mut self, result: &AlignmentScore) {
        self.results.signature.clone_from(&result.signature);
        self.link_scores(result, &[]);
    }

    fn link_scores(&mut self, score: &AlignmentScore, more: &[(&str, &str)]) {
        let AlignmentScore { precision, recall, f1, aer, .. } = *score;
        let more = [&[("task", "word-alignment")], more].concat();
        for (measure, value) in
            [("precision", precision), ("recall", recall), ("f1", f1), ("aer", aer)]
        {
            self.number(measure, &more, value);
        }
    }

    fn encoder_alignment(&mut self, result: &EncoderAlignResult) {
        self.results.signature.clone_from(&result.signature);
        for one in &result.alignments {
            let layer = one.layer.to_string();
            let factors = [("layer", layer.as_str()), ("extraction", one.extraction.name())];
            one.score.iter().for_each(|score| self.link_scores(score, &factors));
        }
        for one in &result.references {
            self.link_scores(&one.score, &[("extraction", &one.method)]);
        }
    }

    fn mining(&mut self, result: &MiningResult) -> Result<(), Mismatch> {
        self.results.signature.clone_from(&result.signature);
        let best = result.best.as_ref().ok_or_else(|| missing("best"))?;
        let layer = result.layer.map(|layer| layer.to_string());
        let mut more = vec![("task", "mining")];
        more.extend(layer.iter().map(|layer| ("layer", layer.as_str())));
        // None where the gold pairs are too few to choose a threshold on some of them.
        if let Some(score) = result.score.as_ref().or(result.held_out.as_ref()) {
            self.number("mining_f1", &more, score.f1);
            self.number("mining_f1_chance", &more, score.f1_chance);
        }
        // Chosen where it is measured: for comparison alone.
        self.number("mining_f1_best", &more, best.f1);
        Ok(())
    }

    fn vocabulary(&mut self, result: &VocabularySharing) {
        for language in &result.languages {
            self.number("subwords", &[("language", &language.language)], language.types as f64);
        }
        for pair in &result.pairs {
            let name = format!("{}-{}", pair.first, pair.second);
            self.number("subwords_shared", &[("pair", &name)], pair.shared_types as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(extractor: Extractor, result: &Value) -> Result<StepResults, Mismatch> {
        let factors = Factors::from([("condition".to_owned(), "default".to_owned())]);
        extractor.read(result, &factors)
    }

    fn transfer(shift: Value) -> Value {
        let test = |name: &str, mean: f64| json!({ "name": name, "mean": mean, "half_width": null, "n": 1, "chance": 0.0, "majority": null, "overlap": 0 });
        let mut result = json!({
            "signature": "ner|f1", "task": "ner", "measure": "f1", "finished": true, "best": null, "dev": null,
            "results": [test("qaa", 0.9), test("qab", 0.5)], "scores": {}, "settings": [], "sets": {},
            "parameters": 1, "padding": 0.0,
            "speed": { "trained": 0, "train_seconds": 0.0, "evaluated": 0, "evaluate_seconds": 0.0 },
        });
        if !shift.is_null() {
            result["shift"] = shift;
        }
        result
    }

    #[test]
    fn scores_have_the_factors_language_and_role() {
        let extractor = Extractor::Transfer { task: Task::Ner, source: "qaa".to_owned() };
        let results = read(extractor, &transfer(Value::Null)).unwrap();
        assert_eq!(results.signature, "ner|f1");
        let second = &results.measurements[1];
        assert_eq!((second.measure.as_str(), second.value), ("f1", 0.5));
        assert_eq!(second.factors["role"], "target");
        assert_eq!(second.factors["condition"], "default");
    }

    #[test]
    fn sentences_that_training_has_are_counted_beside_the_score_of_the_others() {
        let extractor = Extractor::Transfer { task: Task::Ner, source: "qaa".to_owned() };
        let mut result = transfer(Value::Null);
        result["results"][0]["overlap"] = 280.into();
        result["results"][0]["dev_overlap"] = 3.into();
        result["results"][0]["without_overlap"] =
            json!({ "mean": 0.8, "half_width": null, "n": 1 });
        let found = read(extractor, &result).unwrap().measurements;
        let shown: Vec<(&str, &str, f64)> =
            found.iter().map(|one| (&*one.measure, &*one.factors["language"], one.value)).collect();
        let source = [("f1", "qaa", 0.9), ("overlap", "qaa", 283.0)];
        assert_eq!(shown[..2], source);
        assert_eq!(shown[2..], [("f1_without_overlap", "qaa", 0.8), ("f1", "qab", 0.5)]);
    }

    #[test]
    fn retrieval_is_the_mean_of_both_directions() {
        let layer = json!({
            "layer": 2, "raw": { "forward": 0.2, "backward": 0.4, "mean": 0.3 },
            "centered": { "forward": 0.5, "backward": 0.5, "mean": 0.5 }, "aligned": null,
        });
        let result = json!({
            "rows": 10, "repeated": 0, "too_long": 0, "used": 10, "candidates": [10, 10], "chance": 0.1,
            "train": null, "layers": [layer],
            "signature": "retrieval",
        });
        let results = read(Extractor::Retrieval, &result).unwrap();
        let counts = |measure: &str| {
            let found = results.measurements.iter().find(|one| one.measure == measure).unwrap();
            (found.factors["of"].clone(), found.value)
        };
        assert_eq!(counts("used"), ("retrieval".to_owned(), 10.0));
        assert_eq!(counts("repeated"), ("retrieval".to_owned(), 0.0));
        let accuracy: Vec<_> =
            results.measurements.iter().filter(|one| one.measure == "retrieval").collect();
        assert_eq!(accuracy.len(), 2);
        assert_eq!(accuracy[0].value, 0.3);
        let factors = &accuracy[1].factors;
        assert_eq!((&*factors["kind"], &*factors["layer"]), ("centered", "2"));
    }

    #[test]
    fn a_layer_without_similarity_is_left_out() {
        let result = |debiased: Value| {
            json!({
                "cka": [[1.0, 0.5], [0.5, 0.8]], "debiased": debiased, "rows": 9, "repeated": 0, "too_long": 0,
                "used": 9, "dims": [2, 2],
                "intervals": null, "few_rows": false, "signature": "cka",
            })
        };
        let similarity = Extractor::Similarity;
        let results = read(similarity.clone(), &result(json!([[null, 0.5], [0.5, 0.7]])));
        let measurements = results.unwrap().measurements;
        let debiased: Vec<_> =
            measurements.iter().filter(|one| one.measure == "cka_debiased").collect();
        assert_eq!((measurements.len(), debiased.len()), (4 + 3, 1));
        assert_eq!((debiased[0].factors["layer"].as_str(), debiased[0].value), ("1", 0.7));
        let short = read(similarity, &result(json!([[1.0], []]))).unwrap_err();
        assert_eq!(short, "`debiased` has no column 1");
    }

    #[test]
    fn a_measure_of_similarity_has_its_chance_beside_it() {
        let found = json!({ "value": 0.7, "interval": null, "chance": 0.1 });
        let layer = json!({ "layer": 3, "measures": { "mutual-nn": found } });
        let result = json!({
            "layers": [layer], "rows": 9, "repeated": 0, "too_long": 0, "used": 9, "dims": [2, 2],
            "subsamples": 0, "signature": "similarity",
        });
        let measurements = read(Extractor::Measures, &result).unwrap().measurements;
        let [.., value, chance] = measurements.as_slice() else { panic!("{measurements:?}") };
        assert_eq!((value.measure.as_str(), value.value), ("similarity", 0.7));
        assert_eq!((chance.measure.as_str(), chance.value), ("similarity_chance", 0.1));
        for one in [value, chance] {
            assert_eq!((&*one.factors["measure"], &*one.factors["layer"]), ("mutual-nn", "3"));
        }
    }

    #[test]
    fn pairs_of_many_languages_say_which_dictionary_they_had() {
        let pair = |source: &str, target: &str, trained: bool| {
            json!({
                "source": source, "target": target, "trained": trained, "reversed": false, "pivoted": false,
                "queries": 9, "seen": 2, "p_at_1_hub": 0.4, "p_at_1_joint": 0.5, "p_at_1_unmapped": 0.1,
            })
        };
        let result = json!({
            "languages": ["a", "b", "c"], "hub": "a", "words": [9, 9, 9], "train_pairs": [5, 5], "dim": 2,
            "loss_hub": 1.0, "losses": [0.9],
            "pairs": [pair("b", "a", true), pair("b", "c", true), pair("c", "d", false)], "untested": [],
            "mean": [0.4, 0.5, 0.1], "signature": "many",
        });
        let found = read(Extractor::AlignMany, &result).unwrap().measurements;
        let shown: Vec<(&str, &str, f64)> = found
            .iter()
            .filter(|one| one.factors.get("map").is_some_and(|map| map == "together"))
            .map(|one| (&*one.factors["pair"], &*one.factors["dictionary"], one.value))
            .collect();
        assert_eq!(shown, [("b-a", "with-hub", 0.5), ("b-c", "own", 0.5), ("c-d", "none", 0.5)]);
        let counted = |measure: &str| -> Vec<f64> {
            found.iter().filter(|one| one.measure == measure).map(|one| one.value).collect()
        };
        assert_eq!((counted("queries"), counted("queries_seen")), (vec![9.0; 3], vec![2.0; 3]));
        assert_eq!(found.len(), 9 + 6);
    }

    #[test]
    fn mined_pairs_are_scored_where_no_threshold_was_chosen() {
        let score = |f1: f64| {
            json!({
                "threshold": 1.0, "predicted": 9, "correct": 5, "gold": 9, "precision": 0.5, "recall": 0.5,
                "f1": f1, "f1_chance": 0.01,
            })
        };
        let result = |given: Value, held_out: Value| {
            json!({
                "layer": 2, "rows": [9, 9], "repeated": [0, 0], "truncated": [0, 0], "candidates": 9, "pairs": 9,
                "threshold": null, "score": given, "best": score(0.6), "held_out": held_out, "seconds": 0.1,
                "signature": "mine",
            })
        };
        let f1 = |result: &Value| {
            let found = read(Extractor::Mining, result).unwrap().measurements;
            let of = |measure: &str| {
                found.iter().find(|one| one.measure == measure).map(|one| one.value)
            };
            ["mining_f1", "mining_f1_best", "mining_f1_chance"].map(of)
        };
        assert_eq!(f1(&result(Value::Null, score(0.5))), [0.5, 0.6, 0.01].map(Some));
        assert_eq!(f1(&result(score(0.4), Value::Null)), [0.4, 0.6, 0.01].map(Some));
        assert_eq!(f1(&result(Value::Null, Value::Null)), [None, Some(0.6), None]);
    }

    #[test]
    fn a_probe_has_its_shuffled_labels_beside_it() {
        let found = json!({
            "treatment": "lsar", "accuracy": 0.6, "interval": { "low": 0.5, "high": 0.7 }, "shuffled": 0.5,
            "nonlinear": { "accuracy": 0.8, "interval": { "low": 0.7, "high": 0.9 }, "shuffled": 0.49 },
            "variance_between": 0.01, "variance_shuffled": 0.001,
        });
        let result = json!({
            "languages": [], "chance": 0.5, "variance_chance": 0.001,
            "layers": [{ "layer": 2, "treatments": [found] }], "signature": "language-id",
        });
        let measurements = read(Extractor::LanguageId, &result).unwrap().measurements;
        let shown: Vec<(&str, f64)> =
            measurements.iter().map(|one| (one.measure.as_str(), one.value)).collect();
        let [chance, accuracy, shuffled, nonlinear, its_shuffled, variance] = shown[..] else {
            panic!("{shown:?}")
        };
        assert_eq!((chance, accuracy), (("language_id_chance", 0.5), ("language_id", 0.6)));
        assert_eq!(shuffled, ("language_id_shuffled", 0.5));
        assert_eq!(nonlinear, ("language_id_nonlinear", 0.8));
        assert_eq!(its_shuffled, ("language_id_nonlinear_shuffled", 0.49));
        assert_eq!(variance, ("variance_between", 0.01));
        let factors = &measurements[1].factors;
        assert_eq!((&*factors["treatment"], &*factors["layer"]), ("lsar", "2"));
    }

    #[test]
    fn losses_without_neurons_are_relative_to_those_with_all() {
        let language = |name: &str, loss: f64| json!({ "language": name, "neurons": 1, "tokens": 9, "masked": 2, "loss": loss });
        let ablation = |measured: &str, loss: f64| json!({ "ablated": "a", "measured": measured, "loss": loss, "random": [1.25, 1.75] });
        let result = json!({
            "languages": [language("a", 1.0), language("b", 0.5)], "threshold": 0.3,
            "layers": [{ "layer": 1, "neurons": 4, "entropy": 0.6, "specific": [[2], []] }],
            "overlaps": [{ "languages": ["a", "b"], "both": 0, "jaccard": 0.0 }],
            "ablations": [ablation("a", 3.0), ablation("b", 0.75)], "signature": "lape",
        });
        let found = read(Extractor::LanguageNeurons, &result).unwrap().measurements;
        let value = |measure: &str, factors: &[(&str, &str)]| {
            let is = |one: &&Measurement| {
                one.measure == measure
                    && factors.iter().all(|&(name, level)| one.factors[name] == level)
            };
            found.iter().find(is).unwrap().value
        };
        assert_eq!(value("neuron_share", &[("language", "a"), ("layer", "1")]), 0.25);
        assert_eq!(value("neuron_share", &[("language", "b")]), 0.0);
        assert_eq!(value("neuron_overlap", &[]), 0.0);
        let own = [("of", "own"), ("ablated", "a"), ("neurons", "specific")];
        assert_eq!(value("neuron_loss", &own), 2.0);
        assert_eq!(value("neuron_loss", &[("of", "own"), ("neurons", "random")]), 0.5);
        assert_eq!(value("neuron_loss", &[("of", "other"), ("neurons", "specific")]), 0.25);
        assert_eq!(value("neuron_loss", &[("of", "other"), ("neurons", "random")]), 1.0);
    }

    #[test]
    fn what_is_missing_is_named() {
        assert_eq!(read(Extractor::Sweep, &json!({})).unwrap_err(), "missing field `signature`");
        let mistyped = json!({ "signature": "", "sweeps": 3 });
        assert!(
            read(Extractor::Sweep, &mistyped).unwrap_err().contains("invalid type: integer `3`")
        );
        let shifted = Extractor::ShiftedTransfer { task: Task::Ner, source: "qaa".to_owned() };
        assert_eq!(read(shifted, &transfer(Value::Null)).unwrap_err(), "missing field `shift`");
    }

    #[test]
    fn a_sweep_without_a_dictionary_has_no_dictionary_accuracy() {
        let cell = json!({
            "alpha": 1.0, "layer": 2, "bleu1": 0.3, "repeated": 0.1, "conversion_rate": 0.5,
            "translated": null, "other_rate": 0.0, "third_rate": null,
        });
        let sweep = json!({
            "from": "a", "to": "b", "kind": "mean", "rows": 2, "repeated": 1, "too_long": 0, "used": 1,
            "cells": [cell],
        });
        let mut result = json!({ "signature": "bleu1", "sweeps": [sweep] });
        let results = read(Extractor::Sweep, &result).unwrap();
        let measures: Vec<_> =
            results.measurements.iter().map(|one| one.measure.as_str()).collect();
        let counts = ["rows", "repeated", "too_long", "used"];
        assert_eq!(measures[..4], counts);
        assert_eq!(measures[4..], ["bleu1", "copied", "other_rate", "conversion_rate"]);
        assert_eq!(results.measurements[4].factors["alpha"], "1");
        let rows = &results.measurements[1];
        assert_eq!((rows.value, &*rows.factors["of"]), (1.0, "shift"));
        assert!(!rows.factors.contains_key("alpha"));
        // What BLEU-1 and dictionary accuracy are without translating stands beside them.
        let sweep = &mut result["sweeps"][0];
        sweep["bleu1_frequent"] = json!(0.1);
        sweep["cells"][0]["bleu1_permuted"] = json!(0.2);
        sweep["cells"][0]["translated_different"] = json!(0.3);
        sweep["cells"][0]["translated_shuffled"] = json!(0.05);
        let found = read(Extractor::Sweep, &result).unwrap().measurements;
        let value = |measure: &str| found.iter().find(|one| one.measure == measure).unwrap().value;
        let measures = ["bleu1_frequent", "bleu1_permuted", "dictionary_accuracy_different"];
        assert_eq!(measures.map(value), [0.1, 0.2, 0.3]);
        assert_eq!(value("dictionary_accuracy_shuffled"), 0.05);
    }
}
