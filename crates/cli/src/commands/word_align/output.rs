//! What `word-align` leaves: files of links and probabilities, and a summary.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use align::{
    AlignmentModel, Bitext, DirectionalLinks, EmIteration, Symmetrization, WordLinks, symmetrize,
};
use rayon::prelude::*;
use serde::Serialize;

use super::Align;
use crate::failure::Failure;

/// Both directions' links, and the model where something asks for it.
pub(super) struct Aligned {
    pub(super) forward: DirectionalLinks,
    pub(super) reverse: DirectionalLinks,
    pub(super) model: Option<AlignmentModel>,
    pub(super) passes: [Vec<EmIteration>; 2],
}

impl Align {
    /// Writes all that was asked for; what comes back is the number of links.
    pub(super) fn write(
        &self,
        out: &Path,
        bitext: &Bitext,
        aligned: &Aligned,
    ) -> Result<u64, Failure> {
        let Aligned { forward, reverse, model, .. } = aligned;
        let pairs = bitext.len();
        let both = |s| {
            let (forward, reverse) = (forward.links(bitext, s), reverse.links(bitext, s));
            symmetrize(&forward, &reverse, self.symmetrize.into())
        };
        for (path, one_way) in [(&self.forward, forward), (&self.reverse, reverse)] {
            if let Some(path) = path {
                write_lines(path, pairs, |s, text| put(&one_way.links(bitext, s), text))?;
            }
        }
        if let (Some(path), Some(model)) = (&self.posteriors, model) {
            write_lines(path, pairs, |s, text| {
                let explained =
                    model.explain(bitext.source().sentence(s), bitext.target().sentence(s));
                for (index, link) in both(s).iter().enumerate() {
                    let [forward, reverse] = explained.posteriors(link);
                    let space = if index > 0 { " " } else { "" };
                    let (i, j) = link;
                    let _ = write!(text, "{space}{i}-{j}:{forward:.4}:{reverse:.4}");
                }
                0
            })?;
        }
        if let (Some(path), Some(model)) = (&self.scores, model) {
            write_lines(path, pairs, |s, text| {
                let explained =
                    model.explain(bitext.source().sentence(s), bitext.target().sentence(s));
                let [forward, reverse] = explained.log_probabilities;
                let _ = write!(text, "{forward:.6}\t{reverse:.6}");
                0
            })?;
        }
        write_lines(out, pairs, |s, text| put(&both(s), text))
    }
}

fn put(links: &WordLinks, text: &mut String) -> u64 {
    let _ = write!(text, "{links}");
    links.len() as u64
}

/// Writes a line for each pair, made side by side in blocks; sums up what `line` counts.
fn write_lines(
    path: &Path,
    pairs: usize,
    line: impl Fn(usize, &mut String) -> u64 + Sync,
) -> Result<u64, Failure> {
    const BLOCK: usize = 1 << 12;
    const BLOCKS: usize = 64;
    let block = |from: usize| {
        let (mut text, mut count) = (String::new(), 0);
        for s in from..(from + BLOCK).min(pairs) {
            count += line(s, &mut text);
            text.push('\n');
        }
        (text, count)
    };
    let mut total = 0;
    files::write_with(path, |writer| {
        let starts: Vec<usize> = (0..pairs).step_by(BLOCK).collect();
        for run in starts.chunks(BLOCKS) {
            let blocks: Vec<(String, u64)> = run.par_iter().map(|&from| block(from)).collect();
            for (text, count) in blocks {
                writer.write_all(text.as_bytes())?;
                total += count;
            }
        }
        Ok(())
    })?;
    Ok(total)
}

/// What was done.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) pairs: usize,
    /// Words of both sides, and different ones.
    pub(super) tokens: [usize; 2],
    pub(super) types: [usize; 2],
    /// By direction; empty where nothing was learned.
    pub(super) forward: Vec<EmIteration>,
    pub(super) reverse: Vec<EmIteration>,
    pub(super) symmetrize: Symmetrization,
    pub(super) links: u64,
    pub(super) out: PathBuf,
    pub(super) seconds: f64,
}

impl Summary {
    pub(super) fn in_words(&self) -> String {
        let Self { pairs, tokens, types, links, seconds, out, .. } = self;
        format!(
            "{}: {links} links for {pairs} sentence pairs in {seconds:.1} s\n  \
             source    {} words, {} different\n  target    {} words, {} different\n",
            out.display(),
            tokens[0],
            types[0],
            tokens[1],
            types[1],
        )
    }
}
