//! Conditions of zero-shot transfer: domain, anchors, parameter sharing (Conneau et al. 2020, §4.1 to §4.3).

use terms::Task;

use super::ReportSection;
use super::parts::{
    bar, bars_panel, has_paper, kind_name, legend, measured_tasks, measures, named, target,
    tasks_of_paper,
};
use crate::draw::{BarGroup, Figure, Panel, SeriesMark};
use crate::papers;
use crate::report::data::{SettingView, StudyData};
use crate::report::exhibit::{CaptionedItem, ReportTable, TableCell};
use crate::report::finding::{Criterion, Evidence, PaperClaim};
use crate::report::observations::Observations;
use crate::statistics::{permutation_p, spearman};

const CONDITIONS: [&str; 10] = [
    "default",
    "wiki-cc",
    "default-anchors",
    "no-anchors",
    "extra-anchors",
    "sep-emb",
    "sep-emb-l1-3",
    "sep-emb-l1-6",
    "sep-l1-3",
    "sep-l1-6",
];

/// The studies whose conditions are rows of one table.
const TOGETHER: [&str; 3] = ["domain", "anchors", "sharing"];

/// A condition that keeps at least this share of the default's transfer loses little.
const LITTLE: f64 = 0.9;
/// One that keeps less than this share loses most of it.
const MOST: f64 = 0.5;

pub(in crate::report) const TABLE: ReportSection = ReportSection {
    id: "table-1",
    title: "All conditions in one table",
    place: "Conneau et al. 2020, Table 1 and Figure 3",
    studies: &TOGETHER,
    method: "One encoder is pretrained on monolingual text of two languages under a condition, then fine-tuned for a task on \
             labelled data of the source language alone. The zero-shot score in the target language measures how much the \
             representations share. Conneau et al. 2020 remove one factor at a time.",
    claims: &[PaperClaim {
        finding: "Conditions rank as in the paper",
        place: "Conneau et al. 2020, Table 1",
        paper: || "ten conditions, means over French, Russian and Chinese".to_owned(),
        quantity: "Spearman correlation of our conditions with the paper's, by transfer above chance over all tasks",
        criterion: Criterion::Ranks,
        measure: ranks,
    }],
    show: show_table,
};

pub(in crate::report) const DOMAIN: ReportSection = ReportSection {
    id: "domain",
    title: "Must the training texts be of the same domain?",
    place: "Conneau et al. 2020, §4.1",
    studies: &["domain"],
    method: "The default condition pretrains on texts of one domain in both languages. Here the target language's text comes \
             from another domain (in the paper, Common Crawl in place of Wikipedia).",
    claims: &[PaperClaim {
        finding: "A difference in domain costs little transfer",
        place: "Conneau et al. 2020, §4.1",
        paper: || kept_in_paper("wiki-cc", "default"),
        quantity: "share of the default's transfer that is kept with another domain",
        criterion: Criterion::Above(LITTLE),
        measure: |view| kept(&view.study("domain"), "wiki-cc", "default"),
    }],
    show: |id, view| {
        conditions(
            id,
            "Conneau et al. 2020, Figure 3 and Table 1, first group",
            &view.study("domain"),
        )
    },
};

pub(in crate::report) const ANCHORS: ReportSection = ReportSection {
    id: "anchors",
    title: "Must the languages share subwords?",
    place: "Conneau et al. 2020, §4.2",
    studies: &["anchors"],
    method: "Anchors are strings that occur in both languages, such as names and numbers. The vocabulary may keep them \
             (default anchors) or separate every subword by language (no anchors); more are created by replacing words with \
             their dictionary translations (extra anchors).",
    claims: &[
        PaperClaim {
            finding: "Transfer does not need anchors",
            place: "Conneau et al. 2020, §4.2",
            paper: || kept_in_paper("no-anchors", "default-anchors"),
            quantity: "share of the transfer with default anchors that is kept without anchors",
            criterion: Criterion::Above(LITTLE),
            measure: |view| kept(&view.study("anchors"), "no-anchors", "default-anchors"),
        },
        PaperClaim {
            finding: "More anchors improve transfer",
            place: "Conneau et al. 2020, §4.2",
            paper: || gained_in_paper("extra-anchors", "no-anchors"),
            quantity: "mean target score with extra anchors minus without anchors",
            criterion: Criterion::Above(0.0),
            measure: |view| gained(&view.study("anchors"), "extra-anchors", "no-anchors"),
        },
    ],
    show: |id, view| {
        conditions(
            id,
            "Conneau et al. 2020, Figure 3 and Table 1, second group",
            &view.study("anchors"),
        )
    },
};

