//! `isogloss align contexts`: a map for each layer from linked words of translated sentences.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use geometry::{Map, Matrix, describe, normalize};
use models::contexts::{self, LinkSide, ParallelSide, TokenizedSide};
use serde::Serialize;

use crate::commands::models::{Normalize, Place, save_maps, steps, two_models, two_sides};
use crate::commands::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Waiting;

const BOTH: [LinkSide; 2] = [LinkSide::First, LinkSide::Second];

pub(super) const EXAMPLES: &str = "Example:
  Two monolingual encoders; each layer of the French one is mapped onto the English:
    isogloss align contexts --model fr-run --model en-run \\
      --text fr=xnli.fr.txt --text en=xnli.en.txt --links fr-en.pharaoh --out maps
  The same from raw parallel text, cut into words and linked first:
    isogloss word-align bitext.en-fr.tsv --lang en --lang fr --prepared words --out links
    isogloss align contexts --model en-run --model fr-run --pairs en-fr=words --links links \\
      --onto en --out maps

Links are `i-j` pairs, a line for each pair of sentences; words count from 0 and are told
apart by spaces, so give the text as it was aligned. Pairs of which a side is longer than the
model reads are left out and counted.";

/// Flags of `align contexts`.
#[derive(Args)]
pub(crate) struct Contexts {
    /// The folder of a trained run: one for both sides, or one for each, in the order of the text's.
    #[arg(long = "model", value_name = "DIR", required = true)]
    models: Vec<PathBuf>,

    /// The two sides, one sentence a line: first the one that is mapped, then the one mapped onto.
    #[arg(long = "text", value_name = "LANG=FILE", value_parser = parse_text)]
    texts: Vec<(String, String)>,

    /// Both sides in one file of lines `a ||| b`, as `word-align --prepared` writes it.
    #[arg(long, value_name = "A-B=FILE", value_parser = parse_text, conflicts_with = "texts")]
    pairs: Option<(String, String)>,

    /// The language whose side is mapped onto; the second, if not said.
    #[arg(long, value_name = "LANG")]
    onto: Option<String>,

    /// The links of each pair of sentences, as Pharaoh writes them.
    #[arg(long, value_name = "FILE")]
    links: PathBuf,

    /// Learn from so many links at most, drawn by chance.
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    most: usize,

    /// What is done to both sides first; several steps with commas between.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "iterative")]
    normalize: Vec<Normalize>,

    /// The folder to make, with a map for each layer: W of W x, `layer-N.npy`.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Decides which links are drawn.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    place: Place,
}

/// What `align contexts` says when done.
#[derive(Serialize)]
struct Learned {
    out: PathBuf,
    links: usize,
    /// Pairs of sentences, and how many of them are longer than a model reads.
    pairs: usize,
    left_out: usize,
    dim: usize,
    layers: Vec<Fit>,
    signature: String,
}

/// What a map was learned from.
struct Used {
    links: usize,
    pairs: usize,
    left_out: usize,
}

/// How well a layer's map fits the links that it was learned from.
#[derive(Serialize)]
struct Fit {
    layer: usize,
    /// Mean cosine of linked words before.
    before: f64,
    /// And after.
    after: f64,
}

