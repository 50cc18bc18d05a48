//! Preprocessing: from a line of raw text to sentences of words, normalised, split and tokenized, with
//! single spaces between words. Vocabularies are learned from this form, and whatever is encoded later
//! must be preprocessed alike, so a vocabulary records its [`Preparation`].
//!
//! Sentences are split by `sentencex`, which knows the abbreviations and quotation marks of some thirty
//! languages and falls back to a related language for the rest; plain Unicode rules would split after
//! every `Mr.`. Chinese words are segmented by jieba in place of the Stanford segmenter of the papers;
//! other languages are tokenized by rules like those of Moses.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, LazyLock};

use jieba_rs::Jieba;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use unicode_normalization::{
    IsNormalized, UnicodeNormalization, char::is_combining_mark, is_nfc_quick,
};

use crate::moses::Moses;
use crate::{Error, Result};
use files::At;

/// jieba's dictionary is large and never changes, so there is one for all.
static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

/// Sentences are split in chunks of at most so many bytes.
const LONGEST_PART: usize = 1 << 15;

/// How text is tokenized into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WordTokenizer {
    /// At whitespace: the text is tokenized already, or the vocabulary has a tokenizer of its own.
    Whitespace,
    /// By rules like those of the Moses tokenizer (Koehn et al. 2007).
    Moses,
    /// By jieba's dictionary and HMM, for Chinese.
    Jieba,
    /// Not at all, and nothing else is done either: an imported tokenizer does everything itself.
    Raw,
}

impl WordTokenizer {
    /// The default for a language: jieba for Chinese, Moses for all others.
    pub fn for_language(language: &str) -> Self {
        if terms::is_chinese(language) { WordTokenizer::Jieba } else { WordTokenizer::Moses }
    }
}

/// Which tokenizer a user asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TokenizerChoice {
    /// The language's default: jieba for Chinese, Moses for all others.
    #[default]
    Auto,
    /// At whitespace.
    Whitespace,
    /// By rules like those of Moses.
    Moses,
    /// By jieba, for Chinese.
    Jieba,
}

impl TokenizerChoice {
    /// The tokenizer for a language.
    pub fn for_language(self, language: &str) -> WordTokenizer {
        match self {
            TokenizerChoice::Auto => WordTokenizer::for_language(language),
            TokenizerChoice::Whitespace => WordTokenizer::Whitespace,
            TokenizerChoice::Moses => WordTokenizer::Moses,
            TokenizerChoice::Jieba => WordTokenizer::Jieba,
        }
    }
}

/// Whether there are tokenization rules for a language in particular; others share common rules.
pub fn has_tokenizer_rules(language: &str) -> bool {
    terms::is_chinese(language) || Moses::has_rules(language)
}

/// The words of a Chinese text by jieba; every character is in one of them.
pub fn chinese_words(text: &str) -> Vec<&str> {
    JIEBA.cut(text, true).into_iter().map(|token| token.word).collect()
}

/// How text is preprocessed before it is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preparation {
    /// Split lines into sentences; otherwise a line is a sentence.
    pub split: bool,
    /// How text is tokenized into words.
    pub words: WordTokenizer,
    /// Lowercase.
    pub lowercase: bool,
    /// Remove accents.
    pub strip_accents: bool,
    /// Map traditional Chinese characters to simplified ones, by a table.
    pub simplify: bool,
}

impl Preparation {
    /// Sentences and words by the language's defaults, cased.
    pub fn for_language(language: &str) -> Self {
        Self { split: true, words: WordTokenizer::for_language(language), ..Self::none() }
    }

    /// Sentence splitting alone, for a tokenizer that does everything else itself.
    pub fn raw() -> Self {
        Self { split: true, words: WordTokenizer::Raw, ..Self::none() }
    }

    /// None, for text that is already one tokenized sentence a line.
    pub fn none() -> Self {
        Self {
            split: false,
            words: WordTokenizer::Whitespace,
            lowercase: false,
            strip_accents: false,
            simplify: false,
        }
    }
}

/// Traditional characters and the simplified ones that stand for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimplificationTable {
    table: HashMap<char, char>,
}

