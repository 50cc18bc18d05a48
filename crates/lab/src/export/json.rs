//! A list of objects, one for each row; what a row does not have is left out.

use serde_json::{Map, Value};

use super::{ColumnValues, ResultsSheet};

pub(super) fn rows(sheet: &ResultsSheet) -> Value {
    let row = |row: usize| {
        let cell = |cells: &ColumnValues| match cells {
            ColumnValues::Text(cells) => cells[row].clone().map(Value::from),
            ColumnValues::Number(cells) | ColumnValues::Level(cells) => cells[row].map(Value::from),
            ColumnValues::Whole(cells) => cells[row].map(Value::from),
        };
        let cells = sheet
            .columns
            .iter()
            .filter_map(|column| Some((column.name.clone(), cell(&column.values)?)));
        Value::Object(cells.collect::<Map<_, _>>())
    };
    Value::Array((0..sheet.rows()).map(row).collect())
}
