//! PyTorch's own files: a pickle of a state dict, and the numbers that it points at.
//!
//! Since 1.6 such a file is a ZIP archive whose entries are stored as they are; before, it was five
//! pickles with the numbers behind them.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use zip::{CompressionMethod, ZipArchive};

use super::pickle::{Machine, PickleNode, PickledTensor, Value};
use super::{Located, Tensors};

type Result<T> = std::result::Result<T, String>;

/// A pickle of a state dict has some hundred bytes for each tensor; more than this is none.
const LONGEST_PICKLE: u64 = 64 << 20;
/// How an old file begins: the pickle of a number that nothing else begins with.
const OLD: &[u8] = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";

/// Finds the tensors of a file, whose numbers are not read.
pub fn read(mut file: impl Read + Seek) -> Result<Tensors> {
    let unreadable = |error: std::io::Error| format!("cannot be read ({error})");
    let length = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
    let length = usize::try_from(length).map_err(|_| "is too large for this machine")?;
    file.rewind().map_err(unreadable)?;
    let mut head = Vec::new();
    file.by_ref().take(OLD.len() as u64).read_to_end(&mut head).map_err(unreadable)?;
    match head == OLD {
        true => {
            // What is not among these bytes are numbers.
            file.by_ref().take(LONGEST_PICKLE).read_to_end(&mut head).map_err(unreadable)?;
            read_old(&head, file, length)
        }
        false => read_archive(file, length),
    }
}

fn read_archive(file: impl Read + Seek, length: usize) -> Result<Tensors> {
    let mut archive = ZipArchive::new(file)
        .map_err(|error| format!("is cut short or no file of PyTorch's ({error})"))?;
    let names: Vec<String> = archive
        .file_names()
        .map(|name| name.map(|name| name.into_owned()))
        .collect::<std::result::Result<_, _>>()
        .map_err(|error| format!("has an entry without a name ({error})"))?;
    let pickle = names.iter().find(|name| name.ends_with("/data.pkl") || *name == "data.pkl");
    let pickle = pickle.ok_or("has no data.pkl: it is no file of PyTorch's")?;
    let root = pickle.strip_suffix("data.pkl").unwrap_or_default().to_owned();
    if let Some(order) = entry(&mut archive, &format!("{root}byteorder"), 16)?
        && order != b"little"
    {
        return Err("was written on a machine of another byte order".to_owned());
    }
    let pickle = entry(&mut archive, pickle, LONGEST_PICKLE)?.unwrap_or_default();
    let mut storages = HashMap::new();
    for name in &names {
        if let Some(key) = name.strip_prefix(&format!("{root}data/")) {
            storages.insert(key.to_owned(), stored(&mut archive, name, length)?);
        }
    }
    let (value, machine) = Machine::run(&pickle, 0)?;
    locate(value, &machine, &|key| storages.get(key).cloned())
}

/// The content of a small entry; none where there is no such entry.
fn entry(
    archive: &mut ZipArchive<impl Read + Seek>,
    name: &str,
    most: u64,
) -> Result<Option<Vec<u8>>> {
    if archive.index_for_name(name).is_none() {
        return Ok(None);
    }
    let broken = |error: &dyn std::fmt::Display| format!("has a broken entry {name} ({error})");
    let entry = archive.by_name(name).map_err(|error| broken(&error))?;
    let mut content = Vec::new();
    entry.take(most + 1).read_to_end(&mut content).map_err(|error| broken(&error))?;
    if content.len() as u64 > most {
        return Err(format!("has an entry {name} of more than {most} bytes"));
    }
    Ok(Some(content))
}

/// Where the bytes of an entry stand in the file.
fn stored(
    archive: &mut ZipArchive<impl Read + Seek>,
    name: &str,
    end: usize,
) -> Result<Range<usize>> {
    let entry = archive.by_name(name);
    let entry = entry.map_err(|error| format!("has a broken entry {name} ({error})"))?;
    if entry.compression() != CompressionMethod::Stored {
        return Err(format!("has a compressed entry {name}, as PyTorch never writes them"));
    }
    let first = entry.data_start().and_then(|first| usize::try_from(first).ok());
    let range = first.and_then(|first| {
        let last = first.checked_add(usize::try_from(entry.size()).ok()?)?;
        (last <= end).then_some(first..last)
    });
    range.ok_or_else(|| format!("has an entry {name} that goes beyond the file"))
}

/// The tensors of a state dict, in a file where each storage has its place.
fn locate(
    value: Value<'_>,
    machine: &Machine<'_>,
    place: &dyn Fn(&str) -> Option<Range<usize>>,
) -> Result<Tensors> {
    let mut tensors = Tensors::new();
    for &(key, value) in state_dict(value, machine)? {
        let Value::Text(name) = key else {
            return Err("has a tensor whose name is no text".to_owned());
        };
        let Value::PickleNode(node) = value else { return Err(no_tensor(name)) };
        let PickleNode::Tensor(tensor) = &machine.nodes[node] else { return Err(no_tensor(name)) };
        let located = locate_one(tensor, place).map_err(|reason| format!("{name} {reason}"))?;
        tensors.insert(name.to_owned(), located);
    }
    Ok(tensors)
}

