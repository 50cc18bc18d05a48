//! A step of a study: one command of the program, known by what it is made from.
//!
//! A step is a command that could be typed. Its key is a digest of its words, of the content of the
//! files that it reads and of the keys of the steps whose results it takes; so two studies that ask
//! for the same thing share it, and a changed factor changes the keys of what depends on it, and of
//! nothing else.
//!
//! Where a step computes is part of that: a GPU rounds otherwise than the CPU, and what one made is not
//! taken for the other's. The CPU's name stands in no key, so that what was made before there was a
//! choice is found again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::error::{Error, Result};

/// The device that every machine has, as `--device` names it.
pub const CPU: &str = "cpu";

/// The commands that compute on a device: those that have `--device`.
const COMPUTING: [&str; 11] = [
    "align contexts",
    "align words",
    "cka",
    "encode",
    "pretrain",
    "retrieve",
    "shift means",
    "shift sweep",
    "shift translate",
    "transfer",
    "words",
];

/// The number of a step in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StepId(pub usize);

/// Where a word of a command line leads.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere: it is only a word.
    Nowhere,
    /// To a file that was there before.
    File(PathBuf),
    /// Into the step's own folder.
    Here(String),
    /// Into the folder of another step.
    Made(StepId, String),
}

/// A word of a command line: text, and perhaps a path after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg {
    text: String,
    place: Place,
}

impl Arg {
    /// A path within the step's own folder.
    pub fn here(path: &str) -> Self {
        Self { text: String::new(), place: Place::Here(path.to_owned()) }
    }

    /// A file that is there already.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { text: String::new(), place: Place::File(path.into()) }
    }

    /// The same path after some text, such as `fr=`.
    #[must_use]
    pub fn after(mut self, text: &str) -> Self {
        self.text.insert_str(0, text);
        self
    }

    /// A path below this one.
    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        let under = |path: &str| match path {
            "" => below.to_owned(),
            path => format!("{path}/{below}"),
        };
        let place = match &self.place {
            Place::Nowhere => Place::Nowhere,
            Place::File(path) => Place::File(path.join(below)),
            Place::Here(path) => Place::Here(under(path)),
            Place::Made(step, path) => Place::Made(*step, under(path)),
        };
        Self { text: self.text.clone(), place }
    }

    /// The step that it waits for.
    fn needs(&self) -> Option<StepId> {
        match self.place {
            Place::Made(step, _) => Some(step),
            _ => None,
        }
    }

    /// The word as it is typed, where steps have these folders.
    fn typed(&self, own: StepId, folder: impl Fn(StepId) -> PathBuf) -> String {
        let path = match &self.place {
            Place::Nowhere => return self.text.clone(),
            Place::File(path) => path.clone(),
            Place::Here(path) => folder(own).join(path),
            Place::Made(step, path) => folder(*step).join(path),
        };
        format!("{}{}", self.text, path.display())
    }
}

impl<T: Into<String>> From<T> for Arg {
    fn from(text: T) -> Self {
        Self { text: text.into(), place: Place::Nowhere }
    }
}

/// How a step goes on that was stopped in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// It begins again.
    Never,
    /// `--resume --out FOLDER` is all it needs: the folder, within the step's own, knows the rest.
    Folder(&'static str),
}

/// One command.
#[derive(Clone, Debug)]
pub struct Step {
    /// What a person calls it.
    pub name: String,
    /// What it does, without its particulars: steps of a kind take about the same time.
    pub kind: String,
    /// How it goes on after a stop.
    pub resume: Resume,
    /// Names it and its folder.
    pub key: String,
    /// The steps that must be done before.
    pub needs: Vec<StepId>,
    /// Where it computes, as `--device` names it; none where the command has no such choice, or its
    /// words have made it already.
    pub device: Option<String>,
    args: Vec<Arg>,
}

impl Step {
    /// The words after the program's name, where steps have these folders; this one is `own`.
    pub fn words(&self, own: StepId, folder: impl Fn(StepId) -> PathBuf) -> Vec<String> {
        self.args.iter().map(|arg| arg.typed(own, &folder)).chain(self.device_words()).collect()
    }

    /// Calls the steps that it waits for by other numbers.
    pub(super) fn renumber(&mut self, new: impl Fn(StepId) -> StepId) {
        self.needs.iter_mut().for_each(|need| *need = new(*need));
        for arg in &mut self.args {
            if let Place::Made(step, _) = &mut arg.place {
                *step = new(*step);
            }
        }
    }

