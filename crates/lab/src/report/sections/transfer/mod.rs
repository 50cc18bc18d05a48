//! Conditions of zero-shot transfer: domain, anchors, parameter sharing (Conneau et al. 2020, §4.1 to §4.3).

mod comparison;

pub(in crate::report) use comparison::against_paper;

use terms::{Preset, Scale, Task};

use super::ReportSection;
use super::names::language_name;
use super::parts::{
    OTHERS, between_distances, by_pair, chance, chance_of_retrieval, difference, dots, figure,
    kind_colour, kind_name, mark, measured_tasks, measures, named, nearest_and_farthest, pair_name,
    system_colour, target, tasks_of_paper,
};
use crate::draw::{Chart, DotRow, Figure, short};
use crate::papers;
use crate::record::Factors;
use crate::report::data::{SettingView, StudyData, UNTRAINED, best_of};
use crate::report::exhibit::{BEYOND, CaptionedItem, ReportTable, TableCell, replicates};
use crate::report::finding::{ClaimLine, Control, Criterion, Evidence, PaperClaim, signed};
use crate::report::observations::Observations;

const CONDITIONS: [&str; 12] = [
    "default",
    "default-equal",
    "wiki-cc",
    "default-anchors",
    "no-anchors",
    "extra-anchors",
    "sep-emb",
    "sep-emb-l1-3",
    "sep-emb-l1-6",
    "sep-l1-3",
    "sep-l1-6",
    UNTRAINED,
];

/// Those with separate parameters, and the untrained encoder.
const SEPARATE: &[&str] = CONDITIONS.split_at(6).1;

/// The studies whose conditions are rows of one table.
const TOGETHER: [&str; 4] = ["domain", "anchors", "sharing", "table-1"];
/// Each study of some of them, and the study of all.
const OF_DOMAIN: [&str; 2] = ["domain", "table-1"];
const OF_ANCHORS: [&str; 2] = ["anchors", "table-1"];
const OF_SHARING: [&str; 2] = ["sharing", "table-1"];

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
        paper: &|| "ten conditions, means over French, Russian and Chinese".to_owned(),
        quantity: "Spearman correlation of our conditions with the paper's, by transfer above chance",
        criterion: Criterion::Ranks,
        measure: &|view| {
            let data = view.studies(&TOGETHER);
            let all = ClaimLine::new("all tasks", comparison::ranks(&data, None, None));
            let of = |task: Task| {
                ClaimLine::new(task.title(), comparison::ranks(&data, Some(task), None))
            };
            [all].into_iter().chain(tasks_of_paper().map(of)).collect()
        },
    }],
    fails: "Conditions do not rank as in the paper",
    numbers: &|view| match comparison::ranks(&view.studies(&TOGETHER), None, None) {
        Evidence::Ranks { test, n, .. } => {
            format!("\u{3c1} = {} over {n} conditions", short(test.rho))
        }
        _ => String::new(),
    },
    show: &show_table,
};

