//! Errors of worlds, each with its cause and a remedy.

use std::path::Path;

pub use terms::Error;

/// A refused key, dotted as in `language.1.anchors`.
pub(crate) fn config(
    key: impl Into<String>,
    reason: impl Into<String>,
    remedy: impl Into<String>,
) -> Error {
    let (key, reason, remedy) = (key.into(), reason.into(), remedy.into());
    Error::of_key(key.clone(), format!("{key}: {reason}; {remedy}"))
}

/// What is not TOML, or holds an unknown key or a value of the wrong type; the parser's words have line and column.
pub(crate) fn toml(origin: &str, error: &toml::de::Error) -> Error {
    Error::usage(format!("{origin}: {}", error.to_string().trim_end()))
}

/// The output folder holds something that must not be overwritten.
pub(crate) fn occupied(path: &Path, reason: &str, remedy: &str) -> Error {
    Error::request(format!("{} {reason}", path.display()), remedy)
}

/// So small a world cannot say so many different things; the key sets how many.
pub(crate) fn exhausted(what: &str, key: &'static str, wanted: usize, found: usize) -> Error {
    let reason = format!("only {found} different {what} found where {key} asks for {wanted}");
    Error::setting(key, reason, format!("lower {key}, or raise meaning.lemmas"))
}
