//! Digests in text files that are read again: a bit that changed on the disk is noticed, where the text
//! would still be valid.
//!
//! An object of JSON carries the BLAKE3 digest of its content (not of its layout) as its last key, a text
//! of TOML one of all that stands before as its last line. Files without a digest, as older releases
//! wrote them, are taken as they are.

use serde::de::DeserializeOwned;
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

/// Takes the digest out of a JSON value; false where it is not that of the rest, or under another name.
pub fn open_json(value: &mut Value) -> bool {
    match value.as_object_mut().and_then(|object| object.remove(KEY)) {
        Some(seal) => seal == digest(value),
        None => !has_renamed_digest(value),
    }
}

/// What the text of a JSON object says; why not, where it is not what was written.
pub fn read_json<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let mut value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match open_json(&mut value) {
        true => serde_json::from_value(value).map_err(|error| error.to_string()),
        false => Err(ALTERED.to_owned()),
    }
}

/// Whether an entry of an object is the digest of the rest: the bit that changed was one of its name.
fn has_renamed_digest(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    let is_hex = |seal: &&str| seal.len() == 64 && seal.bytes().all(|b| b.is_ascii_hexdigit());
    let mut seals =
        object.iter().filter_map(|(key, seal)| Some((key, seal.as_str().filter(is_hex)?)));
    let is_of_rest = |key: &str, seal: &str| {
        let mut rest = object.clone();
        rest.remove(key);
        seal == digest(&Value::Object(rest))
    };
    seals.any(|(key, seal)| is_of_rest(key, seal))
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
    let Some((body, last)) = text.trim_end().rsplit_once('\n') else { return true };
    let digest = blake3::hash(body.trim_end().as_bytes()).to_hex();
    match last.strip_prefix(COMMENT) {
        Some(seal) => *seal == *digest,
        // Unless the bit that changed was one of the comment's first word.
        None => !last.ends_with(&*digest),
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
                // Either noticed, or a blank that became another one.
                let noticed = !open_json(&mut altered);
                assert!(noticed || altered == original, "bit {bit} of {sealed}");
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
        for bit in (0..sealed.len() * 8).filter(|bit| bit / 8 + 1 < sealed.len()) {
            let mut bytes = sealed.clone().into_bytes();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            // Blanks at the end of the body do not count; what is no comment any more is no TOML.
            let harmless = bit / 8 == last - 1 || !text[last..].starts_with('#');
            assert!(!is_sound_toml(&text) || harmless, "bit {bit} of {text}");
        }
    }
}
