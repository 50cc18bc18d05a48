//! Symmetrization: one set of links from those of both directions (Och and Ney 2003), among them
//! grow-diag-final-and (Koehn et al. 2003).

use serde::{Deserialize, Serialize};

use crate::links::WordLinks;

/// How the links of both directions are combined. Those between intersection and union follow `atools`
/// of fast_align, link by link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Symmetrization {
    /// Links that both directions have.
    Intersect,
    /// Links that either has.
    Union,
    /// The intersection, and neighbouring links of the union while one of their words is unaligned.
    GrowDiag,
    /// Then links of which one word is unaligned.
    GrowDiagFinal,
    /// Then links of which both words are unaligned.
    #[default]
    GrowDiagFinalAnd,
}

terms::named!(Symmetrization {
    Intersect => "intersect",
    Union => "union",
    GrowDiag => "grow-diag",
    GrowDiagFinal => "grow-diag-final",
    GrowDiagFinalAnd => "grow-diag-final-and",
});

/// Combines the links of both directions.
pub fn symmetrize(forward: &WordLinks, reverse: &WordLinks, symmetry: Symmetrization) -> WordLinks {
    let both = || forward.iter().filter(|&link| reverse.contains(link));
    match symmetry {
        Symmetrization::Intersect => WordLinks::new(both().collect()),
        Symmetrization::Union => WordLinks::new(forward.iter().chain(reverse.iter()).collect()),
        _ => {
            let union = symmetrize(forward, reverse, Symmetrization::Union);
            let mut grid = LinkGrid::new(&union);
            both().for_each(|link| grid.add(link));
            grid.grow(&union);
            let free: Option<fn(bool, bool) -> bool> = match symmetry {
                Symmetrization::GrowDiagFinal => Some(|source, target| source || target),
                Symmetrization::GrowDiagFinalAnd => Some(|source, target| source && target),
                _ => None,
            };
            for link in free.iter().flat_map(|_| forward.iter().chain(reverse.iter())) {
                let (source, target) = grid.free(link);
                if free.is_some_and(|free| free(source, target)) {
                    grid.add(link);
                }
            }
            WordLinks::new(union.iter().filter(|&link| grid.has(link)).collect())
        }
    }
}

/// Links taken so far, and the words they link. A margin of one all around spares the edges.
struct LinkGrid {
    width: usize,
    taken: Vec<bool>,
    source: Vec<bool>,
    target: Vec<bool>,
}

impl LinkGrid {
    fn new(union: &WordLinks) -> Self {
        let size = |of: fn((u16, u16)) -> u16| {
            union.iter().map(|link| usize::from(of(link)) + 1).max().unwrap_or(0)
        };
        let (height, width) = (size(|link| link.0) + 2, size(|link| link.1) + 2);
        let taken = vec![false; height * width];
        Self { width, taken, source: vec![false; height], target: vec![false; width] }
    }

    fn at(&self, (source, target): (u16, u16)) -> usize {
        (usize::from(source) + 1) * self.width + usize::from(target) + 1
    }

    fn has(&self, link: (u16, u16)) -> bool {
        self.taken[self.at(link)]
    }

    fn add(&mut self, link: (u16, u16)) {
        let at = self.at(link);
        self.taken[at] = true;
        self.source[usize::from(link.0)] = true;
        self.target[usize::from(link.1)] = true;
    }

    /// Whether the source word and the target word of a link have none yet.
    fn free(&self, link: (u16, u16)) -> (bool, bool) {
        (!self.source[usize::from(link.0)], !self.target[usize::from(link.1)])
    }

    fn has_neighbour(&self, link: (u16, u16)) -> bool {
        let (at, width) = (self.at(link), self.width);
        [at - width, at, at + width].iter().any(|&middle| {
            self.taken[middle - 1] || (middle != at && self.taken[middle]) || self.taken[middle + 1]
        })
    }

    /// Takes in links beside those taken while one of their words is free, round after round.
    fn grow(&mut self, union: &WordLinks) {
        let mut left: Vec<(u16, u16)> = union.iter().filter(|&link| !self.has(link)).collect();
        loop {
            let before = left.len();
            left.retain(|&link| {
                let (source, target) = self.free(link);
                let joins = (source || target) && self.has_neighbour(link);
                if joins {
                    self.add(link);
                }
                !joins
            });
            if left.len() == before {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn links(text: &str) -> WordLinks {
        WordLinks::parse(text).unwrap()
    }

    #[test]
    fn by_hand() {
        let forward = links("0-0 1-1 1-2 4-4");
        let reverse = links("0-0 1-1 2-2 5-3 4-5");
        let expected = [
            (Symmetrization::Intersect, "0-0 1-1"),
            (Symmetrization::GrowDiag, "0-0 1-1 1-2 2-2"),
            (Symmetrization::GrowDiagFinalAnd, "0-0 1-1 1-2 2-2 4-4 5-3"),
            (Symmetrization::GrowDiagFinal, "0-0 1-1 1-2 2-2 4-4 4-5 5-3"),
            (Symmetrization::Union, "0-0 1-1 1-2 2-2 4-4 4-5 5-3"),
        ];
        for (symmetry, expected) in expected {
            assert_eq!(symmetrize(&forward, &reverse, symmetry), links(expected), "{symmetry:?}");
        }
    }

    /// What `final-and` takes in, `final` nearly always does too, but not by necessity: here it has
    /// linked both words elsewhere before the link comes by. The original's tool gives the same.
    #[test]
    fn the_two_endings_are_not_nested() {
        let (forward, reverse) = (links("0-4 5-0 5-5"), links("0-0 4-4 5-5"));
        let of = |symmetry| symmetrize(&forward, &reverse, symmetry);
        assert_eq!(of(Symmetrization::GrowDiagFinalAnd), links("0-0 4-4 5-5"));
        assert_eq!(of(Symmetrization::GrowDiagFinal), links("0-4 4-4 5-0 5-5"));
    }

    /// At most one link for each word of one side, as a direction gives them.
    fn one_way(words: usize, places: u16) -> impl Strategy<Value = Vec<Option<u16>>> {
        proptest::collection::vec(proptest::option::of(0..places), words)
    }

    fn is_within(inner: &WordLinks, outer: &WordLinks) -> bool {
        inner.iter().all(|link| outer.contains(link))
    }

    proptest! {
        #[test]
        fn each_lies_within_the_next(
            to_source in one_way(7, 6),
            to_target in one_way(6, 7),
        ) {
            let linked = |way: Vec<Option<u16>>| (0_u16..).zip(way);
            let forward = linked(to_source).filter_map(|(j, i)| Some((i?, j))).collect();
            let reverse = linked(to_target).filter_map(|(i, j)| Some((i, j?))).collect();
            let (forward, reverse) = (WordLinks::new(forward), WordLinks::new(reverse));
            let of = |symmetry| symmetrize(&forward, &reverse, symmetry);
            let (grown, union) = (of(Symmetrization::GrowDiag), of(Symmetrization::Union));
            prop_assert!(is_within(&of(Symmetrization::Intersect), &grown));
            for last in [Symmetrization::GrowDiagFinalAnd, Symmetrization::GrowDiagFinal] {
                prop_assert!(is_within(&grown, &of(last)));
                prop_assert!(is_within(&of(last), &union));
            }
        }
    }
}
