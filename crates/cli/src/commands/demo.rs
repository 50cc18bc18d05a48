//! `isogloss demo`: the papers' main finding in a few minutes, from nothing but this program.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use lab::record::{Record, TextRecord};
use lab::store::RecordFilter;
use lab::study::{Laboratory, RunOptions, StepOutcome, Study, StudyObserver, StudyStep, run};
use serde::Serialize;
use serde_json::{Value, json};
use tasks::finetune::TransferResult;
use terms::Scale;

use super::study_view::{LiveView, duration, planned, this_build};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;

const EXAMPLES: &str = "Examples:
  isogloss demo
  isogloss demo --out here --json > figures.json

It is the study `demo` (`isogloss study show demo`): two invented languages, one small encoder, the same
result every time. What is done is kept: after a stop, the same command goes on.";

/// Flags of `demo`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// The folder for everything it makes.
    #[arg(long, value_name = "DIR", default_value = "isogloss-demo")]
    out: PathBuf,
}

/// The story, by kind of step: what comes next, and why.
const STORY: [(&str, &str); 11] = [
    (
        "world generate",
        "Two languages are invented. They speak of one world (who does what to whom, and where), but\n\
         they do not share a single word, and no sentence of one is a translation of the other's.",
    ),
    (
        "pretrain",
        "One small encoder now reads plain text of both, in turns, and learns one thing: to guess\n\
         words that are hidden from it. Nothing tells it which words of the two mean the same.",
    ),
    (
        "transfer nli",
        "Is what it learns about one language true of the other? The encoder is trained on examples\n\
         of the first language alone, and then asked about both. First: does one sentence follow\n\
         from another?",
    ),
    ("transfer ner", "Second: which words are names of persons, places and organisations?"),
    ("transfer parse", "Third: which word depends on which, and how?"),
    (
        "retrieve",
        "A sentence is a point in the encoder's space. How often is the nearest point of the other\n\
         language its translation, among 1,000? As the points are; with each language's mean taken\n\
         away; and after a rotation learned from other translations.",
    ),
    ("words", "The same for words, by the mean of all contexts that a word stands in."),
    ("align words", "A rotation learned from three quarters of the dictionary finds the rest."),
    (
        "encode",
        "How alike are the layers' pictures of 1,000 translated sentences? CKA is 1 for the same\n\
         picture, turned or not, and near 0 for pictures that have nothing in common.",
    ),
    (
        "shift means",
        "What is left of each language in the space is, above all, its mean. Let the difference of\n\
         the two means be added to every word of a sentence, and the encoder say what it reads.",
    ),
    ("vocab stats", "How many words do the two vocabularies share?"),
];

impl Demo {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let plan = planned(&Study::find("demo")?, Scale::Tiny, "auto")?;
        let lab = Laboratory::open(&self.out)?;
        let mut told = Told { live: LiveView::new(&plan), lab: &lab, told: HashSet::new() };
        told.live.print(
            "Isogloss, in miniature. Chance and an untrained encoder stand beside every figure.",
        );
        let options = RunOptions {
            program: &std::env::current_exe()?,
            build: &this_build(),
            threads: None,
            fresh: false,
            stop: stop::listen(),
        };
        run(&lab, &plan, &options, &mut told)?;
        drop(told);
        let store = lab.store()?;
        let filter = RecordFilter::study("demo");
        let figures = Figures { records: store.records(&filter)?, notes: store.texts(&filter)? };
        let report = self.out.join("report.html");
        files::write(&report, lab::report::ReportPage::of(&figures.records, &figures.notes).html)?;
        let mut text = figures.in_words();
        let _ = write!(
            text,
            "\nIn {} and with no translation, a space that both languages share.\n\
             The report, with figures: {}\n",
            duration(began.elapsed().as_secs_f64()),
            report.display()
        );
        let facts = json!({ "figures": figures.rows(), "report": report, "lab": self.out });
        Ok(Outcome::new(text, &facts))
    }
}

/// Tells the story while the steps run.
struct Told<'a> {
    live: LiveView,
    lab: &'a Laboratory,
    told: HashSet<&'static str>,
}

impl StudyObserver for Told<'_> {
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64) {
        let chapter = STORY.iter().find(|(kind, _)| step.kind.starts_with(kind));
        if let Some((kind, text)) = chapter
            && self.told.insert(kind)
        {
            self.live.print(&format!("\n{text}\n"));
        }
        self.live.begin(number, step, left);
    }

    fn line(&mut self, line: &str) {
        self.live.line(line);
    }

    fn end(&mut self, number: usize, step: &StudyStep, how: &StepOutcome) {
        self.live.end(number, step, how);
        let result =
            self.lab.result(&step.key).filter(|_| matches!(how, StepOutcome::Completed(_)));
        if let Some(text) = result.and_then(|result| said(&step.kind, &result)) {
            self.live.print(&text);
        }
    }
}

