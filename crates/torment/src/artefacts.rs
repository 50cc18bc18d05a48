//! What commands read, and what they make of it while nobody touches it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use torment::readers::copy;

use crate::cases::{Bench, text};
use crate::process::{Ended, Running};
use crate::recipes::numbers;
use crate::tree::{Tree, without_clocks};

/// Something that is read, and a command that reads it.
pub(crate) struct Artefact {
    pub(crate) name: &'static str,
    /// What is copied of the materials.
    parts: &'static [&'static str],
    /// The part that is harmed.
    pub(crate) harmed: &'static str,
    command: &'static str,
}

const fn artefact(
    name: &'static str,
    parts: &'static [&'static str],
    harmed: &'static str,
    command: &'static str,
) -> Artefact {
    Artefact { name, parts, harmed, command }
}

/// What carries digests, so that no harm may go unnoticed.
#[rustfmt::skip]
pub(crate) const SEALED: [Artefact; 13] = [
    artefact("run, extended", &["run"], "run",
        "pretrain --resume --steps 12 --out run --device cpu --threads 1 --json"),
    artefact("run, encoded with", &["run"], "run",
        "encode --model run --text qaa={base}/text.txt --out out.npy --device cpu --threads 1 --json"),
    artefact("transfer, resumed", &["transfer"], "transfer",
        "transfer --resume --out transfer --device cpu --threads 1 --json"),
    artefact("vocabulary", &["run"], "run/vocabulary",
        "corpus prepare --vocab run/vocabulary --out out --text qaa={base}/text.txt --json"),
    artefact("corpora", &["run"], "run/corpora",
        "vectors word2vec --model run --dim 4 --epochs 1 --out out.vec --threads 1 --json"),
    artefact("training state of word2vec", &["state.vec.state"], "state.vec.state",
        STATE_RESUMED),
    artefact("vectors and state of mining", &["mining"], "mining",
        "mine --model {base}/run --text qaa={base}/text.txt --text qab={base}/text.qab.txt --work mining --out out.tsv --device cpu --threads 1 --json"),
    artefact("alignment model", &["align.model"], "align.model",
        "word-align -p qaa-qab={base}/bitext.tsv --model align.model --out links.txt --threads 1 --json"),
    artefact("language means", &["run", "means.safetensors"], "means.safetensors",
        "shift sweep --model run --means means.safetensors --parallel qaa={base}/text.txt --parallel qab={base}/text.qab.txt --layers 1 --alpha 1 --device cpu --threads 1 --json"),
    artefact("laboratory", &["lab", "study.toml"], "lab",
        "study run study.toml --lab lab --device cpu --json"),
    artefact("store of results", &["lab"], "lab/results.sqlite",
        "results --lab lab --json"),
    artefact("downloaded data set", &["data"], "data",
        "data get tatoeba --lang fr --mirror {server} --out data --json"),
    artefact("pack of a study", &["pack.tar.zst"], "pack.tar.zst",
        "study unpack pack.tar.zst --lab lab --json"),
];

/// What others write, which has none.
#[rustfmt::skip]
pub(crate) const PLAIN: [Artefact; 15] = [
    artefact("text", &["long.txt"], "long.txt",
        "vectors word2vec --text qaa=long.txt --lines --dim 4 --epochs 1 --out out.vec --threads 1 --json"),
    artefact("compressed text", &["long.txt.gz"], "long.txt.gz",
        "vectors glove --text qaa=long.txt.gz --lines --dim 4 --epochs 1 --out out.vec --threads 1 --json"),
    artefact("text, encoded", &["long.txt"], "long.txt",
        "encode --model {base}/run --text qaa=long.txt --out out.npy --device cpu --threads 1 --json"),
    artefact("text of a vocabulary", &["long.txt"], "long.txt",
        "vocab train --text qaa=long.txt --merges 40 --out out --json"),
    artefact("bitext", &["bitext.tsv"], "bitext.tsv",
        "word-align -p qaa-qab=bitext.tsv --iterations 2 --out links.txt --threads 1 --json"),
    artefact("word vectors", &["a.vec"], "a.vec",
        "align words --source a.vec --target {base}/b.vec --dictionary {base}/dictionary.txt --out out.vec --threads 1 --json"),
    artefact("binary word vectors", &["a.bin"], "a.bin", "vectors convert a.bin --out out.vec --json"),
    artefact("dictionary", &["dictionary.txt"], "dictionary.txt",
        "align words --source {base}/a.vec --target {base}/b.vec --dictionary dictionary.txt --out out.vec --threads 1 --json"),
    artefact("arrays", &["states.npy"], "states.npy", "cka states.npy {base}/states.npy --threads 1 --json"),
    artefact("arrays in an archive", &["states.npz"], "states.npz", "cka states.npz {base}/states.npz --threads 1 --json"),
    artefact("treebank", &["treebank.conllu"], "treebank.conllu",
        "score --task parse --gold treebank.conllu --predicted {base}/treebank.conllu --json"),
    artefact("world, trained on", &["world"], "world",
        "pretrain --world world --steps 2 --set stages=[] --vocabulary.merges 60 --batch.sequences 4 --text.dev 40 \
         --encoder.layers 1 --encoder.dim 16 --encoder.heads 2 --encoder.hidden 32 --out out --device cpu --threads 1 --json"),
    artefact("entities, trained on", &["world"], "world/ner",
        "transfer --task ner --model {base}/run --world world --quick --epochs 1 --limit 12 --lr 1e-3 --out out --device cpu \
         --threads 1 --json"),
    artefact("model of others", &["hf"], "hf",
        "encode --model hf --text qaa={base}/text.txt --out out.npy --device cpu --threads 1 --json"),
    artefact("GGUF", &["llama.gguf"], "llama.gguf", "hub import llama.gguf --out out --device cpu --threads 1 --json"),
];