impl Contexts {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        files::check_new_folder(&self.out, false)?;
        let sides = self.sides()?;
        let onto_first = self.onto_first(&sides)?;
        let folders = two_models(&self.models)?;
        let mut links = contexts::read(&self.links, sides[0].1.lines.len())?;
        let pairs = links.len();
        let (mut models, mut cuts) = (Vec::new(), Vec::new());
        for ((folder, (language, text)), side) in folders.iter().zip(&sides).zip(BOTH) {
            let _waiting = Waiting::new(&format!("reading {}", text.name));
            let model = self.place.open(folder)?;
            cuts.push(TokenizedSide::new(&model, language, text, &links, side)?);
            models.push(model);
        }
        let left_out = contexts::leave_out_long(&mut links, [&cuts[0], &cuts[1]])?;
        let count = contexts::sample(&mut links, self.most, self.seed);
        let mut vectors = Vec::new();
        for ((model, cut), side) in models.iter_mut().zip(&cuts).zip(BOTH) {
            let _waiting = Waiting::new("encoding");
            vectors.push(contexts::vectors(model, cut, &links, side)?);
        }
        if onto_first {
            vectors.reverse();
        }
        let target = vectors.pop().expect("two sides");
        let source = vectors.pop().expect("two sides");
        self.learn(source, target, Used { links: count, pairs, left_out })
    }

    /// The two sides, each with its language.
    fn sides(&self) -> Result<[(String, ParallelSide); 2], Failure> {
        let Some((pair, file)) = &self.pairs else {
            let [(a, first), (b, second)] = two_sides("--text", &self.texts)?;
            return Ok([
                (a.to_owned(), ParallelSide::read(&first)?),
                (b.to_owned(), ParallelSide::read(&second)?),
            ]);
        };
        let Some((a, b)) = pair.split_once('-').filter(|(a, b)| !a.is_empty() && !b.is_empty())
        else {
            let message = format!("--pairs {pair}: name both languages, as --pairs en-fr=FILE");
            return Err(Failure::Usage(message));
        };
        let [first, second] = ParallelSide::read_pairs(Path::new(file))?;
        Ok([(a.to_owned(), first), (b.to_owned(), second)])
    }

    /// Whether the first side is mapped onto, and not the second.
    fn onto_first(&self, [(a, _), (b, _)]: &[(String, ParallelSide); 2]) -> Result<bool, Failure> {
        match &self.onto {
            Some(onto) if onto == a && onto != b => Ok(true),
            Some(onto) if onto != b => {
                Err(Failure::Usage(format!("--onto {onto}: the sides are {a} and {b}")))
            }
            _ => Ok(false),
        }
    }

    fn learn(
        &self,
        source: Vec<Matrix>,
        target: Vec<Matrix>,
        Used { links, pairs, left_out }: Used,
    ) -> Result<Outcome, Failure> {
        let shape = |layers: &[Matrix]| (layers.len(), layers[0].cols());
        if shape(&source) != shape(&target) {
            let message = format!(
                "the models have {:?} and {:?} layers and dimensions; a map needs the same of both",
                shape(&source),
                shape(&target)
            );
            return Err(Failure::Usage(message));
        }
        let dim = source[0].cols();
        if links < dim {
            say!("warning: {links} links do not determine a map of {dim} dimensions");
        }
        let (mut maps, mut layers) = (Vec::new(), Vec::new());
        for (layer, (mut x, mut y)) in source.into_iter().zip(target).enumerate() {
            normalize(&mut x, &steps(&self.normalize));
            normalize(&mut y, &steps(&self.normalize));
            let map = Map::procrustes(&x, &y);
            layers.push(Fit { layer, before: cosine(&x, &y), after: cosine(&map.apply(&x), &y) });
            maps.push((layer, map));
        }
        save_maps(&self.out, &maps)?;
        let signature = format!(
            "procrustes|norm:{}|words:mean-of-pieces|links:{links}",
            describe(&steps(&self.normalize))
        );
        let out = self.out.clone();
        let learned = Learned { out, links, pairs, left_out, dim, layers, signature };
        Ok(Outcome::new(learned.in_words(), &learned))
    }
}

/// The mean cosine of rows of the same number.
fn cosine(a: &Matrix, b: &Matrix) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    };
    let cosine = |(a, b): (&[f32], &[f32])| {
        dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(f64::MIN_POSITIVE)
    };
    a.iter().zip(b.iter()).map(cosine).sum::<f64>() / a.rows() as f64
}

impl Learned {
    fn in_words(&self) -> String {
        let mut text = format!(
            "{}: a map of {} dimensions for each layer, from {} links of {} pairs of sentences\n",
            self.out.display(),
            self.dim,
            self.links,
            self.pairs,
        );
        if self.left_out > 0 {
            let _ = writeln!(
                text,
                "{} pairs are longer than a model reads, and left out",
                self.left_out
            );
        }
        text += "\nlayer   mean cosine before   after\n";
        for Fit { layer, before, after } in &self.layers {
            let _ = writeln!(text, "{layer:>5}   {before:>18.3}   {after:>5.3}");
        }
        let _ = write!(text, "\n{}", self.signature);
        text
    }
}
