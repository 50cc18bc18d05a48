//! Classes of subwords, so that a shift can differ by what a subword is.
//!
//! Liu et al. 2020 suspect that one mean for a whole language does not suit subwords that several
//! languages share. So every subword of a language is classified twice: by whether another language
//! uses it too, and by its frequency.

use serde::{Deserialize, Serialize};

/// The classes, in the order in which means are kept: every subword is of the first, of one of the
/// next two, and of one of the last three.
pub const CLASSES: [&str; 6] = ["all", "own", "shared", "frequent", "middle", "rare"];

/// Subwords that make up this share of the text are frequent …
const FREQUENT: f64 = 0.5;
/// … and those that bring it to this share are neither frequent nor rare.
const MIDDLE: f64 = 0.9;

/// The classes of each subword of a language.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubwordClasses {
    /// For each id, whether another language uses it too.
    pub shared: Vec<bool>,
    /// For each id, 0 if it is frequent, 1 if in the middle, 2 if rare.
    pub band: Vec<u8>,
}

impl SubwordClasses {
    /// The classes of one language's subwords, by how often each occurs in each language's text.
    pub fn new(counts: &[Vec<u64>], language: usize) -> Self {
        let own = &counts[language];
        let others = || counts.iter().enumerate().filter(|&(other, _)| other != language);
        let shared = |id: usize| own[id] > 0 && others().any(|(_, counts)| counts[id] > 0);
        let mut order: Vec<usize> = (0..own.len()).collect();
        order.sort_by_key(|&id| (std::cmp::Reverse(own[id]), id));
        let total = own.iter().sum::<u64>().max(1) as f64;
        let (mut before, mut band) = (0, vec![2; own.len()]);
        for id in order {
            let share = before as f64 / total;
            band[id] = u8::from(share >= FREQUENT) + u8::from(share >= MIDDLE);
            before += own[id];
        }
        Self { shared: (0..own.len()).map(shared).collect(), band }
    }

    /// The classes of a subword, as places in [`CLASSES`].
    pub fn of(&self, id: u32) -> [usize; 3] {
        let id = id as usize;
        [0, 1 + usize::from(self.shared[id]), 3 + usize::from(self.band[id])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subword_is_of_three_classes() {
        let counts = [vec![6, 3, 1, 0], vec![0, 2, 0, 5]];
        let classes = SubwordClasses::new(&counts, 0);
        assert_eq!(classes.of(0), [0, 1, 3]);
        assert_eq!(classes.of(1), [0, 2, 4]);
        assert_eq!(classes.of(2), [0, 1, 5]);
        // What a language does not use is not shared.
        assert_eq!(classes.of(3)[1], 1);
    }
}
