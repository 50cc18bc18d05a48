//! Named matrices in a file: whole or not at all, and never altered unnoticed.
//!
//! The format is safetensors, which every tool of the field reads. The metadata carries a BLAKE3
//! digest of all names, shapes and elements; a file is read only after its digest was checked.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use files::At;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo, TensorView};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tensor::Tensor;

// Elements are written as they stand in memory, and the format is little-endian.
const _: () = assert!(cfg!(target_endian = "little"));

/// The one key of a file's header. A map of several keys would be written in no fixed order, and
/// equal content is to give equal bytes.
const KEY: &str = "isogloss";

/// Why a file could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The system refused.
    #[error(transparent)]
    File(#[from] files::Error),
    /// The file is not a safetensors file, or only the beginning of one.
    #[error(
        "{path} is truncated or is no safetensors file; make it anew, or put a sound copy in its place"
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        source: safetensors::SafeTensorError,
    },
    /// The content is not what was written.
    #[error(
        "{path} was altered since it was written (its digest differs); make it anew, or put a sound copy in its place"
    )]
    Altered {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by something else.
    #[error("{path} carries no digest: it was not written by isogloss")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The file is sound, but of another model.
    #[error("{path} does not fit: {reason}")]
    Misfit {
        /// The file.
        path: PathBuf,
        /// Which matrix, and how it differs.
        reason: String,
    },
}

impl terms::Fault for ArchiveError {}

impl ArchiveError {
    /// Whether the file is not what was once written, so that an older one may take its place.
    pub fn is_damage(&self) -> bool {
        match self {
            ArchiveError::Malformed { .. }
            | ArchiveError::Altered { .. }
            | ArchiveError::Foreign { .. } => true,
            ArchiveError::File(_) | ArchiveError::Misfit { .. } => false,
        }
    }
}

/// What the header's one key holds.
#[derive(Serialize, Deserialize)]
struct Seal {
    blake3: String,
    /// JSON within JSON, so that the digest is of the very text.
    metadata: String,
}

/// How many versions of a file are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Versions {
    One,
    Two,
}

/// Writes matrices and their metadata.
pub fn write<'a>(
    path: &Path,
    matrices: impl IntoIterator<Item = (String, &'a Tensor)>,
    metadata: &impl Serialize,
) -> Result<(), ArchiveError> {
    write_versions(path, matrices, metadata, Versions::One)
}

/// The same for a checkpoint: the one that stood there is kept beside it ([`files::checkpoints`]).
pub fn write_checkpoint<'a>(
    path: &Path,
    matrices: impl IntoIterator<Item = (String, &'a Tensor)>,
    metadata: &impl Serialize,
) -> Result<(), ArchiveError> {
    write_versions(path, matrices, metadata, Versions::Two)
}

fn write_versions<'a>(
    path: &Path,
    matrices: impl IntoIterator<Item = (String, &'a Tensor)>,
    metadata: &impl Serialize,
    versions: Versions,
) -> Result<(), ArchiveError> {
    let copies: Vec<(String, Vec<usize>, Cow<'_, [f32]>)> = matrices
        .into_iter()
        .map(|(name, tensor)| (name, vec![tensor.rows(), tensor.cols()], tensor.elements()))
        .collect();
    let views: BTreeMap<String, TensorView<'_>> = copies
        .iter()
        .map(|(name, shape, elements)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytemuck::cast_slice(elements));
            (name.clone(), view.expect("bytes of that shape"))
        })
        .collect();
    let metadata = serde_json::to_string(metadata).expect("metadata is plain data");
    let seal = Seal { blake3: digest(&views, &metadata), metadata };
    let seal = serde_json::to_string(&seal).expect("metadata is plain data");
    let header = HashMap::from([(KEY.to_owned(), seal)]);
    let fill = |file: &File| write_safetensors(file, &views, header);
    match versions {
        Versions::One => files::in_place_of(path, fill)?,
        Versions::Two => files::checkpoints::write(path, fill)?,
    }
    Ok(())
}

