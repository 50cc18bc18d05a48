//! The weights of a checkpoint: found in its files, not yet read.
//!
//! Headers are read when a checkpoint is opened, and each tensor when it is needed. Files are not mapped into memory: one
//! that is truncated under a map ends the process, and here it is an error. What a header says is believed only as far
//! as the file bears it out.

pub mod gguf;
mod pickle;
mod quantised;
pub mod safetensors;
pub mod torch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use files::{At, limits};
use serde::Deserialize;

use crate::gguf::gguf_file;
pub use quantised::Quantised;
use text::{Error, Result};

/// What the numbers of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each says what it is")]
pub enum NumberType {
    F32,
    F16,
    Bf16,
    F64,
    I64,
    I32,
    I16,
    I8,
    U8,
    Bool,
    Quantised(Quantised),
    Other,
}

impl NumberType {
    /// Bytes of one number; none where that is not known.
    pub(crate) fn bytes(self) -> Option<usize> {
        match self {
            Self::F64 | Self::I64 => Some(8),
            Self::F32 | Self::I32 => Some(4),
            Self::F16 | Self::Bf16 | Self::I16 => Some(2),
            Self::I8 | Self::U8 | Self::Bool => Some(1),
            Self::Quantised(_) | Self::Other => None,
        }
    }

    /// Bytes of a tensor, whose rows are whole blocks.
    pub(crate) fn bytes_of(self, shape: &[usize]) -> Option<usize> {
        let numbers = shape.iter().try_fold(1usize, |numbers, &size| numbers.checked_mul(size))?;
        match self {
            Self::Quantised(kind) => {
                let (length, bytes) = kind.block();
                let whole = shape.last().is_some_and(|cols| cols % length == 0);
                whole.then(|| (numbers / length).checked_mul(bytes))?
            }
            other => numbers.checked_mul(other.bytes()?),
        }
    }
}

/// A tensor in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    /// What its numbers are.
    pub element: NumberType,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Where its numbers stand in the file, row after row.
    pub bytes: Range<usize>,
    /// Rows of a head, where the first half of a head's rows and the second stand in turn, as in GGUF's Llamas.
    pub head_rows: Option<usize>,
}

/// The tensors of a file, by name.
pub type Tensors = BTreeMap<String, Located>;

/// A tensor to be read: its numbers stand row after row, the low byte first.
#[derive(Clone, Copy, Debug)]
pub struct StoredTensor<'a> {
    /// What its numbers are.
    pub element: NumberType,
    /// Its shape.
    pub shape: &'a [usize],
    file: &'a (PathBuf, File),
    first: usize,
    /// How many bytes it has.
    pub length: usize,
    /// Rows of a head, where its halves stand in turn.
    pub(crate) head_rows: Option<usize>,
}

/// Bytes of a tensor that are held at a time where all of them are gone through.
const CHUNK: usize = 1 << 20;

impl StoredTensor<'_> {
    /// Reads bytes from a place within the tensor on.
    pub fn read_at(&self, from: usize, bytes: &mut [u8]) -> Result<()> {
        assert!(from.checked_add(bytes.len()).is_some_and(|end| end <= self.length));
        let (path, file) = self.file;
        Ok(files::read_exact_at(file, bytes, (self.first + from) as u64).at(path, "read")?)
    }

    /// Goes through all bytes, in chunks.
    pub fn for_each_chunk(&self, mut visit: impl FnMut(&[u8])) -> Result<()> {
        let mut buffer = vec![0; self.length.min(CHUNK)];
        for from in (0..self.length).step_by(CHUNK) {
            let chunk = &mut buffer[..CHUNK.min(self.length - from)];
            self.read_at(from, chunk)?;
            visit(chunk);
        }
        Ok(())
    }

    /// Whether two tensors have the same numbers, bit by bit.
    pub fn equals(&self, other: &Self) -> Result<bool> {
        if self.element != other.element || self.length != other.length {
            return Ok(false);
        }
        if std::ptr::eq(self.file, other.file) && self.first == other.first {
            return Ok(true);
        }
        let (mut equal, mut from, mut theirs) = (true, 0, vec![0; self.length.min(CHUNK)]);
        let mut failed = None;
        self.for_each_chunk(|ours| {
            let theirs = &mut theirs[..ours.len()];
            failed = failed.take().or(other.read_at(from, theirs).err());
            equal &= ours == theirs;
            from += ours.len();
        })?;
        failed.map_or(Ok(equal), Err)
    }
}

/// All tensors of a checkpoint.
pub struct CheckpointWeights {
    opened: Vec<(PathBuf, File)>,
    tensors: BTreeMap<String, (usize, Located)>,
    /// The files' names.
    pub files: Vec<String>,
    /// Whether the scales of norms are whole where the family keeps them less one.
    pub(crate) whole_scales: bool,
}

