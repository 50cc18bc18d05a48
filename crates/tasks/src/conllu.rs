//! Treebanks in CoNLL-U (universaldependencies.org): read strictly, and written back byte for byte but for
//! what was predicted.
//!
//! Words (lines numbered 1, 2, …) carry the tree. Multiword tokens (`3-4`), empty nodes (`5.1`) and
//! comments are not words: they are kept where they stand and written back as they were.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::NumberedLines;

pub(crate) const COLUMNS: usize = 10;
const ID: usize = 0;
const FORM: usize = 1;
const LEMMA: usize = 2;
pub(crate) const UPOS: usize = 3;
pub(crate) const HEAD: usize = 6;
pub(crate) const DEPREL: usize = 7;
const DEPS: usize = 8;
const MISC: usize = 9;

/// A treebank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treebank {
    /// Where it lies.
    pub path: PathBuf,
    /// Its sentences.
    pub sentences: Vec<TreebankSentence>,
}

/// Whether the heads of a file must form trees.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trees {
    Required,
    Ignored,
}

/// A sentence with its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreebankSentence {
    /// The words, in their order.
    pub words: Vec<TreebankWord>,
    lines: Vec<String>,
}

/// A word and its place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreebankWord {
    /// The word.
    pub form: String,
    /// Its universal part of speech.
    pub upos: String,
    /// The number of its head, counted from 1; 0 for the root.
    pub head: u32,
    /// Its relation to the head, in full (`nmod:poss`).
    pub relation: String,
    /// Its line in the file.
    pub line: usize,
    /// The same among the sentence's lines.
    at: usize,
}

/// The relation without what a language adds to it: `nmod` of `nmod:poss`.
pub fn universal(relation: &str) -> &str {
    relation.split(':').next().unwrap_or(relation)
}

impl Treebank {
    /// Reads a file; anything that is no tree is refused by line.
    pub fn read(path: &Path) -> Result<Self> {
        Self::read_with(path, Trees::Required)
    }

    /// Reads a file whose trees do not matter: heads may be missing or form no tree.
    pub fn read_words(path: &Path) -> Result<Self> {
        Self::read_with(path, Trees::Ignored)
    }

    fn read_with(path: &Path, trees: Trees) -> Result<Self> {
        let lines = NumberedLines::read(path)?;
        let parse = |block: Vec<_>| TreebankSentence::parse(&lines, &block, trees);
        let mut sentences = lines.blocks().map(parse).collect::<Result<Vec<_>>>()?;
        // Comments by themselves are no sentence.
        sentences.retain(|sentence| !sentence.words.is_empty());
        if sentences.is_empty() {
            return Err(Error::file(path, "holds no word", "name a CoNLL-U file"));
        }
        Ok(Self { path: path.to_owned(), sentences })
    }

    /// Whether another file holds the same words; if not, where it does not.
    pub fn check_same(&self, predicted: &Treebank) -> Result<()> {
        let path = &predicted.path;
        if self.sentences.len() != predicted.sentences.len() {
            let (predicted, gold) = (predicted.sentences.len(), self.sentences.len());
            let reason = format!("{predicted} sentences, but the gold file has {gold}");
            return Err(Error::file(path, reason, "predict every sentence of the gold file"));
        }
        for (gold, predicted) in self.sentences.iter().zip(&predicted.sentences) {
            let mut words = gold.words.iter().zip(&predicted.words);
            if let Some((gold, predicted)) = words.find(|(a, b)| a.form != b.form) {
                let reason =
                    format!("`{}` where the gold file has `{}`", predicted.form, gold.form);
                return Err(Error::line(path, predicted.line, reason, "predict the same words"));
            }
            if gold.words.len() != predicted.words.len() {
                let line = predicted.words.last().map_or(1, |word| word.line);
                let (here, there) = (predicted.words.len(), gold.words.len());
                let reason = format!("a sentence of {here} words with {there} in the gold file");
                return Err(Error::line(path, line, reason, "predict the same words"));
            }
        }
        Ok(())
    }

