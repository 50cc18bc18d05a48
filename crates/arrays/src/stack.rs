//! Stacks of layers on disk: `.npy`, `.npz` and safetensors, read and written in chunks, so
//! that more rows can be worked on than memory holds.
//!
//! A layer is a matrix of rows x dimension. A `.npy` of two dimensions is one layer, one of three is
//! layers x rows x dimension; the other two formats hold a layer under each name.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use crate::matrix::Matrix;
use crate::npy::{self, Precision};
use crate::{Error, Result};
use files::At;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use terms::memory;

const SHAPES: &str = "give rows x dimension, or layers x rows x dimension";
const ANEW: &str = "write or fetch the file anew";

/// How a value lies in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementType {
    Numpy(Precision),
    /// bfloat16, the upper half of a 32-bit value.
    Bf16,
}

impl ElementType {
    fn bytes(self) -> usize {
        match self {
            ElementType::Numpy(precision) => precision.bytes(),
            ElementType::Bf16 => 2,
        }
    }

    fn decode(self, bytes: &[u8], out: &mut Vec<f32>) {
        match self {
            ElementType::Numpy(Precision::Single) => {
                out.extend(bytes.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)));
            }
            ElementType::Numpy(precision) => out.extend(npy::decode::<f32>(precision, bytes)),
            ElementType::Bf16 => out.extend(
                bytes
                    .chunks_exact(2)
                    .map(|b| f32::from_bits(u32::from(u16::from_le_bytes([b[0], b[1]])) << 16)),
            ),
        }
    }
}

/// Where a layer's values are.
#[derive(Debug)]
enum LayerData {
    File { start: u64, kind: ElementType },
    Memory(Matrix),
}

#[derive(Debug)]
struct Layer {
    name: String,
    dim: usize,
    data: LayerData,
}

/// Layers of equally many rows.
#[derive(Debug)]
pub struct Stack {
    name: String,
    rows: usize,
    layers: Vec<Layer>,
    file: Option<Mutex<File>>,
}

impl Stack {
    /// Keeps some of the layers, in this order.
    pub fn keep(&mut self, layers: &[usize]) {
        let mut all: Vec<Option<Layer>> = self.layers.drain(..).map(Some).collect();
        self.layers = layers.iter().filter_map(|&layer| all[layer].take()).collect();
    }

    /// Opens a file by its content: an array, an archive of arrays, or safetensors.
    pub fn open(path: &Path) -> Result<Self> {
        let mut file = File::open(path).at(path, "open")?;
        let mut head = Vec::new();
        (&file).take(64).read_to_end(&mut head).at(path, "read")?;
        files::refuse_pointer(path, &head)?;
        file.rewind().at(path, "read")?;
        let layers = match head.as_slice() {
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => of_npy(&mut file, path)?,
            [b'P', b'K', ..] => of_npz(path)?,
            _ => of_safetensors(&mut file, path)?,
        };
        let stack = Self::assemble(path, layers)?;
        Ok(Self { file: Some(Mutex::new(file)), ..stack })
    }

    /// A stack of matrices in memory, by a name to call it in messages.
    pub fn of(name: &str, layers: Vec<Matrix>) -> Self {
        Self::numbered(name, layers.into_iter().enumerate().collect())
    }

    /// The same, where the layers have numbers of their own.
    pub fn numbered(name: &str, layers: Vec<(usize, Matrix)>) -> Self {
        let rows = layers.first().map_or(0, |(_, layer)| layer.rows());
        let even = layers.iter().all(|(_, layer)| layer.rows() == rows);
        assert!(even, "layers have equally many rows");
        let layer = |(number, matrix): (usize, Matrix)| Layer {
            name: number.to_string(),
            dim: matrix.cols(),
            data: LayerData::Memory(matrix),
        };
        let layers = layers.into_iter().map(layer).collect();
        Self { name: name.to_owned(), rows, layers, file: None }
    }

    fn assemble(path: &Path, layers: Vec<(Layer, usize)>) -> Result<Self> {
        let Some(rows) = layers.first().map(|(_, rows)| *rows) else {
            return Err(Error::input(path.display(), "holds no matrix", SHAPES));
        };
        if let Some((layer, other)) = layers.iter().find(|(_, other)| *other != rows) {
            let reason =
                format!("`{}` has {other} rows, `{}` has {rows}", layer.name, layers[0].0.name);
            return Err(Error::input(path.display(), reason, "give layers of the same rows"));
        }
        if rows == 0 || layers.iter().any(|(layer, _)| layer.dim == 0) {
            return Err(Error::input(path.display(), "holds no values", SHAPES));
        }
        let layers = layers.into_iter().map(|(layer, _)| layer).collect();
        Ok(Self { name: path.display().to_string(), rows, layers, file: None })
    }

