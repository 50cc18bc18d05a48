//! `isogloss cka`: how similar two sets of vectors are, up to rotation and scale.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use arrays::Stack;
use clap::Args;
use geometry::cka::{ENOUGH, Interval, Intervals, Rows, Table, intervals, pearson, table};
use lab::draw::{Figure, Heatmap};
use serde::Serialize;
use serde_json::Value;
use tensor::Device;

use super::models::Place;
use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::progress::counted;

const EXAMPLES: &str = "Examples:
  Two matrices of the same sentences, with an interval:
    isogloss cka fr.npy en.npy
  Two stacks of layers, as `isogloss encode --layers all` writes them, and a picture:
    isogloss cka fr.npy en.npy --svg layers.svg
  With what only comes from sentences of unequal length taken away:
    isogloss encode --model run --lang fr --text fr.txt --out fr.npy --lengths fr.lengths
    isogloss cka fr.npy en.npy --within fr.lengths
  Does it go with retrieval, layer by layer?
    isogloss retrieve --source fr.npy --target en.npy --json > found.json
    isogloss cka fr.npy en.npy --curve found.json";

/// Samples drawn for the interval of one value, where nothing else is asked for.
const SAMPLES: usize = 100;

/// Flags of `cka`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cka {
    /// Vectors: rows x dimension, or layers x rows x dimension; .npy, .npz or safetensors.
    x: PathBuf,

    /// Other vectors of the same things in the same order.
    y: PathBuf,

    /// Half-samples to draw for intervals of 95 % [default: 100 for two matrices, 0 for stacks].
    #[arg(long, value_name = "N", value_parser = samples)]
    bootstrap: Option<usize>,

    /// Take away the mean of rows that have the same label, rather than that of all: a label a line.
    #[arg(long, value_name = "FILE")]
    within: Option<PathBuf>,

    /// Draw the table of layers.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,

    /// What `isogloss retrieve --json` printed of the same layers: to correlate with.
    #[arg(long, value_name = "FILE.json")]
    curve: Option<PathBuf>,

    /// Decides the samples.
    #[arg(long, default_value_t = 1)]
    seed: u64,

    #[command(flatten)]
    place: Place,
}

/// What `cka` says when done. Of two matrices, `cka` and `debiased` are numbers; of stacks, tables.
#[derive(Serialize)]
struct Compared {
    cka: Value,
    debiased: Value,
    n: usize,
    /// Dimensions of the first and of the second.
    d: [usize; 2],
    interval: Value,
    /// Correlation of the layers' values with each retrieval curve.
    #[serde(skip_serializing_if = "HashMap::is_empty")]
    pearson: HashMap<String, Option<f64>>,
    /// Whether there are too few rows for the biased value to mean much.
    few_rows: bool,
    signature: String,
}

/// How many half-samples: none, or enough for the ends of an interval.
fn samples(text: &str) -> Result<usize, String> {
    let samples = text.parse().ok().filter(|&samples: &usize| samples == 0 || samples >= FEW);
    samples.ok_or_else(|| format!("give 0, or at least {FEW}"))
}

/// Fewer samples have no 95 %.
const FEW: usize = 20;

impl Cka {
    pub(crate) fn run(self) -> Result<Outcome, Failure> {
        if let Some(path) = &self.svg {
            files::check_new_file(path, true)?;
        }
        self.place.run(|device| self.compare(device))?
    }

