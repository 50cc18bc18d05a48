//! One case of each kind: what is done to a command, and what must hold afterwards.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::process::{Binary, Ended};
use crate::recipes::{Place, RECIPES, Recipe, Reference};
use crate::tree::leftovers;

/// What all cases share.
pub(crate) struct Bench<'a> {
    pub(crate) binary: Binary,
    pub(crate) place: Place<'a>,
    pub(crate) references: Vec<Reference>,
    pub(crate) scratch: PathBuf,
    pub(crate) seed: u64,
    /// Whether a small disk can be mounted here.
    pub(crate) mounts: bool,
}

/// What came of a case: how often the deed was done, and the fault, if there was one.
#[derive(Default)]
pub(crate) struct CaseResult {
    pub(crate) name: &'static str,
    pub(crate) times: u64,
    pub(crate) fault: Option<String>,
    pub(crate) cost: ReadingCost,
}

/// The most that reading a mutated file took.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ReadingCost {
    /// Processor time, in milliseconds.
    pub(crate) milliseconds: u64,
    /// Memory beyond the size of the file, in bytes.
    pub(crate) memory: u64,
}

impl ReadingCost {
    /// Each the larger of the two.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            milliseconds: self.milliseconds.max(other.milliseconds),
            memory: self.memory.max(other.memory),
        }
    }
}

