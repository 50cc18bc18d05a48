//! A world on disk, in the formats of the real data sets.

mod classify;
mod dictionary;
mod documents;
mod folder;
mod manifest;
mod nli;
mod parallel;
mod text;
mod treebank;

use std::path::Path;

use documents::DocumentSource;
use folder::OutputFolder;
pub use folder::{FileRecord, MANIFEST};
pub use manifest::{
    GenerateResult, GoldAnnotations, LanguageRecord, Manifest, MeaningRecord, WordRecord,
};

use crate::config::WorldPlan;
use crate::error::Error;
use crate::grammar::Tree;
use crate::language::Language;
use crate::meaning::World;
use crate::random::NamedStreams;

const STEP: usize = 10_000;
const COUNTED: usize = 20_000;

/// Generates the world of a plan in the folder `out`, which appears whole or not at all.
///
/// A folder that is not empty is refused, unless it holds a world and `force` is given. `progress` is
/// called [`steps`] times, give or take one, with a word on what is being written.
pub fn generate(
    plan: &WorldPlan,
    out: &Path,
    force: bool,
    progress: &mut dyn FnMut(&str),
) -> Result<Manifest, Error> {
    let folder = OutputFolder::open(out, force)?;
    let world = World::new(plan);
    let languages = Language::invent(plan, &world);
    let progress = ProgressCounter { report: progress, sentences: 0 };
    let mut writer = WorldWriter { plan, world: &world, languages: &languages, folder, progress };
    let record = FileRecord::of("config", "world.toml".into(), &[], None);
    writer.folder.put(record, &plan.config().to_toml(), 0)?;
    let held_out = writer.parallel()?;
    for (language, held_out) in languages.iter().zip(&held_out) {
        writer.text(language, held_out)?;
        writer.treebanks(language)?;
        writer.entities(language)?;
    }
    writer.inference()?;
    writer.classification()?;
    let frequency = writer.frequencies()?;
    writer.dictionaries(&frequency)?;
    writer.finish(&frequency)
}

/// How many steps of progress a plan takes.
pub fn steps(plan: &WorldPlan) -> u64 {
    let config = plan.config();
    let trees = config.treebank;
    let each = [config.ner, config.parallel, config.nli, config.classify]
        .iter()
        .flat_map(|splits| splits.named())
        .map(|(_, size)| size)
        .sum::<usize>()
        + trees.train
        + trees.dev
        + trees.test
        + trees.parallel
        + config.tatoeba;
    let text: usize = plan.languages().iter().map(|language| language.sentences).sum();
    ((text + each * plan.languages().len()) / STEP) as u64
}

/// A few sentences as trees, with the languages that realise them.
pub fn excerpt(plan: &WorldPlan, sentences: usize) -> (World, Vec<Language>, Vec<Tree>) {
    let world = World::new(plan);
    let languages = Language::invent(plan, &world);
    let streams = NamedStreams::new(plan.config().seed, "excerpt");
    let domain = &world.domains[0];
    let documents = DocumentSource { held_out: None, world: &world, domain, streams };
    let trees = (0..).flat_map(|index| documents.document(index)).take(sentences).collect();
    (world, languages, trees)
}

struct WorldWriter<'a> {
    plan: &'a WorldPlan,
    world: &'a World,
    languages: &'a [Language],
    folder: OutputFolder,
    progress: ProgressCounter<'a>,
}

impl<'a> WorldWriter<'a> {
    fn documents(&self, domain: usize, purpose: &str) -> DocumentSource<'a> {
        let streams = NamedStreams::new(self.plan.config().seed, purpose);
        let domain = &self.world.domains[domain];
        DocumentSource { held_out: None, world: self.world, domain, streams }
    }

    /// Counts each meaning in a sample of the first domain.
    fn frequencies(&self) -> Result<Vec<u64>, Error> {
        let mut counts = vec![0; self.world.meanings().len()];
        self.documents(0, "frequency").each(COUNTED, <[Tree]>::to_vec, |trees, _| {
            for node in trees.iter().flat_map(Tree::nodes) {
                counts[node.meaning as usize] += 1;
            }
            Ok(())
        })?;
        Ok(counts)
    }

    fn finish(mut self, frequency: &[u64]) -> Result<Manifest, Error> {
        let files = self.folder.records();
        let manifest = Manifest::new(self.plan, self.world, self.languages, frequency, files);
        let text = serde_json::to_string(&manifest).expect("a manifest is always valid JSON");
        let record = FileRecord::of("manifest", MANIFEST.into(), &[], None);
        self.folder.put(record, &(text + "\n"), 0)?;
        self.folder.commit()?;
        Ok(manifest)
    }
}

struct ProgressCounter<'a> {
    report: &'a mut dyn FnMut(&str),
    sentences: usize,
}

impl ProgressCounter<'_> {
    fn add(&mut self, sentences: usize, note: &str) {
        let before = self.sentences / STEP;
        self.sentences += sentences;
        (before..self.sentences / STEP).for_each(|_| (self.report)(note));
    }
}
