//! Labelled data in an altered language, so that transfer to it can be scored: the words are altered as running text is
//! (`text::LanguageAlterer`), and what is annotated follows them.

use std::fmt::Display;
use std::path::Path;

use terms::Task;
use text::{AlteredOrder, LanguageAlterer, Preparer};

use crate::conllu::Treebank;
use crate::error::{Error, Result};
use crate::labelled_text::{LabelledTexts, TextColumns};
use crate::ner::{BioTag, EntitySpan, Repair, read_entities, spans, tags};
use crate::pos::{is_conllu, read_tagged};
use crate::tagged::TaggedFile;

/// A labelled file in the altered language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredLabels {
    /// The file, in the format that it was in.
    pub text: String,
    /// Sentences in it.
    pub sentences: usize,
    /// Words in them.
    pub words: usize,
}

/// Alters a labelled file of a task. Sentences (`nli`, `classify`) are tokenized by the preparer first; where every word is
/// annotated (`ner`, `pos`, `parse`), the file's words stay the words.
///
/// # Errors
/// Where the file is none of the task, or entities would be torn apart by permuting their words.
pub fn alter_labelled(
    task: Task,
    path: &Path,
    preparer: &Preparer,
    alterer: &LanguageAlterer,
) -> Result<AlteredLabels> {
    let writer = AlteredWriter { preparer, alterer };
    match task {
        Task::Nli => Ok(writer.texts(LabelledTexts::read(path, TextColumns::Pair)?)),
        Task::Classify => Ok(writer.texts(LabelledTexts::read(path, TextColumns::Sentence)?)),
        Task::Ner => writer.entities(read_entities(path)?),
        Task::Parse => Ok(writer.treebank(&Treebank::read(path)?)),
        Task::Pos if is_conllu(path)? => Ok(writer.treebank(&Treebank::read_words(path)?)),
        Task::Pos => Ok(writer.tagged(read_tagged(path)?, |tags, places| {
            places.iter().map(|&place| tags[place].clone()).collect()
        })),
    }
}

struct AlteredWriter<'a> {
    preparer: &'a Preparer,
    alterer: &'a LanguageAlterer,
}

impl AlteredWriter<'_> {
    /// A sentence as running text of the altered language has it, and how many words it has.
    fn sentence(&self, sentence: &str, number: usize) -> (String, usize) {
        let mut prepared = String::new();
        self.preparer.prepare(sentence, &mut prepared);
        let altered = self.alterer.sentence(&prepared, number as u64);
        (altered, prepared.split_whitespace().count())
    }

    /// The words of a sentence, each one word, in the order that they had.
    fn words(&self, words: &[&str]) -> Vec<String> {
        let mut before: Option<String> = None;
        let mut altered = Vec::with_capacity(words.len());
        for word in words {
            // What the preparer takes for several words is annotated as one, and stays one.
            let mut prepared = String::new();
            self.preparer.prepare(word, &mut prepared);
            prepared.retain(|c| !c.is_whitespace());
            let plain = if prepared.is_empty() { (*word).to_owned() } else { prepared };
            let mut form = String::new();
            self.alterer.push_word(&plain, before.as_deref(), &mut form);
            altered.push(form);
            before = Some(plain);
        }
        altered
    }

    fn texts(&self, mut file: LabelledTexts) -> AlteredLabels {
        let (mut sentences, mut words) = (0, 0);
        for text in file.rows.iter_mut().flat_map(|row| &mut row.texts) {
            let (altered, count) = self.sentence(text, sentences);
            *text = altered;
            (sentences, words) = (sentences + 1, words + count);
        }
        let text = file.render(file.rows.iter().map(|row| row.label.as_str()));
        AlteredLabels { text, sentences, words }
    }

    fn entities(&self, file: TaggedFile<BioTag>) -> Result<AlteredLabels> {
        if let AlteredOrder::Permuted(_) = self.alterer.order() {
            let reason = "permuted words tear entities apart, of which each is a run of words";
            return Err(Error::request(reason, "keep or invert the order of words for NER"));
        }
        // An entity is a run of words in either order, and begins with its first word.
        Ok(self.tagged(file, |own, places| {
            let inverted = places.first().is_some_and(|&first| first > 0);
            let count = places.len();
            let place = |span: EntitySpan| match inverted {
                true => EntitySpan { start: count - span.end, end: count - span.start, ..span },
                false => span,
            };
            let spans: Vec<_> = spans(own, Repair::Conventional).into_iter().map(place).collect();
            tags(&spans, count)
        }))
    }

    /// Tagged words; `follow` gives the tags of words in their new places.
    fn tagged<T: Display>(
        &self,
        mut file: TaggedFile<T>,
        follow: impl Fn(&[T], &[usize]) -> Vec<T>,
    ) -> AlteredLabels {
        let mut all = Vec::with_capacity(file.sentences.len());
        for (number, sentence) in file.sentences.iter_mut().enumerate() {
            let words: Vec<&str> = sentence.words.iter().map(String::as_str).collect();
            let altered = self.words(&words);
            let places = self.alterer.places(words.len(), number as u64);
            sentence.words = places.iter().map(|&place| altered[place].clone()).collect();
            all.push(follow(&sentence.tags, &places));
        }
        let words = all.iter().map(Vec::len).sum();
        let text = file.render(all.iter().map(Vec::as_slice));
        AlteredLabels { text, sentences: all.len(), words }
    }

    fn treebank(&self, bank: &Treebank) -> AlteredLabels {
        let forms: Vec<Vec<String>> = bank
            .sentences
            .iter()
            .map(|sentence| {
                let words: Vec<&str> =
                    sentence.words.iter().map(|word| word.form.as_str()).collect();
                self.words(&words)
            })
            .collect();
        let text = bank.render_altered(
            |sentence| self.alterer.places(forms[sentence].len(), sentence as u64),
            |sentence, word| forms[sentence][word].clone(),
        );
        AlteredLabels { text, sentences: forms.len(), words: forms.iter().map(Vec::len).sum() }
    }
}

