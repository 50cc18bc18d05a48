//! The labelled files of a run, read once and encoded once for all settings.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use text::RandomStreams;

use super::config::{SetConfig, TransferConfig};
use super::shift::ShiftTarget;
use crate::error::{Error, Result};
use crate::features::TokenSource;
use crate::labelled::{Annotation, Example, LabelSet, LabelledFile, PreparedInputs};
use crate::lines::shortened;
use crate::registry::{ScoreResult, definition};

pub(super) struct LabelledSet {
    /// Its name in results: its language, and more where that is not enough.
    pub name: String,
    /// The number of its language.
    pub language: usize,
    /// Its items.
    pub labelled: Box<dyn LabelledFile>,
    /// Its inputs.
    pub examples: Vec<Example>,
    /// Its sizes, and what was done to long inputs.
    pub metadata: SetMetadata,
    /// Of a test set, items whose text stands in what is trained on or chosen on: WikiAnn has the same sentences in its
    /// parts, and so have two halves of a file.
    pub overlap: SeenItems,
    /// The others, where there are both.
    pub novel: Option<NovelItems>,
}

/// Items of a test set whose text is no test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SeenItems {
    /// It stands in what is trained on.
    pub trained: usize,
    /// It does not, and stands in what the epoch, the setting or a weight is chosen on.
    pub chosen: usize,
}

/// The items of a test set whose text stands neither in what is trained on nor in what is chosen on.
pub(super) struct NovelItems {
    /// Their numbers in the set.
    items: Vec<usize>,
    labelled: Box<dyn LabelledFile>,
}

impl NovelItems {
    /// Their score, given the predictions for all items of the set.
    pub(super) fn score(&self, labels: &LabelSet, predictions: &[Vec<Annotation>]) -> ScoreResult {
        let own: Vec<_> = self.items.iter().map(|&item| predictions[item].clone()).collect();
        self.labelled.score(labels, &own)
    }
}

/// The sizes of a labelled set, and what was done to fit it to the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetMetadata {
    /// Items.
    pub items: usize,
    /// Tokens of all inputs, special tokens included.
    pub tokens: usize,
    /// Items that were too long and became several inputs.
    pub split: usize,
    /// Items that were too long and lost their end.
    pub truncated: usize,
    /// Words, sentences or pairs whose label training never saw.
    pub unseen: usize,
    /// Words that were segmented from characters, where the file has these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segmented_words: Option<usize>,
}

/// All sets of a run, and the labels of the training file.
pub(super) struct LabelledSets {
    /// What is trained on.
    pub train: LabelledSet,
    /// What settings and epochs are chosen on.
    pub dev: LabelledSet,
    /// What is scored.
    pub tests: Vec<LabelledSet>,
    /// The languages that are shifted when they are scored.
    pub targets: Vec<ShiftTarget>,
    /// The labels.
    pub labels: LabelSet,
}

fn read(config: &TransferConfig, set: &SetConfig) -> Result<Box<dyn LabelledFile>> {
    let mut file = definition(config.task).read(&set.file, &set.language, config.rules())?;
    if set.half.is_some() {
        let items = set.items(file.items());
        if items.is_empty() {
            let reason = format!("has {} {}, too few for two halves", file.items(), file.unit());
            return Err(Error::file(&set.file, reason, "give a file with more"));
        }
        file.select(&items);
    }
    Ok(file)
}

/// Reads the training file, and of it what the configuration takes.
fn read_train(config: &TransferConfig) -> Result<Box<dyn LabelledFile>> {
    let mut train = read(config, &config.train)?;
    let mut items: Vec<usize> = (0..train.items()).collect();
    if let Some(size) = config.sample_size {
        if size > items.len() {
            let there = format!("{} has {} {}", train.path().display(), items.len(), train.unit());
            return Err(Error::key("sample_size", format!("{size} asked for, but {there}")));
        }
        RandomStreams::new(config.seeds[0], "sample of the training file")
            .stream(0)
            .shuffle(&mut items);
        items.truncate(size);
        items.sort_unstable();
    }
    items.truncate(config.limit.unwrap_or(usize::MAX));
    train.select(&items);
    Ok(train)
}

