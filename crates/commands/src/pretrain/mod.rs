//! `isogloss pretrain`: pretrain an encoder under a condition of the papers.

mod report;
mod together;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use ranks::{RankError, Ranks};
use serde::Serialize;
use tensor::Device;
use terms::{Fault, Preset, Scale};
use toml::{Table, Value};
use train::pretrain::{
    DictionaryConfig, PretrainError, ProbeConfig, RunRequest, RunText, begin, follow, overlay,
    resume,
};
use world::Manifest;

use self::report::in_words;
use self::together::Together;
use super::models::Compute;
use super::texts::parse_text;
use super::texts::scales;
use super::training_view::TrainingView;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;
use crate::stop;

const EXAMPLES: &str = "Examples:
  Two invented languages that share no word:
    isogloss world generate --out world
    isogloss pretrain --preset no-anchors --scale tiny --world world --out run
  Real text, embeddings and lower layers separate, another learning rate:
    isogloss pretrain --preset sep-emb-l1-3 --scale small --lr 5e-4 \\
        --text en=en.txt.zst --text fr=fr.txt.zst --out run
  Multilingual BERT's WordPiece vocabulary, or one made beforehand:
    isogloss pretrain --preset sentences-200k --scale small --vocab vocab.txt \\
        --text en=en.txt.zst --text zh=zh.txt.zst --out run
    isogloss vocab train --text en=en.txt.zst --text zh=zh.txt.zst --out joint
    isogloss pretrain --vocab joint --scale small \\
        --text en=en.txt.zst --text zh=zh.txt.zst --out run2
  Text of another domain, as much of it as there is of the first:
    isogloss pretrain --preset wiki-cc --scale small --text.sample 400000 \\
        --text en=wiki.en.txt.zst --text fr=crawl.fr.txt.zst --out wiki-cc
  Continued pretraining of a model that there is, at a lower learning rate:
    isogloss pretrain --from mbert --scale small --steps 2000 --lr 5e-5 \\
        --text en=en.txt.zst --text fr=fr.txt.zst --out continued
  A language that it does not know, with 5,000 subwords of its own; only its embeddings are trained:
    isogloss pretrain --from mbert --scale small --steps 2000 --lr 5e-4 \\
        --add-language gsw=gsw.txt.zst --trainable new --vocabulary.merges 5000 --out with-gsw
  Any key of the configuration is a flag:
    isogloss pretrain --world world --encoder.norm post --batch.length 24 --out run
  On all four GPUs of this machine, or on two CPU processes; two machines of eight GPUs by torchrun or srun:
    isogloss pretrain --scale paper --gpus 4 --text en=en.txt.zst --text fr=fr.txt.zst --out run
    isogloss pretrain --world world --ranks 2 --device cpu --out run
    torchrun --no-python --nnodes 2 --nproc-per-node 8 … isogloss pretrain …
    srun --ntasks 16 --gpus-per-task 1 isogloss pretrain …
  After a stop or a kill:
    isogloss pretrain --resume --out run
  To train a finished run further, its learning rate decaying to the new end:
    isogloss pretrain --resume --out run --steps 9000";

const USAGE: &str = "isogloss pretrain [OPTIONS] --out <DIR> [CONFIG.toml]
       isogloss pretrain --resume --out <DIR> [OPTIONS]";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES, after_long_help = long_help(), override_usage = USAGE)]
pub struct Pretrain {
    /// Keys over those of the preset, in TOML; a run's own config.toml makes the same run again.
    #[arg(value_name = "CONFIG.toml", help_heading = "Input")]
    pub config: Option<PathBuf>,

    /// A folder of `world generate`: its text, and parallel sentences to measure retrieval on.
    #[arg(long, value_name = "DIR", conflicts_with = "texts", help_heading = "Input")]
    pub world: Option<PathBuf>,

