//! What can be opened: a run, a Hugging Face folder, a laboratory with many runs, or a folder with some of these in it.

use std::fs;
use std::path::{Path, PathBuf};

use lab::store::natural;
use models::ModelLocation;
use train::pretrain::PretrainConfig;

use crate::error::{ApiFailure, ApiResult};

/// Folders in which commands of this program leave a laboratory, where nothing else is said.
const USUAL: [&str; 2] = ["lab", "isogloss-demo"];
/// A laboratory's folder of steps, and of a step the run that it pretrained.
const STEPS: &str = "steps";
const RUN: &str = "run";

/// A run or a model that can be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunEntry {
    /// What addresses name it by: a digest of its place.
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The runs, in the order in which they are offered.
    pub(crate) entries: Vec<RunEntry>,
    pub(crate) laboratory: Option<PathBuf>,
    /// The id of the run that is shown beside the first: that of a second place.
    pub(crate) beside: Option<String>,
}

/// Finds what there is at all places; where none is named, in this folder.
pub(crate) fn find_all(places: &[PathBuf]) -> ApiResult<Found> {
    let mut found = find(places.first().map(PathBuf::as_path))?;
    for place in places.iter().skip(1) {
        let more = find(Some(place))?;
        if found.beside.is_none() {
            found.beside = more.entries.first().map(|entry| entry.id.clone());
        }
        found.laboratory = found.laboratory.or(more.laboratory);
        found.entries.extend(more.entries);
    }
    Ok(found)
}

fn find(place: Option<&Path>) -> ApiResult<Found> {
    let here = place.unwrap_or(Path::new("."));
    if !here.exists() && !is_model(here) {
        return Err(ApiFailure::request(missing(here)));
    }
    let usual = USUAL.iter().map(|name| here.join(name));
    let laboratory = std::iter::once(here.to_owned()).chain(usual).find(|root| is_laboratory(root));
    if let Some(root) = laboratory {
        let root = root.strip_prefix(".").map_or(root.clone(), Path::to_owned);
        return Ok(Found {
            entries: runs_of_laboratory(&root),
            laboratory: Some(root),
            beside: None,
        });
    }
    if is_run(here) || is_model(here) {
        return Ok(Found { entries: vec![entry(here, None)], ..Found::default() });
    }
    let inside = fs::read_dir(here).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<RunEntry> = inside
        .map(|path| path.strip_prefix(".").map_or(path.clone(), Path::to_owned))
        .filter(|path| is_run(path))
        .map(|path| entry(&path, None))
        .collect();
    runs.sort_by(|a, b| natural(&a.name, &b.name));
    match runs.is_empty() {
        false => Ok(Found { entries: runs, ..Found::default() }),
        true => Err(ApiFailure::request(format!(
            "{} holds no run, no laboratory and no Hugging Face model; name the folder of one, or make one with \
             `isogloss demo`",
            here.display()
        ))),
    }
}

/// That a folder is not there, with what there is to open beside it.
fn missing(folder: &Path) -> String {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    let shown = folder.display();
    let Ok(beside) = fs::read_dir(parent) else {
        return format!("{shown}: there is no such folder, nor {}", parent.display());
    };
    let beside = beside.flatten().map(|entry| entry.path());
    let mut beside: Vec<String> = beside
        .filter(|path| is_laboratory(path) || is_run(path))
        .map(|path| path.strip_prefix(".").unwrap_or(&path).display().to_string())
        .collect();
    beside.sort_by(|a, b| natural(a, b));
    beside.truncate(5);
    match beside.is_empty() {
        true => format!(
            "{shown}: there is no such folder; name a run, a laboratory or a Hugging Face model, or make one with `isogloss demo`"
        ),
        false => {
            format!("{shown}: there is no such folder; beside it there are: {}", beside.join(", "))
        }
    }
}

fn is_laboratory(folder: &Path) -> bool {
    folder.join(lab::store::FILE).is_file()
}

/// Whether a folder is a run, perhaps of an encoder that is still being trained.
fn is_run(folder: &Path) -> bool {
    folder.join("vocabulary").is_dir() && PretrainConfig::read(folder).is_ok()
}

fn is_model(name: &Path) -> bool {
    ModelLocation::find(name).is_ok()
}

/// The runs that a laboratory's steps pretrained, those of bilingual encoders first, untrained ones last.
fn runs_of_laboratory(root: &Path) -> Vec<RunEntry> {
    let steps = fs::read_dir(root.join(STEPS)).into_iter().flatten().flatten();
    let runs = steps.map(|step| step.path()).filter(|step| step.join(RUN).is_dir());
    let named = runs.map(|step| entry(&step.join(RUN), name_of_step(&step)));
    let mut entries: Vec<RunEntry> = named.filter(|entry| is_run(&entry.folder)).collect();
    let rank = |entry: &RunEntry| {
        let first = ["bilingual", "default", "no-anchors"];
        let place = first.iter().position(|name| entry.name.contains(name));
        if entry.name.contains("untrained") {
            first.len() + 1
        } else {
            place.unwrap_or(first.len())
        }
    };
    entries.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| natural(&a.name, &b.name)));
    entries
}

/// What a study calls the run of a step, which is known once it has ended.
fn name_of_step(step: &Path) -> Option<String> {
    let text = fs::read_to_string(step.join("step.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    let name = value["name"].as_str()?;
    Some(name.strip_prefix("pretrain: ").unwrap_or(name).to_owned())
}

fn entry(folder: &Path, name: Option<String>) -> RunEntry {
    let full = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let digest = blake3::hash(full.to_string_lossy().as_bytes()).to_hex();
    let own = || {
        let config = PretrainConfig::read(folder).ok();
        let file = full.file_name().map_or("model".into(), |name| name.to_string_lossy());
        config.map_or(file.to_string(), |config| {
            format!("{file}: {}, seed {}", config.preset.name(), config.seed)
        })
    };
    RunEntry {
        id: digest[..12].to_owned(),
        name: name.unwrap_or_else(own),
        folder: folder.to_owned(),
    }
}
