//! Matmuls through cuBLASLt.
//!
//! The library counts matrices column after column; ours lie row after row, which is the same memory
//! read as the transpose. So `y = x · w` is asked for as `yᵀ = wᵀ · xᵀ`.

#![allow(unsafe_code, reason = "the library speaks in raw pointers")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex};

use cudarc::cublaslt::result as lt;
use cudarc::cublaslt::sys;
use cudarc::driver::sys::CUdeviceptr;

use super::context::{Context, DeviceMemory};
use super::fault::{fail, must};
use super::lock;
use crate::device::DeviceError;
use crate::kernels::MatrixPrecision;

/// Memory in which the library may add up partial sums (split-K).
const WORKSPACE: usize = 64 << 20;
/// Plans that are kept before all are dropped: of batches whose number of rows varies, a few thousand would be
/// dropped and made again in every epoch.
const MOST_PLANS: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    pub(super) pointer: CUdeviceptr,
    pub(super) precision: MatrixPrecision,
    /// Elements from one row to the next.
    pub(super) pitch: usize,
    pub(super) transposed: bool,
}

/// `out = left · right (+ out) (+ bias in every row)`.
pub(super) struct Matmul {
    pub(super) left: Operand,
    pub(super) right: Operand,
    pub(super) out: Operand,
    /// Rows and columns of the result, and what is summed over.
    pub(super) size: [usize; 3],
    pub(super) accumulate: bool,
    /// One number for each column, as precise as the result.
    pub(super) bias: Option<CUdeviceptr>,
}

#[derive(PartialEq, Eq, Hash)]
struct MatmulShape {
    operands: [(MatrixPrecision, usize, bool, u32); 3],
    size: [usize; 3],
    accumulate: bool,
    bias: bool,
}

/// The algorithm and layouts for matmuls of one shape.
struct MatmulPlan {
    description: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

// SAFETY: descriptions are plain memory, used under a lock.
unsafe impl Send for MatmulPlan {}

/// The library's choices so far. Asking for one takes longer than a small matmul, and devices that work side
/// by side are of one card and need the same.
static ALGORITHMS: LazyLock<Mutex<HashMap<MatmulShape, sys::cublasLtMatmulAlgo_t>>> =
    LazyLock::new(Mutex::default);

pub(super) struct CublasLt {
    handle: sys::cublasLtHandle_t,
    context: Arc<Context>,
    workspace: DeviceMemory,
    plans: Mutex<HashMap<MatmulShape, MatmulPlan>>,
}

// SAFETY: the handle may be used from any thread.
unsafe impl Send for CublasLt {}
// SAFETY: as above; plans are behind a lock.
unsafe impl Sync for CublasLt {}

impl CublasLt {
    pub(super) fn new(context: &Arc<Context>) -> Result<Self, DeviceError> {
        context.prepare();
        let refused = |error| DeviceError::refused("open cuBLASLt", format!("{error:?}"));
        let handle = lt::create_handle().map_err(refused)?;
        let workspace = context.take(WORKSPACE);
        Ok(Self { handle, context: Arc::clone(context), workspace, plans: Mutex::default() })
    }