pub(in crate::report) const SHARING: ReportSection = ReportSection {
    id: "sharing",
    title: "Must the languages share parameters?",
    place: "Conneau et al. 2020, §4.3",
    studies: &["sharing"],
    method: "Embeddings, the lowest layers, or both are separate for each language; the layers above are shared. At scales \
             with fewer layers, \u{201c}l1-3\u{201d} and \u{201c}l1-6\u{201d} stand for the same shares of the depth.",
    claims: &[
        PaperClaim {
            finding: "Transfer survives separate embeddings and lower layers (sep-emb-l1-3)",
            place: "Conneau et al. 2020, §4.3",
            paper: || kept_in_paper("sep-emb-l1-3", "default"),
            quantity: "share of the default's transfer that is kept",
            criterion: Criterion::Above(MOST),
            measure: |view| kept(&view.study("sharing"), "sep-emb-l1-3", "default"),
        },
        PaperClaim {
            finding: "Transfer breaks down when most layers are separate (sep-emb-l1-6)",
            place: "Conneau et al. 2020, §4.3",
            paper: || kept_in_paper("sep-emb-l1-6", "default"),
            quantity: "share of the default's transfer that is kept",
            criterion: Criterion::Below(MOST),
            measure: |view| kept(&view.study("sharing"), "sep-emb-l1-6", "default"),
        },
        PaperClaim {
            finding: "Sharing fewer layers reduces transfer",
            place: "Conneau et al. 2020, §4.3",
            paper: || gained_in_paper("sep-emb-l1-3", "sep-emb-l1-6"),
            quantity: "mean target score with sep-emb-l1-3 minus with sep-emb-l1-6",
            criterion: Criterion::Above(0.0),
            measure: |view| gained(&view.study("sharing"), "sep-emb-l1-3", "sep-emb-l1-6"),
        },
        PaperClaim {
            finding: "Sharing parameters matters more than sharing subwords",
            place: "Conneau et al. 2020, §4.5",
            paper: || gained_in_paper("no-anchors", "sep-emb-l1-6"),
            quantity: "mean target score without anchors minus with sep-emb-l1-6",
            criterion: Criterion::Above(0.0),
            measure: |view| gained(&view.studies(&TOGETHER), "no-anchors", "sep-emb-l1-6"),
        },
    ],
    show: |id, view| {
        conditions(
            id,
            "Conneau et al. 2020, Figure 3 and Table 1, third group",
            &view.study("sharing"),
        )
    },
};

/// Target scores under a condition, above chance.
fn transfer(data: &StudyData<'_>, condition: &str) -> Observations {
    above_chance(data, &[("condition", condition), ("role", "target")])
}

pub(super) fn above_chance(data: &StudyData<'_>, factors: &[(&str, &str)]) -> Observations {
    let of = |task: Task| {
        let cells =
            data.observations(task.measure(), &[factors, &[("task", task.name())]].concat());
        // The task becomes a factor again, or tasks would overwrite one another.
        cells.tagged("task", task.name()).map(|_, value| value - task.chance())
    };
    tasks_of_paper().map(of).fold(Observations::default(), Observations::join)
}

/// Transfer under a condition as a share of that under another.
fn kept(data: &StudyData<'_>, condition: &str, of: &str) -> Evidence {
    let (part, whole) = (transfer(data, condition), transfer(data, of));
    // Both sides over the observations that both have.
    let (part, whole) =
        (part.with(&whole, |a, _| a).sample(), whole.with(&part, |a, _| a).sample());
    if whole.0.values().any(|value| *value < 0.05) {
        return Evidence::Void(
            "the baseline condition itself transfers less than 0.05 above chance",
        );
    }
    Evidence::Seeds(part.with(&whole, |a, b| a / b))
}

