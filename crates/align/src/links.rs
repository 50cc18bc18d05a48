//! The links of one sentence pair, and how they are written.

use std::fmt;

/// Pairs of places (source, target), counted from 0, in rising order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WordLinks(Vec<(u16, u16)>);

impl WordLinks {
    /// Puts links in order and drops those that come twice.
    pub fn new(mut links: Vec<(u16, u16)>) -> Self {
        links.sort_unstable();
        links.dedup();
        Self(links)
    }

    /// The links in rising order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u16)> {
        self.0.iter().copied()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a link is among them.
    pub fn contains(&self, link: (u16, u16)) -> bool {
        self.0.binary_search(&link).is_ok()
    }

    /// Reads `0-0 1-2`; `None` where it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let links = text.split_ascii_whitespace().map(|link| parse_link(link, &['-']));
        let links: Option<Vec<_>> = links.map(|link| link.map(|(link, _)| link)).collect();
        Some(Self::new(links?))
    }
}

/// A link whose two places have one of `marks` between them, and that mark.
pub(crate) fn parse_link(text: &str, marks: &[char]) -> Option<((u16, u16), char)> {
    let at = text.find(marks)?;
    let (source, rest) = text.split_at(at);
    let mark = rest.chars().next()?;
    let place = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse().ok(),
        false => None,
    };
    Some(((place(source)?, place(&rest[mark.len_utf8()..])?), mark))
}

impl fmt::Display for WordLinks {
    /// As Pharaoh wrote them: `0-0 1-2`.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (index, (source, target)) in self.iter().enumerate() {
            let space = if index > 0 { " " } else { "" };
            write!(f, "{space}{source}-{target}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read_again() {
        let links = WordLinks::new(vec![(2, 0), (0, 1), (0, 1), (10, 9)]);
        assert_eq!(links.to_string(), "0-1 2-0 10-9");
        assert_eq!(WordLinks::parse("10-9\t0-1  2-0"), Some(links));
        assert_eq!(WordLinks::parse(""), Some(WordLinks::default()));
        for bad in ["1", "1-", "-1", "1-2-3", "+1-2", "a-b", "1-99999", "1?2"] {
            assert_eq!(WordLinks::parse(bad), None, "{bad}");
        }
    }
}