    /// Text of a language; repeat for more files and more languages.
    #[arg(short = 't', long = "text", value_name = "LANG=FILE", value_parser = parse_text,
        help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    /// A dictionary for extra anchors, such as en-fr=FILE; repeat for more.
    #[arg(long = "dictionary", value_name = "A-B=FILE", value_parser = parse_text,
        help_heading = "Input")]
    pub dictionaries: Vec<(String, String)>,

    /// A vocabulary to use as it is, in place of learning one: a folder of `vocab train`, or a file of
    /// WordPiece subwords such as multilingual BERT's vocab.txt (cased; for an uncased one add
    /// --vocabulary.uncased true).
    #[arg(long, value_name = "FILE|DIR", help_heading = "Input")]
    pub vocab: Option<PathBuf>,

    /// Begin with the weights and the vocabulary of this model, a run, a snapshot (RUN@STEP) or a Hugging Face
    /// folder, in place of random weights: continued pretraining. The encoder has the model's shape; the scale
    /// decides batches and the learning rate. Text may be of some of its languages.
    #[arg(long, alias = "init", value_name = "DIR", help_heading = "Input")]
    pub from: Option<PathBuf>,

    /// Text of a language that the model of --from does not know: it is given new subwords, learned from the
    /// text (--vocabulary.merges N of them at most), and embeddings for them. Repeat for more files and more languages.
    #[arg(long = "add-language", value_name = "LANG=FILE", value_parser = parse_text,
        help_heading = "Input")]
    pub added: Vec<(String, String)>,

    /// The run's folder.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace a run that is there.
    #[arg(short, long, conflicts_with = "resume", help_heading = "Output")]
    pub force: bool,

    /// Resume the run in the folder from its last checkpoint. Flags may be given again as they were; more
    /// --steps extend the run.
    #[arg(long, help_heading = "Output")]
    pub resume: bool,

    /// The condition [default: default].
    #[arg(long, value_name = "NAME", value_parser = presets(), help_heading = "Training")]
    pub preset: Option<Preset>,

    /// How large everything is [default: tiny].
    #[arg(long, value_name = "NAME", value_parser = scales(), help_heading = "Training")]
    pub scale: Option<Scale>,

    /// Updates to make [default: 6000 at scale tiny, 8000 at small, 417000 at paper, which is 200 epochs
    /// of 200,000 sequences on each of eight GPUs, 96 at a time].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub steps: Option<i64>,

    /// The peak learning rate: adam.lr.
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub lr: Option<f64>,

    /// Seeds weights, batches, masks and dropout [default: 1].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub seed: Option<i64>,

    /// What --add-language trains: all weights, or those of the new language alone (its embeddings and softmax
    /// rows), the rest frozen as in Artetxe et al. 2020 [default: all].
    #[arg(long, value_name = "WEIGHTS", value_parser = ["all", "new"], help_heading = "Training")]
    pub trainable: Option<String>,

    /// Micro-batches whose gradients make one update.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub accumulate: Option<i64>,

    /// Updates between two checkpoints.
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub checkpoint_every: Option<i64>,

    /// Set any key, such as encoder.norm=post or adam.beta2=0.98; repeat for more. A key with a dot is a
    /// flag too: --adam.beta2 0.98.
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Training")]
    pub set: Vec<String>,

    /// Updates between two evaluations.
    #[arg(long, value_name = "N", help_heading = "Evaluation")]
    pub evaluate_every: Option<i64>,

    /// Stop after so many evaluations without a better one [default: 25; at scale paper never, as in
    /// Conneau et al. 2020].
    #[arg(long, value_name = "N", help_heading = "Evaluation")]
    pub patience: Option<i64>,

    /// The language whose perplexity on held-out text chooses the best weights; the first if none.
    #[arg(long, value_name = "LANG", help_heading = "Evaluation")]
    pub select_by: Option<String>,

    /// Train with N processes on this machine, one for each GPU (--gpus N says the same); with --device cpu they share the
    /// cores. Each computes the gradients of every Nth micro-batch of an update, so that --accumulate is a multiple of N, and the
    /// result is that of one process but for rounding. Processes of torchrun and srun need no flag.
    #[arg(long, alias = "gpus", value_name = "N", help_heading = "Compute")]
    pub ranks: Option<usize>,

    #[command(flatten)]
    pub compute: Compute,
}

