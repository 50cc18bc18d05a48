//! NumPy's arrays on disk: `.npy` for one, `.npz` for several by name.
//!
//! Half, single and double precision, little-endian, rows first, one to three dimensions: what
//! vectors and matrices of this project need. Anything else is refused by name.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::Path;

use files::{At, limits};
use half::f16;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::{Error, Result};

const MAGIC: &[u8] = b"\x93NUMPY";
/// A header is padded so that the values start at a multiple of this.
const ALIGNMENT: usize = 64;
const CONVERT: &str = "save it from NumPy as np.ascontiguousarray(a, dtype='<f4')";
const ANEW: &str = "write or fetch the file anew";

/// Values in rows, the last index running fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// One to three sizes.
    pub shape: Vec<usize>,
    /// As many values as the product of the sizes.
    pub values: Vec<T>,
}

impl<T: Element> Array<T> {
    /// Refuses an array with a NaN or an infinite value, as read from `path`.
    pub fn finite(self, path: &Path) -> Result<Self> {
        match self.values.iter().position(|x| !x.to_f64().is_finite()) {
            None => Ok(self),
            Some(at) => {
                let reason = format!("value {} of {} is not finite", at + 1, self.values.len());
                Err(Error::input(path.display(), reason, ANEW))
            }
        }
    }
}

/// How exactly values are kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 16 bits, `<f2`.
    Half,
    /// 32 bits, `<f4`.
    Single,
    /// 64 bits, `<f8`.
    Double,
}

impl Precision {
    fn name(self) -> &'static str {
        match self {
            Precision::Half => "<f2",
            Precision::Single => "<f4",
            Precision::Double => "<f8",
        }
    }

    fn of(name: &str) -> Option<Self> {
        let all = [Precision::Half, Precision::Single, Precision::Double];
        all.into_iter().find(|precision| precision.name() == name)
    }

    /// Bytes that a value takes.
    pub fn bytes(self) -> usize {
        match self {
            Precision::Half => 2,
            Precision::Single => 4,
            Precision::Double => 8,
        }
    }
}

/// What values can be in memory: `f32` and `f64`.
pub trait Element: Copy {
    /// From the widest kind.
    fn from_f64(value: f64) -> Self;
    /// To the widest kind.
    fn to_f64(self) -> f64;
}

impl Element for f32 {
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Element for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Reads a `.npy` file of any of the three precisions.
pub fn read<T: Element>(path: &Path) -> Result<Array<T>> {
    let file = File::open(path).at(path, "open")?;
    read_from(&mut BufReader::with_capacity(1 << 18, file), path)
}

/// Writes a `.npy` file.
///
/// # Panics
///
/// Where `values` are not as many as `shape` says.
pub fn write<T: Element>(
    path: &Path,
    shape: &[usize],
    values: &[T],
    precision: Precision,
) -> Result<()> {
    Ok(files::write_with(path, |writer| write_array(writer, shape, values, precision))?)
}

/// Reads every array of a `.npz` file, in its order, with its name.
pub fn read_archive<T: Element>(path: &Path) -> Result<Vec<(String, Array<T>)>> {
    read_members(path, |_| true)
}

/// Reads those arrays of a `.npz` file whose names are wanted.
pub fn read_members<T: Element>(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<(String, Array<T>)>> {
    let file = File::open(path).at(path, "open")?;
    let size = file.metadata().at(path, "look at")?.len();
    let bad = |error: zip::result::ZipError| Error::input(path.display(), error.to_string(), ANEW);
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(bad)?;
    let mut arrays = Vec::new();
    // What all arrays together may hold.
    let mut left = limits::bounded(io::empty(), size);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(bad)?;
        let name = entry.name().map_err(bad)?.trim_end_matches(".npy").to_owned();
        if wanted(&name) {
            let mut entry = left.followed_by(entry);
            arrays.push((name, read_from(&mut entry, path)?));
            left = entry.followed_by(io::empty());
        }
    }
    Ok(arrays)
}

/// Writes a `.npz` file, not compressed: arrays by name, each in a precision of its own.
pub fn write_archive<T: Element>(
    path: &Path,
    arrays: &[(&str, &Array<T>, Precision)],
) -> Result<()> {
    Ok(files::in_place_of(path, |file| {
        let file = BufWriter::with_capacity(1 << 18, file);
        let finished = fill_archive(ZipWriter::new(file), arrays)?;
        finished.into_inner()?;
        Ok(())
    })?)
}

fn fill_archive<W: Write + Seek, T: Element>(
    mut archive: ZipWriter<W>,
    arrays: &[(&str, &Array<T>, Precision)],
) -> io::Result<W> {
    // A date would make equal arrays unequal files.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    for &(name, array, precision) in arrays {
        archive.start_file(format!("{name}.npy"), options)?;
        write_array(&mut archive, &array.shape, &array.values, precision)?;
    }
    Ok(archive.finish()?)
}

