//! The files of one choice of languages: a generated world, or a folder of real data.
//!
//! Both are laid out alike, so that recipes need not know which it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::result::Result as StdResult;

use commands::mine::Mine;
use commands::request::Request as _;
use commands::texts::ColumnsFlag;
use terms::{Scale, Task, iso639_3};
use text::TsvColumns;

use super::altered::{AlteredText, COPY, tatoeba_file};
use super::error::{Error, Result};
use super::file::{InventedLanguages, LanguageAlteration};
use super::step::{CommandArg, StepDraft, StepId, StepList};
use super::systems::listed_languages;
use crate::record::Factors;

/// Where the files are.
#[derive(Clone)]
enum DataLocation {
    /// In the folder of a world of so many languages, which has dictionaries of every two of them or of the source alone.
    World { folder: CommandArg, other_domain: bool, languages: usize, all_dictionaries: bool },
    /// In a folder of real data.
    Folder(PathBuf),
    /// In the folders of steps that alter real text.
    Altered(AlteredText),
}

/// Parallel text of a target and the source, as flags of a command name it.
pub(super) enum ParallelFiles {
    /// Files of each side, and the columns of tab-separated ones that hold sentences.
    Sides { target: Vec<CommandArg>, source: Vec<CommandArg>, columns: Option<&'static str> },
    /// One file of two columns, whose order means nothing.
    Columns(CommandArg),
}

impl ParallelFiles {
    /// A file of each side.
    pub(super) fn lines(target: CommandArg, source: CommandArg) -> Self {
        Self::Sides { target: vec![target], source: vec![source], columns: None }
    }

    /// The files of both sides, each with its language; the sides are of these.
    pub(super) fn named(&self, (target, source): (&str, &str)) -> Vec<(String, String)> {
        match self {
            Self::Sides { target: of_target, source: of_source, .. } => {
                let targets = of_target.iter().map(|file| (target.to_owned(), file.held()));
                let sources = of_source.iter().map(|file| (source.to_owned(), file.held()));
                targets.chain(sources).collect()
            }
            Self::Columns(file) => vec![(format!("{source}-{target}"), file.held())],
        }
    }

    /// The words of a flag for both sides, which are of these languages.
    pub(super) fn flags(&self, flag: &str, languages: (&str, &str)) -> Vec<CommandArg> {
        let word = |(language, file)| CommandArg::of_word(format!("{language}={file}"));
        let named = self.named(languages).into_iter();
        named.flat_map(|one| [flag.into(), word(one)]).collect()
    }

    /// The models of the target and of the source in the order of the sides.
    pub(super) fn models<T>(&self, target: T, source: T) -> [T; 2] {
        match self {
            Self::Sides { .. } => [target, source],
            Self::Columns(_) => [source, target],
        }
    }

    /// In which columns the sentences of tab-separated files are.
    pub(super) fn column_flag(&self) -> ColumnsFlag {
        let columns = match self {
            Self::Sides { columns: Some(columns), .. } => columns.parse().expect("ours"),
            _ => TsvColumns::default(),
        };
        ColumnsFlag { columns }
    }

    /// The words that say in which columns the sentences of tab-separated files are.
    pub(super) fn columns(&self) -> Vec<CommandArg> {
        match self {
            Self::Sides { columns: Some(columns), .. } => {
                vec!["--columns".into(), (*columns).into()]
            }
            _ => Vec::new(),
        }
    }
}

/// What a task's files are for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskUse {
    /// Scores of all languages.
    Transfer,
    /// Scores to compare with those of [`TaskUse::Shift`]: on the same items.
    Unshifted,
    /// Scores after a shift, whose weight is chosen on other items of each target language.
    Shift,
}

/// Parts of a dictionary of a target and the source.
#[derive(Clone)]
pub(super) struct WordDictionaries<const N: usize> {
    pub(super) files: [CommandArg; N],
    /// Whether the source's words stand first.
    pub(super) reversed: bool,
}

/// The labelled files of a task.
pub(super) struct TaskFiles {
    /// Flags of `transfer`.
    pub(super) flags: Vec<CommandArg>,
    /// A line for each language that has no file.
    pub(super) missing: Vec<String>,
}

