//! Tensor maps: a matrix as Hopper's TMA (Tensor Memory Accelerator) knows it.

#![allow(unsafe_code, reason = "the driver speaks in raw pointers")]

use std::ffi::c_void;

use cudarc::driver::sys::{self, CUdeviceptr, CUtensorMap};

use super::fault::must;

/// Rows and columns of a TMA box: 64 rows of a head of 64.
const BOX: [u32; 2] = [64, 64];

/// A matrix of bf16, of which TMA copies 64 x 64 at a time with the 128-byte swizzle that `wgmma` reads:
/// chunk `c` of 16 bytes of row `r` comes to `c ^ r % 8`. Rows beyond the last come as zeros.
pub(super) fn map(pointer: CUdeviceptr, rows: usize, cols: usize) -> CUtensorMap {
    let mut map = CUtensorMap { opaque: [0; 16] };
    let (size, pitch, step) = ([cols as u64, rows as u64], [cols as u64 * 2], [1, 1]);
    // SAFETY: the driver reads two sizes, one distance, two lengths and two steps, and writes the map.
    let made = unsafe {
        sys::cuTensorMapEncodeTiled(
            &raw mut map,
            sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            2,
            pointer as *mut c_void,
            size.as_ptr(),
            pitch.as_ptr(),
            BOX.as_ptr(),
            step.as_ptr(),
            sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
            sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    };
    must(made.result(), "encoding a tensor map");
    map
}
