//! `isogloss encode`: the hidden states of sentences as an array.

use std::path::PathBuf;

use clap::Args;
use models::sentences::{EncodeConfig, EncodeResult, encode};

use super::models::{Compute, Layers, PoolFlag};
use super::texts::{ColumnsFlag, by_language, parse_text};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Progress;

const EXAMPLES: &str = "Examples:
  The mean of every sentence's tokens at every layer:
    isogloss encode --model run --text fr=fr.txt --out fr.npy
  In NumPy, layer 4 of sentence 0 is then np.load('fr.npy')[4, 0].
  From standard input to standard output:
    isogloss encode --model run --text fr=- --layers 8 --out - < fr.txt > fr.npy
  Every token by itself at the last layers, and how many each sentence has:
    isogloss encode --model run --text fr=fr.txt --layers 6-8 --pool none \\
      --out tokens.npy --lengths tokens.txt
Every token of two languages as a folder that stands for the model where states alone are wanted:
    isogloss encode --model run --text en=en.txt --text fr=fr.txt --pool none --out states
    isogloss retrieve --model states --parallel en=en.txt --parallel fr=fr.txt
As sentence-transformers makes vectors of sentences:
    isogloss encode --model minilm --text fr=fr.txt --pool own --layers 6 --out fr.npy
Where LayerNorm stands before (encoder.norm = \"pre\", XLM-R XL), the last layer is
given without the final LayerNorm, which the last of `hidden_states` in transformers
has passed; where it stands after, both are the same.";

/// Flags of `encode`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Encode {
    /// The folder of a run, or a Hugging Face folder.
    #[arg(short, long, value_name = "DIR")]
    model: PathBuf,

    /// One sentence a line, with its language; repeat for more files of the language, and of others where --out is a folder.
    /// Plain, gzip or zstd; `-` is standard input.
    #[arg(short, long = "text", value_name = "LANG=FILE", value_parser = parse_text, required = true)]
    texts: Vec<(String, String)>,

    #[command(flatten)]
    columns: ColumnsFlag,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all")]
    layers: Layers,

    /// Which vector stands for a sentence.
    #[arg(long, value_enum, default_value_t = PoolFlag::Mean)]
    pool: PoolFlag,

    /// Text that is put before every sentence, such as "query: ", or the name of one of the model's own prompts.
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,

    /// The array to write: layers x rows x dimension, or rows x dimension of one layer; `-` is standard
    /// output. Or a folder of states, which other commands take for --model.
    #[arg(short, long, value_name = "FILE.npy|DIR")]
    out: PathBuf,

    /// Also write how many tokens each sentence has, one number a line.
    #[arg(long, value_name = "FILE")]
    lengths: Option<PathBuf>,

    /// Replace files that exist.
    #[arg(short, long)]
    force: bool,

    #[command(flatten)]
    compute: Compute,
}

impl Encode {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        let standard = files::is_standard(&self.out);
        let folder = !standard && self.out.extension().is_none_or(|extension| extension != "npy");
        if folder && self.out.extension().is_some() {
            let message = format!(
                "--out {}: an array is written as .npy, saved states into a folder; name one, or give - for standard output",
                self.out.display()
            );
            return Err(Failure::Usage(message));
        }
        for path in [Some(&self.out), self.lengths.as_ref()].into_iter().flatten() {
            files::check_new_file(path, self.force)?;
        }
        if self.pool == PoolFlag::None && self.lengths.is_none() && !folder {
            let message = "--pool none gives a sentence as many rows as it has tokens; say with \
                           --lengths FILE where to write how many, or name a folder by --out";
            return Err(Failure::Usage(message.into()));
        }
        if folder && self.lengths.is_some() {
            let message =
                "--lengths: a folder of states says how many tokens a sentence has; leave it out";
            return Err(Failure::Usage(message.into()));
        }
        let texts = by_language(&self.texts);
        if let ([(first, _), (other, _), ..], false) = (&texts[..], folder) {
            let message = format!(
                "--text names {first} and {other}; give text of one language, or name a folder by --out"
            );
            return Err(Failure::Usage(message));
        }
        let mut model = self.compute.open(&self.model)?;
        model.set_sentence_vectors(self.pool.pooling(), self.prompt.as_deref())?;
        let above = model.encoder.config().layers;
        let config = EncodeConfig {
            texts: texts.into_iter().map(|(name, files)| (name.to_owned(), files)).collect(),
            columns: self.columns.columns,
            layers: self.layers.of(above)?,
            out: self.out,
            folder,
            force: self.force,
            lengths: self.lengths,
        };
        let mut progress: Option<Progress> = None;
        let result = encode(&mut model, &config, |done, all| {
            let progress = progress.get_or_insert_with(|| Progress::new("sentences", all as u64));
            progress.reach(done as u64, "");
        })?;
        drop(progress);
        if standard {
            return Ok(Outcome::silent());
        }
        Ok(Outcome::new(in_words(&result), &result))
    }
}

fn in_words(result: &EncodeResult) -> String {
    let shape: Vec<_> = result.shape.iter().map(usize::to_string).collect();
    let mut text = format!(
        "{}: {} ({} sentences, {} tokens, {:.1} s, {:.0} tokens/s)\n",
        result.out.display(),
        shape.join(" x "),
        result.sentences,
        result.tokens,
        result.seconds,
        result.tokens_per_s,
    );
    if result.truncated > 0 {
        text +=
            &format!("{} sentences were too long for the model and truncated\n", result.truncated);
    }
    text
}
