//! One flipped bit in something that a command wrote: the next command that reads it either gives the same result or
//! says which file is damaged.

use std::fs;
use std::path::{Path, PathBuf};

use rand::RngExt;

use crate::artefacts::{Artefact, ArtefactReference, SEALED};
use crate::board::Kind;
use crate::cases::{Bench, CaseResult, text};

impl Bench<'_> {
    /// One bit of one file.
    pub(crate) fn rot(&self, index: u64, references: &[ArtefactReference]) -> CaseResult {
        let number = index as usize % SEALED.len();
        let fault = self.rot_case(index, &SEALED[number], &references[number]);
        let name = SEALED[number].name;
        CaseResult { name, times: 1, fault: fault.err(), ..CaseResult::default() }
    }

    fn rot_case(
        &self,
        index: u64,
        artefact: &Artefact,
        reference: &ArtefactReference,
    ) -> Result<(), String> {
        let mut rng = self.random(Kind::Rot.number(), index);
        let folder = self.folder("rot", index)?;
        self.lay_out(artefact, &folder)?;
        let files = files(&folder.join(artefact.harmed));
        let rotten = &files[rng.random_range(0..files.len())];
        let mut bytes = fs::read(rotten).map_err(text)?;
        let within = if rng.random_bool(0.5) { bytes.len().min(2048) } else { bytes.len() };
        let (at, bit) = (rng.random_range(0..within), rng.random_range(0..8));
        bytes[at] ^= 1 << bit;
        fs::write(rotten, &bytes).map_err(text)?;
        let shown = rotten.strip_prefix(&folder).unwrap_or(rotten).display().to_string();
        let at = format!("{shown}, bit {bit} of byte {at}");

        let ended = self.start_reading(artefact, &folder)?.wait()?;
        if let Some(crash) = ended.crash() {
            return Err(format!("{at}: {crash}"));
        }
        let named = Artefact::is_named(rotten, &folder, &ended);
        if !named && !ended.success() {
            return Err(format!("{at}: no file is named: {}", ended.message()));
        }
        let silent = match named {
            true => None,
            false => self.artefact_outcome(&folder, &ended)?.difference(&reference.outcome, &shown),
        };
        let _ = fs::remove_dir_all(&folder);
        silent.map_or(Ok(()), |what| Err(format!("{at}: silent change: {what}")))
    }
}

/// The files that hold something, locks and clocks aside.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.flat_map(|entry| files(&entry.path())).collect();
    found.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let empty = path.metadata().map_or(0, |metadata| metadata.len()) == 0;
        !empty && !name.starts_with("events.out") && !name.ends_with("lock")
    });
    found.sort();
    found
}
