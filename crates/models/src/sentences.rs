//! Files of sentences, and the vectors of sentences at every layer.

use std::cell::Cell;
use std::path::Path;

use arrays::Matrix;
use text::{LineRules, TextSource, sentence_on};

use crate::error::{Error, Result};
use crate::pretrained::PretrainedModel;
use crate::states::{Pooling, for_each};

/// The sentences of a file, one a line (of a `.tsv` file, the first column). A line without text is refused: it would have no
/// vector, and the lines of a translation would no longer belong to one another.
pub fn lines(source: &TextSource) -> impl Iterator<Item = Result<String>> + '_ {
    // Raw, since white space at the start of a line may be the end of an empty column.
    let mut lines = source.raw_lines(LineRules::default());
    let file = source.names().next().unwrap_or_default();
    // A blank line; at the end of a file it is none.
    let mut gap = None;
    std::iter::from_fn(move || {
        loop {
            let (sentence, blank) = match lines.next_line() {
                Ok(line) => {
                    let line = line?;
                    (sentence_on(file, line).trim().to_owned(), line.trim().is_empty())
                }
                Err(error) => return Some(Err(error.into())),
            };
            if blank {
                gap = gap.or(Some(lines.number()));
                continue;
            }
            let Some(number) = gap.or(sentence.is_empty().then(|| lines.number())) else {
                return Some(Ok(sentence));
            };
            let place = format!("{file}:{number}");
            let remedy = "take it out, and the same line of its translation";
            return Some(Err(Error::input(place, "a line without text has no vector", remedy)));
        }
    })
}

/// The source of one file of sentences.
pub fn open(path: &Path) -> Result<TextSource> {
    Ok(TextSource::new("text", &[path.display().to_string()])?)
}

/// The mean vector of every sentence of a file at each of some layers (sentences x dim), and how many
/// sentences were too long for the model and truncated.
pub fn pooled(
    model: &mut PretrainedModel,
    language: &str,
    path: &Path,
    layers: &[usize],
    mut progress: impl FnMut(usize) + Send,
) -> Result<(Vec<Matrix>, usize)> {
    let mut reader = model.reader(language)?;
    let source = open(path)?;
    let number = reader.language();
    let cut = Cell::new(0);
    let ids = lines(&source).map(|line| {
        let sentence = reader.sentence(&line?);
        cut.set(cut.get() + usize::from(sentence.truncated));
        Ok(sentence.ids)
    });
    let mut values = vec![Vec::new(); layers.len()];
    for_each(model.parts(), number, ids, |states| {
        for (values, &layer) in values.iter_mut().zip(layers) {
            Pooling::Mean.push(states, layer, values);
        }
        progress(states.sentences());
        Ok::<_, Error>(())
    })?;
    let dim = model.encoder.config().dim;
    let matrices = values.into_iter().map(|v| Matrix::new(v.len() / dim, dim, v)).collect();
    Ok((matrices, cut.get()))
}
