//! A step of a study: one command of the program, identified by its inputs.
//!
//! A step is a command that could be typed. Its key is a digest of what the command computes: of its words, of its
//! [revision](StepCommand), of the content of the files that it reads and of the keys of the steps whose results it takes. So
//! two studies that need the same result share it, a changed factor changes the keys of what depends on it and of nothing
//! else, and a rebuilt program finds what it would compute again. Neither the place of a file nor the spelling of a flag
//! (`--steps=20`, or a [name](RENAMED) that it got later) is part of the key, nor is what changes no result.
//!
//! The device is part of the key: a GPU rounds otherwise than a CPU, and the result of one is not taken for the
//! other's. The number of threads is not: it changes no result.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use commands::request::Request;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use super::revision::{RENAMED, RenamedFlag, StepCommand};

/// The device that every machine has, as `--device` names it.
pub const CPU: &str = "cpu";

/// Flags that change no result, each with a value.
const WITHOUT_EFFECT: [&str; 2] = ["--threads", "--jobs"];

/// The command that finds in its output what it would make.
pub const REPEATABLE: &str = "corpus prepare";

/// How many settings of a grid `transfer` trains side by side on a GPU by itself.
const SETTINGS_AT_A_TIME: usize = 8;

/// What stands before a path of a plan in the value of a flag.
const HELD: char = '\u{1}';

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub usize);

/// The path in a word of a command line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ArgPath {
    None,
    File(PathBuf),
    OwnFolder(String),
    OfStep(StepId, String),
}

/// A word of a command line: text, and perhaps a path after it, as in `fr=FILE`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandArg {
    text: String,
    path: ArgPath,
}

impl CommandArg {
    pub fn here(path: &str) -> Self {
        Self { text: String::new(), path: ArgPath::OwnFolder(path.to_owned()) }
    }

    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { text: String::new(), path: ArgPath::File(path.into()) }
    }

    #[must_use]
    pub fn join(&self, below: &str) -> Self {
        let under = |path: &str| match path {
            "" => below.to_owned(),
            path => format!("{path}/{below}"),
        };
        let path = match &self.path {
            ArgPath::None => ArgPath::None,
            ArgPath::File(path) => ArgPath::File(path.join(below)),
            ArgPath::OwnFolder(path) => ArgPath::OwnFolder(under(path)),
            ArgPath::OfStep(step, path) => ArgPath::OfStep(*step, under(path)),
        };
        Self { text: self.text.clone(), path }
    }

    /// Its path as a request holds it, in which a step that makes it is no folder yet.
    pub(super) fn held(&self) -> String {
        let path = serde_json::to_string(&self.path).expect("names are text");
        format!("{HELD}{path}")
    }

    pub(super) fn path(&self) -> PathBuf {
        self.held().into()
    }

    /// The same after what it is the file of, as in `fr=FILE`.
    pub(super) fn named(&self, name: &str) -> (String, String) {
        (name.to_owned(), self.held())
    }

    /// The same of two languages, as in `en-fr=FILE`.
    pub(super) fn of_pair(&self, languages: [&str; 2]) -> ([String; 2], PathBuf) {
        (languages.map(str::to_owned), self.path())
    }

    /// A word of a request, which may hold a path.
    pub(super) fn of_word(word: String) -> Self {
        let Some((text, path)) = word.split_once(HELD) else { return word.into() };
        let path = serde_json::from_str(path).expect("it was held by a request");
        Self { text: text.to_owned(), path }
    }

    fn needs(&self) -> Option<StepId> {
        match self.path {
            ArgPath::OfStep(step, _) => Some(step),
            _ => None,
        }
    }

    /// The word as it is typed, where steps have these folders.
    fn word(&self, own: StepId, folder: impl Fn(StepId) -> PathBuf) -> String {
        let path = match &self.path {
            ArgPath::None => return self.text.clone(),
            ArgPath::File(path) => path.clone(),
            ArgPath::OwnFolder(path) => folder(own).join(path),
            ArgPath::OfStep(step, path) => folder(*step).join(path),
        };
        format!("{}{}", self.text, path.display())
    }
}

impl<T: Into<String>> From<T> for CommandArg {
    fn from(text: T) -> Self {
        Self { text: text.into(), path: ArgPath::None }
    }
}

