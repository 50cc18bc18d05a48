//! The contextual vectors of linked words in translated sentences.
//!
//! Links are in Pharaoh format: `i-j` says that word i of the first side is aligned to word j of the
//! second, both counted from 0. A word is the mean of its subwords.

use std::path::Path;

use arrays::Matrix;
use rustc_hash::FxHashSet;
use terms::RowCounts;
use text::RandomStreams;

use crate::error::{Error, Result};
use crate::parallel::ParallelSide;
use crate::pretrained::PretrainedModel;
use crate::states::for_each;

/// The links of each pair of sentences.
pub type WordLinks = Vec<Vec<(u32, u32)>>;

/// Reads links; a sentence may have none. `lines` is how many pairs of sentences there are.
pub fn read(path: &Path, lines: usize) -> Result<WordLinks> {
    let text = files::limits::read_text(path).map_err(|source| files::Error::Io {
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
    let links = text.lines().enumerate().map(parse).collect::<Result<WordLinks>>()?;
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

/// Keeps a random sample of `most` links at most; returns how many there are then.
pub fn sample(links: &mut WordLinks, most: usize, seed: u64) -> usize {
    let total: usize = links.iter().map(Vec::len).sum();
    if total <= most {
        return total;
    }
    let chance = RandomStreams::new(seed, "links");
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
pub enum LinkSide {
    /// The number before the dash.
    First,
    /// The number after it.
    Second,
}

impl LinkSide {
    fn of(self, link: (u32, u32)) -> usize {
        match self {
            LinkSide::First => link.0 as usize,
            LinkSide::Second => link.1 as usize,
        }
    }
}

/// The sentences of one side as a model's subwords.
pub struct TokenizedSide {
    language: usize,
    sentences: Vec<Sentence>,
}

/// A sentence as subwords: their ids with the special tokens, and where words begin and the last ends;
/// none where it is longer than the model reads.
type Sentence = Option<(Vec<u32>, Vec<u32>)>;

impl TokenizedSide {
    /// Tokenizes a side. Words are separated by spaces, as the links count them; a link to a word that is
    /// not there is refused.
    pub fn new(
        model: &PretrainedModel,
        text: &ParallelSide,
        links: &WordLinks,
        side: LinkSide,
    ) -> Result<Self> {
        let mut reader = model.reader(&text.language)?;
        if text.lines.len() != links.len() {
            let reason =
                format!("has {} lines for {} lines of links", text.lines.len(), links.len());
            return Err(Error::input(&text.file, reason, "give the text that was aligned"));
        }
        let mut sentences = Vec::new();
        for (number, (line, links)) in text.lines.iter().zip(links).enumerate() {
            let encoded = reader.raw_words(line.split_whitespace());
            let words = encoded.firsts.len();
            if let Some(&link) = links.iter().find(|&&link| side.of(link) >= words) {
                let place = text.place(number);
                let reason = format!("has {words} words, but a link names word {}", side.of(link));
                return Err(Error::input(
                    place,
                    reason,
                    "words count from 0, and spaces part them",
                ));
            }
            let fits = encoded.ids.len() <= reader.max_subwords();
            sentences.push(fits.then(|| {
                let end = encoded.ids.len() as u32;
                let bounds = encoded.firsts.iter().copied().chain([end]).collect();
                (reader.with_special_tokens(&encoded.ids), bounds)
            }));
        }
        Ok(Self { language: reader.language(), sentences })
    }
}

/// Removes the links of rows that equal an earlier one (those not among the `distinct` ones), and of rows
/// of which a side is longer than its model reads; returns how many rows these are.
pub fn leave_out(
    links: &mut WordLinks,
    sides: [&TokenizedSide; 2],
    distinct: &[usize],
) -> Result<RowCounts> {
    let fits = |&row: &usize| sides.iter().all(|side| side.sentences[row].is_some());
    let used: FxHashSet<usize> = distinct.iter().copied().filter(fits).collect();
    for (row, links) in links.iter_mut().enumerate() {
        if !used.contains(&row) {
            links.clear();
        }
    }
    let counts = RowCounts {
        rows: links.len(),
        repeated: links.len() - distinct.len(),
        too_long: distinct.len() - used.len(),
        used: used.len(),
    };
    match links.iter().all(Vec::is_empty) {
        false => Ok(counts),
        true => Err(Error::input(
            "the parallel text",
            format!(
                "{} pairs have a side longer than the model reads, and the rest no link",
                counts.too_long
            ),
            "give shorter sentences, or a model that reads more",
        )),
    }
}

/// The vectors of one side's linked words at every layer (links x dim), in the order of the links.
pub fn vectors(
    model: &mut PretrainedModel,
    text: &TokenizedSide,
    links: &WordLinks,
    side: LinkSide,
) -> Result<Vec<Matrix>> {
    let (dim, layers) = (model.encoder.config().dim, model.encoder.config().layers + 1);
    let linked = text.sentences.iter().zip(links).filter(|(_, links)| !links.is_empty());
    let linked: Vec<_> =
        linked.filter_map(|(sentence, links)| Some((sentence.as_ref()?, links))).collect();
    let mut values = vec![Vec::new(); layers];
    let ids = linked.iter().map(|((ids, _), _)| Ok::<_, Error>(ids.clone()));
    for_each(model.parts(), text.language, ids, |states| {
        let words = |sentence: usize| {
            let start = states.inner(sentence).start;
            let ((_, bounds), links) = linked[states.first + sentence];
            links.iter().map(move |&link| {
                let word = side.of(link);
                start + bounds[word] as usize..start + bounds[word + 1] as usize
            })
        };
        let ranges: Vec<_> = (0..states.sentences()).flat_map(words).collect();
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
    fn pairs_that_are_too_long_lose_their_links() {
        let side = |fits: [bool; 3]| TokenizedSide {
            language: 0,
            sentences: fits.map(|fits| fits.then(|| (vec![0, 1], vec![0]))).to_vec(),
        };
        let (a, b) = (side([true, false, true]), side([true, true, true]));
        let mut links = vec![vec![(0, 0)], vec![(0, 0), (1, 1)], vec![]];
        let counts = leave_out(&mut links, [&a, &b], &[0, 1]).unwrap();
        assert_eq!(counts, RowCounts { rows: 3, repeated: 1, too_long: 1, used: 1 });
        assert_eq!(links, [vec![(0, 0)], vec![], vec![]]);
        let short = side([false, true, true]);
        let none = leave_out(&mut links, [&a, &short], &[0, 1, 2]).unwrap_err();
        assert!(none.to_string().contains("2 pairs have a side longer"), "{none}");
    }

    #[test]
    fn a_repeated_row_loses_its_links() {
        let side = TokenizedSide { language: 0, sentences: vec![Some((vec![0, 1], vec![0])); 3] };
        let mut links = vec![vec![(0, 0)]; 3];
        let counts = leave_out(&mut links, [&side, &side], &[0, 2]).unwrap();
        assert_eq!(counts, RowCounts { rows: 3, repeated: 1, too_long: 0, used: 2 });
        assert_eq!(links, [vec![(0, 0)], vec![], vec![(0, 0)]]);
    }

    #[test]
    fn a_sample_has_a_fixed_number() {
        let mut links: WordLinks = (0..100).map(|i| vec![(0, 0); i % 5]).collect();
        let before = links.clone();
        assert_eq!(sample(&mut links, 1000, 1), 200);
        assert_eq!(links, before);
        assert_eq!(sample(&mut links, 50, 1), 50);
        assert_eq!(links.iter().map(Vec::len).sum::<usize>(), 50);
    }
}
