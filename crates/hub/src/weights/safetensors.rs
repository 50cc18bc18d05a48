//! safetensors: a header in JSON, then the numbers.

use std::io::{Read, Seek, SeekFrom};

use safetensors::tensor::{Dtype, Metadata};

use super::{Located, NumberType, Tensors};

/// The longest header, as the library has it.
const LONGEST_HEADER: u64 = 100_000_000;

/// Finds the tensors of a file, of which only the header is read. The library refuses tensors that overlap, leave gaps,
/// or are not as large as their shape.
pub fn read(mut file: impl Read + Seek) -> Result<Tensors, String> {
    let wrong =
        |error: &dyn std::fmt::Display| format!("is cut short or no safetensors file ({error})");
    let length = file.seek(SeekFrom::End(0)).map_err(|error| wrong(&error))?;
    file.rewind().map_err(|error| wrong(&error))?;
    let mut header_length = [0; 8];
    file.read_exact(&mut header_length).map_err(|error| wrong(&error))?;
    let header_length = u64::from_le_bytes(header_length);
    if header_length > LONGEST_HEADER || header_length + 8 > length {
        return Err(wrong(&format!("its header is said to have {header_length} bytes")));
    }
    let mut header = vec![0; header_length as usize];
    file.read_exact(&mut header).map_err(|error| wrong(&error))?;
    let header: Metadata = serde_json::from_slice(&header).map_err(|error| wrong(&error))?;
    let start = 8 + header_length as usize;
    if start.checked_add(header.data_len()).map(|end| end as u64) != Some(length) {
        return Err(wrong(&"its tensors end elsewhere than the file"));
    }
    let located = |(name, info): (String, &safetensors::tensor::TensorInfo)| {
        let (first, last) = info.data_offsets;
        let (element, shape) = (element(info.dtype), info.shape.clone());
        (name, Located { element, shape, bytes: start + first..start + last, head_rows: None })
    };
    Ok(header.tensors().into_iter().map(located).collect())
}

fn element(dtype: Dtype) -> NumberType {
    match dtype {
        Dtype::F32 => NumberType::F32,
        Dtype::F16 => NumberType::F16,
        Dtype::BF16 => NumberType::Bf16,
        Dtype::F64 => NumberType::F64,
        Dtype::I64 => NumberType::I64,
        Dtype::I32 => NumberType::I32,
        Dtype::I16 => NumberType::I16,
        Dtype::I8 => NumberType::I8,
        Dtype::U8 => NumberType::U8,
        Dtype::BOOL => NumberType::Bool,
        _ => NumberType::Other,
    }
}
