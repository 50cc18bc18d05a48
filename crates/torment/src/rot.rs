//! One flipped bit in something that a command wrote: the next command that reads it either gives the same result or
//! says which file is damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rand::RngExt;
use torment::readers::copy;

use crate::board::Kind;
use crate::cases::{Bench, CaseResult};
use crate::process::Ended;
use crate::recipes::numbers;
use crate::tree::{Tree, without_clocks};

/// Something that was written, and a command that reads it.
struct Artefact {
    name: &'static str,
    /// What is copied of the materials.
    parts: &'static [&'static str],
    /// The part whose bits rot.
    rots: &'static str,
    command: &'static str,
}

const ARTEFACTS: [Artefact; 12] = [
    Artefact {
        name: "run, extended",
        parts: &["run"],
        rots: "run",
        command: "pretrain --resume --steps 12 --out run --device cpu --threads 1 --json",
    },
    Artefact {
        name: "run, encoded with",
        parts: &["run"],
        rots: "run",
        command: "encode --model run --text qaa={base}/text.txt --out out.npy --device cpu --threads 1 --json",
    },
    Artefact {
        name: "transfer, resumed",
        parts: &["transfer"],
        rots: "transfer",
        command: "transfer --resume --out transfer --device cpu --threads 1 --json",
    },
    Artefact {
        name: "vocabulary",
        parts: &["run"],
        rots: "run/vocabulary",
        command: "corpus prepare --vocab run/vocabulary --out out --text qaa={base}/text.txt --json",
    },
    Artefact {
        name: "corpora",
        parts: &["run"],
        rots: "run/corpora",
        command: "vectors word2vec --model run --dim 4 --epochs 1 --out out.vec --threads 1 --json",
    },
    Artefact {
        name: "training state of word2vec",
        parts: &["state.vec.state"],
        rots: "state.vec.state",
        command: STATE_RESUMED,
    },
    Artefact {
        name: "vectors and state of mining",
        parts: &["mining"],
        rots: "mining",
        command: "mine --model {base}/run --text qaa={base}/text.txt --text qab={base}/text.qab.txt --work mining --out out.tsv \
            --device cpu --threads 1 --json",
    },
    Artefact {
        name: "alignment model",
        parts: &["align.model"],
        rots: "align.model",
        command: "word-align -p qaa-qab={base}/bitext.tsv --model align.model --out links.txt --threads 1 --json",
    },
    Artefact {
        name: "language means",
        parts: &["run", "means.safetensors"],
        rots: "means.safetensors",
        command: "shift sweep --model run --means means.safetensors --parallel qaa={base}/text.txt --parallel qab={base}/text.qab.txt --layers 1 \
            --alpha 1 --device cpu --threads 1 --json",
    },
    Artefact {
        name: "laboratory",
        parts: &["lab", "study.toml"],
        rots: "lab",
        command: "study run study.toml --lab lab --device cpu --json",
    },
    Artefact {
        name: "store of results",
        parts: &["lab"],
        rots: "lab/results.sqlite",
        command: "results --lab lab --json",
    },
    Artefact {
        name: "downloaded data set",
        parts: &["data"],
        rots: "data",
        command: "data get tatoeba --lang fr --mirror {server} --out data --json",
    },
];

const STATE_BEGUN: &str = "vectors word2vec --text qaa={base}/text.txt --lines --dim 16 --epochs 30 --threads 1 --out state.vec";
const STATE_RESUMED: &str = "vectors word2vec --text qaa={base}/text.txt --lines --dim 16 --epochs 30 --threads 1 --out state.vec --resume --json";

/// The artefacts with what their commands give when nothing has rotted.
pub(crate) struct RotReferences(Vec<Option<RotOutcome>>);

#[derive(PartialEq)]
struct RotOutcome {
    tree: Tree,
    printed: String,
    numbers: String,
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
    pub(crate) fn rot_references(&self) -> Result<RotReferences, String> {
        self.interrupted_state()?;
        let mut all = Vec::new();
        for (number, artefact) in ARTEFACTS.iter().enumerate() {
            let folder = self.scratch.join(format!("rot-reference-{number}"));
            self.lay_out(artefact, &folder)?;
            let ended = self.binary.run(&folder, &self.place.line(artefact.command, 1))?;
            if !ended.success() {
                return Err(format!("{}: {}\n{}", artefact.name, ended.message(), ended.stderr));
            }
            all.push(Some(self.rot_outcome(&folder, &ended, None)?));
            let _ = fs::remove_dir_all(&folder);
        }
        Ok(RotReferences(all))
    }

