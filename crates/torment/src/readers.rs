//! Every reader of the project, behind one signature: a path in, sound or a reason out.
//!
//! A reader has a sample, which the binary makes (a file, or a folder one of whose files is changed). It reads
//! all that a command would before it computes.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use align::{AlignmentModel, GoldLinks, WordLinks};
use arrays::{Stack, npy};
use catalogue::{Catalogue, DownloadOrigin, DownloadRequest};
use encoder::archive::Archive;
use geometry::Map;
use geometry::mining::NearestState;
use lab::store::Store;
use lab::study::cluster::slurm::Submission;
use lab::study::cluster::{StepGraph, StepStanding};
use lab::study::{CPU, Laboratory, Study, StudyPlan};
use models::PretrainedModel;
use tasks::ScoringRules;
use tasks::finetune::{SettingResult, TransferResult};
use tensor::Device;
use terms::Task;
use text::{Dictionary, LineRules, TextSource, TokenizedCorpus, TsvColumns, Vocabulary};
use train::pretrain::{PretrainConfig, PretrainSummary};
use vectors::formats::{self, ReadOptions};
use world::{Manifest, WorldConfig};

use crate::mutation::Packing;

/// What became of a file: read, or refused for a reason.
pub type Verdict = Result<(), Box<dyn Error>>;

/// A reader.
pub struct Reader {
    /// Its name in results and on the command line.
    pub name: &'static str,
    /// The sample: a file, or a folder, among the materials.
    pub sample: &'static str,
    /// The file of the folder that is changed, which may hold `*`; empty where the sample is a file.
    pub part: &'static str,
    /// What that file is packed with.
    pub packing: Packing,
    /// Reads the sample, wherever it lies.
    pub read: fn(&Path) -> Verdict,
}

impl Reader {
    /// Copies the sample into a folder: where it lies there, and the file of it that is changed.
    pub fn copy_sample(&self, samples: &Path, folder: &Path) -> io::Result<(PathBuf, PathBuf)> {
        let sample = samples.join(self.sample);
        let own = folder.join(sample.file_name().unwrap_or_default());
        let _ = fs::remove_dir_all(&own);
        copy(&sample, &own)?;
        let target = self.target(&own);
        let missing = || io::Error::other(format!("{} has no {}", sample.display(), self.part));
        target.map(|target| (own, target)).ok_or_else(missing)
    }

    /// The file that is changed, of a sample that lies here.
    pub fn target(&self, sample: &Path) -> Option<PathBuf> {
        match self.part {
            "" => Some(sample.to_owned()),
            part => {
                let pattern = sample.join(part);
                glob::glob(pattern.to_str()?).ok()?.flatten().next()
            }
        }
    }
}

/// Copies a file or a folder.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to).map(drop)
}

const fn reader(
    name: &'static str,
    sample: &'static str,
    part: &'static str,
    packing: Packing,
    read: fn(&Path) -> Verdict,
) -> Reader {
    Reader { name, sample, part, packing, read }
}

use Packing::{Bzip2, Gzip, Plain, Sealed, TarGz, Zip, Zstd};

