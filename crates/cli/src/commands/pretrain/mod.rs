//! `isogloss pretrain`: an encoder under a condition of the papers.

mod report;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use toml::{Table, Value};
use train::pretrain::{
    CONDITIONS, PretrainConfig, PretrainError, SCALES, begin, complete, loosen, overlay, preset,
    resume,
};

use self::report::in_words;
use super::manifest::{Manifest, ManifestFile};
use super::models::Compute;
use super::texts::parse_text;
use super::training_view::TrainingView;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  Two invented languages that share no word:
    isogloss world generate --out world
    isogloss pretrain --preset no-anchors --scale tiny --world world --out run
  Real text, embeddings and lower layers separate, a key changed:
    isogloss pretrain --preset sep-emb-l1-3 --scale small --adam.rate 5e-4 \\
        --text en=en.txt.zst --text fr=fr.txt.zst --out run
  A vocabulary made beforehand, with text prepared as it says:
    isogloss vocab train --kind wordpiece --pieces vocab.txt \\
        --text en=en.txt.zst --text zh=zh.txt.zst --out pieces
    isogloss pretrain --vocabulary.folder pieces --scale small \\
        --text en=en.txt.zst --text zh=zh.txt.zst --out run
  Any key of the configuration is a flag:
    isogloss pretrain --world world --encoder.norm post --batch.length 24 --out run
  After a stop or a kill:
    isogloss pretrain --resume --out run";

const USAGE: &str = "isogloss pretrain [OPTIONS] --out <DIR> [CONFIG.toml]
       isogloss pretrain --resume --out <DIR> [--device NAME] [--threads N]";

/// Flags of `pretrain`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help(), override_usage = USAGE)]
pub(crate) struct Pretrain {
    /// Keys to lay over the preset, in TOML; a run's own config.toml makes the same run again.
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,

    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Go on with the run in the folder, from its last checkpoint.
    #[arg(long, conflicts_with_all = [
        "config", "preset", "scale", "world", "texts", "seed", "steps", "checkpoint_every",
        "evaluate_every", "accumulate", "patience", "select_by", "dictionaries",
    ])]
    resume: bool,

    /// The condition; --help names them all [default: default].
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// How large everything is: tiny, small or paper [default: tiny].
    #[arg(long, value_name = "NAME")]
    scale: Option<String>,

    /// A folder of `world generate`: its text, and its translations to watch.
    #[arg(long, value_name = "DIR", conflicts_with = "texts")]
    world: Option<PathBuf>,

    /// Text of a language; repeat for more files and more languages.
    #[arg(long = "text", value_name = "LANG=FILE", value_parser = parse_text)]
    texts: Vec<(String, String)>,

    /// A dictionary for extra anchors, such as en-fr=FILE; repeat for more.
    #[arg(long = "dictionary", value_name = "A-B=FILE", value_parser = parse_text)]
    dictionaries: Vec<(String, String)>,

    /// Updates to make [default: 6000 at scale tiny, 24000 at small, 417000 at paper].
    #[arg(long, value_name = "N")]
    steps: Option<i64>,

    /// Updates between two checkpoints.
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<i64>,

    /// Updates between two evaluations.
    #[arg(long, value_name = "N")]
    evaluate_every: Option<i64>,

    /// Decides weights, batches, masks and dropout [default: 1].
    #[arg(long, value_name = "N")]
    seed: Option<i64>,

    /// Batches whose gradients make one update.
    #[arg(long, value_name = "N")]
    accumulate: Option<i64>,

    /// Stop after so many evaluations without a better one.
    #[arg(long, value_name = "N")]
    patience: Option<i64>,

    /// The language whose perplexity on held-out text chooses the best weights; the first if none.
    #[arg(long, value_name = "LANG")]
    select_by: Option<String>,

    /// Set any key, such as encoder.norm=post or adam.rate=1e-3; repeat for more. A key with a dot
    /// is a flag too: --adam.rate 1e-3.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    compute: Compute,
}

/// Keys of text and vocabulary, which a preset leaves open.
const KEYS: [(&str, &str); 12] = [
    ("vocabulary.folder", "take this folder of `vocab train`, and prepare text as it says"),
    ("vocabulary.kind", "or learn one: joint, union or disjoint"),
    ("vocabulary.merges", "merges to learn: in all if joint, for each language otherwise"),
    ("text.words", "spaces, moses or jieba: how words are told apart; else by language"),
    ("text.lowercase", "true: make all letters small"),
    ("text.strip_accents", "true: take accents off"),
    ("text.simplify", "a table that makes traditional Chinese characters simplified ones"),
    ("text.lines", "true: a line is a sentence"),
    ("text.prepared", "true: and words stand between spaces; so for --world"),
    ("text.first", "take the first so many sentences of each language"),
    ("text.sample", "take so many sentences of each language, from anywhere"),
    ("text.distinct", "true: drop sentences that came before"),
];

