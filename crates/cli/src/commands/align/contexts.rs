//! `isogloss align contexts`: a map for each layer from linked words of translated sentences.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use geometry::links::{self, Side};
use geometry::{Map, Matrix, describe, normalize};
use serde::Serialize;

use crate::commands::models::{Normalize, Place, save_maps, steps, two_models, two_sides};
use crate::commands::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Waiting;

pub(super) const EXAMPLES: &str = "Example:
  Two monolingual encoders; each layer of the French one is mapped onto the English:
    isogloss align contexts --model fr-run --model en-run \\
      --text fr=xnli.fr.txt --text en=xnli.en.txt --links fr-en.pharaoh --out maps

Links are `i-j` pairs, a line for each pair of sentences; words count from 0 and are told
apart by spaces, so give the text as it was aligned.";

/// Flags of `align contexts`.
#[derive(Args)]
pub(crate) struct Contexts {
    /// The folder of a trained run: one for both sides, or one for each.
    #[arg(long = "model", value_name = "DIR", required = true)]
    models: Vec<PathBuf>,

    /// The two sides, one sentence a line: first the one that is mapped, then the one mapped onto.
    #[arg(long = "text", value_name = "LANG=FILE", value_parser = parse_text)]
    texts: Vec<(String, String)>,

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
    dim: usize,
    layers: Vec<Fit>,
    signature: String,
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
        files::check_new_folder(&self.out)?;
        let sides = two_sides("--text", &self.texts)?;
        let models = two_models(&self.models)?;
        let source = geometry::states::open(&sides[0].1)?;
        let lines = geometry::states::lines(&source).try_fold(0, |n, line| line.map(|_| n + 1))?;
        let mut list = links::read(&self.links, lines)?;
        let count = links::thin(&mut list, self.most, self.seed);
        let mut vectors = Vec::new();
        for ((folder, (language, file)), side) in
            models.iter().zip(&sides).zip([Side::First, Side::Second])
        {
            let _waiting = Waiting::new(&format!("encoding {}", file.display()));
            let mut model = self.place.open(folder)?;
            vectors.push(links::vectors(&mut model, language, file, &list, side)?);
        }
        let target = vectors.pop().expect("two sides");
        let source = vectors.pop().expect("two sides");
        self.learn(source, target, count)
    }

    fn learn(
        &self,
        source: Vec<Matrix>,
        target: Vec<Matrix>,
        links: usize,
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
        let learned = Learned { out: self.out.clone(), links, dim, layers, signature };
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
            "{}: a map of {} dimensions for each layer, from {} links\n\nlayer   mean cosine before   after\n",
            self.out.display(),
            self.dim,
            self.links
        );
        for Fit { layer, before, after } in &self.layers {
            let _ = writeln!(text, "{layer:>5}   {before:>18.3}   {after:>5.3}");
        }
        let _ = write!(text, "\n{}", self.signature);
        text
    }
}
