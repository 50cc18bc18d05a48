//! The meanings every world has: function words and the common parts of names.

use super::{Meaning, MeaningId};
use crate::grammar::Upos;

pub(crate) const THE: MeaningId = 0;
pub(crate) const A: MeaningId = 1;
pub(crate) const ALL: MeaningId = 2;
pub(crate) const SOME: MeaningId = 3;
pub(crate) const NO: MeaningId = 4;
pub(crate) const MANY: MeaningId = 5;
pub(crate) const NOT: MeaningId = 6;
pub(crate) const BE: MeaningId = 7;
pub(crate) const WHICH: MeaningId = 8;
pub(crate) const HE: MeaningId = 9;
pub(crate) const IT: MeaningId = 10;
pub(crate) const STOP: MeaningId = 11;
pub(crate) const IN: MeaningId = 12;
pub(crate) const AT: MeaningId = 13;
pub(crate) const WITH: MeaningId = 14;
pub(crate) const FROM: MeaningId = 15;
pub(crate) const TO: MeaningId = 16;
pub(crate) const UNDER: MeaningId = 17;
pub(crate) const FOR: MeaningId = 18;
pub(crate) const OF: MeaningId = 19;
/// What a place's name can begin with.
pub(crate) const PLACE_PARTS: [MeaningId; 2] = [20, 21];
/// What an organisation's name can end with.
pub(crate) const ORGANISATION_PARTS: [MeaningId; 3] = [22, 23, 24];

/// The prepositions a verb can govern.
pub(crate) const PREPOSITIONS: [MeaningId; 8] = [IN, AT, WITH, FROM, TO, UNDER, FOR, OF];

const FIXED: [(&str, Upos); 25] = [
    ("the", Upos::Determiner),
    ("a", Upos::Determiner),
    ("all", Upos::Determiner),
    ("some", Upos::Determiner),
    ("no", Upos::Determiner),
    ("many", Upos::Determiner),
    ("not", Upos::Particle),
    ("be", Upos::Auxiliary),
    ("which", Upos::Pronoun),
    ("he", Upos::Pronoun),
    ("it", Upos::Pronoun),
    (".", Upos::Punctuation),
    ("in", Upos::Adposition),
    ("at", Upos::Adposition),
    ("with", Upos::Adposition),
    ("from", Upos::Adposition),
    ("to", Upos::Adposition),
    ("under", Upos::Adposition),
    ("for", Upos::Adposition),
    ("of", Upos::Adposition),
    ("New", Upos::ProperNoun),
    ("Port", Upos::ProperNoun),
    ("Bank", Upos::ProperNoun),
    ("Club", Upos::ProperNoun),
    ("Works", Upos::ProperNoun),
];

pub(crate) const COUNT: usize = FIXED.len();

/// Their entries, in the order of the constants above.
pub(crate) fn fixed() -> Vec<Meaning> {
    let entry =
        |&(gloss, upos): &(&str, Upos)| Meaning { gloss: gloss.into(), upos, hypernym: None };
    FIXED.iter().map(entry).collect()
}