/// The files of one choice of languages.
#[derive(Clone)]
pub(super) struct LanguageData {
    /// What records are labelled with.
    pub(super) factors: Factors,
    /// The source language, which tasks are trained in.
    pub(super) source: String,
    /// The target languages.
    pub(super) targets: Vec<String>,
    home: DataLocation,
    /// Of each real language with tests, and of its text of another domain: the step that leaves the tests' sentences out.
    without_tests: BTreeMap<(String, bool), StepId>,
    /// Of an altered language: its other alterations.
    altered_beside: Vec<AlteredText>,
    /// Of one language compared with itself: the two wordings of its test sentences.
    paraphrases: Option<Rc<ParallelFiles>>,
}

impl LanguageData {
    /// A world, generated by a step; the text of its target languages may be of another domain.
    pub(super) fn invent(
        steps: &mut StepList,
        world: &InventedLanguages,
        seed: u64,
        other_domain: bool,
    ) -> Result<Self> {
        let mut flags = world.flags.clone();
        if other_domain && !flags.iter().any(|flag| flag == "--domain-shift") {
            flags.extend(["--domain-shift".to_owned(), "0.6".to_owned()]);
        }
        let count = world.languages.unwrap_or(2);
        let mut name = format!("generate {count} languages, seed {seed}");
        if !flags.is_empty() {
            name += &format!(" ({})", flags.join(" "));
        }
        let all_dictionaries = flags.iter().any(|flag| flag == "all_dictionaries=true");
        let draft = StepDraft::new("world generate", name)
            .flag("--seed", seed.to_string())
            .flag("--languages", count.to_string())
            .args(flags)
            .flag("--out", CommandArg::here("world"));
        let folder = StepList::made(steps.add(draft)?, "world");
        let code = |number: usize| format!("qa{}", char::from(b'a' + number as u8));
        Ok(Self {
            factors: world.factors.clone(),
            source: code(0),
            targets: (1..count).map(code).collect(),
            home: DataLocation::World { folder, other_domain, languages: count, all_dictionaries },
            without_tests: BTreeMap::new(),
            altered_beside: Vec::new(),
            paraphrases: None,
        })
    }

    /// Real languages, the source first.
    pub(super) fn real(data: &Path, languages: &[&str]) -> Self {
        let mut languages = languages.iter().map(|&language| language.to_owned());
        let source = languages.next().unwrap_or_default();
        let home = DataLocation::Folder(data.to_owned());
        let targets = languages.collect();
        let (factors, without_tests) = (Factors::new(), BTreeMap::new());
        let altered_beside = Vec::new();
        Self { factors, source, targets, home, without_tests, altered_beside, paraphrases: None }
    }

    /// The same, with steps that leave the sentences of parallel tests out of its text.
    pub(super) fn without_tests(mut self, steps: &mut StepList) -> Result<Self> {
        for language in self.languages().map(str::to_owned).collect::<Vec<_>>() {
            let other = self.other_text_path(&language).into_iter().collect();
            for (other_domain, texts) in [(false, self.text_paths(&language)), (true, other)] {
                let files = [texts, self.test_paths(&language)];
                if let Some(step) = exclude_tests(steps, &language, other_domain, files)? {
                    self.without_tests.insert((language.clone(), other_domain), step);
                }
            }
        }
        Ok(self)
    }

    /// Files with the sentences of a real language that hidden states are compared on, or maps are learned from: those of
    /// its own pairs, so that a file of another language changes nothing.
    pub(super) fn test_paths(&self, language: &str) -> Vec<PathBuf> {
        let Some(data) = self.data() else { return Vec::new() };
        let of_pair = |target: &String| {
            let [own, source] = self.tatoeba_names(target);
            match language {
                language if language == self.source => Some(source),
                language => (language == target).then_some(own),
            }
        };
        let xnli = ["dev", "test"].map(|part| format!("xnli/{part}-{language}.tsv"));
        let names = self.targets.iter().filter_map(of_pair).chain(xnli);
        names.map(|name| data.join(name)).filter(|file| file.is_file()).collect()
    }

    /// The step that leaves tests out of a language's text, perhaps of another domain, where there is one.
    pub(super) fn test_exclusion(&self, language: &str, other_domain: bool) -> Option<StepId> {
        self.without_tests.get(&(language.to_owned(), other_domain)).copied()
    }

