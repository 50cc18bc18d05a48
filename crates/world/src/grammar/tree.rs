//! A sentence before linearisation: meanings and their dependencies.

use serde::{Deserialize, Serialize};

use crate::meaning::{EntityType, MeaningId};

/// Parts of speech, by their names in Universal Dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Upos {
    #[serde(rename = "NOUN")]
    Noun,
    #[serde(rename = "PROPN")]
    ProperNoun,
    #[serde(rename = "VERB")]
    Verb,
    #[serde(rename = "ADJ")]
    Adjective,
    #[serde(rename = "DET")]
    Determiner,
    #[serde(rename = "ADP")]
    Adposition,
    #[serde(rename = "PART")]
    Particle,
    #[serde(rename = "PRON")]
    Pronoun,
    #[serde(rename = "AUX")]
    Auxiliary,
    #[serde(rename = "PUNCT")]
    Punctuation,
}

impl Upos {
    /// The tag in a treebank.
    pub fn tag(self) -> &'static str {
        match self {
            Upos::Noun => "NOUN",
            Upos::ProperNoun => "PROPN",
            Upos::Verb => "VERB",
            Upos::Adjective => "ADJ",
            Upos::Determiner => "DET",
            Upos::Adposition => "ADP",
            Upos::Particle => "PART",
            Upos::Pronoun => "PRON",
            Upos::Auxiliary => "AUX",
            Upos::Punctuation => "PUNCT",
        }
    }

    /// Whether new words of this kind can be coined: nouns, names, verbs and adjectives.
    pub fn is_content(self) -> bool {
        matches!(self, Upos::Noun | Upos::ProperNoun | Upos::Verb | Upos::Adjective)
    }
}

/// How a word depends on its head. Finer than the names in treebanks where order needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it, and the label follows")]
pub enum Relation {
    Root,
    Subject,
    /// The pronoun that opens a relative clause, its subject.
    Relativizer,
    Object,
    /// What a verb's own adposition brings.
    Argument,
    /// Place or circumstance.
    Adjunct,
    Genitive,
    Adjective,
    Determiner,
    Case,
    Copula,
    Negation,
    RelativeClause,
    /// A further word of a name.
    Flat,
    Punctuation,
}

impl Relation {
    pub(crate) const COUNT: usize = Relation::Punctuation as usize + 1;

    /// The label in a treebank.
    pub fn label(self) -> &'static str {
        match self {
            Relation::Root => "root",
            Relation::Subject | Relation::Relativizer => "nsubj",
            Relation::Object => "obj",
            Relation::Argument => "obl:arg",
            Relation::Adjunct => "obl",
            Relation::Genitive => "nmod",
            Relation::Adjective => "amod",
            Relation::Determiner => "det",
            Relation::Case => "case",
            Relation::Copula => "cop",
            Relation::Negation => "advmod",
            Relation::RelativeClause => "acl:relcl",
            Relation::Flat => "flat",
            Relation::Punctuation => "punct",
        }
    }
}

/// A word of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// What it means.
    pub meaning: MeaningId,
    /// Its part of speech.
    pub upos: Upos,
    /// How it depends on its head.
    pub relation: Relation,
    /// What it depends on, an index into the tree; the root points at itself.
    pub head: usize,
    /// A noun is plural, or a verb has a plural subject.
    pub plural: bool,
    /// A verb is in the past.
    pub past: bool,
    /// The type of the named entity it is a part of.
    pub entity: Option<EntityType>,
}

/// A sentence as a tree. The root comes first; what depends on a node comes after it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// The words, in no language's order.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What depends on a node.
    pub fn children(&self, head: usize) -> impl Iterator<Item = usize> + '_ {
        (head + 1..self.nodes.len()).filter(move |&n| self.nodes[n].head == head)
    }

    /// Starts a new sentence with its root.
    pub(crate) fn start(&mut self, meaning: MeaningId, upos: Upos) -> usize {
        self.nodes.clear();
        self.attach(0, Relation::Root, meaning, upos)
    }

    /// Adds a word below `head`.
    pub(crate) fn attach(
        &mut self,
        head: usize,
        relation: Relation,
        meaning: MeaningId,
        upos: Upos,
    ) -> usize {
        let (plural, past, entity) = (false, false, None);
        self.nodes.push(Node { meaning, upos, relation, head, plural, past, entity });
        self.nodes.len() - 1
    }

    pub(crate) fn node(&mut self, index: usize) -> &mut Node {
        &mut self.nodes[index]
    }
}
