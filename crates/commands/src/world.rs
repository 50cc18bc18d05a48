//! `isogloss world`: invented languages, written to a folder or printed.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tensor::Device;
use world::{
    DomainConfig, GenerateResult, GlossedSentence, LanguageConfig, MorphologyConfig, WorldConfig,
    WorldPlan,
};

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::request::Request;

subcommands! {
    /// What to do with a world.
    #[command(after_help = EXAMPLES)]
    pub enum World {
        /// Write corpora, dictionaries, parallel text and labelled data for every task.
        #[command(after_help = GENERATE_EXAMPLES)]
        Generate(Generate),
        /// Print a few sentences in every language, with interlinear glosses.
        #[command(after_help = SHOW_EXAMPLES)]
        Show(Show),
    }
}

const EXAMPLES: &str = "Examples:
  isogloss world show --distance 0.5
  isogloss world generate --out world --distance 0.5";

const GENERATE_EXAMPLES: &str = "Examples:
  Two languages without a word in common:
    isogloss world generate --out world
  Three, the second near the first and the third far from it:
    isogloss world generate --out three --languages 3 \\
      --distance 0.2,0.8 --sentences 100000
  The same world again from its own file, but with another seed:
    isogloss world generate --out again \\
      --config world/world.toml --seed 2
  Without inference pairs, and with a smaller retrieval test:
    isogloss world generate --out small \\
      --set 'nli={train=0,dev=0,test=0}' --set tatoeba=200";

const SHOW_EXAMPLES: &str = "Examples:
  isogloss world show --limit 2 --distance 0.5
  isogloss world show --verb sov --script han --morphology rich
  isogloss world show --config world/world.toml --json";

#[derive(Args, Serialize)]
pub struct Generate {
    /// The folder to write; it appears whole or not at all.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,
    /// Replace a world that is there.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,
    /// Threads; 0 takes every core. The files are the same.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub threads: usize,
    #[command(flatten)]
    pub keys: Keys,
}

#[derive(Args)]
pub struct Show {
    /// How many sentences.
    #[arg(short = 'n', long = "limit", alias = "count", value_name = "N", default_value_t = 5,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    count: usize,
    #[command(flatten)]
    keys: Keys,
}