impl LabelledSets {
    /// Reads and encodes all files. What is wrong with any of them is reported before training.
    pub(super) fn read(config: &TransferConfig, source: &dyn TokenSource) -> Result<Self> {
        let train = read_train(config)?;
        let trained: HashSet<String> = train.texts().into_iter().collect();
        let mut chosen: HashSet<String> = HashSet::new();
        let seen = train.labels();
        let labels = LabelSet::new(seen.iter().map(|(label, _)| label.as_str()));
        let set = |name: String, of: &SetConfig, file: Box<dyn LabelledFile>| {
            LabelledSet::new(name, of, file, source, &labels, config)
        };
        let dev = read(config, &config.dev)?;
        let mut targets = ShiftTarget::all(config, source)?;
        let tests = config.tests.iter().map(|test| read(config, test));
        let tests: Vec<_> = tests.collect::<Result<_>>()?;
        let train = set("train".to_owned(), &config.train, train)?;
        let of_dev = |dev: &SetConfig, file| set(format!("{} (dev)", dev.language), dev, file);
        let dev = of_dev(&config.dev, dev)?;
        chosen.extend(dev.labelled.texts());
        for of in config.shift.iter().flat_map(|shift| &shift.devs) {
            let target = targets.iter_mut().find(|target| target.name == of.language);
            let target = target.expect("the configuration was checked");
            let dev = of_dev(of, read(config, of)?)?;
            chosen.extend(dev.labelled.texts());
            target.dev = Some(dev);
        }
        let names = names(&config.tests);
        refuse_twice(&names)?;
        let each = names.into_iter().zip(&config.tests).zip(tests);
        let tests = each.map(|((name, of), file)| {
            let mut test = set(name, of, file)?;
            test.find_overlap([&trained, &chosen], || read(config, of))?;
            Ok(test)
        });
        let tests: Vec<LabelledSet> = tests.collect::<Result<_>>()?;
        Ok(Self { train, dev, tests, targets, labels })
    }

    /// Every set, the development sets of targets last.
    pub(super) fn all(&self) -> impl Iterator<Item = &LabelledSet> {
        let devs = self.targets.iter().filter_map(|target| target.dev.as_ref());
        [&self.train, &self.dev].into_iter().chain(&self.tests).chain(devs)
    }