/// The format as the library writes it, into a file that is open: the library's own function makes
/// another temporary file, which a kill would leave behind.
fn write_safetensors(
    file: &File,
    views: &BTreeMap<String, TensorView<'_>>,
    header: HashMap<String, String>,
) -> io::Result<()> {
    let mut offset = 0;
    let infos = views.iter().map(|(name, view)| {
        let begin = offset;
        offset += view.data().len();
        let (dtype, shape) = (view.dtype(), view.shape().to_vec());
        (name.clone(), TensorInfo { dtype, shape, data_offsets: (begin, offset) })
    });
    let metadata = Metadata::new(Some(header), infos.collect()).map_err(io::Error::other)?;
    let mut metadata = serde_json::to_vec(&metadata)?;
    // The elements begin at a multiple of eight bytes.
    metadata.resize(metadata.len().next_multiple_of(8), b' ');
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    writer.write_all(&(metadata.len() as u64).to_le_bytes())?;
    writer.write_all(&metadata)?;
    views.values().try_for_each(|view| writer.write_all(view.data()))?;
    writer.flush()
}

/// A digest of all names, shapes, elements and metadata.
fn digest(views: &BTreeMap<String, TensorView<'_>>, metadata: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(metadata.as_bytes());
    for (name, view) in views {
        hasher.update(format!("\n{name} {:?} {:?}\n", view.dtype(), view.shape()).as_bytes());
        hasher.update(view.data());
    }
    hasher.finalize().to_hex().to_string()
}

/// A file that was read and found sound.
pub struct Archive {
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: String,
    digest: String,
}

impl Archive {
    /// Reads a file and checks its digest.
    pub fn open(path: &Path) -> Result<Self, ArchiveError> {
        let owned = || path.to_owned();
        let bytes = fs::read(path).at(path, "read")?;
        files::refuse_pointer(path, &bytes)?;
        let malformed = |source| ArchiveError::Malformed { path: owned(), source };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(malformed)?;
        let seal = header.metadata().as_ref().and_then(|map| map.get(KEY));
        let seal = seal.ok_or_else(|| ArchiveError::Foreign { path: owned() })?;
        let seal: Seal =
            serde_json::from_str(seal).map_err(|_| ArchiveError::Altered { path: owned() })?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(malformed)?;
        let views = tensors.tensors().into_iter().collect();
        if digest(&views, &seal.metadata) != seal.blake3 {
            return Err(ArchiveError::Altered { path: owned() });
        }
        Ok(Self { path: owned(), bytes, metadata: seal.metadata, digest: seal.blake3 })
    }

    /// Refuses a file that holds fewer elements than what its metadata describes needs, before memory is taken for it.
    pub fn check_holds(&self, elements: u128) -> Result<(), ArchiveError> {
        match self.bytes.len() as u128 >= elements.saturating_mul(size_of::<f32>() as u128) {
            true => Ok(()),
            false => Err(self.misfit(format!("its metadata describes {elements} weights or more"))),
        }
    }

    /// What tells this content from any other.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The metadata that was written with the matrices.
    pub fn metadata<F: DeserializeOwned>(&self) -> Result<F, ArchiveError> {
        let metadata = serde_json::from_str(&self.metadata);
        metadata.map_err(|error| self.misfit(format!("its metadata is of another kind ({error})")))
    }

    /// Copies the matrices into those given, whose names and shapes must be exactly the file's.
    /// Nothing is copied unless everything fits.
    pub fn load(&self, targets: Vec<(String, &mut Tensor)>) -> Result<(), ArchiveError> {
        let tensors = SafeTensors::deserialize(&self.bytes).expect("it was read when opened");
        if let Some(name) =
            tensors.names().iter().find(|name| !targets.iter().any(|(target, _)| target == *name))
        {
            return Err(self.misfit(format!("it holds {name}, which the model has not")));
        }
        let mut pairs = Vec::with_capacity(targets.len());
        for (name, target) in targets {
            let view = tensors.tensor(&name);
            let view = view.map_err(|_| self.misfit(format!("it holds no {name}")))?;
            let (found, wanted) = (view.shape(), [target.rows(), target.cols()]);
            if view.dtype() != Dtype::F32 || found != wanted {
                let reason = format!("{name} is {found:?} there and {wanted:?} in the model");
                return Err(self.misfit(reason));
            }
            pairs.push((view, target));
        }
        for (view, target) in pairs {
            let (elements, _) = view.data().as_chunks();
            let elements: Vec<f32> =
                elements.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
            target.write(&elements);
        }
        Ok(())
    }

