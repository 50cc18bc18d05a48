//! Word alignment of sentence pairs in memory.

use align::{
    AlignedBitext, AlignmentConfig, AlignmentDirection, AlignmentObserver, Bitext, EmIteration,
    Symmetrization, align_bitext,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::errors::Failure;
use crate::values::dictionary;
use crate::work::{self, Watched};

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(word_aligned, module)?)
}

/// How a model is trained and links are combined.
#[derive(FromPyObject)]
struct AlignmentSettings {
    #[pyo3(item)]
    symmetrize: String,
    #[pyo3(item)]
    iterations: usize,
    #[pyo3(item)]
    p_null: f64,
    #[pyo3(item)]
    tension: f64,
    #[pyo3(item)]
    max_tension: f64,
    #[pyo3(item)]
    prior: Option<f64>,
    #[pyo3(item)]
    allow_empty: bool,
}

/// Shows the iterations of both directions.
struct IterationCount<'a> {
    watched: &'a Watched,
    done: u64,
    total: u64,
}

impl AlignmentObserver for IterationCount<'_> {
    fn iteration(&mut self, _: AlignmentDirection, done: &EmIteration) {
        self.done += 1;
        let note = format!("perplexity {:.2}", done.perplexity);
        self.watched.show("iterations", self.done, self.total, &note);
    }
}

/// The links of a pair: source word, target word.
type PairLinks = Vec<(u16, u16)>;

/// Aligns the words of sentence pairs. Gives the links of each pair, and what came of training.
#[pyfunction]
fn word_aligned<'py>(
    py: Python<'py>,
    pairs: Vec<(String, String)>,
    settings: AlignmentSettings,
    threads: usize,
) -> PyResult<(Vec<PairLinks>, Bound<'py, PyDict>)> {
    let symmetrization: Symmetrization =
        serde_json::from_value(Value::String(settings.symmetrize.clone())).map_err(|_| {
            let message = format!(
                "there is no `{}`; give intersect, union, grow-diag, grow-diag-final or grow-diag-final-and",
                settings.symmetrize
            );
            Failure::usage("symmetrize", message)
        })?;
    check(&pairs, settings.allow_empty)?;
    let size = pairs.iter().map(|(a, b)| a.len() * b.len()).sum();
    let aligned = work::run_on(py, size, work::on_cpu(threads), move |_, watched| {
        let bitext = Bitext::new(pairs.iter().map(|(a, b)| (a.as_str(), b.as_str())));
        let config = AlignmentConfig {
            iterations: settings.iterations,
            p_null: settings.p_null,
            tension: settings.tension,
            max_tension: settings.max_tension,
            prior: settings.prior,
            ..AlignmentConfig::default()
        };
        let total = 2 * settings.iterations as u64;
        let mut shown = IterationCount { watched, done: 0, total };
        Ok(align_bitext(&bitext, &config, symmetrization, &mut shown)?)
    })?;
    let AlignedBitext { links, iterations: [forward, reverse], signature } = aligned;
    let result = PyDict::new(py);
    result.set_item("forward", dictionary(py, &forward)?)?;
    result.set_item("reverse", dictionary(py, &reverse)?)?;
    result.set_item("signature", signature)?;
    Ok((links.iter().map(|links| links.iter().collect()).collect(), result))
}

/// Refuses pairs that could not be linked.
fn check(pairs: &[(String, String)], allow_empty: bool) -> Result<(), Failure> {
    if pairs.is_empty() {
        return Err(Failure::usage(
            "pairs",
            "pairs: there are none; give sentences and their translations",
        ));
    }
    for (number, (source, target)) in pairs.iter().enumerate() {
        for side in [source, target] {
            let words = side.split_ascii_whitespace().take(usize::from(u16::MAX)).count();
            if words == 0 && !allow_empty {
                let message = format!(
                    "pairs[{number}]: a side has no word; leave the pair out, or give allow_empty=True"
                );
                return Err(Failure::usage("pairs", message));
            }
            if words >= usize::from(u16::MAX) {
                let message = format!("pairs[{number}]: a side has 65,535 words or more; split it");
                return Err(Failure::usage("pairs", message));
            }
        }
    }
    Ok(())
}
