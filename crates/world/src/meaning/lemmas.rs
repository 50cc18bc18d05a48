//! What people call the meanings of an invented world: an English lemma each, so that a sentence can be read by its gloss.
//!
//! Names are given from lists, and nothing else depends on them: the same world has the same words, sentences and seeds whatever its
//! meanings are called. A world with more meanings than a list has lemmas numbers those that come after (`fox2`), and classes without a list (`kind.1`).

use std::collections::HashMap;

/// A line for each kind of word, `kind: lemma lemma …`.
const LISTS: &str = include_str!("lemmas.txt");

/// The lemmas of each kind, and how many of them are taken.
#[derive(Debug)]
pub(super) struct Lemmas {
    lists: HashMap<&'static str, Vec<&'static str>>,
    /// The classes of nouns with animate members, and the others, in order; those that are taken go.
    classes: [Vec<&'static str>; 2],
    taken: HashMap<String, usize>,
}

impl Lemmas {
    pub(super) fn new() -> Self {
        let lines = LISTS.lines().filter(|line| !line.starts_with('#'));
        let split = |line: &'static str| line.split_once(": ").expect("a kind and its lemmas");
        let lists: Vec<_> = lines.map(split).collect();
        let of = |mark: &str| {
            let classes = lists.iter().map(|(kind, _)| *kind);
            classes.filter(|kind| kind.split(' ').next() == Some(mark)).rev().collect()
        };
        let classes = [of("animate"), of("inanimate")];
        let words =
            |&(kind, words): &(&'static str, &'static str)| (kind, words.split(' ').collect());
        Self { lists: lists.iter().map(words).collect(), classes, taken: HashMap::new() }
    }

    pub(super) fn next(&mut self, kind: &str) -> String {
        let taken = self.taken.entry(kind.to_owned()).or_default();
        *taken += 1;
        let Some(list) = self.lists.get(kind) else { return format!("{kind}.{taken}") };
        let (round, at) = ((*taken - 1) / list.len(), (*taken - 1) % list.len());
        if round == 0 { list[at].to_owned() } else { format!("{}{}", list[at], round + 1) }
    }

    pub(super) fn superclass(&mut self, animate: bool) -> String {
        self.next(if animate { "super.animate" } else { "super" })
    }

    /// A class of nouns: its list, of the superclass if there is one left, and its name.
    pub(super) fn class(&mut self, superclass: &str, animate: bool) -> (String, String) {
        let left = &mut self.classes[usize::from(!animate)];
        let of_superclass = |kind: &&str| kind.split(' ').nth(1) == Some(superclass);
        let at = left.iter().rposition(of_superclass).or(left.len().checked_sub(1));
        match at.map(|at| left.remove(at)) {
            Some(kind) => (kind.to_owned(), kind.rsplit(' ').next().unwrap_or(kind).to_owned()),
            None => {
                let name = self.next("kind");
                (name.clone(), name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_lemma_stands_twice() {
        let lemmas = Lemmas::new();
        let classes = lemmas.classes.iter().flatten().map(|kind| kind.rsplit(' ').next().unwrap());
        let all: Vec<&str> = lemmas.lists.values().flatten().copied().chain(classes).collect();
        let different: BTreeSet<&str> = all.iter().copied().collect();
        let twice = |lemma: &&&str| all.iter().filter(|other| other == lemma).count() > 1;
        assert_eq!(
            different.len(),
            all.len(),
            "{:?}",
            different.iter().filter(twice).collect::<Vec<_>>()
        );
    }
}
