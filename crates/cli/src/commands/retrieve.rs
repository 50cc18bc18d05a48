//! `isogloss retrieve`: translations found among sentences, layer by layer.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use arrays::Stack;
use clap::{Args, ValueEnum};
use geometry::search::Measure;
use geometry::sentences::{Found, Layer, Search, retrieve};
use geometry::{Map, describe};
use models::sentences::pooled;
use serde::Serialize;

use super::models::{Layers, Normalize, Place, save_maps, steps, two_models, two_sides};
use super::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::Waiting;

const EXAMPLES: &str = "Examples:
  A bilingual encoder on LASER's Tatoeba files; the map is learned from other pairs:
    isogloss retrieve --model run --text fr=tatoeba.fra-eng.fra --text en=tatoeba.fra-eng.eng \\
      --train fr=xnli.fr.txt --train en=xnli.en.txt
  Two monolingual encoders:
    isogloss retrieve --model fr-run --model en-run --text fr=test.fr --text en=test.en \\
      --train fr=train.fr --train en=train.en
  Arrays, such as `isogloss encode` writes:
    isogloss retrieve --source fr.npy --target en.npy --retrieval margin";

/// Flags of `retrieve`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Retrieve {
    /// The folder of a trained run: one for both sides, or one for each.
    #[arg(long = "model", value_name = "DIR",
        conflicts_with_all = ["source", "target", "train_source", "train_target"])]
    models: Vec<PathBuf>,

    /// The two sides to look in, one sentence a line, translations of one another; of a .tsv file
    /// (such as XNLI's) the first column. Plain, gzip or zstd.
    #[arg(long = "text", value_name = "LANG=FILE", value_parser = parse_text, requires = "models")]
    texts: Vec<(String, String)>,

    /// Two sides of other translations, to learn a map from; read likewise.
    #[arg(long = "train", value_name = "LANG=FILE", value_parser = parse_text, requires = "models")]
    train: Vec<(String, String)>,

    /// Vectors of one side, rows x dimension or layers x rows x dimension: .npy, .npz, safetensors.
    #[arg(long, value_name = "FILE", requires = "target")]
    source: Option<PathBuf>,

    /// Vectors of the other side.
    #[arg(long, value_name = "FILE", requires = "source")]
    target: Option<PathBuf>,

    /// Vectors of one side of other translations, to learn a map from.
    #[arg(long, value_name = "FILE", requires = "train_target")]
    train_source: Option<PathBuf>,

    /// Vectors of their other side.
    #[arg(long, value_name = "FILE", requires = "train_source")]
    train_target: Option<PathBuf>,

    /// How translations are looked for.
    #[arg(long, value_enum, default_value_t = Retrieval::Nn)]
    retrieval: Retrieval,

    /// Neighbours that CSLS and margins take the mean of [default: 10 for csls, 4 for margins].
    #[arg(long, value_name = "K",
        value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    neighbours: Option<usize>,

    /// What is done to both sides before the map; several steps with commas between.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "iterative")]
    normalize: Vec<Normalize>,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all")]
    layers: Layers,

    /// Keep the map of each layer in a new folder.
    #[arg(long, value_name = "DIR")]
    save_maps: Option<PathBuf>,

    #[command(flatten)]
    place: Place,
}

/// How translations are looked for.
#[derive(Clone, Copy, ValueEnum)]
enum Retrieval {
    /// Cosine.
    Nn,
    /// Cosine, less what either is close to anyway.
    Csls,
    /// Cosine, divided by what both are close to anyway.
    Margin,
    /// Cosine, less the mean of what both are close to anyway.
    MarginDistance,
}

/// What `retrieve` says when done.
#[derive(Serialize)]
struct Retrieved {
    sentences: usize,
    chance: f64,
    train_pairs: Option<usize>,
    layers: Vec<Layer>,
    /// Sentences that were too long for the model and cut.
    cut: usize,
    signature: String,
}

/// What is searched, and what maps are learned from.
struct Sides {
    test: [Stack; 2],
    train: Option<[Stack; 2]>,
    /// The number of each layer in its model.
    numbers: Vec<usize>,
    cut: usize,
}

