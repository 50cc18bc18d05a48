//! What commands that look into trained encoders have in common: which model, where it runs, which
//! layers.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;

use arrays::Stack;
use clap::{Args, ValueEnum};
use geometry::Step;
use models::PretrainedModel;
use models::parallel::{ParallelSide, read_pair};
use models::sentences::pooled;
use tensor::{Device, DeviceError};

use crate::failure::Failure;
use crate::progress::Waiting;

/// Where a command computes.
#[derive(Args)]
#[command(next_help_heading = "Compute")]
pub(crate) struct Compute {
    /// Where to run; auto takes a GPU where one can be used.
    #[arg(long, default_value = "auto", value_parser = ["auto", "cpu", "cuda"])]
    device: String,

    /// CPU threads; 0 takes every core.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,

    /// The device, once it was opened.
    #[arg(skip)]
    opened: OnceLock<Device>,
}

impl Compute {
    /// The device.
    pub(crate) fn device(&self) -> Result<Device, Failure> {
        if let Some(device) = self.opened.get() {
            return Ok(device.clone());
        }
        let device = open_device(&self.device, self.threads)?;
        Ok(self.opened.get_or_init(|| device).clone())
    }

    /// Runs work on the CPU's threads, and gives it the device, which it may use.
    pub(crate) fn run<R: Send>(
        &self,
        work: impl FnOnce(&Device) -> R + Send,
    ) -> Result<R, Failure> {
        let device = self.device()?;
        let threads = match device.is_gpu() {
            false => device.clone(),
            true => Device::cpu(self.threads).map_err(|error| device_failure(&error))?,
        };
        Ok(threads.run(|| work(&device)))
    }

    /// Opens a model there.
    pub(crate) fn open(&self, folder: &Path) -> Result<PretrainedModel, Failure> {
        Ok(PretrainedModel::open(folder, &self.device()?)?)
    }
}

/// Opens the device of a name. Where `auto` could not take the GPU that is there, one line says why.
pub(crate) fn open_device(name: &str, threads: usize) -> Result<Device, Failure> {
    let device = Device::named(name, threads).map_err(|error| device_failure(&error))?;
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
    Failure::Usage(format!("{error}{remedy}"))
}

/// Which layers: `all`, or numbers and ranges; 0 is the embeddings.
#[derive(Clone, Debug)]
pub(crate) enum Layers {
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

impl Layers {
    /// The layers that are meant, of a model with so many above the embeddings.
    pub(crate) fn of(&self, above: usize) -> Result<Vec<usize>, Failure> {
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Normalize {
    /// Unit length and centring alternated five times, then unit length (Zhang et al. 2019).
    Iterative,
    /// The mean is subtracted.
    Center,
    /// Unit length.
    Unit,
    /// Raw vectors.
    None,
}

/// The steps that are meant.
pub(crate) fn steps(chosen: &[Normalize]) -> Vec<Step> {
    let step = |normalize: &Normalize| match normalize {
        Normalize::Iterative => Some(Step::Iterative),
        Normalize::Center => Some(Step::Center),
        Normalize::Unit => Some(Step::Unit),
        Normalize::None => None,
    };
    chosen.iter().filter_map(step).collect()
}

/// The vectors of parallel sentences: from one model or two, or from arrays.
pub(crate) struct ParallelVectors {
    /// Layers of each side, sentences x dim.
    pub(crate) stacks: [Stack; 2],
    /// The numbers of the layers in their model.
    pub(crate) layers: Vec<usize>,
    /// Sentences that were too long for a model and truncated.
    pub(crate) truncated: usize,
}

/// Encodes both sides of parallel text, each by its model, and both sides of other parallel text beside it.
pub(crate) fn encode_parallel(
    compute: &Compute,
    models: &[PathBuf],
    layers: &Layers,
    test: &[(String, String)],
    train: &[(String, String)],
) -> Result<(ParallelVectors, Option<ParallelVectors>), Failure> {
    let folders = two_models(models)?;
    let test = read_pair(test)?;
    let train = if train.is_empty() { None } else { Some(read_pair(train)?) };
    let (mut tests, mut trains) = (Vec::new(), Vec::new());
    let (mut numbers, mut truncated) = (Vec::new(), [0, 0]);
    for (side, folder) in folders.into_iter().enumerate() {
        let mut model = compute.open(folder)?;
        numbers = layers.of(model.encoder.config().layers)?;
        let mut encode = |text: &ParallelSide, truncated: &mut usize| -> Result<Stack, Failure> {
            let _waiting = Waiting::new(&format!("encoding {}", text.file));
            let (stack, cut) = pooled(&mut model, text, &numbers, |_| {})?;
            *truncated += cut;
            Ok(stack)
        };
        tests.push(encode(&test[side], &mut truncated[0])?);
        if let Some(train) = &train {
            let language = &test[side].language;
            // The same side first: both may be of one language.
            let mut order = [&train[side], &train[1 - side]].into_iter();
            let text = order.find(|other| other.language == *language).ok_or_else(|| {
                let message = format!("--train has no text in `{language}`; give both languages");
                Failure::Usage(message)
            })?;
            trains.push(encode(text, &mut truncated[1])?);
        }
    }
    let vectors = |stacks: Vec<Stack>, truncated| {
        let stacks = stacks.try_into().ok()?;
        Some(ParallelVectors { stacks, layers: numbers.clone(), truncated })
    };
    let test = vectors(tests, truncated[0]).expect("two sides");
    Ok((test, vectors(trains, truncated[1])))
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
