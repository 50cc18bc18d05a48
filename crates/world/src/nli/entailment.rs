//! Entailment and contradiction between propositions, by monotonicity.
//!
//! A concept is narrower than another if its noun is a hyponym and it has the other's adjective, if there
//! is one; a predicate is narrower if it has the same verb and tense, a narrower object, and an adjunct at
//! least as specific. Labels then follow from first-order logic of quantifiers with existential import.

use serde::Serialize;

use super::proposition::{Concept, Participant, Proposition, PropositionSubject, Quantifier};
use crate::meaning::World;

/// The label of a premise and a hypothesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NliLabel {
    /// It must be true if the premise is.
    Entailment,
    /// It may be true or not.
    Neutral,
    /// It cannot be true if the premise is.
    Contradiction,
}

terms::named!(NliLabel {
    Entailment => "entailment",
    Neutral => "neutral",
    Contradiction => "contradiction",
});

/// The label of a hypothesis given its premise.
pub(crate) fn nli_label(
    world: &World,
    premise: &Proposition,
    hypothesis: &Proposition,
) -> NliLabel {
    let forth = predicate_narrower(world, premise, hypothesis);
    let back = predicate_narrower(world, hypothesis, premise);
    let (entails, excludes) = match (&premise.subject, &hypothesis.subject) {
        (
            PropositionSubject::Named { kind: k, entity: e, negated: p },
            PropositionSubject::Named { kind: l, entity: f, negated: h },
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
            PropositionSubject::Quantified { quantifier: p, kind: a },
            PropositionSubject::Quantified { quantifier: h, kind: b },
        ) => quantified(world, (*p, a), (*h, b), forth, back),
        _ => (false, false),
    };
    match (entails, excludes) {
        (true, _) => NliLabel::Entailment,
        (_, true) => NliLabel::Contradiction,
        _ => NliLabel::Neutral,
    }
}

/// Whether the premise entails and whether it excludes the hypothesis; `forth` is whether the
/// premise's predicate is the narrower one, `back` whether the hypothesis's is.
fn quantified(
    world: &World,
    (p, a): (Quantifier, &Concept),
    (h, b): (Quantifier, &Concept),
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

fn narrower(world: &World, a: &Concept, b: &Concept) -> bool {
    world.is_a(a.noun, b.noun) && (b.adjective.is_none() || a.adjective == b.adjective)
}

fn participant_narrower(world: &World, a: &Participant, b: &Participant) -> bool {
    match (a, b) {
        (Participant::Concept(a), Participant::Concept(b)) => narrower(world, a, b),
        _ => a == b,
    }
}

fn predicate_narrower(world: &World, a: &Proposition, b: &Proposition) -> bool {
    let object = match (&a.object, &b.object) {
        (Some(a), Some(b)) => participant_narrower(world, a, b),
        (a, b) => a.is_none() && b.is_none(),
    };
    let adjunct = match (&a.adjunct, &b.adjunct) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => {
            a.adposition == b.adposition && participant_narrower(world, &a.thing, &b.thing)
        }
    };
    a.verb == b.verb && a.past == b.past && object && adjunct
}