/// Keys of `world.toml` as flags; they win over the file. Lists have one value for all languages
/// after the first, or one for each.
#[derive(Args, Serialize)]
pub struct Keys {
    /// Read keys from a TOML file.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The seed of everything [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// How many languages [default: 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=500))]
    pub languages: Option<u16>,
    /// How far from the first language, 0..1: moves words, order, morphology and script together.
    #[arg(long, value_name = "D", value_delimiter = ',')]
    pub distance: Vec<f64>,
    /// The share of content words written as in the first language, 0..1.
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    pub anchors: Vec<f64>,
    /// The share of other words that come from the first language's by sound change, 0..1.
    #[arg(long, value_name = "SHARE", value_delimiter = ',')]
    pub cognates: Vec<f64>,
    /// The script of languages after the first, which stays as it is: latin, cyrillic, greek,
    /// armenian, georgian, hangul or han.
    #[arg(long, value_delimiter = ',')]
    pub script: Vec<String>,
    /// Where subject, verb and object stand in languages after the first, which stays as it is: svo,
    /// sov, vso, vos, ovs or osv.
    #[arg(long, value_delimiter = ',')]
    pub verb: Vec<String>,
    /// Which categories are marked on words, in every language.
    #[arg(long)]
    pub morphology: Option<MorphologyLevel>,
    /// Sentences in each corpus [default: 500000].
    #[arg(long, value_name = "N")]
    pub sentences: Option<usize>,
    /// Take the corpora after the first from a domain this far from the first's, 0..1.
    #[arg(long, value_name = "SHIFT")]
    pub domain_shift: Option<f64>,
    /// Words in the lexicon [default: 200].
    #[arg(long, value_name = "N")]
    pub lemmas: Option<usize>,
    /// Topics [default: 8].
    #[arg(long, value_name = "N")]
    pub topics: Option<usize>,
    /// End sentences in a full stop.
    #[arg(long)]
    pub punctuation: bool,
    /// Begin names with a capital.
    #[arg(long)]
    pub capitals: bool,
    /// Set any other key, as in `--set meaning.zipf=1.0` or `--set language.1.order.adjective=after`.
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum MorphologyLevel {
    /// Nothing.
    None,
    /// Number and tense.
    Light,
    /// Number, tense, agreement and case.
    Rich,
}

impl Request for Generate {
    const NAME: &str = "world generate";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["out"];
    const ON_DEVICE: bool = false;
    const THREADED: bool = false;
}

impl Generate {
    fn run(self) -> Result<Outcome, Failure> {
        let plan = self.keys.plan()?;
        let start = Instant::now();
        let mut progress = Progress::new("world", world::steps(&plan));
        let mut step = |note: &str| progress.step(note);
        let threads = Device::cpu(self.threads);
        let threads = threads.map_err(|error| Failure::Usage(error.to_string()))?;
        let generate = || world::generate(&plan, &self.out, self.force, &mut step);
        let manifest = threads.run(generate)?;
        drop(progress);
        let result = GenerateResult::new(&self.out, &manifest, start.elapsed().as_secs_f64());
        Ok(Outcome::new(in_words(&result), &result))
    }
}

fn in_words(result: &GenerateResult) -> String {
    let mut text = format!(
        "{}: {} meanings, {} sentences of text, {} files, {:.1} s\n",
        result.out.display(),
        result.meanings,
        result.sentences,
        result.files.len() + 1,
        result.seconds
    );
    for language in &result.languages {
        let order = format!("{:?}", language.order.verb).to_lowercase();
        let _ = writeln!(
            text,
            "  {}  {}, {order}, {} of {} content words as in {}",
            language.code,
            language.script.name(),
            language.anchors,
            language.content_words,
            result.languages[0].code,
        );
    }
    text
}

impl Show {
    fn run(self) -> Result<Outcome, Failure> {
        let plan = self.keys.plan()?;
        let (world, languages, trees) = world::excerpt(&plan, self.count);
        let mut text = String::new();
        let mut sentences = Vec::new();
        for tree in &trees {
            for language in &languages {
                let gloss = GlossedSentence::new(&world, language, tree);
                print(&gloss, &mut text);
                sentences.push(gloss);
            }
            text.push('\n');
        }
        Ok(Outcome::new(text, &serde_json::json!({ "sentences": sentences })))
    }
}

/// Three lines, with each word above its meaning and its head.
fn print(gloss: &GlossedSentence, text: &mut String) {
    let rows = [&gloss.words, &gloss.meanings, &gloss.relations];
    let width = |at: usize| rows.iter().map(|row| columns(&row[at])).max().unwrap_or(0);
    for (row, label) in rows.iter().zip([gloss.language.as_str(), "", ""]) {
        let mut line = format!("{label:<6}");
        for (at, word) in row.iter().enumerate() {
            let gap = width(at) - columns(word) + 1;
            let _ = write!(line, "{word}{:gap$}", "");
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// Columns on a terminal: Korean and Chinese characters take two.
fn columns(word: &str) -> usize {
    word.chars().map(|c| if c >= '\u{2E80}' { 2 } else { 1 }).sum()
}

impl Keys {
    /// The file, then the flags, then `--set`, checked.
    fn plan(self) -> Result<WorldPlan, Failure> {
        let mut config = match &self.config {
            None => WorldConfig::default().with_defaults(),
            Some(path) => {
                let origin = path.display().to_string();
                let text = files::limits::read_text(path).map_err(|error| match error.kind() {
                    io::ErrorKind::InvalidData => {
                        Failure::Usage(format!("{origin}: not UTF-8: {error}"))
                    }
                    _ => Failure::Failed(format!("{origin}: cannot read: {error}")),
                })?;
                WorldConfig::from_toml(&text, &origin)?
            }
        };
        self.world_keys(&mut config);
        self.language_keys(&mut config)?;
        for pair in &self.set {
            let Some((key, value)) = pair.split_once('=') else {
                let message = format!("--set {pair}: no value; write --set KEY=VALUE");
                return Err(Failure::Usage(message));
            };
            config = config.set(key.trim(), value.trim())?;
        }
        Ok(config.resolve()?)
    }

    fn world_keys(&self, config: &mut WorldConfig) {
        config.seed = self.seed.unwrap_or(config.seed);
        config.sentences = self.sentences.unwrap_or(config.sentences);
        config.meaning.lemmas = self.lemmas.unwrap_or(config.meaning.lemmas);
        config.meaning.topics = self.topics.unwrap_or(config.meaning.topics);
        config.punctuation |= self.punctuation;
        config.capitals |= self.capitals;
        if let Some(count) = self.languages {
            resize(&mut config.language, count.into());
        }
        if let Some(shift) = self.domain_shift {
            let name = "other".to_owned();
            config.domain.retain(|domain| domain.name != name);
            config.domain.push(other_domain(name.clone(), shift));
            for language in config.language.iter_mut().skip(1) {
                language.domains = Some(vec![name.clone()]);
            }
        }
        for language in &mut config.language {
            if let Some(level) = self.morphology {
                language.morphology =
                    MorphologyConfig { affix: language.morphology.affix, ..level.keys() };
            }
            if self.sentences.is_some() {
                language.sentences = None;
            }
        }
    }

    /// Lists go through `set`, which reads and refuses values as the file would.
    fn language_keys(&self, config: &mut WorldConfig) -> Result<(), Failure> {
        let numbers = |list: &[f64]| list.iter().map(f64::to_string).collect::<Vec<_>>();
        for (flag, key, values) in [
            ("distance", "distance", numbers(&self.distance)),
            ("anchors", "anchors", numbers(&self.anchors)),
            ("cognates", "cognates", numbers(&self.cognates)),
            ("script", "script", self.script.clone()),
            ("verb", "order.verb", self.verb.clone()),
        ] {
            let others = config.language.len().saturating_sub(1);
            if values.len() > 1 && values.len() != others {
                return Err(Failure::Usage(format!(
                    "--{flag}: {} values for {others} languages after the first; give one for all, \
                     or one for each",
                    values.len(),
                )));
            }
            for (at, value) in values.iter().cycle().take(others).enumerate() {
                let key = format!("language.{}.{key}", at + 1);
                *config = config.clone().set(&key, value)?;
            }
        }
        Ok(())
    }
}

impl MorphologyLevel {
    fn keys(self) -> MorphologyConfig {
        let (light, rich) = match self {
            MorphologyLevel::None => (false, false),
            MorphologyLevel::Light => (true, false),
            MorphologyLevel::Rich => (true, true),
        };
        MorphologyConfig {
            number: Some(light),
            tense: Some(light),
            agreement: Some(rich),
            case: Some(rich),
            affix: None,
        }
    }
}

/// Cuts the list, or adds plain languages under codes that are free.
fn resize(languages: &mut Vec<LanguageConfig>, count: usize) {
    let pool = WorldConfig::plain_languages(count + languages.len());
    languages.truncate(count);
    for language in pool {
        if languages.len() < count && languages.iter().all(|known| known.code != language.code) {
            languages.push(language);
        }
    }
}

/// Another domain: other topics and words, shorter documents, another style.
fn other_domain(name: String, shift: f64) -> DomainConfig {
    DomainConfig {
        name,
        shift,
        hidden: 0.2 * shift,
        document: [2, 6],
        adjectives: 0.5,
        relatives: 0.02,
        adjuncts: 0.15,
        pronouns: 0.15,
        ..DomainConfig::default()
    }
}
