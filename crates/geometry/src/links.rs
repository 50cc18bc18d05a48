//! Pairs of words in translated sentences, by links between them, and a map for each layer.
//!
//! Links are in the form of Pharaoh: `i-j` says that word i of the first side goes with word j of
//! the second, both counted from 0.

use std::path::Path;

use text::Chance;
use train::Pretrained;

use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::states::{for_each, lines, open};

/// The links of each pair of sentences.
pub type Links = Vec<Vec<(u32, u32)>>;

/// Reads links; a sentence may have none. `lines` is how many pairs of sentences there are.
pub fn read(path: &Path, lines: usize) -> Result<Links> {
    let text = std::fs::read_to_string(path).map_err(|source| files::Error::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    })?;
    let parse = |(number, line): (usize, &str)| {
        line.split_whitespace()
            .map(|link| {
                parse(link).ok_or_else(|| {
                    let place = format!("{}:{}", path.display(), number + 1);
                    Error::input(place, format!("`{link}` is no link"), "write links as 0-0 1-2")
                })
            })
            .collect::<Result<Vec<_>>>()
    };
    let links = text.lines().enumerate().map(parse).collect::<Result<Links>>()?;
    if links.len() != lines {
        let reason = format!("has {} lines for {lines} pairs of sentences", links.len());
        return Err(Error::input(path.display(), reason, "give the links of this very text"));
    }
    if links.iter().all(Vec::is_empty) {
        return Err(Error::input(path.display(), "holds no link", "align the text first"));
    }
    Ok(links)
}

fn parse(link: &str) -> Option<(u32, u32)> {
    let (a, b) = link.split_once('-')?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

/// Keeps so many links at most, chosen by chance.
pub fn thin(links: &mut Links, most: usize, seed: u64) -> usize {
    let total: usize = links.iter().map(Vec::len).sum();
    if total <= most {
        return total;
    }
    let chance = Chance::new(seed, "links");
    let mut ranks: Vec<u64> = (0..total as u64).map(|item| chance.rank(item)).collect();
    let (_, bound, _) = ranks.select_nth_unstable(most);
    let (bound, mut item) = (*bound, 0);
    for links in links.iter_mut() {
        links.retain(|_| {
            item += 1;
            chance.rank(item - 1) < bound
        });
    }
    most
}

/// Which side of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The number before the dash.
    First,
    /// The number after it.
    Second,
}

impl Side {
    fn of(self, link: (u32, u32)) -> usize {
        match self {
            Side::First => link.0 as usize,
            Side::Second => link.1 as usize,
        }
    }
}

/// The vectors of one side's linked words at every layer, in the order of the links. Words are told
/// apart by spaces, as the links count them, and a word is the mean of its pieces.
pub fn vectors(
    model: &mut Pretrained,
    language: &str,
    path: &Path,
    links: &Links,
    side: Side,
) -> Result<Vec<Matrix>> {
    let mut reader = model.reader(language)?;
    let (dim, layers) = (model.model.config().dim, model.model.config().layers + 1);
    let mut sentences: Vec<(Vec<u32>, Vec<u32>)> = Vec::new();
    let source = open(path)?;
    for line in lines(&source) {
        let line = line?;
        let encoded = reader.raw_words(line.split_whitespace());
        let words = encoded.firsts.len();
        if let Some(&link) =
            links.get(sentences.len()).into_iter().flatten().find(|&&link| side.of(link) >= words)
        {
            let place = format!("{}:{}", path.display(), sentences.len() + 1);
            let reason = format!("has {words} words, but a link names word {}", side.of(link));
            return Err(Error::input(place, reason, "words count from 0, and spaces part them"));
        }
        if encoded.ids.len() > reader.room() {
            let place = format!("{}:{}", path.display(), sentences.len() + 1);
            let reason =
                format!("has {} tokens, the model reads {}", encoded.ids.len(), reader.room());
            return Err(Error::input(
                place,
                reason,
                "leave out such a line, its translation and its links",
            ));
        }
        let ends = encoded.firsts.iter().copied().chain([encoded.ids.len() as u32]).collect();
        sentences.push((reader.framed(&encoded.ids), ends));
    }
    if sentences.len() != links.len() {
        let reason = format!("has {} lines for {} lines of links", sentences.len(), links.len());
        return Err(Error::input(path.display(), reason, "give the text that was aligned"));
    }
    let mut values = vec![Vec::new(); layers];
    let ids = sentences.iter().map(|(ids, _)| Ok::<_, Error>(ids.clone()));
    for_each(model, reader.language(), ids, |states| {
        let linked = |sentence: usize| {
            let (start, number) = (states.inner(sentence).start, states.first + sentence);
            let bounds = &sentences[number].1;
            links[number].iter().map(move |&link| {
                let word = side.of(link);
                start + bounds[word] as usize..start + bounds[word + 1] as usize
            })
        };
        let ranges: Vec<_> = (0..states.sentences()).flat_map(linked).collect();
        for (layer, values) in values.iter_mut().enumerate() {
            values.extend(states.means(layer, &ranges));
        }
        Ok(())
    })?;
    Ok(values.into_iter().map(|values| Matrix::new(values.len() / dim, dim, values)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_or_named() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("links");
        let read = |text: &str, lines| {
            std::fs::write(&path, text).unwrap();
            read(&path, lines).map_err(|error| error.to_string())
        };
        assert_eq!(
            read("0-0 2-1\n\n1-1\n", 3),
            Ok(vec![vec![(0, 0), (2, 1)], vec![], vec![(1, 1)]])
        );
        assert!(read("0-0\n1:1\n", 2).unwrap_err().contains(":2: `1:1` is no link"));
        assert!(read("0-0\n", 2).unwrap_err().contains("has 1 lines for 2 pairs"));
        assert!(read("\n\n", 2).unwrap_err().contains("holds no link"));
    }

    #[test]
    fn thinning_keeps_a_fixed_number() {
        let mut links: Links = (0..100).map(|i| vec![(0, 0); i % 5]).collect();
        let before = links.clone();
        assert_eq!(thin(&mut links, 1000, 1), 200);
        assert_eq!(links, before);
        assert_eq!(thin(&mut links, 50, 1), 50);
        assert_eq!(links.iter().map(Vec::len).sum::<usize>(), 50);
    }
}