/// What a step's result comes to, in a line.
fn said(kind: &str, result: &Value) -> Option<String> {
    let number = |value: &Value| value.as_f64();
    if kind.starts_with("pretrain") {
        // An encoder that was not trained has read nothing.
        let read = number(&result["subwords"]).filter(|&tokens| tokens > 0.0)?;
        return Some(format!("    {:.1} million words read", read / 1e6));
    }
    if kind.starts_with("transfer") {
        let result: TransferResult = serde_json::from_value(result.clone()).ok()?;
        let scores = result.results.iter().map(|one| format!("{} {:.3}", one.name, one.score.mean));
        let scores = scores.collect::<Vec<_>>().join(", ");
        return Some(format!("    {}: {scores}", result.task.unit()));
    }
    if kind.starts_with("retrieve") {
        let best = |how: &str| {
            let layers = result["layers"].as_array()?.iter();
            layers.filter_map(|layer| number(&layer[how]["forward"])).max_by(f64::total_cmp)
        };
        let (raw, centred, aligned) = (best("raw")?, best("centered")?, best("aligned")?);
        return Some(format!(
            "    P@1: {raw:.3} raw, {centred:.3} mean-centred, {aligned:.3} aligned"
        ));
    }
    if kind.starts_with("shift translate") {
        let sentence = &result["sentences"][0];
        let pieces = sentence["outputs"][1]["subwords"].as_array()?.iter();
        let said: Vec<&str> = pieces.filter_map(|piece| piece["text"].as_str()).collect();
        let (read, right) = (sentence["sentence"].as_str()?, sentence["reference"].as_str()?);
        return Some(format!(
            "    read         {read}\n    said, moved  {}\n    translation  {right}",
            said.join(" ")
        ));
    }
    if kind.starts_with("vocab stats") {
        let shared = number(&result["pairs"][0]["shared_types"])?;
        return Some(format!("    shared: {shared}"));
    }
    None
}

/// A figure of the demo, beside what guessing and an untrained encoder give.
#[derive(Serialize)]
struct Row {
    figure: &'static str,
    chance: Option<f64>,
    untrained: Option<f64>,
    trained: Option<f64>,
}

/// The numbers of the demo.
struct Figures {
    records: Vec<Record>,
    notes: Vec<TextRecord>,
}

impl Figures {
    /// The best over layers of a measure, under some factors.
    fn best(&self, measure: &str, factors: &[(&str, &str)]) -> Option<f64> {
        let fits = |record: &&Record| {
            let has = |(name, value): &(&str, &str)| {
                record.factors.get(*name).is_some_and(|has| has == value)
            };
            record.measure == measure && factors.iter().all(has)
        };
        let values = self.records.iter().filter(fits).map(|record| record.value);
        values.max_by(f64::total_cmp)
    }

    /// The rows of the closing table.
    fn rows(&self) -> Vec<Row> {
        let both = |measure: &str, factors: &[(&str, &str)]| {
            let of = |system: &str| {
                let all = [factors, &[("system", system)]].concat();
                self.best(measure, &all)
            };
            (of("untrained"), of("bilingual"))
        };
        let row = |name, chance, measure: &str, factors: &[(&str, &str)]| {
            let (untrained, trained) = both(measure, factors);
            Row { figure: name, chance, untrained, trained }
        };
        let target = |task| [("task", task), ("role", "target")];
        vec![
            row(
                "translations found, as the points are",
                Some(0.001),
                "retrieval",
                &[("kind", "raw")],
            ),
            row("  with each mean taken away", Some(0.001), "retrieval", &[("kind", "centered")]),
            row("  after a rotation", Some(0.001), "retrieval", &[("kind", "aligned")]),
            row("words found after a rotation", None, "p_at_1", &[]),
            row("inference in the other language", Some(1.0 / 3.0), "accuracy", &target("nli")),
            row("names in the other language (F1)", None, "f1", &target("ner")),
            row("dependencies in the other language", None, "las", &target("parse")),
            row("similarity of layers (CKA), within lengths", None, "cka_within", &[]),
            row(
                "words said in the other language, shifted",
                Some(0.0),
                "conversion_rate",
                &[("alpha", "1")],
            ),
            row("  and the right ones", None, "dictionary_accuracy", &[("alpha", "1")]),
        ]
    }

    fn in_words(&self) -> String {
        let cell =
            |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.3}"));
        let mut text = format!("\n{:<46}{:>9}{:>11}{:>9}\n", "", "chance", "untrained", "trained");
        for Row { figure, chance, untrained, trained } in self.rows() {
            let (chance, untrained, trained) = (cell(chance), cell(untrained), cell(trained));
            let _ = writeln!(text, "{figure:<46}{chance:>9}{untrained:>11}{trained:>9}");
        }
        text += "\nA sentence, moved from one language's mean to the other's:\n";
        for note in self.translations() {
            let label = match note.factors["alpha"].as_str() {
                "input" => "read",
                "0" => "said, not moved",
                "1" => "said, moved",
                _ => "its translation",
            };
            let _ = writeln!(text, "  {label:<17}{}", note.text);
        }
        text
    }

    /// The first sentences that the trained encoder moved, line by line.
    fn translations(&self) -> Vec<&TextRecord> {
        let wanted = ["input", "0", "1", "reference"];
        let mut notes = Vec::new();
        for line in ["1", "2", "3"] {
            for alpha in wanted {
                notes.extend(self.notes.iter().filter(|note| {
                    note.factors["system"] == "bilingual"
                        && note.factors["line"] == line
                        && note.factors["alpha"] == alpha
                }));
            }
        }
        notes
    }
}
