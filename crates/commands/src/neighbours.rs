//! `isogloss neighbours`: the nearest neighbours of words or sentences across languages, layer by layer.

use std::fmt::Write as _;
use std::path::PathBuf;

use arrays::Matrix;
use clap::Args;
use geometry::neighbours::{LanguageNeighbours, NamedVectors, NeighboursResult, nearest};
use models::PretrainedModel;
use models::parallel::{ParallelSide, RowSelection};
use models::sentences::{lines, mean_vectors, open};
use models::words::whole_words;
use serde::Serialize;
use vectors::formats::{ReadOptions, read};

use super::models::{Compute, Layers, SentenceFlags};
use super::texts::{ColumnsFlag, RowFlags, by_language, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Waiting;
use crate::request::{Request, one_or_more};

const EXAMPLES: &str = "Examples:
  A sentence's nearest among the lines of files, at layers 4 and 8 of multilingual BERT:
    isogloss neighbours --model mbert --layers 4,8 --lang fr \\
      --text en=tatoeba.en --text de=tatoeba.de 'Le chat dort .'
  Words, among the whole words of the model's own vocabulary:
    isogloss neighbours --model run --lang qaa --vocab qab sagowi joso
  The same, each language mean-centred (the query's language then needs candidates too):
    isogloss neighbours --model run --lang qaa --vocab qaa --vocab qab --center sagowi
  Files of word vectors of one space, such as `align words --out` writes:
    isogloss neighbours --vectors fr=fr-in-en.vec --vectors en=en.vec --lang fr chat chien

Neighbours are by cosine, for each language by itself. A sentence is the mean of its tokens, and a
word is encoded as a sentence of one word; for means over a word's contexts write vectors first
(`isogloss words`) and give them by --vectors.";

/// Flags of `neighbours`.
#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Neighbours {
    /// The words or sentences to look up.
    #[arg(value_name = "QUERY", required = true, help_heading = "Input")]
    pub queries: Vec<String>,

    /// Their language.
    #[arg(long, value_name = "LANG", help_heading = "Input")]
    pub lang: String,

    /// The folder of a run, or a Hugging Face folder, that encodes queries and candidates.
    #[arg(
        short,
        long,
        value_name = "DIR",
        required_unless_present = "vectors",
        conflicts_with = "vectors",
        help_heading = "Input"
    )]
    pub model: Option<PathBuf>,

    /// Candidates, one a line, with their language; equal lines count once. Repeat for more files and
    /// more languages. Plain, gzip or zstd; `-` is standard input.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text,
        requires = "model", help_heading = "Input")]
    pub texts: Vec<(String, String)>,

    #[command(flatten)]
    columns: ColumnsFlag,

    #[command(flatten)]
    pub rows: RowFlags,

    #[command(flatten)]
    sentences: SentenceFlags,

    /// Seed of --sample-size.
    #[arg(long, default_value_t = 1, help_heading = "Input")]
    pub seed: u64,

    /// Candidates: the words of a language that are one subword of the model's vocabulary. Repeat for more
    /// languages.
    #[arg(long, value_name = "LANG", requires = "model", help_heading = "Input")]
    pub vocab: Vec<String>,

    /// Candidates: word vectors with their language, all of one space; the queries are looked up in the
    /// file of their language. Repeat for more languages.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, conflicts_with = "layers",
        help_heading = "Input")]
    vectors: Vec<(String, String)>,

    /// The N most frequent words of each file of vectors, or of the vocabulary.
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = "Input", value_parser = one_or_more())]
    pub max_vocab: usize,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all", help_heading = "Evaluation")]
    layers: Layers,

    /// Subtract each language's mean, over its candidates, first.
    #[arg(long, help_heading = "Evaluation")]
    pub center: bool,

    /// How many neighbours to print for each language.
    #[arg(long, value_name = "N", default_value_t = 5, help_heading = "Output", value_parser = one_or_more())]
    pub top: usize,

    #[command(flatten)]
    compute: Compute,
}

impl Request for Neighbours {
    const NAME: &str = "neighbours";
    const REVISION: u32 = 1;
    const LAST: &[&str] = &["queries"];
}