/// The examples, and the names that presets and keys have.
fn long_help() -> String {
    let mut help = EXAMPLES.to_owned();
    for (title, names) in [
        ("Conditions", &CONDITIONS[..]),
        ("Scales", &SCALES[..]),
        ("Keys of text and vocabulary", &KEYS[..]),
    ] {
        let _ = write!(help, "\n\n{title}:");
        for (name, what) in names {
            let _ = write!(help, "\n  {name:<18} {what}");
        }
    }
    help
}

impl Pretrain {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let config = match self.resume {
            true => None,
            false => {
                Some(PretrainConfig::from_table(self.table()?).map_err(|error| usage(&error))?)
            }
        };
        if let Some(setting) = self.set.first().filter(|_| self.resume) {
            let key = setting.split('=').next().unwrap_or(setting);
            return Err(Failure::Usage(format!(
                "{key}: a run that is resumed goes on as it was begun; leave it out, or begin another run"
            )));
        }
        let device = self.compute.device()?;
        let mut shown = TrainingView::new("steps");
        let summary = match &config {
            None => resume(&self.out, &device, &mut shown),
            Some(config) => begin(config, &self.out, &device, &mut shown),
        };
        drop(shown);
        let summary = summary.map_err(|error| match error {
            PretrainError::Config(_)
            | PretrainError::Text(text::Error::Request { .. })
            | PretrainError::Occupied(_)
            | PretrainError::Unstarted(_)
            | PretrainError::OtherKind(_)
            | PretrainError::Nothing(_) => usage(&error),
            error => error.into(),
        })?;
        let outcome = Outcome::new(in_words(&summary, &self.out), &summary);
        Ok(if summary.finished { outcome } else { outcome.stopped() })
    }

    /// Lays preset, file and flags over one another.
    fn table(&self) -> Result<Table, Failure> {
        let mut file = self.config.as_deref().map(read_toml).transpose()?.unwrap_or_default();
        let given = [("preset", &self.preset), ("scale", &self.scale)];
        given.into_iter().try_for_each(|(key, flag)| refuse_other(&file, key, flag))?;
        let named = |flag: &Option<String>, key: &str, otherwise: &str| {
            let in_file = file.get(key).and_then(Value::as_str).map(str::to_owned);
            flag.clone().or(in_file).unwrap_or_else(|| otherwise.to_owned())
        };
        let condition = &named(&self.preset, "preset", "default");
        let scale = &named(&self.scale, "scale", "tiny");
        let mut table =
            preset(condition, scale).map_err(|error| Failure::Usage(error.to_string()))?;
        let flags = self.flags(condition)?;
        if let Some(key) = ["kind", "merges"].iter().find(|key| of_vocabulary(&flags, key))
            && of_vocabulary(&flags, "folder")
        {
            return Err(Failure::Usage(format!(
                "vocabulary.{key}: is for a vocabulary to be learned, and vocabulary.folder is taken as it \
                 is; leave one of them out"
            )));
        }
        loosen(&mut file, &flags);
        overlay(&mut table, file);
        table.insert("preset".to_owned(), Value::from(condition.as_str()));
        table.insert("scale".to_owned(), Value::from(scale.as_str()));
        if let Some(world) = &self.world {
            let taken = of_vocabulary(&flags, "folder") || of_vocabulary(&table, "folder");
            overlay(&mut table, of_world(world, condition, taken)?);
        }
        overlay(&mut table, flags);
        let switched = table.get("switch").is_none_or(|switch| switch.get("probability").is_some());
        if !self.dictionaries.is_empty() && !switched {
            return Err(Failure::Usage(format!(
                "--dictionary is for extra anchors, and --preset {condition} has none; take --preset \
                 extra-anchors, or add --switch.probability 0.3 --switch.most 0.15"
            )));
        }
        complete(&mut table);
        Ok(table)
    }

    fn flags(&self, condition: &str) -> Result<Table, Failure> {
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
        if !self.texts.is_empty() {
            let mut languages: Vec<&str> = Vec::new();
            let mut files = Table::new();
            for (language, file) in &self.texts {
                if !languages.contains(&language.as_str()) {
                    languages.push(language);
                }
                let list = files.entry(language).or_insert_with(|| Value::Array(Vec::new()));
                list.as_array_mut().expect("made as a list").push(Value::from(file.as_str()));
            }
            let alone = matches!(condition, "monolingual" | "same-language");
            languages.truncate(if alone { 1 } else { usize::MAX });
            let mut languages: Vec<String> = languages.into_iter().map(str::to_owned).collect();
            if let ("same-language", [only]) = (condition, &languages[..]) {
                let second = twin(only);
                files.insert(second.clone(), files[only].clone());
                languages.push(second);
            }
            table.insert("languages".to_owned(), Value::from(languages));
            table.insert("files".to_owned(), Value::Table(files));
        }
        if !self.dictionaries.is_empty() {
            let mut list = Vec::new();
            for (pair, file) in &self.dictionaries {
                let Some((from, to)) = pair.split_once('-') else {
                    let message = format!("--dictionary {pair}={file}: write A-B=FILE");
                    return Err(Failure::Usage(message));
                };
                list.push(dictionary(from, to, file));
            }
            let switch = Table::from_iter([("dictionaries".to_owned(), Value::Array(list))]);
            table.insert("switch".to_owned(), Value::Table(switch));
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

/// Whether a table says this of the vocabulary.
fn of_vocabulary(table: &Table, key: &str) -> bool {
    table.get("vocabulary").is_some_and(|vocabulary| vocabulary.get(key).is_some())
}

/// `a.b=value` as a table; a value that is no TOML is text.
fn parse_setting(setting: &str) -> Result<Table, Failure> {
    let wrong =
        || Failure::Usage(format!("--set {setting}: write KEY=VALUE, such as adam.rate=1e-3"));
    let (key, value) = setting.split_once('=').ok_or_else(wrong)?;
    let as_toml = format!("{key} = {value}").parse::<Table>();
    as_toml.or_else(|_| format!("{key} = {value:?}").parse()).map_err(|_| wrong())
}

fn read_toml(path: &Path) -> Result<Table, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    text.parse()
        .map_err(|error: toml::de::Error| Failure::Usage(format!("{}: {error}", path.display())))
}

/// A file's keys are of its own preset and scale: under another name they would be a lie.
fn refuse_other(file: &Table, key: &str, flag: &Option<String>) -> Result<(), Failure> {
    let in_file = file.get(key).and_then(Value::as_str);
    match (in_file, flag) {
        (Some(in_file), Some(flag)) if in_file != flag => Err(Failure::Usage(format!(
            "--{key} {flag}: the file's configuration is of {key} `{in_file}`, and its keys would stay so; \
             leave the flag out, or begin from --{key} {flag} without the file"
        ))),
        _ => Ok(()),
    }
}

/// The name of a language's second self.
fn twin(language: &str) -> String {
    format!("{language}-b")
}

/// Whether the languages' text is of more than one domain, as the condition says.
fn refuse_one_domain(manifest: &Manifest) -> Result<(), Failure> {
    let texts = manifest.files.iter().filter(|file| file.kind == "text");
    let mut domains: Vec<_> = texts.map(|file| &file.domain).collect();
    domains.dedup();
    if domains.len() > 1 {
        return Ok(());
    }
    let message = "--preset wiki-cc: all text of this world is of one domain; make one with \
                   `isogloss world generate --domain-shift 0.5`";
    Err(Failure::Usage(message.to_owned()))
}

/// The text of a world, its translations to watch, and for extra anchors its dictionaries. A vocabulary that
/// is taken as it is says for itself what words are.
fn of_world(folder: &Path, condition: &str, taken: bool) -> Result<Table, Failure> {
    let manifest = Manifest::read(folder)?;
    let full = |file: &str| folder.join(file).display().to_string();
    let mut languages: Vec<String> =
        manifest.languages.iter().map(|language| language.code.clone()).collect();
    let first = languages.first().cloned().unwrap_or_default();
    match condition {
        "monolingual" => languages.truncate(1),
        "same-language" => languages = vec![first.clone(), twin(&first)],
        "wiki-cc" => refuse_one_domain(&manifest)?,
        _ => {}
    }
    // A second self has the files of the first.
    let speaker = |language: &String| match condition {
        "same-language" => first.clone(),
        _ => language.clone(),
    };
    let mut files = Table::new();
    for language in &languages {
        let speaker = speaker(language);
        let of_language =
            |file: &&ManifestFile| file.kind == "text" && file.languages.contains(&speaker);
        let paths: Vec<String> =
            manifest.files.iter().filter(of_language).map(|file| full(&file.path)).collect();
        files.insert(language.clone(), Value::from(paths));
    }
    let (mut probes, mut dictionaries) = (Vec::new(), Vec::new());
    for other in languages.iter().skip(1) {
        let pair = manifest.languages.iter().map(|language| &language.code);
        let pair = pair.skip(1).find(|&code| code == other || condition == "same-language");
        let Some(pair) = pair else { continue };
        let side = |language: &String| {
            full(&format!("tatoeba/tatoeba.{pair}-{first}.{}", speaker(language)))
        };
        probes.push(Value::Table(Table::from_iter([
            ("languages".to_owned(), Value::from(vec![first.clone(), other.clone()])),
            ("files".to_owned(), Value::from(vec![side(&first), side(other)])),
        ])));
        dictionaries.push(dictionary(&first, other, &full(&format!("muse/{first}-{other}.txt"))));
    }
    let mut table = Table::new();
    table.insert("languages".to_owned(), Value::from(languages));
    table.insert("files".to_owned(), Value::Table(files));
    table.insert("probes".to_owned(), Value::Array(probes));
    let key = if taken { "lines" } else { "prepared" };
    let text = Table::from_iter([(key.to_owned(), Value::Boolean(true))]);
    table.insert("text".to_owned(), Value::Table(text));
    if condition == "extra-anchors" {
        let switch = Table::from_iter([("dictionaries".to_owned(), Value::Array(dictionaries))]);
        table.insert("switch".to_owned(), Value::Table(switch));
    }
    Ok(table)
}

fn dictionary(from: &str, to: &str, file: &str) -> Value {
    let entries = [("from", from), ("to", to), ("file", file)];
    Value::Table(
        entries.map(|(key, value)| (key.to_owned(), Value::from(value))).into_iter().collect(),
    )
}
