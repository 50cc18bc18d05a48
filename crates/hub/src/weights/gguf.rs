//! GGUF, llama.cpp's format: what the model is, its subwords and its tensors in one file.
//!
//! A header of keys and values and a list of tensors come first, then the numbers. It is read with what the file bears out:
//! nothing is as long as its word alone says.

use std::io::{BufReader, Read, Seek, SeekFrom};

use serde_json::{Map, Value};

use super::quantised::Quantised;
use super::{Located, NumberType, Tensors};

/// The numbers of tensors begin at a multiple of this, where the file does not say of what.
const ALIGNMENT: u64 = 32;
/// Dimensions of a tensor at most.
const MOST_DIMENSIONS: u32 = 4;

/// What stands before the numbers.
#[derive(Debug)]
pub struct Header {
    /// Keys and values.
    pub metadata: Map<String, Value>,
    /// Tensors by llama.cpp's names, shapes with the rows first.
    pub tensors: Tensors,
}

type Result<T> = std::result::Result<T, String>;

/// Reads what stands before the numbers, and checks that all of them are there.
pub fn read(mut file: impl Read + Seek) -> Result<Header> {
    let length = file.seek(SeekFrom::End(0)).map_err(cut)?;
    file.rewind().map_err(cut)?;
    let mut reader = HeaderReader { left: length, file: BufReader::new(file) };
    if reader.bytes()? != *b"GGUF" {
        return Err("is no GGUF file".to_owned());
    }
    match reader.u32()? {
        2 | 3 => {}
        version => return Err(format!("is GGUF of version {version}, not 2 or 3")),
    }
    let (tensors, keys) = (reader.u64()?, reader.u64()?);
    let mut metadata = Map::new();
    for _ in 0..keys {
        let key = reader.text()?;
        let kind = reader.u32()?;
        metadata.insert(key, reader.value(kind)?);
    }
    let mut infos = Vec::new();
    for _ in 0..tensors {
        infos.push(reader.info()?);
    }
    let alignment = metadata.get("general.alignment").and_then(Value::as_u64).unwrap_or(ALIGNMENT);
    let start =
        (length - reader.left).checked_next_multiple_of(alignment.max(1)).ok_or("has no start")?;
    let located = |(name, element, shape, offset): (String, NumberType, Vec<usize>, u64)| {
        let bytes = element.bytes_of(&shape).ok_or(format!("has {name} of half a block"))?;
        let first = start
            .checked_add(offset)
            .filter(|first| first.checked_add(bytes as u64).is_some_and(|end| end <= length));
        let first = first.ok_or(format!("is cut short: {name} ends after the file"))? as usize;
        Ok((name, Located { element, shape, bytes: first..first + bytes, head_rows: None }))
    };
    let tensors = infos.into_iter().map(located).collect::<Result<_>>()?;
    Ok(Header { metadata, tensors })
}

fn cut(error: std::io::Error) -> String {
    format!("is cut short or no GGUF file ({error})")
}

struct HeaderReader<F> {
    file: BufReader<F>,
    /// Bytes of the file that were not read yet.
    left: u64,
}

impl<F: Read> HeaderReader<F> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(cut)?;
        self.left -= N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    fn text(&mut self) -> Result<String> {
        let length = self.u64()?;
        if length > self.left {
            return Err("is cut short: a text is longer than the file".to_owned());
        }
        self.left -= length;
        let mut bytes = vec![0; length as usize];
        self.file.read_exact(&mut bytes).map_err(cut)?;
        String::from_utf8(bytes).map_err(|_| "has a text that is no UTF-8".to_owned())
    }

    fn value(&mut self, kind: u32) -> Result<Value> {
        Ok(match kind {
            0 => self.bytes::<1>()?[0].into(),
            1 => (self.bytes::<1>()?[0] as i8).into(),
            2 => u16::from_le_bytes(self.bytes()?).into(),
            3 => i16::from_le_bytes(self.bytes()?).into(),
            4 => self.u32()?.into(),
            5 => i32::from_le_bytes(self.bytes()?).into(),
            6 => f32::from_le_bytes(self.bytes()?).into(),
            7 => (self.bytes::<1>()?[0] != 0).into(),
            8 => self.text()?.into(),
            9 => {
                let (kind, count) = (self.u32()?, self.u64()?);
                // Lists of lists are of no use here, and could be as deep as the file is long.
                if kind == 9 {
                    return Err("has a list of lists".to_owned());
                }
                let mut values = Vec::new();
                for _ in 0..count {
                    values.push(self.value(kind)?);
                }
                values.into()
            }
            10 => self.u64()?.into(),
            11 => i64::from_le_bytes(self.bytes()?).into(),
            12 => f64::from_le_bytes(self.bytes()?).into(),
            _ => return Err(format!("has a value of kind {kind}, which is not known")),
        })
    }

    fn info(&mut self) -> Result<(String, NumberType, Vec<usize>, u64)> {
        let name = self.text()?;
        let dimensions = self.u32()?;
        if dimensions > MOST_DIMENSIONS {
            return Err(format!("has {name} of {dimensions} dimensions"));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(usize::try_from(self.u64()?).map_err(|_| format!("has {name}, too large"))?);
        }
        shape.reverse();
        let kind = self.u32()?;
        let element = match (kind, Quantised::of(kind)) {
            (0, _) => NumberType::F32,
            (1, _) => NumberType::F16,
            (30, _) => NumberType::Bf16,
            (_, Some(kind)) => NumberType::Quantised(kind),
            _ => {
                return Err(format!(
                    "has {name} of ggml's kind {kind}, which is none of F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, \
                     Q5_K and Q6_K"
                ));
            }
        };
        Ok((name, element, shape, self.u64()?))
    }
}
