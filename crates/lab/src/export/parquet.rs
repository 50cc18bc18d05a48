//! Parquet: typed columns, each of which may have gaps.

use std::io;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;

use super::{ColumnValues, ResultsSheet, SheetColumn};

pub(super) fn write(sheet: &ResultsSheet, out: &mut (impl io::Write + Send)) -> io::Result<()> {
    let inner = || -> parquet::errors::Result<()> {
        let fields = sheet
            .columns
            .iter()
            .map(|column| field(column).map(Arc::new))
            .collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("results").with_fields(fields).build()?;
        let properties = Arc::new(WriterProperties::builder().build());
        let mut file = SerializedFileWriter::new(out, Arc::new(schema), properties)?;
        let mut group = file.next_row_group()?;
        for column in &sheet.columns {
            let mut writer = group.next_column()?.expect("the schema has a place for every column");
            fill(&mut writer, &column.values)?;
            writer.close()?;
        }
        group.close()?;
        file.close().map(drop)
    };
    inner().map_err(io::Error::other)
}

fn field(column: &SheetColumn) -> parquet::errors::Result<Type> {
    let (physical, logical) = match column.values {
        ColumnValues::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnValues::Number(_) | ColumnValues::Level(_) => (Physical::DOUBLE, None),
        ColumnValues::Whole(_) => (Physical::INT64, Some(LogicalType::integer(64, false))),
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()
}

fn fill(
    writer: &mut SerializedColumnWriter<'_>,
    cells: &ColumnValues,
) -> parquet::errors::Result<()> {
    fn present<T>(cells: &[Option<T>]) -> Vec<i16> {
        cells.iter().map(|cell| i16::from(cell.is_some())).collect()
    }
    match cells {
        ColumnValues::Text(cells) => {
            let values: Vec<ByteArray> =
                cells.iter().flatten().map(|text| ByteArray::from(text.as_str())).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&present(cells)), None)?;
        }
        ColumnValues::Number(cells) | ColumnValues::Level(cells) => {
            let values: Vec<f64> = cells.iter().flatten().copied().collect();
            writer.typed::<DoubleType>().write_batch(&values, Some(&present(cells)), None)?;
        }
        ColumnValues::Whole(cells) => {
            let values: Vec<i64> =
                cells.iter().flatten().map(|value| value.cast_signed()).collect();
            writer.typed::<Int64Type>().write_batch(&values, Some(&present(cells)), None)?;
        }
    }
    Ok(())
}