    /// A real language beside an altered copy of itself, made by steps.
    pub(super) fn altered(
        steps: &mut StepList,
        (data, language): (&Path, &str),
        alteration: &LanguageAlteration,
        (scale, seed): (Scale, u64),
    ) -> Result<Self> {
        let real = Self::real(data, &[language, COPY]);
        let mut texts = real.text_paths(language);
        if let Some(domain) = &alteration.text {
            let name = format!("{language}.{domain}.txt.zst");
            texts.retain(|path| path.file_name().is_some_and(|file| *file == *name));
        }
        if texts.is_empty() {
            return Err(real.no_text(language));
        }
        let mut tests = real.test_paths(language);
        tests.extend(tatoeba_file(data, language));
        let files = [texts.clone(), tests];
        let step = exclude_tests(steps, language, false, files)?;
        let texts = match step {
            Some(step) => vec![StepList::made(step, WITHOUT_TESTS)],
            None => texts.into_iter().map(CommandArg::file).collect(),
        };
        let text = AlteredText::plan(steps, (data, texts), language, alteration, (scale, seed))?;
        let (factors, home) = (alteration.factors.clone(), DataLocation::Altered(text));
        let without_tests = step.map(|step| ((language.to_owned(), false), step));
        Ok(Self { factors, home, without_tests: without_tests.into_iter().collect(), ..real })
    }

    /// Tells the alterations of each language of one another.
    pub(super) fn introduce(choices: &mut [Self]) {
        let altered = |one: &Self| match &one.home {
            DataLocation::Altered(text) => Some((one.source.clone(), text.clone())),
            _ => None,
        };
        let all: Vec<_> = choices.iter().map(altered).collect();
        for (number, one) in choices.iter_mut().enumerate() {
            let others = all.iter().enumerate().filter(|(other, _)| *other != number);
            let others = others.filter_map(|(_, other)| other.as_ref());
            let of_same = others.filter(|(source, _)| *source == one.source);
            one.altered_beside = of_same.map(|(_, text)| text.clone()).collect();
        }
    }