    fn device_words(&self) -> impl Iterator<Item = String> {
        self.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()])
    }

    /// The words that let it go on after a stop, where that is possible.
    pub fn words_to_resume(&self, own: &Path) -> Option<Vec<String>> {
        let Resume::Folder(out) = self.resume else { return None };
        let out = own.join(out);
        let verb = self.args.first().filter(|_| out.is_dir())?;
        let words =
            [&verb.text, "--resume", "--out", &out.display().to_string()].map(str::to_owned);
        Some(words.into_iter().chain(self.device_words()).collect())
    }
}

/// A command that is not yet a step of a plan.
pub struct Draft {
    verb: String,
    name: String,
    kind: String,
    resume: Resume,
    args: Vec<Arg>,
}

impl Draft {
    /// Begins a command by its verb, such as `align words`.
    pub fn new(verb: &str, name: impl Into<String>) -> Self {
        Self {
            verb: verb.to_owned(),
            name: name.into(),
            kind: verb.to_owned(),
            resume: Resume::Never,
            args: verb.split(' ').map(Arg::from).collect(),
        }
    }

    /// Adds one word.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<Arg>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds words.
    #[must_use]
    pub fn args<T: Into<Arg>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a flag and its value.
    #[must_use]
    pub fn flag(self, name: &str, value: impl Into<Arg>) -> Self {
        self.arg(name).arg(value)
    }

    /// Says what distinguishes its cost from that of other commands of its verb.
    #[must_use]
    pub fn kind(mut self, more: &str) -> Self {
        self.kind = format!("{} {more}", self.kind);
        self
    }

    /// Says that it can go on from the folder that `--out` names.
    #[must_use]
    pub fn resumes(mut self, folder: &'static str) -> Self {
        self.resume = Resume::Folder(folder);
        self
    }

    /// Whether it has yet to be told where to compute.
    fn wants_device(&self) -> bool {
        let told = |arg: &Arg| arg.text == "--device" || arg.text.starts_with("--device=");
        COMPUTING.contains(&&*self.verb) && !self.args.iter().any(told)
    }
}

/// The steps of a plan, each once.
pub struct Steps {
    device: String,
    steps: Vec<Step>,
    by_key: HashMap<String, StepId>,
    digests: HashMap<PathBuf, String>,
}

impl Steps {
    /// No steps yet; those to come compute on this device.
    pub fn on(device: &str) -> Self {
        let (steps, by_key, digests) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { device: device.to_owned(), steps, by_key, digests }
    }

    /// Adds a command, or finds the step that is the same.
    pub fn add(&mut self, draft: Draft) -> Result<StepId> {
        let device = draft.wants_device().then(|| self.device.clone());
        let key = self.key(&draft, device.as_deref())?;
        if let Some(&step) = self.by_key.get(&key) {
            return Ok(step);
        }
        let mut needs: Vec<StepId> = draft.args.iter().filter_map(Arg::needs).collect();
        needs.sort_unstable();
        needs.dedup();
        let Draft { name, kind, resume, args, .. } = draft;
        let step = StepId(self.steps.len());
        self.by_key.insert(key.clone(), step);
        self.steps.push(Step { name, kind, resume, key, needs, device, args });
        Ok(step)
    }

    /// A path within a step's folder.
    pub fn made(step: StepId, path: &str) -> Arg {
        Arg { text: String::new(), place: Place::Made(step, path.to_owned()) }
    }

    /// All steps; what a step needs comes before it.
    pub fn into_steps(self) -> Vec<Step> {
        self.steps
    }

    fn key(&mut self, draft: &Draft, device: Option<&str>) -> Result<String> {
        let mut hasher = blake3::Hasher::new();
        let mut note = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        note(concat!("isogloss ", env!("CARGO_PKG_VERSION")));
        for arg in &draft.args {
            note(&arg.text);
            match &arg.place {
                Place::Nowhere => note(""),
                Place::File(path) => note(&self.digest(path)?),
                Place::Here(path) => note(path),
                Place::Made(step, path) => {
                    note(&self.steps[step.0].key);
                    note(path);
                }
            }
        }
        if let Some(device) = device.filter(|device| *device != CPU) {
            note("--device");
            note(device);
        }
        Ok(hasher.finalize().to_hex()[..20].to_owned())
    }

