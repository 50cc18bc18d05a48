//! The lexicon of one language: words invented, inherited by sound change or shared, each form with one
//! meaning only.

use std::collections::HashMap;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

use super::morphology::{AffixTable, Inflection};
use super::phonology::{Phonology, Syllable};
use crate::config::{LanguagePlan, WorldPlan};
use crate::grammar::Upos;
use crate::meaning::{Meaning, MeaningId, World};
use crate::random::{NamedStreams, shuffle};

/// Tries at a word of one length before it is made longer.
const TRIES: usize = 40;

#[derive(Clone, Debug)]
pub(crate) struct LexiconEntry {
    sounds: Vec<Syllable>,
    /// The form without marks.
    pub(crate) lemma: String,
    /// Whether the first language writes it the same.
    pub(crate) anchor: bool,
    upos: Upos,
    /// Every form, by the index of its inflection.
    forms: Vec<String>,
}

impl LexiconEntry {
    pub(crate) fn inflections(&self) -> impl Iterator<Item = Inflection> {
        Inflection::all(self.upos)
    }

    pub(crate) fn form(&self, inflection: Inflection) -> &str {
        &self.forms[inflection.index()]
    }
}

/// Forms already in use in any language, with their meanings.
pub(crate) type UsedForms = HashMap<String, MeaningId>;

/// Generates the words of one language after another.
pub(crate) struct LexiconGenerator<'a> {
    plan: &'a LanguagePlan,
    first: Option<&'a [LexiconEntry]>,
    world: &'a World,
    sounds: Phonology,
    pub(crate) marks: AffixTable,
    capitals: bool,
    seed: u64,
    entries: Vec<Option<LexiconEntry>>,
}

impl<'a> LexiconGenerator<'a> {
    pub(crate) fn new(
        plan: &'a WorldPlan,
        language: &'a LanguagePlan,
        world: &'a World,
        first: Option<&'a [LexiconEntry]>,
    ) -> Self {
        let seed = plan.config().seed;
        let mut rng = NamedStreams::new(seed, &format!("sounds/{}", language.code)).at(0);
        let sounds = Phonology::new(&mut rng);
        let marks = AffixTable::new(language.morphology, language.script, &sounds, &mut rng);
        let capitals = plan.config().capitals && language.script.has_capitals();
        let entries = vec![None; world.meanings().len()];
        Self { plan: language, first, world, sounds, marks, capitals, seed, entries }
    }

    /// A word for every meaning.
    pub(crate) fn coin(mut self, taken: &mut UsedForms) -> (Vec<LexiconEntry>, AffixTable) {
        self.share(taken);
        let kinship = NamedStreams::new(self.seed, "cognates");
        let coinage = NamedStreams::new(self.seed, &format!("lexicon/{}", self.plan.code));
        for (id, meaning) in (0..).zip(self.world.meanings()) {
            if self.entries[id as usize].is_some() {
                continue;
            }
            // One draw a meaning, whatever the share: more cognates are always a superset of fewer.
            let related = kinship.at(id.into()).random::<f64>() < self.plan.cognates;
            let entry = match meaning.upos {
                Upos::Punctuation => self.mark(),
                _ => related
                    .then(|| self.inherit(id, meaning, taken))
                    .flatten()
                    .unwrap_or_else(|| self.invent(id, meaning, taken, coinage.at(id.into()))),
            };
            self.entries[id as usize] = Some(entry);
        }
        let entries = self.entries.into_iter().flatten().collect();
        (entries, self.marks)
    }

