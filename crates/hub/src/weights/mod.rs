//! The weights of a checkpoint: found in its files, not yet read.
//!
//! Files are mapped, so that a tensor costs nothing until somebody reads it. What a header says is
//! believed only as far as the file bears it out.

mod pickle;
pub mod safetensors;
pub mod torch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use files::{At, Mmap, limits};
use serde::Deserialize;
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
            Self::Other => None,
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
}

/// The tensors of a file, by name.
pub type Tensors = BTreeMap<String, Located>;

/// A tensor to be read.
#[derive(Clone, Copy, Debug)]
pub struct TensorBytes<'a> {
    /// What its numbers are.
    pub element: NumberType,
    /// Its shape.
    pub shape: &'a [usize],
    /// Its numbers, row after row, the low byte first.
    pub bytes: &'a [u8],
}

/// All tensors of a checkpoint.
pub struct CheckpointWeights {
    maps: Vec<Mmap>,
    tensors: BTreeMap<String, (usize, Located)>,
    /// The files' names.
    pub files: Vec<String>,
}

/// How a file is written.
#[derive(Clone, Copy)]
enum Format {
    Safetensors,
    Torch,
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
        let (mut maps, mut tensors) = (Vec::new(), BTreeMap::new());
        for (number, name) in files.iter().enumerate() {
            let path = folder.join(name);
            let map = map(&path)?;
            let found = match format {
                Format::Safetensors => safetensors::read(&map),
                Format::Torch => torch::read(&map),
            };
            let found = found.map_err(|reason| Error::file(&path, reason, FETCH))?;
            maps.push(map);
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
        Ok(Self { maps, tensors, files })
    }

    /// The names of all tensors.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// A tensor.
    pub fn get(&self, name: &str) -> Option<TensorBytes<'_>> {
        let (file, located) = self.tensors.get(name)?;
        let bytes = &self.maps[*file][located.bytes.clone()];
        Some(TensorBytes { element: located.element, shape: &located.shape, bytes })
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

fn map(path: &Path) -> Result<Mmap> {
    let file = File::open(path).at(path, "open")?;
    if file.metadata().at(path, "look at")?.len() == 0 {
        return Err(Error::file(path, "is empty", FETCH));
    }
    Ok(files::map(&file).at(path, "map into memory")?)
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
