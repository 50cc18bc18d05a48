//! Chinese entities, a character a line, brought onto words: models of words want words.

use super::read::Sentence;
use super::spans::Tag;

/// The words of a sentence of characters, and what each is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Realigned {
    /// The words with their tags.
    pub sentence: Sentence,
    /// How many characters each word has.
    pub lengths: Vec<usize>,
}

/// Joins characters to words as the segmenter cuts them. A word has the tag of its first character
/// that is of an entity.
pub fn realign(characters: &Sentence) -> Realigned {
    let text = characters.words.concat();
    let cuts: Vec<usize> = text::chinese_words(&text)
        .into_iter()
        .scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        })
        .collect();
    let mut words = Sentence { words: vec![], tags: vec![], lines: vec![] };
    let mut lengths = Vec::new();
    let (mut start, mut end) = (0, 0);
    for (at, character) in characters.words.iter().enumerate() {
        end += character.len();
        // A cut within a line of the file is no place to end a word.
        if cuts.binary_search(&end).is_err() {
            continue;
        }
        let range = start..at + 1;
        words.words.push(characters.words[range.clone()].concat());
        words.tags.push(tag(&characters.tags[range.clone()]));
        words.lines.push(characters.lines[start]);
        lengths.push(range.len());
        start = at + 1;
    }
    Realigned { sentence: words, lengths }
}

fn tag(characters: &[Tag]) -> Tag {
    characters.iter().find(|tag| **tag != Tag::Outside).cloned().unwrap_or(Tag::Outside)
}

/// The tags of the characters, given those of the words.
pub fn spread(tags: &[Tag], lengths: &[usize]) -> Vec<Tag> {
    let mut spread = Vec::new();
    for (tag, &length) in tags.iter().zip(lengths) {
        let further = match tag {
            Tag::Begin(kind) => Tag::Inside(kind.clone()),
            other => other.clone(),
        };
        spread.push(tag.clone());
        spread.extend(std::iter::repeat_n(further, length - 1));
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_become_words_and_come_back() {
        let text = "我来到北京清华大学2008";
        let units: Vec<String> =
            text.chars().take(9).map(String::from).chain(["2008".to_owned()]).collect();
        let tags = "O O O B-LOC I-LOC B-ORG I-ORG I-ORG I-ORG O";
        let tags: Vec<Tag> = tags.split(' ').map(|tag| tag.parse().unwrap()).collect();
        let lines = (1..=10).collect();
        let characters = Sentence { words: units, tags: tags.clone(), lines };
        let Realigned { sentence, lengths } = realign(&characters);
        assert_eq!(sentence.words, ["我", "来到", "北京", "清华大学", "2008"]);
        assert_eq!(sentence.lines, [1, 2, 4, 6, 10]);
        let found: Vec<String> = sentence.tags.iter().map(Tag::to_string).collect();
        assert_eq!(found, ["O", "O", "B-LOC", "B-ORG", "O"]);
        assert_eq!(spread(&sentence.tags, &lengths), tags);
    }
}
