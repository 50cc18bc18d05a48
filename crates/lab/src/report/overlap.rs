//! Test items whose text stands in a training or development file too, and the one place that decides which score counts where a
//! test set has such items.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use terms::Task;

use super::data::{StudyData, study_of};
use super::exhibit::{CaptionedItem, ReportTable, TableCell};
use super::left_out::range;
use super::sections::names::language_name;
use crate::record::{Factors, Record};

/// How the score without shared items is recorded, beside the score of all.
const WITHOUT: &str = "_without_overlap";
/// How the score of all items is called where the other counts.
const WITH: &str = "_with_overlap";

/// The records as verdicts, figures and tables read them: a task's score is the one without shared items, and the one of all items
/// stands beside it by another name. Where a study has a system without such a score on the same test set (of shifted vectors it is
/// not recorded), scores of all items count for every system and seed of the task, so that like is compared with like.
pub(super) fn counted(records: &[Record]) -> Cow<'_, [Record]> {
    let others = records.iter().filter_map(|one| Some((one, one.measure.strip_suffix(WITHOUT)?)));
    let without: HashSet<Score<'_>> = others.map(|(one, measure)| score(one, measure)).collect();
    if without.is_empty() {
        return Cow::Borrowed(records);
    }
    let has = |one: &Record| without.contains(&score(one, &one.measure));
    let mut sets: HashMap<_, [bool; 2]> = HashMap::new();
    for one in records.iter().filter(|one| is_score(one)) {
        let test_set = ["language", "pair", "distance"].map(|name| one.factors.get(name));
        let set = (peers(one), one.origin.seed, test_set);
        sets.entry(set).or_default()[usize::from(has(one))] = true;
    }
    let unlike = sets.into_iter().filter(|(_, found)| *found == [true, true]);
    let unlike: HashSet<_> = unlike.map(|((peers, ..), _)| peers).collect();
    let renamed = |one: &Record| {
        let mut own = one.clone();
        match one.measure.strip_suffix(WITHOUT) {
            _ if unlike.contains(&peers(one)) => {}
            Some(measure) => own.measure = measure.to_owned(),
            None if is_score(one) && has(one) => own.measure += WITH,
            None => {}
        }
        own
    };
    Cow::Owned(records.iter().map(renamed).collect())
}

/// A score: its study, scale, seed, measure and factors.
type Score<'a> = (&'a str, &'a str, u64, &'a str, &'a Factors);

fn score<'a>(one: &'a Record, measure: &'a str) -> Score<'a> {
    (&one.origin.study, &one.origin.scale, one.origin.seed, measure, &one.factors)
}

fn task_of(one: &Record) -> Option<Task> {
    one.factors.get("task")?.parse().ok()
}

fn is_score(one: &Record) -> bool {
    task_of(one).is_some_and(|task| task.measure() == one.measure)
}

/// What is compared with one another: a task of a study at a scale. Studies whose conditions are rows of one table are one.
fn peers(one: &Record) -> (&str, &str, Option<&String>) {
    let study = match study_of(one) {
        "domain" | "anchors" | "sharing" => "table-1",
        other => other,
    };
    (study, &one.origin.scale, one.factors.get("task"))
}

/// What the page says of all test sets with shared items; none where there are none.
pub(super) fn remark(counted: &[Record]) -> Option<String> {
    let shared = counted.iter().filter(|one| one.measure == "overlap");
    let counts: BTreeSet<u64> = shared.map(|one| one.value as u64).collect();
    let kept = counted.iter().filter(|one| one.measure.ends_with(WITHOUT));
    let kept: BTreeSet<String> = kept
        .filter_map(|one| Some(format!("{} ({})", study_of(one), task_of(one)?.title())))
        .collect();
    let but = match kept.is_empty() {
        true => String::new(),
        false => format!(
            " In {} not every score was measured without them, and scores of all items count for every system.",
            kept.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    (!counts.is_empty()).then(|| {
        format!(
            "Test sets share items with training or development files ({} items of a set). Verdicts, figures and tables are of \
             scores without these items, for every system alike; the scores of all items, as published ones are, stand beside them \
             in \u{201c}What was seen before\u{201d}.{but}",
            range(&counts)
        )
    })
}

/// The scores of test sets that share items with training or development files, of all items and without these, and which of the two
/// count. Empty where there are none.
pub(super) fn exhibit(data: &StudyData<'_>) -> CaptionedItem {
    let mut table = ReportTable::new(&["study", "task", "language", "shared items"]);
    table.heads.extend(["score", "score without them", "in verdicts"].map(str::to_owned));
    let mut counts: BTreeMap<[&str; 3], BTreeSet<u64>> = BTreeMap::new();
    for record in data.records.iter().filter(|record| record.measure == "overlap") {
        let factor = |name: &str| record.factors.get(name).map_or("", String::as_str);
        let place = [&*record.origin.study, factor("task"), factor("language")];
        counts.entry(place).or_default().insert(record.value as u64);
    }
    for ([study, task, language], counts) in counts {
        let Ok(of) = task.parse::<Task>() else { continue };
        let factors = [("task", task), ("language", language)];
        let mut own = data.clone();
        own.records.retain(|record| record.origin.study == study);
        let named = |end: &str| own.observations(&format!("{}{end}", of.measure()), &factors);
        let [recorded, counted, without] = [WITH, "", WITHOUT].map(named);
        let (all, without, used) = match recorded.is_empty() {
            false => (recorded.clone(), counted.with(&recorded, |score, _| score), "without them"),
            true => (counted.with(&without, |score, _| score), without, "all items"),
        };
        let names = [study, of.title(), &language_name(language)]
            .map(|text| TableCell::Text(text.to_owned()));
        let scores = [all, without].map(|scores| TableCell::Ours(scores.sample().mean()));
        let row = names.into_iter().chain([TableCell::Text(range(&counts))]).chain(scores);
        table.rows.push(row.chain([TableCell::Text(used.to_owned())]).collect());
    }
    let caption = "Test items whose text stands in a training or development file too: the score of all items, as published ones \
                   are, the score without these, and the one that verdicts, figures and tables use for every system alike. Means \
                   over all systems and seeds.";
    CaptionedItem::table("What was seen before", caption, table)
}