fn presets() -> impl TypedValueParser<Value = Preset> {
    let named = |preset: Preset| PossibleValue::new(preset.name()).help(preset.summary());
    PossibleValuesParser::new(Preset::all().map(named))
        .map(|name| name.parse().expect("one of the listed values"))
}

/// Keys of text and vocabulary, which a preset leaves open, and of what is saved.
const KEYS: [(&str, &str); 19] = [
    ("vocabulary.folder", "use this folder of `vocab train`, and prepare text as it says"),
    ("vocabulary.file", "or this WordPiece vocabulary, a subword a line"),
    ("vocabulary.uncased", "true: it is lowercased, without accents"),
    ("vocabulary.kind", "or learn one: joint, union or disjoint"),
    ("vocabulary.merges", "merges to learn: in all if joint, else for each (or added) language"),
    ("text.words", "whitespace, moses or jieba: how text is tokenized; else by language"),
    ("text.lowercase", "true: lowercase"),
    ("text.strip_accents", "true: strip accents"),
    ("text.simplify", "a table from traditional to simplified Chinese characters"),
    ("text.lines", "true: a line is a sentence"),
    ("text.prepared", "true: and words stand between spaces; the default for --world"),
    ("text.first", "read the first so many sentences of each language"),
    ("text.sample", "read a random sample of so many sentences of each language"),
    ("text.sample_of.LANG", "the same for one language, in place of text.sample"),
    ("text.distinct", "true: drop repeated sentences"),
    ("text.seed", "draws the sample and the held-out sentences; else --seed does"),
    ("text.corpora", "a folder of `corpus prepare`: take what is tokenised there already"),
    ("trajectory", "false: save neither states of parallel sentences nor snapshots"),
    ("snapshots", "at most so many of the weights (RUN@STEP); else 8, in 256 MB"),
];

fn long_help() -> String {
    let mut help =
        format!("{EXAMPLES}\n\nKeys of text, vocabulary, and what is saved while training:");
    for (name, what) in KEYS {
        let _ = write!(help, "\n  {name:<19} {what}");
    }
    help
}

impl Request for Pretrain {
    const NAME: &str = "pretrain";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["world", "texts", "added", "dictionaries", "vocab", "set", "out"];
}

impl Pretrain {
    pub fn run(self) -> Result<Outcome, Failure> {
        match Together::find(self.ranks, &self.out)? {
            None => self.train(None),
            Some(together) => together.run(|ranks| match ranks.rank() {
                0 => self.train(Some(ranks)),
                _ => self.follow(ranks),
            }),
        }
    }

    /// Trains as a rank other than 0: silently.
    fn follow(&self, ranks: &Arc<Ranks>) -> Result<Outcome, Failure> {
        let device = self.device(Some(ranks))?;
        stop::listen();
        follow(&self.out, &device, ranks, &stop::wished).map_err(failure)?;
        Ok(Outcome::silent())
    }

    fn device(&self, ranks: Option<&Arc<Ranks>>) -> Result<Device, Failure> {
        let Some(placement) = ranks.map(|ranks| ranks.placement()) else {
            return self.compute.device();
        };
        self.compute.device_of_rank(placement.local_rank, placement.local_count)
    }

    /// Trains, as a process by itself or as rank 0.
    fn train(&self, ranks: Option<&Arc<Ranks>>) -> Result<Outcome, Failure> {
        let request = self.request()?;
        // A process that was killed at once has left nothing but a lock.
        let nothing_yet =
            self.out.is_dir() && files::is_vacant(&self.out) && request.text.is_some();
        let config = match self.resume && !nothing_yet {
            true => None,
            false => Some(request.config().map_err(|error| failure(error.into()))?),
        };
        let device = self.device(ranks)?;
        let mut shown = TrainingView::new("steps");
        let summary = match &config {
            None => resume(&self.out, &request, &device, ranks, &mut shown),
            Some(config) => begin(config, &self.out, self.force, &device, ranks, &mut shown),
        };
        drop(shown);
        let summary = summary.map_err(failure)?;
        let outcome = Outcome::new(in_words(&summary, &self.out), &summary);
        Ok(if summary.finished { outcome } else { outcome.stopped() })
    }

