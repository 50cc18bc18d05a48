//! What commands that look into trained encoders have in common: which model, where it runs, which
//! layers.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use geometry::Step;
use models::PretrainedModel;
use models::parallel::{ParallelSide, read_pair, read_pair_some};
use models::sentences::{EncodedPairs, encode_pairs};
use models::states::Pooling;
use serde::Serialize;
use tensor::{Device, DeviceError};
use terms::Fault as _;

use super::texts::{ColumnsFlag, RowFlags, parse_text};
use crate::failure::Failure;
use crate::progress::Waiting;

/// Where a command computes.
#[derive(Args, Serialize)]
#[command(next_help_heading = "Compute")]
pub struct Compute {
    /// Where to run; auto takes a GPU where one can be used, cpu-bf16 multiplies numbers rounded to bf16 on CPUs that have
    /// AVX-512 BF16: faster, less exact.
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu", "cpu-bf16", "cuda"])]
    device: String,

    /// CPU threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    /// The device, once it was opened.
    #[arg(skip)]
    #[serde(skip)]
    opened: OnceLock<Device>,
}

impl Compute {
    pub fn device(&self) -> Result<Device, Failure> {
        if let Some(device) = self.opened.get() {
            return Ok(device.clone());
        }
        let device = open_device(&self.device, self.threads)?;
        Ok(self.opened.get_or_init(|| device).clone())
    }

    /// The device of one of several processes on this machine: a GPU each, or a share of the cores.
    pub fn device_of_rank(&self, number: usize, count: usize) -> Result<Device, Failure> {
        open_numbered(&self.device, share_of_cores(self.threads, count), number)
    }

    /// Devices for so many computations side by side: of a GPU each has a stream and memory of its own, of the
    /// CPU a share of the threads.
    pub fn devices(&self, count: usize) -> Result<Vec<Device>, Failure> {
        let first = self.device()?;
        match first.is_gpu() {
            _ if count <= 1 => Ok(vec![first]),
            true => {
                let others = (1..count).map(|_| open_device("cuda", self.threads));
                std::iter::once(Ok(first)).chain(others).collect()
            }
            false => {
                let threads = share_of_cores(self.threads, count);
                let name = if self.device == "auto" { "cpu" } else { &self.device };
                (0..count).map(|_| open_device(name, threads)).collect()
            }
        }
    }

    /// Runs work on the CPU's threads, and gives it the device, which it may use.
    pub fn run<R: Send>(&self, work: impl FnOnce(&Device) -> R + Send) -> Result<R, Failure> {
        let device = self.device()?;
        let threads = match device.is_gpu() {
            false => device.clone(),
            true => Device::cpu(self.threads).map_err(|error| device_failure(&error))?,
        };
        Ok(threads.run(|| work(&device)))
    }

    pub fn open(&self, folder: &Path) -> Result<PretrainedModel, Failure> {
        Ok(PretrainedModel::open(folder, &self.device()?)?)
    }

    /// Opens a model, or saved states, for vectors of sentences.
    pub fn open_states(
        &self,
        folder: &Path,
        flags: &SentenceFlags,
    ) -> Result<PretrainedModel, Failure> {
        let mut model = PretrainedModel::open_states(folder, &self.device()?)?;
        let SentenceFlags { pool, prompt } = flags;
        if pool.is_some() || prompt.is_some() {
            let pooling = pool.unwrap_or(PoolFlag::Mean).pooling();
            model.set_sentence_vectors(pooling, prompt.as_deref())?;
        }
        Ok(model)
    }
}

/// Which vector stands for a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PoolFlag {
    /// The mean of its tokens, special tokens left out.
    Mean,
    /// The special token before it (`[CLS]`, `<s>`).
    First,
    /// Its last token, which in a decoder has seen all of it.
    Last,
    /// The mean of its tokens, in which each weighs as much as its place: 1, 2, … (for decoders).
    Weighted,
    /// None: each of its tokens has its own row.
    None,
    /// As the model's own files of sentence-transformers say (modules.json): pooling at every layer, dense layers and
    /// normalisation at the last.
    Own,
}

impl PoolFlag {
    /// The same for the library; none of the model's own.
    pub(crate) fn pooling(self) -> Option<Pooling> {
        match self {
            Self::Mean => Some(Pooling::Mean),
            Self::First => Some(Pooling::First),
            Self::Last => Some(Pooling::Last),
            Self::Weighted => Some(Pooling::Weighted),
            Self::None => Some(Pooling::None),
            Self::Own => None,
        }
    }
}