    /// What a file holds, as a digest.
    fn digest(&mut self, path: &Path) -> Result<String> {
        if let Some(digest) = self.digests.get(path) {
            return Ok(digest.clone());
        }
        let mut hasher = blake3::Hasher::new();
        let file = std::fs::File::open(path).map_err(|error| Error::unreadable(path, &error))?;
        hasher.update_reader(file).map_err(|error| Error::unreadable(path, &error))?;
        let digest = hasher.finalize().to_hex().to_string();
        self.digests.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_commands_are_one_step_and_a_change_reaches_what_depends_on_it() {
        let mut steps = Steps::on(CPU);
        let mut chain = |seed: &str, name: &str| {
            let world = Draft::new("world generate", name).flag("--seed", seed);
            let world = steps.add(world.flag("--out", Arg::here("world"))).unwrap();
            let run = Draft::new("pretrain", name).flag("--world", Steps::made(world, "world"));
            (world, steps.add(run.flag("--out", Arg::here("run"))).unwrap())
        };
        let first = chain("1", "one");
        assert_eq!(chain("1", "the same by another name"), first);
        let other = chain("2", "two");
        assert_ne!(other.0, first.0);
        assert_ne!(other.1, first.1);
        let steps = steps.into_steps();
        assert_eq!(steps.len(), 4);
        assert_eq!(steps[first.1.0].needs, [first.0]);
    }

    #[test]
    fn a_step_is_known_by_what_its_files_hold() {
        let folder = tempfile::tempdir().unwrap();
        let key = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            let mut steps = Steps::on(CPU);
            let step = steps.add(Draft::new("x", "x").arg(Arg::file(path).after("fr="))).unwrap();
            steps.into_steps()[step.0].key.clone()
        };
        assert_eq!(key("a", "text"), key("b", "text"));
        assert_ne!(key("a", "text"), key("a", "other"));
    }

    #[test]
    fn paths_are_typed_where_folders_are() {
        let mut steps = Steps::on(CPU);
        let world = steps.add(Draft::new("world generate", "w")).unwrap();
        let text = Steps::made(world, "world").join("text/a.txt").after("qaa=");
        let run = Draft::new("pretrain", "p").flag("--text", text).flag("--out", Arg::here("run"));
        steps.add(run).unwrap();
        let step = steps.into_steps().pop().unwrap();
        let words = step.words(StepId(1), |StepId(n)| PathBuf::from(format!("lab/{n}")));
        let expected = "pretrain --text qaa=lab/0/world/text/a.txt --out lab/1/run --device cpu";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn what_a_gpu_makes_is_not_taken_for_the_cpus() {
        let made = |device: &str| {
            let mut steps = Steps::on(device);
            let world = Draft::new("world generate", "w").flag("--out", Arg::here("world"));
            let world = steps.add(world).unwrap();
            let run = Draft::new("pretrain", "p").flag("--world", Steps::made(world, "world"));
            let run = steps.add(run.flag("--out", Arg::here("run")).resumes("run")).unwrap();
            let stats =
                Draft::new("vocab stats", "v").arg(Steps::made(run, "run").join("vocabulary"));
            steps.add(stats).unwrap();
            let told = Draft::new("pretrain", "t").args(["--device", "cpu"]);
            steps.add(told).unwrap();
            steps.into_steps()
        };
        let (cpu, cuda) = (made(CPU), made("cuda"));
        let same: Vec<bool> = cpu.iter().zip(&cuda).map(|(a, b)| a.key == b.key).collect();
        // A world computes nowhere; what reads from a run is of that run; who chooses has chosen.
        assert_eq!(same, [true, false, false, true]);
        // The CPU's keys are those from before there was a choice.
        let mut hasher = blake3::Hasher::new();
        let program = concat!("isogloss ", env!("CARGO_PKG_VERSION"));
        let words = [program, "pretrain", "", "--world", "", "", &cpu[0].key, "world", "--out", ""];
        for word in words.into_iter().chain(["", "run"]) {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
        }
        assert_eq!(cpu[1].key, hasher.finalize().to_hex()[..20]);
        let devices: Vec<Option<&str>> = cuda.iter().map(|step| step.device.as_deref()).collect();
        assert_eq!(devices, [None, Some("cuda"), None, None]);
        let words = |step: &Step| step.words(StepId(1), |_| PathBuf::from("x")).join(" ");
        assert!(words(&cuda[1]).ends_with("--device cuda"), "{}", words(&cuda[1]));
        assert!(words(&cpu[1]).ends_with("--device cpu"), "{}", words(&cpu[1]));
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let resumed = cuda[1].words_to_resume(folder.path()).unwrap();
        assert_eq!(resumed[resumed.len() - 2..], ["--device", "cuda"]);
    }
}
