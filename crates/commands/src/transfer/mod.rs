//! `isogloss transfer`: fine-tuned in one language, scored in the others.

mod report;
mod shift;
mod source;

use std::path::{Path, PathBuf};

use crate::measured::Extractor;
use clap::{Args, ValueEnum};
use serde::Serialize;
use tasks::finetune::{
    FeaturesConfig, FinetuneRecipe, LrSchedule, RecipeOverrides, SetConfig, TransferConfig, begin,
    resume, saved_config,
};
use tensor::Device;
use terms::{Fault, Task};
use world::Manifest;

use self::report::in_words;
use self::shift::ShiftFlags;
use self::source::SourceFlags;
use super::models::Compute;
use super::record::{RecordFlags, system_of};
use super::score::{RuleFlags, task_values};
use super::texts::parse_text;
use super::training_view::TrainingView;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  NER in an invented language, transferred to another that shares no word with it:
    isogloss transfer --task ner --quick --model run --world world --out ner
  The papers' grid on real data (6 settings; 18 for nli), three seeds:
    isogloss transfer --task parse --model run --seeds 1,2,3 --out parse \\
        --train en=en_ewt-ud-train.conllu --dev en=en_ewt-ud-dev.conllu \\
        --test en=en_ewt-ud-test.conllu --test fr=fr_gsd-ud-test.conllu
  Single-sentence classification, trained on a random sample:
    isogloss transfer --task classify --quick --model run --sample-size 2000 --out topics \\
        --train en=train-en.tsv --dev en=dev-en.tsv --test fr=test-fr.tsv
  Only the upper layers are trained:
    isogloss transfer --task nli --model run --train-layers 7-12 --lr 2e-5 --batch 32 \\
        --epochs 3 --train en=multinli.tsv --dev en=dev-en.tsv --test zh=test-zh.tsv --out nli
  Target languages shifted after layer 6, alpha chosen on each dev file (Liu et al. 2020, 4.3):
    isogloss shift means --model run --text en='en.*.txt.zst' --text zh='zh.*.txt.zst' \\
        --out run/means.safetensors
    isogloss transfer --task nli --model run --train-layers 7-12 --shift-layer 6 \\
        --train en=multinli.tsv --dev en=dev-en.tsv --dev zh=dev-zh.tsv \\
        --test zh=test-zh.tsv --out shifted
  New layers over layer 6 of two encoders, mapped (Conneau et al. 2020, 5.1.2):
    isogloss transfer --task ner --quick --feature-layer 6 --model en=run-en --model fr=run-fr \\
        --map fr=W.npy --train en=train-en.tsv --dev en=dev-en.tsv --test fr=test-fr.tsv \\
        --out mapped
  After a stop or a kill:
    isogloss transfer --resume --out nli";

const LONG: &str = "Method:
  Every combination of --batch, --lr and --head-lr is tried with every seed. After each epoch the source
  language's development set is scored; a setting stands for its best epoch, and the result is the mean of the
  best two settings by that score. No target language is looked at to choose anything. With several seeds, the
  mean over seeds is given with its 95 % interval. Beside it stand two baselines: uniform guessing among the
  labels (chance), and predicting the most frequent label of the training file (majority). Test items that are
  trained on too, word for word, are counted; the score of the others stands beside that of all.
  With --shift-layer, target languages are scored twice: without and with the difference of mean vectors added
  after that layer. Its weight alpha is chosen for each language and setting on the language's own --dev file;
  nothing else is, and nothing is trained anew.

Files:
  nli       premise<TAB>hypothesis<TAB>label
  ner       word<TAB>tag in BIO, WikiAnn's lang:word<TAB>tag, the columns of CoNLL-2003; Chinese also with one
            character on each line
  parse     CoNLL-U
  pos       CoNLL-U (the column UPOS), or word<TAB>tag
  classify  sentence<TAB>label
  All of them plain, gzip or zstd; columns may have a header. Sentences longer than the encoder's input are
  read in segments and put together again (ner, parse, pos) or lose their end (classify); pairs lose the end of
  their longer sentence (nli). Both are counted and reported.