pub(in crate::report) const DOMAIN: ReportSection = ReportSection {
    id: "domain",
    title: "Must the training texts be of the same domain?",
    place: "Conneau et al. 2020, §4.1",
    studies: &OF_DOMAIN,
    method: "The default condition pretrains on texts of one domain in both languages. Here the target language's text comes \
             from another domain, in the same amount (in the paper, Common Crawl in place of Wikipedia).",
    claims: &[
        PaperClaim {
            finding: "A difference in domain costs little transfer",
            place: "Conneau et al. 2020, §4.1",
            paper: &|| kept_in_paper("wiki-cc", "default"),
            quantity: "share of the default's transfer that is kept with another domain",
            criterion: Criterion::Above(LITTLE),
            measure: &|view| {
                let data = view.studies(&OF_DOMAIN);
                let Some(whole) = one_domain(view, &data) else { return more_text().alone() };
                kept(&data, "wiki-cc", whole).against(trained(&data, "wiki-cc")).alone()
            },
        },
        PaperClaim {
            finding: "NER loses most by a difference in domain",
            place: "Conneau et al. 2020, §4.1",
            paper: &|| {
                let of = |task| Some(paper_mean(task, "default")? - paper_mean(task, "wiki-cc")?);
                let points = |task| {
                    of(task).map_or(String::new(), |loss: f64| format!("{:.1}", 100.0 * loss))
                };
                format!(
                    "NER loses {} points, NLI {}, parsing {}",
                    points(Task::Ner),
                    points(Task::Nli),
                    points(Task::Parse)
                )
            },
            quantity: "loss of target score in NER minus the mean loss in NLI and parsing",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.studies(&OF_DOMAIN);
                let Some(whole) = one_domain(view, &data) else { return more_text().alone() };
                let loss = |task| {
                    task_transfer(&data, whole, task)
                        .minus(&task_transfer(&data, "wiki-cc", task))
                        .dropped("task")
                };
                let others = loss(Task::Nli).with(&loss(Task::Parse), |a, b| (a + b) / 2.0);
                let line = ClaimLine::new("", difference(&loss(Task::Ner), &others));
                line.against(trained_in(&data, whole, Task::Ner)).alone()
            },
        },
    ],
    fails: "A difference in domain costs transfer",
    numbers: &|view| {
        let data = view.studies(&OF_DOMAIN);
        let one = one_domain(view, &data)
            .map_or(("default", "all text of one domain"), |one| (one, "one domain"));
        compared(&data, &[one, ("wiki-cc", "two")])
    },
    show: &|id, view| {
        let own = &["default", "default-equal", "wiki-cc", UNTRAINED];
        conditions(id, &["Figure 3", "Table 1"], &among(&view.studies(&OF_DOMAIN), own))
    },
};

pub(in crate::report) const ANCHORS: ReportSection = ReportSection {
    id: "anchors",
    title: "Must the languages share subwords?",
    place: "Conneau et al. 2020, §4.2",
    studies: &OF_ANCHORS,
    method: "Anchors are strings that occur in both languages, such as names and numbers. The vocabulary may keep them \
             (default anchors) or separate every subword by language (no anchors); more are created by replacing words with \
             their dictionary translations (extra anchors).",
    claims: &[
        PaperClaim {
            finding: "Transfer does not need anchors",
            place: "Conneau et al. 2020, §4.2",
            paper: &|| kept_in_paper("no-anchors", "default-anchors"),
            quantity: "share of the transfer with default anchors that is kept without anchors",
            criterion: Criterion::Above(LITTLE),
            measure: &|view| {
                let data = view.studies(&OF_ANCHORS);
                let line = kept(&data, "no-anchors", "default-anchors");
                line.against(trained(&data, "no-anchors")).alone()
            },
        },
        PaperClaim {
            finding: "More anchors improve transfer",
            place: "Conneau et al. 2020, §4.2",
            paper: &|| gained_in_paper("extra-anchors", "no-anchors"),
            quantity: "mean target score with extra anchors minus without anchors",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.studies(&OF_ANCHORS);
                gained(&data, "extra-anchors", "no-anchors").alone()
            },
        },
        PaperClaim {
            finding: "Extra anchors help distant pairs most, and so close part of their gap",
            place: "Conneau et al. 2020, §4.2 and §4.4",
            paper: &|| {
                let gain = |language| {
                    let of = |condition| paper_transfer(condition, Some(language), None);
                    let gain = || Some(of("extra-anchors")? - of("default")?);
                    gain().map_or(String::new(), |gain| signed(gain, 3))
                };
                format!(
                    "mean gain of three tasks: {} fr, {} ru, {} zh",
                    gain("fr"),
                    gain("ru"),
                    gain("zh")
                )
            },
            quantity: "gain of extra anchors over the default in the most distant language minus in the nearest",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                // Distances of invented languages are compared in a study of their own.
                let data = view.studies(&["anchors", "distance", "table-1"]);
                farther_minus_nearer(&data, "extra-anchors", "default").alone()
            },
        },
        PaperClaim {
            finding: "A joint vocabulary matters little",
            place: "Conneau et al. 2020, §4.5",
            paper: &|| kept_in_paper("default-anchors", "default"),
            quantity: "share of the transfer with a joint vocabulary that is kept with a vocabulary for each language",
            criterion: Criterion::Within(LITTLE, 2.0 - LITTLE),
            measure: &|view| {
                let data = view.studies(&OF_ANCHORS);
                let line = kept(&data, "default-anchors", "default");
                line.against(trained(&data, "default-anchors")).alone()
            },
        },
    ],
    fails: "Transfer needs anchors",
    numbers: &|view| {
        let anchors = [
            ("default-anchors", "with them"),
            ("no-anchors", "without"),
            ("extra-anchors", "with more"),
        ];
        compared(&view.studies(&OF_ANCHORS), &anchors)
    },
    show: &|id, view| {
        let own = &["default", "default-anchors", "no-anchors", "extra-anchors", UNTRAINED];
        conditions(id, &["Figure 3", "Table 1"], &among(&view.studies(&OF_ANCHORS), own))
    },
};

