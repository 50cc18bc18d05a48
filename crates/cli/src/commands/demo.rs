//! `isogloss demo`: the papers' main finding in a few minutes, without any data.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use files::At;
use lab::demo::{DemoResult, DemoRow, share};
use lab::draw::ColourScheme;
use lab::store::RecordFilter;
use lab::study::{Laboratory, RunOptions, StepOutcome, Study, StudyObserver, StudyStep, run};
use serde::Deserialize;
use serde_json::{Value, json};
use shift::translate::TranslationResult;
use tasks::finetune::TransferResult;
use terms::Scale;
use text::VocabularySharing;
use train::pretrain::PretrainSummary;

use super::study_view::{LiveView, duration, planned, this_build};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::stop;
use commands::models::open_device;

const EXAMPLES: &str = "Examples:
  isogloss demo
  isogloss demo --out here --json > figures.json

It is the study `demo` (`isogloss study show demo`): two invented languages, one small encoder, the same
result every time. Finished steps are kept: after an interruption, the same command continues.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// The folder for everything it makes.
    #[arg(short, long, value_name = "DIR", default_value = "isogloss-demo")]
    out: PathBuf,
}

/// The story, by kind of step: what comes next, and why.
const STORY: [(&str, &str); 11] = [
    (
        "world generate",
        "Two invented languages. They share their meanings (who does what to whom, and where), but not a\n\
         single word, and no sentence of one corpus is a translation of the other's.",
    ),
    (
        "pretrain",
        "One small encoder is pretrained on plain text of both by masked language modelling: it predicts\n\
         masked tokens. It receives no dictionary and no parallel text.",
    ),
    (
        "transfer nli",
        "Zero-shot transfer: the encoder is fine-tuned on labelled data of the first language alone, and\n\
         evaluated on both. First natural language inference.",
    ),
    ("transfer ner", "Second, named entity recognition: persons, places and organisations."),
    ("transfer parse", "Third, dependency parsing."),
    (
        "retrieve",
        "Sentence retrieval: how often is the nearest of 1,000 sentence vectors of the other language the\n\
         translation (P@1)? Raw; mean-centred by language; and after Procrustes alignment on other\n\
         translations.",
    ),
    ("words", "The same for words, by the mean of a word's vectors over its contexts."),
    (
        "align words",
        "A Procrustes map learned from three quarters of the dictionary, tested on the rest.",
    ),
    (
        "encode",
        "How similar are the layers' representations of 1,000 translated sentences? Linear CKA is 1 for\n\
         representations that are equal up to rotation, and near 0 for unrelated ones.",
    ),
    (
        "shift means",
        "What remains of each language in the space is above all its mean vector. The difference of the two\n\
         means is added to every hidden state of a sentence, and the MLM head predicts tokens.",
    ),
    ("vocab stats", "How many subwords do the two vocabularies share?"),
];

impl Demo {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let began = Instant::now();
        let plans = planned(&[Study::find("demo")?], Scale::Tiny, "auto")?;
        let lab = Laboratory::open(&self.out)?;
        let mut view = DemoView { live: LiveView::new(&plans), lab: &lab, shown: HashSet::new() };
        view.live
            .print("Isogloss in miniature, with chance and an untrained encoder as baselines.");
        let options = RunOptions {
            program: crate::invocation::program(),
            build: &this_build(),
            jobs: 1,
            threads: None,
            fresh: false,
            // Results of an older program.
            force: true,
            snapshots: true,
            stop: stop::listen(),
        };
        run(&lab, &plans, &options, &mut view)?;
        drop(view);
        let store = lab.store()?;
        let filter = RecordFilter::study("demo");
        let (records, texts) = (store.records(&filter)?, store.texts(&filter)?);
        let result = DemoResult::of(&records, &texts);
        let report = self.out.join("report.html");
        let figures = self.out.join("figures");
        std::fs::create_dir_all(&figures).at(&figures, "make the folder")?;
        let pictures = lab::demo::pictures(&lab, &plans[0], &open_device("cpu", 0)?)?;
        for picture in &pictures {
            for (name, scheme) in [("light", ColourScheme::Light), ("dark", ColourScheme::Dark)] {
                let file = format!("figures/{}-{name}.svg", picture.figure.id);
                files::write(&self.out.join(file), picture.svg_in(scheme))?;
            }
        }
        let page = lab::report::ReportPage::with(&records, &texts, &pictures, &[]);
        files::write(&report, page.html)?;
        let encoder = lab::demo::encoder(&lab, &plans[0]).unwrap_or_default();
        let mut text = in_words(&result);
        let _ = write!(
            text,
            "\nIn {} and without parallel data, a representation space that both languages share.\n\
             The report, with figures: {}\nThe trained encoder: {}\n\
             To look at it in the browser: isogloss explore {}\n",
            duration(began.elapsed().as_secs_f64()),
            report.display(),
            encoder.display(),
            self.out.display()
        );
        let json =
            json!({ "result": result, "report": report, "lab": self.out, "encoder": encoder });
        Ok(Outcome::new(text, &json))
    }
}

