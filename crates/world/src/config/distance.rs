//! One number for how far two languages are apart, from which all their differences follow.

use crate::language::{Affix, Morphology, Script, WordOrder};

/// A distance from the first language, 0..1, and what follows from it.
///
/// | at | what changes, and stays so above it |
/// | --- | --- |
/// | any d | anchors fall as (1 - d)³, cognates among the other words as 1 - d |
/// | 0.10 | the adjective changes sides |
/// | 0.20 | the genitive changes sides |
/// | 0.25 | number is marked if it was not, or the reverse |
/// | 0.35 | the verb moves: to the end, or, where it stood there, between subject and object |
/// | 0.40 | tense is marked if it was not, or the reverse |
/// | 0.50 | the relative clause changes sides |
/// | 0.55 | agreement appears or disappears |
/// | 0.60 | prepositions become postpositions, or the reverse |
/// | 0.65 | case appears or disappears |
/// | 0.70 | the determiner changes sides |
/// | 0.80 | the negation changes sides |
/// | 0.85 | suffixes become prefixes, or the reverse |
/// | 0.90 | another script |
///
/// So every single difference only ever grows with the distance. At 0 the languages are dialects:
/// the same order and morphology, every content word the same, the function words cognates. At 1
/// they have no character in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LanguageDistance(f64);

impl LanguageDistance {
    /// A distance; values outside 0..1 are clamped.
    pub fn new(distance: f64) -> Self {
        Self(distance.clamp(0.0, 1.0))
    }

    /// The share of content words that are the same.
    pub fn anchors(self) -> f64 {
        (1.0 - self.0).powi(3)
    }

    /// The share of the other words that are related.
    pub fn cognates(self) -> f64 {
        1.0 - self.0
    }

    /// The word order this far from `first`.
    pub fn order(self, first: WordOrder) -> WordOrder {
        let mut order = first;
        let Self(distance) = self;
        for (at, side) in [
            (0.10, &mut order.adjective),
            (0.20, &mut order.genitive),
            (0.50, &mut order.relative),
            (0.60, &mut order.adposition),
            (0.70, &mut order.determiner),
            (0.80, &mut order.negation),
        ] {
            if distance >= at {
                *side = side.opposite();
            }
        }
        if distance >= 0.35 {
            order.verb = order.verb.moved();
        }
        order
    }

    /// The morphology this far from `first`.
    pub fn morphology(self, first: Morphology) -> Morphology {
        let Self(distance) = self;
        let affix = match first.affix {
            Affix::Suffix => Affix::Prefix,
            Affix::Prefix => Affix::Suffix,
        };
        Morphology {
            number: first.number != (distance >= 0.25),
            tense: first.tense != (distance >= 0.40),
            agreement: first.agreement != (distance >= 0.55),
            case: first.case != (distance >= 0.65),
            affix: if distance >= 0.85 { affix } else { first.affix },
        }
    }

    /// The script this far from `first`.
    pub fn script(self, first: Script) -> Script {
        match first {
            _ if self.0 < 0.90 => first,
            Script::Cyrillic => Script::Latin,
            _ => Script::Cyrillic,
        }
    }
}