/// How sentences are read, and which vector stands for each.
#[derive(Args, Default, Serialize)]
pub struct SentenceFlags {
    /// Which vector stands for a sentence: the mean of its tokens, the special token before it (first), its last token, a mean
    /// weighted by place, or the model's own as sentence-transformers makes it [default: mean].
    #[arg(long, value_name = "POOL", value_parser = one_vector(), help_heading = "Input")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolFlag>,

    /// Text that is put before every sentence, such as "query: ", or the name of one of the model's own prompts.
    #[arg(long, value_name = "TEXT", help_heading = "Input")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A parser of what gives a sentence one vector.
fn one_vector() -> impl TypedValueParser<Value = PoolFlag> {
    PossibleValuesParser::new(["mean", "first", "last", "weighted", "own"])
        .map(|name| PoolFlag::from_str(&name, false).expect("one of them"))
}

/// The threads of each of `count` computations side by side, of so many in all; 0 stands for every core.
fn share_of_cores(threads: usize, count: usize) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores() } else { threads };
    (threads / count).max(1)
}

/// Opens the device of a name. Where `auto` could not take the GPU that is there, one line says why.
pub fn open_device(name: &str, threads: usize) -> Result<Device, Failure> {
    open_numbered(name, threads, 0)
}

/// The same, of several GPUs the one of this number.
fn open_numbered(name: &str, threads: usize, gpu: usize) -> Result<Device, Failure> {
    let device = Device::numbered(name, threads, gpu);
    let device = device.map_err(|error| device_failure(&error))?;
    if let Some(obstacle) = device.obstacle() {
        say!("the GPU is not used: {obstacle}");
    }
    Ok(device)
}

/// Why a device cannot be used, and the flag that helps.
fn device_failure(error: &DeviceError) -> Failure {
    let remedy = match error {
        DeviceError::Unknown(_) | DeviceError::TooManyThreads { .. } => "",
        DeviceError::Threads { .. } => " (--threads)",
        _ => "; or take --device cpu",
    };
    let key = error.key().map(str::to_owned);
    Failure::Library { message: format!("{error}{remedy}"), usage: true, key }
}

/// Which layers: `all`, or numbers and ranges; 0 is the embeddings.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "String")]
pub enum Layers {
    All,
    Some(Vec<std::ops::RangeInclusive<usize>>),
}

impl FromStr for Layers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Layers::All);
        }
        let range = |item: &str| {
            let (first, last) = item.split_once('-').unwrap_or((item, item));
            let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
            (first <= last).then_some(first..=last)
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges
            .map(Layers::Some)
            .ok_or_else(|| "write all, or layers such as 0,4-8; 0 is the embeddings".into())
    }
}

impl From<Layers> for String {
    fn from(layers: Layers) -> Self {
        let Layers::Some(ranges) = layers else { return "all".to_owned() };
        let range = |range: &std::ops::RangeInclusive<usize>| match range.start() == range.end() {
            true => range.start().to_string(),
            false => format!("{}-{}", range.start(), range.end()),
        };
        ranges.iter().map(range).collect::<Vec<_>>().join(",")
    }
}

impl Layers {
    pub fn one(layer: usize) -> Self {
        Layers::Some(vec![layer..=layer])
    }

    /// The layers that are meant, of a model with so many above the embeddings.
    pub fn of(&self, above: usize) -> Result<Vec<usize>, Failure> {
        let Layers::Some(ranges) = self else { return Ok((0..=above).collect()) };
        if let Some(range) = ranges.iter().find(|range| *range.end() > above) {
            let message = format!("--layers {}: there are layers 0 to {above}", range.end());
            return Err(Failure::Usage(message));
        }
        let mut layers: Vec<usize> = ranges.iter().cloned().flatten().collect();
        layers.sort_unstable();
        layers.dedup();
        Ok(layers)
    }
}

/// How vectors are normalised before a map is learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// Unit length and centring alternated five times, then unit length (Zhang et al. 2019).
    Iterative,
    /// The mean is subtracted.
    Center,
    /// Unit length.
    Unit,
    /// Raw vectors.
    None,
}

