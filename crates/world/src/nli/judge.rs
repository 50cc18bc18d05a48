//! What one claim says of another.
//!
//! A kind is narrower than another if its noun is below the other's and it has the other's quality,
//! if there is one; a deed is narrower if it is the same verb in the same tense, done to a narrower
//! thing, and at least as closely placed. What follows from what is then the textbook logic of
//! quantifiers, where every kind that is spoken of has members.

use serde::Serialize;

use super::claim::{Claim, Kind, Quantifier, Subject, Thing};
use crate::meaning::World;

/// How a hypothesis stands to its premise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// It must be true if the premise is.
    Entailment,
    /// It may be true or not.
    Neutral,
    /// It cannot be true if the premise is.
    Contradiction,
}

impl Label {
    /// All three.
    pub const ALL: [Label; 3] = [Label::Entailment, Label::Neutral, Label::Contradiction];

    /// The name in data sets.
    pub fn name(self) -> &'static str {
        ["entailment", "neutral", "contradiction"][self as usize]
    }
}

/// Judges a hypothesis by its premise.
pub(crate) fn judge(world: &World, premise: &Claim, hypothesis: &Claim) -> Label {
    let forth = deed_narrower(world, premise, hypothesis);
    let back = deed_narrower(world, hypothesis, premise);
    let (entails, excludes) = match (&premise.subject, &hypothesis.subject) {
        (
            Subject::Named { kind: k, entity: e, negated: p },
            Subject::Named { kind: l, entity: f, negated: h },
        ) => {
            let same = (k, e) == (l, f);
            match (p, h) {
                (false, false) => (same && forth, false),
                (true, true) => (same && back, false),
                (false, true) => (false, same && forth),
                (true, false) => (false, same && back),
            }
        }
        (
            Subject::Quantified { quantifier: p, kind: a },
            Subject::Quantified { quantifier: h, kind: b },
        ) => quantified(world, (*p, a), (*h, b), forth, back),
        _ => (false, false),
    };
    match (entails, excludes) {
        (true, _) => Label::Entailment,
        (_, true) => Label::Contradiction,
        _ => Label::Neutral,
    }
}

/// Whether the premise entails and whether it excludes the hypothesis; `forth` is whether the
/// premise's deed is the narrower one, `back` whether the hypothesis's is.
fn quantified(
    world: &World,
    (p, a): (Quantifier, &Kind),
    (h, b): (Quantifier, &Kind),
    forth: bool,
    back: bool,
) -> (bool, bool) {
    use Quantifier::{All, No, Some};
    let a_in_b = narrower(world, a, b);
    let b_in_a = narrower(world, b, a);
    let overlap = a_in_b || b_in_a;
    match (p, h) {
        (All, All) => (b_in_a && forth, false),
        (All, Some) => (overlap && forth, false),
        (All, No) => (false, overlap && forth),
        (Some, All) => (false, false),
        (Some, Some) => (a_in_b && forth, false),
        (Some, No) => (false, a_in_b && forth),
        (No, All) => (false, overlap && back),
        (No, Some) => (false, b_in_a && back),
        (No, No) => (b_in_a && back, false),
    }
}

fn narrower(world: &World, a: &Kind, b: &Kind) -> bool {
    world.is_a(a.noun, b.noun) && (b.adjective.is_none() || a.adjective == b.adjective)
}

fn thing_narrower(world: &World, a: &Thing, b: &Thing) -> bool {
    match (a, b) {
        (Thing::Kind(a), Thing::Kind(b)) => narrower(world, a, b),
        _ => a == b,
    }
}

fn deed_narrower(world: &World, a: &Claim, b: &Claim) -> bool {
    let object = match (&a.object, &b.object) {
        (Some(a), Some(b)) => thing_narrower(world, a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let adjunct = match (&a.adjunct, &b.adjunct) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => {
            a.adposition == b.adposition && thing_narrower(world, &a.thing, &b.thing)
        }
    };
    a.verb == b.verb && a.past == b.past && object && adjunct
}
