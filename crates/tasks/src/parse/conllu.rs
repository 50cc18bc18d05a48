//! Treebanks in CoNLL-U: read strictly, and written back byte for byte but for what was predicted.
//!
//! Words (lines numbered 1, 2, …) carry the tree. Multiword tokens (`3-4`), empty nodes (`5.1`) and
//! comments are not words: they are kept where they stand and written back as they were.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::lines::Lines;

/// The columns of a line.
const COLUMNS: usize = 10;
const FORM: usize = 1;
const UPOS: usize = 3;
const HEAD: usize = 6;
const DEPREL: usize = 7;

/// The sentences of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Treebank {
    /// The file.
    pub path: PathBuf,
    /// Its sentences.
    pub sentences: Vec<Sentence>,
}

/// A sentence with its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The words, in their order.
    pub words: Vec<Word>,
    /// Every line as it was read.
    lines: Vec<String>,
}

/// A word and its place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
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
        let lines = Lines::read(path)?;
        let mut sentences: Vec<Sentence> =
            lines.blocks().map(|block| Sentence::parse(&lines, &block)).collect::<Result<_>>()?;
        // Comments by themselves are no sentence.
        sentences.retain(|sentence| !sentence.words.is_empty());
        if sentences.is_empty() {
            return Err(Error::file(path, "holds no word", "name a CoNLL-U file"));
        }
        Ok(Self { path: path.to_owned(), sentences })
    }

    /// The file again, with the heads and relations that `place` gives to each word of each
    /// sentence.
    pub fn render<'a>(&self, place: impl Fn(usize, usize) -> (u32, &'a str)) -> String {
        let mut text = String::new();
        for (number, sentence) in self.sentences.iter().enumerate() {
            let mut words = sentence.words.iter().enumerate().peekable();
            for (at, line) in sentence.lines.iter().enumerate() {
                match words.next_if(|(_, word)| word.at == at) {
                    None => text.push_str(line),
                    Some((word, _)) => {
                        let (head, relation) = place(number, word);
                        replace(line, head, relation, &mut text);
                    }
                }
                text.push('\n');
            }
            text.push('\n');
        }
        text
    }
}

/// Appends a word's line with another head and relation.
fn replace(line: &str, head: u32, relation: &str, text: &mut String) {
    for (column, value) in line.split('\t').enumerate() {
        if column > 0 {
            text.push('\t');
        }
        match column {
            HEAD => text.push_str(&head.to_string()),
            DEPREL => text.push_str(relation),
            _ => text.push_str(value),
        }
    }
}

impl Sentence {
    fn parse(file: &Lines, block: &[(usize, &str)]) -> Result<Self> {
        let mut words = Vec::new();
        for (at, &(line, text)) in block.iter().enumerate() {
            if !text.starts_with('#') {
                words.extend(word(file, line, text, words.len(), at)?);
            }
        }
        let lines = block.iter().map(|(_, text)| (*text).to_owned()).collect();
        check_tree(file, &words)?;
        Ok(Self { words, lines })
    }
}

/// A line as a word; none where it is a multiword token or an empty node.
fn word(file: &Lines, line: usize, text: &str, before: usize, at: usize) -> Result<Option<Word>> {
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
    let head = head.parse().map_err(|_| {
        let reason = format!("the head is `{head}`, not a number");
        file.wrong(line, reason, "give every word a head, 0 for the root")
    })?;
    Ok(Some(Word {
        form: columns[FORM].to_owned(),
        upos: columns[UPOS].to_owned(),
        head,
        relation: columns[DEPREL].to_owned(),
        line,
        at,
    }))
}

/// Whether heads lie in the sentence, one word is the root, and all others hang from it.
fn check_tree(file: &Lines, words: &[Word]) -> Result<()> {
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
    for (at, word) in words.iter().enumerate() {
        let (mut here, mut steps) = (at, 0);
        while words[here].head != 0 {
            here = words[here].head as usize - 1;
            steps += 1;
            if steps > words.len() {
                let reason = format!("word {} never reaches the root: there is a cycle", at + 1);
                return Err(file.wrong(
                    word.line,
                    reason,
                    "mend the heads so that they are a tree",
                ));
            }
        }
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

    fn gold(bank: &Treebank) -> String {
        bank.render(|sentence, word| {
            let word = &bank.sentences[sentence].words[word];
            (word.head, &word.relation)
        })
    }

    #[test]
    fn multiword_tokens_and_empty_nodes_are_no_words_and_stay() {
        let bank = read(SENTENCE).unwrap();
        let words = &bank.sentences[0].words;
        let forms: Vec<&str> = words.iter().map(|word| word.form.as_str()).collect();
        assert_eq!(forms, ["de", "le", "vin", "."]);
        assert_eq!(words.iter().map(|word| word.line).collect::<Vec<_>>(), [3, 4, 5, 7]);
        assert_eq!(universal(&words[1].relation), "det");
        assert_eq!(gold(&bank), SENTENCE);
        assert_eq!(gold(&read(&format!("# newdoc\n\n{SENTENCE}")).unwrap()), SENTENCE);
        let moved = bank.render(|_, word| (if word == 2 { 0 } else { 3 }, "dep"));
        assert!(moved.contains("\n2\tle\tle\tDET\t_\t_\t3\tdep\t_\t_\n3\tvin"), "{moved}");
        assert!(moved.contains("\n1-2\tdu\t") && moved.contains("\n3.1\tbu\tboire\tVERB"));
    }

    #[test]
    fn what_is_no_tree_is_named_by_line() {
        let refused = |from: &str, to: &str| {
            assert!(SENTENCE.contains(from));
            read(&SENTENCE.replace(from, to)).unwrap_err().to_string()
        };
        let says = |text: String, place: &str, reason: &str| {
            assert!(text.contains(place) && text.contains(reason), "{text}");
        };
        says(refused("\t.\t.\tPUNCT\t_", "\t.\t.\tPUNCT"), ":7:", "9 columns, not 10");
        says(refused("_\t3\tpunct", "_\t5\tpunct"), ":7:", "the head is 5, but the sentence has 4");
        says(refused("_\t3\tcase", "_\t1\tcase"), ":3:", "cycle");
        says(refused("_\t3\tpunct", "_\t0\troot"), ":7:", "a second root; the first is word 3");
        says(refused("_\t3\tpunct", "_\t_\tpunct"), ":7:", "the head is `_`");
        says(refused("\n4\t.", "\n5\t."), ":7:", "numbered `5`, not 4");
        says(refused("1-2\tdu", "2-3\tdu"), ":2:", "no range of words");
        says(refused("3.1\tbu", "2.1\tbu"), ":6:", "no empty node after word 3");
        says(read("\n\n").unwrap_err().to_string(), "bank.conllu", "holds nothing");
    }

    #[test]
    fn real_treebanks_come_back_byte_for_byte() {
        let Some(data) = std::env::var_os("ISOGLOSS_DATA") else {
            eprintln!("left out: ISOGLOSS_DATA is not set");
            return;
        };
        let mut banks = 0;
        for file in fs::read_dir(Path::new(&data).join("ud")).unwrap() {
            let path = file.unwrap().path();
            let bank = Treebank::read(&path).unwrap();
            assert!(gold(&bank) == fs::read_to_string(&path).unwrap(), "{}", path.display());
            banks += 1;
        }
        assert!(banks > 10, "{banks} treebanks");
    }
}
