//! safetensors: a header in JSON, then the numbers.

use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

use super::{Element, Located, Tensors};

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

fn element(dtype: Dtype) -> Element {
    match dtype {
        Dtype::F32 => Element::F32,
        Dtype::F16 => Element::F16,
        Dtype::BF16 => Element::Bf16,
        Dtype::F64 => Element::F64,
        Dtype::I64 => Element::I64,
        Dtype::I32 => Element::I32,
        Dtype::I16 => Element::I16,
        Dtype::I8 => Element::I8,
        Dtype::U8 => Element::U8,
        Dtype::BOOL => Element::Bool,
        _ => Element::Other,
    }
}
