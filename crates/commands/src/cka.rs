//! `isogloss cka`: representational similarity of two sets of vectors, up to rotation and scale.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::measured::Extractor;
use arrays::Stack;
use clap::Args;
use draw::{Figure, cka_figure};
use geometry::cka::{
    CkaConfig, CkaResult, ComparedRows, FEWEST_SUBSAMPLES, SimilarityInterval, compare, read_labels,
};
use geometry::retrieval::RetrievalResult;
use geometry::search::Watch;
use models::sentences::EncodedPairs;
use serde::Serialize;
use tensor::Device;
use terms::RowCounts;

use super::models::{Compute, Layers, ParallelTextFlags};
use super::record::{RecordFlags, pair, system};
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::counted;
use crate::request::Request;

const EXAMPLES: &str = "Examples:
  Two matrices of the same sentences, with a 95 % interval:
    isogloss cka fr.npy en.npy
  Parallel text through a model, all pairs of layers, and a figure:
    isogloss cka --model run --parallel fr=fr.txt --parallel en=en.txt --svg layers.svg
  XNLI's 9,999 different sentences, which stand in two files and two columns:
    isogloss cka --model run --parallel fr=dev-fr.tsv --parallel en=dev-en.tsv \\
      --parallel fr=test-fr.tsv --parallel en=test-en.tsv --columns 1,2
  Correlation with retrieval, layer by layer:
    isogloss retrieve --source fr.npy --target en.npy --out found.json
    isogloss cka fr.npy en.npy --curve found.json

Linear CKA is that of Kornblith et al. 2019; the debiased value uses the unbiased estimator of HSIC. Of
parallel text the biased value is given also with the mean of all sentences of the same length (in
tokens of the second side) subtracted: what sentence length alone explains is gone then.";

/// Flags of `cka`.
#[derive(Args, Serialize)]
#[command(after_help = EXAMPLES)]
pub struct Cka {
    /// What is compared.
    #[command(flatten)]
    pub sides: ComparedSides,

    /// Subsamples (halves, drawn without replacement) for 95 % intervals [default: 100 for two
    /// matrices, 0 for stacks].
    #[arg(long, value_name = "N", value_parser = subsamples, help_heading = "Evaluation")]
    pub subsamples: Option<usize>,

    /// Subtract the mean of rows that have the same label, rather than that of all: a label a line.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["limit", "sample_size"], help_heading = "Evaluation")]
    pub within: Option<PathBuf>,

    /// What `isogloss retrieve --out FILE` wrote of the same layers: to correlate with.
    #[arg(long, value_name = "FILE.json", help_heading = "Evaluation")]
    pub curve: Option<PathBuf>,

    /// Seed of --sample-size and of the subsamples.
    #[arg(long, default_value_t = 1, help_heading = "Evaluation")]
    pub seed: u64,

    /// Where it is computed and what becomes of it.
    #[command(flatten)]
    pub output: ComparisonOutput,
}

/// What is compared layer by layer: two files of vectors, or parallel text through a model.
#[derive(Args, Serialize)]
pub struct ComparedSides {
    /// Vectors: rows x dimension, or layers x rows x dimension; .npy, .npz or safetensors.
    #[arg(requires = "y", required_unless_present = "models", conflicts_with = "models")]
    pub x: Option<PathBuf>,

    /// Other vectors of the same things in the same order.
    pub y: Option<PathBuf>,

    /// Parallel text.
    #[command(flatten)]
    pub text: ParallelTextFlags,

    /// Which layers: all, or such as 0,4-8; 0 is the embeddings.
    #[arg(long, default_value = "all", help_heading = "Input")]
    pub layers: Layers,
}

impl ComparedSides {
    /// Two files of vectors, with the chosen layers, where they are given.
    pub(super) fn arrays(&self) -> Result<Option<[Stack; 2]>, Failure> {
        let (Some(x), Some(y)) = (&self.x, &self.y) else { return Ok(None) };
        let mut stacks = [Stack::open(x)?, Stack::open(y)?];
        for stack in &mut stacks {
            let chosen = self.layers.of(stack.layers() - 1)?;
            stack.keep(&chosen);
        }
        Ok(Some(stacks))
    }

    /// The parallel text, encoded; the seed is that of a sample of rows.
    pub(super) fn encode(&self, compute: &Compute, seed: u64) -> Result<EncodedPairs, Failure> {
        Ok(self.text.encode(compute, &self.layers, &[], seed)?.0)
    }
}

