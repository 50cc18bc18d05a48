//! Sentences as ids, ready for a model.

use encoder::Batch;
use text::{LineRules, SentenceReader, TextSource, sentence_on};
use train::Pretrained;

use crate::error::Result;

/// Tokens encoded at once: enough to keep the products large, and little memory.
const AT_ONCE: usize = 2048;

/// Sentences of one language: the frame, and the ids between it.
pub struct Sentences {
    /// The language's number.
    pub language: usize,
    /// Ids of the vocabulary, with the frame around them; a sentence that is too long for the model,
    /// or empty, is none.
    pub ids: Vec<Option<Vec<u32>>>,
}

impl Sentences {
    /// How many sentences are of no use.
    pub fn unusable(&self) -> usize {
        self.ids.iter().filter(|ids| ids.is_none()).count()
    }
}

/// The sentence of a line between its frame; none if it is empty or too long.
pub(crate) fn framed(reader: &mut SentenceReader, line: &str) -> Option<Vec<u32>> {
    let sentence = reader.sentence(line);
    (!sentence.truncated && !line.trim().is_empty()).then_some(sentence.ids)
}

/// Reads a file of one sentence a line; of a file whose name ends in `.tsv`, the first column.
pub fn sentences(model: &Pretrained, language: &str, file: &str) -> Result<Sentences> {
    let mut reader = model.reader(language)?;
    let source = TextSource::new(language, &[file.to_owned()])?;
    let mut lines = source.raw_lines(LineRules::default());
    let mut ids = Vec::new();
    while let Some(line) = lines.next_line()? {
        ids.push(framed(&mut reader, sentence_on(file, line)));
    }
    Ok(Sentences { language: reader.language(), ids })
}

/// Cuts sentences into batches of about the same number of tokens: which sentences, and the batch.
pub(crate) fn batches<'a>(
    model: &Pretrained,
    language: usize,
    sentences: &[&'a [u32]],
) -> Vec<(Vec<&'a [u32]>, Batch)> {
    let mut batches = Vec::new();
    let (mut chosen, mut tokens) = (Vec::new(), 0);
    for &sentence in sentences {
        tokens += sentence.len();
        chosen.push(sentence);
        if tokens >= AT_ONCE {
            batches.push(std::mem::take(&mut chosen));
            tokens = 0;
        }
    }
    if !chosen.is_empty() {
        batches.push(chosen);
    }
    let made = |chosen: Vec<&'a [u32]>| {
        let batch = model.batch(language, chosen.iter().copied());
        (chosen, batch)
    };
    batches.into_iter().map(made).collect()
}
