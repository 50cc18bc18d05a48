//! `isogloss retrieve`: retrieval of translations among sentences, layer by layer.

use std::fmt::Write as _;
use std::path::PathBuf;

use crate::measured::Extractor;
use arrays::Stack;
use clap::{Args, ValueEnum};
use geometry::retrieval::{
    RetrievalAccuracy, RetrievalOutput, RetrievalResult, RetrievalSearch, RowPairs, TranslatedRows,
    retrieve,
};
use geometry::search::Measure;
use models::sentences::EncodedPairs;
use serde::Serialize;

use super::models::{Compute, Layers, Normalize, ParallelTextFlags, save_maps, steps};
use super::record::{RecordFlags, pair, system};
use super::texts::parse_text;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::request::{Request, one_or_more};

const EXAMPLES: &str = "Examples:
  A bilingual encoder on LASER's Tatoeba files; the map is learned from other pairs:
    isogloss retrieve --model run \\
      --parallel fr=tatoeba.fra-eng.fra --parallel en=tatoeba.fra-eng.eng \\
      --train fr=dev-fr.tsv --train en=dev-en.tsv --train fr=test-fr.tsv \\
      --train en=test-en.tsv --columns 1,2
  Two monolingual encoders:
    isogloss retrieve --model fr-run --model en-run --parallel fr=test.fr --parallel en=test.en \\
      --train fr-en=train.tsv
  Arrays, such as `isogloss encode` writes:
    isogloss retrieve --source fr.npy --target en.npy --retrieval margin
  What was found for each sentence at layer 4, with the five nearest:
    isogloss retrieve --model run --parallel fr=test.fr --parallel en=test.en --layers 4 \\
      --predictions found.tsv --top 5

Equal sentences are one candidate: a row is right where the sentence found equals its translation.
P@1 is given in both directions at each layer: raw, mean-centred (each side by its own mean), and
after Procrustes alignment learned from the pairs of --train.";

/// Flags of `retrieve`.
#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Retrieve {
    /// Parallel text.
    #[command(flatten)]
    pub text: ParallelTextFlags,

    /// Other parallel text, to learn a map from; given likewise.
    #[arg(long, value_name = "LANG=FILE", value_parser = parse_text, requires = "models",
        help_heading = "Input")]
    pub train: Vec<(String, String)>,

    /// Vectors of one side, rows x dimension or layers x rows x dimension: .npy, .npz, safetensors.
    #[arg(
        long,
        value_name = "FILE",
        requires = "target",
        conflicts_with = "models",
        help_heading = "Input"
    )]
    pub source: Option<PathBuf>,

    /// Vectors of the other side.
    #[arg(long, value_name = "FILE", requires = "source", help_heading = "Input")]
    pub target: Option<PathBuf>,

    /// Vectors of one side of other translations, to learn a map from.
    #[arg(long, value_name = "FILE", requires = "train_target", help_heading = "Input")]
    pub train_source: Option<PathBuf>,

    /// Vectors of their other side.
    #[arg(long, value_name = "FILE", requires = "train_source", help_heading = "Input")]
    pub train_target: Option<PathBuf>,

    /// How two sentences are scored.
    #[arg(long, value_enum, default_value_t = Retrieval::Nn, help_heading = "Evaluation")]
    pub retrieval: Retrieval,

    /// Neighbours of CSLS and of margins [default: 10 for csls, 4 for margins].
    #[arg(long, value_name = "K", help_heading = "Evaluation", value_parser = one_or_more())]
    pub neighbors: Option<usize>,

    /// What is done to both sides before the map; several steps with commas between.
    #[arg(
        long,
        value_enum,
        value_delimiter = ',',
        default_value = "iterative",
        help_heading = "Evaluation"
    )]
    pub normalize: Vec<Normalize>,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all", help_heading = "Evaluation")]
    pub layers: Layers,

    /// Seed of --sample-size.
    #[arg(long, default_value_t = 1, help_heading = "Input")]
    pub seed: u64,

    /// Save the map of each layer in a new folder.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub save_maps: Option<PathBuf>,

    /// A file for every number, in JSON; `-` is standard output.
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// Write what was found for each sentence: the sentence, its translation, the nearest sentences of the
    /// other side and their scores, at every layer (choose with --layers), raw, mean-centred and aligned,
    /// in both directions. Tab-separated (.tsv, a line for each neighbour) or JSON lines (.jsonl, a line for
    /// each sentence). Rows of arrays are named by their number, from 0.
    #[arg(long, value_name = "FILE.tsv|FILE.jsonl", help_heading = "Output")]
    pub predictions: Option<PathBuf>,

    /// How many neighbours --predictions lists for each sentence.
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Output", value_parser = one_or_more())]
    pub top: usize,

    /// Replace what exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    /// Whether the result is recorded.
    #[command(flatten)]
    pub record: RecordFlags,

    /// Where it is computed.
    #[command(flatten)]
    pub compute: Compute,
}

