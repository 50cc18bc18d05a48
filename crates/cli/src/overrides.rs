//! Any key of a configuration as a flag of the same name: `--adam.lr 1e-3` is
//! `--set adam.lr=1e-3`.
//!
//! Keys with a dot are many and grow with the model, so they are not listed as flags; they are
//! rewritten before the command line is parsed, and the configuration itself refuses the unknown.

use std::ffi::OsString;

/// Rewrites flags that are dotted keys, up to a bare `--`.
pub(crate) fn rewrite(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut rewritten = Vec::new();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            rewritten.push(argument);
            rewritten.extend(arguments);
            break;
        }
        let Some(key) = argument.to_str().and_then(dotted) else {
            rewritten.push(argument);
            continue;
        };
        rewritten.push("--set".into());
        let mut setting = OsString::from(key);
        if !key.contains('=') {
            setting.push("=");
            setting.push(arguments.next().unwrap_or_default());
        }
        rewritten.push(setting);
    }
    rewritten
}

/// What stands after `--`, if it begins with a key that has a dot.
fn dotted(argument: &str) -> Option<&str> {
    let key = argument.strip_prefix("--")?;
    let name = key.split('=').next()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    (begins && name.contains('.') && name.chars().all(plain)).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_dotted_keys_are_rewritten() {
        let typed = "pretrain --out a.b --adam.lr 1e-3 --text en=a.txt --encoder.norm=post \
                     -- --x.y";
        let expected = "pretrain --out a.b --set adam.lr=1e-3 --text en=a.txt --set \
                        encoder.norm=post -- --x.y";
        let words = |text: &str| text.split_whitespace().map(OsString::from).collect::<Vec<_>>();
        assert_eq!(rewrite(words(typed)), words(expected));
    }
}
