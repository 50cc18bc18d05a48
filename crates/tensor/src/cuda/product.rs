//! Matrix products through cuBLASLt.
//!
//! The library counts matrices column after column; ours lie row after row, which is the same memory
//! read as the transpose. So `y = x · w` is asked for as `yᵀ = wᵀ · xᵀ`.

#![allow(unsafe_code, reason = "the library speaks in raw pointers")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

use cudarc::cublaslt::result as lt;
use cudarc::cublaslt::sys;
use cudarc::driver::sys::CUdeviceptr;

use super::context::{Context, Memory};
use super::fault::{fail, must};
use super::lock;
use crate::device::DeviceError;
use crate::kernels::Precision;

/// Memory in which the library may add up parts of a product.
const WORKSPACE: usize = 64 << 20;
/// Shapes that are remembered before beginning anew.
const MOST_PLANS: usize = 4096;

/// A matrix as it lies in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Side {
    pub(super) pointer: CUdeviceptr,
    pub(super) precision: Precision,
    /// Elements from one row to the next.
    pub(super) pitch: usize,
    /// Whether rows and columns are exchanged.
    pub(super) turned: bool,
}

/// `out = left · right (+ out) (+ bias in every row)`.
pub(super) struct Product {
    pub(super) left: Side,
    pub(super) right: Side,
    pub(super) out: Side,
    /// Rows and columns of the result, and what is summed over.
    pub(super) size: [usize; 3],
    pub(super) accumulate: bool,
    /// One number for each column, as precise as the result.
    pub(super) bias: Option<CUdeviceptr>,
}

/// What a plan depends on.
#[derive(PartialEq, Eq, Hash)]
struct Shape {
    sides: [(Precision, usize, bool, u32); 3],
    size: [usize; 3],
    accumulate: bool,
    bias: bool,
}

/// A way to compute products of one shape.
struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

// SAFETY: descriptions are plain memory, used under a lock.
unsafe impl Send for Plan {}

/// The library.
pub(super) struct Products {
    handle: sys::cublasLtHandle_t,
    context: Arc<Context>,
    workspace: Memory,
    plans: Mutex<HashMap<Shape, Plan>>,
}

// SAFETY: the handle may be used from any thread.
unsafe impl Send for Products {}
// SAFETY: as above; plans are behind a lock.
unsafe impl Sync for Products {}

impl Products {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, DeviceError> {
        context.prepare();
        let handle = lt::create_handle().map_err(|error| DeviceError::Gpu {
            what: "open cuBLASLt",
            reason: format!("{error:?}"),
        })?;
        let workspace = context.take(WORKSPACE);
        Ok(Self { handle, context: Arc::clone(context), workspace, plans: Mutex::default() })
    }

    /// Computes a product, in the order of the stream.
    pub(super) fn run(&self, product: &Product) {
        let [rows, cols, depth] = product.size;
        if rows == 0 || cols == 0 {
            return;
        }
        assert!(depth > 0, "a product over nothing is not asked for");
        let stream = self.context.prepare();
        let mut plans = lock(&self.plans);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        let plan = plans.entry(product.shape()).or_insert_with(|| self.plan(product));
        if let Some(bias) = &product.bias {
            plan.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        }
        let [left, right, out] =
            [product.left, product.right, product.out].map(|side| side.pointer as *mut c_void);
        let (one, kept) = (1.0_f32, f32::from(u8::from(product.accumulate)));
        let [a, b, c] = plan.layouts;
        // SAFETY: the plan was made for these shapes, and the matrices are as large as they say. The
        // library's first factor is our right one, since it sees transposes.
        let run = unsafe {
            lt::matmul(
                self.handle,
                plan.description,
                (&raw const one).cast(),
                (&raw const kept).cast(),
                right,
                a,
                left,
                b,
                out,
                c,
                out,
                c,
                &raw const plan.algorithm,
                self.workspace.pointer as *mut c_void,
                WORKSPACE,
                stream.cast(),
            )
        };
        must(run, "multiplying matrices");
    }

