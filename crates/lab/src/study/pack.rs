//! Packs: the results of a laboratory in one small file, to be kept with the numbers that they back and put together with
//! those of other machines.
//!
//! A pack is a tar archive in Zstandard. Its first member, `pack.json`, holds the settings of the results and the digest of
//! every other member, and is sealed itself: `records.json` (what the store holds) and, of each complete step, `step.json`,
//! `result.json` and the metrics of its training. Weights, vectors and text are left out: whoever needs those of a step runs
//! it again. The same laboratory gives the same bytes.
//!
//! A pack is read whole and verified before anything is written. Each step then appears whole or not at all, and the records
//! in one transaction, so that unpacking that was killed is done again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use files::{At, FolderLock, limits, sealed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{Error, Result};
use super::laboratory::{Laboratory, RESULT, STEP};
use super::settings;
use crate::record::{Factors, Origin, Record, TextRecord};
use crate::store::{self, EnteredSettings, StepFiling};

const VERSION: u32 = 1;
const LIST: &str = "pack.json";
const RECORDS: &str = "records.json";
const STEPS: &str = "steps";
/// Files of a step that are kept beside its result where they are small.
pub(super) const KEPT: [&str; 2] = ["run/metrics.jsonl", "transfer/metrics.jsonl"];
const SMALL: u64 = 256 << 10;
/// How hard Zstandard tries, and the logarithm of how far back it looks: results of steps are alike.
const LEVEL: i32 = 15;
const WINDOW: u32 = 26;
const AGAIN: &str = "copy it again from where it was made, or pack that laboratory again";

#[derive(Debug, Serialize, Deserialize)]
struct PackList {
    version: u32,
    settings: Vec<EnteredSettings>,
    /// The digest of every other member by its name.
    members: BTreeMap<String, String>,
}

/// Measure, factors and value.
type PackedNumber = (String, Factors, f64);

/// Records of one origin, slot and signature, in few bytes.
#[derive(Serialize, Deserialize)]
struct PackedRecords {
    origin: Origin,
    slot: Option<String>,
    signature: String,
    files: Vec<String>,
    numbers: Vec<PackedNumber>,
    texts: Vec<(String, Factors, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackSummary {
    pub steps: usize,
    pub numbers: usize,
    /// The size of the pack; 0 where it went to standard output.
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpackSummary {
    pub steps: usize,
    pub complete: usize,
    pub numbers: usize,
    /// Numbers that were left out, since the store has results of the same step, study and seed.
    pub left_out: usize,
}

/// Packs the results of a laboratory.
///
/// # Errors
/// Where there are none, the store cannot be read, or the pack cannot be written.
pub fn pack(lab: &Laboratory, out: &Path, force: bool) -> Result<PackSummary> {
    files::check_new_file(out, force)?;
    let mut members: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let mut steps = 0;
    let entries = fs::read_dir(lab.root.join(STEPS)).into_iter().flatten().flatten();
    for key in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        let (Some(Value::Object(mut step)), Some(result)) =
            (lab.sealed(&key, STEP), lab.result(&key))
        else {
            continue;
        };
        step.remove(WITHOUT_FILES);
        let name = |file: &str| format!("{STEPS}/{key}/{file}");
        members.insert(name(STEP), sealed_text(&Value::Object(step)));
        members.insert(name(RESULT), sealed_text(&result));
        for file in KEPT {
            let path = lab.folder(&key).join(file);
            if fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() <= SMALL) {
                members.insert(name(file), fs::read(&path).at(&path, "read")?);
            }
        }
        steps += 1;
    }
    let (mut settings, mut numbers) = (Vec::new(), 0);
    if lab.root.join(store::FILE).exists() {
        let store = lab.store()?;
        settings = store.settings()?;
        let packed = packed(store.filings()?);
        numbers = packed.iter().map(|one| one.numbers.len()).sum();
        members.insert(RECORDS.to_owned(), serde_json::to_vec(&packed).expect("plain data"));
    }
    if steps == 0 && numbers == 0 {
        let remedy = "name the folder of a laboratory (its steps are in `steps`)";
        return Err(Error::data(lab.root.display().to_string(), "holds no result", remedy));
    }
    let digests = members.iter().map(|(name, bytes)| (name.clone(), digest(bytes))).collect();
    let list = PackList { version: VERSION, settings, members: digests };
    let list = sealed_text(&serde_json::to_value(&list).expect("plain data"));
    files::write_with(out, |writer| {
        let mut encoder = zstd::Encoder::new(writer, LEVEL)?;
        encoder.window_log(WINDOW)?;
        encoder.long_distance_matching(true)?;
        encoder.include_checksum(true)?;
        let mut archive = tar::Builder::new(encoder);
        let list = (LIST.to_owned(), list);
        for (name, bytes) in std::iter::once(&list).map(|(a, b)| (a, b)).chain(&members) {
            let mut header = tar::Header::new_ustar();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, name, bytes.as_slice())?;
        }
        archive.into_inner()?.finish()?.flush()
    })?;
    let bytes = fs::metadata(out).map_or(0, |made| made.len());
    Ok(PackSummary { steps, numbers, bytes })
}

