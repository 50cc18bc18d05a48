//! Word order: linearisation of a dependency tree, by the side and distance of each dependent from its
//! head.

use serde::{Deserialize, Serialize};

use crate::grammar::{Relation, Tree, Upos};

/// The order of subject, verb and object. Other complements stand where the object stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are the orders")]
pub enum VerbOrder {
    #[default]
    Svo,
    Sov,
    Vso,
    Vos,
    Ovs,
    Osv,
}

impl VerbOrder {
    /// The order that another verb position gives: the verb at the end, or, from there, in between.
    pub fn moved(self) -> Self {
        match self {
            VerbOrder::Svo | VerbOrder::Vso | VerbOrder::Vos => VerbOrder::Sov,
            VerbOrder::Sov | VerbOrder::Osv | VerbOrder::Ovs => VerbOrder::Svo,
        }
    }
}

/// A side of the head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names are the sides")]
pub enum DependentSide {
    #[default]
    Before,
    After,
}

impl DependentSide {
    /// The other side.
    #[must_use]
    pub fn opposite(self) -> Self {
        match self {
            DependentSide::Before => DependentSide::After,
            DependentSide::After => DependentSide::Before,
        }
    }
}

/// A language's word order. The default is English's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WordOrder {
    /// Subject, verb and object.
    pub verb: VerbOrder,
    /// The adjective beside its noun.
    pub adjective: DependentSide,
    /// The adposition beside its noun phrase.
    pub adposition: DependentSide,
    /// The determiner beside its noun.
    pub determiner: DependentSide,
    /// The genitive beside its noun.
    pub genitive: DependentSide,
    /// The relative clause beside its noun.
    pub relative: DependentSide,
    /// The negation beside its verb.
    pub negation: DependentSide,
}

impl Default for WordOrder {
    fn default() -> Self {
        Self {
            verb: VerbOrder::Svo,
            adjective: DependentSide::Before,
            adposition: DependentSide::Before,
            determiner: DependentSide::Before,
            genitive: DependentSide::After,
            relative: DependentSide::After,
            negation: DependentSide::Before,
        }
    }
}

/// Places around a head by relation: negative before it, positive after, farther out the larger.
type Slots = [i8; Relation::COUNT];

/// A word order as slots around heads.
#[derive(Clone, Debug)]
pub(crate) struct Linearizer {
    verb: Slots,
    /// Around nouns and adjectives, also where they are predicates.
    nominal: Slots,
}

impl Linearizer {
    pub(crate) fn new(order: WordOrder) -> Self {
        Self { verb: around_verb(order), nominal: around_nominal(order) }
    }

    /// The nodes of a tree in surface order.
    pub(crate) fn linearize(&self, tree: &Tree) -> Vec<usize> {
        let mut sequence = Vec::with_capacity(tree.nodes().len());
        self.visit(tree, 0, &mut sequence);
        sequence
    }

    fn visit(&self, tree: &Tree, head: usize, sequence: &mut Vec<usize>) {
        let nodes = tree.nodes();
        let slots = if nodes[head].upos == Upos::Verb { &self.verb } else { &self.nominal };
        let slot = |n: &usize| slots[nodes[*n].relation as usize];
        let mut children: Vec<usize> = tree.children(head).collect();
        children.sort_by_key(slot);
        let before = children.partition_point(|n| slot(n) < 0);
        children[..before].iter().for_each(|&n| self.visit(tree, n, sequence));
        sequence.push(head);
        children[before..].iter().for_each(|&n| self.visit(tree, n, sequence));
    }
}

/// Numbers the relations outwards on both sides; both lists are as read from left to right.
fn slots(before: &[Relation], after: &[Relation]) -> Slots {
    let mut slots = [i8::MAX - 1; Relation::COUNT];
    slots[Relation::Punctuation as usize] = i8::MAX;
    for (distance, relation) in (1..).zip(before.iter().rev()) {
        slots[*relation as usize] = -distance;
    }
    for (distance, relation) in (1..).zip(after) {
        slots[*relation as usize] = distance;
    }
    slots
}

fn around_verb(order: WordOrder) -> Slots {
    use Relation::{Adjunct, Argument, Negation, Object, Relativizer, Subject};
    let subject = [Subject].as_slice();
    let objects_after = [Object, Argument, Adjunct].as_slice();
    let objects_before = [Adjunct, Argument, Object].as_slice();
    let (mut before, mut after) = match order.verb {
        VerbOrder::Svo => (subject.to_vec(), objects_after.to_vec()),
        VerbOrder::Sov => ([subject, objects_before].concat(), vec![]),
        VerbOrder::Vso => (vec![], [subject, objects_after].concat()),
        VerbOrder::Vos => (vec![], [objects_after, subject].concat()),
        VerbOrder::Ovs => (objects_before.to_vec(), subject.to_vec()),
        VerbOrder::Osv => ([objects_before, subject].concat(), vec![]),
    };
    match order.negation {
        DependentSide::Before => before.push(Negation),
        DependentSide::After => after.insert(0, Negation),
    }
    // The relative pronoun stands at the edge of its clause that touches the noun.
    match order.relative {
        DependentSide::After => before.insert(0, Relativizer),
        DependentSide::Before => after.push(Relativizer),
    }
    slots(&before, &after)
}

fn around_nominal(order: WordOrder) -> Slots {
    use Relation::{Adjective, Case, Copula, Determiner, Flat, Genitive, Negation};
    use Relation::{RelativeClause, Subject};
    let outside_in = [
        (order.adposition, Case),
        (order.determiner, Determiner),
        (order.relative, RelativeClause),
        (order.genitive, Genitive),
        (order.adjective, Adjective),
    ];
    let on =
        |side: DependentSide| outside_in.iter().filter(move |(at, _)| *at == side).map(|(_, r)| *r);
    let copula = match order.negation {
        DependentSide::Before => [Negation, Copula],
        DependentSide::After => [Copula, Negation],
    };
    let (mut before, clause_after) = match order.verb {
        VerbOrder::Svo => ([&[Subject][..], &copula].concat(), vec![]),
        VerbOrder::Sov | VerbOrder::Osv => (vec![Subject], copula.to_vec()),
        VerbOrder::Vso | VerbOrder::Vos => (copula.to_vec(), vec![Subject]),
        VerbOrder::Ovs => (vec![], [&copula[..], &[Subject]].concat()),
    };
    before.extend(on(DependentSide::Before));
    let mut after = vec![Flat];
    after.extend(on(DependentSide::After).collect::<Vec<_>>().into_iter().rev());
    after.extend(clause_after);
    slots(&before, &after)
}
