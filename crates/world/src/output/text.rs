//! Plain corpora: `text/LANG.DOMAIN.txt`.

use std::collections::HashSet;

use super::documents::HeldOutSentences;
use super::{FileRecord, WorldWriter};
use crate::config::CorpusLayout;
use crate::error::Error;
use crate::grammar::Tree;
use crate::language::Language;

impl WorldWriter<'_> {
    /// The corpora of one language, its sentences divided evenly among its domains.
    pub(super) fn text(
        &mut self,
        language: &Language,
        held_out: &HashSet<String>,
    ) -> Result<(), Error> {
        let plan = language.plan();
        let layout = self.plan.config().layout;
        let parts = plan.domains.len();
        for (part, &domain) in plan.domains.iter().enumerate() {
            let sentences = plan.sentences / parts + usize::from(part < plan.sentences % parts);
            let name = self.world.domains[domain].style.name.clone();
            let purpose = format!("text/{}/{name}", plan.code);
            let mut documents = self.documents(domain, &purpose);
            if self.plan.config().held_out {
                documents.held_out = Some(HeldOutSentences { language, sentences: held_out });
            }
            let path = format!("text/{}.{name}.txt", plan.code);
            let record = FileRecord::of("text", path, &[&plan.code], None);
            let mut sink = self.folder.file(FileRecord { domain: Some(name), ..record })?;
            let mut words = 0;
            let make = |trees: &[Tree]| {
                let text = lay_out(language, trees, layout);
                let words = text.split_ascii_whitespace().count();
                (text, words)
            };
            documents.each(sentences, make, |(text, more), count| {
                words += more;
                self.progress.add(count, &plan.code);
                sink.write(&text, count)
            })?;
            sink.words(words);
            self.folder.close(sink)?;
        }
        Ok(())
    }
}

fn lay_out(language: &Language, trees: &[Tree], layout: CorpusLayout) -> String {
    let mut text = String::with_capacity(trees.len() * 64);
    for (i, tree) in trees.iter().enumerate() {
        if i > 0 && layout == CorpusLayout::Paragraphs {
            text.push(' ');
        }
        language.realize_into(tree, &mut text);
        if layout == CorpusLayout::Sentences {
            text.push('\n');
        }
    }
    if layout == CorpusLayout::Paragraphs {
        text.push('\n');
    }
    text
}