    /// Computes a matmul, in the order of the stream.
    pub(super) fn run(&self, matmul: &Matmul) {
        let [rows, cols, depth] = matmul.size;
        if rows == 0 || cols == 0 {
            return;
        }
        assert!(depth > 0, "a matmul has something to sum over");
        let stream = self.context.prepare();
        let mut plans = lock(&self.plans);
        if plans.len() >= MOST_PLANS {
            plans.clear();
        }
        let plan = plans.entry(matmul.shape()).or_insert_with(|| self.plan(matmul));
        if let Some(bias) = &matmul.bias {
            plan.set(sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        }
        let [left, right, out] =
            [matmul.left, matmul.right, matmul.out].map(|side| side.pointer as *mut c_void);
        let (one, kept) = (1.0_f32, f32::from(u8::from(matmul.accumulate)));
        let [a, b, c] = plan.layouts;
        // SAFETY: the plan was made for these shapes, and the matrices are as large as they say. The
        // library's first operand is our right one, since it sees transposes.
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

    fn plan(&self, matmul: &Matmul) -> MatmulPlan {
        let mut plan = MatmulPlan {
            description: must(
                lt::create_matmul_desc(
                    sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
                    sys::cudaDataType::CUDA_R_32F,
                ),
                "planning a matmul",
            ),
            layouts: matmul.layouts(),
            // SAFETY: plain numbers, overwritten below before use.
            algorithm: unsafe { std::mem::zeroed() },
        };
        use sys::cublasLtMatmulDescAttributes_t as Attribute;
        // The library's CUBLAS_OP_N and CUBLAS_OP_T.
        let operation = |transposed| i32::from(transposed);
        plan.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSA, &operation(matmul.right.transposed));
        plan.set(Attribute::CUBLASLT_MATMUL_DESC_TRANSB, &operation(matmul.left.transposed));
        if let Some(bias) = &matmul.bias {
            let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
            plan.set(Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue);
            plan.set(Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
        }
        let known = lock(&ALGORITHMS).get(&matmul.shape()).copied();
        plan.algorithm = known.unwrap_or_else(|| {
            let algorithm = self.algorithm(&plan, matmul);
            let mut algorithms = lock(&ALGORITHMS);
            if algorithms.len() >= MOST_PLANS {
                algorithms.clear();
            }
            algorithms.insert(matmul.shape(), algorithm);
            algorithm
        });
        plan
    }

    /// The library's choice for this shape.
    fn algorithm(&self, plan: &MatmulPlan, matmul: &Matmul) -> sys::cublasLtMatmulAlgo_t {
        let preference = must(lt::create_matmul_pref(), "planning a matmul");
        use sys::cublasLtMatmulPreferenceAttributes_t as Attribute;
        let set = |attribute, value: *const c_void, size| {
            // SAFETY: the preference was just made, and the value has that size.
            let set = unsafe { lt::set_matmul_pref_attribute(preference, attribute, value, size) };
            must(set, "planning a matmul");
        };
        let workspace = WORKSPACE;
        set(
            Attribute::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const workspace).cast(),
            size_of::<usize>(),
        );
        let alignments = [
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, matmul.right),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, matmul.left),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, matmul.out),
            (Attribute::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, matmul.out),
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
        must(unsafe { lt::destroy_matmul_pref(preference) }, "planning a matmul");
        match found {
            Ok(found) => found.algo,
            Err(error) => fail(format!(
                "cuBLASLt cannot multiply {:?} (rows, columns, depth): {error:?}",
                matmul.size
            )),
        }
    }
}

impl MatmulPlan {
    fn set<T>(&mut self, attribute: sys::cublasLtMatmulDescAttributes_t, value: &T) {
        // SAFETY: the description is this plan's own, and the value has that size.
        let set = unsafe {
            let value: *const T = value;
            lt::set_matmul_desc_attribute(self.description, attribute, value.cast(), size_of::<T>())
        };
        must(set, "planning a matmul");
    }
}

impl Drop for MatmulPlan {
    fn drop(&mut self) {
        // SAFETY: both were made for this plan alone. Failing to destroy them only leaks a few bytes.
        unsafe {
            let _ = lt::destroy_matmul_desc(self.description);
            self.layouts.iter().for_each(|&layout| _ = lt::destroy_matrix_layout(layout));
        }
    }
}

impl Matmul {
    fn shape(&self) -> MatmulShape {
        let operand = |x: Operand| (x.precision, x.pitch, x.transposed, x.alignment());
        MatmulShape {
            operands: [self.left, self.right, self.out].map(operand),
            size: self.size,
            accumulate: self.accumulate,
            bias: self.bias.is_some(),
        }
    }

    /// The matrices as the library sees them: its first operand, its second, the result.
    fn layouts(&self) -> [sys::cublasLtMatrixLayout_t; 3] {
        let [rows, cols, depth] = self.size;
        // Ours row after row is theirs column after column: its columns are their rows.
        let layout = |side: Operand, rows: usize, cols: usize| {
            let (rows, cols) = if side.transposed { (cols, rows) } else { (rows, cols) };
            let kind = match side.precision {
                MatrixPrecision::Full => sys::cudaDataType::CUDA_R_32F,
                MatrixPrecision::Working => sys::cudaDataType::CUDA_R_16BF,
            };
            let made = lt::create_matrix_layout(kind, cols as u64, rows as u64, side.pitch as i64);
            must(made, "planning a matmul")
        };
        [
            layout(self.right, depth, cols),
            layout(self.left, rows, depth),
            layout(self.out, rows, cols),
        ]
    }
}

impl Operand {
    /// The largest power of two that divides the address, as far as it matters.
    fn alignment(&self) -> u32 {
        1 << self.pointer.trailing_zeros().min(8)
    }
}
