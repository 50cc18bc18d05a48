//! Word tokenization by rules like those of the Moses tokenizer (Koehn et al. 2007): punctuation is
//! separated, numbers and abbreviations stay whole, apostrophes are split by language.
//!
//! The rules are written from the documented behaviour. The lists of nonbreaking prefixes are short and
//! cover English, French, German and Russian. Nothing is escaped. Unlike Moses, a full stop in mid-line
//! can end a sentence, since a line may hold several.

/// Where a word with an apostrophe inside is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apostrophe {
    /// `don 't`
    WithTheNext,
    /// `l' homme`
    WithTheLast,
    /// `d ' accord`
    Alone,
}

const ENGLISH: &[&str] = &[
    "adj", "adm", "adv", "al", "apr", "art", "assn", "asst", "aug", "bros", "capt", "cf", "ch",
    "cmdr", "co", "col", "corp", "dec", "dept", "dr", "ed", "eds", "esq", "est", "etc", "feb",
    "fig", "figs", "ft", "gen", "gov", "hon", "inc", "jan", "jr", "jul", "jun", "lt", "ltd", "maj",
    "mar", "messrs", "mlle", "mme", "mr", "mrs", "ms", "mt", "no", "nos", "nov", "oct", "op", "p",
    "pp", "pres", "prof", "rep", "reps", "rev", "sen", "sens", "sep", "sept", "sgt", "sr", "st",
    "univ", "viz", "vol", "vols", "vs",
];
const FRENCH: &[&str] = &[
    "apr", "art", "av", "bd", "boul", "chap", "cf", "cie", "coll", "dr", "éd", "env", "etc", "ex",
    "fig", "hab", "ibid", "janv", "juil", "m", "mgr", "mlle", "mm", "mme", "mr", "nov", "oct", "p",
    "pl", "pp", "pr", "prof", "réf", "sept", "ste", "st", "suiv", "sup", "tél", "trad", "vol",
];
const GERMAN: &[&str] = &[
    "abb", "abs", "abt", "allg", "anm", "art", "aufl", "bd", "bspw", "bzgl", "bzw", "ca", "chr",
    "dez", "dipl", "dr", "ebd", "etc", "evtl", "feb", "ff", "fr", "geb", "gest", "ggf", "hr",
    "hrsg", "inkl", "ing", "jan", "jh", "jr", "kap", "max", "min", "mio", "mrd", "nov", "nr",
    "okt", "prof", "sept", "sog", "st", "std", "str", "tel", "usw", "vgl", "zzgl",
];
const RUSSIAN: &[&str] = &[
    "акад", "в", "вв", "г", "гг", "гл", "гр", "д", "доп", "др", "е", "ед", "зам", "изд", "им",
    "инж", "кв", "коп", "л", "млн", "млрд", "напр", "нач", "обл", "п", "пер", "пл", "пос", "пр",
    "прим", "проф", "ред", "рис", "руб", "св", "см", "соч", "ср", "ст", "стр", "т", "табл", "тел",
    "тов", "тыс", "ул", "ч", "чл", "экз",
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moses {
    apostrophe: Apostrophe,
    abbreviations: &'static [&'static str],
}

impl Moses {
    pub(crate) fn has_rules(language: &str) -> bool {
        let rules = Self::new(language);
        rules.apostrophe != Apostrophe::Alone || !rules.abbreviations.is_empty()
    }

    /// The rules for a language by its code; an unknown one gets the rules common to all.
    pub(crate) fn new(language: &str) -> Self {
        let language = language.split(['-', '_']).next().unwrap_or_default();
        let apostrophe = match language {
            "en" => Apostrophe::WithTheNext,
            "fr" | "it" | "ca" | "ga" => Apostrophe::WithTheLast,
            _ => Apostrophe::Alone,
        };
        let abbreviations = match language {
            "en" => ENGLISH,
            "fr" => FRENCH,
            "de" => GERMAN,
            "ru" => RUSSIAN,
            _ => &[],
        };
        Self { apostrophe, abbreviations }
    }