    /// The same rows as those of some files in the other alterations of the language.
    pub(super) fn beside(&self, sentences: &ParallelFiles) -> Vec<CommandArg> {
        match (&self.home, sentences) {
            (DataLocation::Altered(own), ParallelFiles::Sides { target, .. }) => {
                let others = self.altered_beside.iter();
                others.filter_map(|other| own.instead_of(target.first()?, other)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The source language beside itself, written en′, on two wordings of the same sentences.
    pub(super) fn paraphrased(mut self, steps: &mut StepList) -> Result<StdResult<Self, String>> {
        let paraphrases = match &self.home {
            DataLocation::World { folder, .. } => {
                let [_, own] = self.tatoeba_names(&self.targets[0]).map(|name| folder.join(&name));
                let second = folder.join(&format!("parallel/paraphrase.{}.txt", self.source));
                ParallelFiles::lines(second, own)
            }
            DataLocation::Folder(data) => match self.paraphrase_step(data, steps)? {
                Ok(folder) => ParallelFiles::Columns(folder.join("paraphrases.tsv")),
                Err(line) => return Ok(Err(line)),
            },
            DataLocation::Altered(_) => {
                let line = format!("paraphrases of {}: its altered copy is compared", self.source);
                return Ok(Err(line));
            }
        };
        self.paraphrases = Some(Rc::new(paraphrases));
        self.targets = vec![format!("{}'", self.source)];
        Ok(Ok(self))
    }

    /// Finds sentences of the source language with the same translation, in all parallel text that there is.
    fn paraphrase_step(
        &self,
        data: &Path,
        steps: &mut StepList,
    ) -> Result<StdResult<CommandArg, String>> {
        let source = &self.source;
        let start = format!("bitext.{source}-");
        let named = |entry: std::fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let target = name.strip_prefix(&start)?.strip_suffix(".tsv")?.to_owned();
            Some((target, entry.path()))
        };
        let entries = std::fs::read_dir(data.join("bitext")).into_iter().flatten().flatten();
        let mut files: Vec<(String, PathBuf)> = entries.filter_map(named).collect();
        files.sort();
        if files.is_empty() {
            let name = self.shown(&format!("bitext/{start}LANG.tsv"));
            return Ok(Err(format!("paraphrases of {source}: there is no {name} to find them in")));
        }
        let mut draft = StepDraft::new("corpus paraphrases", format!("paraphrases of {source}"));
        for (target, file) in files {
            draft = draft
                .flag("--parallel", CommandArg::file(file).after(&format!("{source}-{target}=")));
        }
        // Sentences of the text of pretraining are not excluded: parallel text at hand is nearly all there (of 47,000 English
        // sentences two pairs would be left), and every system that is compared was trained on them alike.
        let draft = draft
            .flag("--lang", source.as_str())
            .flag("--out", CommandArg::here("paraphrases.tsv"));
        Ok(Ok(StepList::made(steps.add(draft)?, "")))
    }

    /// The same without the real languages whose text a model that is given could not read, and a line for each: XNLI's
    /// sentences where the source has them, else text.
    pub(super) fn with_text(mut self) -> (Self, Vec<String>) {
        let xnli = |language: &str| format!("xnli/dev-{language}.tsv");
        let has_xnli = |language: &str| self.existing(&[xnli(language)]).is_some();
        let by_xnli = self.data().is_none() || has_xnli(&self.source);
        let has = |language: &&String| match by_xnli {
            true => has_xnli(language),
            false => !self.text_paths(language).is_empty(),
        };
        let (kept, lost): (Vec<String>, Vec<String>) =
            self.targets.clone().into_iter().partition(|language| has(&language));
        let line = |language: &String| {
            let name = if by_xnli { xnli(language) } else { format!("text/{language}.*.txt.zst") };
            format!("{language}: there is no {}", self.shown(&name))
        };
        let lines = lost.iter().map(line).collect();
        self.targets = kept;
        (self, lines)
    }

    /// Whether one language is compared with itself.
    pub(super) fn is_paraphrased(&self) -> bool {
        self.paraphrases.is_some()
    }

    /// The source with one of its targets.
    pub(super) fn with_target(&self, target: &str) -> Self {
        Self { targets: vec![target.to_owned()], ..self.clone() }
    }

    /// All languages, the source first.
    pub(super) fn languages(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.source.as_str()).chain(self.targets.iter().map(String::as_str))
    }

    /// The name of the pair of the source and a target.
    pub(super) fn pair(&self, target: &str) -> String {
        format!("{}-{target}", self.source)
    }

    /// The first of some files that exists; of a world, which is not generated yet, the first.
    fn existing(&self, names: &[String]) -> Option<CommandArg> {
        match &self.home {
            DataLocation::World { folder, .. } => names.first().map(|name| folder.join(name)),
            DataLocation::Folder(data) => {
                let mut paths = names.iter().map(|name| data.join(name));
                paths.find(|path| path.is_file()).map(CommandArg::file)
            }
            DataLocation::Altered(_) => None,
        }
    }

    /// The path of a file that is missing, for messages.
    pub(super) fn shown(&self, name: &str) -> String {
        self.data().map_or_else(|| name.to_owned(), |data| data.join(name).display().to_string())
    }

    /// Files of monolingual text of a language, perhaps of another domain.
    pub(super) fn text(&self, language: &str, other_domain: bool) -> Vec<CommandArg> {
        match &self.home {
            DataLocation::World { folder, other_domain: true, .. } if language != self.source => {
                vec![folder.join(&format!("text/{language}.other.txt"))]
            }
            DataLocation::World { folder, .. } => {
                vec![folder.join(&format!("text/{language}.base.txt"))]
            }
            DataLocation::Altered(altered) => vec![altered.text(language)],
            DataLocation::Folder(data) => {
                match (self.test_exclusion(language, other_domain), other_domain) {
                    (Some(step), _) => vec![StepList::made(step, WITHOUT_TESTS)],
                    (None, true) => vec![CommandArg::file(data.join(other_text(language)))],
                    (None, false) => {
                        self.text_paths(language).into_iter().map(CommandArg::file).collect()
                    }
                }
            }
        }
    }

    /// The files of a real language's text, whatever kind their names say, but those of the other domain; none of an
    /// invented language.
    pub(super) fn text_paths(&self, language: &str) -> Vec<PathBuf> {
        let Some(data) = self.data() else { return Vec::new() };
        let other = data.join(other_text(language));
        let is_text = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let kind = name.strip_prefix(language).and_then(|rest| rest.strip_prefix('.'));
            kind.is_some_and(|kind| kind.ends_with(".txt.zst")) && path.is_file() && *path != other
        };
        let entries = std::fs::read_dir(data.join("text")).into_iter().flatten().flatten();
        let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_text).collect();
        files.sort();
        files
    }

    /// A real language's text of another domain; refuses where there is none, since no data set provides it.
    pub(super) fn other_text_path(&self, language: &str) -> Result<PathBuf> {
        let path = self.data().unwrap_or(Path::new("")).join(other_text(language));
        if path.is_file() {
            return Ok(path);
        }
        let reason = format!(
            "there is no such file; the preset `wiki-cc` needs text of `{language}` there that is of another domain \
             than the rest"
        );
        let remedy = "put such text of your own under that name, a paragraph a line and compressed by zstd (no entry \
                      of `isogloss data list` makes it), or leave the condition out";
        Err(Error::data(path.display().to_string(), reason, remedy))
    }

