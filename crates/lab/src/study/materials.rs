//! The files of one choice of languages: a world that is invented for it, or a folder of real data.
//!
//! Both are laid out alike, so that nothing after this knows which it is.

use std::path::{Path, PathBuf};

use terms::Task;

use super::error::{Error, Result};
use super::file::World;
use super::step::{Arg, Draft, Steps};
use crate::record::Factors;

/// Where the files are.
enum Home {
    /// In the folder of a world.
    World { folder: Arg, other_domain: bool },
    /// In a folder of real data.
    Real(PathBuf),
}

/// The files of one choice of languages.
pub(super) struct Materials {
    /// What numbers are filed under.
    pub(super) factors: Factors,
    /// The language to learn tasks in.
    pub(super) source: String,
    /// The others.
    pub(super) targets: Vec<String>,
    home: Home,
}

impl Materials {
    /// A world, invented by a step; the text of its other languages may be of another domain.
    pub(super) fn invent(
        steps: &mut Steps,
        world: &World,
        seed: u64,
        other_domain: bool,
    ) -> Result<Self> {
        let mut flags = world.flags.clone();
        if other_domain && !flags.iter().any(|flag| flag == "--domain-shift") {
            flags.extend(["--domain-shift".to_owned(), "0.6".to_owned()]);
        }
        let count = world.languages.unwrap_or(2);
        let mut name = format!("invent {count} languages, seed {seed}");
        if !flags.is_empty() {
            name += &format!(" ({})", flags.join(" "));
        }
        let draft = Draft::new("world generate", name)
            .flag("--seed", seed.to_string())
            .flag("--languages", count.to_string())
            .args(flags)
            .flag("--out", Arg::here("world"));
        let folder = Steps::made(steps.add(draft)?, "world");
        let code = |number: usize| format!("qa{}", char::from(b'a' + number as u8));
        Ok(Self {
            factors: world.factors.clone(),
            source: code(0),
            targets: (1..count).map(code).collect(),
            home: Home::World { folder, other_domain },
        })
    }

    /// Two real languages, such as `en-fr`.
    pub(super) fn real(data: &Path, pair: &str) -> Self {
        let (source, target) = pair.split_once('-').unwrap_or((pair, ""));
        let home = Home::Real(data.to_owned());
        let (source, targets) = (source.to_owned(), vec![target.to_owned()]);
        Self { factors: Factors::new(), source, targets, home }
    }

