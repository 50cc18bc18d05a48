//! The tags of a file of named entities.

use std::path::Path;
use std::str::FromStr;

use super::spans::{BioTag, Repair, spans, tags};
use crate::error::Result;
use crate::tagged::{TagFormat, TaggedFile};

/// Reads a file of BIO tags, in any of the layouts of [`TaggedFile`]. The tags of CoNLL-2003 (IOB1) become
/// BIO.
pub fn read_entities(path: &Path) -> Result<TaggedFile<BioTag>> {
    let format = TagFormat { parse: BioTag::from_str, remedy: "write BIO tags, such as B-PER" };
    let mut file = TaggedFile::read(path, &format)?;
    if file.is_spaced() && file.sentences.iter().all(|sentence| is_iob1(&sentence.tags)) {
        for sentence in &mut file.sentences {
            let entities = spans(&sentence.tags, Repair::Conventional);
            sentence.tags = tags(&entities, sentence.words.len());
        }
    }
    Ok(file)
}

/// Whether tags are IOB1, as CoNLL-2003 has them: an entity begins with B only where it follows another of
/// its type. Such tags are valid, and so nothing is left for a rule of repair.
fn is_iob1(tags: &[BioTag]) -> bool {
    tags.iter().enumerate().all(|(at, tag)| match tag {
        BioTag::Begin(kind) => {
            let before = at.checked_sub(1).map(|before| &tags[before]);
            matches!(before, Some(BioTag::Begin(other) | BioTag::Inside(other)) if other == kind)
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(text: &str) -> Result<TaggedFile<BioTag>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("words.tsv");
        fs::write(&path, text).unwrap();
        read_entities(&path)
    }

    fn again(tagged: &TaggedFile<BioTag>) -> String {
        tagged.render(tagged.sentences.iter().map(|sentence| sentence.tags.as_slice()))
    }

    #[test]
    fn layouts_are_recognised() {
        let plain = "Ada\tB-PER\nen:x\tO\n\nHi\tO\n\n";
        let prefixed = "en:Ada\tB-PER\nen:::\tO\n\nen:Hi\tO\n\n";
        for text in [plain, prefixed] {
            let tagged = read(text).unwrap();
            assert_eq!(tagged.sentences.len(), 2);
            assert_eq!(tagged.sentences[0].words[0], "Ada");
            assert_eq!(again(&tagged), text);
        }
        assert_eq!(read(prefixed).unwrap().sentences[0].words[1], "::");
        assert_eq!(read(prefixed).unwrap().sentences[1].lines, [4]);
    }

    #[test]
    fn columns_of_conll_become_bio() {
        let text = "-DOCSTART- -X- -X- O\n\nEU NNP B-NP I-ORG\nAda NNP I-NP I-PER\nBob NNP I-NP \
                    B-PER\nsaid VBD O O\n\n";
        let tagged = read(text).unwrap();
        let tags: Vec<String> = tagged.sentences[0].tags.iter().map(BioTag::to_string).collect();
        assert_eq!(tags, ["B-ORG", "B-PER", "B-PER", "O"]);
        assert_eq!(again(&tagged), "EU B-ORG\nAda B-PER\nBob B-PER\nsaid O\n\n");
    }

    #[test]
    fn bio_tags_in_columns_are_left_to_the_rule_of_repair() {
        let text = "EU B-ORG\nAda I-PER\nsaid O\n\n";
        assert_eq!(again(&read(text).unwrap()), text);
    }

    #[test]
    fn bad_lines_are_named() {
        let refuses = |text: &str, reason: &str| {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        };
        refuses("a\tO\nb\tX-PER\n", "words.tsv:2: `X-PER` is no tag");
        refuses("a\tO\nb\n", "words.tsv:2: 1 columns");
        refuses("a\tO\tO\n", "words.tsv:1: 3 columns");
        refuses("a\tO\n\tO\n", "words.tsv:2: the word is empty");
        refuses("en:a\tO\nen:\tO\n", "words.tsv:2: the word is empty");
        refuses("\n", "holds nothing");
    }

    #[test]
    fn files_are_compared_word_by_word() {
        let gold = read("a\tO\nb\tO\n\nc\tO\n").unwrap();
        let refused = |text| gold.check_same(&read(text).unwrap()).unwrap_err().to_string();
        assert!(refused("a\tO\nx\tO\n\nc\tO\n").contains(":2: `x` where the gold file has `b`"));
        assert!(refused("a\tO\nb\tO\n").contains("1 sentences, but the gold file has 2"));
        assert!(refused("a\tO\n\nc\tO\n").contains("a sentence of 1 words"));
    }
}