fn write_array<T: Element>(
    writer: &mut impl Write,
    shape: &[usize],
    values: &[T],
    precision: Precision,
) -> io::Result<()> {
    assert_eq!(shape.iter().product::<usize>(), values.len(), "values do not fill the shape");
    write_header(writer, shape, precision)?;
    let mut bytes = Vec::new();
    for values in values.chunks(1 << 14) {
        bytes.clear();
        for value in values.iter().map(|value| value.to_f64()) {
            match precision {
                Precision::Half => bytes.extend(f16::from_f64(value).to_le_bytes()),
                Precision::Single => bytes.extend((value as f32).to_le_bytes()),
                Precision::Double => bytes.extend(value.to_le_bytes()),
            }
        }
        writer.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes what stands before the values, which may then follow in chunks; returns how many bytes
/// they take.
pub fn write_header(
    writer: &mut impl Write,
    shape: &[usize],
    precision: Precision,
) -> io::Result<u64> {
    // A tuple of one has a comma too.
    let sizes: Vec<_> = shape.iter().map(usize::to_string).collect();
    let sizes = sizes.join(", ") + if shape.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        precision.name(),
        sizes
    );
    let before = MAGIC.len() + 4;
    let padded = (before + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.extend(std::iter::repeat_n(' ', padded - before - header.len() - 1));
    header.push('\n');
    writer.write_all(MAGIC)?;
    writer.write_all(&[1, 0])?;
    writer.write_all(&(header.len() as u16).to_le_bytes())?;
    writer.write_all(header.as_bytes())?;
    Ok(padded as u64)
}

/// Reads an array from the bytes of a `.npy` file, which messages call `path`.
pub fn read_from<T: Element>(reader: &mut impl Read, path: &Path) -> Result<Array<T>> {
    let (precision, shape) = read_header(reader, path)?;
    let size = shape.iter().try_fold(precision.bytes(), |size, &n| size.checked_mul(n));
    let Some(size) = size else {
        return Err(Error::input(
            path.display(),
            format!("no array has the shape {shape:?}"),
            ANEW,
        ));
    };
    // Memory grows with what is really there, whatever the header promises.
    let mut values = Vec::new();
    let mut buffer = vec![0; size.min(1 << 16)];
    let mut left = size;
    while left > 0 {
        let chunk = left.min(buffer.len());
        let bytes = &mut buffer[..chunk];
        reader.read_exact(bytes).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                let reason = format!("ends before the {size} bytes of its shape {shape:?}");
                Error::input(path.display(), reason, ANEW)
            }
            _ if limits::is_too_large(&error) => {
                Error::input(path.display(), error.to_string(), "or save fewer arrays in one file")
            }
            _ => Error::input(path.display(), error.to_string(), ANEW),
        })?;
        values.extend(decode::<T>(precision, bytes));
        left -= chunk;
    }
    if reader.read(&mut [0]).at(path, "read")? != 0 {
        let reason = format!("goes on after the {size} bytes of its shape {shape:?}");
        return Err(Error::input(path.display(), reason, ANEW));
    }
    Ok(Array { shape, values })
}

/// The values that lie in some bytes.
pub fn decode<T: Element>(precision: Precision, bytes: &[u8]) -> impl Iterator<Item = T> + '_ {
    bytes.chunks_exact(precision.bytes()).map(|bytes| T::from_f64(one(bytes)))
}