    /// What the stack is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many layers there are.
    pub fn layers(&self) -> usize {
        self.layers.len()
    }

    /// How many rows each layer has.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of a layer.
    pub fn dim(&self, layer: usize) -> usize {
        self.layers[layer].dim
    }

    /// The name of a layer: its number, where the file gives it no other.
    pub fn layer_name(&self, layer: usize) -> &str {
        &self.layers[layer].name
    }

    /// The number of a layer, and its name where that is no number.
    pub fn layer_number(&self, layer: usize) -> (usize, Option<String>) {
        let name = self.layer_name(layer);
        name.parse().map_or_else(|_| (layer, Some(name.to_owned())), |number| (number, None))
    }

    /// Reads some rows of a layer, and refuses values that are not finite.
    pub fn read(&self, layer: usize, rows: Range<usize>) -> Result<Matrix> {
        let values = self.view(layer, rows.clone())?.into_owned();
        Ok(Matrix::new(rows.len(), self.layers[layer].dim, values))
    }

    /// The same values, row after row, without a copy where they are in memory.
    pub fn view(&self, layer: usize, rows: Range<usize>) -> Result<Cow<'_, [f32]>> {
        let values = self.unchecked(layer, rows.clone())?;
        let Layer { name, dim, .. } = &self.layers[layer];
        // A row at a time without a branch for each value.
        let finite = |row: &[f32]| row.iter().fold(true, |all, x| all & x.is_finite());
        if let Some(at) = values.chunks_exact(*dim).position(|row| !finite(row)) {
            let vector = &values[at * dim..(at + 1) * dim];
            let col = vector.iter().position(|x| !x.is_finite()).expect("it was just seen");
            let place = format!("{}: layer {name}, row {}", self.name, rows.start + at);
            let reason =
                format!("has {} in column {col} (rows and columns count from 0)", vector[col]);
            return Err(Error::input(place, reason, "mend or leave out the row, in both files"));
        }
        Ok(values)
    }

    /// The values of [`Stack::view`], be they finite or not: for callers that look themselves, or have looked before. Of many
    /// rows, looking takes as long as what is done with them.
    pub fn unchecked(&self, layer: usize, rows: Range<usize>) -> Result<Cow<'_, [f32]>> {
        let Layer { dim, data, .. } = &self.layers[layer];
        match data {
            LayerData::Memory(matrix) => Ok(Cow::Borrowed(matrix.strip(rows))),
            &LayerData::File { start, kind } => {
                let width = dim * kind.bytes();
                let mut bytes = vec![0; rows.len() * width];
                let file = self.file.as_ref().expect("a layer in a file has one");
                let mut file = file.lock().expect("nothing panics while it is held");
                let start = start + (rows.start * width) as u64;
                let read =
                    file.seek(SeekFrom::Start(start)).and_then(|_| file.read_exact(&mut bytes));
                read.at(Path::new(&self.name), "read")?;
                let mut values = Vec::with_capacity(rows.len() * dim);
                kind.decode(&bytes, &mut values);
                Ok(Cow::Owned(values))
            }
        }
    }

    /// Reads a whole layer, of which a file may have more than memory.
    pub fn whole(&self, layer: usize) -> Result<Matrix> {
        let needed = self.rows as u128 * self.dim(layer) as u128 * size_of::<f32>() as u128;
        memory::check(needed).map_err(|shortage| {
            Error::input(&self.name, shortage.to_string(), "give fewer rows")
        })?;
        self.read(layer, 0..self.rows)
    }
}

/// Refuses a file that is shorter or longer than its header promises.
fn check_size(file: &File, path: &Path, promised: Option<u64>, exact: bool) -> Result<()> {
    let found = file.metadata().at(path, "look at")?.len();
    if promised.is_some_and(|promised| found == promised || found > promised && !exact) {
        return Ok(());
    }
    let promised = promised.map_or("more".to_owned(), |bytes| bytes.to_string());
    let reason = format!("its header promises {promised} bytes, and there are {found}");
    Err(Error::input(path.display(), reason, ANEW))
}

