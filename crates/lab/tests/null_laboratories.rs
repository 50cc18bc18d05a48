//! Laboratories in which nothing was learned: no finding of the papers may hold in them. Beside them one whose numbers are the
//! papers', in which the findings hold: the criteria can be met, and only by what they are about.

#[path = "../examples/made_up_results/numbers.rs"]
mod numbers;

use std::collections::BTreeMap;

use lab::record::{Factors, Record};
use lab::report::{FindingVerdict, verdicts};

/// Uniform random numbers (SplitMix64), reproducible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Approximately normal: the sum of twelve uniform numbers.
    fn normal(&mut self) -> f64 {
        let mut uniform = || (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..12).map(|_| uniform()).sum::<f64>() - 6.0
    }

    fn shuffle(&mut self, values: &mut [f64]) {
        for last in (1..values.len()).rev() {
            values.swap(last, (self.next() % (last as u64 + 1)) as usize);
        }
    }
}

fn holding(records: &[Record]) -> Vec<String> {
    let held = verdicts(records, &[]).into_iter().filter(|one| one.verdict == "holds");
    held.map(|one| format!("{}, {} ({}): {}", one.finding, one.of, one.setting, one.strength))
        .collect()
}

/// The papers' own numbers, where they print them. What does not hold in them is listed, with the reason.
#[test]
fn the_papers_findings_hold_in_the_papers_numbers() {
    let (records, notes) = numbers::all();
    let found = verdicts(&records, &notes);
    // Models that were given have one seed here.
    let expected = |one: &FindingVerdict| match (one.finding, &*one.of) {
        (_, of) if of.starts_with("mbert") => "one seed",
        // In Figure 7 the similarity of the random encoder falls more from lower to upper layers (−.17) than the bilingual one's.
        ("Lower layers are more similar than higher layers", "bilingual") => "not measured",
        // Spanish and French are not among the invented languages.
        (finding, _)
            if finding.ends_with("Spanish and French") && one.setting.contains("invented") =>
        {
            "not tested"
        }
        _ => "holds",
    };
    let other: Vec<String> = found
        .iter()
        .filter(|one| one.verdict != expected(one))
        .map(|one| {
            format!(
                "{} {}, {} ({}): {}",
                one.verdict, one.finding, one.of, one.setting, one.strength
            )
        })
        .collect();
    assert!(other.is_empty(), "{} of {}:\n{}", other.len(), found.len(), other.join("\n"));
    assert!(found.len() > 100);
}

/// In how many settings of all runs something holds. Each run has two, of which one in forty may have a false discovery; lines of a
/// setting are not independent, so that a false discovery may bring others (a task, and all tasks).
fn settings_with_discoveries(held: &[(u64, String)]) -> usize {
    let setting = |(run, line): &(u64, String)| {
        let scale =
            ["tiny", "small"].into_iter().find(|scale| line.contains(&format!("({scale},")));
        (*run, scale)
    };
    held.iter().map(setting).collect::<std::collections::BTreeSet<_>>().len()
}

/// Every system has the same score, whatever the score is.
#[test]
fn constant_systems_make_no_finding_hold() {
    for value in [0.0, 0.03, 0.34, 0.7, 0.95, 1.0] {
        let (mut records, _) = numbers::all();
        records.iter_mut().for_each(|record| record.value = value);
        assert_eq!(holding(&records), Vec::<String>::new(), "all {value}");
    }
}

/// Scores drawn at random from those of all systems, conditions, layers and weights of a study.
#[test]
fn shuffled_systems_make_no_finding_hold() {
    const RUNS: u64 = 12;
    let mut held = Vec::new();
    for run in 0..RUNS {
        let (mut records, _) = numbers::all();
        let mut random = Random(run);
        let mut groups: BTreeMap<(String, String, String, u64), Vec<usize>> = BTreeMap::new();
        for (number, record) in records.iter().enumerate() {
            let origin = &record.origin;
            let key =
                (origin.scale.clone(), origin.study.clone(), record.measure.clone(), origin.seed);
            groups.entry(key).or_default().push(number);
        }
        for group in groups.values() {
            let mut values: Vec<f64> = group.iter().map(|number| records[*number].value).collect();
            random.shuffle(&mut values);
            group.iter().zip(values).for_each(|(number, value)| records[*number].value = value);
        }
        held.extend(holding(&records).into_iter().map(|one| (run, one)));
    }
    // 24 settings, of which one in forty may have one: more than 3 have p < .01. Of 160 settings 7 had one, which is more than
    // the 4 expected: made-up correlations take few values, and Student's t is not exact for them.
    assert!(settings_with_discoveries(&held) <= 3, "{held:#?}");
}

