//! Files that lie: a sound file, changed at random in the ways that readers fall for.
//!
//! Blind changes rarely get past a checksum or a decompressor, so that what is packed is also changed
//! within and packed again ([`Packing`]).

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use safetensors::SafeTensors;
use serde_json::Value;
use zip::write::SimpleFileOptions;

/// The longest file that is made.
const LONGEST: usize = 1 << 20;

/// What a file is packed with, so that its content can be changed and packed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Nothing.
    Plain,
    /// gzip.
    Gzip,
    /// zstd.
    Zstd,
    /// bzip2.
    Bzip2,
    /// A zip archive (also `.npz`).
    Zip,
    /// A tar archive in gzip.
    TarGz,
    /// Weights of this project: safetensors with a digest.
    Sealed,
}

/// Numbers that readers multiply, allocate and index by.
const NUMBERS: [u64; 14] = [
    0,
    1,
    2,
    127,
    255,
    256,
    65_535,
    65_536,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];

/// Words that formats give a meaning to.
const WORDS: [&str; 24] = [
    "-1",
    "NaN",
    "inf",
    "1e308",
    "-1e-320",
    "0.5",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "../../../etc/passwd",
    "/dev/zero",
    "\u{1b}[2J",
    "\r\n",
    "\t\t",
    "\0",
    "\u{feff}",
    "\u{fffd}",
    "99999999999999999999999999",
    "[[[[[[[[[[[[[[[[",
    "\u{1f469}\u{200d}\u{1f52c}",
    "\u{202e}",
    "-9223372036854775808",
];

/// A changed copy of a file; `other` is one to splice from.
pub fn mutate(bytes: &[u8], other: &[u8], packing: Packing, rng: &mut ChaCha8Rng) -> Vec<u8> {
    let inside = packing != Packing::Plain && rng.random_bool(0.6);
    let changed = if inside { repacked(bytes, other, packing, rng) } else { None };
    changed.unwrap_or_else(|| {
        let mut bytes = bytes.to_vec();
        change(&mut bytes, other, rng);
        bytes
    })
}

/// One to six changes, one after another.
fn change(bytes: &mut Vec<u8>, other: &[u8], rng: &mut ChaCha8Rng) {
    // Half of all files are hit once: a single fault is what checks downstream of it meet.
    let times = if rng.random_bool(0.5) { 1 } else { rng.random_range(2..7) };
    for _ in 0..times {
        change_once(bytes, other, rng);
        bytes.truncate(LONGEST);
    }
}

fn change_once(bytes: &mut Vec<u8>, other: &[u8], rng: &mut ChaCha8Rng) {
    if bytes.is_empty() {
        bytes.extend_from_slice(&other[..other.len().min(64)]);
        bytes.push(b'0');
    }
    let at = place(bytes.len(), rng);
    let span = |rng: &mut ChaCha8Rng, length: usize| {
        let start = rng.random_range(0..length);
        let longest = (length - start).min(if rng.random_bool(0.5) { 16 } else { 4096 });
        start..start + rng.random_range(0..=longest)
    };
    match rng.random_range(0..12) {
        0 | 1 => bytes[at] ^= 1 << rng.random_range(0..8),
        2 => bytes[at] = [0, 0xff, 0x7f, 0x80, b'\n', b'"', b'\t', b'-'][rng.random_range(0..8)],
        3 => number_of_bytes(bytes, at, rng),
        4 | 5 => number_of_digits(bytes, rng),
        6 => bytes.truncate(at),
        7 => {
            let copied = bytes[span(rng, bytes.len())].to_vec();
            let times = if rng.random_bool(0.05) { rng.random_range(2..2000) } else { 1 };
            let copied = copied.repeat(times.min(LONGEST / copied.len().max(1)));
            bytes.splice(at..at, copied);
        }
        8 => drop(bytes.drain(span(rng, bytes.len()))),
        9 if !other.is_empty() => {
            let taken = other[span(rng, other.len())].to_vec();
            let replaced = span(rng, bytes.len());
            bytes.splice(replaced, taken);
        }
        10 => {
            let word = WORDS[rng.random_range(0..WORDS.len())];
            let replaced = at..(at + rng.random_range(0..4)).min(bytes.len());
            bytes.splice(replaced, word.bytes());
        }
        _ => {
            let filler = [b'A', b'[', b'(', 0, b' ', 0xf0][rng.random_range(0..6)];
            let length = 1 << rng.random_range(0..16);
            bytes.splice(at..at, std::iter::repeat_n(filler, length));
        }
    }
}

/// A place in the file; headers are short and matter most.
fn place(length: usize, rng: &mut ChaCha8Rng) -> usize {
    let within = if rng.random_bool(0.5) { length.min(256) } else { length };
    rng.random_range(0..within)
}

fn number_of_bytes(bytes: &mut [u8], at: usize, rng: &mut ChaCha8Rng) {
    let number = NUMBERS[rng.random_range(0..NUMBERS.len())];
    let width = [1, 2, 4, 8][rng.random_range(0..4)].min(bytes.len() - at);
    let written = number.to_le_bytes();
    let target = &mut bytes[at..at + width];
    target.copy_from_slice(&written[..width]);
    if rng.random_bool(0.3) {
        target.reverse();
    }
}

