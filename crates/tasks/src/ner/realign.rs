//! Chinese entities with one character on each line, as WikiAnn has them, brought onto the words of a
//! segmenter, and predictions spread over the characters again.

use super::spans::BioTag;
use crate::tagged::TaggedSentence;

/// The words of a sentence of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SegmentedSentence {
    pub(super) sentence: TaggedSentence<BioTag>,
    /// How many characters each word has.
    pub(super) lengths: Vec<usize>,
}

/// Joins characters into words as the segmenter cuts them. A word has the tag of its first character
/// that is in an entity.
pub(super) fn realign(characters: &TaggedSentence<BioTag>) -> SegmentedSentence {
    let text = characters.words.concat();
    let cuts: Vec<usize> = text::chinese_words(&text)
        .into_iter()
        .scan(0, |end, word| {
            *end += word.len();
            Some(*end)
        })
        .collect();
    let mut words = TaggedSentence::new();
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
    SegmentedSentence { sentence: words, lengths }
}

fn tag(characters: &[BioTag]) -> BioTag {
    characters.iter().find(|tag| **tag != BioTag::Outside).cloned().unwrap_or(BioTag::Outside)
}

/// The tags of the characters, given those of the words.
pub(super) fn spread(tags: &[BioTag], lengths: &[usize]) -> Vec<BioTag> {
    let mut spread = Vec::new();
    for (tag, &length) in tags.iter().zip(lengths) {
        let further = match tag {
            BioTag::Begin(kind) => BioTag::Inside(kind.clone()),
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
        let tags: Vec<BioTag> = tags.split(' ').map(|tag| tag.parse().unwrap()).collect();
        let lines = (1..=10).collect();
        let characters = TaggedSentence { words: units, tags: tags.clone(), lines };
        let SegmentedSentence { sentence, lengths } = realign(&characters);
        assert_eq!(sentence.words, ["我", "来到", "北京", "清华大学", "2008"]);
        assert_eq!(sentence.lines, [1, 2, 4, 6, 10]);
        let names: Vec<String> = sentence.tags.iter().map(BioTag::to_string).collect();
        assert_eq!(names, ["O", "O", "B-LOC", "B-ORG", "O"]);
        assert_eq!(spread(&sentence.tags, &lengths), tags);
    }
}
