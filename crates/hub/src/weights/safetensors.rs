//! safetensors: a header in JSON, then the numbers.

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::{Located, NumberType, Tensors};

/// Finds the tensors of a file. The library refuses headers of more than 100 MB, and tensors that
/// overlap, leave gaps, go beyond the file, or are not as large as their shape.
pub fn read(bytes: &[u8]) -> Result<Tensors, String> {
    let file = SafeTensors::deserialize(bytes)
        .map_err(|error| format!("is cut short or no safetensors file ({error})"))?;
    let start = bytes.as_ptr() as usize;
    let mut tensors = Tensors::new();
    for (name, view) in file.tensors() {
        let first = view.data().as_ptr() as usize - start;
        let located = Located {
            element: element(view.dtype()),
            shape: view.shape().to_vec(),
            bytes: first..first + view.data().len(),
        };
        tensors.insert(name, located);
    }
    Ok(tensors)
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
