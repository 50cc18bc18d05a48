//! Which case comes next, and what all of them found.
//!
//! Kinds advance evenly towards their figures, so that a short round has some of each.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;
use torment::readers::READERS;

use crate::cases::{Bench, CaseResult, ReadingCost};
use crate::mutated::{self, Batch};
use crate::peers::REQUESTS;

/// Files that a batch of mutated files has: few enough that a round ends in time on a busy machine.
const BATCH: u64 = 250;

/// What is done to commands and readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// SIGKILL at any moment, then carried to the end.
    Kills,
    /// SIGKILL within the first 50 ms.
    Early,
    /// SIGKILL of one or all of two ranks.
    Ranks,
    /// Two writers of one output.
    Races,
    /// A disk that becomes full.
    Disks,
    /// One flipped bit of what was written.
    Rot,
    /// Somebody else's files, and names that are no text.
    Others,
    /// Strangers where ranks meet.
    Greetings,
    /// Strangers at the explorer's server.
    Requests,
    /// Mutated files over every reader.
    Files,
    /// Files that change while they are read.
    Changes,
}

impl Kind {
    /// Its number among the seeds.
    pub(crate) fn number(self) -> u64 {
        self as u64 + 1
    }

    /// The figure to reach.
    fn goal(self) -> u64 {
        match self {
            Self::Kills => 1700,
            Self::Early => 200,
            Self::Ranks => 300,
            Self::Races | Self::Changes => 500,
            Self::Disks => 300,
            Self::Rot => 1000,
            Self::Others => 100,
            Self::Greetings => 1000,
            Self::Requests => 100_000,
            Self::Files => 1_000_000,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Kills => "SIGKILL at a random moment",
            Self::Early => "SIGKILL within 50 ms",
            Self::Ranks => "SIGKILL over two ranks",
            Self::Races => "two writers of one output",
            Self::Disks => "a full disk",
            Self::Rot => "a flipped bit",
            Self::Others => "somebody else's files and names",
            Self::Greetings => "a false greeting",
            Self::Requests => "a hostile request",
            Self::Files => "a mutated file",
            Self::Changes => "a file changed while being read",
        }
    }
}

/// A case by its name, as in `kills:17`.
pub(crate) fn parse_case(text: &str) -> Result<(Kind, u64), String> {
    let wrong = || format!("`{text}` is no case; write it as kills:17");
    let (kind, index) = text.split_once(':').ok_or_else(wrong)?;
    let kind = Kind::from_str(kind, true).map_err(|_| wrong())?;
    Ok((kind, index.parse().map_err(|_| wrong())?))
}

/// A batch of mutated files; the reader follows from the number.
pub(crate) fn files(bench: &Bench, index: u64, only: Option<&str>) -> Vec<CaseResult> {
    let reader = match only {
        Some(name) => READERS.iter().find(|reader| reader.name == name).unwrap_or(&READERS[0]),
        None => &READERS[index as usize % READERS.len()],
    };
    let round = index / READERS.len() as u64;
    let batch = Batch {
        samples: bench.place.base.to_owned(),
        scratch: bench.scratch.join(format!("files-{index}")),
        reader: reader.name.to_owned(),
        seed: bench.seed,
        from: BATCH * if only.is_some() { index } else { round },
        count: BATCH,
    };
    let faulty =
        |fault| CaseResult { name: reader.name, fault: Some(fault), ..CaseResult::default() };
    match mutated::run(&batch) {
        Ok(result) => {
            let (times, cost) = (result.files, result.cost);
            let mut all: Vec<CaseResult> = result.faults.into_iter().map(faulty).collect();
            all.push(CaseResult { name: reader.name, times, cost, ..CaseResult::default() });
            all
        }
        Err(error) => vec![faulty(error)],
    }
}

#[derive(Default)]
struct Progress {
    started: u64,
    cases: u64,
    times: u64,
    faults: BTreeMap<String, Vec<String>>,
    of_name: BTreeMap<&'static str, u64>,
    cost_of_name: BTreeMap<&'static str, ReadingCost>,
    outcomes: BTreeMap<&'static str, u64>,
}

/// All cases so far.
pub(crate) struct Board {
    kinds: Vec<Kind>,
    progress: Mutex<BTreeMap<Kind, Progress>>,
}

impl Board {
    pub(crate) fn new(kinds: &[Kind]) -> Self {
        let progress = kinds.iter().map(|&kind| (kind, Progress::default())).collect();
        Self { kinds: kinds.to_vec(), progress: Mutex::new(progress) }
    }

    /// Takes cases until the time is over or every figure is reached.
    pub(crate) fn work(&self, end: Instant, run: &(dyn Fn(Kind, u64) -> Vec<CaseResult> + Sync)) {
        while Instant::now() < end {
            let Some((kind, index)) = self.next() else { return };
            let results = run(kind, index);
            let mut progress = self.progress.lock().expect("nothing panics while it is held");
            let progress = progress.get_mut(&kind).expect("of the board");
            progress.cases += 1;
            for result in results {
                progress.times += result.times;
                let cost = progress.cost_of_name.entry(result.name).or_default();
                *cost = cost.max(result.cost);
                *progress.of_name.entry(result.name).or_default() += result.times;
                if let Some(outcome) = result.outcome {
                    *progress.outcomes.entry(outcome).or_default() += 1;
                }
                if let Some(fault) = result.fault {
                    eprintln!("{} {index}: {}: {fault}", kind.title(), result.name);
                    progress
                        .faults
                        .entry(result.name.to_owned())
                        .or_default()
                        .push(format!("{index}: {fault}"));
                }
            }
        }
    }

