//! The corpus sizes of Liu et al. 2020, and how much of them real languages have.

use std::collections::HashMap;
use std::path::PathBuf;

use terms::{Preset, Scale};

use super::error::{Error, Result};
use super::file::System;
use super::materials::LanguageData;
use super::plan::OTHER_DOMAIN;

/// Counts the sentences of a language in some files of raw text, without those of other files, which are tests, up to a maximum.
pub type SentenceCounter<'a> =
    dyn FnMut(&str, [&[PathBuf]; 2], u64) -> std::result::Result<u64, String> + 'a;

/// The smaller size; text of no more than that has no larger one.
const SMALLER: Preset = Preset::Sentences200k;

/// The sentences of each language that a preset takes at a scale, where it limits them.
pub(super) fn sentences(preset: &str, scale: Scale) -> Option<u64> {
    preset.parse::<Preset>().ok()?.sentences(scale)
}

/// Sizes of real text, each language counted once.
pub(super) struct CorpusSizes<'a> {
    count: &'a mut SentenceCounter<'a>,
    known: HashMap<(String, u64), u64>,
}

impl<'a> CorpusSizes<'a> {
    pub(super) fn new(count: &'a mut SentenceCounter<'a>) -> Self {
        Self { count, known: HashMap::new() }
    }

    /// The sentences of each language that a preset gets of real text: those that it takes or, for
    /// the larger size, as many as the language with the least text has.
    pub(super) fn of(
        &mut self,
        materials: &LanguageData,
        preset: &str,
        scale: Scale,
    ) -> Result<Option<u64>> {
        let (Some(data), Some(wanted)) = (materials.data(), sentences(preset, scale)) else {
            return Ok(None);
        };
        let mut least: Option<(u64, &str)> = None;
        for language in materials.languages() {
            let there = self.there(materials, language, wanted)?;
            least = least.filter(|least| least.0 <= there).or(Some((there, language)));
        }
        let Some((there, language)) = least else { return Ok(None) };
        let smaller = SMALLER.sentences(scale).unwrap_or(0);
        if there >= wanted || there > smaller {
            return Ok(Some(there.min(wanted)));
        }
        let place = data.join(format!("text/{language}.*.txt.zst")).display().to_string();
        let reason = format!("holds {there} sentences, and the smaller size alone is {smaller}");
        let less =
            if scale == Scale::Tiny { "" } else { ", or take scale tiny, which needs a tenth" };
        Err(Error::data(place, reason, format!("put more text there{less}")))
    }

    /// For each real target language of a system whose text is to be as much in one domain as in the other: the sentences
    /// that both have.
    pub(super) fn equal(
        &mut self,
        materials: &LanguageData,
        system: &System,
    ) -> Result<Vec<(String, u64)>> {
        if materials.data().is_none() || !(system.equal_text || system.preset == OTHER_DOMAIN) {
            return Ok(Vec::new());
        }
        let mut sizes = Vec::new();
        for language in &materials.targets {
            let other = materials.other_text_path(language)?;
            let tests = materials.test_paths(language);
            let key = (format!("{} {tests:?}", other.display()), u64::MAX);
            let of_other = match self.known.get(&key) {
                Some(&there) => there,
                None => {
                    (self.count)(language, [&[other], &tests], u64::MAX).map_err(Error::Text)?
                }
            };
            self.known.insert(key, of_other);
            sizes.push((language.clone(), self.there(materials, language, of_other)?));
        }
        Ok(sizes)
    }

    /// The sentences that every language has, up to a maximum.
    pub(super) fn least(&mut self, materials: &LanguageData, most: u64) -> Result<u64> {
        let mut least = most;
        for language in materials.languages() {
            least = least.min(self.there(materials, language, most)?);
        }
        Ok(least)
    }

    fn there(&mut self, materials: &LanguageData, language: &str, most: u64) -> Result<u64> {
        let files = materials.text_paths(language);
        if files.is_empty() {
            return Err(materials.no_text(language));
        }
        let tests = materials.test_paths(language);
        // All pairs of a study are of one folder, and each has its own tests.
        let key = (format!("{language} {tests:?}"), most);
        if let Some(&there) = self.known.get(&key) {
            return Ok(there);
        }
        let there = (self.count)(language, [&files, &tests], most).map_err(Error::Text)?;
        self.known.insert(key, there);
        Ok(there)
    }
}