    /// The same rules as a regular expression whose matches are the words of a sentence where every white space is a space: for
    /// `tokenizers`, which has no code of ours. [`Moses::cut`] says what each part is.
    pub(crate) fn pattern(&self) -> String {
        let wordy = r"[\p{Alphabetic}\p{N}\p{M}]";
        let (letter, comma, hyphen) = (r"\p{Alphabetic}", r"(?<=\p{N}),(?=\p{N})", "-(?!-)");
        let inner_stop = format!(r"\.(?={wordy})");
        let inside = format!("(?<={letter})'(?={letter})");
        let (before, behind) = match self.apostrophe {
            Apostrophe::WithTheNext => {
                (format!(r"(?:{inside}|(?<=\p{{N}})'(?=s))?"), String::new())
            }
            Apostrophe::WithTheLast => (String::new(), format!("(?:{inside})?")),
            Apostrophe::Alone => (String::new(), String::new()),
        };
        let part = format!("(?:{wordy}|{hyphen}|{inner_stop}|{comma})");
        // Atomic: a word is never taken for shorter than it is.
        let word = format!("(?>{before}(?!,){part}+)");
        let has_stop = format!("(?={before}(?:{wordy}|{hyphen}|{comma})*{inner_stop})");
        let has_letter = format!("(?={before}{part}*?{letter})");
        let stop = r"\.(?!\.)";
        let something_else = format!("(?!{wordy})(?= *[^ ])");
        let abbreviations = match self.abbreviations {
            [] => String::new(),
            all => format!("(?i:{}){stop}{something_else}|", all.join("|")),
        };
        format!(
            "{has_stop}{has_letter}{word}{stop}|{word}{stop}(?= *\\p{{Lowercase}})\
             |\\p{{Uppercase}}{stop}{something_else}|{abbreviations}{word}{behind}\
             |\\.{{2,}}|-{{2,}}|[^ ]"
        )
    }

    /// Appends the words of a sentence to `out`, one space between any two.
    pub(crate) fn cut(&self, sentence: &str, out: &mut String) {
        let mut words = Cutter { out, word: None, sentence };
        let mut at = 0;
        while let Some(c) = sentence[at..].chars().next() {
            let after = at + c.len_utf8();
            let next = sentence[after..].chars().next();
            at = match c {
                c if is_wordy(c) => words.grow(at, after),
                c if c.is_whitespace() => words.end(at, after),
                '.' | '-' if next == Some(c) => words.run(at, c),
                '-' => words.grow(at, after),
                '.' if next.is_some_and(is_wordy) => words.grow(at, after),
                '.' if self.keeps_stop(words.word(at), &sentence[after..]) => {
                    words.grow(at, after);
                    words.end(after, after)
                }
                ',' if words.last(at).is_some_and(char::is_numeric)
                    && next.is_some_and(char::is_numeric) =>
                {
                    words.grow(at, after)
                }
                '\'' => self.cut_apostrophe(&mut words, at, next),
                _ => words.alone(at, after),
            };
        }
        words.end(at, at);
    }

    fn cut_apostrophe(&self, words: &mut Cutter<'_>, at: usize, next: Option<char>) -> usize {
        let after = at + 1;
        let last = words.last(at);
        let inside = last.is_some_and(char::is_alphabetic) && next.is_some_and(char::is_alphabetic);
        let decade = last.is_some_and(char::is_numeric) && next == Some('s');
        match self.apostrophe {
            Apostrophe::WithTheNext if inside || decade => {
                words.end(at, at);
                words.grow(at, after)
            }
            Apostrophe::WithTheLast if inside => {
                words.grow(at, after);
                words.end(after, after)
            }
            _ => words.alone(at, after),
        }
    }

