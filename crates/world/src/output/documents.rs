//! Work in parallel by index: any number of threads, the same result in the same order.

use std::collections::HashSet;

use rayon::prelude::*;

use crate::error::{self, Error};
use crate::grammar::{Discourse, Tree};
use crate::language::Language;
use crate::meaning::{Domain, World};
use crate::random::NamedStreams;

/// Indices worked on at a time. Bounds memory; more would not be faster.
const ROUND: u64 = 4096;
/// Documents in a row that may have nothing but held-out sentences.
const PATIENCE: usize = 5000;

/// Makes something of each index from 0 on, in parallel, and takes it in order until `take` says
/// that it has enough. `hint` is about how many will be taken.
pub(super) fn scan<T: Send>(
    hint: usize,
    make: impl Fn(u64) -> T + Sync,
    mut take: impl FnMut(T) -> Result<bool, Error>,
) -> Result<(), Error> {
    let round = ROUND.min(hint as u64 + 1);
    for start in (0..).step_by(round as usize) {
        let made: Vec<T> = (start..start + round).into_par_iter().map(&make).collect();
        for one in made {
            if !take(one)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Test sentences that a source must leave out.
#[derive(Clone, Copy)]
pub(super) struct HeldOutSentences<'a> {
    pub(super) language: &'a Language,
    pub(super) sentences: &'a HashSet<String>,
}

/// A source of documents: the same index always gives the same document.
pub(super) struct DocumentSource<'a> {
    pub(super) held_out: Option<HeldOutSentences<'a>>,
    pub(super) world: &'a World,
    pub(super) domain: &'a Domain,
    pub(super) streams: NamedStreams,
}

impl DocumentSource<'_> {
    pub(super) fn document(&self, index: u64) -> Vec<Tree> {
        let mut rng = self.streams.at(index);
        let scene = Discourse::open(self.world, self.domain, &mut rng);
        let mut document = vec![Tree::default(); scene.length(&mut rng)];
        document.iter_mut().for_each(|tree| scene.sentence(tree, &mut rng));
        if let Some(HeldOutSentences { language, sentences }) = self.held_out {
            document.retain(|tree| !sentences.contains(&language.realize(tree)));
        }
        document
    }

    /// Makes something of each document until exactly `sentences` are used up, the last document
    /// cut short if need be, and takes it in order, with its number of sentences.
    pub(super) fn each<T: Send>(
        &self,
        sentences: usize,
        make: impl Fn(&[Tree]) -> T + Sync,
        mut take: impl FnMut(T, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if sentences == 0 {
            return Ok(());
        }
        let mut left = sentences;
        let mut barren = 0;
        let whole = |index: u64| {
            let document = self.document(index);
            (make(&document), document.len(), index)
        };
        scan(sentences / self.domain.style.document[0], whole, |(made, length, index)| {
            barren = if length == 0 { barren + 1 } else { 0 };
            if barren == PATIENCE {
                let reason = "this world has no sentences besides the test sentences";
                let remedy = "set held_out = false, lower tatoeba, or raise meaning.lemmas";
                return Err(error::config("held_out", reason, remedy));
            }
            if length == 0 {
                return Ok(true);
            }
            if length <= left {
                take(made, length)?;
            } else {
                take(make(&self.document(index)[..left]), left)?;
            }
            left = left.saturating_sub(length);
            Ok(left > 0)
        })
    }
}
