//! `isogloss align contexts`: a map for each layer from linked words of translated sentences.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use geometry::align::{AlignContextsResult, LayerFit, align_layers, contexts_signature};
use models::contexts::{LinkSide, TokenizedSide, leave_out, read, sample, vectors};
use models::parallel::{ParallelSide, distinct, read_pair};
use serde::Serialize;

use crate::failure::Failure;
use crate::models::{Compute, Normalize, save_maps, steps, two_models};
use crate::outcome::Outcome;
use crate::progress::Waiting;
use crate::request::{Request, one_or_more};
use crate::texts::{ColumnsFlag, parse_text};

const BOTH: [LinkSide; 2] = [LinkSide::First, LinkSide::Second];

pub(super) const EXAMPLES: &str = "Example:
  Two monolingual encoders; each layer of the French one is mapped onto the English:
    isogloss align contexts --model fr-run --model en-run \\
      --parallel fr=xnli.fr.txt --parallel en=xnli.en.txt --links fr-en.pharaoh --out maps
  The same from raw parallel text, cut into words and linked first:
    isogloss word-align --parallel en-fr=bitext.tsv --prepared words --out links
    isogloss align contexts --model en-run --model fr-run --parallel en-fr=words --links links \\
      --onto en --out maps

Links are `i-j` pairs, a line for each pair of sentences; words count from 0 and are separated
by spaces, so give the text that was aligned. Rows that repeat an earlier one on both sides, and
rows of which a side is longer than the model reads, are left out and counted.";

#[derive(Args, Serialize)]
pub struct Contexts {
    /// The folder of a run, or a Hugging Face folder: one for both sides, or one for each, in the order
    /// of --parallel.
    #[arg(short, long = "model", value_name = "DIR", required = true, help_heading = "Input")]
    pub models: Vec<PathBuf>,

    /// Parallel text, first the side that is mapped: given twice, line i translates line i; or once as
    /// A-B=FILE, lines of `a ||| b` as `word-align --prepared` writes them (of a .tsv, two columns).
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, required = true,
        help_heading = "Input")]
    pub parallel: Vec<(String, String)>,

    #[command(flatten)]
    pub columns: ColumnsFlag,

    /// The links of each pair of sentences, in Pharaoh format.
    #[arg(long, value_name = "FILE", help_heading = "Input")]
    pub links: PathBuf,

    /// The language whose side is mapped onto; the second, if not given.
    #[arg(long, value_name = "LANG", help_heading = "Training")]
    pub onto: Option<String>,

    /// Learn from a random sample of at most N links.
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = "Training", value_parser = one_or_more())]
    pub sample_size: usize,

    /// What is done to both sides first; several steps with commas between.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "iterative",
        help_heading = "Training"
    )]
    pub normalize: Vec<Normalize>,

    /// Seed of the sample of links.
    #[arg(long, default_value_t = 1, help_heading = "Training")]
    pub seed: u64,

    /// The folder to make, with a map for each layer: W of W x, `layer-N.npy`.
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: PathBuf,

    /// Replace a folder that exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    #[command(flatten)]
    pub compute: Compute,
}

impl Request for Contexts {
    const NAME: &str = "align contexts";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["links", "out"];
}

impl Contexts {
    pub fn run(self) -> Result<Outcome, Failure> {
        files::check_new_folder(&self.out, self.force)?;
        let sides = read_pair(&self.parallel, &self.columns.columns)?;
        let onto_first = self.onto_first(&sides)?;
        let folders = two_models(&self.models)?;
        let mut links = read(&self.links, sides[0].lines.len())?;
        let (mut models, mut texts) = (Vec::new(), Vec::new());
        for ((folder, text), side) in folders.iter().zip(&sides).zip(BOTH) {
            let _waiting = Waiting::new(&format!("reading {}", text.file));
            let model = self.compute.open(folder)?;
            texts.push(TokenizedSide::new(&model, text, &links, side)?);
            models.push(model);
        }
        let counts = leave_out(&mut links, [&texts[0], &texts[1]], &distinct(&sides))?;
        let count = sample(&mut links, self.sample_size, self.seed);
        let mut layers = Vec::new();
        for ((model, text), side) in models.iter_mut().zip(&texts).zip(BOTH) {
            let _waiting = Waiting::new("encoding");
            layers.push(vectors(model, text, &links, side)?);
        }
        if onto_first {
            layers.reverse();
        }
        let target = layers.pop().expect("two sides");
        let source = layers.pop().expect("two sides");
        let dim = source[0].cols();
        if count < dim {
            say!("warning: {count} links do not determine a map of {dim} dimensions");
        }
        let steps = steps(&self.normalize);
        let learned = align_layers(source, target, &steps)?;
        let layers = learned.iter().map(|(_, fit)| *fit).collect();
        let maps: Vec<_> = learned.into_iter().map(|(map, fit)| (fit.layer, map)).collect();
        save_maps(&self.out, self.force, &maps)?;
        let signature = contexts_signature(&steps, count);
        let out = self.out.clone();
        let result = AlignContextsResult { out, links: count, counts, dim, layers, signature };
        Ok(Outcome::new(in_words(&result), &result))
    }

    /// Whether the first side is mapped onto, and not the second.
    fn onto_first(&self, [a, b]: &[ParallelSide; 2]) -> Result<bool, Failure> {
        let (a, b) = (&a.language, &b.language);
        match &self.onto {
            Some(onto) if onto == a && onto != b => Ok(true),
            Some(onto) if onto != b => {
                Err(Failure::Usage(format!("--onto {onto}: the sides are {a} and {b}")))
            }
            _ => Ok(false),
        }
    }
}

fn in_words(result: &AlignContextsResult) -> String {
    let mut text = format!(
        "{}: a map of {} dimensions for each layer, from {} links of {}\n",
        result.out.display(),
        result.dim,
        result.links,
        result.counts,
    );
    text += "\nlayer   mean cosine before   after\n";
    for LayerFit { layer, before, after } in &result.layers {
        let _ = writeln!(text, "{layer:>5}   {before:>18.3}   {after:>5.3}");
    }
    let _ = write!(text, "\n{}", result.signature);
    text
}