impl Neighbours {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        if self.queries.iter().any(|query| query.trim().is_empty()) {
            return Err(Failure::Usage("a query is empty; give a word or a sentence".into()));
        }
        if self.rows.is_given() && self.texts.is_empty() {
            let message =
                "--limit and --sample-size are of --text, and there is none; leave them out";
            return Err(Failure::Usage(message.into()));
        }
        let (queries, candidates) = match &self.model {
            Some(folder) => {
                self.encoded(&mut self.compute.open_states(folder, &self.sentences)?)?
            }
            None => self.read_vectors()?,
        };
        let (top, center) = (self.top, self.center);
        let result =
            self.compute.run(|device| nearest(&queries, &candidates, top, center, device))??;
        Ok(Outcome::new(in_words(&result), &result))
    }

    fn encoded(
        &self,
        model: &mut PretrainedModel,
    ) -> Result<(NamedVectors, Vec<NamedVectors>), Failure> {
        let layers = self.layers.of(model.encoder.config().layers)?;
        let encode = |model: &mut PretrainedModel, language: &str, names: Vec<String>| {
            let side = ParallelSide::new(language, language, names);
            let (matrices, truncated) = mean_vectors(model, &side, &layers)?;
            if truncated > 0 {
                say!(
                    "{truncated} sentences of `{language}` are too long for the model and truncated"
                );
            }
            let layers = layers.iter().map(|&layer| Some(layer)).zip(matrices).collect();
            let (language, names) = (side.language, side.lines);
            Ok::<_, Failure>(NamedVectors { language, names, layers })
        };
        let queries = encode(model, &self.lang, self.queries.clone())?;
        let mut candidates = Vec::new();
        for (language, names) in self.candidates(model)? {
            let _waiting = Waiting::new(&format!("encoding {} of {language}", names.len()));
            candidates.push(encode(model, &language, names)?);
        }
        Ok((queries, candidates))
    }

    /// The different words and sentences of each language that can be found.
    fn candidates(&self, model: &PretrainedModel) -> Result<Vec<(String, Vec<String>)>, Failure> {
        let mut candidates = Vec::new();
        for (language, files) in by_language(&self.texts) {
            let source = open(&files, &self.columns.columns)?;
            let read = match self.rows.selection(self.seed) {
                // Nothing beyond them is looked at.
                RowSelection::First(limit) => {
                    lines(&source).take(limit).collect::<Result<Vec<_>, _>>()?
                }
                selection => selection.choose(lines(&source))?.0,
            };
            candidates.push((language.to_owned(), read));
        }
        for language in &self.vocab {
            let words = whole_words(model, language, self.max_vocab)?;
            match candidates.iter_mut().find(|(known, _)| known == language) {
                Some((_, names)) => names.extend(words),
                None => candidates.push((language.clone(), words)),
            }
        }
        if candidates.is_empty() {
            let message = "nothing to find: give candidates by --text LANG=FILE or --vocab LANG";
            return Err(Failure::Usage(message.to_owned()));
        }
        for (_, names) in &mut candidates {
            let mut seen = std::collections::HashSet::new();
            names.retain(|name| seen.insert(name.clone()));
        }
        Ok(candidates)
    }

    /// Queries and candidates from files of word vectors.
    fn read_vectors(&self) -> Result<(NamedVectors, Vec<NamedVectors>), Failure> {
        let mut candidates = Vec::new();
        for (language, file) in &self.vectors {
            let _waiting = Waiting::new(&format!("reading {file}"));
            let options = ReadOptions { format: None, limit: Some(self.max_vocab) };
            let words = read(file.as_ref(), options)?;
            candidates.push(NamedVectors {
                language: language.clone(),
                names: words.words().map(str::to_owned).collect(),
                layers: vec![(None, Matrix::from(&words))],
            });
        }
        let own = candidates.iter().find(|side| side.language == self.lang).ok_or_else(|| {
            let lang = &self.lang;
            Failure::Usage(format!("--lang {lang}: give its vectors too, by --vectors {lang}=FILE"))
        })?;
        let row = |query: &String| {
            own.names.iter().position(|name| name == query).ok_or_else(|| {
                Failure::Usage(format!(
                    "`{query}` has no vector among the first {} of `{}`; give another word, or a larger \
                     --max-vocab",
                    own.names.len(),
                    self.lang
                ))
            })
        };
        let rows = self.queries.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let queries = NamedVectors {
            language: self.lang.clone(),
            names: self.queries.clone(),
            layers: vec![(None, own.layers[0].1.select(rows))],
        };
        Ok((queries, candidates))
    }
}

/// Words stand on one line for each layer and language, sentences on one line each.
fn in_words(result: &NeighboursResult) -> String {
    let found = || result.queries.iter().flat_map(|query| &query.layers).flat_map(|l| &l.languages);
    let texts = || found().flat_map(|language| &language.neighbors).map(|one| &one.text);
    let short = texts().all(|text| text.chars().count() <= 20);
    let width = texts().map(|text| text.chars().count()).max().unwrap_or(0);
    let code = found().map(|side| side.language.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for query in &result.queries {
        let _ = writeln!(text, "{} ({})", query.query, query.language);
        for layer in &query.layers {
            let at = layer.layer.map_or(String::new(), |layer| format!("  layer {layer:<3}"));
            for LanguageNeighbours { language, neighbors } in &layer.languages {
                let _ = write!(text, "{at}  {language:<code$}");
                for one in neighbors {
                    let _ = match short {
                        true => write!(text, "  {:<width$} {:>6.3}", one.text, one.cosine),
                        false => write!(text, "\n    {:>6.3}  {}", one.cosine, one.text),
                    };
                }
                text.truncate(text.trim_end().len());
                text.push('\n');
            }
        }
        text.push('\n');
    }
    let count = |side: &geometry::neighbours::CandidateCount| {
        format!("{} of {}", side.candidates, side.language)
    };
    let counts: Vec<String> = result.candidates.iter().map(count).collect();
    let _ = write!(text, "by cosine, among {} candidates", counts.join(" and "));
    text
}
