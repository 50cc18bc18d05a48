//! A model as one file: a line that says what it is, a line of JSON, arrays, and a digest of it all.
//!
//! Nothing is left out of the tables, so that text is linked as it was when they were learned; and
//! arrays go through a small buffer, as a table may take most of the memory there is.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::input::BitextPreparation;
use crate::lexicon::{DirectionModel, ParameterEstimate};
use crate::model::AlignmentModel;
use crate::table::CountTable;
use crate::words::WordIndex;
use crate::{Error, Result};
use files::{At, Hashing};

/// The first line; the number changes when the format does.
const MAGIC: &[u8] = b"isogloss word alignment 2\n";
/// No line of JSON of ours is longer.
const LONGEST_HEADER: usize = 1 << 16;
const DIGEST: usize = blake3::OUT_LEN;

#[derive(Serialize, Deserialize)]
struct ModelHeader {
    /// The number of words and of bytes that they take, with a line feed after each.
    source: [u64; 2],
    target: [u64; 2],
    forward: DirectionHeader,
    reverse: DirectionHeader,
    preparation: BitextPreparation,
}

#[derive(Serialize, Deserialize)]
struct DirectionHeader {
    entries: u64,
    null: f64,
    tension: f64,
    estimate: ParameterHeader,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ParameterHeader {
    First(f64),
    Share,
    Bayes(f64),
}

impl AlignmentModel {
    /// Saves everything as one file, which appears whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        let words = |words: &WordIndex| {
            [words.len() as u64, words.iter().map(|word| word.len() as u64 + 1).sum()]
        };
        let header = ModelHeader {
            source: words(&self.source),
            target: words(&self.target),
            forward: self.forward.header(),
            reverse: self.reverse.header(),
            preparation: self.preparation.clone(),
        };
        let header = serde_json::to_string(&header).expect("numbers and names") + "\n";
        files::write_with(path, |writer| {
            let mut writer = Hashing::new(writer);
            writer.write_all(MAGIC)?;
            writer.write_all(header.as_bytes())?;
            for words in [&self.source, &self.target] {
                for word in words.iter() {
                    writer.write_all(word.as_bytes())?;
                    writer.write_all(b"\n")?;
                }
            }
            self.forward.write(&mut writer)?;
            self.reverse.write(&mut writer)?;
            let digest = writer.hasher.finalize();
            writer.inner.write_all(digest.as_bytes())
        })?;
        Ok(())
    }

    /// Reads a saved model; one that is not whole is refused.
    pub fn load(path: &Path) -> Result<Self> {
        let file = File::open(path).at(path, "open")?;
        let size = file.metadata().at(path, "look at")?.len();
        let reader = BufReader::with_capacity(1 << 18, file);
        let mut reader = Hashing::new(reader);
        Self::read(&mut reader, size).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                Error::file(path, error, "train and save the model again")
            }
            _ => files::Error::Io { doing: "read", path: path.to_owned(), source: error }.into(),
        })
    }

    fn read(reader: &mut Hashing<impl Read>, size: u64) -> io::Result<Self> {
        let header = read_header(reader)?;
        // Before anything is asked of the memory: a damaged header must not ask for all of it.
        let digest = DIGEST as u64;
        if header.size().and_then(|rest| (reader.hasher.count() + digest).checked_add(rest))
            != Some(size)
        {
            return Err(damaged("the file is cut short or damaged"));
        }
        let source = read_words(reader, header.source)?;
        let target = read_words(reader, header.target)?;
        let forward = DirectionModel::read(reader, &header.forward, &source, &target)?;
        let reverse = DirectionModel::read(reader, &header.reverse, &target, &source)?;
        let expected = reader.hasher.finalize();
        let mut digest = [0; DIGEST];
        reader.inner.read_exact(&mut digest)?;
        if expected != digest {
            return Err(damaged("the file is damaged: its digest is not that of its content"));
        }
        Ok(Self { source, target, forward, reverse, preparation: header.preparation })
    }
}

impl ModelHeader {
    /// Bytes of all that follows, but the digest.
    fn size(&self) -> Option<u64> {
        let [source, target] = [self.source[0].checked_add(2)?, self.target[0].checked_add(2)?];
        let forward = self.forward.size(source, target)?;
        let reverse = self.reverse.size(target, source)?;
        forward.checked_add(reverse)?.checked_add(self.source[1])?.checked_add(self.target[1])
    }
}