const STATE_BEGUN: &str = "vectors word2vec --text qaa={base}/text.txt --lines --dim 16 --epochs 30 --threads 1 --out state.vec";
const STATE_RESUMED: &str = "vectors word2vec --text qaa={base}/text.txt --lines --dim 16 --epochs 30 --threads 1 --out state.vec --resume --json";

/// What a command gives when nothing happens to what it reads, and how often it reads each file.
pub(crate) struct ArtefactReference {
    pub(crate) outcome: ArtefactOutcome,
    pub(crate) reads: Vec<(String, u64)>,
}

/// What a command left and printed.
#[derive(PartialEq)]
pub(crate) struct ArtefactOutcome {
    tree: Tree,
    printed: String,
    /// The records of a laboratory, where they can tell.
    pub(crate) numbers: Option<String>,
}

impl ArtefactOutcome {
    /// In what it differs from a reference, where a file was harmed: that may have been rewritten, or still be as it was, or be
    /// the checkpoint before the newest one by now.
    pub(crate) fn difference(&self, reference: &Self, harmed: &str) -> Option<String> {
        let moved = harmed.replace("/state.safetensors", "/state.previous.safetensors");
        let [own, wanted] = [self, reference].map(|one| one.tree.without(harmed).without(&moved));
        let printed = (self.printed != reference.printed).then_some("another result is printed");
        let stored = self.numbers.as_ref().zip(reference.numbers.as_ref());
        let stored = stored.is_some_and(|(found, wanted)| found != wanted);
        let numbers = stored.then_some("other numbers are in the store");
        own.difference(&wanted).or(printed.or(numbers).map(str::to_owned))
    }
}

impl Artefact {
    /// Whether an error names the harmed file, or a folder that it is in; what a command says while it goes on is a warning, and
    /// names the file.
    pub(crate) fn is_named(harmed: &Path, folder: &Path, ended: &Ended) -> bool {
        let names = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ended.stderr.contains(&*name)
        };
        let own = harmed.ancestors().take_while(|path| *path != folder);
        own.take(if ended.success() { 1 } else { 3 }).any(names)
    }
}

impl Bench<'_> {
    /// Leaves the state of an interrupted training among the materials.
    fn interrupted_state(&self) -> Result<(), String> {
        let base = self.place.base;
        let begun = self.place.line(STATE_BEGUN, 1);
        let mut running = self
            .binary
            .start(base, &begun, &std::env::temp_dir())
            .map_err(|error| error.to_string())?;
        let state = base.join("state.vec.state");
        for _ in 0..10_000 {
            if state.exists() || running.has_ended() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        running.kill();
        state.exists().then_some(()).ok_or_else(|| "word2vec saved no state".to_owned())
    }

    /// Runs every command on what is sound.
    pub(crate) fn artefact_references(&self) -> Result<Vec<ArtefactReference>, String> {
        self.interrupted_state()?;
        let reference = |artefact: &Artefact| {
            let folder = self.folder("artefact", 0)?;
            self.lay_out(artefact, &folder)?;
            let (ended, reads) = self.reads(artefact, &folder)?;
            if !ended.success() {
                return Err(format!("{}: {}\n{}", artefact.name, ended.message(), ended.stderr));
            }
            Ok(ArtefactReference { outcome: self.artefact_outcome(&folder, &ended)?, reads })
        };
        SEALED.iter().chain(&PLAIN).map(reference).collect()
    }

    /// Starts the command in a folder where the artefact lies.
    pub(crate) fn start_reading(
        &self,
        artefact: &Artefact,
        folder: &Path,
    ) -> Result<Running, String> {
        let line = self.place.line(artefact.command, 1);
        self.binary.start(folder, &line, &std::env::temp_dir()).map_err(text)
    }

    pub(crate) fn lay_out(&self, artefact: &Artefact, folder: &Path) -> Result<(), String> {
        let mut parts = artefact.parts.iter();
        parts
            .try_for_each(|part| copy(&self.place.base.join(part), &folder.join(part)))
            .map_err(text)
    }

    pub(crate) fn artefact_outcome(
        &self,
        folder: &Path,
        ended: &Ended,
    ) -> Result<ArtefactOutcome, String> {
        let numbers = numbers(&self.binary, folder)?;
        // A laboratory's files carry times; its numbers are compared.
        let _ = fs::remove_dir_all(folder.join("lab"));
        let tree = Tree::of(folder).map_err(text)?;
        let mut printed = serde_json::from_str(&ended.stdout).unwrap_or_default();
        without_clocks(&mut printed);
        Ok(ArtefactOutcome { tree, printed: printed.to_string(), numbers: Some(numbers) })
    }
}