#[cfg(test)]
mod tests {
    use text::{Alteration, Preparation};

    use super::*;

    fn altered(task: Task, name: &str, text: &str, order: AlteredOrder) -> Result<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let alteration = Alteration { shifted_script: false, order, endings: 0, seed: 1 };
        let alterer = LanguageAlterer::new(&alteration)?;
        let preparer = Preparer::new("en", Preparation::for_language("en"), None)?;
        Ok(alter_labelled(task, &path, &preparer, &alterer)?.text)
    }

    const INVERTED: AlteredOrder = AlteredOrder::Inverted;

    #[test]
    fn heads_follow_their_words() {
        let bank = "# sent_id = 1\n# text = Dogs don't bark\n1\tDogs\tdog\tNOUN\t_\t_\t4\tnsubj\t4:nsubj\t_\n\
                    2-3\tdon't\t_\t_\t_\t_\t_\t_\t_\t_\n2\tdo\tdo\tAUX\t_\t_\t4\taux\t_\t_\n\
                    3\tn't\tnot\tPART\t_\t_\t4\tadvmod\t_\tSpaceAfter=No\n4\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n";
        let expected = "# sent_id = 1\n# text = bark n't do Dogs\n1\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_\n\
                        2\tn't\tn't\tPART\t_\t_\t1\tadvmod\t_\t_\n3\tdo\tdo\tAUX\t_\t_\t1\taux\t_\t_\n\
                        4\tDogs\tDogs\tNOUN\t_\t_\t1\tnsubj\t_\t_\n\n";
        assert_eq!(altered(Task::Parse, "a.conllu", bank, INVERTED).unwrap(), expected);
        // A permuted treebank is one still: what reads treebanks refuses anything else.
        let permuted = altered(Task::Parse, "a.conllu", bank, AlteredOrder::Permuted(1.0)).unwrap();
        assert!(altered(Task::Parse, "b.conllu", &permuted, INVERTED).is_ok());
    }

    #[test]
    fn entities_stay_whole_when_inverted_and_are_not_permuted() {
        let text = "Anna\tB-PER\nNew\tB-LOC\nYork\tI-LOC\nCity\tI-LOC\n.\tO\n";
        let inverted = altered(Task::Ner, "a.tsv", text, INVERTED).unwrap();
        assert_eq!(inverted, ".\tO\nCity\tB-LOC\nYork\tI-LOC\nNew\tI-LOC\nAnna\tB-PER\n\n");
        let refused = altered(Task::Ner, "a.tsv", text, AlteredOrder::Permuted(0.5)).unwrap_err();
        assert!(refused.to_string().contains("tear entities apart"), "{refused}");
    }

    #[test]
    fn sentences_are_tokenized_and_labels_stay() {
        let pair = "He's here.\tHe left.\tcontradiction\n";
        let nli = altered(Task::Nli, "a.tsv", pair, INVERTED).unwrap();
        assert_eq!(nli, ". here 's He\t. left He\tcontradiction\n");
        let classify = altered(Task::Classify, "a.tsv", "Good film\tpositive\n", INVERTED).unwrap();
        assert_eq!(classify, "film Good\tpositive\n");
        let pos = altered(Task::Pos, "a.tsv", "the\tDET\ncat\tNOUN\n", INVERTED).unwrap();
        assert_eq!(pos, "cat\tNOUN\nthe\tDET\n\n");
    }

    /// Every word is altered by itself, so that a tree of the altered language is one of the original.
    #[test]
    fn real_treebanks_are_altered() {
        let Some(data) = terms::tests::real_data() else { return };
        let path = Path::new(&data).join("ud/en_ewt-ud-test.conllu");
        let text = std::fs::read_to_string(&path).unwrap();
        let once = altered(Task::Parse, "a.conllu", &text, INVERTED).unwrap();
        let twice = altered(Task::Parse, "b.conllu", &once, INVERTED).unwrap();
        let thrice = altered(Task::Parse, "c.conllu", &twice, INVERTED).unwrap();
        assert_eq!(once, thrice);
        assert_ne!(once, twice);
    }
}