pub(crate) fn steps(chosen: &[Normalize]) -> Vec<Step> {
    let step = |normalize: &Normalize| match normalize {
        Normalize::Iterative => Some(Step::Iterative),
        Normalize::Center => Some(Step::Center),
        Normalize::Unit => Some(Step::Unit),
        Normalize::None => None,
    };
    chosen.iter().filter_map(step).collect()
}

/// The flags by which parallel text is given to commands that encode it.
#[derive(Args, Serialize)]
pub struct ParallelTextFlags {
    /// The folder of a run, or a Hugging Face folder, to encode --parallel with: one for both sides, or
    /// one for each.
    #[arg(
        short,
        long = "model",
        value_name = "DIR",
        requires = "parallel",
        help_heading = "Input"
    )]
    pub models: Vec<PathBuf>,

    /// Parallel text: given twice, line i translates line i; or once as A-B=FILE.tsv, two columns. Repeat
    /// for more files of either language, which add up in the order given. Rows that repeat an earlier one
    /// on both sides, and rows of which a side is longer than the model reads, are left out and counted.
    /// Plain, gzip or zstd.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, requires = "models",
        help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    #[command(flatten)]
    pub rows: RowFlags,

    /// Which vectors they are given.
    #[command(flatten)]
    #[serde(flatten)]
    pub sentences: SentenceFlags,
}

impl ParallelTextFlags {
    /// Encodes both sides of the parallel text, each by its model, and both sides of other parallel text
    /// beside it. Also says which layers of the first model these are. The seed is that of a sample of rows.
    pub(crate) fn encode(
        &self,
        compute: &Compute,
        layers: &Layers,
        train: &[(String, String)],
        seed: u64,
    ) -> Result<(EncodedPairs, Option<EncodedPairs>, Vec<usize>), Failure> {
        let mut folders = two_models(&self.models)?.to_vec();
        folders.dedup();
        let columns = &self.columns.columns;
        let test = read_pair_some(&self.parallel, columns, self.rows.selection(seed))?;
        let train = match train {
            [] => None,
            train => Some(in_order(read_pair(train, columns)?, &test)?),
        };
        let models: Result<Vec<_>, Failure> = folders
            .into_iter()
            .map(|folder| compute.open_states(folder, &self.sentences))
            .collect();
        let mut models = models?;
        let [first, second] = [&models[0], models.last().expect("one or two")];
        let numbers = layers.of(first.encoder.config().layers)?;
        let others = layers.of(second.encoder.config().layers)?;
        let mut encode = |sides: &[ParallelSide; 2]| {
            let mut waiting = None;
            encode_pairs(&mut models, sides, [&numbers, &others], |side| {
                waiting.replace(Waiting::new(&format!("encoding {}", side.file)));
            })
        };
        let test = encode(&test)?;
        let train = train.as_ref().map(encode).transpose()?;
        Ok((test, train, numbers))
    }
}

/// The sides of other parallel text in the order of the languages of this one.
fn in_order(
    other: [ParallelSide; 2],
    sides: &[ParallelSide; 2],
) -> Result<[ParallelSide; 2], Failure> {
    let languages = |sides: &[ParallelSide; 2]| [0, 1].map(|side| sides[side].language.clone());
    let (there, here) = (languages(&other), languages(sides));
    let [a, b] = other;
    if there == here {
        return Ok([a, b]);
    }
    if [&there[1], &there[0]] == [&here[0], &here[1]] {
        return Ok([b, a]);
    }
    let missing = here.iter().find(|language| !there.contains(language)).unwrap_or(&here[0]);
    let message = format!("--train has no text in `{missing}`; give both languages");
    Err(Failure::Usage(message))
}

/// One model for both sides, or one for each.
pub(crate) fn two_models(models: &[PathBuf]) -> Result<[&Path; 2], Failure> {
    match models {
        [one] => Ok([one, one]),
        [a, b] => Ok([a, b]),
        _ => Err(Failure::Usage("give one --model for both sides, or one for each".into())),
    }
}

/// Puts every map of a list into a new folder, `layer-N.npy`.
pub(crate) fn save_maps(
    folder: &Path,
    force: bool,
    maps: &[(usize, geometry::Map)],
) -> Result<(), Failure> {
    let draft = files::NewFolder::with_force(folder, force)?;
    for (layer, map) in maps {
        map.save(&draft.path().join(format!("layer-{layer}.npy")))?;
    }
    Ok(draft.finish()?)
}