    /// The file again with other words in another order. `places` gives for each sentence the places of its words in
    /// their new order, and `form` a word as it is to be written; heads follow their words. Multiword tokens and empty
    /// nodes stand for a stretch of the old order and are left out, enhanced dependencies too.
    pub(crate) fn render_altered(
        &self,
        places: impl Fn(usize) -> Vec<usize>,
        form: impl Fn(usize, usize) -> String,
    ) -> String {
        let mut text = String::new();
        for (number, sentence) in self.sentences.iter().enumerate() {
            let comment = |line: &&String| line.starts_with('#') && !line.starts_with("# text");
            for line in sentence.lines.iter().filter(comment) {
                text += &format!("{line}\n");
            }
            let places = places(number);
            let forms: Vec<String> = (0..places.len()).map(|word| form(number, word)).collect();
            let written: Vec<&str> = places.iter().map(|&place| forms[place].as_str()).collect();
            text += &format!("# text = {}\n", written.join(" "));
            let mut ids = vec![0; places.len()];
            places.iter().zip(1..).for_each(|(&place, id)| ids[place] = id);
            for &place in &places {
                let word = &sentence.words[place];
                let id = |word: usize| Cow::from(ids[word].to_string());
                let head = (word.head as usize).checked_sub(1).filter(|&head| head < ids.len());
                let form = || Cow::from(forms[place].as_str());
                let empty = || Cow::from("_");
                let columns: Vec<&str> = sentence.lines[word.at].split('\t').collect();
                let head = head.map_or(Cow::from(columns[HEAD]), id);
                let lemma = if columns[LEMMA] == "_" { empty() } else { form() };
                let replaced = [
                    (ID, id(place)),
                    (FORM, form()),
                    (LEMMA, lemma),
                    (HEAD, head),
                    (DEPS, empty()),
                    (MISC, empty()),
                ];
                push_replaced(&mut text, &sentence.lines[word.at], &replaced);
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }

    /// The file again; `replace` gives for each word of each sentence the columns that change.
    pub fn render<'a, const N: usize>(
        &self,
        replace: impl Fn(usize, usize) -> [(usize, Cow<'a, str>); N],
    ) -> String {
        let mut text = String::new();
        for (number, sentence) in self.sentences.iter().enumerate() {
            let mut words = sentence.words.iter().enumerate().peekable();
            for (at, line) in sentence.lines.iter().enumerate() {
                match words.next_if(|(_, word)| word.at == at) {
                    None => text.push_str(line),
                    Some((word, _)) => {
                        push_replaced(&mut text, line, &replace(number, word));
                    }
                }
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }
}

/// Appends a word's line with other values in some columns.
fn push_replaced(text: &mut String, line: &str, replaced: &[(usize, Cow<'_, str>)]) {
    for (column, value) in line.split('\t').enumerate() {
        if column > 0 {
            text.push('\t');
        }
        let other = replaced.iter().find(|(number, _)| *number == column);
        text.push_str(other.map_or(value, |(_, other)| other));
    }
}

impl TreebankSentence {
    fn parse(file: &NumberedLines, block: &[(usize, &str)], trees: Trees) -> Result<Self> {
        let mut words = Vec::new();
        for (at, &(line, text)) in block.iter().enumerate() {
            if !text.starts_with('#') {
                words.extend(word(file, (line, text), (words.len(), at), trees)?);
            }
        }
        let lines = block.iter().map(|(_, text)| (*text).to_owned()).collect();
        if trees == Trees::Required {
            check_tree(file, &words)?;
        }
        Ok(Self { words, lines })
    }
}

/// A line as a word; none where it is a multiword token or an empty node.
///
/// `before` words came before it, and it is line `at` of its sentence.
fn word(
    file: &NumberedLines,
    (line, text): (usize, &str),
    (before, at): (usize, usize),
    trees: Trees,
) -> Result<Option<TreebankWord>> {
    let columns: Vec<&str> = text.split('\t').collect();
    if columns.len() != COLUMNS {
        let reason = format!("{} columns, not {COLUMNS}", columns.len());
        return Err(file.wrong(line, reason, "separate the ten columns of CoNLL-U by tabs"));
    }
    let number = |text: &str| text.parse::<usize>().ok();
    let id = columns[0];
    if let Some((first, last)) = id.split_once('-') {
        return match (number(first), number(last)) {
            (Some(first), Some(last)) if first == before + 1 && last >= first => Ok(None),
            _ => {
                let reason = format!("`{id}` is no range of words that begins with the next");
                Err(file.wrong(line, reason, "put a multiword token right before its words"))
            }
        };
    }
    if let Some((word, empty)) = id.split_once('.') {
        return match (number(word), number(empty)) {
            (Some(word), Some(_)) if word == before => Ok(None),
            _ => {
                let reason = format!("`{id}` is no empty node after word {before}");
                Err(file.wrong(line, reason, "number an empty node after the word it follows"))
            }
        };
    }
    if number(id) != Some(before + 1) {
        let reason = format!("the word is numbered `{id}`, not {}", before + 1);
        return Err(file.wrong(line, reason, "number the words of a sentence from 1"));
    }
    let head = columns[HEAD];
    let head = match (head.parse(), trees) {
        (Ok(head), _) => head,
        (Err(_), Trees::Ignored) => 0,
        (Err(_), Trees::Required) => {
            let reason = format!("the head is `{head}`, not a number");
            return Err(file.wrong(line, reason, "give every word a head, 0 for the root"));
        }
    };
    Ok(Some(TreebankWord {
        form: columns[FORM].to_owned(),
        upos: columns[UPOS].to_owned(),
        head,
        relation: columns[DEPREL].to_owned(),
        line,
        at,
    }))
}

/// Whether heads lie in the sentence, one word is the root, and all others depend on it.
fn check_tree(file: &NumberedLines, words: &[TreebankWord]) -> Result<()> {
    let mut root: Option<usize> = None;
    for (at, word) in words.iter().enumerate() {
        let (line, count) = (word.line, words.len());
        if word.head as usize > count {
            let reason = format!("the head is {}, but the sentence has {count} words", word.head);
            return Err(file.wrong(line, reason, "give the number of a word, or 0 for the root"));
        }
        if word.head == 0 {
            if let Some(first) = root {
                let reason = format!("a second root; the first is word {}", first + 1);
                return Err(file.wrong(line, reason, "attach all but one word to another"));
            }
            root = Some(at);
        }
    }
    // What is known to lead to the root, so that every word is walked over once.
    let mut rooted = vec![false; words.len()];
    for (at, word) in words.iter().enumerate() {
        let (mut here, mut path) = (at, Vec::new());
        while !rooted[here] && words[here].head != 0 {
            path.push(here);
            here = words[here].head as usize - 1;
            if path.len() > words.len() {
                let reason = format!("word {} never reaches the root: there is a cycle", at + 1);
                return Err(file.wrong(
                    word.line,
                    reason,
                    "correct the heads so that they form a tree",
                ));
            }
        }
        rooted[here] = true;
        path.into_iter().for_each(|word| rooted[word] = true);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SENTENCE: &str = "# sent_id = 1
1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_
1\tde\tde\tADP\t_\t_\t3\tcase\t_\t_
2\tle\tle\tDET\t_\t_\t3\tdet:def\t_\t_
3\tvin\tvin\tNOUN\t_\t_\t0\troot\t_\tSpaceAfter=No
3.1\tbu\tboire\tVERB\t_\t_\t_\t_\t0:root\t_
4\t.\t.\tPUNCT\t_\t_\t3\tpunct\t_\t_

";

    fn read(text: &str) -> Result<Treebank> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bank.conllu");
        fs::write(&path, text).unwrap();
        Treebank::read(&path)
    }

    fn unchanged(bank: &Treebank) -> String {
        bank.render(|sentence, word| {
            let word = &bank.sentences[sentence].words[word];
            [(HEAD, word.head.to_string().into()), (DEPREL, word.relation.as_str().into())]
        })
    }

    /// Every word depends on the one before it: the longest way to the root that there is.
    #[test]
    fn a_sentence_of_a_hundred_thousand_words_is_read_at_once() {
        let line = |word: usize| format!("{}\tx\tx\tX\t_\t_\t{word}\tdep\t_\t_\n", word + 1);
        let text: String = (0..100_000).map(line).collect();
        let begun = std::time::Instant::now();
        assert_eq!(read(&text).unwrap().sentences[0].words.len(), 100_000);
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
        let cycle = text.replacen("\t0\tdep", "\t100000\tdep", 1)
            + "100001\tx\tx\tX\t_\t_\t0\troot\t_\t_\n";
        assert!(
            read(&cycle).unwrap_err().to_string().contains(":1: word 1 never reaches the root")
        );
    }

    #[test]
    fn multiword_tokens_and_empty_nodes_are_no_words_and_stay() {
        let bank = read(SENTENCE).unwrap();
        let words = &bank.sentences[0].words;
        let forms: Vec<&str> = words.iter().map(|word| word.form.as_str()).collect();
        assert_eq!(forms, ["de", "le", "vin", "."]);
        assert_eq!(words.iter().map(|word| word.line).collect::<Vec<_>>(), [3, 4, 5, 7]);
        assert_eq!(universal(&words[1].relation), "det");
        assert_eq!(unchanged(&bank), SENTENCE);
        assert_eq!(unchanged(&read(&format!("# newdoc\n\n{SENTENCE}")).unwrap()), SENTENCE);
        let head = |word| if word == 2 { "0" } else { "3" };
        let moved = bank.render(|_, word| [(HEAD, head(word).into()), (DEPREL, "dep".into())]);
        assert!(moved.contains("\n2\tle\tle\tDET\t_\t_\t3\tdep\t_\t_\n3\tvin"), "{moved}");
        assert!(moved.contains("\n1-2\tdu\t") && moved.contains("\n3.1\tbu\tboire\tVERB"));
    }

    #[test]
    fn what_is_no_tree_is_named_by_line() {
        let refused = |from: &str, to: &str| {
            assert!(SENTENCE.contains(from));
            read(&SENTENCE.replace(from, to)).unwrap_err().to_string()
        };
        let refuses = |text: String, place: &str, reason: &str| {
            assert!(text.contains(place) && text.contains(reason), "{text}");
        };
        refuses(refused("\t.\t.\tPUNCT\t_", "\t.\t.\tPUNCT"), ":7:", "9 columns, not 10");
        refuses(
            refused("_\t3\tpunct", "_\t5\tpunct"),
            ":7:",
            "the head is 5, but the sentence has 4",
        );
        refuses(refused("_\t3\tcase", "_\t1\tcase"), ":3:", "cycle");
        refuses(refused("_\t3\tpunct", "_\t0\troot"), ":7:", "a second root; the first is word 3");
        refuses(refused("_\t3\tpunct", "_\t_\tpunct"), ":7:", "the head is `_`");
        refuses(refused("\n4\t.", "\n5\t."), ":7:", "numbered `5`, not 4");
        refuses(refused("1-2\tdu", "2-3\tdu"), ":2:", "no range of words");
        refuses(refused("3.1\tbu", "2.1\tbu"), ":6:", "no empty node after word 3");
        refuses(read("\n\n").unwrap_err().to_string(), "bank.conllu", "holds nothing");
    }

    #[test]
    fn real_treebanks_come_back_byte_for_byte() {
        let Some(data) = terms::tests::real_data() else { return };
        let mut banks = 0;
        for file in fs::read_dir(Path::new(&data).join("ud")).unwrap() {
            let path = file.unwrap().path();
            let bank = Treebank::read(&path).unwrap();
            assert!(unchanged(&bank) == fs::read_to_string(&path).unwrap(), "{}", path.display());
            banks += 1;
        }
        assert!(banks > 10, "{banks} treebanks");
    }
}