/// One value of two, four or eight bytes.
fn one(bytes: &[u8]) -> f64 {
    match *bytes {
        [a, b] => f16::from_le_bytes([a, b]).to_f64(),
        [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
        _ => f64::from_le_bytes(bytes.try_into().expect("two, four or eight bytes")),
    }
}

/// Reads what stands before the values, and nothing of them: how they are kept, and the sizes.
pub fn read_header(reader: &mut impl Read, path: &Path) -> Result<(Precision, Vec<usize>)> {
    let not_npy = || Error::input(path.display(), "is no .npy file", "give one that NumPy saved");
    let mut start = [0; 8];
    reader.read_exact(&mut start).map_err(|_| not_npy())?;
    if !start.starts_with(MAGIC) {
        return Err(not_npy());
    }
    let mut length = [0; 4];
    let digits = if start[6] == 1 { 2 } else { 4 };
    reader.read_exact(&mut length[..digits]).map_err(|_| not_npy())?;
    let length = u32::from_le_bytes(length);
    if length > 1 << 20 {
        return Err(not_npy());
    }
    let mut header = vec![0; length as usize];
    reader.read_exact(&mut header).map_err(|_| not_npy())?;
    let header = String::from_utf8(header).map_err(|_| not_npy())?;
    let value = |key: &str| {
        let (_, after) = header.split_once(&format!("'{key}':"))?;
        Some(after.trim_start())
    };
    let kind = value("descr").and_then(|text| text.strip_prefix('\'')?.split('\'').next());
    let Some(precision) = kind.and_then(Precision::of) else {
        let reason = format!("holds `{}`, not <f2, <f4 or <f8", kind.unwrap_or("records"));
        return Err(Error::input(path.display(), reason, CONVERT));
    };
    if !value("fortran_order").is_some_and(|text| text.starts_with("False")) {
        return Err(Error::input(path.display(), "has columns first (fortran_order)", CONVERT));
    }
    let sizes = value("shape").and_then(|text| text.strip_prefix('(')?.split(')').next());
    let sizes = sizes.ok_or_else(not_npy)?.split(',').map(str::trim);
    let shape: std::result::Result<Vec<usize>, _> =
        sizes.filter(|size| !size.is_empty()).map(str::parse).collect();
    match shape {
        Ok(shape) if (1..=3).contains(&shape.len()) => Ok((precision, shape)),
        Ok(shape) => {
            let reason = format!("has {} dimensions, not one to three", shape.len());
            Err(Error::input(path.display(), reason, "reshape it in NumPy"))
        }
        Err(_) => Err(not_npy()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `np.save` of NumPy 2.4 writes `np.array([[1.5, -2.0]], dtype='<f4')`.
    fn of_numpy() -> Vec<u8> {
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }";
        let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
        bytes.extend(format!("{header:<117}\n").bytes());
        bytes.extend([0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0]);
        bytes
    }

    #[test]
    fn the_bytes_are_those_of_numpy() {
        let mut written = Vec::new();
        write_array(&mut written, &[1, 2], &[1.5f32, -2.0], Precision::Single).unwrap();
        assert_eq!(written, of_numpy());
        let array: Array<f64> = read_from(&mut &written[..], Path::new("a.npy")).unwrap();
        assert_eq!(array, Array { shape: vec![1, 2], values: vec![1.5, -2.0] });
    }

    /// A quarter of a gigabyte of zeros in a quarter of a megabyte.
    #[test]
    fn an_archive_that_unpacks_to_too_much_is_refused_with_the_limit() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.npz");
        let mut archive = ZipWriter::new(File::create(&path).unwrap());
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
        for name in ["a.npy", "b.npy"] {
            archive.start_file(name, options).unwrap();
            write_header(&mut archive, &[20 << 20], Precision::Half).unwrap();
            archive.write_all(&vec![0; 40 << 20]).unwrap();
        }
        archive.finish().unwrap();
        let error = read_archive::<f32>(&path).unwrap_err().to_string();
        assert!(
            error.contains("a.npz: holds or unpacks to more than")
                && error.contains("ISOGLOSS_MAX_BYTES"),
            "{error}"
        );
    }

    #[test]
    fn every_precision_and_shape_comes_back() {
        let place = tempfile::tempdir().unwrap();
        let values: Vec<f32> = (0..24).map(|i| i as f32 / 4.0 - 3.0).collect();
        for shape in [vec![24], vec![4, 6], vec![2, 3, 4]] {
            for precision in [Precision::Half, Precision::Single, Precision::Double] {
                let path = place.path().join("a.npy");
                write(&path, &shape, &values, precision).unwrap();
                let array = read::<f32>(&path).unwrap();
                assert_eq!((&array.shape, &array.values), (&shape, &values));
            }
        }
    }

    #[test]
    fn an_archive_keeps_names_and_order() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a.npz");
        let one = Array { shape: vec![2], values: vec![0.1f64, 0.2] };
        let two = Array { shape: vec![1, 1], values: vec![7.0] };
        write_archive(&path, &[("b", &one, Precision::Double), ("a", &two, Precision::Double)])
            .unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let read = read_archive::<f64>(&path).unwrap();
        assert_eq!(read, [("b".to_owned(), one.clone()), ("a".to_owned(), two.clone())]);
        write_archive(&path, &[("b", &one, Precision::Double), ("a", &two, Precision::Double)])
            .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read_archive::<f64>(&path).is_err());
    }

    #[test]
    fn what_is_no_array_of_ours_is_refused_by_name() {
        let refused = |change: fn(&mut Vec<u8>)| {
            let mut bytes = of_numpy();
            change(&mut bytes);
            read_from::<f32>(&mut &bytes[..], Path::new("a.npy")).unwrap_err().to_string()
        };
        assert!(refused(|b| b.truncate(130)).contains("ends before the 8 bytes"));
        assert!(refused(|b| b.push(0)).contains("goes on after"));
        assert!(refused(|b| b[0] = 0).contains("is no .npy file"));
        assert!(refused(|b| b.truncate(20)).contains("is no .npy file"));
        assert!(refused(|b| b[22] = b'i').contains("holds `<i4`"));
        // `False` becomes `Talse`, which is not false either.
        assert!(refused(|b| b[44] = b'T').contains("columns first"));
    }
}
