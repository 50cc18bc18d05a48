//! Sentences of words as inputs: each word is read at its first subword (Devlin et al. 2019, §5.3), in a decoder at its last, and a
//! sentence that is too long is cut into segments between words.

use std::ops::Range;

use crate::features::TokenSource;
use crate::labelled::{Annotation, Example, LabelSet, PreparedInputs};

/// A run of words that fits into one input.
pub(crate) struct Segment {
    pub(crate) words: Range<usize>,
    /// Their token ids, between the special tokens.
    pub(crate) tokens: Vec<u32>,
    /// The position at which each word is read.
    pub(crate) places: Vec<u32>,
}

/// The segments of a sentence, whose first token stands before all words where there is to be a root. Says also whether a single word was too long and lost its end.
pub(crate) fn segments<'a>(
    source: &dyn TokenSource,
    language: usize,
    words: impl Iterator<Item = &'a str>,
    root: bool,
) -> (Vec<Segment>, bool) {
    let words: Vec<&str> = words.collect();
    let encoded = source.encode(language, &words);
    let form = source.input();
    let start = form.frame.0.or(root.then_some(form.specials.0));
    let around = start.iter().chain(&form.frame.1).count();
    let room = source.longest() - around;
    let new = |first: usize| Segment {
        words: first..first,
        tokens: Vec::from_iter(start),
        places: vec![],
    };
    let (mut segments, mut truncated) = (vec![new(0)], false);
    for word in 0..words.len() {
        let from = encoded.firsts[word] as usize;
        let to = encoded.firsts.get(word + 1).map_or(encoded.ids.len(), |&next| next as usize);
        truncated |= to - from > room;
        let ids = &encoded.ids[from..to.min(from + room)];
        let mut segment = segments.pop().expect("there is always one under way");
        if segment.tokens.len() - start.iter().count() + ids.len() > room {
            segments.push(segment);
            segment = new(word);
        }
        let first = segment.tokens.len();
        segment.places.push(form.place(first..first + ids.len()));
        segment.tokens.extend_from_slice(ids);
        segment.words.end = word + 1;
        segments.push(segment);
    }
    for segment in &mut segments {
        segment.tokens.extend(form.frame.1);
    }
    (segments, truncated)
}

/// Sentences whose every word has a label, as inputs.
pub(crate) fn tagged_inputs<'a, T: ToString + 'a>(
    source: &dyn TokenSource,
    language: usize,
    labels: &LabelSet,
    sentences: impl Iterator<Item = (Vec<&'a str>, &'a [T])>,
) -> PreparedInputs {
    let mut prepared = PreparedInputs::default();
    for (item, (words, tags)) in sentences.enumerate() {
        let (segments, truncated) = segments(source, language, words.into_iter(), false);
        prepared.truncated += usize::from(truncated);
        prepared.split += usize::from(segments.len() > 1);
        for segment in segments {
            let label = |tag: &T| Annotation::of_label(labels.id(&tag.to_string()));
            let gold = tags[segment.words].iter().map(label).collect();
            let (tokens, positions) = (segment.tokens, segment.places);
            prepared.examples.push(Example { tokens, positions, gold, item });
        }
    }
    prepared
}
