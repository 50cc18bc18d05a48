//! The nearest neighbours found so far, in memory and on disk.
//!
//! The file is a line of JSON (the key of the input, rows, neighbours, blocks done), the scores and then the ids of
//! either side, little-endian, and a digest of all that.

use std::io::{self, Read, Write};
use std::path::Path;

use files::{At, Hashing};
use serde::{Deserialize, Serialize};

use crate::search::{Neighbours, Top};
use crate::{Error, Result};

/// The longest first line: a key is a digest.
const LONGEST_HEADER: usize = 4096;
const DAMAGED: &str = "is damaged";
const OTHER: &str = "is of another search";

/// The nearest neighbours of both sides so far.
pub struct NearestState {
    header: StateHeader,
    tops: [Top; 2],
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StateHeader {
    key: String,
    rows: [usize; 2],
    k: usize,
    done: u64,
}

impl StateHeader {
    /// Neighbours of each row of a side: no more than the other side has rows.
    fn wide(&self, side: usize) -> usize {
        self.k.min(self.rows[1 - side])
    }
}

impl NearestState {
    /// A search that has not begun: `k` neighbours of each of so many rows of the source and of the target, which `key` tells
    /// from any other vectors.
    pub fn new(key: &str, rows: [usize; 2], k: usize) -> Self {
        let header = StateHeader { key: key.to_owned(), rows, k, done: 0 };
        let tops = [0, 1].map(|side| Top::new(rows[side], header.wide(side)));
        Self { header, tops }
    }

    /// Neighbours of each row.
    pub fn k(&self) -> usize {
        self.header.k
    }

    /// Blocks against blocks that are done.
    pub fn done(&self) -> u64 {
        self.header.done
    }

    /// Takes in what was found between a block of the source and one of the target, which begin at these rows.
    pub(super) fn add(&mut self, starts: [usize; 2], found: [&Neighbours; 2]) {
        for side in [0, 1] {
            for row in 0..found[side].rows() {
                for (&id, &score) in found[side].ids(row).iter().zip(found[side].scores(row)) {
                    self.tops[side].offer(starts[side] + row, score, id + starts[1 - side] as u32);
                }
            }
        }
        self.header.done += 1;
    }

    pub(super) fn finish(self) -> [Neighbours; 2] {
        let Self { header, tops: [forward, backward] } = self;
        [
            Neighbours::join(vec![forward], header.wide(0)),
            Neighbours::join(vec![backward], header.wide(1)),
        ]
    }

    /// Saves a checkpoint.
    pub fn save(&self, path: &Path) -> Result<()> {
        files::checkpoints::write(path, |file| {
            let mut writer = Hashing::new(io::BufWriter::new(file));
            serde_json::to_writer(&mut writer, &self.header).map_err(io::Error::other)?;
            writer.write_all(b"\n")?;
            for top in &self.tops {
                let (scores, ids) = top.parts();
                writer.write_all(bytemuck::cast_slice(scores))?;
                writer.write_all(bytemuck::cast_slice(ids))?;
            }
            let digest = writer.hasher.finalize();
            writer.inner.write_all(digest.as_bytes())?;
            writer.inner.flush()
        })?;
        Ok(())
    }

    /// Reads the newest sound checkpoint of a search that begins like this one; this one itself where there is none, or
    /// where it is of another search. One that is damaged is set aside, so that it does not stand beside the new one as the
    /// checkpoint before it. `note` receives what is not taken up, and why.
    pub fn resume(self, path: &Path, note: &mut dyn FnMut(&str)) -> Result<Self> {
        if !files::checkpoints::exists(path) {
            return Ok(self);
        }
        let expected = self.header.clone();
        let read = |path: &Path| Self::read(path, &expected);
        let says = |error: &Error, what: &str| error.to_string().contains(what);
        let damaged = |error: &Error| says(error, DAMAGED);
        match files::checkpoints::read(path, read, damaged, note) {
            Err(error) if damaged(&error) => {
                let kept = files::checkpoints::set_aside(path);
                note(&format!("{error}: the search begins anew{kept}"));
                Ok(self)
            }
            Err(error) if says(&error, OTHER) => {
                note(&format!("{error}: the search begins anew"));
                Ok(self)
            }
            found => found,
        }
    }

    fn read(path: &Path, expected: &StateHeader) -> Result<Self> {
        let damaged = || Error::input(path.display(), DAMAGED, "it is not used");
        let most = LONGEST_HEADER
            + 32
            + [0, 1]
                .map(|side| expected.rows[side] * expected.wide(side) * 8)
                .iter()
                .sum::<usize>();
        let file = std::fs::File::open(path).at(path, "read")?;
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes).at(path, "read")?;
        let (body, digest) = bytes.split_last_chunk::<32>().ok_or_else(damaged)?;
        if blake3::hash(body).as_bytes() != digest {
            return Err(damaged());
        }
        let end =
            body.iter().take(LONGEST_HEADER).position(|&byte| byte == b'\n').ok_or_else(damaged)?;
        let header: StateHeader = serde_json::from_slice(&body[..end]).map_err(|_| damaged())?;
        if (StateHeader { done: 0, ..header.clone() })
            != (StateHeader { done: 0, ..expected.clone() })
        {
            return Err(Error::input(path.display(), OTHER, "it is not used"));
        }
        let mut rest = &body[end + 1..];
        let mut tops = Vec::new();
        for side in [0, 1] {
            let values = header.rows[side] * header.wide(side);
            let mut take = || {
                let (words, after) = rest.split_at_checked(4 * values).ok_or_else(damaged)?;
                rest = after;
                Ok::<_, Error>(words.chunks_exact(4).map(|b| [b[0], b[1], b[2], b[3]]))
            };
            let scores = take()?.map(f32::from_le_bytes).collect();
            let ids = take()?.map(u32::from_le_bytes).collect();
            tops.push(Top::of(header.wide(side), scores, ids));
        }
        let tops = tops.try_into().ok().expect("two sides");
        Ok(Self { header, tops })
    }
}