    /// The label that is most frequent in training; the first of several.
    pub(super) fn majority(&self) -> u32 {
        let mut counts = vec![0_usize; self.labels.len()];
        let gold = self.train.examples.iter().flat_map(|example| &example.gold);
        gold.for_each(|annotation| counts[annotation.label as usize] += 1);
        let better = |best: usize, label: usize| {
            if counts[label] > counts[best] { label } else { best }
        };
        (0..counts.len()).reduce(better).unwrap_or(0) as u32
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

const LISTED_LABELS: usize = 10;

/// A label that training does not have, perhaps only because it does not take the whole file.
fn refuse_unseen(
    label: &str,
    labels: &LabelSet,
    config: &TransferConfig,
    path: &Path,
    line: usize,
) -> Error {
    let (seen, remedy) = match (config.limit, config.sample_size) {
        (None, None) => (
            "the training file".to_owned(),
            "correct it, or set `allow_unseen` to count such labels as mistakes",
        ),
        (limit, sample) => (
            match limit {
                Some(limit) => format!("the first {limit} items of the training file (limit)"),
                None => format!("the sample of {} (sample_size)", sample.unwrap_or_default()),
            },
            "take more, or set `allow_unseen` to count such labels as mistakes",
        ),
    };
    let first = labels.names().iter().take(LISTED_LABELS).map(|label| shortened(label));
    let mut known: Vec<String> = first.collect();
    if labels.len() > LISTED_LABELS {
        known.push(format!("and {} more", labels.len() - LISTED_LABELS));
    }
    let (label, known) = (shortened(label), known.join(", "));
    Error::line(path, line, format!("the label `{label}` is not in {seen} ({known})"), remedy)
}

impl LabelledSet {
    fn new(
        name: String,
        of: &SetConfig,
        labelled: Box<dyn LabelledFile>,
        source: &dyn TokenSource,
        labels: &LabelSet,
        config: &TransferConfig,
    ) -> Result<Self> {
        let language = source.language(&of.language)?;
        let mut unseen = 0;
        for (label, line) in labelled.labels() {
            if labels.id(&label) != crate::NONE {
                continue;
            }
            unseen += 1;
            if !config.allow_unseen {
                return Err(refuse_unseen(&label, labels, config, labelled.path(), line));
            }
        }
        let PreparedInputs { examples, split, truncated } =
            labelled.prepare(source, language, labels);
        let tokens = examples.iter().map(|example| example.tokens.len()).sum();
        let segmented_words = labelled.segmented_words();
        let items = labelled.items();
        let metadata = SetMetadata { items, tokens, split, truncated, unseen, segmented_words };
        Ok(Self {
            name,
            language,
            labelled,
            examples,
            metadata,
            overlap: SeenItems::default(),
            novel: None,
        })
    }

    /// Counts the items whose text is trained on or chosen on; `again` reads the file once more, to score the others by
    /// themselves.
    fn find_overlap(
        &mut self,
        [trained, chosen]: [&HashSet<String>; 2],
        again: impl FnOnce() -> Result<Box<dyn LabelledFile>>,
    ) -> Result<()> {
        let texts = self.labelled.texts();
        let mut items = Vec::new();
        for (item, text) in texts.iter().enumerate() {
            match (trained.contains(text), chosen.contains(text)) {
                (true, _) => self.overlap.trained += 1,
                (false, true) => self.overlap.chosen += 1,
                (false, false) => items.push(item),
            }
        }
        if items.len() < texts.len() && !items.is_empty() {
            let mut labelled = again()?;
            labelled.select(&items);
            self.novel = Some(NovelItems { items, labelled });
        }
        Ok(())
    }

    /// The annotations of every item, given those of its inputs.
    pub(super) fn join(
        &self,
        labels: &LabelSet,
        annotations: &[Vec<Annotation>],
    ) -> Vec<Vec<Annotation>> {
        let mut items: Vec<Vec<&[Annotation]>> = vec![Vec::new(); self.labelled.items()];
        for (example, annotations) in self.examples.iter().zip(annotations) {
            items[example.item].push(annotations);
        }
        items.iter().map(|segments| self.labelled.join(labels, segments)).collect()
    }

    pub(super) fn score_of_label(&self, labels: &LabelSet, label: u32) -> f64 {
        let constant = |example: &Example| vec![Annotation::of_label(label); example.gold.len()];
        let constant: Vec<_> = self.examples.iter().map(constant).collect();
        self.labelled.score(labels, &self.join(labels, &constant)).value()
    }

    /// What a person should know of it, if anything.
    pub(super) fn note(&self) -> Option<String> {
        let SetMetadata { items, split, truncated, unseen, segmented_words, .. } = self.metadata;
        let mut notes = Vec::new();
        if let Some(words) = segmented_words {
            notes.push(format!("one character on each line, joined into {words} words"));
        }
        let unit = self.labelled.unit();
        if split > 0 {
            notes.push(format!("{split} of {items} {unit} too long, read in segments"));
        }
        if truncated > 0 {
            notes.push(format!("{truncated} of {items} {unit} {}", self.labelled.truncation()));
        }
        let SeenItems { trained, chosen } = self.overlap;
        for (seen, file) in [(trained, "the training file"), (chosen, "a development file")] {
            if seen > 0 {
                notes.push(format!("{seen} of {items} {unit} stand in {file}"));
            }
        }
        if unseen > 0 {
            notes.push(format!("{unseen} labels that training never saw count as mistakes"));
        }
        let path = self.labelled.path().display();
        (!notes.is_empty()).then(|| format!("{path}: {}", notes.join("; ")))
    }
}
