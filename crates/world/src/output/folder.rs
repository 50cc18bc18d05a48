//! The output folder: built aside and moved into place whole, so that it is never half there.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use files::{At, NewFolder};
use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use crate::error::{self, Error};

/// The file that makes a folder a world.
pub const MANIFEST: &str = "manifest.json";

/// A file of the world.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Where it stands, from the folder on.
    pub path: String,
    /// Its kind: `config`, `text`, `parallel`, `bitext`, `alignment`, `tatoeba`, `treebank`, `ner`, `nli`,
    /// `classify` or `dictionary`.
    pub kind: Cow<'static, str>,
    /// The languages in it, by code.
    pub languages: Vec<String>,
    /// `train`, `dev`, `test` or `parallel`, where it is one part of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Cow<'static, str>>,
    /// The domain of its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// Sentences, pairs or entries.
    pub items: usize,
    /// Words of running text, as spaces set them apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<usize>,
    /// Its size.
    pub bytes: u64,
    /// Its BLAKE3 fingerprint.
    pub blake3: String,
}

impl FileRecord {
    /// A file that is still to be written.
    pub(super) fn of(
        kind: &'static str,
        path: String,
        languages: &[&str],
        split: Option<&'static str>,
    ) -> Self {
        let languages = languages.iter().map(|&code| code.to_owned()).collect();
        let split = split.map(Into::into);
        Self { path, kind: kind.into(), languages, split, ..Self::default() }
    }
}

pub(crate) struct OutputFolder {
    draft: NewFolder,
    records: Vec<FileRecord>,
}

pub(crate) struct OutputFile {
    out: BufWriter<File>,
    path: PathBuf,
    hash: blake3::Hasher,
    record: FileRecord,
}

impl OutputFolder {
    /// Prepares to fill `target`, which must not exist, be empty, or, with `force`, be a world.
    pub(crate) fn open(target: &Path, force: bool) -> Result<Self, Error> {
        refuse_occupied(target, force)?;
        Ok(Self { draft: NewFolder::instead_of(target, refuse_foreign)?, records: Vec::new() })
    }

    pub(crate) fn file(&self, record: FileRecord) -> Result<OutputFile, Error> {
        let out = self.draft.create(&record.path)?;
        let path = self.draft.path().join(&record.path);
        Ok(OutputFile { out, path, hash: blake3::Hasher::new(), record })
    }

    /// Ends a file. One that stayed empty is left out: it says nothing, and readers refuse it.
    pub(crate) fn close(&mut self, mut sink: OutputFile) -> Result<(), Error> {
        if sink.record.bytes == 0 {
            fs::remove_file(&sink.path).at(&sink.path, "remove")?;
            // Its folder goes with the last file, and only then.
            let _ = sink.path.parent().map(fs::remove_dir);
            return Ok(());
        }
        files::close(sink.out, &sink.path)?;
        sink.record.blake3 = sink.hash.finalize().to_hex().to_string();
        self.records.push(sink.record);
        Ok(())
    }

    /// A small file in one go.
    pub(crate) fn put(
        &mut self,
        record: FileRecord,
        text: &str,
        items: usize,
    ) -> Result<(), Error> {
        let mut sink = self.file(record)?;
        sink.write(text, items)?;
        self.close(sink)
    }

    pub(crate) fn records(&self) -> &[FileRecord] {
        &self.records
    }

    /// Puts the folder in its place; a world that stood there goes only once the new one stands.
    pub(crate) fn commit(self) -> Result<(), Error> {
        Ok(self.draft.finish()?)
    }
}

impl OutputFile {
    pub(crate) fn write(&mut self, text: &str, items: usize) -> Result<(), Error> {
        self.hash.update(text.as_bytes());
        self.record.bytes += text.len() as u64;
        self.record.items += items;
        Ok(self.out.write_all(text.as_bytes()).at(&self.path, "write")?)
    }

    /// Records the number of words of running text.
    pub(crate) fn words(&mut self, words: usize) {
        self.record.words = Some(words);
    }
}

/// Refuses to take away, with a world, what the world did not make.
fn refuse_foreign(target: &Path) -> files::Result<()> {
    let files = Manifest::read(target).map_or_else(|_| Vec::new(), |manifest| manifest.files);
    let own: HashMap<&str, &str> =
        files.iter().map(|file| (file.path.as_str(), file.blake3.as_str())).collect();
    files::refuse_others(target, |name, path| match own.get(name) {
        Some(digest) => files::has_digest(path, digest),
        None => name == MANIFEST && !own.is_empty(),
    })
}

fn refuse_occupied(target: &Path, force: bool) -> Result<(), Error> {
    let occupied = |reason, remedy| Err(error::occupied(target, reason, remedy));
    if !target.exists() {
        return Ok(());
    }
    if !target.is_dir() {
        return occupied("is a file", "name a folder");
    }
    let mut content = fs::read_dir(target).at(target, "read")?;
    if content.next().is_none() {
        return Ok(());
    }
    match (target.join(MANIFEST).is_file() && target.join("world.toml").is_file(), force) {
        (true, true) => Ok(refuse_foreign(target)?),
        (true, false) => {
            let reason = format!("{} already holds a world", target.display());
            let remedy = "name another folder, or set `force` to replace it";
            Err(Error::setting("force", reason, remedy))
        }
        (false, _) => occupied("is not empty and holds no world", "choose another folder"),
    }
}
