//! `isogloss encode`: the hidden states of sentences as an array.

use std::path::PathBuf;

use clap::Args;
use models::sentences::{EncodeConfig, EncodeResult, encode};
use models::states::Pooling;

use super::models::{Compute, Layers};
use super::texts::{ColumnsFlag, parse_text};
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

    /// One sentence a line, with its language; repeat for more files of the language. Plain, gzip or
    /// zstd; `-` is standard input.
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

    /// The array to write: layers x rows x dimension, or rows x dimension of one layer; `-` is standard
    /// output.
    #[arg(short, long, value_name = "FILE.npy")]
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

flag_values! {
    /// Which vector stands for a sentence.
    enum PoolFlag => Pooling {
        /// The mean of its tokens, special tokens left out.
        Mean,
        /// The special token before it (`[CLS]`, `<s>`).
        First,
        /// None: each of its tokens has its own row.
        None,
    }
}

impl Encode {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        let standard = files::is_standard(&self.out);
        if !standard && self.out.extension().is_none_or(|extension| extension != "npy") {
            let message = format!(
                "--out {}: an array is written as .npy; name the file so, or give - for standard output",
                self.out.display()
            );
            return Err(Failure::Usage(message));
        }
        for path in [Some(&self.out), self.lengths.as_ref()].into_iter().flatten() {
            files::check_new_file(path, self.force)?;
        }
        if matches!(self.pool, PoolFlag::None) && self.lengths.is_none() {
            let message = "--pool none gives a sentence as many rows as it has tokens; say with \
                           --lengths FILE where to write how many";
            return Err(Failure::Usage(message.into()));
        }
        let mut model = self.compute.open(&self.model)?;
        let (language, files) = one_language(self.texts)?;
        let config = EncodeConfig {
            language,
            files,
            columns: self.columns.columns,
            layers: self.layers.of(model.encoder.config().layers)?,
            pooling: self.pool.into(),
            out: self.out,
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

/// The files of the one language that is given.
fn one_language(texts: Vec<(String, String)>) -> Result<(String, Vec<String>), Failure> {
    let language = texts[0].0.clone();
    if let Some((other, _)) = texts.iter().find(|(other, _)| *other != language) {
        let message = format!("--text names {language} and {other}; give text of one language");
        return Err(Failure::Usage(message));
    }
    Ok((language, texts.into_iter().map(|(_, file)| file).collect()))
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