    /// What is asked for, of the library.
    fn request(&self) -> Result<RunRequest, Failure> {
        let file = self.config.as_deref().map(read_toml).transpose()?.unwrap_or_default();
        let in_file = || file.get("preset").and_then(Value::as_str)?.parse().ok();
        let preset = self.preset.or_else(in_file);
        let added = by_language(&self.added);
        let text = match &self.world {
            Some(folder) => {
                let mut text = text_of_world(folder, preset)?;
                text.languages.retain(|(code, _)| !added.iter().any(|(new, _)| new == code));
                Some(RunText { added, ..text })
            }
            None if self.texts.is_empty() && added.is_empty() => None,
            None => {
                Some(RunText { languages: by_language(&self.texts), added, ..RunText::default() })
            }
        };
        Ok(RunRequest { preset: self.preset, scale: self.scale, file, text, keys: self.keys()? })
    }

    fn keys(&self) -> Result<Table, Failure> {
        let mut table = Table::new();
        for (key, number) in [
            ("steps", self.steps),
            ("checkpoint_every", self.checkpoint_every),
            ("evaluate_every", self.evaluate_every),
            ("seed", self.seed),
            ("accumulate", self.accumulate),
            ("patience", self.patience),
        ] {
            if let Some(number) = number {
                table.insert(key.to_owned(), Value::Integer(number));
            }
        }
        if let Some(language) = &self.select_by {
            table.insert("select_by".to_owned(), Value::from(language.as_str()));
        }
        if let Some(lr) = self.lr {
            let adam = Table::from_iter([("lr".to_owned(), Value::Float(lr))]);
            table.insert("adam".to_owned(), Value::Table(adam));
        }
        if !self.dictionaries.is_empty() {
            let mut list = Vec::new();
            for (pair, file) in &self.dictionaries {
                let Some((from, to)) = pair.split_once('-') else {
                    let message = format!("--dictionary {pair}={file}: write A-B=FILE");
                    return Err(Failure::Usage(message));
                };
                let entries = [("from", from), ("to", to), ("file", file)];
                let entries = entries.map(|(key, value)| (key.to_owned(), Value::from(value)));
                list.push(Value::Table(entries.into_iter().collect()));
            }
            let switch = Table::from_iter([("dictionaries".to_owned(), Value::Array(list))]);
            table.insert("switch".to_owned(), Value::Table(switch));
        }
        if let Some(weights) = &self.trainable {
            let keys = Table::from_iter([("trainable".to_owned(), Value::from(weights.as_str()))]);
            table.insert("add".to_owned(), Value::Table(keys));
        }
        if let Some(path) = &self.from {
            table.insert("init".to_owned(), Value::from(path.display().to_string()));
        }
        if let Some(path) = &self.vocab {
            let key = if path.is_dir() { "folder" } else { "file" };
            let path = Value::from(path.display().to_string());
            let vocabulary = Table::from_iter([(key.to_owned(), path)]);
            table.insert("vocabulary".to_owned(), Value::Table(vocabulary));
        }
        for setting in &self.set {
            overlay(&mut table, parse_setting(setting)?);
        }
        if let Some(key) = ["preset", "scale"].into_iter().find(|key| table.contains_key(*key)) {
            return Err(Failure::Usage(format!("--set {key}: give it as a flag, --{key} NAME")));
        }
        Ok(table)
    }
}

const RESUME: &str =
    "; the run stops, and --resume goes on from its last checkpoint, with any number of ranks";

/// An error with the flag that sets the key to blame.
fn failure(error: PretrainError) -> Failure {
    if let Some(RankError::Lost { message, ours_to_report: false }) = error.of_ranks() {
        return Failure::Reported(message.clone());
    }
    let hint = match &error {
        error if matches!(error.of_ranks(), Some(RankError::Lost { .. })) => {
            return Failure::Failed(format!("{error}{RESUME}"));
        }
        PretrainError::Occupied(_) | PretrainError::Unstarted(_) => {
            Some("--resume; --force replaces a run".to_owned())
        }
        error => error.key().and_then(flag),
    };
    let message = hint.map_or(error.to_string(), |hint| format!("{error} ({hint})"));
    match error.is_usage() {
        true => Failure::Usage(message),
        false if message == error.to_string() => error.into(),
        false => Failure::Failed(message),
    }
}