/// The factors of the untrained encoder that stands beside a record's system: the same layer, task, pair and weight. Where maps are what is
/// learned, those of the vectors without one.
fn untrained(record: &Record) -> Factors {
    let mut factors = record.factors.clone();
    if let Some(map) = factors.get_mut("map") {
        *map = "unmapped".to_owned();
        return factors;
    }
    for name in ["condition", "system"] {
        if let Some(level) = factors.get_mut(name) {
            let raw = record.origin.study == "align-contexts" && !level.ends_with("-aligned");
            let aligned = level.ends_with("-aligned");
            *level = match (raw, aligned) {
                (true, _) => "untrained-raw",
                (_, true) => "untrained-aligned",
                _ => "untrained",
            }
            .to_owned();
        }
    }
    factors
}

/// Every system is an untrained encoder of its own: it has the layers, tasks and weights of one, and what these alone give.
#[test]
fn untrained_systems_make_no_finding_hold() {
    const RUNS: u64 = 12;
    let (records, _) = numbers::all();
    let key = |record: &Record, factors: Factors| {
        let origin = &record.origin;
        (origin.scale.clone(), origin.study.clone(), record.measure.clone(), factors)
    };
    let mut means: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    let mut overall: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for record in &records {
        let untaught = |level: &String| level.starts_with("untrained") || level == "unmapped";
        if record.factors.values().any(untaught) {
            means.entry(key(record, record.factors.clone())).or_default().push(record.value);
            overall.entry(key(record, Factors::new())).or_default().push(record.value);
        }
    }
    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let mut held = Vec::new();
    for run in 0..RUNS {
        let (mut drawn, mut random) = (records.clone(), Random(run));
        drawn.retain_mut(|record| {
            let own = means.get(&key(record, untrained(record)));
            let value = own.or_else(|| overall.get(&key(record, Factors::new()))).map(mean);
            // Counts and sizes of vocabularies are of no system.
            record.value = value.map_or(record.value, |value| value + 0.01 * random.normal());
            true
        });
        held.extend(holding(&drawn).into_iter().map(|one| (run, one)));
    }
    assert!(settings_with_discoveries(&held) <= 1, "{held:#?}");
}

/// Every condition has a transfer and a similarity of its own, which return in every seed and have nothing to do with each other:
/// seeds agree, and still no measure predicts anything. Verdicts in both directions count.
#[test]
fn unrelated_encoders_predict_nothing_however_seeds_agree() {
    const RUNS: u64 = 40;
    let (records, _) = numbers::all();
    let records: Vec<Record> =
        records.into_iter().filter(|record| record.origin.study == "predictors").collect();
    let mut judged = Vec::new();
    for run in 0..RUNS {
        let (mut drawn, mut random) = (records.clone(), Random(run));
        let mut effects: BTreeMap<(String, String, Factors), f64> = BTreeMap::new();
        for record in &mut drawn {
            // Checkpoints of a condition resemble each other, too.
            let mut encoder = record.factors.clone();
            ["layer", "steps"].iter().for_each(|factor| drop(encoder.remove(*factor)));
            let key = (record.origin.scale.clone(), record.measure.clone(), encoder);
            let effect = *effects.entry(key).or_insert_with(|| random.normal());
            record.value = 0.5 + 0.1 * effect + 0.001 * random.normal();
        }
        let found = verdicts(&drawn, &[]).into_iter();
        let found = found.filter(|one| ["holds", "fails"].contains(&one.verdict));
        judged.extend(found.map(|one| {
            let line = format!("{}, {} ({}): {}", one.finding, one.of, one.setting, one.strength);
            (run, line)
        }));
    }
    // 80 settings, of which one in twenty may have a false discovery: more than 9 have p < .01.
    let settings = settings_with_discoveries(&judged);
    println!("{settings} of {} settings have a verdict", 2 * RUNS);
    assert!(settings <= 9, "{judged:#?}");
}