/// What a word of a command names besides its text, as the step's key has it: no place on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepInput {
    File(String),
    /// The folder of a model, by the digest of what makes it what it is.
    Model(String),
    Own(String),
    /// A path in the folder of another step, after that step's key.
    Step(String, String),
}

/// A word of a command as the step's key has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyedWord {
    /// Its text; of a flag the name that lasts.
    pub text: String,
    /// What it names after its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<StepInput>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepResume {
    Never,
    /// By `--resume --out FOLDER`: the folder, within the step's own, holds the rest of its configuration.
    Folder(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StudyStep {
    pub name: String,
    /// The kind of work: steps of a kind take about the same time.
    pub kind: String,
    pub command: StepCommand,
    pub resume: StepResume,
    /// Identifies it, and names its folder.
    pub key: String,
    pub needs: Vec<StepId>,
    /// Where it computes, as `--device` names it; none where the command has no such flag, or its
    /// words give it already.
    pub device: Option<String>,
    #[serde(default)]
    pub keyed: Vec<KeyedWord>,
    args: Vec<CommandArg>,
}

impl StudyStep {
    /// What its words name besides text: the flag, what is named before the path, such as a language, and the input.
    fn inputs(&self) -> impl Iterator<Item = (&str, &str, &StepInput)> {
        let mut flag = "";
        self.keyed.iter().filter_map(move |KeyedWord { text, input }| {
            if input.is_none() && text.starts_with("--") {
                flag = text;
            }
            input.as_ref().map(|input| (flag, text.trim_end_matches('='), input))
        })
    }

    /// The files that it reads: the flag and language that name each, and the digest of the content.
    pub(super) fn reads(&self) -> impl Iterator<Item = (String, &str)> {
        self.inputs().filter_map(|(flag, language, input)| match input {
            StepInput::File(digest) => Some((format!("{flag} {language}"), digest.as_str())),
            _ => None,
        })
    }

    pub(super) fn paired(&self) -> BTreeSet<&str> {
        let parallel = self.inputs().filter(|(flag, ..)| *flag == "--parallel");
        parallel.flat_map(|(_, languages, _)| languages.split('-')).collect()
    }

    /// The words after the program's name, where steps have these folders; this one is `own`.
    pub fn words(&self, own: StepId, folder: impl Fn(StepId) -> PathBuf) -> Vec<String> {
        self.args.iter().map(|arg| arg.word(own, &folder)).chain(self.device_words()).collect()
    }

    /// Whether it can be of this number in a list that was read: all that it depends on comes before it, and its key is the
    /// name of a folder.
    pub(super) fn is_sound_at(&self, number: usize) -> bool {
        let of_args = self.args.iter().filter_map(CommandArg::needs);
        files::limits::is_plain_name(&self.key)
            && self.needs.iter().copied().chain(of_args).all(|need| need.0 < number)
    }

    pub(super) fn outputs(&self) -> impl Iterator<Item = &str> {
        self.args.iter().filter_map(|arg| match &arg.path {
            ArgPath::OwnFolder(path) => Some(path.as_str()),
            _ => None,
        })
    }

    /// The words that let it replace what it has written before, where it does not go on from that.
    pub(super) fn force_words(&self, own: &Path) -> Option<String> {
        let stands = self.outputs().any(|out| own.join(out).symlink_metadata().is_ok());
        (stands && self.command.verb != REPEATABLE).then(|| "--force".to_owned())
    }

    pub(super) fn renumber(&mut self, new: impl Fn(StepId) -> StepId) {
        self.needs.iter_mut().for_each(|need| *need = new(*need));
        for arg in &mut self.args {
            if let ArgPath::OfStep(step, _) = &mut arg.path {
                *step = new(*step);
            }
        }
    }

    fn device_words(&self) -> impl Iterator<Item = String> {
        self.device.iter().flat_map(|device| ["--device".to_owned(), device.clone()])
    }

    /// The words that set its number of threads, where the command has that flag and the study does not set it.
    pub(super) fn thread_words(&self, threads: Option<usize>) -> Vec<String> {
        let given = has_flag(&self.args, "--threads");
        let threads = threads.filter(|_| self.command.threads && !given);
        threads.map_or(Vec::new(), |threads| vec!["--threads".to_owned(), threads.to_string()])
    }

    /// The words that limit what it does side by side itself, beside other steps: the settings of a grid on a GPU.
    pub(super) fn job_words(&self, steps_at_a_time: usize) -> Vec<String> {
        let on_gpu = self.device.as_deref().is_some_and(|device| device != CPU);
        if self.command.verb != "transfer" || steps_at_a_time == 1 || !on_gpu {
            return Vec::new();
        }
        let given = has_flag(&self.args, "--jobs");
        let jobs = (SETTINGS_AT_A_TIME / steps_at_a_time).max(1);
        if given { Vec::new() } else { vec!["--jobs".to_owned(), jobs.to_string()] }
    }

    /// The folder that its command resumes in, where that is possible and there is one.
    pub(super) fn resumed_folder(&self, own: &Path) -> Option<PathBuf> {
        let StepResume::Folder(out) = &self.resume else { return None };
        Some(own.join(out)).filter(|out| out.is_dir())
    }

    /// The words that keep snapshots of the weights out of a laboratory, where hundreds of runs lie side by side: they
    /// change no result.
    pub(super) fn snapshot_words(&self) -> Vec<String> {
        let given = self.args.iter().any(|arg| arg.text.starts_with("snapshots="));
        let words: &[&str] = match self.command.verb == "pretrain" && !given {
            true => &["--set", "snapshots=0"],
            false => &[],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// The words that continue it after an interruption, where that is possible.
    pub fn words_to_resume(&self, own: &Path) -> Option<Vec<String>> {
        let out = self.resumed_folder(own)?;
        let verb = self.args.first()?;
        let words =
            [&verb.text, "--resume", "--out", &out.display().to_string()].map(str::to_owned);
        Some(words.into_iter().chain(self.device_words()).collect())
    }
}

/// Whether a flag is among the words of a command.
fn has_flag(args: &[CommandArg], flag: &str) -> bool {
    let is = |arg: &CommandArg| {
        arg.text.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    args.iter().any(is)
}

/// A command that is not yet a step of a plan.
pub struct StepDraft {
    command: StepCommand,
    name: String,
    kind: String,
    resume: StepResume,
    on_device: bool,
    args: Vec<CommandArg>,
}

impl StepDraft {
    /// A request that a command is to carry out.
    pub fn of<R: Request>(request: &R, name: impl Into<String>) -> Self {
        let command = StepCommand::of::<R>();
        let (name, kind, resume) = (name.into(), R::NAME.to_owned(), StepResume::Never);
        let args = request.words().into_iter().map(CommandArg::of_word).collect();
        Self { command, name, kind, resume, on_device: false, args }
    }

    /// Adds what another request of the same command asks for.
    #[must_use]
    pub fn then<R: Request>(self, more: &R) -> Self {
        self.args(more.flags().into_iter().map(CommandArg::of_word))
    }

    /// Adds words, such as the flags of a study's file.
    #[must_use]
    pub fn args<T: Into<CommandArg>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds what distinguishes its cost from that of other commands of its verb.
    #[must_use]
    pub fn kind(mut self, more: &str) -> Self {
        self.kind = format!("{} {more}", self.kind);
        self
    }

    /// It can be continued from the folder that `--out` names.
    #[must_use]
    pub fn resumes(mut self, folder: &str) -> Self {
        self.resume = StepResume::Folder(folder.to_owned());
        self
    }

    /// It computes on the plan's device, though its command does so in this form alone.
    #[must_use]
    pub fn on_device(mut self) -> Self {
        self.on_device = true;
        self
    }

    fn takes_device(&self) -> bool {
        (self.command.device || self.on_device) && !has_flag(&self.args, "--device")
    }
}

pub struct StepList {
    device: String,
    steps: Vec<StudyStep>,
    by_key: HashMap<String, StepId>,
    digests: HashMap<PathBuf, String>,
    renamed: &'static [RenamedFlag],
}

impl StepList {
    /// An empty list, whose steps will compute on this device.
    pub fn on(device: &str) -> Self {
        let (steps, by_key, digests) = (Vec::new(), HashMap::new(), HashMap::new());
        Self { device: device.to_owned(), steps, by_key, digests, renamed: RENAMED }
    }

    /// Adds a command, or finds the step with the same key.
    pub fn add(&mut self, draft: StepDraft) -> Result<StepId> {
        let device = draft.takes_device().then(|| self.device.clone());
        let keyed = self.keyed(&draft)?;
        let key = key(draft.command.revision, &keyed, device.as_deref());
        if let Some(&step) = self.by_key.get(&key) {
            return Ok(step);
        }
        let mut needs: Vec<StepId> = draft.args.iter().filter_map(CommandArg::needs).collect();
        needs.sort_unstable();
        needs.dedup();
        let StepDraft { command, name, kind, resume, args, .. } = draft;
        let step = StepId(self.steps.len());
        self.by_key.insert(key.clone(), step);
        self.steps.push(StudyStep { name, kind, command, resume, key, needs, device, keyed, args });
        Ok(step)
    }

    pub fn made(step: StepId, path: &str) -> CommandArg {
        CommandArg { text: String::new(), path: ArgPath::OfStep(step, path.to_owned()) }
    }

    pub fn into_steps(self) -> Vec<StudyStep> {
        self.steps
    }

    /// The same, with the digests of what they read left in the list.
    pub(super) fn take_steps(&mut self) -> Vec<StudyStep> {
        std::mem::take(&mut self.steps)
    }

    /// The digest of a file or a folder that some step reads.
    pub(super) fn content(&self, path: &Path) -> Option<&str> {
        self.digests.get(path).map(String::as_str)
    }

    /// The words of a command as its key has them.
    fn keyed(&mut self, draft: &StepDraft) -> Result<Vec<KeyedWord>> {
        let (mut words, mut without_effect) = (Vec::new(), false);
        for arg in &draft.args {
            if std::mem::take(&mut without_effect) {
                continue;
            }
            let input = match &arg.path {
                ArgPath::None => None,
                ArgPath::File(path) => {
                    let kind = if path.is_dir() { StepInput::Model } else { StepInput::File };
                    Some(kind(self.digest(path)?))
                }
                ArgPath::OwnFolder(path) => Some(StepInput::Own(path.clone())),
                ArgPath::OfStep(step, path) => {
                    Some(StepInput::Step(self.steps[step.0].key.clone(), path.clone()))
                }
            };
            let (flag, value) = match arg.text.split_once('=') {
                // What begins with a dash can be written in no other way.
                Some((flag, value))
                    if flag.starts_with("--") && !value.starts_with('-') && input.is_none() =>
                {
                    (flag, Some(value))
                }
                _ => (arg.text.as_str(), None),
            };
            if WITHOUT_EFFECT.contains(&flag) {
                without_effect = value.is_none();
                continue;
            }
            let is_known = |one: &&RenamedFlag| one.verb == draft.command.verb && one.now == flag;
            let lasting = self.renamed.iter().find(is_known).map_or(flag, |one| one.keyed);
            words.push(KeyedWord { text: lasting.to_owned(), input });
            words.extend(value.map(|value| KeyedWord { text: value.to_owned(), input: None }));
        }
        Ok(words)
    }

    /// The digest of the content of a file, or of those files of a folder that make a model what it is.
    fn digest(&mut self, path: &Path) -> Result<String> {
        if let Some(digest) = self.digests.get(path) {
            return Ok(digest.clone());
        }
        let mut hasher = blake3::Hasher::new();
        let unreadable = |error: std::io::Error| Error::unreadable(path, &error);
        if !path.is_file() {
            for file in model_files(path).map_err(unreadable)? {
                let name = file.strip_prefix(path).unwrap_or(&file).to_string_lossy().into_owned();
                hasher.update(name.as_bytes());
                hasher.update(self.digest(&file)?.as_bytes());
            }
        } else {
            let file = std::fs::File::open(path).map_err(unreadable)?;
            hasher.update_reader(file).map_err(unreadable)?;
        }
        let digest = hasher.finalize().to_hex().to_string();
        self.digests.insert(path.to_owned(), digest.clone());
        Ok(digest)
    }
}

fn key(revision: u32, words: &[KeyedWord], device: Option<&str>) -> String {
    let mut hasher = blake3::Hasher::new();
    // Each part with its length, so that no two lists of parts run together to the same bytes.
    let mut note = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    note(&format!("revision {revision}"));
    for KeyedWord { text, input } in words {
        note(text);
        match input {
            None => note(""),
            Some(
                StepInput::File(content) | StepInput::Model(content) | StepInput::Own(content),
            ) => note(content),
            Some(StepInput::Step(key, path)) => {
                note(key);
                note(path);
            }
        }
    }
    if let Some(device) = device {
        note("--device");
        note(device);
    }
    hasher.finalize().to_hex()[..20].to_owned()
}

/// The files of a folder that make a model what it is, in order: of a run its weights and its vocabulary, of a Hugging
/// Face folder its configuration, its tokenizer and its weights in one format.
fn model_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let listed = |folder: &Path| -> std::io::Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(folder)?.collect::<std::io::Result<Vec<_>>>()?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| file.is_file());
        files.sort();
        Ok(files)
    };
    let vocabulary = folder.join(models::VOCABULARY_FOLDER);
    if vocabulary.is_dir() {
        let mut files = listed(&vocabulary)?;
        files.push(folder.join(models::MODEL_FILE));
        return Ok(files);
    }
    if let Ok(models::ModelLocation::Run { folder, weights }) = models::ModelLocation::find(folder)
    {
        // A snapshot, `RUN@STEP`.
        let mut files = listed(&folder.join(models::VOCABULARY_FOLDER))?;
        files.push(weights);
        return Ok(files);
    }
    let mut files = listed(folder)?;
    let ends = |file: &PathBuf, ends: &[&str]| {
        file.extension().is_some_and(|end| ends.iter().any(|known| end == *known))
    };
    let safe = files.iter().any(|file| ends(file, &["safetensors"]));
    files.retain(|file| {
        ends(file, &["json", "txt", "model", "safetensors"])
            || (!safe && ends(file, &["bin", "pt"]))
    });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use commands::pretrain::Pretrain;
    use commands::retrieve::Retrieve;
    use commands::transfer::Transfer;
    use commands::vocab::Stats;
    use commands::words::Words;
    use commands::world::Generate;

    use super::*;

    fn after(text: &str, file: &CommandArg) -> CommandArg {
        CommandArg::of_word(format!("{text}{}", file.held()))
    }

    #[test]
    fn equal_commands_are_one_step_and_a_change_reaches_what_depends_on_it() {
        let mut steps = StepList::on(CPU);
        let mut chain = |seed: &str, name: &str| {
            let world = StepDraft::of(&Generate::unset(), name)
                .args([CommandArg::from("--seed"), seed.into()]);
            let world = steps
                .add(world.args([CommandArg::from("--out"), CommandArg::here("world")]))
                .unwrap();
            let run = StepDraft::of(&Pretrain::unset(), name)
                .args([CommandArg::from("--world"), StepList::made(world, "world")]);
            (
                world,
                steps.add(run.args([CommandArg::from("--out"), CommandArg::here("run")])).unwrap(),
            )
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

    /// The key is a digest of revision, words and inputs, and of nothing that a rebuild changes.
    #[test]
    fn a_key_holds_the_revision_and_not_the_build() {
        let key = |revision: u32| {
            let mut draft = StepDraft::of(&Pretrain::unset(), "p")
                .args([CommandArg::from("--out"), CommandArg::here("run")]);
            draft.command.revision = revision;
            let mut steps = StepList::on(CPU);
            steps.add(draft).unwrap();
            steps.into_steps().remove(0).key
        };
        let mut hasher = blake3::Hasher::new();
        let words = ["revision 7", "pretrain", "", "--out", "", "", "run", "--device", "cpu"];
        for word in words {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word.as_bytes());
        }
        assert_eq!(key(7), hasher.finalize().to_hex()[..20]);
        assert_ne!(key(7), key(8));
    }

    #[test]
    fn threads_are_given_where_a_command_takes_them_and_change_no_key() {
        let mut steps = StepList::on(CPU);
        for draft in [
            StepDraft::of(&Pretrain::unset(), "p"),
            StepDraft::of(&Retrieve::unset(), "given").args(["--threads=2"]),
            StepDraft::of(&Stats::unset(), "v"),
        ] {
            steps.add(draft).unwrap();
        }
        let words: Vec<Vec<String>> =
            steps.into_steps().iter().map(|step| step.thread_words(Some(3))).collect();
        assert_eq!(words, [vec!["--threads".to_owned(), "3".to_owned()], vec![], vec![]]);
        let jobs = |device: &str, at_a_time: usize| {
            let mut steps = StepList::on(device);
            steps.add(StepDraft::of(&Transfer::unset(), "t")).unwrap();
            steps.into_steps()[0].job_words(at_a_time).join(" ")
        };
        assert_eq!(
            ["", "--jobs 2", "--jobs 1"],
            [1, 3, 12].map(|at_a_time| jobs("cuda", at_a_time))
        );
        assert_eq!(jobs(CPU, 12), "");
    }

    /// A file is moved, a flag gets another name, is written with `=`, and threads are given.
    #[test]
    fn a_key_is_of_what_is_computed_and_not_of_how_it_is_spelt() {
        static LATER: [RenamedFlag; 1] =
            [RenamedFlag { verb: "words", now: "--most", keyed: "--limit" }];
        let folder = tempfile::tempdir().unwrap();
        let key = |name: &str, text: &str, words: &[&str], renamed: &'static [RenamedFlag]| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            let mut steps = StepList { renamed, ..StepList::on(CPU) };
            let draft = StepDraft::of(&Words::unset(), "x")
                .args([CommandArg::from("--text"), after("fr=", &CommandArg::file(path))]);
            let step = steps.add(draft.args(words.iter().copied())).unwrap();
            steps.into_steps()[step.0].key.clone()
        };
        let before = key("a", "text", &["--limit", "20"], RENAMED);
        assert_eq!(key("moved/b", "text", &["--limit", "20"], RENAMED), before);
        assert_eq!(key("a", "text", &["--most", "20"], &LATER), before);
        assert_eq!(key("a", "text", &["--limit=20", "--threads", "3"], RENAMED), before);
        assert_ne!(key("a", "other", &["--limit", "20"], RENAMED), before);
        assert_ne!(key("a", "text", &["--limit", "21"], RENAMED), before);
        assert_ne!(key("a", "text", &["--most", "20"], RENAMED), before);
    }

    #[test]
    fn paths_are_typed_where_folders_are() {
        let mut steps = StepList::on(CPU);
        let world = steps.add(StepDraft::of(&Generate::unset(), "w")).unwrap();
        let text = after("qaa=", &StepList::made(world, "world").join("text/a.txt"));
        let run = StepDraft::of(&Pretrain::unset(), "p")
            .args([CommandArg::from("--text"), text])
            .args([CommandArg::from("--out"), CommandArg::here("run")]);
        steps.add(run).unwrap();
        let step = steps.into_steps().pop().unwrap();
        let words = step.words(StepId(1), |StepId(n)| PathBuf::from(format!("lab/{n}")));
        let expected = "pretrain --text qaa=lab/0/world/text/a.txt --out lab/1/run --device cpu";
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn what_a_gpu_makes_is_not_taken_for_the_cpus() {
        let made = |device: &str| {
            let mut steps = StepList::on(device);
            let world = StepDraft::of(&Generate::unset(), "w")
                .args([CommandArg::from("--out"), CommandArg::here("world")]);
            let world = steps.add(world).unwrap();
            let run = StepDraft::of(&Pretrain::unset(), "p")
                .args([CommandArg::from("--world"), StepList::made(world, "world")]);
            let run = steps
                .add(run.args([CommandArg::from("--out"), CommandArg::here("run")]).resumes("run"))
                .unwrap();
            let stats = StepDraft::of(&Stats::unset(), "v")
                .args([StepList::made(run, "run").join("vocabulary")]);
            steps.add(stats).unwrap();
            let given = StepDraft::of(&Pretrain::unset(), "t").args(["--device", "cpu"]);
            steps.add(given).unwrap();
            steps.into_steps()
        };
        let (cpu, cuda) = (made(CPU), made("cuda"));
        let same: Vec<bool> = cpu.iter().zip(&cuda).map(|(a, b)| a.key == b.key).collect();
        // A world is generated on no device; what reads a run depends on that run; a given device stays.
        assert_eq!(same, [true, false, false, true]);
        let devices: Vec<Option<&str>> = cuda.iter().map(|step| step.device.as_deref()).collect();
        assert_eq!(devices, [None, Some("cuda"), None, None]);
        let words = |step: &StudyStep| step.words(StepId(1), |_| PathBuf::from("x")).join(" ");
        assert!(words(&cuda[1]).ends_with("--device cuda"), "{}", words(&cuda[1]));
        assert!(words(&cpu[1]).ends_with("--device cpu"), "{}", words(&cpu[1]));
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("run")).unwrap();
        let resumed = cuda[1].words_to_resume(folder.path()).unwrap();
        assert_eq!(resumed[resumed.len() - 2..], ["--device", "cuda"]);
    }
}