fn of_npy(file: &mut File, path: &Path) -> Result<Vec<(Layer, usize)>> {
    let mut reader = BufReader::new(&mut *file);
    let (precision, shape) = npy::read_header(&mut reader, path)?;
    let start = reader.stream_position().at(path, "read")?;
    let (layers, rows, dim) = match *shape.as_slice() {
        [rows, dim] => (1, rows, dim),
        [layers, rows, dim] => (layers, rows, dim),
        _ => {
            let reason = format!("has the shape {shape:?}");
            return Err(Error::input(path.display(), reason, SHAPES));
        }
    };
    if layers == 0 || rows == 0 || dim == 0 {
        // No values fit any number of layers.
        return Err(Error::input(path.display(), "holds no values", SHAPES));
    }
    let sizes = [layers, rows, dim, precision.bytes()];
    let size = sizes.iter().try_fold(1u64, |size, &n| size.checked_mul(n as u64));
    check_size(file, path, size.and_then(|size| size.checked_add(start)), true)?;
    let kind = ElementType::Numpy(precision);
    let layer = |number: usize| {
        let start = start + (number * rows * dim * kind.bytes()) as u64;
        (Layer { name: number.to_string(), dim, data: LayerData::File { start, kind } }, rows)
    };
    Ok((0..layers).map(layer).collect())
}

fn of_npz(path: &Path) -> Result<Vec<(Layer, usize)>> {
    let arrays = npy::read_archive::<f32>(path)?;
    let layer = |(name, array): (String, npy::Array<f32>)| {
        let &[rows, dim] = array.shape.as_slice() else {
            let reason = format!("`{name}` has the shape {:?}", array.shape);
            return Err(Error::input(
                path.display(),
                reason,
                "give rows x dimension under each name",
            ));
        };
        if dim == 0 {
            return Err(Error::input(path.display(), format!("`{name}` holds no values"), SHAPES));
        }
        let data = LayerData::Memory(Matrix::new(rows, dim, array.values));
        Ok((Layer { name, dim, data }, rows))
    };
    arrays.into_iter().map(layer).collect()
}

fn of_safetensors(file: &mut File, path: &Path) -> Result<Vec<(Layer, usize)>> {
    let foreign = || Error::input(path.display(), "is no .npy, .npz or safetensors file", ANEW);
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| foreign())?;
    let length = u64::from_le_bytes(length);
    let size = file.metadata().at(path, "look at")?.len();
    if length < 2 || length > size.saturating_sub(8) {
        return Err(foreign());
    }
    let mut header = Vec::new();
    (&*file).take(length).read_to_end(&mut header).at(path, "read")?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|_| foreign())?;
    let mut names = metadata.offset_keys();
    names.sort_by_key(|name| natural(name));
    let mut layers = Vec::new();
    for name in names {
        let info = metadata.info(&name).expect("a name of the file's own");
        let kind = match info.dtype {
            Dtype::F16 => ElementType::Numpy(Precision::Half),
            Dtype::F32 => ElementType::Numpy(Precision::Single),
            Dtype::F64 => ElementType::Numpy(Precision::Double),
            Dtype::BF16 => ElementType::Bf16,
            other => {
                let reason = format!("`{name}` holds {other:?}");
                return Err(Error::input(path.display(), reason, "give real numbers"));
            }
        };
        let &[rows, dim] = info.shape.as_slice() else {
            let reason = format!("`{name}` has the shape {:?}", info.shape);
            return Err(Error::input(
                path.display(),
                reason,
                "give rows x dimension under each name",
            ));
        };
        let start = 8 + length + info.data_offsets.0 as u64;
        check_size(file, path, Some(8 + length + info.data_offsets.1 as u64), false)?;
        layers.push((Layer { name, dim, data: LayerData::File { start, kind } }, rows));
    }
    Ok(layers)
}

/// A name cut into text and numbers, so that `layer.10` comes after `layer.9`.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut in_number = false;
    for c in name.chars() {
        if in_number && !c.is_ascii_digit() {
            parts.push((String::new(), 0));
        }
        in_number = c.is_ascii_digit();
        let last = parts.last_mut().expect("never empty");
        match c.to_digit(10) {
            Some(digit) => last.1 = last.1.saturating_mul(10).saturating_add(u64::from(digit)),
            None => last.0.push(c),
        }
    }
    parts
}

/// A stack being written: layers x rows x dimension, the rows of all layers as they come.
pub struct StackWriter<W: Write + Seek> {
    file: BufWriter<W>,
    start: u64,
    layers: usize,
    rows: usize,
    dim: usize,
    done: usize,
}