    fn compare(&self, device: &Device) -> Result<Outcome, Failure> {
        let (x, y) = (Stack::open(&self.x)?, Stack::open(&self.y)?);
        let labels = self.within.as_deref().map(|path| read_labels(path, x.rows())).transpose()?;
        let rows = Rows { kept: None, groups: labels.as_deref() };
        let table = table(&x, &y, rows, device, &counted("layers"))?;
        let single = x.layers() == 1 && y.layers() == 1;
        let samples = self.bootstrap.unwrap_or(if single { SAMPLES } else { 0 });
        let intervals = match samples {
            0 => None,
            _ if x.rows() / 2 < geometry::cka::FEWEST => None,
            _ => {
                let (drawn, watch) = ((samples, self.seed), counted("samples"));
                Some(intervals(&x, &y, rows, &table, drawn, device, &watch)?)
            }
        };
        if let Some(path) = &self.svg {
            files::write(path, self.picture(&x, &y, &table).svg())?;
        }
        let d = [x.dim(0), y.dim(0)];
        let compared = Compared {
            cka: of_table(&table.cka, single),
            debiased: of_table(&table.debiased, single),
            n: table.n,
            d,
            interval: intervals
                .as_ref()
                .map_or(Value::Null, |intervals| of_intervals(intervals, single)),
            pearson: self.correlations(&table)?,
            few_rows: table.n < ENOUGH * d[0].max(d[1]),
            signature: self.signature(intervals.as_ref().map_or(0, |intervals| intervals.samples)),
        };
        let text = in_words(&compared, &x, &y, &table, intervals.as_ref());
        Ok(Outcome::new(text, &compared))
    }

    fn signature(&self, samples: usize) -> String {
        let (centre, debiased) = match self.within {
            Some(_) => ("within-groups", "none"),
            None => ("mean", "unbiased-hsic"),
        };
        let intervals = if samples == 0 {
            "none".to_owned()
        } else {
            format!("95%,half-samples={samples},seed={}", self.seed)
        };
        format!(
            "cka:linear|center:{centre}|debiased:{debiased}|interval:{intervals}|v{}",
            env!("CARGO_PKG_VERSION")
        )
    }

    fn picture(&self, x: &Stack, y: &Stack, table: &Table) -> Figure {
        let names = |stack: &Stack| {
            (0..stack.layers()).map(|layer| stack.layer_name(layer).to_owned()).collect()
        };
        let of = |stack: &Stack| (format!("layers of {}", file_name(stack)), names(stack));
        let within = self.within.is_some();
        let map = Heatmap {
            title: format!("n = {}, d = {} and {}", table.n, x.dim(0), y.dim(0)),
            down: of(x),
            across: of(y),
            values: if within { biased(table) } else { table.debiased.clone() },
            range: (0.0, 1.0),
        };
        let kind = if within { "linear CKA within groups" } else { "debiased linear CKA" };
        Figure {
            id: "cka".into(),
            title: format!("{} and {}: {kind}", file_name(x), file_name(y)),
            legend: vec![],
            panels: vec![map.panel()],
        }
    }

    /// The correlation of the diagonal with each curve of the file.
    fn correlations(&self, table: &Table) -> Result<HashMap<String, Option<f64>>, Failure> {
        let Some(path) = &self.curve else { return Ok(HashMap::new()) };
        let wrong = |reason: &str| {
            Failure::Usage(format!(
                "{}: {reason}; give what `isogloss retrieve --json` printed of these layers",
                path.display()
            ))
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| wrong(&format!("cannot read it ({error})")))?;
        let json: Value = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        let layers = json["layers"].as_array().ok_or_else(|| wrong("it has no layers"))?;
        if layers.len() != table.cka.len() || layers.len() != table.cka[0].len() {
            return Err(wrong(&format!(
                "it has {} layers, the vectors have {} and {}",
                layers.len(),
                table.cka.len(),
                table.cka[0].len()
            )));
        }
        if layers.len() < 3 {
            return Err(wrong("a correlation needs at least three layers"));
        }
        let diagonal: Vec<f64> = (0..layers.len()).map(|layer| table.cka[layer][layer]).collect();
        let curve = |name: &str| -> Option<Vec<f64>> {
            let value = |layer: &Value| {
                Some((layer[name]["forward"].as_f64()? + layer[name]["backward"].as_f64()?) / 2.0)
            };
            layers.iter().map(value).collect()
        };
        let names = ["raw", "shifted", "aligned"];
        let correlate = |name: &str| Some((name.to_owned(), pearson(&diagonal, &curve(name)?)));
        Ok(names.into_iter().filter_map(correlate).collect())
    }
}