The run's folder:
  predictions/ has every test file again with the best setting's predictions (`isogloss score` rescores them;
  those after a shift are LANG.shifted.FILE), results.json every setting, metrics.jsonl every epoch,
  summary.json what is printed here.";

#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES, after_long_help = format!("{LONG}\n\n{EXAMPLES}"))]
pub struct Transfer {
    /// The task.
    #[arg(long, value_parser = task_values(), required_unless_present = "resume")]
    pub task: Option<Task>,

    /// The run's folder.
    #[arg(long, short, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace the run in the folder.
    #[arg(long, short, conflicts_with = "resume", help_heading = "Output")]
    pub force: bool,

    /// Continue the run in the folder. Other flags may be given again, and must be as they were.
    #[arg(long, help_heading = "Output")]
    pub resume: bool,

    #[command(flatten)]
    pub data: DataFlags,

    #[command(flatten)]
    pub source: SourceFlags,

    #[command(flatten)]
    pub grid: GridFlags,

    #[command(flatten)]
    pub rules: RuleFlags,

    #[command(flatten)]
    pub shift: ShiftFlags,

    /// How many settings of the grid are trained side by side, on a GPU each in a stream of its own; 0 takes up
    /// to 8 on a GPU, one on the CPU. Each needs memory of its own. It changes no result.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Compute")]
    pub jobs: u16,

    #[command(flatten)]
    pub record: RecordFlags,

    #[command(flatten)]
    pub compute: Compute,
}

/// Settings that are trained side by side on a GPU where nothing else is asked for.
const JOBS_ON_GPU: usize = 8;

#[derive(Args, Serialize)]
pub struct DataFlags {
    /// A folder of `world generate`: train and choose on its first language, score them all.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["train", "dev", "test"], help_heading = "Input")]
    pub world: Option<PathBuf>,

    /// The labelled file to train on.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Input")]
    pub train: Option<(String, String)>,

    /// The labelled file to choose epochs and settings on. With --shift-layer, one for each target language
    /// too: the weight of its shift, and nothing else, is chosen on it.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Input")]
    pub dev: Vec<(String, String)>,

    /// A labelled file to score; repeat for more.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, help_heading = "Input")]
    pub test: Vec<(String, String)>,

    /// A labelled file of a language that has but one: its first, third and further odd items are its --dev
    /// file, its even items its --test file, so that nothing is chosen on what is reported.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, conflicts_with = "world",
        help_heading = "Input")]
    pub halves: Vec<(String, String)>,

    /// Train on the first N items of the training file only.
    #[arg(
        long,
        short = 'n',
        value_name = "N",
        conflicts_with = "sample_size",
        help_heading = "Input"
    )]
    pub limit: Option<usize>,

    /// Train on a random sample of N items of the training file; the first of --seeds decides it.
    #[arg(long, value_name = "N", help_heading = "Input")]
    pub sample_size: Option<usize>,

    /// Accept labels in the other files that the training file lacks; they count as mistakes.
    #[arg(long, help_heading = "Input")]
    pub allow_unseen: bool,
}

/// The grid of settings. The defaults are those of Conneau et al. 2020.
#[derive(Args, Serialize)]
pub struct GridFlags {
    /// One setting that suits the encoder's size, in place of the papers' grid. Hidden states below 128
    /// columns: learning rate 1e-3. From 128 on: 2e-4 for the encoder and 1e-3 for the head; nli 1e-4 for
    /// both, 3 epochs (chosen on English development sets). From 640 on: 3e-5.
    #[arg(long, help_heading = "Training")]
    pub quick: bool,

    /// Batch sizes in sequences, each to be tried [papers: 16,32; nli 4,8].
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Training")]
    pub batch: Vec<usize>,

