//! A list of objects, one for each row; what a row does not have is left out.

use serde_json::{Map, Value};

use super::{Cells, Sheet};

pub(super) fn rows(sheet: &Sheet) -> Value {
    let row = |row: usize| {
        let cell = |cells: &Cells| match cells {
            Cells::Text(cells) => cells[row].clone().map(Value::from),
            Cells::Number(cells) => cells[row].map(Value::from),
            Cells::Whole(cells) => cells[row].map(Value::from),
        };
        let cells = sheet
            .columns
            .iter()
            .filter_map(|column| Some((column.name.clone(), cell(&column.cells)?)));
        Value::Object(cells.collect::<Map<_, _>>())
    };
    Value::Array((0..sheet.rows()).map(row).collect())
}
