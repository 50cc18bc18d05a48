//! The entries of the catalogue: data sets, their addresses, and the files made of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::convert::Conversion;
use crate::error::{Error, Result};

/// The data sets that are known.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Catalogue {
    /// In the order in which they are shown.
    pub entries: Vec<DatasetEntry>,
}

/// A data set.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    /// What to ask for.
    pub name: String,
    /// What it is.
    pub what: String,
    /// What needs it.
    pub used_by: String,
    /// Where to read about it.
    pub home: String,
    /// On what terms it may be used.
    pub licence: Licence,
    /// The languages there are, each with the words that its addresses need.
    pub languages: BTreeMap<String, BTreeMap<String, String>>,
    /// Whether other languages than these may be asked for.
    #[serde(default)]
    pub others: bool,
    /// How to have its file, where it has no lasting address and must be downloaded by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_hand: Option<String>,
    /// Whether languages must be named: all of them would be too much.
    #[serde(default)]
    pub choose: bool,
    /// Where its files lie.
    pub sources: Vec<DownloadSource>,
}

/// Terms of use.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Licence {
    /// The licence, or what is known of it.
    pub name: String,
    /// What it asks, where that goes beyond naming the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
}

/// A file on a server. `{lang}` and a language's own variables are substituted in every address and
/// name.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DownloadSource {
    /// Its address.
    pub url: String,
    /// Its size, roughly, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<String>,
    /// Its SHA-256, where that has been published and seen by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The files made of it.
    pub files: Vec<SourceFile>,
}

/// A file here, and what it is made from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// The member of the archive; with `!` between for an archive in an archive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// Its name here.
    pub to: String,
    /// How it is converted.
    #[serde(default)]
    pub convert: Conversion,
}

impl Catalogue {
    /// The catalogue that comes with the binary.
    pub fn read() -> Self {
        toml::from_str(include_str!("catalogue.toml")).expect("the tests read it")
    }

    /// The entry of a name.
    pub fn entry(&self, name: &str) -> Result<&DatasetEntry> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
            let reason = format!("the catalogue has no `{name}`");
            Error::request(reason, format!("ask for one of {}", names.join(", ")))
        })
    }
}

impl DatasetEntry {
    /// The languages to bring: those asked for, checked, or all.
    pub fn choose(&self, asked: &[String]) -> Result<Vec<String>> {
        let known = || self.languages.keys().cloned().collect::<Vec<_>>();
        if asked.is_empty() {
            if self.choose {
                let reason = format!("{} is too large to download in every language", self.name);
                let remedy = format!("name some of {}", known().join(","));
                return Err(Error::setting("lang", reason, remedy));
            }
            return Ok(known());
        }
        for language in asked {
            let plain = |c: char| c.is_ascii_lowercase() || c == '-' || c == '_';
            let possible = self.others && !language.is_empty() && language.chars().all(plain);
            if !self.languages.contains_key(language) && !possible {
                let reason = format!("{} has no `{language}`", self.name);
                let remedy = format!("its languages are {}", known().join(", "));
                return Err(Error::request(reason, remedy));
            }
        }
        let mut chosen = asked.to_vec();
        chosen.sort();
        chosen.dedup();
        Ok(chosen)
    }

    /// An address or a name with a language's words put in.
    pub(crate) fn fill(&self, template: &str, language: &str) -> String {
        let mut text = template.replace("{lang}", language);
        for (word, value) in self.languages.get(language).into_iter().flatten() {
            text = text.replace(&format!("{{{word}}}"), value);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_can_be_filled_in() {
        let catalogue = Catalogue::read();
        let mut names = Vec::new();
        for entry in &catalogue.entries {
            names.push(&entry.name);
            assert!(!entry.languages.is_empty() && !entry.sources.is_empty(), "{}", entry.name);
            for language in entry.languages.keys() {
                for source in &entry.sources {
                    let url = entry.fill(&source.url, language);
                    assert!(url.starts_with("https://") && !url.contains(['{', ' ']), "{url}");
                    assert!(source.sha256.as_ref().is_none_or(|digest| digest.len() == 64));
                    for file in &source.files {
                        let member = entry.fill(file.member.as_deref().unwrap_or(""), language);
                        let to = entry.fill(&file.to, language);
                        assert!(!member.contains('{') && !to.contains('{'), "{member} {to}");
                        assert!(!to.starts_with('/') && !to.contains(".."), "{to}");
                    }
                }
            }
        }
        names.sort();
        names.dedup();
        assert_eq!(names.len(), catalogue.entries.len());
    }

    #[test]
    fn languages_are_checked() {
        let catalogue = Catalogue::read();
        let says = |name: &str, asked: &[&str], reason: &str| {
            let asked: Vec<String> = asked.iter().map(|&lang| lang.to_owned()).collect();
            let error = catalogue.entry(name).unwrap().choose(&asked).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        };
        says("xnli", &["fr", "xx"], "xnli has no `xx`; its languages are ar, bg");
        says("wikipedia", &[], "name some of");
        says("wikipedia", &["../x"], "has no `../x`");
        let wikipedia = catalogue.entry("wikipedia").unwrap();
        assert_eq!(
            wikipedia.choose(&["sco".into(), "fr".into(), "fr".into()]).unwrap(),
            ["fr", "sco"]
        );
        assert_eq!(catalogue.entry("xnli").unwrap().choose(&[]).unwrap().len(), 15);
        let error = catalogue.entry("xnly").unwrap_err().to_string();
        assert!(error.contains("no `xnly`") && error.contains("xnli, "), "{error}");
    }
}