/// Where a comparison is computed and what becomes of it: printed, drawn, recorded.
#[derive(Args, Serialize)]
pub struct ComparisonOutput {
    /// Draw the result by layer.
    #[arg(long, value_name = "FILE.svg", help_heading = "Output")]
    pub svg: Option<PathBuf>,

    /// Replace a file that exists.
    #[arg(short, long, help_heading = "Output")]
    pub force: bool,

    /// Whether the result is recorded.
    #[command(flatten)]
    pub record: RecordFlags,

    /// Where it is computed.
    #[command(flatten)]
    pub compute: Compute,
}

impl ComparisonOutput {
    /// Refuses a drawing that would replace a file.
    pub(super) fn check(&self) -> Result<(), Failure> {
        self.svg.iter().try_for_each(|path| Ok(files::check_new_file(path, self.force)?))
    }

    /// Draws and records a result, where that is asked for.
    pub(super) fn finish(
        &self,
        outcome: Outcome,
        figure: impl FnOnce() -> Figure,
        extractor: Extractor,
        sides: &ComparedSides,
    ) -> Result<Outcome, Failure> {
        if let Some(path) = &self.svg {
            files::write(path, figure().svg())?;
        }
        let known = system(&sides.text.models).into_iter().chain(pair(&sides.text.parallel));
        Ok(self.record.keep(outcome, extractor, 1, known))
    }
}

/// How many subsamples: none, or enough for the ends of an interval.
pub(super) fn subsamples(text: &str) -> Result<usize, String> {
    let enough = |&subsamples: &usize| subsamples == 0 || subsamples >= FEWEST_SUBSAMPLES;
    let subsamples = text.parse().ok().filter(enough);
    subsamples.ok_or_else(|| format!("give 0, or at least {FEWEST_SUBSAMPLES}"))
}

impl Request for Cka {
    const NAME: &str = "cka";
    const REVISION: u32 = 2;
}

impl Cka {
    /// Runs the command to its end.
    pub fn run(self) -> Result<Outcome, Failure> {
        self.output.check()?;
        let rows = self.rows()?;
        self.output.compute.run(|device| self.compare(&rows, device))?
    }

