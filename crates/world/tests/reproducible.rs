//! The same seed gives the same bytes; a folder appears whole or not at all.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::small;
use tempfile::TempDir;
use terms::Fault;
use world::{DomainConfig, WorldConfig};

fn fingerprints(folder: &Path, base: &Path, into: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            fingerprints(&path, base, into);
        } else {
            let name = path.strip_prefix(base).unwrap().display().to_string();
            into.insert(name, blake3::hash(&fs::read(&path).unwrap()).to_hex().to_string());
        }
    }
}

fn generate(config: WorldConfig, threads: usize) -> BTreeMap<String, String> {
    let folder = TempDir::new().unwrap();
    let plan = config.resolve().unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| world::generate(&plan, &folder.path().join("w"), false, &mut |_| {})).unwrap();
    let mut found = BTreeMap::new();
    fingerprints(&folder.path().join("w"), &folder.path().join("w"), &mut found);
    found
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_number_of_threads() {
    let mut config = small();
    config.sentences = 30_000;
    config.language[1].distance = Some(0.5);
    let one = generate(config.clone(), 1);
    assert_eq!(one.len(), 52);
    assert_eq!(one, generate(config.clone(), 1));
    assert_eq!(one, generate(config.clone(), 3));
    config.seed = 2;
    let other = generate(config, 3);
    let same: Vec<_> = one.iter().filter(|(name, hash)| other[*name] == **hash).collect();
    assert!(same.is_empty(), "{same:?}");
}

/// Bytes must not change by accident from one version to the next.
#[test]
fn a_known_seed_gives_known_sentences() {
    let (_, languages, trees) = world::excerpt(&small().resolve().unwrap(), 3);
    let said: Vec<String> = trees.iter().map(|tree| languages[0].realize(tree)).collect();
    assert_eq!(
        said,
        ["la zizop sagowi joso", "siji wesital ter so sagowi", "la sagowi jawoza so rateg sagowi"]
    );
}

#[test]
fn a_language_does_not_change_because_another_is_added() {
    let mut config = small();
    config.language = WorldConfig::plain_languages(2);
    let two = generate(config.clone(), 2);
    config.language = WorldConfig::plain_languages(3);
    let three = generate(config, 2);
    for name in ["text/qaa.base.txt", "text/qab.base.txt", "ud/qab_world-ud-train.conllu"] {
        assert_eq!(two[name], three[name], "{name}");
    }
}

#[test]
fn what_stands_in_the_folder_is_safe() {
    let parent = TempDir::new().unwrap();
    let plan = small().resolve().unwrap();
    let go =
        |name: &str, force| world::generate(&plan, &parent.path().join(name), force, &mut |_| {});

    fs::create_dir(parent.path().join("empty")).unwrap();
    go("empty", false).unwrap();
    let refused = go("empty", false).unwrap_err();
    assert_eq!(refused.key(), Some("force"), "{refused}");
    fs::write(parent.path().join("empty/extra.txt"), "x").unwrap();
    let refused = go("empty", true).unwrap_err().to_string();
    assert!(
        refused.contains("was not made with it, or was changed since (extra.txt)"),
        "{refused}"
    );
    fs::rename(parent.path().join("empty/extra.txt"), parent.path().join("extra.txt")).unwrap();
    go("empty", true).unwrap();

    fs::create_dir(parent.path().join("mine")).unwrap();
    fs::write(parent.path().join("mine/thesis.tex"), "x").unwrap();
    let refused = go("mine", true).unwrap_err().to_string();
    assert!(refused.contains("is not empty and holds no world"), "{refused}");
    assert_eq!(fs::read_to_string(parent.path().join("mine/thesis.tex")).unwrap(), "x");
    assert!(go("mine/thesis.tex", true).is_err());
    go("new/deep/down", false).unwrap();
}

#[test]
fn a_failure_leaves_nothing_behind() {
    let parent = TempDir::new().unwrap();
    let mut config = small();
    // More different sentences than there are where almost every word is hidden.
    config.parallel.train = 1_000_000;
    config.domain[0] = DomainConfig {
        hidden: 0.9,
        adjectives: 0.0,
        relatives: 0.0,
        genitives: 0.0,
        adjuncts: 0.0,
        ..DomainConfig::default()
    };
    let plan = config.resolve().unwrap();
    let error = world::generate(&plan, &parent.path().join("w"), false, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("different parallel sentences found"), "{error}");
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
}
