//! Sentences as token ids, ready for a model.

use models::PretrainedModel;
use text::{LineRules, SentenceReader, TextSource, sentence_on};

use crate::error::Result;

/// Sentences of one language as token ids.
pub struct Sentences {
    /// The language's number.
    pub language: usize,
    /// Vocabulary ids, special tokens included; none for a sentence that is empty or too long for the
    /// model.
    pub ids: Vec<Option<Vec<u32>>>,
}

impl Sentences {
    /// How many sentences are of no use.
    pub fn unusable(&self) -> usize {
        self.ids.iter().filter(|ids| ids.is_none()).count()
    }
}

/// The ids of a line between its special tokens; none if it is empty or too long.
pub(crate) fn framed(reader: &mut SentenceReader, line: &str) -> Option<Vec<u32>> {
    let sentence = reader.sentence(line);
    (!sentence.truncated && !line.trim().is_empty()).then_some(sentence.ids)
}

/// Reads a file of one sentence a line; of a file whose name ends in `.tsv`, the first column.
pub fn sentences(model: &PretrainedModel, language: &str, file: &str) -> Result<Sentences> {
    let mut reader = model.reader(language)?;
    let source = TextSource::new(language, &[file.to_owned()])?;
    let mut lines = source.raw_lines(LineRules::default());
    let mut ids = Vec::new();
    while let Some(line) = lines.next_line()? {
        ids.push(framed(&mut reader, sentence_on(file, line)));
    }
    Ok(Sentences { language: reader.language(), ids })
}