    /// Learning rates, each to be tried [papers: 2e-5,3e-5,5e-5; nli 1.25e-6,2.5e-6,5e-6].
    #[arg(long, value_name = "R,R", value_delimiter = ',', help_heading = "Training")]
    pub lr: Vec<f64>,

    /// Learning rates of the head, each to be tried [papers: as --lr; nli 5e-6,2.5e-5,1.25e-4].
    #[arg(long, value_name = "R,R", value_delimiter = ',', help_heading = "Training")]
    pub head_lr: Vec<f64>,

    /// Epochs over the training file [papers: 10; nli 200, classify 4].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub epochs: Option<u32>,

    /// Train a setting again at half the learning rates, up to N times, where it ends no better than the most
    /// frequent label on the source language's development set; only where a seed has one setting
    /// [default: 0; 2 with --quick for nli from 128 columns on].
    #[arg(long, value_name = "N", help_heading = "Training")]
    pub restarts: Option<u32>,

    /// The schedule of the learning rate [papers: linear; nli constant].
    #[arg(long, help_heading = "Training")]
    pub schedule: Option<ScheduleName>,

    /// Dropout within the head [papers: 0.1; parse 0.33].
    #[arg(long, value_name = "SHARE", help_heading = "Training")]
    pub dropout: Option<f32>,

    /// Weight decay [default: 0].
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub weight_decay: Option<f32>,

    /// The largest norm of all gradients together [default: 1].
    #[arg(long, value_name = "X", help_heading = "Training")]
    pub clip: Option<f32>,

    /// Each repeats the whole grid [default: 1].
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Training")]
    pub seeds: Vec<u64>,
}

#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// Warmup over the first tenth of the steps, then linear decay to 0.
    Linear,
    /// Always the same.
    Constant,
}

impl GridFlags {
    fn overrides(&self) -> RecipeOverrides {
        RecipeOverrides {
            batch: self.batch.clone(),
            lr: self.lr.clone(),
            head_lr: self.head_lr.clone(),
            epochs: self.epochs,
            schedule: self.schedule.map(|name| match name {
                ScheduleName::Linear => LrSchedule::Linear,
                ScheduleName::Constant => LrSchedule::Constant,
            }),
            dropout: self.dropout,
            restarts: self.restarts,
        }
    }

    /// The recipe of a task as the flags change it; of a run that is resumed, its own.
    fn recipe(
        &self,
        task: Task,
        features: &FeaturesConfig,
        saved: Option<&TransferConfig>,
    ) -> FinetuneRecipe {
        let Some(saved) = saved.filter(|_| !self.quick) else {
            let recipe = match self.quick {
                true => FinetuneRecipe::quick_for(task, features.encoder_size()),
                false => FinetuneRecipe::of_papers(task),
            };
            return recipe.with(&self.overrides());
        };
        let own = FinetuneRecipe {
            batch: saved.batch.clone(),
            lr: saved.lr.clone(),
            head_lr: saved.head_lr.clone(),
            epochs: saved.epochs,
            schedule: saved.schedule,
            dropout: saved.dropout,
            restarts: saved.restarts,
        };
        let mut recipe = own.with(&self.overrides());
        if self.head_lr.is_empty() {
            recipe.head_lr.clone_from(&saved.head_lr);
        }
        recipe
    }
}

struct NamedSets {
    train: SetConfig,
    dev: SetConfig,
    tests: Vec<SetConfig>,
    targets: Vec<SetConfig>,
}

impl Request for Transfer {
    const NAME: &str = "transfer";
    const REVISION: u32 = 4;
    const LAST: &[&str] = &[
        "limit",
        "seeds",
        "feature_layer",
        "model",
        "vectors",
        "reinit_layers",
        "train_layers",
        "map",
        "means",
        "shift_layer",
        "out",
    ];
}

