//! The seam to the library `tokenizers`: what its files hold is tried out when they are read, and where it panics
//! instead of failing, that is an error with the file's name.

use std::path::Path;

use files::At;
use terms::guarded;
use tokenizers::Tokenizer;

use crate::{Error, Result};

/// The largest tokenizer that is read: those of the largest vocabularies have 20 MB.
const LARGEST: u64 = 512 << 20;

/// Makes a tokenizer of a file's content and tries it out, so that what it cannot do is known before it is used.
pub fn tokenizer_of(
    path: &Path,
    remedy: &'static str,
    make: impl FnOnce() -> tokenizers::Result<Tokenizer>,
) -> Result<Tokenizer> {
    let invalid =
        || Error::file(path, "is not a valid tokenizer: the library that reads it fails", remedy);
    let tried = guarded(|| {
        let tokenizer = make()?;
        for text in ["", "a", "Two words, 3 4.", "ünïcödé 猫 \u{1f469}\u{200d}\u{1f52c} <mask>"]
        {
            for special in [false, true] {
                // A text that a model has no subword for is no fault of the file.
                let ids =
                    tokenizer.encode_fast(text, special).map(|encoded| encoded.get_ids().to_vec());
                let _ = tokenizer.decode(&ids.unwrap_or_default(), true);
            }
        }
        tokenizer.get_vocab(true);
        Ok(tokenizer)
    });
    tried.ok_or_else(invalid)?.map_err(|error: tokenizers::Error| {
        // A message may carry the whole text of the file.
        let reason: String = error.to_string().chars().take(300).collect();
        Error::file(path, reason, remedy)
    })
}

/// Reads a `tokenizer.json`.
pub fn read_tokenizer(path: &Path, remedy: &'static str) -> Result<Tokenizer> {
    let size = path.metadata().at(path, "look at the tokenizer")?.len();
    if size > LARGEST {
        let reason =
            format!("has {} MB, more than any tokenizer ({} MB)", size >> 20, LARGEST >> 20);
        return Err(Error::file(path, reason, remedy));
    }
    let bytes = std::fs::read(path).at(path, "read the tokenizer")?;
    files::refuse_pointer(path, &bytes)?;
    tokenizer_of(path, remedy, || Tokenizer::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these made `tokenizers` 0.23 panic.
    #[test]
    fn tokenizers_that_panic_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokenizer.json");
        let model = r#""model":{"type":"WordPiece","unk_token":"[UNK]","continuing_subword_prefix":"\#\#","max_input_chars_per_word":100,"vocab":{"[UNK]":0,"a":1}}"#.replace("\\#", "#");
        let with = |rest: &str| {
            format!(
                r#"{{"version":"1.0","truncation":null,"padding":null,"added_tokens":[],{rest},{model}}}"#
            )
        };
        let template = r#""normalizer":null,"pre_tokenizer":null,"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"B","type_id":0}}],"pair":[],"special_tokens":{"[CLS]":{"id":"[CLS]","ids":[],"tokens":["[CLS]"]}}},"decoder":null"#;
        for text in [with(template), "{".to_owned(), "[]".to_owned(), String::new()] {
            std::fs::write(&path, &text).unwrap();
            let error = read_tokenizer(&path, "save it again").unwrap_err().to_string();
            assert!(
                error.contains("tokenizer.json: ") && error.ends_with("; save it again"),
                "{error}"
            );
        }
        let plain =
            r#""normalizer":null,"pre_tokenizer":null,"post_processor":null,"decoder":null"#;
        std::fs::write(&path, with(plain)).unwrap();
        read_tokenizer(&path, "save it again").unwrap();
    }
}