impl Bench<'_> {
    /// The random numbers of a case; the same seed gives the same case.
    pub(crate) fn random(&self, kind: u64, index: u64) -> ChaCha8Rng {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed ^ (kind << 56));
        rng.set_stream(index);
        rng
    }

    fn folder(&self, kind: &str, index: u64) -> Result<PathBuf, String> {
        let folder = self.scratch.join(format!("{kind}-{index}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    /// A recipe that is killed, perhaps more than once, and then carried to its end.
    pub(crate) fn kill(&self, index: u64, early: bool) -> CaseResult {
        let number = index as usize % RECIPES.len();
        let (recipe, reference) = (&RECIPES[number], &self.references[number]);
        let mut rng = self.random(1 + u64::from(early), index);
        let mut times = 0;
        let fault = self.folder(if early { "early" } else { "kill" }, index).and_then(|folder| {
            let span = if early { 0.05 } else { (reference.seconds * 1.1).max(0.01) };
            // One that ended before it could be killed is begun anew.
            for _ in 0..8 {
                let wait = Duration::from_secs_f64(rng.random_range(0.0..span));
                let begin = recipe.begin(&self.place, 1);
                times += u64::from(self.killed_after(&folder, &begin, wait)?);
                if times > 0 {
                    break;
                }
                fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).map_err(text)?;
            }
            while rng.random_bool(0.35) && times < 4 {
                let wait = Duration::from_secs_f64(rng.random_range(0.0..span));
                let again = &recipe.again(&self.place, 1)[0];
                times += u64::from(self.killed_after(&folder, again, wait)?);
            }
            self.carried_to_its_end(recipe, reference, &folder)?;
            fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: recipe.name, times, fault: fault.err(), ..CaseResult::default() }
    }

    fn killed_after(
        &self,
        folder: &Path,
        arguments: &[String],
        wait: Duration,
    ) -> Result<bool, String> {
        let running = self.binary.start(folder, arguments, &std::env::temp_dir()).map_err(text)?;
        sleep(wait);
        Ok(running.kill())
    }

    /// Does what a person does who finds a command killed; in the end everything is as if nothing had been.
    fn carried_to_its_end(
        &self,
        recipe: &Recipe,
        reference: &Reference,
        folder: &Path,
    ) -> Result<(), String> {
        let wanted = &reference.outcomes[0];
        let mut refusals = Vec::new();
        if recipe.outcome(&self.binary, folder)? == *wanted {
            return Ok(());
        }
        for arguments in recipe.again(&self.place, 1) {
            let ended = self.binary.run(folder, &arguments)?;
            if let Some(crash) = ended.crash() {
                return Err(crash);
            }
            if ended.success() {
                let left = leftovers(folder);
                if !left.is_empty() {
                    return Err(format!("left behind: {}", left.join(", ")));
                }
                let found = recipe.outcome(&self.binary, folder)?;
                return found.difference(wanted).map_or(Ok(()), Err);
            }
            refusals.push(ended.message());
        }
        Err(format!("can neither go on nor begin: {}", refusals.join("; ")))
    }

    /// Two writers of one output.
    pub(crate) fn race(&self, index: u64) -> CaseResult {
        let number = index as usize % RECIPES.len();
        let (recipe, reference) = (&RECIPES[number], &self.references[number]);
        let mut rng = self.random(3, index);
        let force = rng.random_bool(0.5) && recipe.takes_force();
        let delay = rng.random_range(0.0..reference.seconds.min(0.2));
        let delay = if rng.random_bool(0.5) { 0.0 } else { delay };
        let fault = self.folder("race", index).and_then(|folder| {
            let line = |seed| {
                let mut line = recipe.begin(&self.place, seed);
                if force {
                    line.push("--force".into());
                }
                line
            };
            let start =
                |seed| self.binary.start(&folder, &line(seed), &std::env::temp_dir()).map_err(text);
            let first = start(1)?;
            sleep(Duration::from_secs_f64(delay));
            let second = start(2)?;
            let ended = [first.wait()?, second.wait()?];
            judge_race(recipe, &ended)?;
            let left = leftovers(&folder);
            if !left.is_empty() {
                return Err(format!("left behind: {}", left.join(", ")));
            }
            let found = recipe.outcome(&self.binary, &folder)?;
            let won = |at: usize| ended[at].success() && found == reference.outcomes[at];
            if !won(0) && !won(1) {
                let [one, two] =
                    [0, 1].map(|at| found.difference(&reference.outcomes[at]).unwrap_or_default());
                let [a, b] = ended.map(|ended| ended.message());
                return Err(format!("neither writer's output: {one}; {two} ({a}; {b})"));
            }
            fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: recipe.name, times: 1, fault: fault.err(), ..CaseResult::default() }
    }

    /// A disk that is full before the command has ended.
    pub(crate) fn full_disk(&self, index: u64) -> CaseResult {
        let number = index as usize % RECIPES.len();
        let (recipe, reference) = (&RECIPES[number], &self.references[number]);
        let mut rng = self.random(4, index);
        let mut times = 0;
        let fault = self.folder("disk", index).and_then(|folder| {
            let room = rng.random_range(0..reference.bytes + (16 << 10));
            // TMPDIR may be on the same disk, or not.
            let temporary = rng.random_bool(0.5);
            let begin = recipe.begin(&self.place, 1);
            let disk = self.mounts.then(|| SmallDisk::mount(&folder, room)).transpose()?;
            let ended = match &disk {
                Some(_) => {
                    let elsewhere = std::env::temp_dir();
                    let temporary = if temporary { &folder } else { &elsewhere };
                    self.binary.start(&folder, &begin, temporary)
                }
                None => self.binary.start_limited(&folder, &begin, room.max(512)),
            };
            let ended = ended.map_err(text)?.wait()?;
            if let Some(crash) = ended.crash() {
                return Err(crash);
            }
            if !ended.success() {
                times = 1;
                names_a_place(&ended)?;
            }
            if let Some(disk) = &disk {
                disk.grow()?;
            }
            self.carried_to_its_end(recipe, reference, &folder)?;
            drop(disk);
            fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: recipe.name, times, fault: fault.err(), ..CaseResult::default() }
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Nobody crashes, one writer succeeds, and of a run's folder only one.
fn judge_race(recipe: &Recipe, ended: &[Ended; 2]) -> Result<(), String> {
    for one in ended {
        if let Some(crash) = one.crash() {
            return Err(crash);
        }
    }
    let [a, b] = ended;
    match (a.success(), b.success()) {
        (false, false) => Err(format!("both failed: {}; {}", a.message(), b.message())),
        (true, true) if recipe.exclusive => Err("both say that they made the run".into()),
        _ => Ok(()),
    }
}

/// A message about a full disk says which file could not be written.
fn names_a_place(ended: &Ended) -> Result<(), String> {
    let says = |words: &[&str]| words.iter().any(|word| ended.stderr.contains(word));
    match says(&["space", "room", "large"]) && says(&["out", "lab", "links", "/"]) {
        true => Ok(()),
        false => Err(format!("a full disk is not said, or not where: {}", ended.message())),
    }
}

/// A file system in memory, of a size.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    fn mount(folder: &'a Path, bytes: u64) -> Result<Self, String> {
        let size = format!("size={}k", bytes.div_ceil(1024).max(4));
        run("mount", &["-t", "tmpfs", "-o", &size, "torment"], folder)?;
        Ok(Self(folder))
    }

    fn grow(&self) -> Result<(), String> {
        run("mount", &["-o", "remount,size=64m"], self.0)
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        // What cannot be unmounted goes with the machine.
        let _ = run("umount", &["-l"], self.0);
    }
}

fn run(program: &str, arguments: &[&str], folder: &Path) -> Result<(), String> {
    let output = Command::new(program).args(arguments).arg(folder).output().map_err(text)?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

/// Whether a small disk can be mounted in a folder.
pub(crate) fn can_mount(scratch: &Path) -> bool {
    let folder = scratch.join("mount-trial");
    fs::create_dir_all(&folder).is_ok() && SmallDisk::mount(&folder, 8192).is_ok()
}