    /// The error that a language has no text.
    pub(super) fn no_text(&self, language: &str) -> Error {
        let data = self.data().unwrap_or(Path::new(""));
        let place = data.join(format!("text/{language}.*.txt.zst")).display().to_string();
        let remedy = "put text there, or name another folder of data (`real.data`)";
        Error::data(place, "there is no such file", remedy)
    }

    /// The flags by which a command reads text of some languages.
    pub(super) fn text_flags(
        &self,
        languages: &[&str],
        other_domain: bool,
    ) -> Result<Vec<CommandArg>> {
        let mut flags = Vec::new();
        for language in languages {
            let other = other_domain && *language != self.source;
            if other && self.data().is_some() {
                self.other_text_path(language)?;
            }
            let files = self.text(language, other);
            if files.is_empty() {
                return Err(self.no_text(language));
            }
            for file in files {
                flags.extend(["--text".into(), file.after(&format!("{language}="))]);
            }
        }
        Ok(flags)
    }

    /// Whether lines of text are tokenised sentences.
    pub(super) fn prepared(&self) -> bool {
        self.data().is_none()
    }

    /// The names of a labelled file, the preferred first.
    fn task_names(&self, task: Task, part: &str, language: &str) -> Vec<String> {
        match (&self.home, task) {
            (DataLocation::World { .. }, Task::Parse | Task::Pos) => {
                vec![format!("ud/{language}_world-ud-{part}.conllu")]
            }
            (DataLocation::World { .. }, Task::Nli) => vec![format!("xnli/{part}-{language}.tsv")],
            _ => task.files(part, language),
        }
    }

    /// The labelled files of a task; the error is the line that says which file is missing for all of it.
    pub(super) fn task(&self, task: Task, purpose: TaskUse) -> StdResult<TaskFiles, String> {
        if let DataLocation::World { folder, languages, .. } = &self.home
            && self.targets.len() + 1 == *languages
        {
            let flags = vec!["--world".into(), folder.clone()];
            return Ok(TaskFiles { flags, missing: Vec::new() });
        }
        let source = self.source.as_str();
        let (mut flags, mut missing) = (Vec::new(), Vec::new());
        // Of another data set only where all its files are there, the source's and the targets': data sets differ in
        // their labels and texts, and a loss from one to another would be taken for a loss from language to language.
        let other = |part: &str, language: &str| {
            let path = self.data()?.join(task.other_file(part, language)?);
            path.is_file().then(|| CommandArg::file(path))
        };
        let parts = ["train", "dev", "test"];
        let of_other = parts.iter().all(|part| other(part, source).is_some())
            && self.targets.iter().all(|target| other("test", target).is_some());
        let find = |part: &str, language: &str| {
            let names = self.task_names(task, part, language);
            let lost = || {
                let line = format!("{task} of {language}: there is no {}", self.shown(&names[0]));
                match other(part, language).and(task.other_file(part, language)) {
                    Some(name) => {
                        format!("{line}, and {name} is of another data set than {source}'s")
                    }
                    None => line,
                }
            };
            let known = if of_other { other(part, language) } else { self.existing(&names) };
            known.ok_or_else(lost)
        };
        let [train, dev, test] = parts.map(|part| find(part, source));
        let (train, dev, test) = (train?, dev?, test?);
        let own = |flag: &str, file: CommandArg| -> [CommandArg; 2] {
            [flag.into(), file.after(&format!("{source}="))]
        };
        flags.extend(own("--train", train));
        match dev == test {
            // One file only: its halves, so that nothing is chosen on what is reported.
            true => flags.extend(own("--halves", dev)),
            false => flags.extend([own("--dev", dev), own("--test", test)].concat()),
        }
        let mut found = 0;
        for target in &self.targets {
            let test = match find("test", target) {
                Ok(test) => test,
                Err(line) => {
                    missing.push(line);
                    continue;
                }
            };
            found += 1;
            let named = |flag: &str, file: CommandArg| -> [CommandArg; 2] {
                [flag.into(), file.after(&format!("{target}="))]
            };
            match (find("dev", target), purpose) {
                (Ok(dev), TaskUse::Shift) if dev != test => {
                    flags.extend(named("--dev", dev));
                    flags.extend(named("--test", test));
                }
                // One file only: a half of it is for choosing, in whichever study, and the other is reported.
                (Ok(dev), _) if dev == test => flags.extend(named("--halves", test)),
                (Err(_), TaskUse::Shift | TaskUse::Unshifted) => {
                    flags.extend(named("--halves", test));
                }
                _ => flags.extend(named("--test", test)),
            }
        }
        if found == 0 {
            return Err(missing.join("; "));
        }
        flags.push("--allow-unseen".into());
        Ok(TaskFiles { flags, missing })
    }

