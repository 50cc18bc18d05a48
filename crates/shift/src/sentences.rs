//! Sentences as token ids, ready for a model.

use models::PretrainedModel;
use models::parallel::ParallelSide;
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

/// The ids of a line between its special tokens; none if it is empty or too long.
pub(crate) fn tokenize(reader: &mut SentenceReader, line: &str) -> Option<Vec<u32>> {
    let sentence = reader.sentence(line);
    (!sentence.truncated && !line.trim().is_empty()).then_some(sentence.ids)
}

/// Tokenizes one side of parallel text, at most the first `limit` sentences of it.
pub fn sentences(
    model: &PretrainedModel,
    side: &ParallelSide,
    limit: usize,
) -> Result<TokenizedSentences> {
    let mut reader = model.reader(&side.language)?;
    let ids = side.lines.iter().take(limit).map(|line| tokenize(&mut reader, line)).collect();
    Ok(TokenizedSentences { language: reader.language(), ids })
}