impl DirectionHeader {
    fn size(&self, given_ids: u64, explained_ids: u64) -> Option<u64> {
        let scales = match self.estimate {
            ParameterHeader::First(_) => 0,
            ParameterHeader::Share | ParameterHeader::Bayes(_) => given_ids.checked_mul(8)?,
        };
        let starts = explained_ids.checked_add(1)?.checked_mul(8)?;
        self.entries.checked_mul(8)?.checked_add(scales)?.checked_add(starts)
    }
}

impl DirectionModel {
    fn header(&self) -> DirectionHeader {
        DirectionHeader {
            entries: self.table.len() as u64,
            null: self.null,
            tension: self.tension,
            estimate: match self.estimate {
                ParameterEstimate::First(probability) => ParameterHeader::First(probability),
                ParameterEstimate::Share(_) => ParameterHeader::Share,
                ParameterEstimate::Bayes(alpha, _) => ParameterHeader::Bayes(alpha),
            },
        }
    }

    fn write(&self, writer: &mut impl Write) -> io::Result<()> {
        let mut end = 0_u64;
        writer.write_all(&end.to_le_bytes())?;
        for (_, given, _) in self.table.shards().iter().flat_map(|shard| shard.columns()) {
            end += given.len() as u64;
            writer.write_all(&end.to_le_bytes())?;
        }
        for shard in self.table.shards() {
            writer.write_all(bytemuck::cast_slice(shard.given()))?;
        }
        for shard in self.table.shards() {
            writer.write_all(bytemuck::cast_slice(shard.counts()))?;
        }
        match &self.estimate {
            ParameterEstimate::First(_) => Ok(()),
            ParameterEstimate::Share(scales) | ParameterEstimate::Bayes(_, scales) => {
                writer.write_all(bytemuck::cast_slice(scales))
            }
        }
    }

    fn read(
        reader: &mut impl Read,
        header: &DirectionHeader,
        given_words: &WordIndex,
        explained_words: &WordIndex,
    ) -> io::Result<Self> {
        let starts: Vec<u64> = read_array(reader, explained_words.ids() + 1)?;
        let given: Vec<u32> = read_array(reader, header.entries as usize)?;
        let counts: Vec<f32> = read_array(reader, header.entries as usize)?;
        let ids = given_words.ids();
        let whole = starts[0] == 0
            && starts.last() == Some(&header.entries)
            && starts.is_sorted()
            && given.iter().all(|&word| (word as usize) < ids);
        if !whole {
            return Err(damaged("the file is damaged: its tables do not fit together"));
        }
        let estimate = match header.estimate {
            ParameterHeader::First(probability) => ParameterEstimate::First(probability),
            ParameterHeader::Share => ParameterEstimate::Share(read_array(reader, ids)?),
            ParameterHeader::Bayes(alpha) => {
                ParameterEstimate::Bayes(alpha, read_array(reader, ids)?)
            }
        };
        let table = CountTable::from_parts(&starts, &given, &counts);
        Ok(Self { table, estimate, null: header.null, tension: header.tension })
    }
}

fn read_header(reader: &mut Hashing<impl Read>) -> io::Result<ModelHeader> {
    let mut magic = [0; MAGIC.len()];
    let found = reader.read_exact(&mut magic);
    if found.is_err() || magic != MAGIC {
        return Err(damaged("not a saved word alignment"));
    }
    let (mut line, mut byte) = (Vec::new(), [0]);
    while line.len() < LONGEST_HEADER {
        reader.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => break,
            [byte] => line.push(byte),
        }
    }
    serde_json::from_slice(&line).map_err(|error| damaged(&format!("its header: {error}")))
}

fn read_words(reader: &mut impl Read, [count, bytes]: [u64; 2]) -> io::Result<WordIndex> {
    let mut text = vec![0; bytes as usize];
    reader.read_exact(&mut text)?;
    let text = String::from_utf8(text).map_err(|_| damaged("its words are not UTF-8"))?;
    let words: Vec<Box<str>> = text.lines().map(Box::from).collect();
    if words.len() as u64 != count {
        return Err(damaged("its words are not as many as it says"));
    }
    Ok(WordIndex::new(words))
}

/// Numbers as they lie in memory, which is little-endian wherever this runs.
fn read_array<T: bytemuck::Pod>(reader: &mut impl Read, length: usize) -> io::Result<Vec<T>> {
    let mut array = vec![T::zeroed(); length];
    reader.read_exact(bytemuck::cast_slice_mut(&mut array))?;
    Ok(array)
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.to_owned())
}
