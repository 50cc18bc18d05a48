//! One GPU: its context, the stream of its work, and its memory.
//!
//! All work is on one stream, in the order in which it was asked for. So memory that is dropped
//! can be handed out again at once: whatever uses it next runs after whatever used it last.

#![allow(unsafe_code, reason = "the driver speaks in raw pointers")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cudarc::driver::result::{self, DriverError, stream::StreamKind};
use cudarc::driver::sys::{
    CUcontext, CUdevice_attribute, CUdeviceptr, CUfunction, CUresult, CUstream,
};

use super::fault::{fail, must};
use super::graph::Recorder;
use super::lock;
use super::transfer::HostTransfer;
use crate::device::DeviceError;

/// The unit in which memory is taken.
const LINE: usize = 512;

pub(super) struct Context {
    context: CUcontext,
    pub(super) stream: CUstream,
    pub(super) name: String,
    /// Compute capability, such as (9, 0).
    pub(super) capability: (i32, i32),
    /// Streaming multiprocessors: how many blocks run at a time is a multiple of this.
    pub(super) sms: u32,
    total: usize,
    free: Mutex<BTreeMap<usize, Vec<CUdeviceptr>>>,
    held: AtomicUsize,
    pub(super) transfer: HostTransfer,
    pub(super) recorder: Recorder,
}

// SAFETY: handles of the driver may be used from any thread, which `bind` prepares first.
unsafe impl Send for Context {}
// SAFETY: as above; what changes is behind locks.
unsafe impl Sync for Context {}

thread_local! {
    /// The context that this thread was prepared for.
    static BOUND: Cell<usize> = const { Cell::new(0) };
}

