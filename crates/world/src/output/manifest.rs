//! The manifest: every file with its fingerprint, and the truth about the languages.

use std::collections::BTreeMap;

use serde::Serialize;

use super::FileRecord;
use crate::config::Plan;
use crate::language::{Language, Morphology, Order, Script};
use crate::meaning::{EntityType, Meaning, MeaningId, World};

/// What `manifest.json` holds.
#[derive(Clone, Debug, Serialize)]
pub struct Manifest {
    /// Always `isogloss-world`.
    pub format: &'static str,
    /// The version of this format.
    pub version: u32,
    /// The seed.
    pub seed: u64,
    /// The languages, the first first.
    pub languages: Vec<LanguageRecord>,
    /// Every other file of the folder.
    pub files: Vec<FileRecord>,
    /// What an evaluation needs as gold.
    pub truth: Truth,
}

/// What a language came to be.
#[derive(Clone, Debug, Serialize)]
pub struct LanguageRecord {
    /// Its code.
    pub code: String,
    /// Its script.
    pub script: Script,
    /// Its word order.
    pub order: Order,
    /// Its morphology.
    pub morphology: Morphology,
    /// Content words written as in the first language.
    pub anchors: usize,
    /// Content words in all.
    pub content_words: usize,
}

/// The world behind the words.
#[derive(Clone, Debug, Serialize)]
pub struct Truth {
    /// Every meaning, by id.
    pub meanings: Vec<MeaningRecord>,
    /// Named entities by tag, each as the ids of its words.
    pub entities: BTreeMap<&'static str, Vec<Vec<MeaningId>>>,
    /// By language: the words for each meaning, by id.
    pub lexicon: BTreeMap<String, Vec<WordRecord>>,
}

/// A meaning.
#[derive(Clone, Debug, Serialize)]
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
#[derive(Clone, Debug, Serialize)]
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

impl Manifest {
    pub(super) fn new(
        plan: &Plan,
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
            format: "isogloss-world",
            version: 1,
            seed: plan.config().seed,
            languages: languages.iter().map(|language| record(language, world)).collect(),
            files: files.to_vec(),
            truth: Truth {
                meanings: (0..).zip(world.meanings()).map(meaning).collect(),
                entities: EntityType::ALL.iter().map(|&kind| (kind.tag(), names(kind))).collect(),
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
