//! Text from files and databases, fit for a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with everything that a terminal would obey written out: control characters but for tabs and ends of line,
/// and the marks that turn the direction of writing (Trojan Source: Boucher and Anderson 2021).
///
/// ```
/// assert_eq!(terms::printable("plain\ttext\n"), "plain\ttext\n");
/// assert_eq!(terms::printable("\u{1b}[2J"), "\\u{1b}[2J");
/// ```
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        // CSV ends its lines so.
        let ends_line = c == '\r' && rest.as_str().starts_with('\n');
        match obeyed(c) && !ends_line {
            true => write!(shown, "{}", c.escape_unicode()).expect("a string grows"),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

fn obeyed(c: char) -> bool {
    let direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    direction || c.is_control() && !matches!(c, '\n' | '\t')
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        assert_eq!(printable("ünïcödé 猫 – “x”\n"), "ünïcödé 猫 – “x”\n");
        assert_eq!(printable("a\u{1b}]0;x\u{7}b\r"), "a\\u{1b}]0;x\\u{7}b\\u{d}");
        assert_eq!(printable("a,b\r\n\u{7}\r\n"), "a,b\r\n\\u{7}\r\n");
        assert_eq!(printable("\u{9b}31m\u{202e}txt"), "\\u{9b}31m\\u{202e}txt");
    }
}
