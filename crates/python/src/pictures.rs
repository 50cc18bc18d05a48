//! Pictures of results, as SVG.

use geometry::cka::CkaResult;
use lab::draw::{Chart, ChartPoint, Figure, LineChart, LineSeries, cka_figure};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::Failure;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(cka_picture, module)?)?;
    module.add_function(wrap_pyfunction!(curves_picture, module)?)
}

/// The title and the SVG of a comparison by CKA, which is given as the JSON of its result.
#[pyfunction]
fn cka_picture(result: &str, names: [String; 2]) -> PyResult<(String, String)> {
    let result: CkaResult = serde_json::from_str(result).map_err(Failure::from)?;
    let numbered = |count: usize| (0..count).map(|layer| layer.to_string()).collect();
    let [x, y] = names;
    let sides = [(x, numbered(result.cka.len())), (y, numbered(result.cka[0].len()))];
    let figure = cka_figure(&result, sides);
    Ok((figure.title.clone(), figure.svg()))
}

/// The SVG of shares over layers, a curve for each name.
#[pyfunction]
fn curves_picture(title: String, across: String, curves: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut lines = Vec::new();
    for (colour, (name, values)) in curves.iter().enumerate() {
        let values: Vec<f64> = values.extract()?;
        let point = |(x, y): (usize, f64)| ChartPoint { x: x as f64, y, ..ChartPoint::default() };
        let points = values.into_iter().enumerate().map(point).collect();
        lines.push(LineSeries { name: name.extract()?, colour, dashed: false, points });
    }
    let unit = "P@1".to_owned();
    let chart = LineChart { across, unit, lines, from_zero: true, ..LineChart::default() };
    Ok(Figure::of("curves".to_owned(), title, &[Chart::Lines(chart)]).svg())
}
