//! Treebanks in CoNLL-U and named entities as `word⇥tag`, both over sentences of a language's own.

use std::fmt::Write as _;

use super::{FileRecord, WorldWriter};
use crate::error::Error;
use crate::grammar::{Relation, Tree, Upos};
use crate::language::Language;

impl WorldWriter<'_> {
    /// `ud/LANG_world-ud-SPLIT.conllu`, each split of each language a sample of its own.
    pub(super) fn treebanks(&mut self, language: &Language) -> Result<(), Error> {
        let sizes = self.plan.config().treebank;
        for (split, size) in [("train", sizes.train), ("dev", sizes.dev), ("test", sizes.test)] {
            let path = format!("ud/{}_world-ud-{split}.conllu", language.code());
            let mut number = 0;
            self.labelled("treebank", path, split, size, language, |tree, text| {
                number += 1;
                conllu(language, tree, &format!("{}-{split}-{number}", language.code()), text);
            })?;
        }
        Ok(())
    }

    /// `ner/panx-SPLIT-LANG.tsv`.
    pub(super) fn entities(&mut self, language: &Language) -> Result<(), Error> {
        for (split, size) in self.plan.config().ner.named() {
            let path = format!("ner/panx-{split}-{}.tsv", language.code());
            self.labelled("ner", path, split, size, language, |tree, text| {
                tagged(language, tree, text);
            })?;
        }
        Ok(())
    }

    fn labelled(
        &mut self,
        kind: &'static str,
        path: String,
        split: &'static str,
        size: usize,
        language: &Language,
        mut label: impl FnMut(&Tree, &mut String),
    ) -> Result<(), Error> {
        let record = FileRecord::of(kind, path, &[language.code()], Some(split));
        let purpose = format!("{kind}/{}/{split}", language.code());
        let documents = self.documents(0, &purpose);
        let mut sink = self.folder.file(record)?;
        documents.each(size, <[Tree]>::to_vec, |trees, count| {
            let mut text = String::new();
            trees.iter().for_each(|tree| label(tree, &mut text));
            self.progress.add(count, kind);
            sink.write(&text, count)
        })?;
        self.folder.close(sink)
    }
}

pub(super) fn conllu(language: &Language, tree: &Tree, id: &str, text: &mut String) {
    let order = language.linearize(tree);
    let nodes = tree.nodes();
    let mut place = vec![0; nodes.len()];
    for (at, &node) in (1..).zip(&order) {
        place[node] = at;
    }
    let _ = writeln!(text, "# sent_id = {id}\n# text = {}", language.realize(tree));
    for (at, &index) in order.iter().enumerate() {
        let node = &nodes[index];
        let head = if node.relation == Relation::Root { 0 } else { place[node.head] };
        let glued = order.get(at + 1).is_some_and(|&n| nodes[n].upos == Upos::Punctuation);
        let _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t_\t{}\t{head}\t{}\t_\t{}",
            at + 1,
            language.form(tree, index),
            language.lemma(node.meaning),
            node.upos.tag(),
            language.features(tree, index),
            node.relation.label(),
            if glued { "SpaceAfter=No" } else { "_" },
        );
    }
    text.push('\n');
}

/// One sentence, a word and its tag a line.
fn tagged(language: &Language, tree: &Tree, text: &mut String) {
    for index in language.linearize(tree) {
        let node = &tree.nodes()[index];
        text.push_str(language.form(tree, index));
        let _ = match node.entity {
            None => writeln!(text, "\tO"),
            Some(kind) if node.relation == Relation::Flat => writeln!(text, "\tI-{}", kind.tag()),
            Some(kind) => writeln!(text, "\tB-{}", kind.tag()),
        };
    }
    text.push('\n');
}
