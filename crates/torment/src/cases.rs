//! One case of each kind: what is done to a command, and what must hold afterwards.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::board::Kind;
use crate::process::{Binary, Ended};
use crate::recipes::{Place, RECIPES, Recipe, Reference, recipe};
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
    /// Which of the outcomes that are no faults it was, where there are several.
    pub(crate) outcome: Option<&'static str>,
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

    /// An empty folder for a case.
    pub(crate) fn folder(&self, kind: &str, index: u64) -> Result<PathBuf, String> {
        let folder = self.scratch.join(format!("{kind}-{index}"));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        Ok(folder)
    }

    /// What a recipe leaves when nothing disturbs it.
    pub(crate) fn reference(&self, recipe: &Recipe) -> &Reference {
        let at = RECIPES.iter().position(|one| one.name == recipe.name);
        &self.references[at.expect("of the list")]
    }

    /// The recipe of a case: all in turn.
    fn recipe(&self, index: u64) -> (&'static Recipe, &Reference) {
        let recipe = &RECIPES[index as usize % RECIPES.len()];
        (recipe, self.reference(recipe))
    }

    /// A recipe that is killed, perhaps more than once, and then carried to its end.
    pub(crate) fn kill(&self, index: u64, kind: Kind) -> CaseResult {
        let (recipe, reference) = match kind {
            Kind::Ranks => (recipe("ranks"), self.reference(recipe("ranks"))),
            _ => self.recipe(index),
        };
        let early = kind == Kind::Early;
        let mut rng = self.random(kind.number(), index);
        let mut times = 0;
        // Whom a kill may have spared: every third leaves the children alone.
        let mut groups = Vec::new();
        let fault = self.folder(&format!("{kind:?}"), index).and_then(|folder| {
            recipe.lay_out(&self.place, &folder)?;
            let span = if early { 0.05 } else { (reference.seconds * 1.1).max(0.01) };
            // One that ended before it could be killed is begun anew.
            for _ in 0..8 {
                let wait = Duration::from_secs_f64(rng.random_range(0.0..span));
                let begin = recipe.begin(&self.place, 1);
                times += u64::from(self.killed_after(&folder, &begin, wait, &mut groups)?);
                if times > 0 {
                    break;
                }
                fs::remove_dir_all(&folder).and_then(|()| fs::create_dir(&folder)).map_err(text)?;
                recipe.lay_out(&self.place, &folder)?;
            }
            while rng.random_bool(0.35) && times < 4 {
                let wait = Duration::from_secs_f64(rng.random_range(0.0..span));
                let again = &recipe.again(&self.place, 1)[0];
                times += u64::from(self.killed_after(&folder, again, wait, &mut groups)?);
            }
            self.carried_to_its_end(recipe, reference, &folder)?;
            groups.iter().try_for_each(|&group| ends_by_itself(group))?;
            fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: recipe.name, times, fault: fault.err(), ..CaseResult::default() }
    }

    fn killed_after(
        &self,
        folder: &Path,
        arguments: &[String],
        wait: Duration,
        groups: &mut Vec<u32>,
    ) -> Result<bool, String> {
        let running = self.binary.start(folder, arguments, &std::env::temp_dir()).map_err(text)?;
        sleep(wait);
        groups.push(running.group());
        Ok(match wait.subsec_nanos() % 3 {
            0 => running.kill_parent(),
            _ => running.kill(),
        })
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
        if recipe.is_compared() && recipe.outcome(&self.binary, folder)? == *wanted {
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
        let (recipe, reference) = self.recipe(index);
        let mut rng = self.random(Kind::Races.number(), index);
        let force = rng.random_bool(0.5) && recipe.takes_force();
        let delay = rng.random_range(0.0..reference.seconds.min(0.2));
        let delay = if rng.random_bool(0.5) { 0.0 } else { delay };
        let fault = self.folder("race", index).and_then(|folder| {
            recipe.lay_out(&self.place, &folder)?;
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
        let (recipe, reference) = self.recipe(index);
        let mut rng = self.random(Kind::Disks.number(), index);
        let mut times = 0;
        if !recipe.copies.is_empty() {
            return CaseResult { name: recipe.name, ..CaseResult::default() };
        }
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

impl Bench<'_> {
    /// Somebody else's files in every folder that a command works in, and a folder whose name is no text.
    pub(crate) fn others(&self, index: u64) -> CaseResult {
        let (recipe, reference) = self.recipe(index);
        let fault = self.folder("others", index).and_then(|folder| {
            self.refused_without_a_trace(recipe, &folder)?;
            recipe.lay_out(&self.place, &folder)?;
            let mut planted = plant(&folder)?;
            let ended = self.binary.run(&folder, &recipe.begin(&self.place, 1))?;
            if !ended.success() {
                return Err(format!("others' files are in its way: {}", ended.message()));
            }
            let found = recipe.outcome(&self.binary, &folder)?;
            let own = planted.iter().filter_map(|path| path.strip_prefix(&folder).ok());
            let found = own.fold(found, |found, path| found.without(&path.to_string_lossy()));
            found.difference(&reference.outcomes[0]).map_or(Ok(()), Err)?;
            // Also in what would be replaced by force.
            for inner in folders(&folder) {
                planted.extend(plant(&inner)?);
            }
            for arguments in recipe.again(&self.place, 1) {
                let ended = self.binary.run(&folder, &arguments)?;
                ended.crash().map_or(Ok(()), Err)?;
            }
            let touched =
                planted.iter().find(|path| fs::read(path).ok().as_deref() != Some(PRECIOUS));
            touched.map_or(Ok(()), |path| Err(format!("{} was touched", path.display())))?;
            fs::remove_dir_all(&folder).map_err(text)
        });
        CaseResult { name: recipe.name, times: 1, fault: fault.err(), ..CaseResult::default() }
    }

    /// Before any work.
    fn refused_without_a_trace(&self, recipe: &Recipe, folder: &Path) -> Result<(), String> {
        let odd = folder.join(OsStr::from_bytes(b"\xff"));
        fs::create_dir(&odd).map_err(text)?;
        let ended = self.binary.run(&odd, &recipe.begin(&self.place, 1))?;
        ended.crash().map_or(Ok(()), Err)?;
        let trace = fs::read_dir(&odd).map_err(text)?.next().is_some();
        if ended.success() || trace {
            return Err(format!("in a folder whose name is no text: {}", ended.message()));
        }
        fs::remove_dir(&odd).map_err(text)
    }
}

const PRECIOUS: &[u8] = b"precious";

/// Names of what is unfinished: of this release, of older ones, of libraries and of other programs.
const UNFINISHED: [&str; 12] = [
    ".replaced-abcdef",
    ".tmpa1B2c3",
    ".unfinished-0123456789abcdef-01234567",
    ".unfinished-abcdef",
    ".unfinished-abcdefghijkl",
    "config.toml.partial",
    "iso.part",
    "iso.partial",
    "lease.node7",
    "notes.md",
    "result.partial",
    "state.damaged.safetensors",
];

/// Names that are whole files of ours, elsewhere than where somebody puts them.
const OWN: [&str; 11] = [
    "config.toml",
    "corpus.json",
    "isogloss.b3",
    "lock",
    "log",
    "manifest.json",
    "model.safetensors",
    "result.json",
    "state.safetensors",
    "summary.json",
    "vocabulary.json",
];

/// Puts files of all these names into a folder, and into two in it.
fn plant(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let [inner, unfinished] = ["Downloads", ".unfinished-ABCDEF"].map(|name| folder.join(name));
    for folder in [&inner, &unfinished] {
        fs::create_dir_all(folder).map_err(text)?;
    }
    let path = |name: &&str| [folder, &*inner, &*unfinished].map(|folder| folder.join(name));
    let own = OWN.iter().map(|name| inner.join(name));
    let paths: Vec<PathBuf> = UNFINISHED.iter().flat_map(path).chain(own).collect();
    paths.iter().try_for_each(|path| fs::write(path, PRECIOUS)).map_err(text)?;
    Ok(paths)
}

/// The folders in a folder, at any depth.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inner = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
    inner.flat_map(|path| [folders(&path), vec![path]].concat()).collect()
}

/// Waits for the rest of a group, of which one was killed: children end with their work or their parent.
fn ends_by_itself(group: u32) -> Result<(), String> {
    let runs = |stat: &str| {
        // Behind the name, which may hold anything: state, parent, group.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&&*group.to_string())
    };
    for _ in 0..400 {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let stats = all.filter_map(|process| fs::read_to_string(process.path().join("stat")).ok());
        if !stats.into_iter().any(|stat| runs(&stat)) {
            return Ok(());
        }
        sleep(Duration::from_millis(50));
    }
    Err("a process outlives its work by 20 s".to_owned())
}

pub(crate) fn text(error: impl std::fmt::Display) -> String {
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