struct DemoView<'a> {
    live: LiveView,
    lab: &'a Laboratory,
    shown: HashSet<&'static str>,
}

impl StudyObserver for DemoView<'_> {
    fn begin(&mut self, number: usize, step: &StudyStep, left: f64) {
        let chapter = STORY.iter().find(|(kind, _)| step.kind.starts_with(kind));
        if let Some((kind, text)) = chapter
            && self.shown.insert(kind)
        {
            self.live.print(&format!("\n{text}\n"));
        }
        self.live.begin(number, step, left);
    }

    fn line(&mut self, number: usize, line: &str) {
        self.live.line(number, line);
    }

    fn warn(&mut self, text: &str) {
        self.live.warn(text);
    }

    fn end(&mut self, number: usize, step: &StudyStep, how: &StepOutcome) {
        self.live.end(number, step, how);
        let result =
            self.lab.result(&step.key).filter(|_| matches!(how, StepOutcome::Completed(_)));
        let line = result.and_then(|result| match step.command.verb {
            "retrieve" => self.retrieval(step),
            verb => result_line(verb, &result),
        });
        if let Some(text) = line {
            self.live.print(&text);
        }
    }
}

impl DemoView<'_> {
    /// The retrieval of a step's encoder, as the closing table has it.
    fn retrieval(&self, step: &StudyStep) -> Option<String> {
        let records = self.lab.store().ok()?.records(&RecordFilter::study("demo")).ok()?;
        let DemoResult { rows, layer, .. } = DemoResult::of(&records, &[]);
        let trained = step.name.contains("bilingual");
        let own = |row: &DemoRow| row.shown(if trained { row.trained } else { row.untrained });
        let [raw, centred, aligned, ..] = rows.as_slice() else { return None };
        let shown = [raw, centred, aligned].map(own);
        let [raw, centred, aligned] = shown;
        Some(format!(
            "    P@1 at layer {layer}: {raw} raw, {centred} mean-centred, {aligned} aligned"
        ))
    }
}

fn result_line(command: &str, result: &Value) -> Option<String> {
    match command {
        "pretrain" => {
            // An untrained encoder has seen no tokens.
            let tokens = PretrainSummary::deserialize(result).ok()?.tokens;
            (tokens > 0).then(|| format!("    {:.1} million tokens", tokens as f64 / 1e6))
        }
        "transfer" => {
            let result = TransferResult::deserialize(result).ok()?;
            let scores =
                result.results.iter().map(|one| format!("{} {}", one.name, share(one.score.mean)));
            let scores = scores.collect::<Vec<_>>().join(", ");
            Some(format!("    {}: {scores}", result.task.unit()))
        }
        "shift translate" => {
            let result = TranslationResult::deserialize(result).ok()?;
            let sentence = result.sentences.first()?;
            let subwords = sentence.outputs.get(1)?.subwords.iter();
            let predicted: Vec<&str> = subwords.map(|subword| subword.text.as_str()).collect();
            Some(format!(
                "    input      {}\n    predicted  {}\n    reference  {}",
                sentence.sentence,
                predicted.join(" "),
                sentence.reference.as_ref()?
            ))
        }
        "vocab stats" => {
            let result = VocabularySharing::deserialize(result).ok()?;
            Some(format!("    shared subwords: {}", result.pairs.first()?.shared_types))
        }
        _ => None,
    }
}

/// The closing table, and the first sentences with their token translation output.
fn in_words(result: &DemoResult) -> String {
    let mut text = format!("\n{:<46}{:>9}{:>11}{:>9}\n", "", "chance", "untrained", "trained");
    for row in &result.rows {
        let DemoRow { measure, chance, untrained, trained } = row;
        let [chance, untrained, trained] =
            [chance, untrained, trained].map(|value| row.shown(*value));
        let _ = writeln!(text, "{measure:<46}{chance:>9}{untrained:>11}{trained:>9}");
    }
    let _ = writeln!(
        text,
        "(retrieval, words, CKA: layer {}, best by the trained encoder's raw P@1)",
        result.layer
    );
    text += "\nToken translation: predicted tokens of a sentence, raw and shifted by the difference of means\n";
    for line in &result.translations {
        let label = match line.alpha.as_str() {
            "input" => "input",
            "0" => "predicted, raw",
            "1" => "predicted, shifted",
            _ => "reference",
        };
        let _ = writeln!(text, "  {label:<20}{}", line.text);
    }
    text
}