impl Transfer {
    pub fn run(self) -> Result<Outcome, Failure> {
        let mut shown = TrainingView::new("steps");
        // A process that was killed at once has left nothing but a lock.
        let nothing_yet = self.out.is_dir() && files::is_vacant(&self.out) && self.task.is_some();
        let resumed = self.resume && !nothing_yet;
        let saved = resumed.then(|| saved_config(&self.out)).transpose().map_err(of_tasks)?;
        let config = self.config(saved.as_ref())?;
        let devices = self.devices(&config)?;
        let result = match resumed {
            true => resume(&config, &self.out, &devices, &mut shown),
            false => begin(&config, &self.out, self.force, &devices, &mut shown),
        };
        drop(shown);
        let result = result.map_err(of_tasks)?;
        let outcome = Outcome::new(in_words(&result, &self.out), &result);
        let outcome = if result.finished { outcome } else { outcome.stopped() };
        let (task, source, seed) = (config.task, config.train.language, config.seeds[0]);
        let extractor = match result.shift {
            Some(_) => Extractor::ShiftedTransfer { task, source },
            None => Extractor::Transfer { task, source },
        };
        let known = [("task", task.name().to_owned())];
        let known = known.into_iter().chain(self.source.folder().and_then(system_of));
        Ok(self.record.keep(outcome, extractor, seed, known))
    }

    /// A device for each setting that is trained side by side with others.
    fn devices(&self, config: &TransferConfig) -> Result<Vec<Device>, Failure> {
        let jobs = match self.jobs {
            0 if self.compute.device()?.is_gpu() => JOBS_ON_GPU,
            0 => 1,
            jobs => jobs.into(),
        };
        self.compute.devices(jobs.min(config.settings().len()))
    }

    /// The configuration that is asked for. Where a run is resumed, what is not given is as it was.
    fn config(&self, saved: Option<&TransferConfig>) -> Result<TransferConfig, Failure> {
        let task = self.task.or(saved.map(|saved| saved.task)).ok_or_else(|| missing("--task"))?;
        let NamedSets { train, dev, tests, targets } = self.sets(task, saved)?;
        let all = [&train, &dev].into_iter().chain(&tests);
        let languages: Vec<&str> = all.map(|set| set.language.as_str()).collect();
        let features = self.source.config(&languages, saved.map(|saved| &saved.features))?;
        let shift = self.shift.config(
            self.source.folder(),
            targets,
            saved.and_then(|saved| saved.shift.as_ref()),
        )?;
        let (grid, data) = (&self.grid, &self.data);
        let FinetuneRecipe { batch, lr, head_lr, epochs, schedule, dropout, restarts } =
            grid.recipe(task, &features, saved);
        let rules = self.rules.rules(saved.map(TransferConfig::rules).unwrap_or_default());
        let seeds = match (grid.seeds.as_slice(), saved) {
            ([], Some(saved)) => saved.seeds.clone(),
            ([], None) => vec![1],
            (seeds, _) => seeds.to_vec(),
        };
        let of_saved = |number: fn(&TransferConfig) -> f32, default| saved.map_or(default, number);
        Ok(TransferConfig {
            task,
            batch,
            lr,
            head_lr,
            epochs,
            restarts,
            schedule,
            seeds,
            dropout,
            weight_decay: grid.weight_decay.unwrap_or(of_saved(|saved| saved.weight_decay, 0.0)),
            clip: grid.clip.unwrap_or(of_saved(|saved| saved.clip, 1.0)),
            repair: rules.repair,
            relations: rules.relations,
            allow_unseen: data.allow_unseen || saved.is_some_and(|saved| saved.allow_unseen),
            limit: data.limit.or(saved.and_then(|saved| saved.limit)),
            sample_size: data.sample_size.or(saved.and_then(|saved| saved.sample_size)),
            parser: saved.and_then(|saved| saved.parser),
            features,
            shift,
            train,
            dev,
            tests,
        })
    }