impl<W: Write + Seek> StackWriter<W> {
    /// Starts an array of this size; one layer gives one of two dimensions.
    pub fn new(file: W, layers: usize, rows: usize, dim: usize) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        let shape = [layers, rows, dim];
        let shape = if layers == 1 { &shape[1..] } else { &shape[..] };
        let start = npy::write_header(&mut file, shape, Precision::Single)?;
        Ok(Self { file, start, layers, rows, dim, done: 0 })
    }

    /// Appends rows: those of every layer, `count x dim` each.
    pub fn append(&mut self, count: usize, layers: &[Vec<f32>]) -> io::Result<()> {
        assert!(self.done + count <= self.rows && layers.len() == self.layers, "as was promised");
        for (number, values) in layers.iter().enumerate() {
            assert_eq!(values.len(), count * self.dim, "rows of every layer");
            let place = (number * self.rows + self.done) * self.dim * size_of::<f32>();
            self.file.seek(SeekFrom::Start(self.start + place as u64))?;
            for value in values {
                self.file.write_all(&value.to_le_bytes())?;
            }
        }
        self.done += count;
        Ok(())
    }

    /// Ends the file; fails where rows are missing.
    pub fn finish(mut self) -> io::Result<()> {
        if self.done != self.rows {
            return Err(io::Error::other(format!("{} of {} rows came", self.done, self.rows)));
        }
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers() -> Vec<f32> {
        (0..24).map(|i| i as f32 / 4.0 - 3.0).collect()
    }

    fn check(stack: &Stack, names: [&str; 2]) {
        assert_eq!((stack.layers(), stack.rows(), stack.dim(1)), (2, 4, 3));
        assert_eq!([0, 1].map(|layer| stack.layer_name(layer).to_owned()), names);
        assert_eq!(stack.whole(0).unwrap().values(), &numbers()[..12]);
        assert_eq!(stack.read(1, 1..3).unwrap().values(), &numbers()[15..21]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_layer_that_memory_cannot_hold_is_refused_with_the_number() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.npy");
        let mut file = File::create(&path).unwrap();
        let shape = [1_usize << 32, 1 << 9];
        let start = npy::write_header(&mut file, &shape, Precision::Single).unwrap();
        // All holes: no disk holds eight terabytes.
        file.set_len(start + (4 << 41)).unwrap();
        let refused = Stack::open(&path).unwrap().whole(0).unwrap_err().to_string();
        assert!(refused.contains("a.npy: 8796.09 GB of memory are needed"), "{refused}");
    }

    #[test]
    fn every_format_gives_the_same_layers() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        let (first, second) = (numbers()[..12].to_vec(), numbers()[12..].to_vec());

        let mut writer = StackWriter::new(File::create(path("a.npy")).unwrap(), 2, 4, 3).unwrap();
        writer.append(1, &[first[..3].to_vec(), second[..3].to_vec()]).unwrap();
        writer.append(3, &[first[3..].to_vec(), second[3..].to_vec()]).unwrap();
        writer.finish().unwrap();
        check(&Stack::open(&path("a.npy")).unwrap(), ["0", "1"]);

        let array = |values: &[f32]| npy::Array { shape: vec![4, 3], values: values.to_vec() };
        let double = Precision::Double;
        let arrays = [("low", &array(&first), double), ("high", &array(&second), double)];
        npy::write_archive(&path("a.npz"), &arrays).unwrap();
        check(&Stack::open(&path("a.npz")).unwrap(), ["low", "high"]);

        let bytes =
            |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
        // The upper half of these values is all of them.
        let brain = |values: &[f32]| {
            values.iter().flat_map(|x| x.to_le_bytes()[2..].to_vec()).collect::<Vec<_>>()
        };
        let (first, second) = (bytes(&first), brain(&second));
        let view =
            |kind, data| safetensors::tensor::TensorView::new(kind, vec![4, 3], data).unwrap();
        let views =
            [("layer.9", view(Dtype::F32, &first)), ("layer.10", view(Dtype::BF16, &second))];
        let file = safetensors::serialize(views, None).unwrap();
        std::fs::write(path("a.safetensors"), &file).unwrap();
        check(&Stack::open(&path("a.safetensors")).unwrap(), ["layer.9", "layer.10"]);
        std::fs::write(path("a.safetensors"), &file[..file.len() - 1]).unwrap();
        let error = Stack::open(&path("a.safetensors")).unwrap_err().to_string();
        assert!(error.contains("its header promises"), "{error}");
    }

    #[test]
    fn layers_without_values_take_no_memory() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.npy");
        for shape in [[1 << 40, 0, 5], [1 << 40, 5, 0], [0, 5, 5]] {
            let mut file = Vec::new();
            npy::write_header(&mut file, &shape, Precision::Single).unwrap();
            std::fs::write(&path, file).unwrap();
            let error = Stack::open(&path).unwrap_err().to_string();
            assert!(error.contains("holds no values"), "{error}");
        }
    }

    #[test]
    fn an_array_that_is_not_filled_is_not_finished() {
        let place = tempfile::tempdir().unwrap();
        let file = File::create(place.path().join("a.npy")).unwrap();
        let mut writer = StackWriter::new(file, 1, 2, 1).unwrap();
        writer.append(1, &[vec![1.0]]).unwrap();
        assert!(writer.finish().unwrap_err().to_string().contains("1 of 2 rows"));
    }
}