fn no_tensor(name: &str) -> String {
    format!("has `{name}`, which is no tensor; save the `state_dict()` alone")
}

type PicklePairs<'v, 'a> = &'v [(Value<'a>, Value<'a>)];

/// The dict itself, or the one that it holds under `state_dict`.
fn state_dict<'v, 'a>(value: Value<'a>, machine: &'v Machine<'a>) -> Result<PicklePairs<'v, 'a>> {
    let dict = |value: Value<'a>| match value {
        Value::PickleNode(node) => match &machine.nodes[node] {
            PickleNode::Dict(pairs) => Some(pairs.as_slice()),
            _ => None,
        },
        _ => None,
    };
    let outer = dict(value).ok_or("is not a dict of tensors; save the `state_dict()` alone")?;
    let inner = outer.iter().find(|(key, _)| matches!(key, Value::Text("state_dict")));
    Ok(inner.and_then(|&(_, value)| dict(value)).unwrap_or(outer))
}

fn locate_one(
    tensor: &PickledTensor<'_>,
    place: &dyn Fn(&str) -> Option<Range<usize>>,
) -> Result<Located> {
    let PickledTensor { storage, offset, shape, strides } = tensor;
    let bytes = storage.element.bytes().ok_or("is of an unknown kind of number")?;
    let size = |&size: &i64| usize::try_from(size).map_err(|_| "has a negative size".to_owned());
    let shape: Vec<usize> = shape.iter().map(size).collect::<Result<_>>()?;
    if shape.len() != strides.len() || !contiguous(&shape, strides) {
        return Err("does not lie row after row; call `.contiguous()` before saving".to_owned());
    }
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let range = place(storage.key).ok_or("has no data in the file")?;
    let found = count.zip(usize::try_from(*offset).ok()).and_then(|(count, offset)| {
        let first = range.start.checked_add(offset.checked_mul(bytes)?)?;
        let last = first.checked_add(count.checked_mul(bytes)?)?;
        (last <= range.end).then_some(first..last)
    });
    let bytes = found.ok_or("is larger than what the file has of it")?;
    Ok(Located { element: storage.element, shape, bytes, head_rows: None })
}

/// Whether strides are those of rows one after another; those of a side of length 1 do not matter.
fn contiguous(shape: &[usize], strides: &[i64]) -> bool {
    let mut expected = Some(1i64);
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        if size > 1 && Some(stride) != expected {
            return false;
        }
        expected = expected.and_then(|expected| expected.checked_mul(size as i64));
    }
    true
}

/// An old file: its pickles, and the numbers behind them, each storage after its length.
fn read_old(bytes: &[u8], mut file: impl Read + Seek, end: usize) -> Result<Tensors> {
    let (_, magic) = Machine::run(bytes, 0)?;
    let (version, after) = Machine::run(bytes, magic.at)?;
    if !matches!(version, Value::Int(1001)) {
        return Err("is of an unknown version of PyTorch's old format".to_owned());
    }
    let (system, after) = Machine::run(bytes, after.at)?;
    check_order(system, &after)?;
    let (value, machine) = Machine::run(bytes, after.at)?;
    let (keys, after) = Machine::run(bytes, machine.at)?;
    let sizes = machine.nodes.iter().filter_map(|node| match node {
        PickleNode::Storage(storage) => {
            Some((storage.key, (storage.numbers, storage.element.bytes())))
        }
        _ => None,
    });
    let sizes: HashMap<&str, _> = sizes.collect();
    let Value::PickleNode(node) = keys else { return Err(NO_KEYS.to_owned()) };
    let PickleNode::List(keys) = &after.nodes[node] else { return Err(NO_KEYS.to_owned()) };
    let (mut at, mut storages) = (after.at, HashMap::new());
    for key in keys {
        let Value::Text(key) = key else { return Err(NO_KEYS.to_owned()) };
        let &(numbers, width) = sizes.get(key).ok_or(NO_KEYS)?;
        let first = at.saturating_add(8);
        let mut said = [0; 8];
        let found = file.seek(SeekFrom::Start(at as u64)).and_then(|_| file.read_exact(&mut said));
        let said = found.ok().map(|()| i64::from_le_bytes(said));
        let length =
            usize::try_from(numbers).ok().zip(width).and_then(|(n, width)| n.checked_mul(width));
        let last = length.and_then(|length| first.checked_add(length));
        let last = last.filter(|&last| last <= end && said == Some(numbers));
        at = last.ok_or_else(|| format!("is cut short within storage {key}"))?;
        storages.insert(*key, first..at);
    }
    locate(value, &machine, &|key| storages.get(key).cloned())
}

const NO_KEYS: &str = "has no list of its storages";

fn check_order(system: Value<'_>, machine: &Machine<'_>) -> Result<()> {
    let Value::PickleNode(node) = system else { return Ok(()) };
    let PickleNode::Dict(pairs) = &machine.nodes[node] else { return Ok(()) };
    let little = |(key, value): &(Value<'_>, Value<'_>)| {
        !matches!((key, value), (Value::Text("little_endian"), Value::Bool(false)))
    };
    match pairs.iter().all(little) {
        true => Ok(()),
        false => Err("was written on a machine of another byte order".to_owned()),
    }
}