    fn sets(&self, task: Task, saved: Option<&TransferConfig>) -> Result<NamedSets, Failure> {
        let shifted = self.shift.asked() || saved.is_some_and(|saved| saved.shift.is_some());
        if let Some(world) = &self.data.world {
            return of_world(world, task, shifted);
        }
        let set = |(language, file): &(String, String)| SetConfig::whole(language, file);
        let halves: Vec<[SetConfig; 2]> = self
            .data
            .halves
            .iter()
            .map(|(language, file)| SetConfig::halves(language, file))
            .collect();
        let mut devs: Vec<SetConfig> = self.data.dev.iter().map(set).collect();
        let mut tests: Vec<SetConfig> = self.data.test.iter().map(set).collect();
        for [dev, test] in halves {
            // Without a shift nothing is chosen on a target language, and the half is not read.
            let source = self.data.train.as_ref().map(|(language, _)| language);
            if shifted || source == Some(&dev.language) {
                devs.push(dev);
            }
            tests.push(test);
        }
        let train = match (&self.data.train, saved) {
            (Some(train), _) => set(train),
            (None, Some(saved)) => saved.train.clone(),
            (None, None) => return Err(missing("--train LANG=FILE, or --world")),
        };
        let (own, others): (Vec<_>, Vec<_>) =
            devs.into_iter().partition(|dev| dev.language == train.language);
        let dev = match (own.as_slice(), saved) {
            ([dev], _) => dev.clone(),
            ([], Some(saved)) => saved.dev.clone(),
            ([], None) => return Err(missing(&format!("--dev {}=FILE", train.language))),
            _ => return Err(Failure::Usage(format!("--dev {}=FILE: give one", train.language))),
        };
        let tests = match (tests.is_empty(), saved) {
            (true, None) => return Err(missing("--test LANG=FILE")),
            (true, Some(saved)) => saved.tests.clone(),
            (false, _) => tests,
        };
        let of_saved = saved.and_then(|saved| saved.shift.as_ref()).map(|shift| shift.devs.clone());
        let targets = match others.is_empty() {
            true => of_saved.unwrap_or_default(),
            false => others,
        };
        Ok(NamedSets { train, dev, tests, targets })
    }
}

/// A failure of the library, with the flag that sets the key which it names.
pub(super) fn of_tasks(error: tasks::Error) -> Failure {
    let flag = match error.key() {
        Some("relations") => Some("--full-labels".to_owned()),
        Some("tests") => Some("--test".to_owned()),
        Some(key) => Some(format!("--{}", key.replace(['_', '.'], "-"))),
        None => None,
    };
    match (error.is_usage(), flag) {
        (true, Some(flag)) => Failure::Usage(format!("{error} ({flag})")),
        (true, None) => Failure::Usage(error.to_string()),
        (false, _) => error.into(),
    }
}

fn missing(flag: &str) -> Failure {
    Failure::Usage(format!("{flag} is missing; see `isogloss transfer --help` for examples"))
}

/// The labelled files of a world: trained and chosen in its first language, scored in all. Where the
/// others are shifted, their development sets too.
fn of_world(folder: &Path, task: Task, shifted: bool) -> Result<NamedSets, Failure> {
    let manifest = Manifest::read(folder)?;
    let kind = task.kind();
    let find = |language: &str, split: &str| {
        let file = manifest.files.iter().find(|file| {
            let of_split = file.split.as_deref() == Some(split);
            file.kind == kind && of_split && file.languages.iter().any(|name| name == language)
        });
        let file = file.ok_or_else(|| {
            let folder = folder.display();
            Failure::Usage(format!("{folder} has no {kind} file of {language} for {split}"))
        })?;
        Ok(SetConfig::whole(language, folder.join(&file.path)))
    };
    let first = manifest.languages[0].code.as_str();
    let tests = manifest.languages.iter().map(|language| find(&language.code, "test"));
    let others = manifest.languages.iter().skip(1).filter(|_| shifted);
    let targets = others.map(|language| find(&language.code, "dev"));
    Ok(NamedSets {
        train: find(first, "train")?,
        dev: find(first, "dev")?,
        tests: tests.collect::<Result<_, Failure>>()?,
        targets: targets.collect::<Result<_, Failure>>()?,
    })
}