/// How a file is written.
#[derive(Clone, Copy)]
enum Format {
    Safetensors,
    Torch,
    Gguf,
}

/// The list of a checkpoint in several files.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

const FETCH: &str = "fetch the file anew, or save the model anew with `save_pretrained`";

impl CheckpointWeights {
    /// Finds the weights in a folder: one file or several, safetensors before PyTorch's own.
    pub fn open(folder: &Path) -> Result<Self> {
        if let Some(path) = gguf_file(folder) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let folder = path.parent().unwrap_or(Path::new(""));
            return Self::read(folder, Format::Gguf, vec![name], None);
        }
        let formats = [
            (Format::Safetensors, "model.safetensors", "model.safetensors.index.json"),
            (Format::Torch, "pytorch_model.bin", "pytorch_model.bin.index.json"),
        ];
        for (format, single, index) in formats {
            if folder.join(single).is_file() {
                return Self::read(folder, format, vec![single.to_owned()], None);
            }
            if folder.join(index).is_file() {
                let path = folder.join(index);
                let map = read_index(&path)?;
                let files: BTreeSet<String> = map.values().cloned().collect();
                return Self::read(
                    folder,
                    format,
                    files.into_iter().collect(),
                    Some((&path, &map)),
                );
            }
        }
        let reason = "has no weights: neither model.safetensors nor pytorch_model.bin, in one file \
                      or with an index";
        Err(Error::file(folder, reason, "put them there, or save the model with `save_pretrained`"))
    }

    fn read(
        folder: &Path,
        format: Format,
        files: Vec<String>,
        index: Option<(&PathBuf, &BTreeMap<String, String>)>,
    ) -> Result<Self> {
        let (mut opened, mut tensors) = (Vec::new(), BTreeMap::new());
        for (number, name) in files.iter().enumerate() {
            let path = folder.join(name);
            let file = File::open(&path).at(&path, "open")?;
            if file.metadata().at(&path, "look at")?.len() == 0 {
                return Err(Error::file(&path, "is empty", FETCH));
            }
            let mut start = Vec::new();
            (&file).take(64).read_to_end(&mut start).at(&path, "read")?;
            files::refuse_pointer(&path, &start)?;
            (&file).rewind().at(&path, "read")?;
            let found = match format {
                Format::Safetensors => safetensors::read(&file),
                Format::Torch => torch::read(BufReader::new(&file)),
                Format::Gguf => gguf::read(&file).and_then(crate::gguf::tensors),
            };
            let found = found.map_err(|reason| Error::file(&path, reason, FETCH))?;
            opened.push((path, file));
            for (tensor, located) in found {
                if let Some((path, index)) = index
                    && index.get(&tensor) != Some(name)
                {
                    let reason = format!("does not say that {tensor} is in {name}");
                    return Err(Error::file(path, reason, FETCH));
                }
                tensors.insert(modern(tensor), (number, located));
            }
        }
        if let Some((path, index)) = index
            && let Some(lost) =
                index.keys().find(|name| !tensors.contains_key(&modern((*name).clone())))
        {
            let reason = format!("names {lost}, which no file has");
            return Err(Error::file(path, reason, FETCH));
        }
        Ok(Self { opened, tensors, files, whole_scales: matches!(format, Format::Gguf) })
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor.
    pub fn get(&self, name: &str) -> Option<StoredTensor<'_>> {
        let (number, Located { element, shape, bytes, head_rows }) = self.tensors.get(name)?;
        let (file, first, length) = (&self.opened[*number], bytes.start, bytes.len());
        let head_rows = *head_rows;
        Some(StoredTensor { element: *element, shape, file, first, length, head_rows })
    }
}

/// Names that LayerNorm's weights had long ago.
fn modern(name: String) -> String {
    for (old, new) in [(".gamma", ".weight"), (".beta", ".bias")] {
        if let Some(stem) = name.strip_suffix(old) {
            return format!("{stem}{new}");
        }
    }
    name
}

/// Reads an index. It may name files of its own folder alone.
fn read_index(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(path).at(path, "read")?;
    parse_index(&text).map_err(|reason| Error::file(path, reason, FETCH))
}

/// Which file holds each tensor, by an index's text.
pub fn parse_index(text: &str) -> std::result::Result<BTreeMap<String, String>, String> {
    let index: Index = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match index.weight_map.values().find(|name| !limits::is_plain_name(name)) {
        Some(name) => Err(format!("names `{name}`, which is no file of its folder")),
        None => Ok(index.weight_map),
    }
}