    fn lay_out(&self, artefact: &Artefact, folder: &Path) -> Result<(), String> {
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        for part in artefact.parts {
            copy(&self.place.base.join(part), &folder.join(part))
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// What a command left and printed; without the file that rotted.
    fn rot_outcome(
        &self,
        folder: &Path,
        ended: &Ended,
        rotten: Option<&Path>,
    ) -> Result<RotOutcome, String> {
        let numbers = numbers(&self.binary, folder)?;
        if let Some(rotten) = rotten {
            let _ = fs::remove_file(rotten);
        }
        // A laboratory's files carry times; its numbers are compared.
        let _ = fs::remove_dir_all(folder.join("lab"));
        let tree = Tree::of(folder).map_err(|error| error.to_string())?;
        let mut printed = serde_json::from_str(&ended.stdout).unwrap_or_default();
        without_clocks(&mut printed);
        Ok(RotOutcome { tree, printed: printed.to_string(), numbers })
    }

    /// One bit of one file.
    pub(crate) fn rot(&self, index: u64, references: &RotReferences) -> CaseResult {
        let number = index as usize % ARTEFACTS.len();
        let artefact = &ARTEFACTS[number];
        let fault = self.rot_case(index, number, artefact, references);
        CaseResult { name: artefact.name, times: 1, fault: fault.err(), ..CaseResult::default() }
    }

    fn rot_case(
        &self,
        index: u64,
        number: usize,
        artefact: &Artefact,
        references: &RotReferences,
    ) -> Result<(), String> {
        let mut rng = self.random(Kind::Rot.number(), index);
        let folder = self.scratch.join(format!("rot-{index}"));
        self.lay_out(artefact, &folder)?;
        let files = files(&folder.join(artefact.rots));
        let rotten = &files[rng.random_range(0..files.len())];
        let mut bytes = fs::read(rotten).map_err(|error| error.to_string())?;
        let within = if rng.random_bool(0.5) { bytes.len().min(2048) } else { bytes.len() };
        let (at, bit) = (rng.random_range(0..within), rng.random_range(0..8));
        bytes[at] ^= 1 << bit;
        fs::write(rotten, &bytes).map_err(|error| error.to_string())?;
        let shown = rotten.strip_prefix(&folder).unwrap_or(rotten).display().to_string();
        let at = format!("{shown}, bit {bit} of byte {at}");

        let ended = self.binary.run(&folder, &self.place.line(artefact.command, 1))?;
        if let Some(crash) = ended.crash() {
            return Err(format!("{at}: {crash}"));
        }
        let names = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            ended.stderr.contains(&*name)
        };
        // An error may name the folder of the artefact; what a quiet command says while it goes on is a warning, and
        // names the file.
        let own = rotten.ancestors().take_while(|path| *path != folder);
        let named = if ended.success() { names(rotten) } else { own.take(3).any(names) };
        if named {
            return fs::remove_dir_all(&folder).map_err(|error| error.to_string());
        }
        if !ended.success() {
            return Err(format!("{at}: no file is named: {}", ended.message()));
        }
        // The reference without the same file: it may have been rewritten, or still be rotten.
        let outcome = self.rot_outcome(&folder, &ended, Some(rotten))?;
        let reference = references.0[number].as_ref().expect("made at the start");
        let wanted = reference.tree.without(&shown);
        let difference = outcome.tree.difference(&wanted);
        let silent = difference
            .or((outcome.printed != reference.printed).then(|| "another result is printed".into()))
            .or((outcome.numbers != reference.numbers)
                .then(|| "other numbers are in the store".into()));
        let _ = fs::remove_dir_all(&folder);
        silent.map_or(Ok(()), |what| Err(format!("{at}: silent change: {what}")))
    }
}

/// The files that hold something, locks and clocks aside.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.flat_map(|entry| files(&entry.path())).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let empty = path.metadata().map_or(0, |metadata| metadata.len()) == 0;
        !empty && !name.starts_with("events.out") && !name.ends_with("lock")
    });
    found.sort();
    found
}
