//! A language: phonology and script, lexicon and morphology, word order.

mod lexicon;
mod morphology;
mod order;
mod phonology;
mod script;

pub use morphology::{Affix, Morphology};
pub use order::{DependentSide, VerbOrder, WordOrder};
pub use script::Script;

use crate::config::{LanguagePlan, WorldPlan};
use crate::grammar::{Tree, Upos};
use crate::meaning::{MeaningId, World};
use lexicon::{LexiconEntry, LexiconGenerator, UsedForms};
use morphology::{AffixTable, Inflection};
use order::Linearizer;

/// A language, which realises any tree of the world as a sentence.
#[derive(Clone, Debug)]
pub struct Language {
    plan: LanguagePlan,
    lexicon: Vec<LexiconEntry>,
    marks: AffixTable,
    arrangement: Linearizer,
}

impl Language {
    /// Makes the languages of a plan, the first first.
    pub fn invent(plan: &WorldPlan, world: &World) -> Vec<Self> {
        let mut taken = UsedForms::new();
        let mut languages: Vec<Self> = Vec::new();
        for own in plan.languages() {
            let first = languages.first().map(|first| first.lexicon.as_slice());
            let (lexicon, marks) = LexiconGenerator::new(plan, own, world, first).coin(&mut taken);
            let arrangement = Linearizer::new(own.order);
            languages.push(Self { plan: own.clone(), lexicon, marks, arrangement });
        }
        languages
    }

    /// The plan that it was generated from.
    pub fn plan(&self) -> &LanguagePlan {
        &self.plan
    }

    /// Its code.
    pub fn code(&self) -> &str {
        &self.plan.code
    }

    /// The unmarked form of a meaning.
    pub fn lemma(&self, meaning: MeaningId) -> &str {
        &self.lexicon[meaning as usize].lemma
    }

    /// Whether it writes a meaning exactly as the first language does.
    pub fn is_anchor(&self, meaning: MeaningId) -> bool {
        self.lexicon[meaning as usize].anchor
    }

    /// The different forms of a meaning, the unmarked one first.
    pub fn forms(&self, meaning: MeaningId) -> Vec<&str> {
        let entry = &self.lexicon[meaning as usize];
        let mut forms: Vec<&str> = Vec::new();
        for form in entry.inflections().map(|inflection| entry.form(inflection)) {
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms
    }

    /// The forms of a meaning in this language and another, paired by inflection.
    pub fn paired_forms<'a>(
        &'a self,
        other: &'a Language,
        meaning: MeaningId,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let (own, others) = (&self.lexicon[meaning as usize], &other.lexicon[meaning as usize]);
        own.inflections().map(|inflection| (own.form(inflection), others.form(inflection)))
    }

    /// The nodes of a tree in this language's order.
    pub fn linearize(&self, tree: &Tree) -> Vec<usize> {
        self.arrangement.linearize(tree)
    }

    /// The form a word takes in its place in a tree.
    pub fn form(&self, tree: &Tree, node: usize) -> &str {
        let node = &tree.nodes()[node];
        self.lexicon[node.meaning as usize].form(Inflection::of(node))
    }

    /// The marked features of a word in its place, as a treebank writes them.
    pub fn features(&self, tree: &Tree, node: usize) -> String {
        let node = &tree.nodes()[node];
        self.marks.features(node.upos, Inflection::of(node))
    }

    /// Appends a sentence to a text: words between spaces, the full stop attached.
    pub fn realize_into(&self, tree: &Tree, text: &mut String) {
        for (place, node) in self.linearize(tree).into_iter().enumerate() {
            if place > 0 && tree.nodes()[node].upos != Upos::Punctuation {
                text.push(' ');
            }
            text.push_str(self.form(tree, node));
        }
    }

    /// A tree as a sentence (surface realisation).
    pub fn realize(&self, tree: &Tree) -> String {
        let mut text = String::new();
        self.realize_into(tree, &mut text);
        text
    }
}