    /// The names of a pair's Tatoeba files: the target's, the source's.
    fn tatoeba_names(&self, target: &str) -> [String; 2] {
        let (code, own) = match self.home {
            DataLocation::World { .. } => (target, self.source.as_str()),
            _ => (iso639_3(target), iso639_3(&self.source)),
        };
        [code, own].map(|side| format!("tatoeba/tatoeba.{code}-{own}.{side}"))
    }

    /// Parallel sentences for retrieval; the error is the line that says which file is missing.
    pub(super) fn test_sentences(&self, target: &str) -> StdResult<Rc<ParallelFiles>, String> {
        if let Some(paraphrases) = &self.paraphrases {
            return Ok(Rc::clone(paraphrases));
        }
        if let DataLocation::Altered(altered) = &self.home {
            let [target, source] = altered.test([target, &self.source])?;
            return Ok(Rc::new(ParallelFiles::lines(target, source)));
        }
        let names = self.tatoeba_names(target);
        match names.clone().map(|name| self.existing(&[name])) {
            [Some(target), Some(source)] => Ok(Rc::new(ParallelFiles::lines(target, source))),
            _ => Err(format!("sentences of {target}: there is no {}", self.shown(&names[0]))),
        }
    }

    /// XNLI's sentences in two real languages: premises and hypotheses of the parts that both have.
    fn xnli(
        &self,
        target: &str,
        parts: &[&str],
        columns: &'static str,
    ) -> StdResult<Rc<ParallelFiles>, String> {
        let mut sides = [Vec::new(), Vec::new()];
        for part in parts {
            let file = |language: &str| self.existing(&[format!("xnli/{part}-{language}.tsv")]);
            if let (Some(a), Some(b)) = (file(target), file(&self.source)) {
                sides[0].push(a);
                sides[1].push(b);
            }
        }
        let [of_target, source] = sides;
        if of_target.is_empty() {
            let name = self.shown(&format!("xnli/test-{target}.tsv"));
            return Err(format!("sentences of {target}: there is no {name}"));
        }
        let columns = Some(columns);
        Ok(Rc::new(ParallelFiles::Sides { target: of_target, source, columns }))
    }

    /// Other parallel sentences, from which maps are learned.
    pub(super) fn train_sentences(&self, target: &str) -> StdResult<Rc<ParallelFiles>, String> {
        if self.paraphrases.is_some() {
            return Err(format!("no other sentences of {target} than those to retrieve"));
        }
        let languages = [target, &self.source];
        match &self.home {
            DataLocation::World { folder, .. } => {
                let [a, b] = languages
                    .map(|language| folder.join(&format!("parallel/train.{language}.txt")));
                Ok(Rc::new(ParallelFiles::lines(a, b)))
            }
            DataLocation::Altered(altered) => {
                let [a, b] = altered.train(languages)?;
                Ok(Rc::new(ParallelFiles::lines(a, b)))
            }
            DataLocation::Folder(_) => self.xnli(target, &["dev", "test"], TEST_COLUMNS),
        }
    }

    /// Parallel sentences whose hidden states are compared, or whose tokens are translated: XNLI's (Conneau et al. 2020,
    /// §5.2; Liu et al. 2020, §4.2) or, of a world, its test sentences.
    pub(super) fn compared_sentences(&self, target: &str) -> StdResult<Rc<ParallelFiles>, String> {
        match self.data().filter(|_| self.paraphrases.is_none()) {
            None => self.test_sentences(target),
            Some(_) => self.xnli(target, &["dev", "test"], TEST_COLUMNS),
        }
    }

    /// Parallel sentences to show: short ones, which fit any encoder, where there are some.
    pub(super) fn shown_sentences(&self, target: &str) -> StdResult<Rc<ParallelFiles>, String> {
        self.test_sentences(target).or_else(|_| self.xnli(target, &["test"], "1"))
    }