impl Retrieve {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if let Some(folder) = &self.save_maps {
            files::check_new_folder(folder, false)?;
            if self.train.is_empty() && self.train_source.is_none() {
                let message =
                    "--save-maps: no map is learned without other translations; give --train";
                return Err(Failure::Usage(message.into()));
            }
        }
        let sides = if self.models.is_empty() { self.arrays()? } else { self.encoded()? };
        let Sides { test, train, numbers, cut } = sides;
        let (measure, steps) = (self.measure(test[0].rows())?, steps(&self.normalize));
        let train = train.as_ref().map(|[a, b]| (a, b));
        let mut maps: Vec<(usize, Map)> = Vec::new();
        let layers = self.place.run(|device| {
            let search = Search { measure, steps, device: device.clone() };
            retrieve(&test[0], &test[1], train, &search, |layer, map| {
                maps.push((numbers[layer], map));
                Ok(())
            })
        })??;
        if let Some(folder) = &self.save_maps {
            save_maps(folder, &maps)?;
        }
        let retrieved = Retrieved {
            sentences: test[0].rows(),
            chance: 1.0 / test[0].rows() as f64,
            train_pairs: train.map(|(a, _)| a.rows()),
            layers,
            cut,
            signature: self.signature(measure, train.is_some()),
        };
        Ok(Outcome::new(retrieved.in_words(), &retrieved))
    }

    fn measure(&self, sentences: usize) -> Result<Measure, Failure> {
        if let Some(k) = self.neighbours.filter(|&k| k > sentences) {
            let message = format!("--neighbours {k}: there are {sentences} sentences; give fewer");
            return Err(Failure::Usage(message));
        }
        let k = |otherwise: usize| self.neighbours.unwrap_or(otherwise.min(sentences));
        Ok(match self.retrieval {
            Retrieval::Nn => Measure::Cosine,
            Retrieval::Csls => Measure::Csls { k: k(10) },
            Retrieval::Margin => Measure::Ratio { k: k(4) },
            Retrieval::MarginDistance => Measure::Distance { k: k(4) },
        })
    }

    /// Names every convention that a number depends on.
    fn signature(&self, measure: Measure, learned: bool) -> String {
        let norm = describe(&steps(&self.normalize));
        let map = match learned {
            true => format!("procrustes,norm:{norm},each-set-by-itself"),
            false => "none".to_owned(),
        };
        format!(
            "retrieval:{}|shift:own-mean|map:{map}|ties:lower-row|v{}",
            measure.describe(),
            env!("CARGO_PKG_VERSION"),
        )
    }

    fn arrays(&self) -> Result<Sides, Failure> {
        let open =
            |a: &Option<PathBuf>, b: &Option<PathBuf>| -> Result<Option<[Stack; 2]>, Failure> {
                let Some((a, b)) = a.as_ref().zip(b.as_ref()) else { return Ok(None) };
                Ok(Some([Stack::open(a)?, Stack::open(b)?]))
            };
        let test = open(&self.source, &self.target)?;
        let mut test = test.ok_or_else(|| {
            Failure::Usage("give --model and --text twice, or --source and --target".into())
        })?;
        let mut train = open(&self.train_source, &self.train_target)?;
        let numbers = self.layers.of(test[0].layers() - 1)?;
        for stack in test.iter_mut().chain(train.iter_mut().flatten()) {
            let chosen = self.layers.of(stack.layers() - 1)?;
            stack.keep(&chosen);
        }
        Ok(Sides { test, train, numbers, cut: 0 })
    }

    fn encoded(&self) -> Result<Sides, Failure> {
        let models = two_models(&self.models)?;
        let test = two_sides("--text", &self.texts)?;
        let train = match self.train.is_empty() {
            true => None,
            false => Some(two_sides("--train", &self.train)?),
        };
        let (mut numbers, mut cut) = (Vec::new(), 0);
        let mut encode = |side: usize| -> Result<(Stack, Option<Stack>), Failure> {
            let mut model = self.place.open(models[side])?;
            let layers = self.layers.of(model.encoder.config().layers)?;
            let mut encode = |language: &str, file: &Path| -> Result<Stack, Failure> {
                let _waiting = Waiting::new(&format!("encoding {}", file.display()));
                let (matrices, long) = pooled(&mut model, language, file, &layers, |_| {})?;
                cut += long;
                let matrices = layers.iter().copied().zip(matrices).collect();
                Ok(Stack::numbered(&file.display().to_string(), matrices))
            };
            let (language, file) = &test[side];
            let looked_in = encode(language, file)?;
            let learned_from = match &train {
                None => None,
                Some(sides) => {
                    // The same side first: both may be of one language.
                    let mut order = [&sides[side], &sides[1 - side]].into_iter();
                    let file = order.find(|(other, _)| other == language).ok_or_else(|| {
                        let message = format!(
                            "--train has no side in `{language}`; give both languages of --text"
                        );
                        Failure::Usage(message)
                    })?;
                    Some(encode(language, &file.1)?)
                }
            };
            numbers = layers;
            Ok((looked_in, learned_from))
        };
        let ((a, train_a), (b, train_b)) = (encode(0)?, encode(1)?);
        let train = train_a.zip(train_b).map(|(a, b)| [a, b]);
        Ok(Sides { test: [a, b], train, numbers, cut })
    }
}

impl Retrieved {
    fn in_words(&self) -> String {
        let mut text = format!(
            "translations found among {} sentences (chance {:.4})",
            self.sentences, self.chance
        );
        if let Some(pairs) = self.train_pairs {
            let _ = write!(text, ", maps learned from {pairs} other pairs");
        }
        text += "\n\n            raw            shifted";
        text += if self.train_pairs.is_some() { "          aligned\n" } else { "\n" };
        text += "layer     →      ←        →      ←";
        text += if self.train_pairs.is_some() { "        →      ←\n" } else { "\n" };
        let cell = |found: Found| format!("{:.3}  {:.3}", found.forward, found.backward);
        for layer in &self.layers {
            let aligned =
                layer.aligned.map_or(String::new(), |found| format!("    {}", cell(found)));
            let _ = writeln!(
                text,
                "{:>5}   {}    {}{aligned}",
                layer.layer,
                cell(layer.raw),
                cell(layer.shifted)
            );
        }
        if self.cut > 0 {
            let _ = writeln!(text, "\n{} sentences were too long for the model and cut", self.cut);
        }
        let _ = write!(text, "\n{}", self.signature);
        text
    }
}