/// All of them.
#[rustfmt::skip]
pub const READERS: &[Reader] = &[
    reader("text", "text.txt", "", Plain, lines),
    reader("text-raw", "text.txt", "", Plain, raw_lines),
    reader("text-gz", "text.txt.gz", "", Gzip, lines),
    reader("text-zst", "text.txt.zst", "", Zstd, lines),
    reader("prepared-text", "text.txt", "", Plain, prepared),
    reader("parallel", "bitext.tsv", "", Plain, parallel),
    reader("bitext", "bitext.tsv", "", Plain, bitext),
    reader("dictionary", "dictionary.txt", "", Plain, dictionary),
    reader("npy", "map.npy", "", Plain, array),
    reader("npz", "states.npz", "", Zip, archive_of_arrays),
    reader("map", "map.npy", "", Plain, map),
    reader("stack-npy", "states.npy", "", Plain, stack),
    reader("stack-npz", "states.npz", "", Zip, stack),
    reader("stack-safetensors", "states.safetensors", "", Plain, stack),
    reader("vectors-text", "a.vec", "", Plain, word_vectors),
    reader("vectors-binary", "a.bin", "", Plain, word_vectors),
    reader("vectors-gz", "a.vec.gz", "", Gzip, word_vectors),
    reader("vectors-npy", "vectors", "a.npy", Plain, word_vectors_of_array),
    reader("vectors-names", "vectors", "a.vocab", Plain, word_vectors_of_array),
    reader("mining-state", "mining.state", "", Plain, mining_state),
    reader("alignment-model", "align.model", "", Plain, alignment_model),
    reader("links", "links.txt", "", Plain, links),
    reader("nli", "nli.tsv", "", Plain, nli),
    reader("nli-gz", "nli.tsv.gz", "", Gzip, nli),
    reader("ner", "ner.tsv", "", Plain, ner),
    reader("treebank", "treebank.conllu", "", Plain, treebank),
    reader("treebank-score", "scored", "predicted.conllu", Plain, scored_trees),
    reader("pos", "treebank.conllu", "", Plain, pos),
    reader("classify", "classify.tsv", "", Plain, classify),
    reader("hub-config", "hf", "config.json", Plain, model),
    reader("hub-tokenizer", "hf", "tokenizer.json", Plain, model),
    reader("hub-tokenizer-settings", "hf", "tokenizer_config.json", Plain, model),
    reader("hub-weights", "hf", "model.safetensors", Plain, model),
    reader("hub-vocab-txt", "bert", "vocab.txt", Plain, model),
    reader("hub-bert-config", "bert", "config.json", Plain, model),
    reader("hub-vocab-json", "roberta", "vocab.json", Plain, model),
    reader("hub-merges", "roberta", "merges.txt", Plain, model),
    reader("hub-roberta-tokenizer", "roberta-tokenizer", "tokenizer.json", Plain, model),
    reader("hub-xlm-roberta-tokenizer", "xlm-roberta", "tokenizer.json", Plain, model),
    reader("gguf", "llama.gguf", "", Plain, model),
    reader("sentence-modules", "sentences", "modules.json", Plain, sentence_model),
    reader("sentence-pooling", "sentences", "1_Pooling/config.json", Plain, sentence_model),
    reader("sentence-dense", "sentences", "2_Dense/config.json", Plain, sentence_model),
    reader("sentence-dense-weights", "sentences", "2_Dense/model.safetensors", Plain, sentence_model),
    reader("saved-states", "saved", "states.npy", Plain, saved_states),
    reader("saved-sentences", "saved", "sentences.jsonl", Plain, saved_states),
    reader("torch-new", "new.bin", "", Zip, torch),
    reader("torch-old", "old.bin", "", Plain, torch),
    reader("run-weights", "run", "model.safetensors", Sealed, model),
    reader("run-vocabulary", "run", "vocabulary/vocabulary.json", Plain, model),
    reader("run-tokenizer", "run", "vocabulary/tokenizer.json", Plain, model),
    reader("run-subwords", "run", "vocabulary/subwords.tsv", Plain, model),
    reader("run-config", "run", "config.toml", Plain, run_config),
    reader("run-summary", "run", "summary.json", Plain, run_config),
    reader("run-checkpoint", "run", "state.safetensors", Sealed, checkpoint),
    reader("corpus-manifest", "run", "corpora/*/corpus.json", Plain, corpus),
    reader("corpus-counts", "run", "corpora/*/counts.bin", Plain, corpus),
    reader("corpus-tokens", "run", "corpora/*/train.bin", Plain, corpus),
    reader("means", "means.safetensors", "", Sealed, checkpoint),
    reader("transfer-results", "transfer", "results.json", Plain, transfer_result),
    reader("study", "study.toml", "", Plain, study),
    reader("graph", "graph", "graphs/*.json", Plain, graph),
    reader("submission", "submitted", "slurm/1/submission.json", Plain, submission),
    reader("lease", "leased", "steps/step/lease", Plain, lease),
    reader("store", "lab", "results.sqlite", Plain, store),
    reader("pack", "pack.tar.zst", "", Zstd, pack),
    reader("world-config", "world", "world.toml", Plain, world_config),
    reader("world-manifest", "world", "manifest.json", Plain, world_manifest),
    reader("data-zip", "xnli.zip", "", Zip, data_xnli),
    reader("data-targz", "qaa.tar.gz", "", TarGz, data_wikiann),
    reader("data-wiki-bz2", "wiki.xml.bz2", "", Bzip2, data_wikipedia),
    reader("data-wiki-xml", "wiki.xml", "", Plain, data_wikipedia),
    reader("data-panlex", "panlex.zip", "", Zip, data_panlex),
];

