//! Language codes.

/// Whether a code stands for Chinese, whatever the script or region behind it.
pub fn is_chinese(code: &str) -> bool {
    matches!(code.split(['-', '_']).next(), Some("zh" | "cmn"))
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
