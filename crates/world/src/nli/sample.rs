//! Sampling NLI items so that the hypothesis alone does not predict the label (Poliak et al. 2018).
//!
//! The hypothesis is drawn first. Random changes to it give premises, until there is one for each label;
//! only then is a label chosen, independently of the hypothesis. So each hypothesis is equally likely
//! under every label.

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::entailment::{NliLabel, nli_label};
use super::proposition::{
    Adjunct, Concept, Participant, Proposition, PropositionSubject, Quantifier,
};
use crate::meaning::{self, Domain, EntityType, MeaningId, VerbFrame, World, words};
use crate::random::{bernoulli, choose};

/// Premises tried on one hypothesis before another is drawn.
const TRIES: usize = 80;
/// Hypotheses tried before an index is given up.
const HYPOTHESES: usize = 50;

/// A hypothesis with a premise for each label.
#[derive(Clone, Debug)]
pub(crate) struct NliItem {
    pub(crate) hypothesis: Proposition,
    /// By label.
    pub(crate) premises: [Proposition; 3],
}

pub(crate) struct NliSampler<'a> {
    pub(crate) world: &'a World,
    pub(crate) domain: &'a Domain,
}

impl NliSampler<'_> {
    /// An item, unless the world is so poor that none was found.
    pub(crate) fn item(&self, rng: &mut ChaCha8Rng) -> Option<NliItem> {
        (0..HYPOTHESES).find_map(|_| {
            let topic = self.domain.topic(rng);
            let hypothesis = self.claim(topic, rng);
            let premises = self.premises(&hypothesis, topic, rng)?;
            Some(NliItem { hypothesis, premises })
        })
    }

    fn premises(
        &self,
        hypothesis: &Proposition,
        topic: usize,
        rng: &mut ChaCha8Rng,
    ) -> Option<[Proposition; 3]> {
        let mut found: [Option<Proposition>; 3] = [const { None }; 3];
        for _ in 0..TRIES {
            let premise = self.variant(hypothesis, topic, rng);
            if premise != *hypothesis {
                let label = nli_label(self.world, &premise, hypothesis);
                found[label as usize].get_or_insert(premise);
            }
            if let [Some(_), Some(_), Some(_)] = &found {
                return Some(found.map(|premise| premise.expect("each was just seen")));
            }
        }
        None
    }

    fn claim(&self, topic: usize, rng: &mut ChaCha8Rng) -> Proposition {
        let (subject, actor) = self.subject(topic, rng);
        let verb = self.domain.verb(topic, actor, rng);
        let entry = &self.world.verbs[verb];
        let object = (entry.frame != VerbFrame::Intransitive).then(|| {
            let named = entry.named_object.filter(|_| bernoulli(rng, 0.5));
            match named {
                Some(kind) => Participant::Named(kind, self.domain.entity(topic, kind, rng)),
                None => {
                    let noun = self.domain.object(self.world, topic, verb, rng);
                    Participant::Concept(self.kind(noun, topic, rng))
                }
            }
        });
        let past = bernoulli(rng, 0.4);
        let adjunct = bernoulli(rng, 0.5).then(|| self.adjunct(topic, rng));
        Proposition { subject, verb, past, object, adjunct }
    }

    fn subject(
        &self,
        topic: usize,
        rng: &mut ChaCha8Rng,
    ) -> (PropositionSubject, meaning::SubjectType) {
        match rng.random_range(0..10) {
            n @ 0..5 => {
                let (kind, actor) = match n {
                    0 => (EntityType::Organisation, meaning::SubjectType::Organisation),
                    _ => (EntityType::Person, meaning::SubjectType::Person),
                };
                let entity = self.domain.entity(topic, kind, rng);
                (PropositionSubject::Named { kind, entity, negated: bernoulli(rng, 0.5) }, actor)
            }
            _ => {
                let noun = self.domain.noun(self.world, topic, rng);
                let kind = self.kind(noun, topic, rng);
                let quantifier = quantifier(rng);
                let actor = meaning::SubjectType::NounClass(kind.class);
                (PropositionSubject::Quantified { quantifier, kind }, actor)
            }
        }
    }

    /// A concept around a noun, often generalised to its hypernym.
    fn kind(&self, noun: usize, topic: usize, rng: &mut ChaCha8Rng) -> Concept {
        let noun = &self.world.nouns[noun];
        let class = &self.world.classes[noun.class];
        let id = match rng.random::<f64>() {
            u if u < 0.55 => noun.id,
            u if u < 0.85 => class.id,
            _ => class.superclass,
        };
        let adjective = bernoulli(rng, 0.5).then(|| self.adjective(noun.class, topic, rng));
        Concept { noun: id, class: noun.class, adjective }
    }

    fn adjective(&self, class: usize, topic: usize, rng: &mut ChaCha8Rng) -> MeaningId {
        self.world.adjectives[self.domain.adjective(topic, class, rng)].id
    }

    fn adjunct(&self, topic: usize, rng: &mut ChaCha8Rng) -> Adjunct {
        let named =
            |kind, rng: &mut _| Participant::Named(kind, self.domain.entity(topic, kind, rng));
        let (adposition, thing) = match rng.random::<f64>() {
            u if u < 0.55 => (words::IN, named(EntityType::Place, rng)),
            u if u < 0.8 => (words::AT, named(EntityType::Organisation, rng)),
            _ => {
                let noun = self.domain.noun(self.world, topic, rng);
                (words::WITH, Participant::Concept(self.kind(noun, topic, rng)))
            }
        };
        Adjunct { adposition, thing }
    }

    /// The proposition with its operator drawn again and up to three other changes.
    fn variant(&self, claim: &Proposition, topic: usize, rng: &mut ChaCha8Rng) -> Proposition {
        let mut claim = claim.clone();
        match &mut claim.subject {
            PropositionSubject::Named { negated, .. } => *negated = bernoulli(rng, 0.5),
            PropositionSubject::Quantified { quantifier: own, .. } => *own = quantifier(rng),
        }
        for _ in 0..rng.random_range(0..=3) {
            self.change(&mut claim, topic, rng);
        }
        claim
    }

    /// One change: a concept generalised or specialised, or an adjunct added or removed.
    fn change(&self, claim: &mut Proposition, topic: usize, rng: &mut ChaCha8Rng) {
        match rng.random_range(0..5) {
            0 | 1 => {
                if let PropositionSubject::Quantified { kind, .. } = &mut claim.subject {
                    self.rename(kind, topic, rng);
                }
            }
            2 | 3 => {
                if let Some(Participant::Concept(kind)) = &mut claim.object {
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

    fn rename(&self, kind: &mut Concept, topic: usize, rng: &mut ChaCha8Rng) {
        if bernoulli(rng, 0.5) {
            kind.adjective = match kind.adjective {
                Some(_) => None,
                None => Some(self.adjective(kind.class, topic, rng)),
            };
            return;
        }
        let class = &self.world.classes[kind.class];
        let member = self.domain.member(self.world, topic, kind.class, rng);
        kind.noun = *choose(rng, &[self.world.nouns[member].id, class.id, class.superclass]);
    }
}

/// Negation is as likely as assertion, here as for named subjects.
fn quantifier(rng: &mut ChaCha8Rng) -> Quantifier {
    *choose(rng, &[Quantifier::All, Quantifier::Some, Quantifier::No, Quantifier::No])
}

impl NliItem {
    pub(crate) fn premise(&self, label: NliLabel) -> &Proposition {
        &self.premises[label as usize]
    }
}
