//! The files of a run, read once and encoded once for all settings.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::config::{SetConfig, TransferConfig};
use super::shifted::Target;
use crate::error::{Error, Result};
use crate::features::Features;
use crate::labelled::{Example, Labelled, Labels, Prepared, Task};
use crate::ner::Entities;
use crate::nli::Pairs;
use crate::parse::Trees;

/// A labelled file, encoded.
pub struct Set {
    /// How it is called in results: its language, and more where that is not enough.
    pub name: String,
    /// The number of its language.
    pub language: usize,
    /// Its items.
    pub labelled: Box<dyn Labelled>,
    /// Its inputs.
    pub examples: Vec<Example>,
    /// What was done to long inputs, and what labels were not known.
    pub facts: SetFacts,
}

/// What is worth telling of a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetFacts {
    /// Items.
    pub items: usize,
    /// Tokens of all inputs, frames included.
    pub tokens: usize,
    /// Items that were too long and became several inputs.
    pub split: usize,
    /// Items that were too long and lost their end.
    pub cut: usize,
    /// Words or pairs whose label training never saw.
    pub unseen: usize,
    /// Words that were made of characters, where the file has these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub realigned: Option<usize>,
}

/// All sets of a run, and the labels that training has.
pub struct Sets {
    /// What is learned from.
    pub train: Set,
    /// What is chosen by.
    pub dev: Set,
    /// What is scored.
    pub tests: Vec<Set>,
    /// The languages that are shifted when they are scored.
    pub targets: Vec<Target>,
    /// The labels.
    pub labels: Labels,
}

/// A file that was read and not yet encoded.
struct Read {
    labelled: Box<dyn Labelled>,
    realigned: Option<usize>,
}

fn read(config: &TransferConfig, set: &SetConfig) -> Result<Read> {
    let mut realigned = None;
    let labelled: Box<dyn Labelled> = match config.task {
        Task::Nli => Box::new(Pairs::read(&set.file)?),
        Task::Ner => {
            let entities = Entities::read(&set.file, &set.language, config.repair)?;
            realigned = entities.realigned();
            Box::new(entities)
        }
        Task::Parse => Box::new(Trees::read(&set.file, config.relations)?),
    };
    Ok(Read { labelled, realigned })
}

impl Sets {
    /// Reads and encodes all files. Whatever is wrong with any of them is said before training.
    pub fn read(config: &TransferConfig, features: &dyn Features) -> Result<Self> {
        let mut train = read(config, &config.train)?;
        if let Some(first) = config.first {
            train.labelled.truncate(first);
        }
        let seen = train.labelled.labels();
        let labels = Labels::new(seen.iter().map(|(label, _)| label.as_str()));
        let set = |name: String, config: &TransferConfig, of: &SetConfig, file: Read| {
            Set::new(name, of, file, features, &labels, config)
        };
        let dev = read(config, &config.dev)?;
        let mut targets = Target::all(config, features)?;
        let tests = config.tests.iter().map(|test| read(config, test));
        let tests: Vec<Read> = tests.collect::<Result<_>>()?;
        let train = set("train".to_owned(), config, &config.train, train)?;
        let of_dev =
            |dev: &SetConfig, file: Read| set(format!("{} (dev)", dev.language), config, dev, file);
        let dev = of_dev(&config.dev, dev)?;
        for of in config.shift.iter().flat_map(|shift| &shift.devs) {
            let found = targets.iter_mut().find(|target| target.name == of.language);
            let target = found.expect("the configuration was checked");
            target.dev = Some(of_dev(of, read(config, of)?)?);
        }
        let names = names(&config.tests);
        refuse_twice(&names)?;
        let each = names.into_iter().zip(&config.tests).zip(tests);
        let tests = each.map(|((name, of), file)| set(name, config, of, file));
        let tests: Vec<Set> = tests.collect::<Result<_>>()?;
        Ok(Self { train, dev, tests, targets, labels })
    }

    /// Every set, the development sets of targets last.
    pub fn all(&self) -> impl Iterator<Item = &Set> {
        let devs = self.targets.iter().filter_map(|target| target.dev.as_ref());
        [&self.train, &self.dev].into_iter().chain(&self.tests).chain(devs)
    }
}

/// A name for each test set: the language, with the file's where a language has several.
fn names(tests: &[SetConfig]) -> Vec<String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    tests.iter().for_each(|test| *counts.entry(&test.language).or_default() += 1);
    let name = |test: &SetConfig| match counts[test.language.as_str()] {
        1 => test.language.clone(),
        _ => {
            let file = test.file.display().to_string();
            let stem = Path::new(text::plain_name(&file)).file_stem().unwrap_or_default();
            format!("{}:{}", test.language, stem.to_string_lossy())
        }
    };
    tests.iter().map(name).collect()
}

/// Results and predictions go by name, so no two sets may share one.
fn refuse_twice(names: &[String]) -> Result<()> {
    let mut before = names.iter().enumerate();
    match before.find(|(at, name)| names[..*at].contains(name)) {
        None => Ok(()),
        Some((_, name)) => Err(Error::request(
            format!("two test files are called {name}"),
            "give them different names, or score them in different runs",
        )),
    }
}

/// A label that training does not have, perhaps only because it does not take the whole file.
fn refuse_unseen(
    label: &str,
    labels: &Labels,
    first: Option<usize>,
    path: &Path,
    line: usize,
) -> Error {
    let (seen, remedy) = match first {
        None => (
            "the training file".to_owned(),
            "mend it, or give --allow-unseen to count such labels as mistakes",
        ),
        Some(first) => (
            format!("what --first {first} takes of the training file"),
            "take more, or give --allow-unseen to count such labels as mistakes",
        ),
    };
    let known = labels.names().join(", ");
    Error::line(path, line, format!("the label `{label}` is not in {seen} ({known})"), remedy)
}

impl Set {
    fn new(
        name: String,
        of: &SetConfig,
        read: Read,
        features: &dyn Features,
        labels: &Labels,
        config: &TransferConfig,
    ) -> Result<Self> {
        let Read { labelled, realigned } = read;
        let language = features.language(&of.language)?;
        let mut unseen = 0;
        for (label, line) in labelled.labels() {
            if labels.id(&label) != crate::NONE {
                continue;
            }
            unseen += 1;
            if !config.allow_unseen {
                return Err(refuse_unseen(&label, labels, config.first, labelled.path(), line));
            }
        }
        let Prepared { examples, split, cut } = labelled.prepare(features, language, labels);
        let tokens = examples.iter().map(|example| example.tokens.len()).sum();
        let facts = SetFacts { items: labelled.items(), tokens, split, cut, unseen, realigned };
        Ok(Self { name, language, labelled, examples, facts })
    }

    /// What a person should know of it, if anything.
    pub fn note(&self) -> Option<String> {
        let SetFacts { items, split, cut, unseen, realigned, .. } = self.facts;
        let mut notes = Vec::new();
        if let Some(words) = realigned {
            notes.push(format!("a character a line, joined to {words} words"));
        }
        let called = self.labelled.called();
        if split > 0 {
            notes.push(format!("{split} of {items} {called} too long, read in parts"));
        }
        if cut > 0 {
            let what = match called {
                "pairs" => "too long, the end of the longer sentence cut",
                _ => "with a word too long for any input, its end cut",
            };
            notes.push(format!("{cut} of {items} {called} {what}"));
        }
        if unseen > 0 {
            notes.push(format!("{unseen} labels that training never saw count as mistakes"));
        }
        let path = self.labelled.path().display();
        (!notes.is_empty()).then(|| format!("{path}: {}", notes.join("; ")))
    }
}