fn file_name(stack: &Stack) -> String {
    let name = Path::new(stack.name()).file_name();
    name.map_or_else(|| stack.name().to_owned(), |name| name.to_string_lossy().into_owned())
}

/// One number where there is one, else the table.
fn of_table<T: Serialize>(table: &[Vec<T>], single: bool) -> Value {
    if single { serde_json::json!(table[0][0]) } else { serde_json::json!(table) }
}

fn of_intervals(intervals: &Intervals, single: bool) -> Value {
    serde_json::json!({
        "samples": intervals.samples,
        "cka": of_table(&intervals.cka, single),
        "debiased": of_table(&intervals.debiased, single),
    })
}

/// The group of each row, by the label on its line.
fn read_labels(path: &Path, rows: usize) -> Result<Vec<u32>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |label| {
        let next = numbers.len() as u32;
        *numbers.entry(label).or_insert(next)
    };
    let labels: Vec<u32> = text.lines().map(|line| number(line.trim())).collect();
    if labels.len() != rows {
        let message = format!(
            "{} has {} labels for {rows} rows; give one a line",
            path.display(),
            labels.len()
        );
        return Err(Failure::Usage(message));
    }
    if numbers.len() * 2 > rows {
        let message = format!(
            "{} has {} labels for {rows} rows, which leaves too little within them",
            path.display(),
            numbers.len()
        );
        return Err(Failure::Usage(message));
    }
    Ok(labels)
}

fn in_words(
    compared: &Compared,
    x: &Stack,
    y: &Stack,
    table: &Table,
    intervals: Option<&Intervals>,
) -> String {
    let mut text = String::new();
    let shown = |value: Option<f64>| value.map_or("none".to_owned(), |value| format!("{value:.3}"));
    if x.layers() == 1 && y.layers() == 1 {
        let range = |interval: Option<Interval>| {
            interval.map_or(String::new(), |i| format!("   95 %: {:.3} to {:.3}", i.low, i.high))
        };
        let of = intervals.map(|intervals| (intervals.cka[0][0], intervals.debiased[0][0]));
        let _ = writeln!(text, "CKA        {:.4}{}", table.cka[0][0], range(of.map(|of| of.0)));
        let _ = writeln!(
            text,
            "debiased   {}{}",
            table.debiased[0][0].map_or("none".to_owned(), |v| format!("{v:.4}")),
            range(of.and_then(|of| of.1))
        );
    } else {
        for (name, rows) in
            [("CKA as the papers have it", biased(table)), ("debiased", table.debiased.clone())]
        {
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
            let _ = writeln!(text, "intervals of 95 % (in --json): at most {widest:.3} wide");
        }
    }
    for name in ["raw", "shifted", "aligned"] {
        if let Some(value) = compared.pearson.get(name) {
            let _ = writeln!(text, "correlation with retrieval ({name})   {}", shown(*value));
        }
    }
    let _ = writeln!(text, "n {}, d {} and {}", compared.n, compared.d[0], compared.d[1]);
    if compared.few_rows {
        let _ = writeln!(
            text,
            "warning: n is not well above d, so that CKA is high by chance alone; trust the debiased value"
        );
    }
    if compared.signature.contains("within-groups") {
        let _ = writeln!(text, "none: within groups there is no debiased value");
    } else if table.debiased.iter().flatten().any(Option::is_none) {
        let _ = writeln!(
            text,
            "none: the vectors differ by no more than chance, which leaves nothing to compare"
        );
    }
    let _ = write!(text, "{}", compared.signature);
    text
}

fn biased(table: &Table) -> Vec<Vec<Option<f64>>> {
    table.cka.iter().map(|row| row.iter().map(|&value| Some(value)).collect()).collect()
}