fn gained(data: &StudyData<'_>, condition: &str, over: &str) -> Evidence {
    super::parts::difference(&transfer(data, condition), &transfer(data, over))
}

/// The paper's transfer above chance under a condition: of one language, or of its means.
pub(super) fn paper_transfer(condition: &str, language: Option<&str>) -> Option<f64> {
    let of = |task: Task| {
        let mut factors = vec![("condition", condition), ("task", task.name())];
        factors.extend(language.map(|language| ("language", language)));
        let place = if language.is_some() { "Table 1" } else { "Table 1, means" };
        Some(papers::number(1, place, task.measure(), &factors)? - task.chance())
    };
    Some(tasks_of_paper().map(of).sum::<Option<f64>>()? / tasks_of_paper().count() as f64)
}

fn kept_in_paper(condition: &str, of: &str) -> String {
    let share = || Some(paper_transfer(condition, None)? / paper_transfer(of, None)?);
    share().map_or(String::new(), |share| format!("keeps {share:.2} of the transfer"))
}

fn gained_in_paper(condition: &str, over: &str) -> String {
    let gain = || Some(paper_transfer(condition, None)? - paper_transfer(over, None)?);
    gain().map_or(String::new(), |gain| {
        format!("{gain:+.3} over three tasks and languages").replace('-', "\u{2212}")
    })
}

/// The rank correlation of our conditions with the paper's, by transfer above chance over all tasks.
fn ranks(view: &SettingView<'_>) -> Evidence {
    let data = view.studies(&TOGETHER);
    let both = |condition: &&str| {
        Some((transfer(&data, condition).sample().mean()?.mean, paper_transfer(condition, None)?))
    };
    let (ours, theirs): (Vec<f64>, Vec<f64>) = CONDITIONS.iter().filter_map(both).unzip();
    match (spearman(&ours, &theirs), permutation_p(&ours, &theirs)) {
        (Some(rho), Some(p)) => Evidence::Ranks { rho, p, n: ours.len() },
        _ => Evidence::Nothing,
    }
}

fn pairs(data: &StudyData<'_>) -> Vec<String> {
    data.levels(&measures(), "pair", &["en-fr", "en-ru", "en-zh"])
}

/// The paper's score: of the pair's own language where it has it, else its mean.
fn paper_score(task: Task, condition: &str, pair: &str) -> Option<f64> {
    let own = [("condition", condition), ("task", task.name()), ("language", target(pair))];
    papers::number(1, "Table 1", task.measure(), &own).or_else(|| paper_mean(task, condition))
}

fn paper_mean(task: Task, condition: &str) -> Option<f64> {
    papers::number(
        1,
        "Table 1, means",
        task.measure(),
        &[("condition", condition), ("task", task.name())],
    )
}

/// A panel for each task: a group for each condition, a bar for each pair.
fn task_panels(data: &StudyData<'_>, pairs: &[String]) -> (Vec<Panel>, bool) {
    let levels = data.levels(&measures(), "condition", &CONDITIONS);
    let mut paper = false;
    let panel = |task: Task| {
        let score = |condition: &str, pair: &str| {
            let factors = [
                ("condition", condition),
                ("pair", pair),
                ("task", task.name()),
                ("role", "target"),
            ];
            data.mean(task.measure(), &factors)
        };
        let group = |condition: &String| BarGroup {
            name: condition.clone(),
            bars: pairs
                .iter()
                .enumerate()
                .map(|(colour, pair)| {
                    bar(colour, score(condition, pair), paper_score(task, condition, pair))
                })
                .collect(),
        };
        let groups: Vec<BarGroup> = levels.iter().map(group).collect();
        paper |= has_paper(&groups);
        bars_panel(task.title(), &format!("{}, target language", task.unit()), groups)
    };
    (Task::all().filter_map(panel).collect(), paper)
}

