//! Drawing inference items so that the hypothesis alone says nothing.
//!
//! The hypothesis is drawn first. Random changes to it give premises, which are judged, until there
//! is one for each label; only then is a label chosen, by a schedule that knows nothing of the
//! hypothesis. So each hypothesis is as likely under any label as under another.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::claim::{Adjunct, Claim, Kind, Quantifier, Subject, Thing};
use super::judge::{Label, judge};
use crate::meaning::{self, Domain, EntityType, Frame, MeaningId, World, words};
use crate::random::{any, happens};

/// Premises tried on one hypothesis before another is drawn.
const TRIES: usize = 80;
/// Hypotheses tried before an index is given up.
const HYPOTHESES: usize = 50;

/// A hypothesis with a premise for each label.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) hypothesis: Claim,
    /// By label.
    pub(crate) premises: [Claim; 3],
}

/// Draws items from a domain.
pub(crate) struct Sampler<'a> {
    pub(crate) world: &'a World,
    pub(crate) domain: &'a Domain,
}

impl Sampler<'_> {
    /// An item, unless the world is so poor that none was found.
    pub(crate) fn item(&self, rng: &mut ChaCha8Rng) -> Option<Item> {
        (0..HYPOTHESES).find_map(|_| {
            let topic = self.domain.topic(rng);
            let hypothesis = self.claim(topic, rng);
            let premises = self.premises(&hypothesis, topic, rng)?;
            Some(Item { hypothesis, premises })
        })
    }

    fn premises(
        &self,
        hypothesis: &Claim,
        topic: usize,
        rng: &mut ChaCha8Rng,
    ) -> Option<[Claim; 3]> {
        let mut found: [Option<Claim>; 3] = [const { None }; 3];
        for _ in 0..TRIES {
            let premise = self.variant(hypothesis, topic, rng);
            if premise != *hypothesis {
                let label = judge(self.world, &premise, hypothesis);
                found[label as usize].get_or_insert(premise);
            }
            if let [Some(_), Some(_), Some(_)] = &found {
                return Some(found.map(|premise| premise.expect("each was just seen")));
            }
        }
        None
    }

    fn claim(&self, topic: usize, rng: &mut ChaCha8Rng) -> Claim {
        let (subject, actor) = self.subject(topic, rng);
        let verb = self.domain.verb(topic, actor, rng);
        let entry = &self.world.verbs[verb];
        let object = (entry.frame != Frame::Intransitive).then(|| {
            let named = entry.named_object.filter(|_| happens(rng, 0.5));
            match named {
                Some(kind) => Thing::Named(kind, self.domain.entity(topic, kind, rng)),
                None => {
                    let noun = self.domain.object(self.world, topic, verb, rng);
                    Thing::Kind(self.kind(noun, topic, rng))
                }
            }
        });
        let past = happens(rng, 0.4);
        let adjunct = happens(rng, 0.5).then(|| self.adjunct(topic, rng));
        Claim { subject, verb, past, object, adjunct }
    }

    fn subject(&self, topic: usize, rng: &mut ChaCha8Rng) -> (Subject, meaning::Subject) {
        match rng.random_range(0..10) {
            n @ 0..5 => {
                let (kind, actor) = match n {
                    0 => (EntityType::Organisation, meaning::Subject::Organisation),
                    _ => (EntityType::Person, meaning::Subject::Person),
                };
                let entity = self.domain.entity(topic, kind, rng);
                (Subject::Named { kind, entity, negated: happens(rng, 0.5) }, actor)
            }
            _ => {
                let noun = self.domain.noun(self.world, topic, rng);
                let kind = self.kind(noun, topic, rng);
                let quantifier = quantifier(rng);
                let actor = meaning::Subject::Class(kind.class);
                (Subject::Quantified { quantifier, kind }, actor)
            }
        }
    }

    /// A kind around a noun, often named more generally.
    fn kind(&self, noun: usize, topic: usize, rng: &mut ChaCha8Rng) -> Kind {
        let noun = &self.world.nouns[noun];
        let class = &self.world.classes[noun.class];
        let id = match rng.random::<f64>() {
            u if u < 0.55 => noun.id,
            u if u < 0.85 => class.id,
            _ => class.superclass,
        };
        let adjective = happens(rng, 0.5).then(|| self.adjective(noun.class, topic, rng));
        Kind { noun: id, class: noun.class, adjective }
    }

    fn adjective(&self, class: usize, topic: usize, rng: &mut ChaCha8Rng) -> MeaningId {
        self.world.adjectives[self.domain.adjective(topic, class, rng)].id
    }

    fn adjunct(&self, topic: usize, rng: &mut ChaCha8Rng) -> Adjunct {
        let named = |kind, rng: &mut _| Thing::Named(kind, self.domain.entity(topic, kind, rng));
        let (adposition, thing) = match rng.random::<f64>() {
            u if u < 0.55 => (words::IN, named(EntityType::Place, rng)),
            u if u < 0.8 => (words::AT, named(EntityType::Organisation, rng)),
            _ => {
                let noun = self.domain.noun(self.world, topic, rng);
                (words::WITH, Thing::Kind(self.kind(noun, topic, rng)))
            }
        };
        Adjunct { adposition, thing }
    }

    /// The claim with its operator drawn anew and up to three other changes.
    fn variant(&self, claim: &Claim, topic: usize, rng: &mut ChaCha8Rng) -> Claim {
        let mut claim = claim.clone();
        match &mut claim.subject {
            Subject::Named { negated, .. } => *negated = happens(rng, 0.5),
            Subject::Quantified { quantifier: own, .. } => *own = quantifier(rng),
        }
        for _ in 0..rng.random_range(0..=3) {
            self.change(&mut claim, topic, rng);
        }
        claim
    }

    /// One change: a thing named more or less closely, or an adjunct gained or lost.
    fn change(&self, claim: &mut Claim, topic: usize, rng: &mut ChaCha8Rng) {
        match rng.random_range(0..5) {
            0 | 1 => {
                if let Subject::Quantified { kind, .. } = &mut claim.subject {
                    self.rename(kind, topic, rng);
                }
            }
            2 | 3 => {
                if let Some(Thing::Kind(kind)) = &mut claim.object {
                    self.rename(kind, topic, rng);
                }
            }
            _ => {
                claim.adjunct = match claim.adjunct {
                    Some(_) => None,
                    None => Some(self.adjunct(topic, rng)),
                };
            }
        }
    }

    fn rename(&self, kind: &mut Kind, topic: usize, rng: &mut ChaCha8Rng) {
        if happens(rng, 0.5) {
            kind.adjective = match kind.adjective {
                Some(_) => None,
                None => Some(self.adjective(kind.class, topic, rng)),
            };
            return;
        }
        let class = &self.world.classes[kind.class];
        let member = self.domain.member(self.world, topic, kind.class, rng);
        kind.noun = *any(rng, &[self.world.nouns[member].id, class.id, class.superclass]);
    }
}

/// Denial is as likely as assertion, here as for named subjects.
fn quantifier(rng: &mut ChaCha8Rng) -> Quantifier {
    *any(rng, &[Quantifier::All, Quantifier::Some, Quantifier::No, Quantifier::No])
}

impl Item {
    /// The premise that has a label.
    pub(crate) fn premise(&self, label: Label) -> &Claim {
        &self.premises[label as usize]
    }
}