/// The CPU, on one thread.
fn device() -> &'static Device {
    static DEVICE: OnceLock<Device> = OnceLock::new();
    DEVICE.get_or_init(|| Device::cpu(1).expect("one thread"))
}

fn source(path: &Path) -> text::Result<TextSource> {
    TextSource::new("qaa", &[path.display().to_string()])
}

fn lines(path: &Path) -> Verdict {
    let source = source(path)?;
    let mut lines = source.lines(LineRules::default());
    while lines.next_sentence()?.is_some() {}
    Ok(())
}

fn raw_lines(path: &Path) -> Verdict {
    let source = source(path)?;
    let mut lines = source.raw_lines(LineRules::default());
    while lines.next_sentence()?.is_some() {}
    Ok(())
}

/// Split into sentences and words, as commands do.
fn prepared(path: &Path) -> Verdict {
    let source = source(path)?;
    let rules = LineRules { tolerant: true, ..LineRules::default() };
    for language in ["en", "zh", "fr"] {
        let preparation = text::Preparation::for_language(language);
        let preparer = text::Preparer::new(language, preparation, None)?;
        let mut lines = source.lines(rules);
        // What a line costs is what counts, and there are enough of them.
        for _ in 0..20 {
            let Some(line) = lines.next_line()? else { break };
            preparer.sentences(line, |_| ());
        }
    }
    Ok(())
}

fn parallel(path: &Path) -> Verdict {
    let texts = [("qaa-qab".to_owned(), path.display().to_string())];
    models::parallel::read(&texts, &TsvColumns::default())?;
    Ok(())
}

fn bitext(path: &Path) -> Verdict {
    let text = align::ParallelText::Pairs(source(path)?);
    let preparation = align::BitextPreparation {
        lowercase: true,
        languages: ["qaa".into(), "qab".into()],
        tokenizer: None,
    };
    let reader = align::BitextReader::new(preparation, align::PairRules::default())?;
    let mut observer = align::BitextObserver { bytes: &mut |_| (), pair: None };
    reader.read(&text, None, &mut observer)?;
    Ok(())
}

fn dictionary(path: &Path) -> Verdict {
    Dictionary::read(path, "qaa", "qab", LineRules::default())?;
    Ok(())
}

fn array(path: &Path) -> Verdict {
    npy::read::<f32>(path)?.finite(path)?;
    Ok(())
}

fn archive_of_arrays(path: &Path) -> Verdict {
    npy::read_archive::<f64>(path)?;
    Ok(())
}

fn map(path: &Path) -> Verdict {
    Map::load(path)?;
    Ok(())
}

fn stack(path: &Path) -> Verdict {
    let stack = Stack::open(path)?;
    for layer in 0..stack.layers().min(64) {
        stack.whole(layer)?;
    }
    Ok(())
}

fn word_vectors(path: &Path) -> Verdict {
    formats::read(path, ReadOptions::default())?;
    Ok(())
}

fn word_vectors_of_array(folder: &Path) -> Verdict {
    word_vectors(&folder.join("a.npy"))
}

/// The search whose state is the sample: small, and not begun.
pub fn mining_search() -> NearestState {
    NearestState::new("sample", [5, 7], 2)
}

