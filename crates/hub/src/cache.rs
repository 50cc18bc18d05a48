//! Models by their names at the Hugging Face hub, from the cache that all its clients share.
//!
//! `isogloss hub download` and the hub's other clients write it; here it is only read, and nothing is downloaded.

use std::env;
use std::path::{Path, PathBuf};

use crate::config::is_checkpoint;

/// Short names of models that the papers use.
const SHORT_NAMES: [(&str, &str); 4] = [
    ("mbert", "google-bert/bert-base-multilingual-cased"),
    ("xlm-r", "FacebookAI/xlm-roberta-base"),
    ("xlm-r-large", "FacebookAI/xlm-roberta-large"),
    ("xlm-100", "FacebookAI/xlm-mlm-100-1280"),
];

/// The name at the hub that a short name such as `mbert` stands for; other names stand for themselves.
pub fn hub_name(name: &str) -> &str {
    SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name, |(_, full)| full)
}

/// The folder of a model in the cache: of `OWNER/MODEL`, or of a short name such as `mbert`. None where it was not downloaded.
pub fn cached(name: &str) -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HF_HOME").or_else(|| Some(env::home_dir()?.join(".cache/huggingface")));
    cached_in(&set("HF_HUB_CACHE").or_else(|| Some(home()?.join("hub")))?, name)
}

fn cached_in(cache: &Path, name: &str) -> Option<PathBuf> {
    let full = hub_name(name);
    // A name is no path: it must not lead out of the cache.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let part = |part: &str| !part.is_empty() && !part.starts_with('.') && part.chars().all(plain);
    if full.split('/').count() > 2 || !full.split('/').all(part) {
        return None;
    }
    // Models of the first years are also known without their owner.
    let last = full.rsplit('/').next()?;
    let alone = (full != name).then_some(last);
    [full].into_iter().chain(alone).find_map(|name| {
        let repository = cache.join(format!("models--{}", name.replace('/', "--")));
        let commit = std::fs::read_to_string(repository.join("refs/main")).ok()?;
        let commit = commit.trim();
        let folder = part(commit).then(|| repository.join("snapshots").join(commit))?;
        is_checkpoint(&folder).then_some(folder)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn models_of_the_cache_are_found_by_name() {
        let place = tempfile::tempdir().unwrap();
        let cache = place.path();
        let add = |repository: &str, commit: &str| {
            let folder = cache.join(repository).join("snapshots").join(commit);
            fs::create_dir_all(&folder).unwrap();
            fs::create_dir_all(cache.join(repository).join("refs")).unwrap();
            fs::write(cache.join(repository).join("refs/main"), commit).unwrap();
            fs::write(folder.join("config.json"), r#"{"model_type": "bert"}"#).unwrap();
            folder
        };
        assert_eq!(cached_in(cache, "mbert"), None);
        let old = add("models--bert-base-multilingual-cased", "1a");
        assert_eq!(cached_in(cache, "mbert"), Some(old.clone()));
        assert_eq!(cached_in(cache, "bert-base-multilingual-cased"), Some(old));
        let new = add("models--google-bert--bert-base-multilingual-cased", "2b");
        assert_eq!(cached_in(cache, "mbert"), Some(new.clone()));
        assert_eq!(cached_in(cache, "google-bert/bert-base-multilingual-cased"), Some(new));
        for nothing in ["", "xlm-r", "../x", "a/b/c", "/", "google-bert/"] {
            assert_eq!(cached_in(cache, nothing), None, "{nothing}");
        }
        fs::write(cache.join("models--bert-base-multilingual-cased/refs/main"), "../..").unwrap();
        assert_eq!(cached_in(cache, "bert-base-multilingual-cased"), None);
    }
}