    fn plan(&self, product: &Product) -> Plan {
        let mut plan = Plan {
            description: must(
                lt::create_matmul_desc(
                    sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                    sys::cudaDataType::CUDA_R_32F,
                ),
                "planning a product",
            ),
            layouts: product.layouts(),
            // SAFETY: plain numbers, overwritten below before use.
            algorithm: unsafe { std::mem::zeroed() },
        };
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        // The library's numbers for "as it is" and "transposed".
        let operation = |turned| i32::from(turned);
        plan.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &operation(product.right.turned));
        plan.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &operation(product.left.turned));
        if let Some(bias) = &product.bias {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            plan.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue);
            plan.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        }
        plan.algorithm = self.algorithm(&plan, product);
        plan
    }

    /// The library's choice for this shape.
    fn algorithm(&self, plan: &Plan, product: &Product) -> sys::cublasLtMatmulAlgo_t {
        let preference = must(lt::create_matmul_pref(), "planning a product");
        use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference was just made, and the value has that size.
            let set = unsafe { lt::set_matmul_pref_attribute(preference, attribute, value, size) };
            must(set, "planning a product");
        };
        let workspace = WORKSPACE;
        set(
            Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const workspace).cast(),
            size_of::<usize>(),
        );
        let alignments = [
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.right),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.left),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.out),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.out),
        ];
        for (attribute, side) in alignments {
            let alignment = side.alignment();
            set(attribute, (&raw const alignment).cast(), size_of::<u32>());
        }
        let [a, b, c] = plan.layouts;
        // SAFETY: everything was made above and in `plan`.
        let found = unsafe {
            lt::get_matmul_algo_heuristic(self.handle, plan.description, a, b, c, c, preference)
        };
        // SAFETY: the preference was made above and is not used again.
        must(unsafe { lt::destroy_matmul_pref(preference) }, "planning a product");
        match found {
            Ok(found) => found.algo,
            Err(error) => fail(format!(
                "cuBLASLt cannot multiply {:?} (rows, columns, depth): {error:?}",
                product.size
            )),
        }
    }
}

impl Plan {
    fn set<T>(&mut self, attribute: sys::cublasLtMatmulDescAttributes_t, value: &T) {
        // SAFETY: the description is this plan's own, and the value has that size.
        let set = unsafe {
            let value: *const T = value;
            lt::set_matmul_desc_attribute(self.description, attribute, value.cast(), size_of::<T>())
        };
        must(set, "planning a product");
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: both were made for this plan alone. That they cannot be destroyed is no news.
        unsafe {
            let _ = lt::destroy_matmul_desc(self.description);
            self.layouts.iter().for_each(|&layout| _ = lt::destroy_matrix_layout(layout));
        }
    }
}

impl Product {
    fn shape(&self) -> Shape {
        let side = |side: Side| (side.precision, side.pitch, side.turned, side.alignment());
        Shape {
            sides: [self.left, self.right, self.out].map(side),
            size: self.size,
            accumulate: self.accumulate,
            bias: self.bias.is_some(),
        }
    }

    /// The matrices as the library sees them: its first factor, its second, the result.
    fn layouts(&self) -> [sys::cublasLtMatrixLayout_t; 3] {
        let [rows, cols, depth] = self.size;
        // Ours row after row is theirs column after column: its columns are their rows.
        let layout = |side: Side, rows: usize, cols: usize| {
            let (rows, cols) = if side.turned { (cols, rows) } else { (rows, cols) };
            let kind = match side.precision {
                Precision::Full => sys::cudaDataType::CUDA_R_32F,
                Precision::Working => sys::cudaDataType::CUDA_R_16BF,
            };
            let made = lt::create_matrix_layout(kind, cols as u64, rows as u64, side.pitch as i64);
            must(made, "planning a product")
        };
        [
            layout(self.right, depth, cols),
            layout(self.left, rows, depth),
            layout(self.out, rows, cols),
        ]
    }
}

impl Side {
    /// The largest power of two that divides the address, as far as it matters.
    fn alignment(&self) -> u32 {
        1 << self.pointer.trailing_zeros().min(8)
    }
}
