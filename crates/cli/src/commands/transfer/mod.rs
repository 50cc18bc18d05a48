//! `isogloss transfer`: learned in one language, scored in the others.

mod report;
mod shift;
mod source;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tasks::finetune::{Pace, Recipe, SetConfig, TransferConfig, begin, resume};
use tasks::{Error, Task};

use self::report::in_words;
use self::shift::ShiftFlags;
use self::source::Source;
use super::manifest::Manifest;
use super::models::Compute;
use super::score::{Rules, TaskName};
use super::shown::Shown;
use super::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;

const EXAMPLES: &str = "Examples:
  Named entities of an invented language, found in another that shares no word with it:
    isogloss transfer --task ner --quick --model run --world world --out ner
  The papers' grid on real data (6 settings for ner and parse, 18 for nli), three seeds:
    isogloss transfer --task parse --model run --seeds 1,2,3 --out parse \\
        --train en=en_ewt-ud-train.conllu --dev en=en_ewt-ud-dev.conllu \\
        --test en=en_ewt-ud-test.conllu --test fr=fr_gsd-ud-test.conllu
  Only the upper layers learn:
    isogloss transfer --task nli --model run --train-layers 7-12 --rate 2e-5 --batch 32 \\
        --epochs 3 --train en=multinli.tsv --dev en=dev-en.tsv --test zh=test-zh.tsv --out nli
  Target languages shifted after layer 6, each as far as its dev file says (paper 2, 4.3):
    isogloss shift means --model run --text en='en.*.txt.zst' --text zh='zh.*.txt.zst'
    isogloss transfer --task nli --model run --train-layers 7-12 --shift-layer 6 \\
        --train en=multinli.tsv --dev en=dev-en.tsv --dev zh=dev-zh.tsv \\
        --test zh=test-zh.tsv --out shifted
  New layers over layer 6 of two encoders, the second mapped into the first (paper 1, 5.1.2):
    isogloss transfer --task ner --quick --feature-layer 6 --model en=run-en --model fr=run-fr \\
        --map fr=W.npy --train en=train-en.tsv --dev en=dev-en.tsv --test fr=test-fr.tsv \\
        --out mapped
  After a stop or a kill:
    isogloss transfer --resume --out nli";

const LONG: &str = "How it is done:
  Every combination of --batch, --rate and --head-rate is tried with every seed. After each epoch the
  source language's development set is scored; a setting stands for its best epoch, and the result is the
  mean of the best two settings by that score. No target language is looked at to choose anything. With
  several seeds, the mean over seeds is given with its 95 % interval.
  With --shift-layer, target languages are scored twice: as trained, and with the difference of means added
  after that layer. How much of it is chosen for each language and setting on the language's own --dev file;
  nothing else is, and nothing is trained anew.

Files:
  nli    premise<TAB>hypothesis<TAB>label
  ner    word<TAB>tag in BIO, WikiAnn's lang:word<TAB>tag, the columns of CoNLL-2003; Chinese also with a
         character a line
  parse  CoNLL-U
  All of them plain, gzip or zstd.
  Sentences longer than the encoder's input are read in parts and put together again (ner, parse); pairs
  lose the end of their longer sentence (nli). Both are counted and said.

The run's folder:
  predictions/ has every test file again with the best setting's answers (`isogloss score` rescores them; those
  after a shift are LANG.shifted.FILE),
  results.json every setting, metrics.jsonl every epoch, summary.json what is printed here.";

/// Flags of `transfer`.
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{LONG}\n\n{EXAMPLES}"))]
pub(crate) struct Transfer {
    /// The task.
    #[arg(long, required_unless_present = "resume")]
    task: Option<TaskName>,

