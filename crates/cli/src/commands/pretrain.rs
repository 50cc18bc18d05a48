//! `isogloss pretrain`: an encoder under a condition of the papers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use tensor::Device;
use toml::{Table, Value};
use train::pretrain::{
    CONDITIONS, PretrainConfig, PretrainError, SCALES, Summary, begin, complete, overlay, preset,
    resume,
};

use super::manifest::{Manifest, ManifestFile};
use super::shown::Shown;
use super::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  Two invented languages that share no word:
    isogloss world generate --out world
    isogloss pretrain --preset no-anchors --scale tiny --world world --out run
  Real text, embeddings and lower layers separate, a key changed:
    isogloss pretrain --preset sep-emb-l1-3 --scale small --set adam.rate=5e-4 \\
        --text en=en.txt.zst --text fr=fr.txt.zst --out run
  After a stop or a kill:
    isogloss pretrain --resume --out run";

/// Flags of `pretrain`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(crate) struct Pretrain {
    /// Keys to lay over the preset, in TOML; a run's own config.toml makes the same run again.
    #[arg(value_name = "CONFIG.toml")]
    config: Option<PathBuf>,

    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Go on with the run in the folder, from its last checkpoint.
    #[arg(long, conflicts_with_all = ["config", "preset", "scale", "world", "texts", "set", "seed"])]
    resume: bool,

    /// The condition.
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,

    /// How large everything is: tiny, small or paper.
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

    /// Updates to make.
    #[arg(long, value_name = "N")]
    steps: Option<i64>,

    /// Updates between two checkpoints.
    #[arg(long, value_name = "N")]
    checkpoint_every: Option<i64>,

    /// Updates between two evaluations.
    #[arg(long, value_name = "N")]
    evaluate_every: Option<i64>,

    /// Decides weights, batches, masks and dropout.
    #[arg(long, value_name = "N")]
    seed: Option<i64>,

    /// Set any key, such as encoder.norm=post or adam.rate=1e-3; repeat for more.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Where to run.
    #[arg(long, default_value = "cpu")]
    device: String,

    /// Threads; 0 takes every core.
    #[arg(long, default_value_t = 0)]
    threads: usize,
}

/// The examples, and the names that presets have.
fn long_help() -> String {
    let mut help = EXAMPLES.to_owned();
    for (title, names) in [("Conditions", &CONDITIONS[..]), ("Scales", &SCALES[..])] {
        let _ = write!(help, "\n\n{title}:");
        for (name, what) in names {
            let _ = write!(help, "\n  {name:<16} {what}");
        }
    }
    help
}

impl Pretrain {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let device = Device::named(&self.device, self.threads).map_err(|error| usage(&error))?;
        let mut shown = Shown::new("steps");
        let summary = if self.resume {
            resume(&self.out, &device, &mut shown)
        } else {
            let config =
                PretrainConfig::from_table(self.table()?).map_err(|error| usage(&error))?;
            begin(&config, &self.out, &device, &mut shown)
        };
        drop(shown);
        let summary = summary.map_err(|error| match error {
            PretrainError::Config(_)
            | PretrainError::Text(text::Error::Request { .. })
            | PretrainError::Occupied(_)
            | PretrainError::Nothing(_) => usage(&error),
            error => error.into(),
        })?;
        Ok(Outcome::new(in_words(&summary, &self.out), &summary))
    }

    /// Lays preset, file and flags over one another.
    fn table(&self) -> Result<Table, Failure> {
        let condition = self.preset.as_deref().unwrap_or("default");
        let mut table = preset(condition, self.scale.as_deref().unwrap_or("tiny"))
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(path) = &self.config {
            overlay(&mut table, read_toml(path)?);
        }
        if let Some(world) = &self.world {
            overlay(&mut table, of_world(world, condition)?);
        }
        overlay(&mut table, self.flags(condition)?);
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
        ] {
            if let Some(number) = number {
                table.insert(key.to_owned(), Value::Integer(number));
            }
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
            languages.truncate(if condition == "monolingual" { 1 } else { usize::MAX });
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
        Ok(table)
    }
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

/// The text of a world, its translations to watch, and for extra anchors its dictionaries.
fn of_world(folder: &Path, condition: &str) -> Result<Table, Failure> {
    let manifest = Manifest::read(folder)?;
    let full = |file: &str| folder.join(file).display().to_string();
    let mut languages: Vec<&str> =
        manifest.languages.iter().map(|language| language.code.as_str()).collect();
    languages.truncate(if condition == "monolingual" { 1 } else { usize::MAX });
    let mut files = Table::new();
    for language in &languages {
        let of_language = |file: &&ManifestFile| {
            file.kind == "text" && file.languages.iter().any(|name| name == language)
        };
        let paths: Vec<String> =
            manifest.files.iter().filter(of_language).map(|file| full(&file.path)).collect();
        files.insert((*language).to_owned(), Value::from(paths));
    }
    let (mut probes, mut dictionaries) = (Vec::new(), Vec::new());
    for other in languages.iter().skip(1) {
        let first = languages[0];
        let side = |language: &str| full(&format!("tatoeba/tatoeba.{other}-{first}.{language}"));
        probes.push(Value::Table(Table::from_iter([
            ("languages".to_owned(), Value::from(vec![first, other])),
            ("files".to_owned(), Value::from(vec![side(first), side(other)])),
        ])));
        dictionaries.push(dictionary(first, other, &full(&format!("muse/{first}-{other}.txt"))));
    }
    let mut table = Table::new();
    table.insert("languages".to_owned(), Value::from(languages));
    table.insert("files".to_owned(), Value::Table(files));
    table.insert("probes".to_owned(), Value::Array(probes));
    table.insert(
        "text".to_owned(),
        Value::Table(Table::from_iter([("prepared".to_owned(), Value::Boolean(true))])),
    );
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

fn in_words(summary: &Summary, folder: &Path) -> String {
    let folder = folder.display();
    let mut text = format!(
        "{folder}: {} at {} scale, {} steps, {:.1} M parameters, {:.0} tokens/s, {:.1} % of the time waiting for data\n",
        summary.preset,
        summary.scale,
        summary.steps,
        summary.parameters as f64 / 1e6,
        summary.tokens as f64 / summary.seconds.max(1e-9),
        100.0 * summary.waiting,
    );
    if let Some(best) = summary.best {
        let _ = writeln!(text, "  best      step {}, perplexity {:.2}", best.step, best.perplexity);
    }
    match summary.left_plateau {
        Some(step) => _ = writeln!(text, "  plateau   left at step {step}"),
        None => _ = writeln!(text, "  plateau   not left"),
    }
    for (language, perplexity) in &summary.perplexity {
        let _ = writeln!(text, "  {language:<9} perplexity {perplexity:.2}");
    }
    for retrieval in &summary.retrieval {
        let [a, b] = &retrieval.languages;
        let layers = |values: &[f64]| {
            values.iter().map(|value| format!("{value:.3}")).collect::<Vec<_>>().join(" ")
        };
        let _ = writeln!(
            text,
            "  {a}-{b}   translations found among {} by layer: {}\n  {:width$}   after a shift of means: {}",
            retrieval.sentences,
            layers(&retrieval.raw),
            "",
            layers(&retrieval.shifted),
            width = a.len() + b.len() + 1,
        );
    }
    if !summary.finished {
        let _ = writeln!(text, "stopped; go on with: isogloss pretrain --resume --out {folder}");
    }
    text
}