/// Bars for each task, then retrieval, then the numbers.
fn conditions(id: &str, place: &str, data: &StudyData<'_>) -> Vec<CaptionedItem> {
    let pairs = pairs(data);
    let (panels, paper) = task_panels(data, &pairs);
    let scores = Figure {
        id: named(id, "transfer"),
        title: "Zero-shot transfer by condition".to_owned(),
        legend: legend(&pairs, SeriesMark::Bar, paper),
        panels,
    };
    vec![
        CaptionedItem::figure(
            place,
            "Zero-shot scores in the target language. Whiskers are 95 % intervals over seeds; a diamond is the paper's number \
             (of the same language, or its mean over three), from other data and a much larger model.",
            scores,
        ),
        CaptionedItem::figure(
            "Beyond the paper",
            "Sentence retrieval accuracy (P@1, mean of both directions) at the best layer: raw, mean-centred, and after \
             Procrustes alignment learned from other sentences.",
            retrieval(id, data),
        ),
        CaptionedItem::table(place, TABLE_CAPTION, table(data, &pairs)),
    ]
}

const TABLE_CAPTION: &str = "Means over seeds ± half the width of the 95 % interval; the small number is the number of \
                             seeds. \u{201c}Source\u{201d} is the language of fine-tuning. The paper\u{2019}s columns are its \
                             means over French, Russian and Chinese.";

fn retrieval(id: &str, data: &StudyData<'_>) -> Figure {
    let kinds = data.levels(&["retrieval"], "kind", &["raw", "centered", "aligned"]);
    let names: Vec<String> = kinds.iter().map(|kind| kind_name(kind).to_owned()).collect();
    let levels = data.levels(&["retrieval"], "condition", &CONDITIONS);
    let found = |condition: &str, kind: &str| {
        data.best("retrieval", &[("condition", condition), ("kind", kind)]).sample().mean()
    };
    let group = |condition: &String| BarGroup {
        name: condition.clone(),
        bars: kinds
            .iter()
            .enumerate()
            .map(|(i, kind)| bar(i, found(condition, kind), None))
            .collect(),
    };
    let panel = bars_panel("Sentence retrieval", "P@1", levels.iter().map(group).collect());
    Figure {
        id: named(id, "retrieval"),
        title: "Sentence retrieval by condition".to_owned(),
        legend: legend(&names, SeriesMark::Bar, false),
        panels: panel.into_iter().collect(),
    }
}

/// Rows of conditions; for each task the source, each pair, and the paper.
fn table(data: &StudyData<'_>, pairs: &[String]) -> ReportTable {
    let mut table = ReportTable {
        groups: vec![(String::new(), 1)],
        heads: vec!["condition".to_owned()],
        rows: vec![],
    };
    let tasks = measured_tasks(data);
    for &task in &tasks {
        table.groups.push((format!("{} ({})", task.title(), task.unit()), pairs.len() + 2));
        table.heads.push("source".to_owned());
        table.heads.extend(pairs.iter().map(|pair| target(pair).to_owned()));
        table.heads.push("Conneau et al. 2020".to_owned());
    }
    for condition in data.levels(&measures(), "condition", &CONDITIONS) {
        let mut row = vec![TableCell::Name(condition.clone())];
        for &task in &tasks {
            let of = |role, more: &[(&str, &str)]| {
                let factors = [("condition", &*condition), ("task", task.name()), ("role", role)];
                TableCell::Ours(data.mean(task.measure(), &[&factors, more].concat()))
            };
            row.push(of("source", &[]));
            row.extend(pairs.iter().map(|pair| of("target", &[("pair", pair)])));
            row.push(TableCell::Paper(paper_mean(task, &condition), 3));
        }
        table.rows.push(row);
    }
    table
}

fn show_table(id: &str, view: &SettingView<'_>) -> Vec<CaptionedItem> {
    let data = view.studies(&TOGETHER);
    let pairs = pairs(&data);
    let (panels, paper) = task_panels(&data, &pairs);
    let figure = Figure {
        id: named(id, "transfer"),
        title: "Zero-shot transfer under all conditions".to_owned(),
        legend: legend(&pairs, SeriesMark::Bar, paper),
        panels,
    };
    vec![
        CaptionedItem::figure(
            "Conneau et al. 2020, Figure 3",
            "Zero-shot scores under all conditions, by task, with the paper's numbers.",
            figure,
        ),
        CaptionedItem::table("Conneau et al. 2020, Table 1", TABLE_CAPTION, table(&data, &pairs)),
    ]
}