/// How two sentences are scored.
#[derive(Clone, Copy, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Retrieval {
    /// Cosine.
    Nn,
    /// CSLS (Lample et al. 2018).
    Csls,
    /// Ratio margin (Artetxe and Schwenk 2019).
    Margin,
    /// Distance margin.
    MarginDistance,
}

impl Request for Retrieve {
    const NAME: &str = "retrieve";
    const REVISION: u32 = 2;
    const LAST: &[&str] = &["columns"];
}

impl Retrieve {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(folder) = &self.save_maps {
            files::check_new_folder(folder, self.force)?;
            if self.train.is_empty() && self.train_source.is_none() {
                let message =
                    "--save-maps: no map is learned without other translations; give --train";
                return Err(Failure::Usage(message.into()));
            }
        }
        if let Some(path) = &self.out {
            files::check_new_file(path, self.force)?;
        }
        if let Some(path) = &self.predictions {
            files::check_new_file(path, self.force)?;
            text::check_table_name(path)?;
        }
        let (test, train) = self.vectors()?;
        let search = (self.measure(test.pairs.counts.used)?, steps(&self.normalize));
        let keep = if self.predictions.is_some() { self.top } else { 0 };
        let RetrievalOutput { result, maps, kept } = self.compute.run(|device| {
            let (measure, steps) = search;
            let search = RetrievalSearch { measure, steps, device: device.clone(), keep };
            retrieve(test.rows(), train.as_ref().map(VectorPairs::rows), &search)
        })??;
        if let (Some(pairs), Some(sides)) = (result.train_overlap, result.train_overlap_sides)
            && sides.iter().any(|side| *side > pairs)
        {
            let [source, target] = sides;
            say!(
                "warning: of the {} test pairs, {source} have a source sentence and {target} a target sentence that the maps were \
                 learned from",
                test.pairs.counts.used
            );
        }
        if let Some(seen @ 1..) = result.train_overlap {
            say!(
                "warning: the maps were learned from {seen} of the {} test pairs: what is found for them is how well they fit, \
                 and no test; give --train other pairs",
                test.pairs.counts.used
            );
        }
        if let Some(folder) = &self.save_maps {
            let maps: Vec<_> = test.layers.iter().copied().zip(maps).collect();
            save_maps(folder, self.force, &maps)?;
        }
        if let Some(path) = &self.predictions {
            let name = |side: usize, row: usize| test.name(side, row);
            let found = kept.iter().flat_map(|kept| kept.predictions(&test.pairs, &name));
            text::write_table(path, found)?;
        }
        if let Some(path) = &self.out {
            files::write(path, serde_json::to_string_pretty(&result)? + "\n")?;
            if files::is_standard(path) {
                return Ok(Outcome::silent());
            }
        }
        let outcome = Outcome::new(in_words(&result), &result);
        let outcome = self.predictions.iter().fold(outcome, |outcome, path| outcome.beside(path));
        let known = system(&self.text.models).into_iter().chain(pair(&self.text.parallel));
        Ok(self.record.keep(outcome, Extractor::Retrieval, 1, known))
    }

    fn measure(&self, sentences: usize) -> Result<Measure, Failure> {
        let name = self.retrieval.to_possible_value().expect("no value is hidden");
        Ok(Measure::named(name.get_name(), self.neighbors, sentences)?)
    }

    fn vectors(&self) -> Result<(VectorPairs, Option<VectorPairs>), Failure> {
        if !self.text.models.is_empty() {
            let (test, train, layers) =
                self.text.encode(&self.compute, &self.layers, &self.train, self.seed)?;
            let of = |pairs: EncodedPairs| VectorPairs::of_text(pairs, &layers);
            return Ok((of(test), train.map(of)));
        }
        let open = |a: &Option<PathBuf>, b: &Option<PathBuf>| {
            let Some((a, b)) = a.as_ref().zip(b.as_ref()) else { return Ok(None) };
            let mut stacks = [Stack::open(a)?, Stack::open(b)?];
            let layers = self.layers.of(stacks[0].layers() - 1)?;
            for stack in &mut stacks {
                let chosen = self.layers.of(stack.layers() - 1)?;
                stack.keep(&chosen);
            }
            let pairs = RowPairs::of_vectors(&stacks[0], &stacks[1])?;
            Ok::<_, Failure>(Some(VectorPairs { stacks, pairs, lines: None, layers }))
        };
        let test = open(&self.source, &self.target)?.ok_or_else(|| {
            Failure::Usage("give --model and --parallel twice, or --source and --target".into())
        })?;
        Ok((test, open(&self.train_source, &self.train_target)?))
    }
}