/// The key of `step.json` that says that the result alone is there.
const WITHOUT_FILES: &str = "without_files";

/// Puts the results of a pack into a laboratory. Steps that are complete there stay as they are.
///
/// # Errors
/// Where the pack is damaged, or the laboratory has results with other settings or of other data, which are dropped with
/// `force`.
pub fn unpack(lab: &Laboratory, pack: &Path, force: bool) -> Result<UnpackSummary> {
    let (list, members) = read(pack)?;
    let filings = match members.get(RECORDS) {
        None => Vec::new(),
        Some(bytes) => {
            let packed: Vec<PackedRecords> = serde_json::from_slice(bytes)
                .map_err(|error| damaged(pack, RECORDS, &error.to_string()))?;
            packed.into_iter().map(PackedRecords::filing).collect()
        }
    };
    let store = lab.store()?;
    list.settings.iter().try_for_each(|entered| settings::enter(&store, entered, force))?;
    let mut summary = UnpackSummary::default();
    let mut steps: BTreeMap<&str, BTreeMap<&str, &[u8]>> = BTreeMap::new();
    for (name, bytes) in &members {
        if let Some((key, file)) = step_file(name) {
            steps.entry(key).or_default().insert(file, bytes);
        }
    }
    for (key, files) in steps {
        match unpack_step(lab, pack, key, &files)? {
            true => summary.steps += 1,
            false => summary.complete += 1,
        }
    }
    let all: usize = filings.iter().map(|filing| filing.records.len()).sum();
    summary.numbers = store.merge(&filings)?;
    summary.left_out = all - summary.numbers;
    Ok(summary)
}

/// Puts a step's result in its folder, the result last; false where it is complete there.
fn unpack_step(
    lab: &Laboratory,
    pack: &Path,
    key: &str,
    members: &BTreeMap<&str, &[u8]>,
) -> Result<bool> {
    let open = |file: &str| -> Result<Map<String, Value>> {
        let place = format!("{STEPS}/{key}/{file}");
        let bytes = members.get(file).ok_or_else(|| damaged(pack, &place, "is missing"))?;
        let mut value: Value = serde_json::from_slice(bytes)
            .map_err(|error| damaged(pack, &place, &error.to_string()))?;
        match (sealed::open_json(&mut value), value) {
            (true, Value::Object(object)) => Ok(object),
            _ => Err(damaged(pack, &place, sealed::ALTERED)),
        }
    };
    let (mut step, result) = (open(STEP)?, open(RESULT)?);
    let folder = lab.folder(key);
    if lab.result(key).is_some() {
        return Ok(false);
    }
    let _lock = FolderLock::take(&folder)?;
    step.insert(WITHOUT_FILES.to_owned(), Value::Bool(true));
    for file in KEPT {
        let path = folder.join(file);
        if let (Some(bytes), false) = (members.get(file), path.exists()) {
            let inner = path.parent().expect("it lies in the step's folder");
            fs::create_dir_all(inner).at(inner, "make the folder")?;
            files::write(&path, bytes)?;
        }
    }
    files::write(&folder.join(STEP), sealed_text(&Value::Object(step)))?;
    files::write(&folder.join(RESULT), sealed_text(&Value::Object(result)))?;
    Ok(true)
}