pub(in crate::report) const SHARING: ReportSection = ReportSection {
    id: "sharing",
    title: "Must the languages share parameters?",
    place: "Conneau et al. 2020, §4.3",
    studies: &OF_SHARING,
    method: "Embeddings, the lowest layers, or both are separate for each language; the layers above are shared. In encoders of \
             other depths than the paper's eight layers, the nearest number of layers to three and to six eighths is separate: of \
             four layers, two and three.",
    claims: &[
        PaperClaim {
            finding: "Transfer survives separate embeddings and lower layers",
            place: "Conneau et al. 2020, §4.3",
            paper: &|| {
                format!("{}, 3 of 8 layers separate", kept_in_paper("sep-emb-l1-3", "default"))
            },
            quantity: "share of the default's transfer that is kept",
            criterion: Criterion::Above(MOST),
            measure: &|view| {
                let data = view.studies(&OF_SHARING);
                let line = kept(&data, "sep-emb-l1-3", "default");
                named_by_depth(view, line, Preset::SepEmbL1To3)
                    .against(trained(&data, "sep-emb-l1-3"))
                    .alone()
            },
        },
        PaperClaim {
            finding: "Transfer breaks down when most layers are separate",
            place: "Conneau et al. 2020, §4.3",
            paper: &|| {
                format!("{}, 6 of 8 layers separate", kept_in_paper("sep-emb-l1-6", "default"))
            },
            quantity: "share of the default's transfer that is kept",
            criterion: Criterion::Below(MOST),
            measure: &|view| {
                let data = view.studies(&OF_SHARING);
                let line = kept(&data, "sep-emb-l1-6", "default");
                // An untrained encoder breaks down as well: what must be there is the transfer that is lost.
                named_by_depth(view, line, Preset::SepEmbL1To6)
                    .against(trained(&data, "default"))
                    .alone()
            },
        },
        PaperClaim {
            finding: "Sharing fewer layers reduces transfer",
            place: "Conneau et al. 2020, §4.3",
            paper: &|| gained_in_paper("sep-emb-l1-3", "sep-emb-l1-6"),
            quantity: "mean target score with embeddings and lower layers separate minus with most layers separate",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                by_pair(&view.studies(&OF_SHARING), &measures(), |data, _| {
                    gained(data, "sep-emb-l1-3", "sep-emb-l1-6")
                })
            },
        },
        PaperClaim {
            finding: "A shared softmax helps: separate embeddings transfer less than no anchors",
            place: "Conneau et al. 2020, §4.3",
            paper: &|| gained_in_paper("no-anchors", "sep-emb"),
            quantity: "target score without anchors minus with separate embeddings",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.studies(&TOGETHER);
                let line = |task: Task| {
                    let of = |condition| task_transfer(&data, condition, task);
                    let paper = paper_mean(task, "no-anchors").zip(paper_mean(task, "sep-emb"));
                    ClaimLine::new(task.title(), difference(&of("no-anchors"), &of("sep-emb")))
                        .against(trained_in(&data, "no-anchors", task).if_measured())
                        .paper(paper.map(|(a, b)| signed(a - b, 3)))
                };
                tasks_of_paper().map(line).collect()
            },
        },
        PaperClaim {
            finding: "Distant pairs lose most when layers are separate",
            place: "Conneau et al. 2020, §4.3",
            paper: &|| {
                let loss = |language| {
                    let of = |condition| paper_transfer(condition, Some(language), None);
                    let loss = || Some(of("default")? - of("sep-emb-l1-6")?);
                    loss().map_or(String::new(), |loss| signed(loss, 3))
                };
                format!(
                    "mean loss of three tasks: {} fr, {} ru, {} zh",
                    loss("fr"),
                    loss("ru"),
                    loss("zh")
                )
            },
            quantity: "loss from the default to the most layers that were separated, in the most distant language minus in the nearest",
            criterion: Criterion::Above(0.0),
            measure: &|view| {
                let data = view.studies(&["sharing", "distance", "table-1"]);
                let lines = ["sep-emb-l1-6", "sep-l1-6", "sep-l1-3"].map(|condition| {
                    let line = farther_minus_nearer(&data, "default", condition);
                    ClaimLine { of: format!("{}, {}", data.name(condition), line.of), ..line }
                });
                let measured = |line: &ClaimLine| matches!(&line.evidence, Evidence::Seeds(sample) | Evidence::TooFew(sample) if !sample.0.is_empty());
                lines.into_iter().find(measured).into_iter().collect()
            },
        },
        PaperClaim {
            finding: "Sharing parameters matters more than sharing subwords",
            place: "Conneau et al. 2020, §4.5",
            paper: &|| gained_in_paper("no-anchors", "sep-emb-l1-6"),
            quantity: "mean target score without anchors minus with embeddings and most layers separate",
            criterion: Criterion::Above(0.0),
            measure: &|view| gained(&view.studies(&TOGETHER), "no-anchors", "sep-emb-l1-6").alone(),
        },
    ],
    fails: "Transfer collapses once embeddings and lower layers are separate",
    numbers: &|view| {
        let layers = [("default", "shared"), ("sep-emb-l1-3", "separate")];
        compared(&view.studies(&OF_SHARING), &layers)
    },
    show: &|id, view| {
        let own = [&["default", "no-anchors"][..], SEPARATE].concat();
        conditions(id, &["Figure 3", "Table 1"], &among(&view.studies(&OF_SHARING), &own))
    },
};