impl SimplificationTable {
    /// Reads a table of two columns, one character each, with a tab between.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::limits::read_text(path).at(path, "read")?;
        Self::parse(&text, &path.display().to_string())
    }

    fn parse(text: &str, file: &str) -> Result<Self> {
        let mut table = HashMap::new();
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() {
                continue;
            }
            let pair = line.split_once('\t').and_then(|(from, to)| Some((one(from)?, one(to)?)));
            let Some((from, to)) = pair else {
                let reason = "not two single characters with a tab between";
                let remedy = "write one traditional character, a tab, and its simplified form";
                return Err(Error::line(file, number, reason, remedy));
            };
            table.insert(from, to);
        }
        Ok(Self { table })
    }

    /// The table as a file, in order of characters.
    pub(crate) fn to_text(&self) -> String {
        let mut pairs: Vec<_> = self.table.iter().collect();
        pairs.sort();
        pairs.into_iter().map(|(from, to)| format!("{from}\t{to}\n")).collect()
    }
}

/// The only character of a text.
fn one(text: &str) -> Option<char> {
    let mut chars = text.trim().chars();
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

/// Prepares the text of one language.
#[derive(Clone, Debug)]
pub struct Preparer {
    language: String,
    preparation: Preparation,
    moses: Moses,
    simplified: Option<Arc<SimplificationTable>>,
}

impl Preparer {
    /// Fails where characters are to be simplified and no table is given.
    pub fn new(
        language: &str,
        preparation: Preparation,
        simplified: Option<Arc<SimplificationTable>>,
    ) -> Result<Self> {
        if preparation.simplify && simplified.is_none() {
            return Err(Error::request(
                format!("`{language}` is to be simplified, but there is no table for it"),
                "give a file of two columns: traditional character, tab, simplified character",
            ));
        }
        let simplified = simplified.filter(|_| preparation.simplify);
        let moses = Moses::new(language);
        Ok(Self { language: language.to_owned(), preparation, moses, simplified })
    }

    /// The same, but for whether lines are split into sentences.
    pub fn splitting(&self, split: bool) -> Self {
        let preparation = Preparation { split, ..self.preparation };
        Self { preparation, ..self.clone() }
    }

    /// The language's name.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// How text is preprocessed.
    pub fn preparation(&self) -> Preparation {
        self.preparation
    }

    /// The table by which characters are simplified, where they are.
    pub fn simplified(&self) -> Option<&SimplificationTable> {
        self.simplified.as_deref()
    }

    /// Calls `each` with every preprocessed sentence of a line. Sentences without a word are skipped.
    pub fn sentences(&self, line: &str, mut each: impl FnMut(&str)) {
        let mut prepared = String::new();
        let mut emit = |sentence: &str| {
            prepared.clear();
            self.prepare(sentence, &mut prepared);
            if !prepared.is_empty() {
                each(&prepared);
            }
        };
        if self.preparation.split {
            for part in parts(line) {
                sentencex::segment(terms::written_language(&self.language), part)
                    .into_iter()
                    .for_each(&mut emit);
            }
        } else {
            emit(line);
        }
    }

    /// Appends the words of one sentence to `out`, which must be empty, a space between any two.
    pub fn prepare(&self, sentence: &str, out: &mut String) {
        if self.preparation.words == WordTokenizer::Raw {
            return out.push_str(sentence);
        }
        let mut text = self.clean(sentence);
        if self.preparation.strip_accents {
            text = text.nfd().filter(|&c| !is_combining_mark(c)).nfc().collect();
        }
        if self.preparation.lowercase {
            text = text.to_lowercase();
        }
        match self.preparation.words {
            WordTokenizer::Moses => self.moses.cut(&text, out),
            WordTokenizer::Jieba => {
                join(JIEBA.cut(&text, true).iter().map(|token| token.word), out)
            }
            WordTokenizer::Whitespace | WordTokenizer::Raw => join(text.split_whitespace(), out),
        }
    }

    /// Normalises to NFC, drops invisible characters, maps traditional characters and (where words are
    /// tokenized here) normalises punctuation, as the papers' pipeline does: otherwise the same comma
    /// would be a different token in every script.
    fn clean(&self, sentence: &str) -> String {
        let mut text = String::with_capacity(sentence.len());
        let push = |c: char| self.push_clean(c, &mut text);
        if sentence.is_ascii() || is_nfc_quick(sentence.chars()) == IsNormalized::Yes {
            sentence.chars().for_each(push);
        } else {
            sentence.nfc().for_each(push);
        }
        text
    }

    fn push_clean(&self, c: char, text: &mut String) {
        let c = match &self.simplified {
            Some(simplified) => simplified.table.get(&c).copied().unwrap_or(c),
            None => c,
        };
        match c {
            c if c.is_whitespace() => text.push(' '),
            c if is_unseen(c) => {}
            c if self.preparation.words != WordTokenizer::Whitespace && !c.is_ascii() => {
                push_uniform(c, text);
            }
            c => text.push(c),
        }
    }

    /// Whether texts of both are prepared alike, sentence by sentence.
    pub(crate) fn prepares_like(&self, other: &Self) -> bool {
        let all = |preparer: &Self| Preparation { split: false, ..preparer.preparation };
        let cut = |preparer: &Self| {
            matches!(preparer.preparation.words, WordTokenizer::Moses).then_some(preparer.moses)
        };
        all(self) == all(other) && cut(self) == cut(other) && self.simplified == other.simplified
    }

    /// [`Preparer::prepare`] for `tokenizers`, which has no code of ours: steps that normalise, and those that cut words.
    ///
    /// # Errors
    /// Where words are cut by a dictionary, or characters simplified by a table.
    pub(crate) fn as_steps(&self) -> Result<(Vec<Value>, Vec<Value>)> {
        let reason = match self.preparation.words {
            WordTokenizer::Jieba => "words are cut by the dictionary of jieba",
            _ if self.simplified.is_some() => "characters are simplified by a table",
            _ => "",
        };
        if !reason.is_empty() {
            let reason = format!(
                "text of `{}`: {reason}, which tokenizer.json cannot express",
                self.language
            );
            let remedy = "set `prepared` to export a tokenizer for text that is prepared already";
            return Err(Error::setting("prepared", reason, remedy));
        }
        let regex = |pattern: &str| json!({ "Regex": pattern });
        let replace = |pattern: &str, content: &str| json!({ "type": "Replace", "pattern": regex(pattern), "content": content });
        let mut steps = vec![json!({ "type": "NFC" })];
        for (content, characters) in self.replaced() {
            steps.push(replace(&format!("[{characters}]"), &content));
        }
        if self.preparation.strip_accents {
            steps.extend(["NFD", "StripAccents", "NFC"].map(|step| json!({ "type": step })));
        }
        if self.preparation.lowercase {
            // The only letter whose lower case depends on its place, which is not known there.
            steps.push(replace(r"(?<=\p{L})Σ(?!\p{L})", "ς"));
            steps.push(json!({ "type": "Lowercase" }));
        }
        let cut = (self.preparation.words == WordTokenizer::Moses).then(|| {
            let pattern = regex(&self.moses.pattern());
            json!({ "type": "Split", "pattern": pattern, "behavior": "Removed", "invert": true })
        });
        Ok((steps, cut.into_iter().collect()))
    }

    /// What replaces characters of normalised text, with these characters as ranges.
    fn replaced(&self) -> BTreeMap<String, String> {
        let mut ranges: BTreeMap<String, Vec<(char, char)>> = BTreeMap::new();
        let mut before = None;
        for c in '\0'..=char::MAX {
            let mut text = String::new();
            self.push_clean(c, &mut text);
            let new = (!text.chars().eq([c])).then_some(text);
            if let Some(new) = &new {
                let ranges = ranges.entry(new.clone()).or_default();
                match ranges.last_mut() {
                    Some((_, end)) if before.as_ref() == Some(new) => *end = c,
                    _ => ranges.push((c, c)),
                }
            }
            before = new;
        }
        let listed = |(first, last): (char, char)| match first == last {
            true => String::from(first),
            false => format!("{first}-{last}"),
        };
        ranges.into_iter().map(|(new, all)| (new, all.into_iter().map(listed).collect())).collect()
    }
}

/// Splits a line longer than any paragraph at spaces: where quotation marks open and never close, the
/// time to find sentences is quadratic in the length.
fn parts(mut line: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if line.is_empty() {
            return None;
        }
        let end = line.floor_char_boundary(LONGEST_PART);
        let at = match line[..end].rfind(' ') {
            Some(space) if space > 0 && end < line.len() => space,
            _ => end,
        };
        let (part, rest) = line.split_at(at);
        line = rest;
        Some(part)
    })
}

