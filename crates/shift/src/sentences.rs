//! Sentences as token ids, ready for a model.

use std::ops::Range;

use encoder::Encoder;
use models::PretrainedModel;
use models::parallel::{ParallelSide, distinct};
use text::{Frame, SentenceReader, Vocabulary};

use crate::error::Result;

/// Sentences of one language as token ids.
pub struct TokenizedSentences {
    /// The language's number.
    pub language: usize,
    /// Vocabulary ids, special tokens included; none for a sentence that is empty or too long for the
    /// model.
    pub ids: Vec<Option<Vec<u32>>>,
}

/// The distinct rows of parallel text as token ids.
pub struct ParallelTokens {
    /// Rows that were read.
    pub rows: usize,
    /// Rows that equal an earlier one on every side, and were dropped.
    pub repeated: usize,
    /// The other rows, a side for each language.
    pub sides: Vec<TokenizedSentences>,
}

/// Which rows a model's head reads for a text's own tokens: one for masked tokens each of them, one for the next token the row before
/// each; the first of a text without a special token before it then has none.
#[derive(Clone, Copy)]
pub(crate) struct HeadRows {
    pub(crate) frame: Frame,
    pub(crate) next: bool,
}

impl HeadRows {
    pub(crate) fn of(vocabulary: &Vocabulary, encoder: &Encoder) -> Self {
        let next = encoder.config().parts.attention.causal;
        let frame = match next {
            true => vocabulary.frame(),
            false => Frame(Some(0), Some(0)),
        };
        Self { frame, next }
    }

    /// The rows that are read, of a sequence's.
    pub(crate) fn read(self, span: Range<usize>) -> Range<usize> {
        let own = self.frame.within(span.clone());
        match self.next {
            true => own.start.max(span.start + 1) - 1..own.end.max(span.start + 1) - 1,
            false => own,
        }
    }

    /// The tokens that stand where something is predicted.
    pub(crate) fn predicted(self, ids: &[u32]) -> &[u32] {
        let (rows, by) = (self.read(0..ids.len()), usize::from(self.next));
        &ids[rows.start + by..rows.end + by]
    }

    /// A text's own tokens.
    pub(crate) fn own(self, ids: &[u32]) -> &[u32] {
        &ids[self.frame.within(0..ids.len())]
    }
}

/// The ids of a line between its special tokens; none if it is empty or too long.
pub(crate) fn tokenize(reader: &mut SentenceReader, line: &str) -> Option<Vec<u32>> {
    let sentence = reader.sentence(line);
    (!sentence.truncated && !line.trim().is_empty()).then_some(sentence.ids)
}

/// Tokenizes parallel text: rows that equal no earlier one on every side, at most the first `limit`.
///
/// # Errors
/// Where the model does not have a language.
pub fn tokenize_parallel(
    model: &PretrainedModel,
    sides: &[ParallelSide],
    limit: usize,
) -> Result<ParallelTokens> {
    let all = sides.first().map_or(0, |side| side.lines.len());
    let mut distinct = distinct(sides);
    distinct.truncate(limit);
    // Where there is a limit, reading ends with the last row that is used.
    let rows =
        if distinct.len() < limit { all } else { distinct.last().map_or(0, |last| last + 1) };
    let tokenized = sides.iter().map(|side| {
        let mut reader = model.reader(&side.language)?;
        let ids = distinct.iter().map(|&row| tokenize(&mut reader, &side.lines[row])).collect();
        Ok(TokenizedSentences { language: reader.language(), ids })
    });
    let repeated = rows - distinct.len();
    Ok(ParallelTokens { rows, repeated, sides: tokenized.collect::<Result<_>>()? })
}