    /// The run's folder.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Go on with the run in the folder.
    #[arg(long, conflicts_with_all = [
        "task", "model", "vectors", "world", "train", "dev", "test", "quick", "batch", "rate", "head_rate",
        "epochs", "pace", "dropout", "weight_decay", "clip", "seeds", "allow_unseen", "first",
        "train_layers", "feature_layer", "map", "new_layers", "shift_layer",
    ])]
    resume: bool,

    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    shift: ShiftFlags,

    /// A folder of `world generate`: train and choose on its first language, score them all.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["train", "dev", "test"])]
    world: Option<PathBuf>,

    /// The labelled file to learn from.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text)]
    train: Option<(String, String)>,

    /// The labelled file to choose epochs and settings by. With --shift-layer, one for each target
    /// language too: the weight of its shift, and nothing else, is chosen by it.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text)]
    dev: Vec<(String, String)>,

    /// A labelled file to score; repeat for more.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text)]
    test: Vec<(String, String)>,

    #[command(flatten)]
    grid: Grid,

    #[command(flatten)]
    rules: Rules,

    /// Let labels stand in the other files that training never saw; they count as mistakes.
    #[arg(long)]
    allow_unseen: bool,

    /// Take only the first items of the training file.
    #[arg(long, value_name = "N")]
    first: Option<usize>,

    #[command(flatten)]
    compute: Compute,
}

/// What is tried. The defaults are paper 1's.
#[derive(Args)]
struct Grid {
    /// One setting that suits small encoders, in place of the papers' grid.
    #[arg(long)]
    quick: bool,

    /// Sequences a batch, each to be tried [papers: 16,32; nli 4,8].
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    batch: Vec<usize>,

    /// Rates of learning, each to be tried [papers: 2e-5,3e-5,5e-5; nli 1.25e-6,2.5e-6,5e-6].
    #[arg(long, value_name = "R,R", value_delimiter = ',')]
    rate: Vec<f64>,

    /// Rates of the task's own layers, each to be tried [papers: as --rate; nli
    /// 5e-6,2.5e-5,1.25e-4].
    #[arg(long, value_name = "R,R", value_delimiter = ',')]
    head_rate: Vec<f64>,

    /// Passes over the training file [papers: 10; nli 200].
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,

    /// How the rate goes [papers: linear; nli fixed].
    #[arg(long)]
    pace: Option<PaceName>,

    /// Dropout within the task's own layers [papers: 0.1; parse 0.33].
    #[arg(long, value_name = "SHARE")]
    dropout: Option<f32>,

    /// Weight decay.
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    weight_decay: f32,

    /// The largest norm of all gradients together.
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    clip: f32,

    /// Each repeats the whole grid.
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_value = "1")]
    seeds: Vec<u64>,
}

/// A pace by name.
#[derive(Clone, Copy, ValueEnum)]
enum PaceName {
    /// Up over the first tenth of the steps, then down to nothing.
    Linear,
    /// Always the same.
    Fixed,
}

/// The sets of a run.
struct Sets {
    train: SetConfig,
    dev: SetConfig,
    tests: Vec<SetConfig>,
    /// Development sets of target languages.
    targets: Vec<SetConfig>,
}