    fn compare(&self, rows: &EncodedRows, device: &Device) -> Result<Outcome, Failure> {
        let EncodedRows { stacks: [x, y], counts, groups, lengths } = rows;
        let config = CkaConfig { subsamples: self.subsamples, seed: self.seed };
        let watch = ["layers", "subsamples", "layers within lengths"].map(counted);
        let watch = [&watch[0] as Watch<'_>, &watch[1], &watch[2]];
        let rows = ComparedRows {
            counts: *counts,
            groups: groups.as_deref(),
            lengths: lengths.as_deref(),
        };
        let mut result = compare(x, y, rows, config, device, watch)?;
        if let Some(path) = &self.curve {
            result.correlate(&read_retrieval(path)?)?;
        }
        let outcome = Outcome::new(in_words(&result, x, y), &result);
        let figure = || {
            let sides = [x, y].map(|stack| (file_name(stack), layer_names(stack)));
            cka_figure(&result, sides)
        };
        self.output.finish(outcome, figure, Extractor::Similarity, &self.sides)
    }

    fn rows(&self) -> Result<EncodedRows, Failure> {
        let labels =
            |rows: usize| self.within.as_deref().map(|path| read_labels(path, rows)).transpose();
        if let Some(stacks) = self.sides.arrays()? {
            let groups = labels(stacks[0].rows())?;
            return Ok(EncodedRows { stacks, counts: None, groups, lengths: None });
        }
        let encoded = self.sides.encode(&self.output.compute, self.seed)?;
        let EncodedPairs { stacks, lengths: [_, lengths], rows, counts, .. } = encoded;
        let of_rows = |labels: Vec<u32>| rows.iter().map(|&row| labels[row]).collect();
        let groups = labels(counts.rows)?.map(of_rows);
        Ok(EncodedRows { stacks, counts: Some(counts), groups, lengths: Some(lengths) })
    }
}

/// What `retrieve` wrote.
fn read_retrieval(path: &Path) -> Result<RetrievalResult, Failure> {
    let wrong = |reason: String| {
        Failure::Usage(format!(
            "{}: {reason}; give what `isogloss retrieve --out FILE` wrote of these layers",
            path.display()
        ))
    };
    let text = files::limits::read_text(path)
        .map_err(|error| wrong(format!("cannot read it ({error})")))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

/// What is compared, row by row.
struct EncodedRows {
    stacks: [Stack; 2],
    /// Of text.
    counts: Option<RowCounts>,
    /// The group of each row, where --within gives it one.
    groups: Option<Vec<u32>>,
    /// Tokens of each sentence of the second side, where text was encoded.
    lengths: Option<Vec<u32>>,
}

fn layer_names(stack: &Stack) -> Vec<String> {
    (0..stack.layers()).map(|layer| stack.layer_name(layer).to_owned()).collect()
}

fn file_name(stack: &Stack) -> String {
    let name = Path::new(stack.name()).file_name();
    name.map_or_else(|| stack.name().to_owned(), |name| name.to_string_lossy().into_owned())
}

fn in_words(result: &CkaResult, x: &Stack, y: &Stack) -> String {
    let mut text = String::new();
    // Within groups there is none.
    let has_debiased = result.debiased.iter().flatten().any(Option::is_some);
    let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    let intervals = result.intervals.as_ref();
    if x.layers() == 1 && y.layers() == 1 {
        let range = |interval: Option<SimilarityInterval>| {
            interval.map_or(String::new(), |i| format!("   95 %: {:.3} to {:.3}", i.low, i.high))
        };
        let of = intervals.map(|intervals| (intervals.cka[0][0], intervals.debiased[0][0]));
        let _ = writeln!(text, "CKA        {:.4}{}", result.cka[0][0], range(of.map(|of| of.0)));
        if let Some(debiased) = result.debiased[0][0] {
            let range = range(of.and_then(|of| of.1));
            let _ = writeln!(text, "debiased   {debiased:.4}{range}");
        }
        if let Some(within) = &result.within_length {
            let _ = writeln!(text, "within sentences of the same length   {:.4}", within[0][0]);
        }
    } else {
        let within = result.within_length.as_deref().map(some);
        let tables = [
            ("CKA, biased", Some(some(&result.cka))),
            ("CKA, debiased", has_debiased.then(|| result.debiased.clone())),
            ("CKA, biased, within sentences of the same length", within),
        ];
        for (name, rows) in tables.into_iter().filter_map(|(name, rows)| Some((name, rows?))) {
            let _ = writeln!(text, "{name} (down: {}, across: {})", file_name(x), file_name(y));
            let heads = (0..y.layers()).map(|layer| format!("{:>7}", y.layer_name(layer)));
            let _ = writeln!(text, "{:>8}{}", "", heads.collect::<String>());
            for (layer, row) in rows.iter().enumerate() {
                let cells: String =
                    row.iter().map(|&value| format!("{:>7}", shown(value))).collect();
                let _ = writeln!(text, "{:>8}{cells}", x.layer_name(layer));
            }
            text.push('\n');
        }
        if let Some(intervals) = intervals {
            let widest = intervals.cka.iter().flatten().map(|i| i.high - i.low).fold(0.0, f64::max);
            let _ = writeln!(text, "95 % intervals (in --json): at most {widest:.3} wide");
        }
    }
    for (name, value) in &result.pearson {
        let _ = writeln!(text, "Pearson correlation with retrieval ({name})   {}", shown(*value));
    }
    text += &rows_in_words(result.counts, result.dims);
    if result.few_rows {
        let _ = writeln!(
            text,
            "warning: n is not well above d, so that CKA is high by chance alone; trust the debiased value"
        );
    }
    if result.signature.contains("within-groups") {
        let _ = writeln!(text, "within groups there is no debiased value");
    } else if result.debiased.iter().flatten().any(Option::is_none) {
        let _ = writeln!(
            text,
            "none: the vectors differ by no more than chance, which leaves nothing to compare"
        );
    }
    let _ = write!(text, "{}", result.signature);
    text
}

/// How many rows were compared, of which dimensions, and a warning where some weigh more than once.
pub(crate) fn rows_in_words(counts: RowCounts, dims: [usize; 2]) -> String {
    let RowCounts { repeated, used, .. } = counts;
    let mut text = format!("n {used}, d {} and {}\n", dims[0], dims[1]);
    if used < counts.rows {
        let _ = writeln!(text, "compared {counts}");
    } else if repeated > 0 {
        let _ = writeln!(
            text,
            "warning: {repeated} rows equal an earlier one in both arrays and weigh as often as they \
             stand there; encode parallel text by --model, which takes them once"
        );
    }
    text
}

/// Values that are all there.
fn some(values: &[Vec<f64>]) -> Vec<Vec<Option<f64>>> {
    values.iter().map(|row| row.iter().map(|&value| Some(value)).collect()).collect()
}