fn flag(key: &str) -> Option<String> {
    Some(match key {
        "languages" | "files" => "--world DIR, or --text LANG=FILE".to_owned(),
        "switch.dictionaries" => "--dictionary A-B=FILE".to_owned(),
        "adam.lr" => "--lr".to_owned(),
        "init" => "--from DIR".to_owned(),
        "add.languages" => "--add-language LANG=FILE".to_owned(),
        "add.trainable" => "--trainable all|new".to_owned(),
        "preset" | "scale" | "steps" | "seed" | "accumulate" | "patience" => {
            format!("--{key}")
        }
        "checkpoint_every" | "evaluate_every" | "select_by" => {
            format!("--{}", key.replace('_', "-"))
        }
        "stages" | "switch" | "extensions" | "trajectory" | "snapshots" => {
            format!("--set {key}=VALUE")
        }
        // The name of a file that cannot be read is no key.
        _ if key.contains(['/', '\\']) || !key.contains('.') || key.ends_with(".toml") => {
            return None;
        }
        _ => format!("--{key}"),
    })
}

/// Files by language, languages in the order in which they are first named.
fn by_language(texts: &[(String, String)]) -> Vec<(String, Vec<String>)> {
    let mut languages: Vec<(String, Vec<String>)> = Vec::new();
    for (language, file) in texts {
        match languages.iter_mut().find(|(known, _)| known == language) {
            Some((_, files)) => files.push(file.clone()),
            None => languages.push((language.clone(), vec![file.clone()])),
        }
    }
    languages
}

/// `a.b=value` as a table; a value that is no TOML is text.
fn parse_setting(setting: &str) -> Result<Table, Failure> {
    let wrong =
        || Failure::Usage(format!("--set {setting}: write KEY=VALUE, such as adam.beta2=0.98"));
    let (key, value) = setting.split_once('=').ok_or_else(wrong)?;
    let as_toml = format!("{key} = {value}").parse::<Table>();
    as_toml.or_else(|_| format!("{key} = {value:?}").parse()).map_err(|_| wrong())
}

fn read_toml(path: &Path) -> Result<Table, Failure> {
    let text = files::limits::read_text(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    text.parse()
        .map_err(|error: toml::de::Error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// The text of a world, its parallel sentences and its dictionaries.
fn text_of_world(folder: &Path, preset: Option<Preset>) -> Result<RunText, Failure> {
    let manifest = Manifest::read(folder)?;
    if preset == Some(Preset::WikiCc) && manifest.domains() < 2 {
        let message = "--preset wiki-cc: all text of this world is of one domain; make one with \
                       `isogloss world generate --domain-shift 0.5`";
        return Err(Failure::Usage(message.to_owned()));
    }
    let codes = || manifest.languages.iter().map(|language| language.code.as_str());
    let texts = |code: &str| {
        let files = manifest.files_of("text", code).map(|file| folder.join(file));
        (code.to_owned(), files.map(|file| file.display().to_string()).collect())
    };
    let first = codes().next().unwrap_or_default();
    let has_glosses = manifest.files.iter().any(|file| file.kind == "gloss");
    let probe = |other: &str| ProbeConfig {
        languages: [first.to_owned(), other.to_owned()],
        files: [first, other]
            .map(|code| folder.join(format!("tatoeba/tatoeba.{other}-{first}.{code}"))),
        glosses: has_glosses
            .then(|| [first, other].map(|code| folder.join(format!("tatoeba/gloss.{code}.txt")))),
    };
    let dictionary = |other: &str| DictionaryConfig {
        from: first.to_owned(),
        to: other.to_owned(),
        file: folder.join(format!("muse/{first}-{other}.txt")),
    };
    let has_probes = manifest.files.iter().any(|file| file.kind == "tatoeba");
    Ok(RunText {
        languages: codes().map(texts).collect(),
        added: Vec::new(),
        probes: codes().skip(1).filter(|_| has_probes).map(probe).collect(),
        dictionaries: codes().skip(1).map(dictionary).collect(),
        prepared: true,
    })
}