/// A state that is damaged, or of another search, is not taken up.
fn mining_state(path: &Path) -> Verdict {
    let mut damage = None;
    mining_search().resume(path, &mut |note| damage = Some(note.to_owned()))?;
    damage.map_or(Ok(()), |note| Err(note.into()))
}

fn alignment_model(path: &Path) -> Verdict {
    let model = AlignmentModel::load(path)?;
    model.explain_text("a b", "c d");
    Ok(())
}

fn links(path: &Path) -> Verdict {
    models::contexts::read(path, 20)?;
    let text = fs::read_to_string(path)?;
    for line in text.lines() {
        let _ = (WordLinks::parse(line), GoldLinks::parse(line, 0), GoldLinks::parse(line, 1));
    }
    Ok(())
}

fn scored(task: Task, gold: &Path, predicted: &Path) -> Verdict {
    tasks::score(task, gold, predicted, ScoringRules::default())?;
    Ok(())
}

fn nli(path: &Path) -> Verdict {
    scored(Task::Nli, path, path)
}

fn ner(path: &Path) -> Verdict {
    tasks::ner::read_entities(path)?;
    scored(Task::Ner, path, path)
}

fn treebank(path: &Path) -> Verdict {
    scored(Task::Parse, path, path)
}

fn scored_trees(folder: &Path) -> Verdict {
    scored(Task::Parse, &folder.join("gold.conllu"), &folder.join("predicted.conllu"))
}

fn pos(path: &Path) -> Verdict {
    scored(Task::Pos, path, path)
}

fn classify(path: &Path) -> Verdict {
    scored(Task::Classify, path, path)
}

/// A model, and sentences through it.
fn model(folder: &Path) -> Verdict {
    let mut model = PretrainedModel::open(folder, device())?;
    let language = model.encoder.config().languages[0].clone();
    let mut reader = model.reader(&language)?;
    let texts = ["a cat, and Ünïcode 猫", "", "<mask> [SEP] </s>"];
    let ids: Vec<Vec<u32>> = texts.iter().map(|text| reader.sentence(text).ids).collect();
    model.vocabulary.decode(0, &ids[0]);
    let sentences = ids.iter().map(|ids| Ok::<_, text::Error>(ids.as_slice()));
    models::states::for_each(model.parts(), 0, sentences, |_| Ok(()))?;
    Ok(())
}

/// The vectors of some lines.
fn vectors_of(model: &mut PretrainedModel, language: &str, lines: &[String]) -> Verdict {
    let layers: Vec<usize> = (0..=model.encoder.config().layers).collect();
    models::sentences::encode_lines(model, (language, "lines"), lines, &layers, |_, _| {})?;
    Ok(())
}

fn sentence_model(folder: &Path) -> Verdict {
    let mut model = PretrainedModel::open(folder, device())?;
    model.set_sentence_vectors(None, Some("query"))?;
    vectors_of(&mut model, "en", &["a cat".to_owned(), "猫".to_owned()])
}

fn saved_states(folder: &Path) -> Verdict {
    let mut model = PretrainedModel::open_states(folder, device())?;
    let language = model.encoder.config().languages[0].clone();
    let text = fs::read_to_string(folder.join("sentences.jsonl"))?;
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap_or("{}"))?;
    let line = first["text"].as_str().unwrap_or("x").to_owned();
    let words: Vec<&str> = line.split_whitespace().collect();
    model.sentences(&language)?.words(&words)?;
    vectors_of(&mut model, &language, std::slice::from_ref(&line))
}

fn torch(path: &Path) -> Verdict {
    let bytes = fs::read(path)?;
    let tensors = hub::weights::torch::read(io::Cursor::new(&bytes))?;
    for located in tensors.values() {
        // What is said to lie in the file lies in the file.
        let _ = &bytes[located.bytes.clone()];
    }
    Ok(())
}

fn run_config(folder: &Path) -> Verdict {
    let _ = PretrainSummary::read(folder);
    PretrainConfig::read(folder)?;
    Ok(())
}

