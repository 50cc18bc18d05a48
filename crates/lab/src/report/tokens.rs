//! Token translations as word-aligned sentences: a column for each position, every word in the colour of its language.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::data::StudyData;
use super::sections::names::{direction_name, language_name};
use crate::draw::escaped;
use crate::record::TextRecord;
use crate::store::natural;

/// Sentences that are shown at once; the others can be opened.
const SHOWN: usize = 2;

/// A sentence, what is predicted for it under weights, and its translation.
pub(super) struct TokenSentence {
    direction: String,
    /// A label, and the words; those of the input first, those of the translation last.
    rows: Vec<(String, Vec<TokenWord>)>,
}

/// A word and the languages in whose sentences it occurs.
struct TokenWord {
    word: String,
    side: WordSide,
}

/// The side of a direction that a word belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WordSide {
    Source,
    Target,
    Both,
    Neither,
}

impl WordSide {
    fn class(self) -> &'static str {
        match self {
            WordSide::Source => "source",
            WordSide::Target => "target",
            WordSide::Both | WordSide::Neither => "either",
        }
    }
}

impl TokenSentence {
    /// The sentences of the first seed that has any, by direction.
    pub(super) fn all(data: &StudyData<'_>) -> Vec<Self> {
        let translations = || data.texts.iter().filter(|text| text.name == "translation");
        let first = translations().map(|text| text.origin.seed).min();
        let texts: Vec<&TextRecord> =
            translations().filter(|text| Some(text.origin.seed) == first).copied().collect();
        let words = words_by_language(&texts);
        let mut sentences: BTreeMap<(String, String), Vec<&TextRecord>> = BTreeMap::new();
        for text in texts {
            let place = (level(text, "direction"), level(text, "line"));
            sentences.entry(place).or_default().push(text);
        }
        let of = |((direction, _), texts)| Self::of(data, direction, texts, &words);
        sentences.into_iter().map(of).collect()
    }

    fn of(
        data: &StudyData<'_>,
        direction: String,
        mut texts: Vec<&TextRecord>,
        words: &BTreeMap<String, BTreeSet<String>>,
    ) -> Self {
        let (source, target) = direction.split_once('-').unwrap_or((&direction, ""));
        let side = |word: &str| {
            let of = |language: &str| words.get(language).is_some_and(|own| own.contains(word));
            match (of(source), of(target)) {
                (true, false) => WordSide::Source,
                (false, true) => WordSide::Target,
                (true, true) => WordSide::Both,
                (false, false) => WordSide::Neither,
            }
        };
        let split = |text: &TextRecord| {
            let word = |word: &str| TokenWord { word: word.to_owned(), side: side(word) };
            text.text.split(' ').map(word).collect::<Vec<_>>()
        };
        let given = |name: &str| texts.iter().find(|text| level(text, "alpha") == name).copied();
        let (input, reference) = (given("input"), given("reference"));
        texts.retain(|text| level(text, "alpha").parse::<f64>().is_ok());
        texts.sort_by(|a, b| {
            let untrained = |text: &TextRecord| encoder(text) == super::data::UNTRAINED;
            let other = |text: &TextRecord| encoder(text) != "default";
            (untrained(a), other(a), encoder(a))
                .cmp(&(untrained(b), other(b), encoder(b)))
                .then_with(|| natural(&level(a, "layer"), &level(b, "layer")))
                .then_with(|| natural(&level(a, "alpha"), &level(b, "alpha")))
        });
        let several = texts.windows(2).any(|pair| encoder(pair[0]) != encoder(pair[1]));
        let label = |text: &TextRecord| {
            let alpha = format!("α = {}", level(text, "alpha"));
            if several { format!("{}, {alpha}", data.name(&encoder(text))) } else { alpha }
        };
        let mut rows = Vec::new();
        let source_name = language_name(source);
        rows.extend(input.map(|text| (format!("{source_name}, input"), split(text))));
        rows.extend(texts.iter().map(|text| (label(text), split(text))));
        let name = format!("{}, translation", language_name(target));
        rows.extend(reference.map(|text| (name, split(text))));
        Self { direction: direction.clone(), rows }
    }

    /// The words of input and translation that both languages use, or that no shown sentence tells apart.
    fn unclear(&self) -> usize {
        let ends = self.rows.first().into_iter().chain(self.rows.last());
        let words = ends.flat_map(|(_, words)| words);
        words.filter(|word| matches!(word.side, WordSide::Both | WordSide::Neither)).count()
    }

    fn html(&self) -> String {
        let (source, target) = self.direction.split_once('-').unwrap_or((&self.direction, ""));
        let widest = self.rows.iter().map(|(_, words)| words.len()).max().unwrap_or(0);
        let mut html = format!(
            "<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"{about}\"><table class=\"tokens\">\
             <caption>{about}: <span class=\"source\">{}</span>, <span class=\"target\">{}</span>, \
             <span class=\"either\">in sentences of both here, or of neither</span></caption>\n<tbody>\n",
            escaped(&language_name(source)),
            escaped(&language_name(target)),
            about = escaped(&direction_name(&self.direction)),
        );
        for (label, words) in &self.rows {
            let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escaped(label));
            for TokenWord { word, side } in words {
                let _ = write!(html, "<td class=\"{}\">{}</td>", side.class(), escaped(word));
            }
            if words.len() < widest {
                let _ = write!(html, "<td colspan=\"{}\"></td>", widest - words.len());
            }
            html.push_str("</tr>\n");
        }
        html + "</tbody></table></div>\n"
    }
}

/// The sentences as HTML: two, and the others in a part that opens.
pub(super) fn html(sentences: &[TokenSentence]) -> String {
    // The clearest sentence of each direction is among the first.
    let mut clearest: Vec<&TokenSentence> = sentences.iter().collect();
    clearest.sort_by_key(|sentence| sentence.unclear());
    let mut order: Vec<(usize, &TokenSentence)> = Vec::new();
    for sentence in clearest {
        let before = order.iter().filter(|(_, one)| one.direction == sentence.direction).count();
        order.push((before, sentence));
    }
    order.sort_by_key(|(before, _)| *before);
    let mut html: String = order.iter().take(SHOWN).map(|(_, sentence)| sentence.html()).collect();
    if order.len() > SHOWN {
        let _ =
            writeln!(html, "<details><summary>{} more sentences</summary>", order.len() - SHOWN);
        html.extend(order.iter().skip(SHOWN).map(|(_, sentence)| sentence.html()));
        html.push_str("</details>\n");
    }
    html
}

fn level(text: &TextRecord, name: &str) -> String {
    text.factors.get(name).cloned().unwrap_or_default()
}

/// The encoder: a given model has no condition, and is named by its system.
fn encoder(text: &TextRecord) -> String {
    let name = text.factors.get("condition").or_else(|| text.factors.get("system"));
    name.cloned().unwrap_or_default()
}

/// The words of inputs and translations, by language.
fn words_by_language(texts: &[&TextRecord]) -> BTreeMap<String, BTreeSet<String>> {
    let mut words: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for text in texts {
        let direction = level(text, "direction");
        let Some((source, target)) = direction.split_once('-') else { continue };
        let language = match &*level(text, "alpha") {
            "input" => source,
            "reference" => target,
            _ => continue,
        };
        let own = words.entry(language.to_owned()).or_default();
        own.extend(text.text.split(' ').map(str::to_owned));
    }
    words
}
