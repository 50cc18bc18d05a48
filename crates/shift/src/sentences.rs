//! Sentences as token ids, ready for a model.

use models::PretrainedModel;
use models::parallel::{ParallelSide, distinct};
use text::SentenceReader;

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