/// The condition beside `wiki-cc`: text of one domain in the same amount. Invented text is of one amount; of real text,
/// Default has all that there is, and a difference from it would be of amount as much as of domain.
fn one_domain(view: &SettingView<'_>, data: &StudyData<'_>) -> Option<&'static str> {
    let measured =
        |condition| !data.levels_among("condition", &[("condition", condition)]).is_empty();
    let confounded = !view.setting.invented && measured("default");
    match measured("default-equal") {
        true => Some("default-equal"),
        false => (!confounded).then_some("default"),
    }
}

/// The line of a claim about domains where amounts of text differ too.
fn more_text() -> ClaimLine {
    ClaimLine::new(
        "",
        Evidence::Void("Default has more text here than Wiki-CC: `default-equal` was not run"),
    )
}

/// The transfer above chance of some conditions, and of the untrained encoder, in words.
fn compared(data: &StudyData<'_>, conditions: &[(&str, &str)]) -> String {
    let of = |(condition, name): &(&str, &str)| {
        let mean = transfer(data, condition).sample().mean()?;
        Some(format!("{} {name}", short(mean.mean)))
    };
    let mut parts: Vec<String> = conditions.iter().filter_map(of).collect();
    if parts.is_empty() {
        return String::new();
    }
    let untrained = untrained_transfer(data, &[]).sample().mean();
    parts.extend(untrained.map(|mean| format!("{} untrained", short(mean.mean))));
    format!("transfer above chance {}", parts.join(", "))
}

/// A line that says how many layers are separate.
fn named_by_depth(view: &SettingView<'_>, line: ClaimLine, preset: Preset) -> ClaimLine {
    let layers = view.setting.scale.parse::<Scale>().ok().map(Scale::layers);
    let separate = layers.and_then(|layers| Some((preset.separate_layers(layers)?, layers)));
    let of = separate.map_or(String::new(), |(separate, layers)| {
        format!("{separate} of {layers} layers separate")
    });
    ClaimLine { of, ..line }
}

/// Target scores under a condition, above chance.
fn transfer(data: &StudyData<'_>, condition: &str) -> Observations {
    above_chance(data, &[("condition", condition), ("role", "target")])
}