impl Context {
    /// Opens the GPU of this number; the only one, where there is but one.
    pub(super) fn open(number: usize) -> Result<Arc<Self>, DeviceError> {
        let failed = |what| move |error: DriverError| DeviceError::refused(what, say(error));
        result::init().map_err(failed("start the driver"))?;
        let count = result::device::get_count().map_err(failed("count the GPUs"))?;
        if count == 0 {
            return Err(DeviceError::NoGpu);
        }
        let count = count as usize;
        if count > 1 && number >= count {
            let which = format!("GPU {number} is asked for, counted from 0, and there are {count}");
            return Err(DeviceError::Unusable(format!("{which}; one rank for each GPU")));
        }
        let number = if count == 1 { 0 } else { number };
        let device = result::device::get(number as i32).map_err(failed("open the GPU"))?;
        let name = result::device::get_name(device).map_err(failed("ask the GPU's name"))?;
        // SAFETY: the device was given by the driver.
        let ask = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
            CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT as SMS,
        };
        let asked = failed("ask what the GPU can do");
        let capability = (ask(MAJOR).map_err(asked)?, ask(MINOR).map_err(asked)?);
        let sms = ask(SMS).map_err(asked)? as u32;
        if capability.0 < 8 {
            let (major, minor) = capability;
            let reason =
                format!("{name} has compute capability {major}.{minor}, and 8.0 is needed");
            return Err(DeviceError::Unusable(reason));
        }
        // SAFETY: the device was given by the driver; the context is kept until the process ends.
        let context =
            unsafe { result::primary_ctx::retain(device) }.map_err(failed("open the GPU"))?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(failed("open the GPU"))?;
        BOUND.set(context as usize);
        // SAFETY: the device was given by the driver.
        let total = unsafe { result::device::total_mem(device) }.map_err(asked)?;
        let stream =
            result::stream::create(StreamKind::NonBlocking).map_err(failed("make a stream"))?;
        let transfer = HostTransfer::open()?;
        let (free, held) = (Mutex::default(), AtomicUsize::new(0));
        Ok(Arc::new(Self {
            context,
            stream,
            name,
            capability,
            sms,
            total,
            free,
            held,
            transfer,
            recorder: Recorder::default(),
        }))
    }

    /// Prepares this thread to speak to the GPU.
    fn bind(&self) {
        if BOUND.get() != self.context as usize {
            // SAFETY: the context lives as long as the process.
            must(unsafe { result::ctx::set_current(self.context) }, "preparing a thread");
            BOUND.set(self.context as usize);
        }
    }

    /// The most memory that was ever taken from the GPU, in bytes: what is free stays in the pool.
    pub(super) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Takes memory of at least so many bytes: from the pool where it has some, else newly allocated.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> DeviceMemory {
        let class = size_class(bytes);
        let recycled = {
            let mut free = lock(&self.free);
            let mut fitting = free.range_mut(class..class + class / 2);
            fitting.find_map(|(&class, list)| list.pop().map(|pointer| (class, pointer)))
        };
        let (class, pointer) = recycled.unwrap_or_else(|| (class, self.allocate(class)));
        DeviceMemory { pointer, class, context: Arc::clone(self) }
    }

    pub(super) fn allocate(&self, bytes: usize) -> CUdeviceptr {
        self.bind();
        // SAFETY: the pointer is only used through `DeviceMemory`, which knows its size.
        let mut taken = unsafe { result::malloc_sync(bytes) };
        if matches!(taken, Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY))) {
            self.give_back();
            // SAFETY: as above.
            taken = unsafe { result::malloc_sync(bytes) };
        }
        match taken {
            Ok(pointer) => {
                self.held.fetch_add(bytes, Ordering::Relaxed);
                pointer
            }
            Err(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => fail(format!(
                "the GPU's memory is full: {:.2} GiB more are needed, {:.2} of {:.2} GiB are in use \
                 here. Lower batch.sequences or batch.length (and raise accumulate to keep the \
                 tokens of an update), or compute on the CPU",
                gib(bytes),
                gib(self.held()),
                gib(self.total)
            )),
            Err(error) => fail(format!("the GPU gave no memory: {}", say(error))),
        }
    }

    /// Returns what is free in the pool to the GPU.
    fn give_back(&self) {
        self.wait();
        let free = std::mem::take(&mut *lock(&self.free));
        let free =
            free.into_iter().flat_map(|(class, list)| list.into_iter().map(move |x| (class, x)));
        for (class, pointer) in free.chain(self.transfer.drain()) {
            // SAFETY: nothing uses what is free in the pool, and the stream was waited for.
            must(unsafe { result::free_sync(pointer) }, "returning memory");
            self.held.fetch_sub(class, Ordering::Relaxed);
        }
    }

    /// Waits until everything that was asked for is done.
    pub(super) fn wait(&self) {
        self.bind();
        self.run_recorded();
        // SAFETY: the stream lives as long as the process.
        let done = unsafe { result::stream::synchronize(self.stream) };
        if let Err(error) = done {
            fail(format!("the GPU failed: {}", say(error)));
        }
    }

    /// Copies bytes from the GPU, after everything that was asked for before.
    pub(super) fn download(&self, from: CUdeviceptr, bytes: &mut [u8]) {
        self.bind();
        self.run_recorded();
        if !bytes.is_empty() {
            // SAFETY: the caller gives memory of that many bytes, and waits below.
            let copied = unsafe { result::memcpy_dtoh_async(bytes, from, self.stream) };
            must(copied, "copying from its memory");
        }
        self.wait();
    }

    /// Sets all bytes, in the order of the stream.
    pub(super) fn set_bytes(&self, to: CUdeviceptr, byte: u8, count: usize) {
        if count == 0 {
            return;
        }
        self.bind();
        // SAFETY: the caller gives memory of that many bytes.
        must(unsafe { result::memset_d8_async(to, byte, count, self.stream) }, "filling memory");
    }

    /// Runs a kernel, in the order of the stream.
    ///
    /// # Safety
    /// `arguments` point to values of the kernel's parameters, which fit its function.
    pub(super) unsafe fn launch(
        &self,
        function: CUfunction,
        grid: [usize; 3],
        threads: [u32; 3],
        shared: u32,
        arguments: &mut [*mut c_void],
    ) {
        if grid.contains(&0) {
            return;
        }
        self.bind();
        let [x, y, z] = grid.map(|blocks| blocks as u32);
        let threads = (threads[0], threads[1], threads[2]);
        // SAFETY: promised by the caller.
        let run = unsafe {
            result::launch_kernel(function, (x, y, z), threads, shared, self.stream, arguments)
        };
        must(run, "starting a kernel");
    }

    /// Prepares this thread, for calls that go past this type.
    pub(super) fn prepare(&self) -> CUstream {
        self.bind();
        self.stream
    }
}

/// Some memory of the GPU, which goes back to the pool when dropped.
pub(super) struct DeviceMemory {
    pub(super) pointer: CUdeviceptr,
    class: usize,
    pub(super) context: Arc<Context>,
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        lock(&self.context.free).entry(self.class).or_default().push(self.pointer);
    }
}

/// Rounds a number of bytes up so that nearly equal sizes share memory: of more than a few lines, at
/// most an eighth is spare.
pub(super) fn size_class(bytes: usize) -> usize {
    let lines = bytes.div_ceil(LINE).max(1);
    lines.next_multiple_of((lines.next_power_of_two() / 16).max(1)) * LINE
}

fn gib(bytes: usize) -> f64 {
    bytes as f64 / (1 << 30) as f64
}

/// What the driver calls an error, and what it means.
pub(super) fn say(error: DriverError) -> String {
    let text = |said: Result<&std::ffi::CStr, DriverError>| {
        said.map_or_else(|_| "unknown".to_owned(), |said| said.to_string_lossy().into_owned())
    };
    format!("{} ({})", text(error.error_string()), text(error.error_name()))
}
