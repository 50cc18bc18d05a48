//! How much text the papers' sizes are, and what of it real languages have.

use std::collections::HashMap;
use std::path::PathBuf;

use super::error::{Error, Result};
use super::materials::Materials;

/// Counts the sentences of a language in some files of raw text, up to so many; or says what is wrong.
pub type Count<'a> = dyn FnMut(&str, &[PathBuf], u64) -> std::result::Result<u64, String> + 'a;

/// The smaller of the sizes. Text that has no more of it has no larger one.
const SMALLER: &str = "sentences-200k";

/// The sentences of each language that a condition takes at a scale, if it says so by its name.
pub fn sentences(preset: &str, scale: &str) -> Option<u64> {
    let thousands: u64 = preset.strip_prefix("sentences-")?.split_once('k')?.0.parse().ok()?;
    // Invented languages, which `tiny` is for, say in a tenth of the sentences what there is to say.
    Some(thousands * if scale == "tiny" { 100 } else { 1000 })
}

/// Sizes of real text, each language counted once.
pub(super) struct Sizes<'a> {
    count: &'a mut Count<'a>,
    known: HashMap<(String, u64), u64>,
}

impl<'a> Sizes<'a> {
    pub(super) fn new(count: &'a mut Count<'a>) -> Self {
        Self { count, known: HashMap::new() }
    }

    /// The sentences of each language that a condition gets of real text: those that it takes or, of
    /// the larger size, as many as the language with the least text has.
    pub(super) fn of(
        &mut self,
        materials: &Materials,
        preset: &str,
        scale: &str,
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
        let smaller = sentences(SMALLER, scale).unwrap_or(0);
        if there >= wanted || there > smaller {
            return Ok(Some(there.min(wanted)));
        }
        let place = data.join(format!("text/{language}.*.txt.zst")).display().to_string();
        let reason = format!("holds {there} sentences, and the smaller size alone is {smaller}");
        let less = if scale == "tiny" { "" } else { ", or take --scale tiny, which takes a tenth" };
        Err(Error::file(place, reason, format!("put more text there{less}")))
    }

    fn there(&mut self, materials: &Materials, language: &str, most: u64) -> Result<u64> {
        let files = materials.text_paths(language);
        if files.is_empty() {
            return Err(materials.no_text(language));
        }
        // All choices of a study are of one folder.
        let key = (language.to_owned(), most);
        if let Some(&there) = self.known.get(&key) {
            return Ok(there);
        }
        let there = (self.count)(language, &files, most).map_err(Error::Text)?;
        self.known.insert(key, there);
        Ok(there)
    }
}