    /// All languages, the source first.
    pub(super) fn languages(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.source.as_str()).chain(self.targets.iter().map(String::as_str))
    }

    /// How the pair of the source with a target is called.
    pub(super) fn pair(&self, target: &str) -> String {
        format!("{}-{target}", self.source)
    }

    fn path(&self, below: &str) -> Arg {
        match &self.home {
            Home::World { folder, .. } => folder.join(below),
            Home::Real(data) => Arg::file(data.join(below)),
        }
    }

    /// The first of some files that is there; of a world, whose files are yet to come, the first.
    fn first_of(&self, names: &[String]) -> Arg {
        let there = match &self.home {
            Home::World { .. } => None,
            Home::Real(data) => names.iter().find(|name| data.join(name).is_file()),
        };
        self.path(there.unwrap_or(&names[0]))
    }

    /// Files of plain text of a language; of another domain, where that is asked for.
    pub(super) fn text(&self, language: &str, other_domain: bool) -> Vec<Arg> {
        match &self.home {
            Home::World { other_domain: true, .. } if language != self.source => {
                vec![self.path(&format!("text/{language}.other.txt"))]
            }
            Home::World { .. } => vec![self.path(&format!("text/{language}.base.txt"))],
            Home::Real(_) if other_domain => vec![self.path(&other_text(language))],
            Home::Real(_) => self.text_paths(language).into_iter().map(Arg::file).collect(),
        }
    }

    /// The files of a real language's text that are there; of an invented one, none are yet.
    pub(super) fn text_paths(&self, language: &str) -> Vec<PathBuf> {
        let Some(data) = self.data() else { return Vec::new() };
        let name = |domain: &&str| data.join(format!("text/{language}.{domain}.txt.zst"));
        ["lit", "tatoeba", "wiki"].iter().map(name).filter(|path| path.is_file()).collect()
    }

    /// The complaint that a language has no text.
    pub(super) fn no_text(&self, language: &str) -> Error {
        let data = self.data().unwrap_or(Path::new(""));
        let place = data.join(format!("text/{language}.*.txt.zst")).display().to_string();
        let remedy = "put text there, or name another folder with --data";
        Error::file(place, "there is no such file", remedy)
    }

    /// The flags by which a command reads text of some languages.
    pub(super) fn text_flags(&self, languages: &[&str], other_domain: bool) -> Result<Vec<Arg>> {
        let mut flags = Vec::new();
        for language in languages {
            let other = other_domain && *language != self.source;
            if other && let Some(data) = self.data() {
                check_other_text(data, language)?;
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

    /// Whether lines of text are sentences whose words stand apart already.
    pub(super) fn prepared(&self) -> bool {
        matches!(self.home, Home::World { .. })
    }

    /// The labelled files of a task, as flags of `transfer`.
    pub(super) fn task(&self, task: Task) -> Vec<Arg> {
        if let Home::World { folder, .. } = &self.home {
            return vec!["--world".into(), folder.clone()];
        }
        let source = self.source.as_str();
        let file = |flag: &str, language: &str, names: &[String]| {
            [flag.into(), self.first_of(names).after(&format!("{language}="))]
        };
        let mut flags: Vec<Arg> = Vec::new();
        flags.extend(file("--train", source, &task.files("train", source)));
        flags.extend(file("--dev", source, &task.files("dev", source)));
        for language in self.languages() {
            flags.extend(file("--test", language, &task.files("test", language)));
        }
        flags.push("--allow-unseen".into());
        flags
    }

    /// The labelled files that the targets' shifts are chosen on, as flags of `transfer`; a world has
    /// told them already.
    pub(super) fn target_dev(&self, task: Task) -> Vec<Arg> {
        if self.world().is_some() {
            return Vec::new();
        }
        let flag = |target: &String| {
            let names = task.files("dev", target);
            ["--dev".into(), self.first_of(&names).after(&format!("{target}="))]
        };
        self.targets.iter().flat_map(flag).collect()
    }

    /// Sentences to look for translations in: the target's, the source's.
    pub(super) fn test_sentences(&self, target: &str) -> [Arg; 2] {
        let (code, own) = match self.home {
            Home::World { .. } => (target, self.source.as_str()),
            Home::Real(_) => (three_letters(target), three_letters(&self.source)),
        };
        [code, own].map(|side| self.path(&format!("tatoeba/tatoeba.{code}-{own}.{side}")))
    }

    /// Other translated sentences to learn maps from: the target's, the source's.
    pub(super) fn train_sentences(&self, target: &str) -> [Arg; 2] {
        [target, &self.source].map(|language| match self.home {
            Home::World { .. } => self.path(&format!("parallel/train.{language}.txt")),
            Home::Real(_) => self.path(&format!("xnli/test-{language}.tsv")),
        })
    }

    /// A dictionary from a target to the source: `0-5000` to learn from, `5000-6500` to look up.
    pub(super) fn dictionary(&self, target: &str, part: &str) -> Arg {
        self.path(&format!("muse/{target}-{}.{part}.txt", self.source))
    }

    /// The whole dictionary from the source to a target.
    pub(super) fn whole_dictionary(&self, target: &str) -> Arg {
        self.path(&format!("muse/{}-{target}.txt", self.source))
    }

    /// Real parallel text to link words in, the source's side first, as words of `word-align`: a file of
    /// pairs where there is one, else XNLI's premises, which are in all its languages.
    pub(super) fn parallel_text(&self, target: &str) -> Vec<Arg> {
        let pairs = format!("bitext/bitext.{}.tsv", self.pair(target));
        if self.data().is_some_and(|data| data.join(&pairs).is_file()) {
            return vec![self.path(&pairs)];
        }
        let mut words = Vec::new();
        for (flag, language) in [("--source", self.source.as_str()), ("--target", target)] {
            for part in ["dev", "test"] {
                words.extend([flag.into(), self.path(&format!("xnli/{part}-{language}.tsv"))]);
            }
        }
        words
    }

    /// The folder of real data, where the languages are real.
    pub(super) fn data(&self) -> Option<&Path> {
        match &self.home {
            Home::World { .. } => None,
            Home::Real(data) => Some(data),
        }
    }

    /// The world's folder, where the languages are invented.
    pub(super) fn world(&self) -> Option<Arg> {
        match &self.home {
            Home::World { folder, .. } => Some(folder.clone()),
            Home::Real(_) => None,
        }
    }
}

/// The name of a real language's text of another domain.
fn other_text(language: &str) -> String {
    format!("text/{language}.docs.txt.zst")
}

/// Text of another domain is for its user to choose, and to put under that name.
fn check_other_text(data: &Path, language: &str) -> Result<()> {
    let path = data.join(other_text(language));
    if path.is_file() {
        return Ok(());
    }
    let reason = format!(
        "there is no such file; the condition `wiki-cc` wants text of `{language}` there that is of another domain than \
         the rest"
    );
    let remedy = "put such text of your own under that name, a paragraph a line and compressed by zstd (no entry of `isogloss data \
                  list` makes it), or leave the condition out";
    Err(Error::file(path.display().to_string(), reason, remedy))
}

/// The code that Tatoeba's files have for a language.
fn three_letters(language: &str) -> &str {
    match language {
        "ar" => "ara",
        "bg" => "bul",
        "de" => "deu",
        "el" => "ell",
        "en" => "eng",
        "es" => "spa",
        "fr" => "fra",
        "hi" => "hin",
        "ru" => "rus",
        "sw" => "swh",
        "th" => "tha",
        "tr" => "tur",
        "ur" => "urd",
        "vi" => "vie",
        "zh" => "cmn",
        other => other,
    }
}