/// Replaces a number that is written in digits.
fn number_of_digits(bytes: &mut Vec<u8>, rng: &mut ChaCha8Rng) {
    let from = place(bytes.len(), rng);
    let Some(start) = (from..bytes.len()).find(|&at| bytes[at].is_ascii_digit()) else { return };
    let end = (start..bytes.len()).find(|&at| !bytes[at].is_ascii_digit()).unwrap_or(bytes.len());
    let written = match rng.random_range(0..4) {
        0 => WORDS[rng.random_range(0..6)].to_owned(),
        1 => rng.random_range(0..20_u64).to_string(),
        _ => NUMBERS[rng.random_range(0..NUMBERS.len())].to_string(),
    };
    bytes.splice(start..end, written.bytes());
}

/// The content changed, and packed again; none where it cannot be unpacked.
fn repacked(bytes: &[u8], other: &[u8], packing: Packing, rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    match packing {
        Packing::Plain => None,
        Packing::Zip => rezip(bytes, other, rng),
        Packing::TarGz => retar(bytes, other, rng),
        Packing::Sealed => resealed(bytes, rng),
        Packing::Gzip | Packing::Zstd | Packing::Bzip2 => {
            let mut content = unpacked(bytes, packing)?;
            change(&mut content, other, rng);
            // Now and then what is small becomes large.
            if rng.random_bool(0.002) {
                let filler = [b'a', b'\n', b' ', 0][rng.random_range(0..4)];
                content.resize(16 << 20, filler);
            }
            Some(packed(&content, packing))
        }
    }
}

fn unpacked(bytes: &[u8], packing: Packing) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut reader: Box<dyn Read + '_> = match packing {
        Packing::Gzip => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        Packing::Zstd => Box::new(zstd::Decoder::new(bytes).ok()?),
        Packing::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(bytes)),
        _ => return None,
    };
    reader.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Packs some bytes, fast.
pub fn packed(content: &[u8], packing: Packing) -> Vec<u8> {
    const MEMORY: &str = "writing to memory does not fail";
    match packing {
        Packing::Gzip => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(content).expect(MEMORY);
            writer.finish().expect(MEMORY)
        }
        Packing::Zstd => zstd::encode_all(content, 1).expect(MEMORY),
        Packing::Bzip2 => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(content).expect(MEMORY);
            writer.finish().expect(MEMORY)
        }
        _ => content.to_vec(),
    }
}

fn rezip(bytes: &[u8], other: &[u8], rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).ok()?;
    let hit = rng.random_range(0..archive.len().max(1));
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).ok()?;
        let mut name = entry.name().ok()?.into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).ok()?;
        let stored = entry.compression() == zip::CompressionMethod::Stored;
        if index == hit {
            match rng.random_range(0..8) {
                0 => name = format!("../{name}"),
                1 if !stored => content.resize(16 << 20, 0),
                _ => change(&mut content, other, rng),
            }
        }
        let options = SimpleFileOptions::default().compression_method(entry.compression());
        writer.start_file(name, options).ok()?;
        writer.write_all(&content).ok()?;
    }
    Some(writer.finish().ok()?.into_inner())
}

fn retar(bytes: &[u8], other: &[u8], rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    let mut content = unpacked(bytes, Packing::Gzip)?;
    change(&mut content, other, rng);
    // A header with a sum that is right is believed.
    if content.len() >= 512 && rng.random_bool(0.7) {
        content[148..156].fill(b' ');
        let sum: u32 = content[..512].iter().map(|&byte| u32::from(byte)).sum();
        let digits = format!("{sum:06o}\0 ");
        content[148..156].copy_from_slice(&digits.as_bytes()[..8]);
    }
    Some(packed(&content, Packing::Gzip))
}

/// Weights whose metadata lies, under a digest that is right: what only somebody who means it writes.
fn resealed(bytes: &[u8], rng: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (header, elements) = (rest.get(..length)?, rest.get(length..)?);
    let mut header: Value = serde_json::from_slice(header).ok()?;
    let seal = header.get("__metadata__")?.get("isogloss")?.as_str()?;
    let mut seal: Value = serde_json::from_str(seal).ok()?;
    let mut metadata = seal.get("metadata")?.as_str()?.as_bytes().to_vec();
    for _ in 0..rng.random_range(1..3) {
        number_of_digits(&mut metadata, rng);
    }
    let metadata = String::from_utf8(metadata).ok()?;
    let digest = digest(bytes, &metadata)?;
    seal["metadata"] = metadata.into();
    seal["blake3"] = digest.into();
    header["__metadata__"]["isogloss"] = seal.to_string().into();
    let header = serde_json::to_vec(&header).ok()?;
    let length = (header.len() as u64).to_le_bytes();
    Some([&length[..], &header, elements].concat())
}

/// The digest that `encoder::archive` gives a file.
fn digest(bytes: &[u8], metadata: &str) -> Option<String> {
    let file = SafeTensors::deserialize(bytes).ok()?;
    let views: BTreeMap<_, _> = file.tensors().into_iter().collect();
    let mut hasher = blake3::Hasher::new();
    hasher.update(metadata.as_bytes());
    for (name, view) in views {
        hasher.update(format!("\n{name} {:?} {:?}\n", view.dtype(), view.shape()).as_bytes());
        hasher.update(view.data());
    }
    Some(hasher.finalize().to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_file_and_another_another() {
        let sample = packed("one 1\ntwo 2\n".repeat(40).as_bytes(), Packing::Gzip);
        let make = |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            mutate(&sample, b"other", Packing::Gzip, &mut rng)
        };
        let all: std::collections::BTreeSet<_> = (0..200).map(make).collect();
        assert!(all.len() > 150, "{} of 200 differ", all.len());
        assert_eq!(make(7), make(7));
        let readable = all.iter().filter(|bytes| unpacked(bytes, Packing::Gzip).is_some());
        assert!(readable.count() > 60, "most are packed again, and so get to the reader");
    }
}