    /// Whether the full stop after `word` belongs to it.
    fn keeps_stop(&self, word: &str, rest: &str) -> bool {
        let Some(first) = word.chars().next() else { return false };
        let acronym = word.contains('.') && word.contains(char::is_alphabetic);
        if acronym {
            return true;
        }
        let Some(next) = rest.chars().find(|c| !c.is_whitespace()) else { return false };
        let initial = first.is_uppercase() && word.len() == first.len_utf8();
        let abbreviated = || self.abbreviations.contains(&word.to_lowercase().as_str());
        next.is_lowercase() || initial || abbreviated()
    }
}

/// Letters, digits, and the marks that combine with them.
fn is_wordy(c: char) -> bool {
    c.is_alphanumeric() || unicode_normalization::char::is_combining_mark(c)
}

/// The word under way. Every method returns where reading goes on.
struct Cutter<'a> {
    out: &'a mut String,
    word: Option<usize>,
    sentence: &'a str,
}

impl Cutter<'_> {
    fn word(&self, at: usize) -> &str {
        self.word.map_or("", |start| &self.sentence[start..at])
    }

    fn last(&self, at: usize) -> Option<char> {
        self.word(at).chars().next_back()
    }

    fn grow(&mut self, at: usize, after: usize) -> usize {
        self.word.get_or_insert(at);
        after
    }

    fn end(&mut self, at: usize, after: usize) -> usize {
        if let Some(start) = self.word.take() {
            self.push(start, at);
        }
        after
    }

    fn alone(&mut self, at: usize, after: usize) -> usize {
        self.end(at, after);
        self.push(at, after);
        after
    }

    fn run(&mut self, at: usize, c: char) -> usize {
        let length = self.sentence[at..].chars().take_while(|&other| other == c).count();
        self.alone(at, at + length)
    }

    fn push(&mut self, start: usize, end: usize) {
        if !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(&self.sentence[start..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(language: &str, sentence: &str) -> String {
        let mut out = String::new();
        Moses::new(language).cut(sentence, &mut out);
        out
    }

    #[test]
    fn punctuation_stands_apart_and_numbers_stay_whole() {
        assert_eq!(cut("en", "Hello, world!"), "Hello , world !");
        assert_eq!(cut("en", "It costs 1,234.50 (or so)."), "It costs 1,234.50 ( or so ) .");
        assert_eq!(cut("en", "well-known -- and so..."), "well-known -- and so ...");
        assert_eq!(cut("en", "see example.com/a_b"), "see example.com / a _ b");
        assert_eq!(cut("de", "Das kostet 3,5 €, ja?"), "Das kostet 3,5 € , ja ?");
    }

    #[test]
    fn stops_go_with_abbreviations_only() {
        assert_eq!(cut("en", "Mr. Smith met J. Jones."), "Mr. Smith met J. Jones .");
        assert_eq!(cut("en", "In the U.S. Army of the U.S."), "In the U.S. Army of the U.S.");
        assert_eq!(cut("en", "He left. She stayed."), "He left . She stayed .");
        assert_eq!(cut("en", "said \"go.\""), "said \" go . \"");
        assert_eq!(cut("ru", "В 1812 г. Москва горела."), "В 1812 г. Москва горела .");
        assert_eq!(cut("en", "В 1812 г. Москва"), "В 1812 г . Москва");
        assert_eq!(cut("de", "Hr. Maier, z.B. Nr. 5."), "Hr. Maier , z.B. Nr. 5 .");
    }

    #[test]
    fn apostrophes_go_by_language() {
        assert_eq!(cut("en", "don't the 1990's 'quote'"), "don 't the 1990 's ' quote '");
        assert_eq!(cut("fr", "l'homme d'aujourd'hui"), "l' homme d' aujourd' hui");
        assert_eq!(cut("de", "Wie geht's?"), "Wie geht ' s ?");
    }

    #[test]
    fn nothing_but_spaces_is_added_or_lost() {
        for sentence in ["", " ", "a.b.", "...", "--", "'", ",", "l'", ".NET", "e\u{301}t\u{e9}"] {
            let bare = |text: &str| text.replace(char::is_whitespace, "");
            assert_eq!(bare(&cut("fr", sentence)), bare(sentence), "{sentence:?}");
        }
    }
}
