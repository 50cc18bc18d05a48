//! `isogloss encode`: the vectors that an encoder gives to sentences.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrays::StackWriter;
use clap::{Args, ValueEnum};
use files::At;
use models::PretrainedModel;
use models::sentences::{lines, open};
use models::states::{Pooling, for_each};
use serde::Serialize;

use super::models::{Layers, Place};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  The mean of every sentence's tokens at every layer:
    isogloss encode --model run --text fr.txt --lang fr --out fr.npy
  In NumPy, layer 4 of sentence 0 is then np.load('fr.npy')[4, 0].
  Every token by itself at the last layers, and how many each sentence has:
    isogloss encode --model run --text fr.txt --lang fr --layers 6-8 --pool none \\
      --out tokens.npy --lengths tokens.txt
Where LayerNorm stands before (encoder.norm = \"pre\", XLM-R XL), the last layer is
given without the final LayerNorm, through which the last of `hidden_states` in
transformers has gone; where it stands after, both are the same.";

/// Flags of `encode`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Encode {
    /// The folder of a trained run.
    #[arg(long, value_name = "DIR")]
    model: PathBuf,

    /// One sentence a line; of a .tsv file (such as XNLI's) the first column. Plain, gzip or zstd.
    #[arg(long, value_name = "FILE")]
    text: PathBuf,

    /// The language of the text.
    #[arg(long, value_name = "LANG")]
    lang: String,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all")]
    layers: Layers,

    /// Which vector stands for a sentence.
    #[arg(long, value_enum, default_value_t = PoolFlag::Mean)]
    pool: PoolFlag,

    /// The array to write: layers x rows x dimension, or rows x dimension of one layer.
    #[arg(long, value_name = "FILE.npy")]
    out: PathBuf,

    /// Also write how many tokens each sentence has, one number a line.
    #[arg(long, value_name = "FILE")]
    lengths: Option<PathBuf>,

    #[command(flatten)]
    place: Place,
}

/// Which vector stands for a sentence.
#[derive(Clone, Copy, ValueEnum)]
enum PoolFlag {
    /// The mean of its tokens, special ones left out.
    Mean,
    /// The special token before it.
    First,
    /// None: each of its tokens has its own row.
    None,
}

impl From<PoolFlag> for Pooling {
    fn from(flag: PoolFlag) -> Self {
        match flag {
            PoolFlag::Mean => Pooling::Mean,
            PoolFlag::First => Pooling::First,
            PoolFlag::None => Pooling::None,
        }
    }
}

/// What `encode` says when done.
#[derive(Serialize)]
struct Encoded {
    out: PathBuf,
    shape: Vec<usize>,
    sentences: usize,
    tokens: u64,
    /// Sentences whose end the model could not read.
    cut: usize,
    model: String,
    seconds: f64,
    tokens_per_s: f64,
}

impl Encode {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        for path in [Some(&self.out), self.lengths.as_ref()].into_iter().flatten() {
            files::check_new_file(path, true)?;
        }
        if matches!(self.pool, PoolFlag::None) && self.lengths.is_none() {
            let message = "--pool none gives a sentence as many rows as it has tokens; say with \
                           --lengths FILE where to write how many";
            return Err(Failure::Usage(message.into()));
        }
        let mut model = self.place.open(&self.model)?;
        let layers = self.layers.of(model.encoder.config().layers)?;
        let (lengths, cut) = measure(&model, &self.lang, &self.text)?;
        let start = Instant::now();
        let rows =
            lengths.iter().map(|&length| Pooling::from(self.pool).rows(length as usize)).sum();
        self.write(&mut model, &layers, rows, lengths.len())?;
        if let Some(path) = &self.lengths {
            let text: String = lengths.iter().map(|length| format!("{}\n", length - 2)).collect();
            files::write(path, text)?;
        }
        let (tokens, seconds) =
            (lengths.iter().map(|&length| u64::from(length)).sum(), start.elapsed().as_secs_f64());
        let mut shape = vec![layers.len(), rows, model.encoder.config().dim];
        if layers.len() == 1 {
            shape.remove(0);
        }
        let encoded = Encoded {
            out: self.out.clone(),
            shape,
            sentences: lengths.len(),
            tokens,
            cut,
            model: model.fingerprint.clone(),
            seconds,
            tokens_per_s: tokens as f64 / seconds,
        };
        Ok(Outcome::new(encoded.in_words(), &encoded))
    }

    /// Streams all sentences through the model into the file, which appears when it is whole.
    fn write(
        &self,
        model: &mut PretrainedModel,
        layers: &[usize],
        rows: usize,
        sentences: usize,
    ) -> Result<(), Failure> {
        let mut failure = None;
        let written = files::in_place_of(&self.out, |partial| {
            self.write_to(partial, model, layers, rows, sentences).map_err(|error| {
                let reason = io::Error::other("the text could not be encoded to its end");
                failure = Some(error);
                reason
            })
        });
        match failure {
            Some(failure) => Err(failure),
            None => Ok(written?),
        }
    }

    fn write_to(
        &self,
        partial: &Path,
        model: &mut PretrainedModel,
        layers: &[usize],
        rows: usize,
        sentences: usize,
    ) -> Result<(), Failure> {
        let dim = model.encoder.config().dim;
        let mut writer =
            StackWriter::create(partial, layers.len(), rows, dim).at(&self.out, "write")?;
        let mut reader = model.reader(&self.lang)?;
        let (language, pool) = (reader.language(), Pooling::from(self.pool));
        let source = open(&self.text)?;
        let ids = lines(&source).map(|line| Ok::<_, Failure>(reader.sentence(&line?).ids));
        let mut progress = Progress::new("sentences", sentences as u64);
        let mut values = vec![Vec::new(); layers.len()];
        for_each(model.parts(), language, ids, |states| {
            for (values, &layer) in values.iter_mut().zip(layers) {
                values.clear();
                pool.push(states, layer, values);
            }
            writer.append(values[0].len() / states.dim, &values).at(&self.out, "write")?;
            (0..states.sentences()).for_each(|_| progress.step(""));
            Ok(())
        })?;
        Ok(writer.finish().at(&self.out, "write")?)
    }
}

/// The ids of each sentence, frame included, and how many sentences are cut.
fn measure(
    model: &PretrainedModel,
    language: &str,
    text: &Path,
) -> Result<(Vec<u32>, usize), Failure> {
    let mut reader = model.reader(language)?;
    let source = open(text)?;
    let (mut lengths, mut cut) = (Vec::new(), 0);
    for line in lines(&source) {
        let sentence = reader.sentence(&line?);
        lengths.push(sentence.ids.len() as u32);
        cut += usize::from(sentence.truncated);
    }
    Ok((lengths, cut))
}

impl Encoded {
    fn in_words(&self) -> String {
        let shape: Vec<_> = self.shape.iter().map(usize::to_string).collect();
        let mut text = format!(
            "{}: {} ({} sentences, {} tokens, {:.1} s, {:.0} tokens/s)\n",
            self.out.display(),
            shape.join(" x "),
            self.sentences,
            self.tokens,
            self.seconds,
            self.tokens_per_s,
        );
        if self.cut > 0 {
            text += &format!("the model could not read the end of {} sentences\n", self.cut);
        }
        text
    }
}