    /// The text by which a language's set of tokens is known: XNLI's test set, whose premises and hypotheses give the
    /// sizes of Liu et al. 2020, Table 3, to the digit, or, of an invented language, none but that of its vocabulary.
    pub(super) fn token_text(&self, languages: &[&str], flag: &str) -> Vec<CommandArg> {
        let mut flags = Vec::new();
        for language in languages.iter().filter(|_| self.data().is_some()) {
            if let Some(file) = self.existing(&[format!("xnli/test-{language}.tsv")]) {
                flags.extend([flag.into(), file.after(&format!("{language}="))]);
            }
        }
        flags
    }

    /// Real text of the same content in every language, where there is some, as flags: XNLI's development sentences.
    pub(super) fn means_text(&self, languages: &[&str]) -> Option<Vec<CommandArg>> {
        self.data()?;
        let mut flags: Vec<CommandArg> = Vec::new();
        for language in languages {
            let file = self.existing(&[format!("xnli/dev-{language}.tsv")])?;
            flags.extend(["--text".into(), file.after(&format!("{language}="))]);
        }
        flags.extend(["--columns".into(), TEST_COLUMNS.into()]);
        Some(flags)
    }

    /// Parts of a MUSE dictionary from a target to the source, `0-5000` to train, `5000-6500` to test; where some are
    /// missing, those from the source to the target, which are to be reversed.
    pub(super) fn dictionaries<const N: usize>(
        &self,
        target: &str,
        parts: [&str; N],
    ) -> StdResult<WordDictionaries<N>, String> {
        if let DataLocation::Altered(altered) = &self.home {
            // All words of the text: no map is learned from them.
            return match parts.contains(&"0-5000") {
                false => Ok(WordDictionaries {
                    files: parts.map(|_| altered.dictionary()),
                    reversed: false,
                }),
                true => {
                    Err(format!("words of {target}: there is no dictionary to learn a map from"))
                }
            };
        }
        let name = |from: &str, to: &str, part: &str| format!("muse/{from}-{to}.{part}.txt");
        let source = self.source.as_str();
        for (from, to, reversed) in [(target, source, false), (source, target, true)] {
            let files = parts.map(|part| self.existing(&[name(from, to, part)]));
            if files.iter().all(Option::is_some) {
                let files = files.map(|file| file.expect("all are there"));
                return Ok(WordDictionaries { files, reversed });
            }
        }
        let missing = [(target, source), (source, target)].map(|(from, to)| {
            let mut names = parts.iter().map(|part| name(from, to, part));
            let name = names.find(|name| self.existing(std::slice::from_ref(name)).is_none());
            self.shown(&name.unwrap_or_default())
        });
        Err(format!("words of {target}: there is no {} (reversed: no {})", missing[0], missing[1]))
    }

    /// The dictionary to test translation from the source into a target, where there is one.
    pub(super) fn opposite_test(&self, target: &str) -> Option<CommandArg> {
        self.existing(&[format!("muse/{}-{target}.5000-6500.txt", self.source)])
    }

    /// A MUSE dictionary of two targets, where there is one: of a world that was generated with them.
    pub(super) fn dictionary_of(&self, from: &str, to: &str, part: &str) -> Option<CommandArg> {
        match &self.home {
            DataLocation::World { all_dictionaries: false, .. } => None,
            _ => self.existing(&[format!("muse/{from}-{to}.{part}.txt")]),
        }
    }

    /// The whole dictionary from the source to a target, where there is one.
    pub(super) fn whole_dictionary(&self, target: &str) -> Option<CommandArg> {
        self.existing(&[format!("muse/{}-{target}.txt", self.source)])
    }

    /// The dictionary whose words become anchors: PanLex with its quality weights, as in Conneau et al. 2020, or MUSE.
    pub(super) fn anchor_dictionary(&self, target: &str) -> StdResult<CommandArg, String> {
        let (pair, source) = (self.pair(target), &self.source);
        let names = [format!("panlex/{pair}.tsv"), format!("muse/{source}-{target}.txt")];
        self.existing(&names).ok_or_else(|| self.shown(&names[1]))
    }

    /// Parallel text of two columns, the source's first, and its gold links: a world has some.
    pub(super) fn linked_text(&self, target: &str) -> StdResult<(CommandArg, CommandArg), String> {
        let stem = format!("bitext/bitext.{}", self.pair(target));
        match &self.home {
            DataLocation::World { folder, .. } if self.paraphrases.is_none() => {
                Ok((folder.join(&format!("{stem}.tsv")), folder.join(&format!("{stem}.align"))))
            }
            _ => Err(format!("word links of {target}: there are no gold links")),
        }
    }