    /// The case of the kind that has come least far.
    fn next(&self) -> Option<(Kind, u64)> {
        let mut all = self.progress.lock().expect("nothing panics while it is held");
        // Batches are started long before their files are counted.
        let far = |kind: Kind, progress: &Progress| {
            let each = match kind {
                Kind::Files => BATCH,
                Kind::Requests => REQUESTS,
                Kind::Greetings => 25,
                _ => 1,
            };
            let running = (progress.started - progress.cases) * each;
            (progress.times + running) as f64 / kind.goal() as f64
        };
        let open = |kind: &Kind| all[kind].times < kind.goal();
        let kind = self.kinds.iter().copied().filter(open);
        let kind = kind.min_by(|&a, &b| far(a, &all[&a]).total_cmp(&far(b, &all[&b])))?;
        let progress = all.get_mut(&kind).expect("of the board");
        progress.started += 1;
        Some((kind, progress.started - 1))
    }

    pub(crate) fn report(&self, seed: u64, jobs: usize, mounts: bool, seconds: f64) -> Report {
        let all = self.progress.lock().expect("nothing panics while it is held");
        let row = |&kind: &Kind| {
            let progress = &all[&kind];
            Row {
                kind,
                title: kind.title(),
                times: progress.times,
                goal: kind.goal(),
                faults: progress.faults.values().map(|faults| faults.len() as u64).sum(),
                by_name: progress
                    .of_name
                    .iter()
                    .map(|(&name, &times)| (name.to_owned(), times))
                    .collect(),
                found: progress.faults.clone(),
                outcomes: progress.outcomes.clone(),
                cost: match kind {
                    Kind::Files => progress.cost_of_name.clone(),
                    _ => BTreeMap::new(),
                },
            }
        };
        let disks =
            if mounts { "tmpfs of a random size" } else { "RLIMIT_FSIZE (no right to mount)" };
        Report { seed, jobs, seconds, disks, rows: self.kinds.iter().map(row).collect() }
    }
}

/// The result of a round.
#[derive(Serialize)]
pub(crate) struct Report {
    seed: u64,
    jobs: usize,
    seconds: f64,
    /// How disks were made full.
    disks: &'static str,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    kind: Kind,
    title: &'static str,
    /// How often it was done.
    times: u64,
    goal: u64,
    faults: u64,
    /// How often to which command, artefact or reader.
    by_name: BTreeMap<String, u64>,
    /// What went wrong, by the same names.
    found: BTreeMap<String, Vec<String>>,
    /// What came of it where nothing went wrong.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    outcomes: BTreeMap<&'static str, u64>,
    /// The most that reading a file took, by reader.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cost: BTreeMap<&'static str, ReadingCost>,
}

impl Report {
    pub(crate) fn is_clean(&self) -> bool {
        self.rows.iter().all(|row| row.faults == 0)
    }

    /// As Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = format!(
            "seed {}, {} jobs, {:.0} s; disks made full by {}\n\n| what | times | figure | over | faults |\n\
             | --- | ---: | ---: | --- | ---: |\n",
            self.seed, self.jobs, self.seconds, self.disks
        );
        for row in &self.rows {
            let what = match row.kind {
                Kind::Files => format!("{} readers", row.by_name.len()),
                Kind::Rot | Kind::Changes => format!("{} artefacts", row.by_name.len()),
                _ => format!("{} commands", row.by_name.len()),
            };
            let _ = writeln!(
                text,
                "| {} | {} | {} | {what} | {} |",
                row.title, row.times, row.goal, row.faults
            );
        }
        let costs = || self.rows.iter().flat_map(|row| &row.cost);
        let slowest = costs().max_by_key(|(_, cost)| cost.milliseconds);
        let largest = costs().max_by_key(|(_, cost)| cost.memory);
        if let (Some((slow, time)), Some((large, memory))) = (slowest, largest) {
            let (seconds, memory) = (time.milliseconds as f64 / 1e3, memory.memory >> 20);
            let _ = writeln!(
                text,
                "\nReading a mutated file took at most {seconds:.2} s of processor time ({slow}) and {memory} MB \
                 beyond its size ({large})."
            );
        }
        for row in self.rows.iter().filter(|row| !row.outcomes.is_empty()) {
            let outcomes =
                row.outcomes.iter().map(|(outcome, times)| format!("{times} times {outcome}"));
            let outcomes: Vec<String> = outcomes.collect();
            let _ = writeln!(text, "\nOf {}: {}.", row.title, outcomes.join(", "));
        }
        for row in self.rows.iter().filter(|row| row.faults > 0) {
            let _ = writeln!(text, "\n{}:", row.title);
            for (name, faults) in &row.found {
                let _ = writeln!(text, "- {name}: {} times, first {}", faults.len(), faults[0]);
            }
        }
        text
    }
}
