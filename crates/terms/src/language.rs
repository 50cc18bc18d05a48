//! Language codes.

/// Whether a code stands for Chinese, whatever the script or region behind it.
pub fn is_chinese(code: &str) -> bool {
    matches!(code.split(['-', '_']).next(), Some("zh" | "cmn"))
}

/// What follows the code of a language in an encoder that is trained on it twice: `en` and `en-b`.
pub const SECOND_COPY: &str = "-b";

/// The language that a code stands for: the second copy of a language is written by its rules.
pub fn written_language(code: &str) -> &str {
    code.strip_suffix(SECOND_COPY).unwrap_or(code)
}

/// The ISO 639-3 code of a language of XNLI, as the files of Tatoeba have it; any other code as it is.
pub fn iso639_3(code: &str) -> &str {
    match code {
        "ar" => "ara",
        "bg" => "bul",
        "de" => "deu",
        "el" => "ell",
        "en" => "eng",
        "es" => "spa",
        "fr" => "fra",
        "hi" => "hin",
        "ru" => "rus",
        "sw" => "swh",
        "th" => "tha",
        "tr" => "tur",
        "ur" => "urd",
        "vi" => "vie",
        "zh" => "cmn",
        other => other,
    }
}