fn read(pack: &Path) -> Result<(PackList, BTreeMap<String, Vec<u8>>)> {
    let file = File::open(pack).at(pack, "read")?;
    let size = file.metadata().at(pack, "read")?.len();
    // What was being read when the stream broke off.
    let mut place = LIST.to_owned();
    let broken = |place: &str, error: &io::Error| match limits::is_too_large(error) {
        true => {
            Error::data(pack.display().to_string(), error.to_string(), "or ".to_owned() + AGAIN)
        }
        false => damaged(pack, place, &format!("cannot be read ({error})")),
    };
    let mut decoder = zstd::Decoder::new(file).map_err(|error| broken(&place, &error))?;
    decoder.window_log_max(WINDOW + 1).map_err(|error| broken(&place, &error))?;
    let mut archive = tar::Archive::new(limits::bounded(BufReader::new(decoder), size));
    let (mut list, mut members): (Option<PackList>, _) = (None, BTreeMap::new());
    for entry in archive.entries().map_err(|error| broken(&place, &error))? {
        let mut entry = entry.map_err(|error| broken(&place, &error))?;
        place = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).map_err(|error| broken(&place, &error))?;
        let Some(list) = &list else {
            list = Some(listed(pack, &place, &bytes)?);
            continue;
        };
        let is_known = place == RECORDS || step_file(&place).is_some();
        match list.members.get(&place) {
            Some(known) if *known != digest(&bytes) => {
                return Err(damaged(pack, &place, sealed::ALTERED));
            }
            Some(_) if is_known && entry.header().entry_type().is_file() => {}
            _ => return Err(damaged(pack, &place, "is no member of a pack of this version")),
        }
        if members.insert(place.clone(), bytes).is_some() {
            return Err(damaged(pack, &place, "is there twice"));
        }
    }
    // To the end of the stream, which has a digest of its own.
    io::copy(&mut archive.into_inner(), &mut io::sink())
        .map_err(|error| broken("the end", &error))?;
    let list = list.ok_or_else(|| damaged(pack, LIST, "is missing"))?;
    match list.members.keys().find(|name| !members.contains_key(*name)) {
        Some(name) => Err(damaged(pack, name, "is missing")),
        None => Ok((list, members)),
    }
}

/// The list of a pack's members, from the first of them.
fn listed(pack: &Path, name: &str, bytes: &[u8]) -> Result<PackList> {
    let foreign = || {
        let reason = "is no pack of results";
        Error::data(pack.display().to_string(), reason, "name what `study pack` made")
    };
    let mut value: Value = serde_json::from_slice(bytes).map_err(|_| foreign())?;
    let has_seal = value.get("blake3").is_some();
    if name != LIST {
        return Err(foreign());
    }
    if !has_seal || !sealed::open_json(&mut value) {
        return Err(damaged(pack, LIST, sealed::ALTERED));
    }
    match value["version"].as_u64() {
        Some(version) if version == u64::from(VERSION) => {}
        version => {
            let version = version.unwrap_or_default();
            let reason =
                format!("has version {version} of the format; this program reads {VERSION}");
            return Err(Error::data(pack.display().to_string(), reason, "use a later program"));
        }
    }
    serde_json::from_value(value).map_err(|error| damaged(pack, LIST, &error.to_string()))
}

/// The step and the file of it that a member's name stands for; none for any other name.
fn step_file(name: &str) -> Option<(&str, &str)> {
    let (key, file) = name.strip_prefix(STEPS)?.strip_prefix('/')?.split_once('/')?;
    let is_kept = [STEP, RESULT].into_iter().chain(KEPT).any(|kept| kept == file);
    (limits::is_plain_name(key) && is_kept).then_some((key, file))
}

fn damaged(pack: &Path, member: &str, reason: &str) -> Error {
    Error::data(format!("{}, {member}", pack.display()), reason, AGAIN)
}

fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

fn sealed_text(object: &Value) -> Vec<u8> {
    sealed::seal_json(&serde_json::to_string(object).expect("plain data")).into_bytes()
}

/// Filings in few bytes: signatures and files of records once.
fn packed(filings: Vec<StepFiling>) -> Vec<PackedRecords> {
    let mut all = Vec::new();
    for StepFiling { origin, slot, records, texts } in filings {
        let mut of: BTreeMap<(String, Vec<String>), Vec<PackedNumber>> = BTreeMap::new();
        for Record { measure, factors, value, signature, files, .. } in records {
            of.entry((signature, files)).or_default().push((measure, factors, value));
        }
        let mut texts: Vec<(String, Factors, String)> =
            texts.into_iter().map(|text| (text.name, text.factors, text.text)).collect();
        if of.is_empty() {
            of.insert(Default::default(), Vec::new());
        }
        for ((signature, files), numbers) in of {
            let (origin, slot, texts) = (origin.clone(), slot.clone(), std::mem::take(&mut texts));
            all.push(PackedRecords { origin, slot, signature, files, numbers, texts });
        }
    }
    all
}

impl PackedRecords {
    fn filing(self) -> StepFiling {
        let Self { origin, slot, signature, files, numbers, texts } = self;
        let record = |(measure, factors, value)| Record {
            origin: origin.clone(),
            measure,
            factors,
            value,
            signature: signature.clone(),
            files: files.clone(),
        };
        let records = numbers.into_iter().map(record).collect();
        let text =
            |(name, factors, text)| TextRecord { origin: origin.clone(), name, factors, text };
        let texts = texts.into_iter().map(text).collect();
        StepFiling { slot, origin: origin.clone(), records, texts }
    }
}