/// The same of one task.
fn task_transfer(data: &StudyData<'_>, condition: &str, task: Task) -> Observations {
    let factors = [("condition", condition), ("role", "target"), ("task", task.name())];
    let cells = data.observations(task.measure(), &factors);
    cells.tagged("task", task.name()).map(|_, value| value - task.chance())
}

/// Target scores of the untrained encoder, above chance.
fn untrained_transfer(data: &StudyData<'_>, more: &[(&str, &str)]) -> Observations {
    let of = |task: Task| {
        let factors = [&[("role", "target"), ("task", task.name())], more].concat();
        let cells = data.untrained(task.measure(), &factors);
        cells.tagged("task", task.name()).map(|_, value| value - task.chance())
    };
    tasks_of_paper().map(of).fold(Observations::default(), Observations::join)
}

fn above_chance(data: &StudyData<'_>, factors: &[(&str, &str)]) -> Observations {
    let of = |task: Task| {
        let cells =
            data.observations(task.measure(), &[factors, &[("task", task.name())]].concat());
        // The task becomes a factor again, or tasks would overwrite one another.
        cells.tagged("task", task.name()).map(|_, value| value - task.chance())
    };
    tasks_of_paper().map(of).fold(Observations::default(), Observations::join)
}

/// The control that an encoder trained under a condition transfers more than an untrained one.
fn trained(data: &StudyData<'_>, condition: &str) -> Control {
    Control::of("untrained", &transfer(data, condition), &untrained_transfer(data, &[]))
}

/// The same of one task.
fn trained_in(data: &StudyData<'_>, condition: &str, task: Task) -> Control {
    let own = task_transfer(data, condition, task);
    let untrained = data.untrained(task.measure(), &[("role", "target"), ("task", task.name())]);
    let untrained = untrained.tagged("task", task.name()).map(|_, value| value - task.chance());
    Control::of("untrained", &own, &untrained)
}

/// Transfer under a condition as a share of that under another.
fn kept(data: &StudyData<'_>, condition: &str, of: &str) -> ClaimLine {
    let evidence = match transfer(data, condition).share_of(&transfer(data, of)) {
        Some(share) => Evidence::Seeds(share),
        None => {
            Evidence::Void("the reference itself transfers less than 0.05 above chance in a task")
        }
    };
    ClaimLine::new("", evidence)
}

fn gained(data: &StudyData<'_>, condition: &str, over: &str) -> ClaimLine {
    let line = ClaimLine::new("", difference(&transfer(data, condition), &transfer(data, over)));
    line.against(trained(data, condition).if_measured())
}

/// The difference of two conditions in the most distant language minus in the nearest.
fn farther_minus_nearer(data: &StudyData<'_>, condition: &str, over: &str) -> ClaimLine {
    let Some((factor, near, far)) = nearest_and_farthest(data, &measures()) else {
        return ClaimLine::new("", Evidence::Nothing);
    };
    let of = |condition: &str, level: &str| {
        above_chance(data, &[("condition", condition), ("role", "target"), (factor, level)])
    };
    let gain = |level: &str| of(condition, level).minus(&of(over, level)).sample();
    let untrained = untrained_transfer(data, &[(factor, &far)]);
    let label = match factor {
        "distance" => format!("distances {far} and {near}"),
        _ => format!("{} and {}", pair_name(&far), pair_name(&near)),
    };
    ClaimLine::new(label, between_distances(&near, gain(&far).minus(&gain(&near))))
        .against(Control::of("untrained", &of(condition, &far), &untrained).if_measured())
}

/// The paper's transfer above chance under a condition, as one seed's: of one language or of its means, of one task or of all.
fn published(condition: &str, language: Option<&str>, task: Option<Task>) -> Observations {
    let of = |task: Task| {
        let mut factors = vec![("condition", condition), ("task", task.name())];
        factors.extend(language.map(|language| ("language", language)));
        let place = if language.is_some() { "Table 1" } else { "Table 1, means" };
        let score = papers::number(1, place, task.measure(), &factors)? - task.chance();
        let cells = [((1, Factors::new()), score)].into_iter().collect();
        Some(Observations(cells).tagged("task", task.name()))
    };
    let tasks = tasks_of_paper().filter(|one| task.is_none_or(|task| task == *one));
    tasks.filter_map(of).fold(Observations::default(), Observations::join)
}