    fn misfit(&self, reason: String) -> ArchiveError {
        ArchiveError::Misfit { path: self.path.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tensor::Device;

    fn tensors() -> (Device, Tensor, Tensor) {
        let device = Device::cpu(1).unwrap();
        let (a, b) = (device.tensor(2, 3, &[1., 2., 3., 4., 5., 6.]), device.tensor(1, 1, &[-7.]));
        (device, a, b)
    }

    /// Our own writer gives the bytes of the library's.
    #[test]
    fn the_format_is_the_librarys() {
        let folder = tempfile::tempdir().unwrap();
        let (_, path) = written(folder.path());
        let bytes = fs::read(&path).unwrap();
        let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap().tensors();
        let header = metadata.metadata().clone();
        assert_eq!(safetensors::serialize(tensors, header).unwrap(), bytes);
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);
    }

    fn written(folder: &Path) -> (Device, PathBuf) {
        let (device, a, b) = tensors();
        let path = folder.join("weights.safetensors");
        write(&path, [("a".to_owned(), &a), ("b".to_owned(), &b)], &("metadata", 3)).unwrap();
        (device, path)
    }

    #[test]
    fn what_was_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (device, path) = written(folder.path());
        let archive = Archive::open(&path).unwrap();
        assert_eq!(archive.metadata::<(String, u32)>().unwrap(), ("metadata".to_owned(), 3));
        let (mut a, mut b) = (device.zeros(2, 3), device.zeros(1, 1));
        archive.load(vec![("a".to_owned(), &mut a), ("b".to_owned(), &mut b)]).unwrap();
        assert_eq!(a.to_vec(), [1., 2., 3., 4., 5., 6.]);
        assert_eq!(b.to_vec(), [-7.]);
        let names: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside the file");
        let again = fs::read(&path).unwrap();
        written(folder.path());
        assert_eq!(again, fs::read(&path).unwrap(), "equal content gives equal bytes");
    }

    #[test]
    fn every_truncation_and_every_altered_byte_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let (_, path) = written(folder.path());
        let sound = fs::read(&path).unwrap();
        for length in 0..sound.len() {
            fs::write(&path, &sound[..length]).unwrap();
            assert!(Archive::open(&path).is_err(), "cut to {length} bytes");
        }
        for at in 0..sound.len() {
            let mut altered = sound.clone();
            altered[at] ^= 1;
            fs::write(&path, &altered).unwrap();
            assert!(Archive::open(&path).is_err(), "byte {at} altered");
        }
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (device, path) = written(folder.path());
        let archive = Archive::open(&path).unwrap();
        let (mut a, mut wrong) = (device.zeros(2, 3), device.zeros(1, 2));
        let error = archive.load(vec![("a".to_owned(), &mut a), ("b".to_owned(), &mut wrong)]);
        assert!(error.unwrap_err().to_string().contains("b is [1, 1] there and [1, 2]"));
        let error = archive.load(vec![("a".to_owned(), &mut a)]).unwrap_err().to_string();
        assert!(error.contains("it holds b, which the model has not"), "{error}");
        let mut extra = device.zeros(1, 1);
        let mut b = device.zeros(1, 1);
        let error = archive.load(vec![
            ("a".to_owned(), &mut a),
            ("b".to_owned(), &mut b),
            ("c".to_owned(), &mut extra),
        ]);
        assert!(error.unwrap_err().to_string().contains("it holds no c"));
        assert_eq!(a.to_vec(), [0.0; 6]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let (_, a, _) = tensors();
        let path = Path::new("no-such-folder/weights.safetensors");
        let error = write(path, [("a".to_owned(), &a)], &()).unwrap_err();
        assert!(error.to_string().contains("no-such-folder"), "{error}");
    }
}
