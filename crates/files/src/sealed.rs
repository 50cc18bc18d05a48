//! Digests in text files that are read again: a bit that changed on the disk is noticed, where the text
//! would still be valid.
//!
//! An object of JSON carries the BLAKE3 digest of its content (not of its layout) as its last key, a text
//! of TOML one of all that stands before as its last line. Files without a digest, as older releases
//! wrote them, are taken as they are.

use serde_json::Value;

const KEY: &str = "blake3";
const COMMENT: &str = "# blake3 ";

/// What is wrong with a text whose digest differs, and what to do about it.
pub const ALTERED: &str = "was altered since it was written (its digest differs)";

/// Adds the digest to the text of a JSON object, which keeps its layout.
///
/// # Panics
///
/// Where the text is no JSON object.
pub fn seal_json(object: &str) -> String {
    let value: Value = serde_json::from_str(object).expect("JSON");
    let entries = value.as_object().expect("an object").len();
    let body = object.trim_end().strip_suffix('}').expect("an object ends so").trim_end();
    let (comma, seal) = (if entries == 0 { "" } else { "," }, digest(&value));
    match object.contains('\n') {
        true => format!("{body}{comma}\n  \"{KEY}\": \"{seal}\"\n}}"),
        false => format!("{body}{comma}\"{KEY}\":\"{seal}\"}}"),
    }
}

/// Takes the digest out of a JSON value; false where it is not that of the rest.
pub fn open_json(value: &mut Value) -> bool {
    let seal = value.as_object_mut().and_then(|object| object.remove(KEY));
    seal.is_none_or(|seal| seal == digest(value))
}

fn digest(value: &Value) -> String {
    let bytes = serde_json::to_vec(value).expect("a value is JSON");
    blake3::hash(&bytes).to_hex().to_string()
}

/// Adds a last line with the digest to a text of TOML.
pub fn seal_toml(text: &str) -> String {
    let text = text.trim_end();
    format!("{text}\n{COMMENT}{}\n", blake3::hash(text.as_bytes()).to_hex())
}

/// Whether the digest of a text of TOML, if it has one, is that of the rest.
pub fn is_sound_toml(text: &str) -> bool {
    match text.trim_end().rsplit_once('\n') {
        Some((body, last)) => last
            .strip_prefix(COMMENT)
            .is_none_or(|seal| *seal == *blake3::hash(body.trim_end().as_bytes()).to_hex()),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_json_is_noticed() {
        let plain =
            "{\n  \"b\": [1.5, 1e-300],\n  \"a\": {\"c\": null, \"d\": 18446744073709551615}\n}";
        for plain in [plain, "{\"a\":0.1}", "{}"] {
            let sealed = seal_json(plain);
            let mut value: Value = serde_json::from_str(&sealed).unwrap();
            assert!(open_json(&mut value), "{sealed}");
            let original: Value = serde_json::from_str(plain).unwrap();
            assert_eq!(value, original);
            assert!(open_json(&mut value), "without a digest it is taken as it is");
            for bit in 0..sealed.len() * 8 {
                let mut bytes = sealed.clone().into_bytes();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let Ok(mut altered) = serde_json::from_slice::<Value>(&bytes) else { continue };
                // Either noticed, or a blank that became another one, or the name of the key itself.
                let noticed = !open_json(&mut altered);
                let renamed = altered
                    .as_object()
                    .is_some_and(|o| o.len() > original.as_object().unwrap().len());
                assert!(noticed || altered == original || renamed, "bit {bit} of {sealed}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_toml_is_noticed() {
        let sealed = seal_toml("a = 1\n\n[b]\nc = 0.5\n");
        assert!(is_sound_toml(&sealed) && is_sound_toml("a = 1\n") && is_sound_toml(""));
        let table: String = sealed.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(table, "a = 1[b]c = 0.5");
        let last = sealed.rfind('#').unwrap();
        for bit in 0..last * 8 {
            let mut bytes = sealed.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            // Blanks at the end of the body do not count.
            assert!(!is_sound_toml(&text) || bit / 8 >= last - 1, "bit {bit}");
        }
    }
}
