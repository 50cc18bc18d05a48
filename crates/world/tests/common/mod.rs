//! A small world on disk and strict little readers for its files.

#![allow(dead_code, reason = "each test file uses some of these")]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;
use world::{SplitSizes, TreebankSizes, WorldConfig};

/// A configuration that takes a moment, not a second.
pub(crate) fn small() -> WorldConfig {
    WorldConfig {
        sentences: 2000,
        tatoeba: 100,
        parallel: SplitSizes { train: 300, dev: 50, test: 50 },
        treebank: TreebankSizes { train: 300, dev: 50, test: 50, parallel: 100 },
        ner: SplitSizes { train: 300, dev: 50, test: 50 },
        nli: SplitSizes { train: 300, dev: 30, test: 60 },
        classify: SplitSizes { train: 300, dev: 30, test: 60 },
        ..WorldConfig::default()
    }
    .with_defaults()
}

/// A generated world.
pub(crate) struct Generated {
    folder: TempDir,
    pub(crate) manifest: Value,
}

impl Generated {
    pub(crate) fn new(config: WorldConfig) -> Self {
        Self::try_new(config).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn try_new(config: WorldConfig) -> Result<Self, world::Error> {
        let folder = TempDir::new().unwrap();
        let plan = config.resolve()?;
        world::generate(&plan, &folder.path().join("world"), false, &mut |_| {})?;
        let text = fs::read_to_string(folder.path().join("world/manifest.json")).unwrap();
        Ok(Self { folder, manifest: serde_json::from_str(&text).unwrap() })
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> String {
        let path = self.folder.path().join("world").join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn lines(&self, path: impl AsRef<Path>) -> Vec<String> {
        let text = self.read(path);
        assert!(text.is_empty() || text.ends_with('\n'));
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn codes(&self) -> Vec<String> {
        let list = self.manifest["languages"].as_array().unwrap();
        list.iter().map(|language| language["code"].as_str().unwrap().to_owned()).collect()
    }

    /// Paths of every file of a kind.
    pub(crate) fn paths(&self, kind: &str) -> Vec<String> {
        let files = self.manifest["files"].as_array().unwrap().iter();
        let of_kind = files.filter(|file| file["kind"] == kind);
        of_kind.map(|file| file["path"].as_str().unwrap().to_owned()).collect()
    }

    /// Every form of a language with its meaning; checks that no form has two.
    pub(crate) fn meanings_of(&self, code: &str) -> HashMap<String, usize> {
        let mut meanings = HashMap::new();
        for word in self.manifest["gold"]["lexicon"][code].as_array().unwrap() {
            let id = word["meaning"].as_u64().unwrap() as usize;
            for form in word["forms"].as_array().unwrap() {
                let form = form.as_str().unwrap().to_owned();
                assert!(!form.is_empty() && !form.contains(char::is_whitespace));
                let before = meanings.insert(form.clone(), id);
                assert_eq!(before, None, "{form} has two meanings in {code}");
            }
        }
        meanings
    }

    pub(crate) fn upos(&self, meaning: usize) -> &str {
        self.manifest["gold"]["meanings"][meaning]["upos"].as_str().unwrap()
    }

    /// A meaning and everything more general.
    pub(crate) fn ancestry(&self, meaning: usize) -> Vec<usize> {
        let hypernym = |&id: &usize| {
            self.manifest["gold"]["meanings"][id]["hypernym"].as_u64().map(|id| id as usize)
        };
        std::iter::successors(Some(meaning), hypernym).collect()
    }
}

/// A line of a treebank.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) form: String,
    pub(crate) lemma: String,
    pub(crate) upos: String,
    pub(crate) head: usize,
    pub(crate) relation: String,
}

const UPOS: [&str; 10] =
    ["NOUN", "PROPN", "VERB", "ADJ", "DET", "ADP", "PART", "PRON", "AUX", "PUNCT"];
const RELATIONS: [&str; 14] = [
    "root",
    "nsubj",
    "obj",
    "obl",
    "obl:arg",
    "nmod",
    "amod",
    "det",
    "case",
    "cop",
    "advmod",
    "acl:relcl",
    "flat",
    "punct",
];

/// Reads CoNLL-U and refuses whatever the format forbids: wrong columns, ids out of sequence, not
/// exactly one root, heads out of range, cycles, crossing arcs, a text that is not its words.
pub(crate) fn conllu(text: &str) -> Vec<Vec<Word>> {
    assert!(text.is_empty() || text.ends_with("\n\n"));
    let mut ids = HashSet::new();
    text.split_terminator("\n\n").map(|block| sentence(block, &mut ids)).collect()
}

fn sentence(block: &str, ids: &mut HashSet<String>) -> Vec<Word> {
    let mut lines = block.lines();
    let id = lines.next().unwrap().strip_prefix("# sent_id = ").unwrap();
    assert!(ids.insert(id.to_owned()), "{id} occurs twice");
    let text = lines.next().unwrap().strip_prefix("# text = ").unwrap();
    let mut words = Vec::new();
    let mut rebuilt = String::new();
    for (number, line) in (1..).zip(lines) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [at, form, lemma, upos, xpos, features, head, relation, deps, misc] = columns[..]
        else {
            panic!("not ten columns: {line}");
        };
        assert_eq!(at.parse(), Ok(number));
        assert!(UPOS.contains(&upos) && RELATIONS.contains(&relation), "{line}");
        assert_eq!((xpos, deps), ("_", "_"));
        let list: Vec<&str> = features.split('|').collect();
        assert!(list.is_sorted() && (features == "_" || list.iter().all(|f| f.contains('='))));
        rebuilt.push_str(form);
        match misc {
            "_" => rebuilt.push(' '),
            other => assert_eq!(other, "SpaceAfter=No"),
        }
        words.push(Word {
            form: form.to_owned(),
            lemma: lemma.to_owned(),
            upos: upos.to_owned(),
            head: head.parse().unwrap(),
            relation: relation.to_owned(),
        });
    }
    assert_eq!(rebuilt.trim_end(), text);
    is_tree(&words);
    words
}

fn is_tree(words: &[Word]) {
    let roots = words.iter().filter(|word| word.head == 0).count();
    assert_eq!(roots, 1, "{words:?}");
    for (at, word) in (1..).zip(words) {
        assert_eq!(word.head == 0, word.relation == "root");
        assert!(word.head <= words.len() && word.head != at);
        let mut up = at;
        for _ in 0..=words.len() {
            up = if up == 0 { 0 } else { words[up - 1].head };
        }
        assert_eq!(up, 0, "a cycle: {words:?}");
        let (low, high) = (at.min(word.head), at.max(word.head));
        let inside = |n: usize| (low..=high).contains(&n);
        let crossing = (low + 1..high).any(|n| !inside(words[n - 1].head));
        assert!(word.head == 0 || !crossing, "crossing arcs: {words:?}");
    }
}

/// Reads `word⇥tag` and refuses an inside without its beginning.
pub(crate) fn tagged(text: &str) -> Vec<Vec<(String, String)>> {
    assert!(text.is_empty() || text.ends_with("\n\n"));
    let read = |block: &str| {
        let mut before = String::from("O");
        let mut words = Vec::new();
        for line in block.lines() {
            let (word, tag) = line.split_once('\t').unwrap();
            assert!(["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"].contains(&tag));
            if let Some(kind) = tag.strip_prefix("I-") {
                assert!(before.ends_with(kind) && before != "O", "{block}");
            }
            before = tag.to_owned();
            words.push((word.to_owned(), tag.to_owned()));
        }
        words
    };
    text.split_terminator("\n\n").map(read).collect()
}

/// The words of a line; a full stop at its end is a word of its own.
pub(crate) fn words(line: &str, stop: Option<&str>) -> Vec<String> {
    assert_eq!(line.trim(), line);
    assert!(!line.contains("  "));
    let body = stop.map_or(line, |stop| line.strip_suffix(stop).unwrap());
    body.split(' ').map(str::to_owned).chain(stop.map(str::to_owned)).collect()
}