    /// Two texts to mine pairs from, as flags of `mine`: a world's training sentences in both languages, which are the gold
    /// pairs, and beside them sentences that only one of the two has.
    pub(super) fn mined_text(&self, target: &str) -> StdResult<Mine, String> {
        let (text, _) = self.linked_text(target)?;
        let folder = self.world().expect("gold links are a world's");
        let source = self.source.as_str();
        let named = |(language, part): (&str, &str)| {
            let file = folder.join(&format!("parallel/{part}.{language}.txt"));
            (language.to_owned(), file.held())
        };
        let parts = [(source, "train"), (source, "dev"), (target, "train"), (target, "test")];
        let texts = parts.map(named).into();
        Ok(Mine { texts, gold: Some(text.held()), ..Mine::unset() })
    }

    /// Real parallel text to align words in, as words of `word-align`: a file of pairs where there is one, else XNLI's
    /// sentences, which exist in all its languages.
    pub(super) fn parallel_text(&self, target: &str) -> StdResult<Vec<CommandArg>, String> {
        let pair = self.pair(target);
        if let Some(pairs) = self.existing(&[format!("bitext/bitext.{pair}.tsv")]) {
            return Ok(vec!["--parallel".into(), pairs.after(&format!("{pair}="))]);
        }
        // The source's side first, as in a file of pairs.
        let pair = [self.source.as_str(), target];
        let mut words = self.xnli(target, &["dev", "test"], TEST_COLUMNS)?.columns();
        for (language, part) in pair.into_iter().flat_map(|one| [(one, "dev"), (one, "test")]) {
            let file = self.existing(&[format!("xnli/{part}-{language}.tsv")]);
            let named = file.map(|file| file.after(&format!("{language}=")));
            words.extend(named.into_iter().flat_map(|file| ["--parallel".into(), file]));
        }
        Ok(words)
    }

    /// The folder of real data, where the languages are real.
    pub(super) fn data(&self) -> Option<&Path> {
        match &self.home {
            DataLocation::Folder(data) => Some(data),
            _ => None,
        }
    }

    /// The world's folder, where the languages are invented.
    pub(super) fn world(&self) -> Option<CommandArg> {
        match &self.home {
            DataLocation::World { folder, .. } => Some(folder.clone()),
            _ => None,
        }
    }
}

/// The languages with XNLI's test file in a folder of data that all of some models know, English first.
///
/// # Errors
/// Where the folder, or a model, cannot be read.
pub fn xnli_languages(data: &Path, models: &[(String, PathBuf)]) -> Result<Vec<String>> {
    let folder = data.join("xnli");
    let entries = std::fs::read_dir(&folder).map_err(|error| Error::unreadable(&folder, &error))?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let code = |name: String| Some(name.strip_prefix("test-")?.strip_suffix(".tsv")?.to_owned());
    let mut languages: Vec<String> = names.filter_map(code).collect();
    languages.sort_by_key(|language| (language != "en", language.clone()));
    for (name, folder) in models {
        let known = models::architecture(folder).map_err(|error| {
            let place = format!("the model {name}, {}", folder.display());
            Error::data(place, error.to_string(), "name another folder")
        })?;
        if let Some(known) = listed_languages(&known.languages) {
            languages.retain(|language| known.contains(language));
        }
    }
    Ok(languages)
}

/// The columns of XNLI's files that hold sentences: premises and hypotheses.
pub const TEST_COLUMNS: &str = "1,2";

/// The file of a step's folder that holds text without the sentences of tests.
const WITHOUT_TESTS: &str = "text.txt.zst";

/// Plans the step that leaves the sentences of tests out of a language's text; none where there is no text, or no test.
fn exclude_tests(
    steps: &mut StepList,
    language: &str,
    other_domain: bool,
    [texts, tests]: [Vec<PathBuf>; 2],
) -> Result<Option<StepId>> {
    if texts.is_empty() || tests.is_empty() {
        return Ok(None);
    }
    let domain = if other_domain { " of another domain" } else { "" };
    let name = format!("text of {language}{domain} without test sentences");
    let mut draft = StepDraft::new("corpus exclude", name);
    for text in texts {
        draft = draft.flag("--text", CommandArg::file(text).after(&format!("{language}=")));
    }
    for test in tests {
        draft = draft.flag("--exclude", CommandArg::file(test));
    }
    let draft =
        draft.flag("--columns", TEST_COLUMNS).flag("--out", CommandArg::here(WITHOUT_TESTS));
    steps.add(draft).map(Some)
}

/// The name of a real language's text of another domain.
fn other_text(language: &str) -> String {
    format!("text/{language}.docs.txt.zst")
}