/// The same as a number.
pub(super) fn paper_transfer(
    condition: &str,
    language: Option<&str>,
    task: Option<Task>,
) -> Option<f64> {
    published(condition, language, task).sample().mean().map(|mean| mean.mean)
}

/// The share of another condition's transfer that a condition keeps in the paper.
fn paper_share(
    condition: &str,
    of: &str,
    language: Option<&str>,
    task: Option<Task>,
) -> Option<f64> {
    let whole = published(of, language, task);
    let share = published(condition, language, task).share_of(&whole)?;
    share.mean().map(|share| share.mean)
}

fn kept_in_paper(condition: &str, of: &str) -> String {
    let share = paper_share(condition, of, None, None);
    share.map_or(String::new(), |share| format!("keeps {share:.2} of the transfer"))
}

fn gained_in_paper(condition: &str, over: &str) -> String {
    let gain = || Some(paper_transfer(condition, None, None)? - paper_transfer(over, None, None)?);
    gain().map_or(String::new(), |gain| {
        format!("{gain:+.3} over three tasks and languages").replace('-', "\u{2212}")
    })
}

fn pairs(data: &StudyData<'_>) -> Vec<String> {
    data.levels(&measures(), "pair", &["en-fr", "en-ru", "en-zh"])
}

/// The paper's name of a condition: its default has as much text as its text of another domain.
fn as_published(condition: &str) -> &str {
    if condition == "default-equal" { "default" } else { condition }
}

/// The paper's score: of the pair's own language where it has it, else its mean.
fn paper_score(task: Task, condition: &str, pair: &str) -> Option<f64> {
    let condition = as_published(condition);
    let own = [("condition", condition), ("task", task.name()), ("language", target(pair))];
    papers::number(1, "Table 1", task.measure(), &own).or_else(|| paper_mean(task, condition))
}

fn paper_mean(task: Task, condition: &str) -> Option<f64> {
    papers::number(
        1,
        "Table 1, means",
        task.measure(),
        &[("condition", as_published(condition)), ("task", task.name())],
    )
}

/// The conditions of a study, the untrained encoder last where it was measured.
fn conditions_of(data: &StudyData<'_>, measures: &[&str]) -> Vec<String> {
    let mut levels = data.levels(measures, "condition", &CONDITIONS);
    let as_system = data.levels(measures, "system", &[]).iter().any(|level| level == UNTRAINED);
    if as_system && !levels.iter().any(|level| level == UNTRAINED) {
        levels.push(UNTRAINED.to_owned());
    }
    levels
}

/// The observations under a condition, which may be the untrained encoder.
fn under(
    data: &StudyData<'_>,
    condition: &str,
    measure: &str,
    factors: &[(&str, &str)],
) -> Observations {
    match condition {
        UNTRAINED => data.untrained(measure, factors),
        _ => data.observations(measure, &[&[("condition", condition)], factors].concat()),
    }
}

/// A panel for each task: a row for each condition; a series for each pair where there are several.
fn task_panels(data: &StudyData<'_>, pairs: &[String]) -> Vec<Chart> {
    let levels = conditions_of(data, &measures());
    let panel = |task: Task| {
        let mark_of = |condition: &String, (place, pair): (usize, &String)| {
            let factors = [("pair", &**pair), ("task", task.name()), ("role", "target")];
            let sample = under(data, condition, task.measure(), &factors).sample();
            let paper = paper_score(task, condition, pair);
            match pairs {
                [_] => mark("", system_colour(condition).unwrap_or(OTHERS), &sample, paper),
                _ => mark(&pair_name(pair), OTHERS + place, &sample, paper),
            }
        };
        let row = |condition: &String| DotRow {
            name: data.name(condition),
            marks: pairs.iter().enumerate().map(|pair| mark_of(condition, pair)).collect(),
        };
        let unit = format!("{}, target language", task.unit());
        let rows = levels.iter().map(row).collect();
        dots(task.title(), &unit, rows, vec![chance(task.chance())])
    };
    Task::all().filter_map(panel).collect()
}

