//! Inflection by affixes: number and case on nouns, tense and agreement on verbs.

use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::phonology::Phonology;
use super::script::Script;
use crate::grammar::{Node, Relation, Upos};

/// The side of the stem on which affixes stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Affix {
    /// After the stem.
    #[default]
    Suffix,
    /// Before it.
    Prefix,
}

/// Which categories a language marks. The default is none: every word has one form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Morphology {
    /// Plural nouns are marked.
    pub number: bool,
    /// Past verbs are marked.
    pub tense: bool,
    /// Verbs with plural subjects are marked.
    pub agreement: bool,
    /// Nouns are marked as objects, and with adpositions.
    pub case: bool,
    /// Where the affixes stand.
    pub affix: Affix,
}

/// Which of its forms a word takes: for nouns number and case, for verbs tense and agreement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Inflection {
    /// Plural, of a noun or of a verb's subject.
    pub(crate) plural: bool,
    pub(crate) past: bool,
    pub(crate) case: Case,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Case {
    #[default]
    Nominative,
    Accusative,
    Locative,
}

impl Inflection {
    /// Places in a word's table of forms.
    pub(crate) const COUNT: usize = 12;

    /// The inflection that a node's position in its tree requires, marked or not.
    pub(crate) fn of(node: &Node) -> Self {
        let case = match node.relation {
            _ if node.upos != Upos::Noun => Case::Nominative,
            Relation::Object => Case::Accusative,
            Relation::Argument | Relation::Adjunct | Relation::Genitive => Case::Locative,
            _ => Case::Nominative,
        };
        Self { plural: node.plural, past: node.past, case }
    }

    pub(crate) fn all(upos: Upos) -> impl Iterator<Item = Self> {
        let pasts = if upos == Upos::Verb { &[false, true][..] } else { &[false] };
        let plurals =
            if matches!(upos, Upos::Noun | Upos::Verb) { &[false, true][..] } else { &[false] };
        let cases = if upos == Upos::Noun {
            &[Case::Nominative, Case::Accusative, Case::Locative][..]
        } else {
            &[Case::Nominative]
        };
        cases.iter().flat_map(move |&case| {
            pasts.iter().flat_map(move |&past| {
                plurals.iter().map(move |&plural| Self { plural, past, case })
            })
        })
    }

    /// Its place in a word's table of forms.
    pub(crate) fn index(self) -> usize {
        self.case as usize * 4 + usize::from(self.past) * 2 + usize::from(self.plural)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct AffixTable {
    morphology: Morphology,
    plural: String,
    accusative: String,
    locative: String,
    past: String,
    agreement: String,
}

impl AffixTable {
    pub(crate) fn new(
        morphology: Morphology,
        script: Script,
        sounds: &Phonology,
        rng: &mut ChaCha8Rng,
    ) -> Self {
        let mut taken: Vec<String> = Vec::new();
        let mut mark = || {
            let fresh = std::iter::repeat_with(|| script.spell(&sounds.word(1, rng)))
                .find(|mark| !taken.contains(mark))
                .expect("a language has more syllables than marks");
            taken.push(fresh.clone());
            fresh
        };
        Self {
            morphology,
            plural: mark(),
            accusative: mark(),
            locative: mark(),
            past: mark(),
            agreement: mark(),
        }
    }

    /// The inflected form of a stem. Categories that the language does not mark have no affix.
    pub(crate) fn inflect(&self, stem: &str, upos: Upos, inflection: Inflection) -> String {
        let has = self.morphology;
        let noun = upos == Upos::Noun;
        let marks = [
            (noun && has.number && inflection.plural, &self.plural),
            (noun && has.case && inflection.case == Case::Accusative, &self.accusative),
            (noun && has.case && inflection.case == Case::Locative, &self.locative),
            (upos == Upos::Verb && has.tense && inflection.past, &self.past),
            (upos == Upos::Verb && has.agreement && inflection.plural, &self.agreement),
        ];
        let marks = marks.iter().filter(|(present, _)| *present).map(|(_, mark)| mark.as_str());
        let mut form = String::from(stem);
        for mark in marks {
            match has.affix {
                Affix::Suffix => form.push_str(mark),
                Affix::Prefix => form.insert_str(0, mark),
            }
        }
        form
    }

    /// The features of a treebank: those that the language marks.
    pub(crate) fn features(&self, upos: Upos, inflection: Inflection) -> String {
        let has = self.morphology;
        let mut features: Vec<&str> = Vec::new();
        let number = if inflection.plural { "Number=Plur" } else { "Number=Sing" };
        match upos {
            Upos::Noun => {
                if has.case {
                    features.push(match inflection.case {
                        Case::Nominative => "Case=Nom",
                        Case::Accusative => "Case=Acc",
                        Case::Locative => "Case=Loc",
                    });
                }
                if has.number {
                    features.push(number);
                }
            }
            Upos::Verb => {
                if has.agreement {
                    features.push(number);
                }
                if has.tense {
                    features.push(if inflection.past { "Tense=Past" } else { "Tense=Pres" });
                }
            }
            Upos::Particle => features.push("Polarity=Neg"),
            _ => {}
        }
        if features.is_empty() { "_".to_owned() } else { features.join("|") }
    }
}
