//! Pairs in random order without all of them in memory: thrown at random into bucket files, from
//! which training reads one at a time and shuffles it.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use bytemuck::{Pod, Zeroable};
use files::At;

use super::GloveConfig;
use super::count::Runs;
use crate::Result;

/// A pair to learn from: what its dot product should be, and how much that matters.
#[derive(Clone, Copy, Debug, Pod, Zeroable, PartialEq)]
#[repr(C)]
pub(super) struct PairRecord {
    pub(super) word: u32,
    pub(super) context: u32,
    /// The logarithm of how often they stand near each other.
    pub(super) log: f32,
    pub(super) weight: f32,
}

/// Records in files, each at random in one of them.
pub(super) struct Buckets {
    paths: Vec<PathBuf>,
    /// How many records each has.
    pub(super) sizes: Vec<u64>,
    /// The loss of vectors of zeros, summed over all records.
    pub(super) untrained: f64,
}

impl Buckets {
    /// Throws merged pairs into `number` buckets in a folder; `choose` draws one.
    pub(super) fn fill(
        runs: Runs,
        config: &GloveConfig,
        folder: &Path,
        number: usize,
        mut choose: impl FnMut() -> usize,
    ) -> Result<Self> {
        let path = |bucket: usize| folder.join(format!("bucket-{bucket}"));
        let paths: Vec<_> = (0..number).map(path).collect();
        let open = |path: &PathBuf| Ok(BufWriter::new(File::create(path).at(path, "make")?));
        let mut files = paths.iter().map(open).collect::<Result<Vec<_>>>()?;
        let (mut sizes, mut untrained) = (vec![0; number], 0.0);
        runs.merge(|word, context, times| {
            // A pair of the same word twice is met from both sides.
            let times = if config.symmetric && word == context { 2.0 * times } else { times };
            let record = config.record(word, context, times);
            let other = PairRecord { word: context, context: word, ..record };
            let both = config.symmetric && word != context;
            for record in [record, other].into_iter().take(1 + usize::from(both)) {
                let bucket = choose();
                sizes[bucket] += 1;
                untrained += f64::from(0.5 * record.weight * record.log * record.log);
                let bytes = bytemuck::bytes_of(&record);
                files[bucket].write_all(bytes).at(&paths[bucket], "write")?;
            }
            Ok(())
        })?;
        for (file, path) in files.iter_mut().zip(&paths) {
            file.flush().at(path, "write")?;
        }
        Ok(Self { paths, sizes, untrained })
    }

    pub(super) fn read(&self, bucket: usize, records: &mut Vec<PairRecord>) -> Result<()> {
        let path = &self.paths[bucket];
        records.clear();
        records.resize(self.sizes[bucket] as usize, PairRecord::zeroed());
        let mut file = File::open(path).at(path, "open")?;
        Ok(file.read_exact(bytemuck::cast_slice_mut(records)).at(path, "read")?)
    }
}
