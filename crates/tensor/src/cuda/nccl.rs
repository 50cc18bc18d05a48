//! Sums over the GPUs of several processes, by NCCL.
//!
//! Sums run on a stream of their own beside the backward pass: an event on the compute stream says that gradients are
//! complete, another on this one that sums are. A bucket of matrices is one group of NCCL's, so that nothing is
//! copied together before. A step that is being recorded as a graph ends its recording with the first sum: NCCL frees
//! what it has captured with the graph that was recorded, and a graph is recorded anew for every step.

#![allow(unsafe_code, reason = "NCCL speaks in raw pointers")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Arc, OnceLock};

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys::CUstream;
use libloading::os::unix::Library;

use super::context::{Context, say};
use super::events::Event;
use super::fault::fail;
use super::{libraries, to};
use crate::device::DeviceError;
use crate::kernels::{DeviceGroup, MatrixPrecision};
use crate::value::Tensor;

#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([u8; 128]);

type Communicator = *mut c_void;
/// `ncclFloat32`.
const FLOAT32: c_int = 7;
/// `ncclSum`.
const SUM: c_int = 0;

/// The functions of the library that are used, with their types as in `nccl.h`, which have not changed since 2.0.
struct Functions {
    get_version: unsafe extern "C" fn(*mut c_int) -> c_int,
    get_unique_id: unsafe extern "C" fn(*mut UniqueId) -> c_int,
    init_rank: unsafe extern "C" fn(*mut Communicator, c_int, UniqueId, c_int) -> c_int,
    group_start: unsafe extern "C" fn() -> c_int,
    group_end: unsafe extern "C" fn() -> c_int,
    all_reduce: unsafe extern "C" fn(
        *const c_void,
        *mut c_void,
        usize,
        c_int,
        c_int,
        Communicator,
        CUstream,
    ) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    /// It stays open as long as its functions are there.
    _library: Library,
}

impl Functions {
    /// The library's, which is opened once.
    fn get() -> Result<&'static Self, DeviceError> {
        static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
        if let Some(functions) = FUNCTIONS.get() {
            return Ok(functions);
        }
        let functions = Self::load(libraries::nccl()?)?;
        Ok(FUNCTIONS.get_or_init(|| functions))
    }

    fn load(library: Library) -> Result<Self, DeviceError> {
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field that it is put in has the type that `nccl.h` declares.
                *unsafe { library.get($name) }
                    .map_err(|error| DeviceError::refused("use NCCL", error.to_string()))?
            };
        }
        Ok(Self {
            get_version: function!(b"ncclGetVersion\0"),
            get_unique_id: function!(b"ncclGetUniqueId\0"),
            init_rank: function!(b"ncclCommInitRank\0"),
            group_start: function!(b"ncclGroupStart\0"),
            group_end: function!(b"ncclGroupEnd\0"),
            all_reduce: function!(b"ncclAllReduce\0"),
            error_string: function!(b"ncclGetErrorString\0"),
            _library: library,
        })
    }

    /// What went wrong, if anything.
    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: the library gives a constant text for every number.
        let text = unsafe { CStr::from_ptr((self.error_string)(code)) };
        Err(format!("{} ({code}); NCCL_DEBUG=INFO has it say more", text.to_string_lossy()))
    }

    fn version(&self) -> String {
        let mut version = 0;
        // SAFETY: the number is written by the call.
        let code = unsafe { (self.get_version)(&raw mut version) };
        match self.check(code) {
            Ok(()) => format!("{}.{}.{}", version / 10000, version / 100 % 100, version % 100),
            Err(_) => "of an unknown version".to_owned(),
        }
    }
}

pub(super) fn unique_id() -> Result<Vec<u8>, DeviceError> {
    let functions = Functions::get()?;
    let mut id = UniqueId([0; 128]);
    // SAFETY: the id is written by the call.
    let code = unsafe { (functions.get_unique_id)(&raw mut id) };
    functions.check(code).map_err(|reason| DeviceError::refused("make NCCL's id", reason))?;
    Ok(id.0.to_vec())
}

/// The GPUs of several ranks. It stays open until the process ends.
pub(super) struct NcclGroup {
    context: Arc<Context>,
    functions: &'static Functions,
    communicator: Communicator,
    stream: CUstream,
    complete: Event,
    summed: Event,
}

// SAFETY: a communicator may be used from any thread, one at a time, and one thread trains.
unsafe impl Send for NcclGroup {}
// SAFETY: as above.
unsafe impl Sync for NcclGroup {}

impl NcclGroup {
    pub(super) fn join(
        context: &Arc<Context>,
        id: &[u8],
        rank: usize,
        ranks: usize,
    ) -> Result<Self, DeviceError> {
        let functions = Functions::get()?;
        let id: [u8; 128] = id
            .try_into()
            .map_err(|_| DeviceError::refused("join the GPUs", "no id of NCCL's".to_owned()))?;
        context.prepare();
        let mut communicator: Communicator = std::ptr::null_mut();
        // SAFETY: the thread is prepared for the GPU; all ranks call this with the same id.
        let code = unsafe {
            (functions.init_rank)(
                &raw mut communicator,
                ranks as c_int,
                UniqueId(id),
                rank as c_int,
            )
        };
        functions
            .check(code)
            .map_err(|reason| DeviceError::refused("join the GPUs by NCCL", reason))?;
        let stream = result::stream::create(StreamKind::NonBlocking)
            .map_err(|error| DeviceError::refused("make a stream", say(error)))?;
        Ok(Self {
            context: Arc::clone(context),
            functions,
            communicator,
            stream,
            complete: Event::new(),
            summed: Event::new(),
        })
    }

    fn must(&self, code: c_int) {
        if let Err(reason) = self.functions.check(code) {
            fail(format!("the GPUs failed to add up matrices: {reason}"));
        }
    }

    /// Starts what `calls` asks of NCCL together, after what the compute stream was asked for before.
    fn together(&self, calls: impl FnOnce()) {
        let compute = self.context.prepare();
        self.context.run_recorded();
        self.complete.mark(compute);
        self.complete.hold(self.stream);
        // SAFETY: calls between the two are collected, and started together by the second.
        self.must(unsafe { (self.functions.group_start)() });
        calls();
        // SAFETY: as above.
        self.must(unsafe { (self.functions.group_end)() });
    }
}

impl DeviceGroup for NcclGroup {
    fn description(&self) -> String {
        format!("NCCL {}", self.functions.version())
    }

    fn sum(&self, matrices: &mut [&mut Tensor]) {
        self.together(|| {
            for matrix in matrices {
                assert_eq!(matrix.precision(), MatrixPrecision::Full, "what is summed is f32");
                let (count, pointer) = (matrix.len(), to(matrix) as *mut c_void);
                // SAFETY: the memory holds so many numbers, and is neither freed nor used before `settle`.
                let code = unsafe {
                    (self.functions.all_reduce)(
                        pointer,
                        pointer,
                        count,
                        FLOAT32,
                        SUM,
                        self.communicator,
                        self.stream,
                    )
                };
                self.must(code);
            }
        });
    }

    fn settle(&self) {
        let compute = self.context.prepare();
        self.context.run_recorded();
        self.summed.mark(self.stream);
        self.summed.hold(compute);
    }
}
