//! The manifest: every file with its fingerprint, and the gold annotations of the languages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileRecord, MANIFEST};
use crate::config::WorldPlan;
use crate::error::Error;
use crate::language::{Language, Morphology, Script, WordOrder};
use crate::meaning::{EntityType, Meaning, MeaningId, World};

/// What `manifest.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always `isogloss-world`.
    pub format: String,
    /// The version of this format.
    pub version: u32,
    /// The seed.
    pub seed: u64,
    /// The languages, in order.
    pub languages: Vec<LanguageRecord>,
    /// Every other file of the folder.
    pub files: Vec<FileRecord>,
    /// What an evaluation needs as gold.
    pub gold: GoldAnnotations,
}

/// What was generated: the manifest without its gold annotations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenerateResult {
    /// The folder.
    pub out: PathBuf,
    /// The seed.
    pub seed: u64,
    /// The languages, in order.
    pub languages: Vec<LanguageRecord>,
    /// How many meanings they share.
    pub meanings: usize,
    /// Every file but the manifest.
    pub files: Vec<FileRecord>,
    /// Sentences of plain text, over all languages.
    pub sentences: usize,
    /// How long it took.
    pub seconds: f64,
}

impl GenerateResult {
    /// The result of generating the world of a manifest into a folder.
    pub fn new(out: &Path, manifest: &Manifest, seconds: f64) -> Self {
        let corpora = manifest.files.iter().filter(|file| file.kind == "text");
        Self {
            out: out.to_owned(),
            seed: manifest.seed,
            languages: manifest.languages.clone(),
            meanings: manifest.gold.meanings.len(),
            files: manifest.files.clone(),
            sentences: corpora.map(|file| file.items).sum(),
            seconds,
        }
    }
}

/// The properties of a language as generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LanguageRecord {
    /// Its code.
    pub code: String,
    /// Its script.
    pub script: Script,
    /// Its word order.
    pub order: WordOrder,
    /// Its morphology.
    pub morphology: Morphology,
    /// Content words written as in the first language.
    pub anchors: usize,
    /// Content words in all.
    pub content_words: usize,
}

/// The gold annotations: meanings, and the words for them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoldAnnotations {
    /// Every meaning, by id.
    pub meanings: Vec<MeaningRecord>,
    /// Named entities by tag, each as the ids of its words.
    pub entities: BTreeMap<String, Vec<Vec<MeaningId>>>,
    /// By language: the words for each meaning, by id.
    pub lexicon: BTreeMap<String, Vec<WordRecord>>,
}

/// A meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeaningRecord {
    /// Its id, which is its place in the list.
    pub id: MeaningId,
    /// What is known of it.
    #[serde(flatten)]
    pub meaning: Meaning,
    /// How often it occurs in a million words of the first domain.
    pub per_million: f64,
}

/// A word.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WordRecord {
    /// What it means.
    pub meaning: MeaningId,
    /// Its unmarked form.
    pub lemma: String,
    /// Its forms, the unmarked one first; a form has one meaning only.
    pub forms: Vec<String>,
    /// Whether the first language has the same word.
    pub anchor: bool,
}

/// What tells the manifest of a world from that of anything else.
const FORMAT: &str = "isogloss-world";

impl Manifest {
    /// Reads the manifest of a folder that [`crate::generate`] wrote.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MANIFEST);
        let no_world = |reason: String| {
            let reason = format!("{} holds no world ({reason})", folder.display());
            Error::request(reason, "name a folder that `isogloss world generate` wrote")
        };
        let text = fs::read(&path).map_err(|error| no_world(error.to_string()))?;
        let manifest: Self =
            serde_json::from_slice(&text).map_err(|error| no_world(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(no_world(format!("its format is {}", manifest.format)));
        }
        let outside = manifest.files.iter().find(|file| !files::limits::is_below(&file.path));
        if let Some(file) = outside {
            return Err(no_world(format!("it names `{}`, which is not in the folder", file.path)));
        }
        Ok(manifest)
    }

    /// The paths of the files of a kind that hold a language, from the folder on.
    pub fn files_of(&self, kind: &str, language: &str) -> impl Iterator<Item = PathBuf> {
        let files = self.files.iter().filter(move |file| file.kind == kind);
        let of_language =
            files.filter(move |file| file.languages.iter().any(|code| code == language));
        of_language.map(|file| PathBuf::from(&file.path))
    }

    /// How many domains the corpora come from.
    pub fn domains(&self) -> usize {
        let texts = self.files.iter().filter(|file| file.kind == "text");
        texts.map(|file| &file.domain).collect::<std::collections::BTreeSet<_>>().len()
    }

    pub(super) fn new(
        plan: &WorldPlan,
        world: &World,
        languages: &[Language],
        frequency: &[u64],
        files: &[FileRecord],
    ) -> Self {
        let total = frequency.iter().sum::<u64>().max(1) as f64;
        let meaning = |(id, meaning): (MeaningId, &Meaning)| MeaningRecord {
            id,
            meaning: meaning.clone(),
            per_million: (frequency[id as usize] as f64 / total * 1e7).round() / 10.0,
        };
        let names = |kind: EntityType| world.names(kind).map(<[_]>::to_vec).collect();
        let words = |language: &Language| (language.code().to_owned(), lexicon(language, world));
        Self {
            format: FORMAT.to_owned(),
            version: 1,
            seed: plan.config().seed,
            languages: languages.iter().map(|language| record(language, world)).collect(),
            files: files.to_vec(),
            gold: GoldAnnotations {
                meanings: (0..).zip(world.meanings()).map(meaning).collect(),
                entities: EntityType::ALL
                    .iter()
                    .map(|&kind| (kind.tag().to_owned(), names(kind)))
                    .collect(),
                lexicon: languages.iter().map(words).collect(),
            },
        }
    }
}

fn record(language: &Language, world: &World) -> LanguageRecord {
    let plan = language.plan();
    let content = || (0..).zip(world.meanings()).filter(|(_, meaning)| meaning.upos.is_content());
    LanguageRecord {
        code: plan.code.clone(),
        script: plan.script,
        order: plan.order,
        morphology: plan.morphology,
        anchors: content().filter(|(id, _)| language.is_anchor(*id)).count(),
        content_words: content().count(),
    }
}

fn lexicon(language: &Language, world: &World) -> Vec<WordRecord> {
    let word = |id: MeaningId| WordRecord {
        meaning: id,
        lemma: language.lemma(id).to_owned(),
        forms: language.forms(id).into_iter().map(str::to_owned).collect(),
        anchor: language.is_anchor(id),
    };
    (0..world.meanings().len() as MeaningId).map(word).collect()
}