/// Control and formatting characters. The two joiners stay: in Persian and Indic scripts they
/// distinguish words.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fffd}')
}

/// Replaces typographic, full-width and ideographic punctuation by ASCII.
fn push_uniform(c: char, text: &mut String) {
    let plain = match c {
        '’' | '‘' | '‚' | '‛' | '´' | '′' => '\'',
        '“' | '”' | '„' | '‟' | '«' | '»' | '「' | '」' | '『' | '』' | '《' | '》' | '〈'
        | '〉' | '″' => '"',
        '–' | '‐' | '‑' | '−' => '-',
        '。' | '．' => '.',
        '、' => ',',
        '【' | '〔' => '[',
        '】' | '〕' => ']',
        '—' | '―' => return text.push_str(" - "),
        '…' => return text.push_str("..."),
        // The wide forms repeat ASCII, in its order.
        '！'..='～' => char::from_u32(c as u32 - 0xfee0).unwrap_or(c),
        c => c,
    };
    text.push(plain);
}

fn join<'a>(words: impl Iterator<Item = &'a str>, out: &mut String) {
    for word in words.map(str::trim).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::{
        NormalizedString, Normalizer as _, NormalizerWrapper, OffsetReferential, OffsetType,
        PreTokenizedString, PreTokenizer as _, PreTokenizerWrapper,
    };

    use super::*;

    fn prepare(language: &str, change: impl Fn(&mut Preparation), line: &str) -> Vec<String> {
        let mut preparation = Preparation::for_language(language);
        change(&mut preparation);
        let table = SimplificationTable::parse("國\t国\n", "table").unwrap();
        let preparer = Preparer::new(language, preparation, Some(Arc::new(table))).unwrap();
        let mut sentences = Vec::new();
        preparer.sentences(line, |sentence| sentences.push(sentence.to_owned()));
        sentences
    }

    #[test]
    fn a_paragraph_becomes_sentences_of_words() {
        let line =
            "Mr. Smith, of course, went home. \u{201c}Why?\u{201d} I don\u{2019}t know\u{2026}";
        let sentences = prepare("en", |_| {}, line);
        assert_eq!(sentences[0], "Mr. Smith , of course , went home .");
        assert_eq!(sentences.join(" ").split(' ').next_back(), Some("..."));
        assert!(sentences.len() >= 2, "{sentences:?}");
        let whole = prepare("en", |preparation| preparation.split = false, line);
        assert_eq!(whole.len(), 1);
    }

    #[test]
    fn chinese_is_cut_by_dictionary_and_simplified() {
        assert_eq!(
            prepare(
                "zh",
                |preparation| preparation.simplify = true,
                "我來到中國北京。今天天氣好！"
            ),
            ["我來 到 中国 北京 .", "今天 天氣 好 !"]
        );
    }

    /// The second copy of a language in an encoder that is trained on it twice.
    #[test]
    fn a_second_copy_is_prepared_as_the_language_is() {
        let text = "M. Dupont est arrivé à 10 h. Av. J.-C., rien. Vraiment ? « Oui. » dit-il.";
        let chinese = "他来了。你呢？我也来了！“好。”他说。";
        for (language, text) in [("en", text), ("fr", text), ("de", text), ("zh", chinese)] {
            let copy = format!("{language}-b");
            assert_eq!(prepare(&copy, |_| {}, text), prepare(language, |_| {}, text), "{language}");
        }
    }

    /// A preparer, and its steps as `tokenizers` reads them.
    struct Exported(Preparer, Vec<NormalizerWrapper>, Vec<PreTokenizerWrapper>);

    impl Exported {
        fn new(language: &str, letters: bool) -> Self {
            let (lowercase, strip_accents) = (letters, letters);
            let preparation =
                Preparation { lowercase, strip_accents, ..Preparation::for_language(language) };
            let preparer = Preparer::new(language, preparation, None).unwrap();
            let (normalizers, cuts) = preparer.as_steps().unwrap();
            let normalizer = |step| serde_json::from_value(step).unwrap();
            let cut = |step| serde_json::from_value(step).unwrap();
            let (normalizers, cuts) = (normalizers.into_iter(), cuts.into_iter());
            Self(preparer, normalizers.map(normalizer).collect(), cuts.map(cut).collect())
        }

        /// A sentence as it is prepared here, and there.
        fn both(&self, sentence: &str) -> [String; 2] {
            let (mut own, mut text) = (String::new(), NormalizedString::from(sentence));
            self.0.prepare(sentence, &mut own);
            self.1.iter().for_each(|step| step.normalize(&mut text).unwrap());
            let mut text = PreTokenizedString::from(text);
            self.2.iter().for_each(|step| step.pre_tokenize(&mut text).unwrap());
            let words = text.get_splits(OffsetReferential::Original, OffsetType::None);
            let words: Vec<&str> = words.iter().map(|(word, ..)| *word).collect();
            [own, words.join(" ")]
        }
    }

    /// Every rule of the cutter that is not there in the pattern shows here.
    #[test]
    fn exported_steps_prepare_as_here() {
        let sentences = [
            "He sleeps. Mr. Smith met J. Jones of the U.S. Army, i.e. him\u{2026} 'No' -- he said: \u{201c}go.\u{201d}",
            "It costs 1,234.50 (or so), well-known .NET at example.com/a_b; don't the 1990's rock'n'roll",
            "l'homme d'aujourd'hui — « Oui. » M. Dupont, av. J.-C., art. 5 etc. Ça, l'« été »",
            "Hr. Maier, z.B. Nr. 5. Wie geht's? В 1812 г. Москва горела, т.е. г. Москва.",
            "２０２６年、「你好」！ ΟΔΟΣ ΣΟΦΟΣ. İstanbul e\u{301}te\u{301} \u{200b}x\u{7}\u{a0}y\t-z a-- --b ..c d..",
            "",
            " ",
            "a.b.",
            "'",
            ",",
            "l'",
            "5,5,",
            "5.,5",
            "a.-b. c",
            "A. ",
            "Ab. C",
            "vs. 3",
            "VS. .",
        ];
        for language in ["en", "fr", "de", "ru", "es"] {
            for letters in [false, true] {
                let exported = Exported::new(language, letters);
                for sentence in sentences {
                    let [own, theirs] = exported.both(sentence);
                    assert_eq!(own, theirs, "{language} {letters}: {sentence:?}");
                }
            }
        }
    }

    #[test]
    fn what_no_tokenizer_can_do_is_refused() {
        let chinese = Preparer::new("zh", Preparation::for_language("zh"), None).unwrap();
        let error = chinese.as_steps().unwrap_err().to_string();
        assert!(error.contains("jieba") && error.contains("prepared"), "{error}");
    }

    #[test]
    fn letters_are_lowered_and_accents_taken_off() {
        let all = |preparation: &mut Preparation| {
            preparation.lowercase = true;
            preparation.strip_accents = true;
        };
        assert_eq!(prepare("fr", all, "L'ÉTÉ, ça ira"), ["l' ete , ca ira"]);
        assert_eq!(prepare("ru", all, "Мой Ёж"), ["мои еж"]);
    }

    #[test]
    fn composed_and_decomposed_letters_are_one() {
        let none = |preparation: &mut Preparation| *preparation = Preparation::none();
        assert_eq!(prepare("fr", none, "e\u{301}te\u{301} \u{200b}x\u{7}"), ["été x"]);
    }

    #[test]
    fn a_line_of_any_length_is_split_in_linear_time() {
        let line = "“é ".repeat(100_000);
        let parts: Vec<_> = parts(&line).collect();
        assert_eq!(parts.concat(), line);
        assert!(parts.iter().all(|part| part.len() <= LONGEST_PART));
        assert_eq!(super::parts("é").collect::<Vec<_>>(), ["é"]);
        let unbroken = "é".repeat(LONGEST_PART);
        assert_eq!(super::parts(&unbroken).count(), 2);
        let words: Vec<_> = prepare("en", |_| {}, &line).concat().matches('é').map(drop).collect();
        assert_eq!(words.len(), 100_000);
    }

    #[test]
    fn a_bad_table_is_an_error_with_its_line() {
        let error = SimplificationTable::parse("國\t国\n國国\n", "t.tsv").unwrap_err().to_string();
        assert!(error.starts_with("t.tsv:2: not two single characters"), "{error}");
        let mut preparation = Preparation::for_language("zh");
        preparation.simplify = true;
        assert!(Preparer::new("zh", preparation, None).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn any_line_is_prepared_into_words_with_single_spaces(
            line in "\\PC{0,60}|[.'\"“”«»,\\- A-Za-z0-9。！（）？…\u{301}\u{0}-\u{1f}]{0,60}",
            language in prop_oneof![Just("en"), Just("fr"), Just("ru"), Just("zh"), Just("xx")],
        ) {
            for sentence in prepare(language, |_| {}, &line) {
                prop_assert!(sentence.split(' ').all(|word| !word.is_empty()), "{sentence:?}");
                let others = |c: char| c.is_whitespace() && c != ' ';
                prop_assert!(!sentence.contains(others), "{sentence:?}");
            }
        }

        #[test]
        fn exported_steps_prepare_any_line_as_here(
            line in "\\PC{0,40}|[.'\"“«,\\- A-Ca-cs0-9。（…é]{0,60}|[.,' \\-Jas5]{0,30}",
            language in 0..4usize,
        ) {
            static EXPORTED: LazyLock<Vec<Exported>> = LazyLock::new(|| {
                ["en", "fr", "ru", "es"].map(|language| Exported::new(language, false)).into()
            });
            let [own, theirs] = EXPORTED[language].both(&line);
            prop_assert_eq!(own, theirs);
        }
    }
}