/// Vectors of translations, from a model or from arrays.
struct VectorPairs {
    stacks: [Stack; 2],
    pairs: RowPairs,
    /// The sentences of each side; none of arrays.
    lines: Option<[Vec<String>; 2]>,
    /// The numbers of the layers in their model.
    layers: Vec<usize>,
}

impl VectorPairs {
    fn of_text(encoded: EncodedPairs, layers: &[usize]) -> Self {
        let EncodedPairs { stacks, sides: [a, b], counts, .. } = encoded;
        let mut pairs = RowPairs::of_keys(&a.lines, &b.lines);
        pairs.counts = counts;
        Self { stacks, pairs, lines: Some([a.lines, b.lines]), layers: layers.to_vec() }
    }

    /// What a row of a side is called.
    fn name(&self, side: usize, row: usize) -> String {
        match &self.lines {
            Some(lines) => lines[side][row].clone(),
            None => row.to_string(),
        }
    }

    fn rows(&self) -> TranslatedRows<'_> {
        let [source, target] = &self.stacks;
        TranslatedRows { source, target, pairs: &self.pairs }
    }
}

fn in_words(result: &RetrievalResult) -> String {
    let mut text = format!(
        "retrieval accuracy (P@1) of {}, among {} and {} different sentences (chance {:.4})",
        result.counts, result.candidates[0], result.candidates[1], result.chance
    );
    if let Some(train) = result.train {
        let _ = write!(text, "\nmaps learned from {train} of other text");
    }
    if let Some(seen @ 1..) = result.train_overlap {
        let _ = write!(text, "; {seen} of these are test pairs, for which `aligned` is no test");
    }
    if let Some([source, target]) = result.train_overlap_sides.filter(|sides| *sides != [0, 0]) {
        let _ = write!(
            text,
            "; {source} source and {target} target sentences of the test are among them"
        );
    }
    text += "\n\n            raw            centred";
    text += if result.train.is_some() { "          aligned\n" } else { "\n" };
    text += "layer     →      ←        →      ←";
    text += if result.train.is_some() { "        →      ←\n" } else { "\n" };
    let cell = |found: RetrievalAccuracy| format!("{:.3}  {:.3}", found.forward, found.backward);
    for layer in &result.layers {
        let aligned = layer.aligned.map_or(String::new(), |found| format!("    {}", cell(found)));
        let name = layer.name.clone().unwrap_or_else(|| layer.layer.to_string());
        let (raw, centered) = (cell(layer.raw), cell(layer.centered));
        let _ = writeln!(text, "{name:>5}   {raw}    {centered}{aligned}");
    }
    text +=
        "\n→: each sentence of the first side asks among those of the second; ←: the other way\n";
    text += &result.signature;
    text
}
