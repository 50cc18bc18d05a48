//! Named entity recognition: which words name persons, places, organisations?
//!
//! Every word has a tag of its own, read at its first piece. Where a file has a character a line, the
//! characters are joined to words first, and predictions spread over the characters again.

mod read;
mod realign;
mod score;
mod spans;

use std::path::Path;

pub use self::read::{Sentence, Tagged};
pub use self::realign::{Realigned, realign, spread};
pub use self::score::{Found, NerScore, score};
pub use self::spans::{Repair, Span, Tag, spans, tags};

use crate::error::Result;
use crate::features::Features;
use crate::labelled::{Answer, Example, Labelled, Labels, Prepared, Score, pieces};

/// The share of lines that hold one character, from which on a Chinese file has a character a line.
const CHARACTERS: f64 = 0.9;

/// A file of entities, and how its tags are read.
pub struct Entities {
    tagged: Tagged,
    /// Words made of characters, for each sentence, where the file has these.
    realigned: Option<Vec<Realigned>>,
    repair: Repair,
}

impl Entities {
    /// Reads a file in a language. Chinese characters, one a line, are joined to words.
    pub fn read(path: &Path, language: &str, repair: Repair) -> Result<Self> {
        let tagged = Tagged::read(path)?;
        let realigned = (is_chinese(language) && is_of_characters(&tagged))
            .then(|| tagged.sentences.iter().map(realign).collect());
        Ok(Self { tagged, realigned, repair })
    }

    /// How many words were made of characters; none where the file has words.
    pub fn realigned(&self) -> Option<usize> {
        let words = |realigned: &Vec<Realigned>| {
            realigned.iter().map(|realigned| realigned.lengths.len()).sum()
        };
        self.realigned.as_ref().map(words)
    }

    /// The sentences as a model sees them.
    fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        let words = self.realigned.iter().flatten().map(|realigned| &realigned.sentence);
        let plain = self.realigned.is_none().then_some(&self.tagged.sentences);
        words.chain(plain.into_iter().flatten())
    }

    /// The tags of a sentence that answers stand for, made into valid spans.
    fn tags(&self, labels: &Labels, answers: &[Answer]) -> Vec<Tag> {
        let tag = |answer: &Answer| labels.name(answer.class).parse().unwrap_or(Tag::Outside);
        let read: Vec<Tag> = answers.iter().map(tag).collect();
        tags(&spans(&read, self.repair), read.len())
    }

    /// The tags of every line of the file that answers stand for.
    fn line_tags(&self, labels: &Labels, answers: &[Vec<Answer>]) -> Vec<Vec<Tag>> {
        let of = |(number, answers): (usize, &Vec<Answer>)| {
            let tags = self.tags(labels, answers);
            match &self.realigned {
                Some(realigned) => spread(&tags, &realigned[number].lengths),
                None => tags,
            }
        };
        answers.iter().enumerate().map(of).collect()
    }
}

fn is_chinese(language: &str) -> bool {
    matches!(language.split(['-', '_']).next(), Some("zh" | "cmn"))
}

fn is_of_characters(tagged: &Tagged) -> bool {
    let words = || tagged.sentences.iter().flat_map(|sentence| &sentence.words);
    let single = words().filter(|word| word.chars().count() == 1).count();
    single as f64 >= CHARACTERS * words().count() as f64
}

impl Labelled for Entities {
    fn path(&self) -> &Path {
        &self.tagged.path
    }

    fn items(&self) -> usize {
        self.tagged.sentences.len()
    }

    fn called(&self) -> &'static str {
        "sentences"
    }

    fn truncate(&mut self, items: usize) {
        self.tagged.sentences.truncate(items);
        if let Some(realigned) = &mut self.realigned {
            realigned.truncate(items);
        }
    }

    fn labels(&self) -> Vec<(String, usize)> {
        let of = |sentence: &Sentence| {
            let tags = sentence.tags.iter().map(Tag::to_string);
            tags.zip(sentence.lines.iter().copied()).collect::<Vec<_>>()
        };
        self.sentences().flat_map(of).collect()
    }

    fn prepare(&self, features: &dyn Features, language: usize, labels: &Labels) -> Prepared {
        let mut prepared = Prepared::default();
        for (item, sentence) in self.sentences().enumerate() {
            let (parts, cut) =
                pieces(features, language, sentence.words.iter().map(String::as_str));
            prepared.cut += usize::from(cut);
            prepared.split += usize::from(parts.len() > 1);
            for part in parts {
                let tags = &sentence.tags[part.words];
                let target = |tag: &Tag| Answer { class: labels.id(&tag.to_string()), head: 0 };
                let targets = tags.iter().map(target).collect();
                let example = Example { tokens: part.tokens, wanted: part.firsts, targets, item };
                prepared.examples.push(example);
            }
        }
        prepared
    }

    fn score(&self, labels: &Labels, answers: &[Vec<Answer>]) -> Score {
        let given: Vec<Vec<Tag>> = answers.iter().map(|item| self.tags(labels, item)).collect();
        let gold = self.sentences().map(|sentence| sentence.tags.as_slice());
        let mut result = score(gold.zip(given.iter().map(Vec::as_slice)), self.repair);
        if self.realigned.is_some() {
            let given = self.line_tags(labels, answers);
            let gold = self.tagged.sentences.iter().map(|sentence| sentence.tags.as_slice());
            let characters = score(gold.zip(given.iter().map(Vec::as_slice)), self.repair);
            result.characters = Some(characters.micro);
        }
        Score::Ner(result)
    }

    fn render(&self, labels: &Labels, answers: &[Vec<Answer>]) -> String {
        let tags = self.line_tags(labels, answers);
        self.tagged.render(tags.iter().map(Vec::as_slice))
    }
}