/// The records of a section's own conditions, and of conditions that no section is about.
fn among<'a>(data: &StudyData<'a>, own: &[&str]) -> StudyData<'a> {
    data.filtered(|factors| {
        let condition = factors.get("condition").map_or("", String::as_str);
        own.contains(&condition) || !CONDITIONS.contains(&condition)
    })
}

/// Dots for each task, then retrieval, then the numbers.
fn conditions(id: &str, items: &[&str], data: &StudyData<'_>) -> Vec<CaptionedItem> {
    let pairs = pairs(data);
    let scores = figure(
        named(id, "transfer"),
        "Zero-shot transfer by condition",
        &task_panels(data, &pairs),
    );
    vec![
        CaptionedItem::figure(
            replicates(1, items),
            "Zero-shot scores in the target language. A diamond is the paper's number (of the same language, or its mean over \
             three), from other data and a much larger model. The dashed line is what a prediction without knowledge scores.",
            scores,
        ),
        CaptionedItem::figure(
            BEYOND,
            "Sentence retrieval accuracy (P@1, mean of both directions) at each seed's best layer: raw, mean-centred, and after \
             Procrustes alignment learned from other sentences.",
            retrieval(id, data),
        ),
        CaptionedItem::table(replicates(1, items), TABLE_CAPTION, table(data, &pairs)),
    ]
}

const TABLE_CAPTION: &str = "Means over seeds ± half the width of the 95 % interval. \u{201c}Source\u{201d} is the language of fine-tuning. The paper\u{2019}s columns are its \
                             means over French, Russian and Chinese.";

fn retrieval(id: &str, data: &StudyData<'_>) -> Figure {
    let kinds = data.levels(&["retrieval"], "kind", &["raw", "centered", "aligned"]);
    let levels = conditions_of(data, &["retrieval"]);
    let of = |condition: &str, (place, kind): (usize, &String)| {
        let at =
            |layer: &str| under(data, condition, "retrieval", &[("kind", kind), ("layer", layer)]);
        let best = best_of(data.layers("retrieval").iter().map(|layer| at(layer)).collect());
        mark(kind_name(kind), kind_colour(kind).unwrap_or(OTHERS + place), &best.sample(), None)
    };
    let row = |condition: &String| DotRow {
        name: data.name(condition),
        marks: kinds.iter().enumerate().map(|kind| of(condition, kind)).collect(),
    };
    let chance = chance_of_retrieval(data).into_iter().collect();
    let panel = dots("Sentence retrieval", "P@1", levels.iter().map(row).collect(), chance);
    let charts: Vec<Chart> = panel.into_iter().collect();
    figure(named(id, "retrieval"), "The same encoders without a task", &charts)
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
        table.heads.extend(pairs.iter().map(|pair| language_name(target(pair))));
        table.heads.push("Conneau et al. 2020".to_owned());
    }
    for condition in conditions_of(data, &measures()) {
        let mut row = vec![TableCell::Name(data.name(&condition))];
        for &task in &tasks {
            let of = |role, more: &[(&str, &str)]| {
                let factors = [&[("task", task.name()), ("role", role)], more].concat();
                let scores = under(data, &condition, task.measure(), &factors);
                TableCell::Ours(scores.sample().mean())
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
    let charts = task_panels(&data, &pairs);
    let figure = figure(named(id, "transfer"), "Zero-shot transfer under all conditions", &charts);
    vec![
        CaptionedItem::figure(
            replicates(1, &["Figure 3"]),
            "Zero-shot scores under all conditions, by task, with the paper's numbers.",
            figure,
        ),
        CaptionedItem::table(replicates(1, &["Table 1"]), TABLE_CAPTION, table(&data, &pairs)),
        CaptionedItem::table(
            replicates(1, &["Table 1"]),
            "Spearman's ρ of our conditions with the paper's (its own language where it has it, else its mean over three), by \
             zero-shot transfer above chance.",
            comparison::correlations(&data, &pairs),
        ),
        CaptionedItem::table(
            replicates(1, &["Table 1"]),
            "The share of the default's transfer that each condition keeps, here and in the paper: of a task the ratio of the mean \
             scores above chance, of all tasks the mean of these ratios.",
            comparison::shares(&data, &pairs),
        ),
    ]
}
