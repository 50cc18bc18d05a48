//! How many words of each kind a world of a given size has.

use super::words;
use crate::config::MeaningConfig;

/// Lemmas by part of speech and kind of name; with the fixed words they add up to `meaning.lemmas`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LemmaCounts {
    /// Nouns that are not the names of classes.
    pub(crate) nouns: usize,
    pub(crate) verbs: usize,
    pub(crate) adjectives: usize,
    pub(crate) first_names: usize,
    pub(crate) last_names: usize,
    pub(crate) places: usize,
    pub(crate) organisations: usize,
}

/// Every class has at least so many nouns.
pub(super) const NOUNS_A_CLASS: usize = 2;
/// The smallest stock of open words that has two of every kind of name.
const LEAST_OPEN: usize = 42;

impl LemmaCounts {
    pub(crate) fn new(shape: &MeaningConfig) -> Self {
        let open = shape.lemmas - words::COUNT;
        let share = |part: usize| open * part / 100;
        let (names, verbs, adjectives) = (share(24), share(20), share(12));
        let nouns = open - names - verbs - adjectives - shape.classes - shape.superclasses;
        let (first_names, last_names, places) = (names * 3 / 10, names * 3 / 10, names / 5);
        let organisations = names - first_names - last_names - places;
        Self { nouns, verbs, adjectives, first_names, last_names, places, organisations }
    }

    /// The fewest lemmas that leave enough nouns for so many classes.
    pub(crate) fn least_lemmas(classes: usize, superclasses: usize) -> usize {
        let nouns = classes * (NOUNS_A_CLASS + 1) + superclasses;
        words::COUNT + LEAST_OPEN.max((nouns * 100).div_ceil(44))
    }
}