    /// Copies words of the first language (anchors). The ranking is the same for every share
    /// and language, so more anchors are always a superset of fewer.
    fn share(&mut self, taken: &mut UsedForms) {
        let Some(first) = self.first else { return };
        let meanings = self.world.meanings();
        let is_content = |id: &MeaningId| meanings[*id as usize].upos.is_content();
        let mut ranking: Vec<MeaningId> =
            (0..meanings.len() as MeaningId).filter(is_content).collect();
        shuffle(&mut NamedStreams::new(self.seed, "anchors").at(0), &mut ranking);
        let mut wanted = (self.plan.anchors * ranking.len() as f64).round() as usize;
        for id in ranking {
            if wanted == 0 {
                break;
            }
            let model = &first[id as usize];
            let stem = model.lemma.to_lowercase();
            let meaning = &meanings[id as usize];
            if let Some(mut forms) = self.claim_forms(id, meaning, &stem, taken, true) {
                if model.lemma != stem {
                    capitalise(&mut forms);
                }
                self.entries[id as usize] = Some(LexiconEntry {
                    sounds: model.sounds.clone(),
                    lemma: model.lemma.clone(),
                    anchor: true,
                    upos: meaning.upos,
                    forms,
                });
                wanted -= 1;
            }
        }
    }

    /// The first language's word through this language's sound changes, if that gives a free word.
    fn inherit(
        &self,
        id: MeaningId,
        meaning: &Meaning,
        taken: &mut UsedForms,
    ) -> Option<LexiconEntry> {
        let adapted = self.sounds.adapt(&self.first?[id as usize].sounds);
        (0..4).find_map(|step| {
            let sounds = self.sounds.with_other_vowel(&adapted, step);
            let forms =
                self.claim_forms(id, meaning, &self.plan.script.spell(&sounds), taken, false)?;
            Some(self.entry(sounds, forms, meaning.upos))
        })
    }

    fn invent(
        &self,
        id: MeaningId,
        meaning: &Meaning,
        taken: &mut UsedForms,
        mut rng: ChaCha8Rng,
    ) -> LexiconEntry {
        let shortest = match meaning.upos.is_content() {
            true => 2 + usize::from(rng.random_range(0..3) == 2),
            false => 1,
        };
        for attempt in 0.. {
            let sounds = self.sounds.word(shortest + attempt / TRIES, &mut rng);
            let stem = self.plan.script.spell(&sounds);
            if let Some(forms) = self.claim_forms(id, meaning, &stem, taken, false) {
                return self.entry(sounds, forms, meaning.upos);
            }
        }
        unreachable!("words can always be made longer")
    }

    /// All forms of a stem, if each is free. A shared word may meet its own forms in the first
    /// language; any other must be new in every language.
    fn claim_forms(
        &self,
        id: MeaningId,
        meaning: &Meaning,
        stem: &str,
        taken: &mut UsedForms,
        shared: bool,
    ) -> Option<Vec<String>> {
        let mut forms = vec![String::new(); Inflection::COUNT];
        for inflection in Inflection::all(meaning.upos) {
            let form = self.marks.inflect(stem, meaning.upos, inflection);
            let owner = taken.get(&form);
            if owner.is_some_and(|&owner| !shared || owner != id) {
                return None;
            }
            forms[inflection.index()] = form;
        }
        for form in forms.iter().filter(|form| !form.is_empty()) {
            taken.insert(form.clone(), id);
        }
        Some(forms)
    }

    /// A word that is this language's own.
    fn entry(&self, sounds: Vec<Syllable>, mut forms: Vec<String>, upos: Upos) -> LexiconEntry {
        if upos == Upos::ProperNoun && self.capitals {
            capitalise(&mut forms);
        }
        LexiconEntry { sounds, lemma: forms[0].clone(), anchor: false, upos, forms }
    }

    fn mark(&self) -> LexiconEntry {
        let forms = vec![self.plan.script.stop().to_string(); Inflection::COUNT];
        self.entry(Vec::new(), forms, Upos::Punctuation)
    }
}

fn capitalise(forms: &mut [String]) {
    for form in forms {
        let mut letters = form.chars();
        if let Some(first) = letters.next() {
            *form = first.to_uppercase().chain(letters).collect();
        }
    }
}