fn checkpoint(path: &Path) -> Verdict {
    let path = if path.is_dir() { path.join("state.safetensors") } else { path.to_owned() };
    Archive::open(&path)?.metadata::<serde_json::Value>()?;
    Ok(())
}

fn corpus(folder: &Path) -> Verdict {
    let vocabulary = Vocabulary::load(&folder.join("vocabulary"))?;
    for entry in fs::read_dir(folder.join("corpora"))? {
        TokenizedCorpus::open(&entry?.path(), &vocabulary)?.verify()?;
    }
    vectors::IndexedSentences::of_run(folder, 1, None)?;
    Ok(())
}

fn transfer_result(folder: &Path) -> Verdict {
    let text = fs::read_to_string(folder.join("results.json"))?;
    let settings: Vec<SettingResult> = serde_json::from_str(&text)?;
    std::hint::black_box(settings.len());
    let text = fs::read_to_string(folder.join("summary.json"))?;
    std::hint::black_box(serde_json::from_str::<TransferResult>(&text)?.results.len());
    Ok(())
}

fn study(path: &Path) -> Verdict {
    let name = path.display().to_string();
    let study = Study::find(&name)?;
    let mut count = |_: &str, _: [&[PathBuf]; 2], _: u64| Ok(1000);
    StudyPlan::of(&study, terms::Scale::Tiny, CPU, &mut count)?;
    Ok(())
}

fn graph(folder: &Path) -> Verdict {
    for entry in fs::read_dir(folder.join("graphs"))? {
        let graph = StepGraph::read(&entry?.path())?;
        graph.levels(|_| false, |_| true);
    }
    Ok(())
}

fn submission(folder: &Path) -> Verdict {
    let submission = Submission::latest(&Laboratory::open(folder)?)?;
    submission.map_or(Err("there is none".into()), |_| Ok(()))
}

/// One that cannot be read is nobody's.
fn lease(folder: &Path) -> Verdict {
    match StepStanding::of(&Laboratory::open(folder)?, "step") {
        StepStanding::Running(_) => Ok(()),
        _ => Err("there is none".into()),
    }
}

fn store(folder: &Path) -> Verdict {
    let store = Store::existing(&folder.join("results.sqlite"))?;
    let filter = lab::store::RecordFilter::default();
    store.records(&filter)?;
    store.texts(&filter)?;
    Ok(())
}

fn pack(path: &Path) -> Verdict {
    let lab = path.with_extension("lab");
    let _ = fs::remove_dir_all(&lab);
    let unpacked = lab::study::unpack(&Laboratory::open(&lab)?, path, false);
    let _ = fs::remove_dir_all(&lab);
    unpacked?;
    Ok(())
}

fn world_config(folder: &Path) -> Verdict {
    let text = fs::read_to_string(folder.join("world.toml"))?;
    WorldConfig::from_toml(&text, "world.toml")?.resolve()?;
    Ok(())
}

fn world_manifest(folder: &Path) -> Verdict {
    Manifest::read(folder)?;
    Ok(())
}

/// A file as it came, through the conversion of a data set.
fn data(path: &Path, name: &str, language: &str) -> Verdict {
    let catalogue = Catalogue::read();
    let entry = catalogue.entry(name)?;
    let out = path.parent().unwrap_or(Path::new(".")).join("got");
    // What an earlier file left would be found, and nothing read.
    let _ = fs::remove_dir_all(&out);
    let languages = [language.to_owned()];
    let origin = DownloadOrigin::Hand(vec![path.to_owned()]);
    let request = DownloadRequest { entry, languages: &languages, out: &out, origin };
    let got = catalogue::get(&request, &mut |_, _, _| ());
    let _ = fs::remove_dir_all(&out);
    got?;
    Ok(())
}

fn data_xnli(path: &Path) -> Verdict {
    data(path, "xnli", "fr")
}

fn data_wikiann(path: &Path) -> Verdict {
    data(path, "panx", "fr")
}

fn data_wikipedia(path: &Path) -> Verdict {
    data(path, "wikipedia", "sw")
}

fn data_panlex(path: &Path) -> Verdict {
    data(path, "panlex", "fr")
}
