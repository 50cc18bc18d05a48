//! The demo: a bilingual encoder of two languages without a common word, and an untrained one.

use super::ReportSection;
use super::names::scored;
use super::parts::{
    chance, chance_of_retrieval, chance_of_words, dots, figure, mark, measured_tasks, named,
    system_colour,
};
use crate::draw::{Chart, DotRow, ReferenceLine};
use crate::report::data::{FactorFilter, SettingView, StudyData};
use crate::report::exhibit::CaptionedItem;
use crate::report::tokens::TokenSentence;

const SYSTEMS: [&str; 2] = ["bilingual", "untrained"];

pub(in crate::report) const DEMO: ReportSection = ReportSection {
    id: "demo",
    title: "A bilingual encoder of two languages without a common word",
    place: "Both papers, in miniature",
    studies: &["demo"],
    method: "Two languages are generated over one world of meaning; they share no word. One small encoder is pretrained on \
             monolingual text of both by masked language modelling, without any translations. The untrained encoder, of the \
             same architecture, shows what positions and sentence length give by themselves.",
    claims: &[],
    fails: "",
    numbers: |view| {
        let data = view.study("demo");
        let score = |task: &terms::Task| {
            let factors = [("system", "bilingual"), ("task", task.name()), ("role", "target")];
            data.mean(task.measure(), &factors).map(|mean| scored(*task, mean.mean))
        };
        let scores: Vec<String> = measured_tasks(&data).iter().filter_map(score).collect();
        match scores.is_empty() {
            true => String::new(),
            false => format!("fine-tuned on language A alone, {} in language B", scores.join(", ")),
        }
    },
    show,
};

fn show(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.study("demo");
    let charts: Vec<Chart> =
        [retrieval(&data), transfer(&data), rest(&data)].into_iter().flatten().collect();
    let figure = figure(named(id, "overview"), "Bilingual and untrained encoder", &charts);
    vec![
        CaptionedItem::figure(
            "In miniature",
            "Sentence retrieval accuracy among 1,000 (chance 0.001): raw, mean-centred, and after Procrustes alignment. \
             Zero-shot transfer to the target language. Word translation after Procrustes alignment (P@1), CKA within sentence \
             lengths, and token conversion rate and dictionary accuracy under the language shift.",
            figure,
        ),
        CaptionedItem::sentences(
            "After Liu et al. 2020, Table 1",
            "A sentence, the predicted tokens when α times the difference of the language mean vectors is added to its \
             hidden states, and its translation. Nothing is masked, and nothing was trained for this. Words are coloured by the \
             language in whose sentences they occur here; sentences with fewest common words come first.",
            TokenSentence::all(&data.only("system", "bilingual")),
        ),
    ]
}

/// Both systems at the best layer of a measure.
fn row(data: &StudyData<'_>, name: &str, measure: &str, factors: &FactorFilter<'_>) -> DotRow {
    let of = |system: &str| {
        let factors = [factors, &[("system", system)]].concat();
        let layered = data.best(measure, &factors).sample();
        let sample = match layered.0.is_empty() {
            true => data.observations(measure, &factors).sample(),
            false => layered,
        };
        mark(&data.name(system), system_colour(system).unwrap_or(0), &sample, None)
    };
    DotRow { name: name.to_owned(), marks: SYSTEMS.map(of).to_vec() }
}

fn retrieval(data: &StudyData<'_>) -> Option<Chart> {
    let kinds = [("raw", "raw"), ("centered", "centred"), ("aligned", "aligned")];
    let rows = kinds.map(|(kind, name)| row(data, name, "retrieval", &[("kind", kind)]));
    let chance = chance_of_retrieval(data).into_iter().collect();
    dots("Sentence retrieval", "P@1", rows.to_vec(), chance)
}

fn transfer(data: &StudyData<'_>) -> Option<Chart> {
    let tasks = measured_tasks(data);
    let rows = tasks.iter().map(|task| {
        let name = format!("{} ({}; chance {:.2})", task.title(), task.unit(), task.chance());
        row(data, &name, task.measure(), &[("task", task.name()), ("role", "target")])
    });
    // One line where all tasks have one chance; each row names its own.
    let same = tasks.windows(2).all(|pair| pair[0].chance() == pair[1].chance());
    let chance: Option<ReferenceLine> =
        tasks.first().filter(|_| same).map(|task| chance(task.chance()));
    dots("Zero-shot transfer", "score", rows.collect(), chance.into_iter().collect())
}

fn rest(data: &StudyData<'_>) -> Option<Chart> {
    let shifted = [("alpha", "1"), ("kind", "mean"), ("direction", "qaa-qab")];
    let chance = chance_of_words(data, "p_at_1", &[]);
    let words = chance.map_or("word translation, P@1".to_owned(), |chance| {
        format!("word translation, P@1 (chance {:.3})", chance.value)
    });
    let rows = vec![
        row(data, &words, "p_at_1", &[]),
        row(data, "CKA within sentence lengths", "cka_within", &[]),
        row(data, "tokens converted by the shift", "conversion_rate", &shifted),
        row(data, "of these, dictionary translations", "dictionary_accuracy", &shifted),
    ];
    dots("Words, CKA, shift", "value", rows, vec![])
}