impl Transfer {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
        let device = self.compute.device()?;
        let mut shown = Shown::new("steps");
        let summary = if self.resume {
            resume(&self.out, &device, &mut shown)
        } else {
            begin(&self.config()?, &self.out, &device, &mut shown)
        };
        drop(shown);
        let summary = summary.map_err(|error| match error {
            Error::Text(text::Error::Request { .. })
            | Error::Config(_)
            | Error::Shift(::shift::Error::Request(_)) => usage(&error),
            error => error.into(),
        })?;
        let outcome = Outcome::new(in_words(&summary, &self.out), &summary);
        Ok(if summary.finished { outcome } else { outcome.stopped() })
    }

    fn config(&self) -> Result<TransferConfig, Failure> {
        let task: Task = self.task.ok_or_else(|| missing("--task"))?.into();
        self.rules.check(task)?;
        let Sets { train, dev, tests, targets } = match &self.world {
            Some(world) => of_world(world, task, self.shift.asked())?,
            None => self.named_sets()?,
        };
        let all = [&train, &dev].into_iter().chain(&tests);
        let languages: Vec<&str> = all.map(|set| set.language.as_str()).collect();
        let features = self.source.config(&languages)?;
        let grid = &self.grid;
        let recipe = if grid.quick { Recipe::quick(task) } else { Recipe::paper(task) };
        let or = |given: &[f64], default: Vec<f64>| match given {
            [] => default,
            given => given.to_vec(),
        };
        // Rates that are given mean the head too, unless it has its own.
        let head_default = if grid.rate.is_empty() { recipe.head_rate } else { Vec::new() };
        Ok(TransferConfig {
            task,
            batch: if grid.batch.is_empty() { recipe.batch } else { grid.batch.clone() },
            rate: or(&grid.rate, recipe.rate),
            head_rate: or(&grid.head_rate, head_default),
            epochs: grid.epochs.unwrap_or(recipe.epochs),
            pace: match grid.pace {
                None => recipe.pace,
                Some(PaceName::Linear) => Pace::Linear,
                Some(PaceName::Fixed) => Pace::Fixed,
            },
            seeds: grid.seeds.clone(),
            dropout: grid.dropout.unwrap_or(recipe.dropout),
            weight_decay: grid.weight_decay,
            clip: grid.clip,
            repair: self.rules.repair(),
            relations: self.rules.relations(),
            allow_unseen: self.allow_unseen,
            first: self.first,
            parser: None,
            features,
            shift: self.shift.config(self.source.folder(), targets)?,
            train,
            dev,
            tests,
        })
    }

    fn named_sets(&self) -> Result<Sets, Failure> {
        let set = |(language, file): &(String, String)| SetConfig {
            language: language.clone(),
            file: file.into(),
        };
        let train = self.train.as_ref().ok_or_else(|| missing("--train LANG=FILE, or --world"))?;
        let (own, others): (Vec<_>, Vec<_>) =
            self.dev.iter().partition(|(language, _)| *language == train.0);
        let dev = match own.as_slice() {
            [] => return Err(missing(&format!("--dev {}=FILE", train.0))),
            [dev] => set(dev),
            _ => return Err(Failure::Usage(format!("--dev {}=FILE: give one", train.0))),
        };
        if self.test.is_empty() {
            return Err(missing("--test LANG=FILE"));
        }
        let tests = self.test.iter().map(set).collect();
        Ok(Sets { train: set(train), dev, tests, targets: others.into_iter().map(set).collect() })
    }
}

fn missing(flag: &str) -> Failure {
    Failure::Usage(format!("{flag} is missing; see `isogloss transfer --help` for examples"))
}

/// The labelled files of a world: learned and chosen in its first language, scored in all. Where the
/// others are shifted, their development sets too.
fn of_world(folder: &Path, task: Task, shifted: bool) -> Result<Sets, Failure> {
    let manifest = Manifest::read(folder)?;
    let kind = match task {
        Task::Nli => "nli",
        Task::Ner => "ner",
        Task::Parse => "treebank",
    };
    let find = |language: &str, split: &str| {
        let found = manifest.files.iter().find(|file| {
            let of_split = file.split.as_deref() == Some(split);
            file.kind == kind && of_split && file.languages.iter().any(|name| name == language)
        });
        let file = found.ok_or_else(|| {
            let folder = folder.display();
            Failure::Usage(format!("{folder} has no {kind} file of {language} for {split}"))
        })?;
        Ok(SetConfig { language: language.to_owned(), file: folder.join(&file.path) })
    };
    let first = manifest.languages[0].code.as_str();
    let tests = manifest.languages.iter().map(|language| find(&language.code, "test"));
    let others = manifest.languages.iter().skip(1).filter(|_| shifted);
    let targets = others.map(|language| find(&language.code, "dev"));
    Ok(Sets {
        train: find(first, "train")?,
        dev: find(first, "dev")?,
        tests: tests.collect::<Result<_, Failure>>()?,
        targets: targets.collect::<Result<_, Failure>>()?,
    })
}
