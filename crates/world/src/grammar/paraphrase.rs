//! Another wording of the same meaning, by what grammar leaves open: for the comparison of a language with
//! itself (Conneau et al. 2020, §5.2), whose English paraphrases come from back-translation.
//!
//! Every element that a noun phrase may have or lack changes: an article that is there is left out (but not
//! that of a predicate, which always has one), a noun without determiner gets one, and a person is called
//! by the last name alone. Words of quantity (`all`, `some`, `no`, `many`) mean something and stay, as does
//! the order of words, which is fixed in each language. Both wordings are such as the corpora have.

use super::{Relation, Tree, Upos};
use crate::meaning::{EntityType, words};

impl Tree {
    /// The same meaning in another wording; the same wording where nothing in it is optional.
    pub(crate) fn paraphrase(&self) -> Self {
        let mut other = Tree::default();
        let mut places = vec![0; self.nodes().len()];
        for (index, node) in self.nodes().iter().enumerate() {
            if self.is_optional_article(index) || self.is_last_name(index) {
                continue;
            }
            let place = other.attach(places[node.head], node.relation, node.meaning, node.upos);
            places[index] = place;
            let last_name = self.children(index).find(|&child| self.is_last_name(child));
            let meaning = last_name.map_or(node.meaning, |last| self.nodes()[last].meaning);
            *other.node(place) = super::Node { head: places[node.head], meaning, ..node.clone() };
            if self.lacks_article(index) {
                other.attach(place, Relation::Determiner, words::THE, Upos::Determiner);
            }
        }
        other
    }

    fn is_optional_article(&self, index: usize) -> bool {
        let node = &self.nodes()[index];
        let article =
            node.relation == Relation::Determiner && matches!(node.meaning, words::THE | words::A);
        article && self.nodes()[node.head].relation != Relation::Root
    }

    fn lacks_article(&self, index: usize) -> bool {
        let node = &self.nodes()[index];
        let determined = |child: usize| self.nodes()[child].relation == Relation::Determiner;
        node.upos == Upos::Noun
            && node.relation != Relation::Root
            && !self.children(index).any(determined)
    }

    fn is_last_name(&self, index: usize) -> bool {
        let node = &self.nodes()[index];
        node.relation == Relation::Flat && node.entity == Some(EntityType::Person)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `First Last see a dog of boy` becomes `Last see dog of the boy`; `all` and a predicate's `a` stay.
    #[test]
    fn optional_elements_change_and_meanings_stay() {
        let [see, dog, boy, first, last] = [30, 31, 32, 33, 34];
        let mut tree = Tree::default();
        tree.start(see, Upos::Verb);
        let name = tree.attach(0, Relation::Subject, first, Upos::ProperNoun);
        let flat = tree.attach(name, Relation::Flat, last, Upos::ProperNoun);
        tree.node(name).entity = Some(EntityType::Person);
        tree.node(flat).entity = Some(EntityType::Person);
        let object = tree.attach(0, Relation::Object, dog, Upos::Noun);
        tree.attach(object, Relation::Determiner, words::A, Upos::Determiner);
        let owner = tree.attach(object, Relation::Genitive, boy, Upos::Noun);
        tree.attach(owner, Relation::Case, words::OF, Upos::Adposition);
        let meanings = |tree: &Tree| -> Vec<(u32, u32)> {
            let nodes = tree.nodes();
            let pair = |node: &super::super::Node| (node.meaning, nodes[node.head].meaning);
            nodes.iter().map(pair).collect()
        };
        let other = tree.paraphrase();
        let wanted =
            [(see, see), (last, see), (dog, see), (boy, dog), (words::THE, boy), (words::OF, boy)];
        assert_eq!(meanings(&other), wanted);
        assert_eq!(other.nodes()[1].entity, Some(EntityType::Person));

        let mut fixed = Tree::default();
        fixed.start(dog, Upos::Noun);
        fixed.attach(0, Relation::Determiner, words::A, Upos::Determiner);
        let subject = fixed.attach(0, Relation::Subject, boy, Upos::Noun);
        fixed.attach(subject, Relation::Determiner, words::ALL, Upos::Determiner);
        assert_eq!(fixed.paraphrase(), fixed);
    }
}
