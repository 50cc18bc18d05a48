//! Numbers on their way between this process and the GPU, without either waiting for the other.
//!
//! Lists of a batch are sent ahead on a stream of their own, while the GPU still works on the batch
//! before; what is computed with them waits for them alone. Scores come back behind the work, and are
//! read when they are needed, by which time the GPU has the next batch to work on.

#![allow(unsafe_code, reason = "page-locked memory is reached by its address")]

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use cudarc::driver::result::{self, stream::StreamKind};
use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::context::{Context, say, size_class};
use super::events::{Event, EventPool};
use super::fault::must;
use super::lock;
use crate::device::DeviceError;

/// Half of the page-locked memory through which numbers travel to the GPU.
const HALF: usize = 16 << 20;
/// Numbers that come back at a time, at most.
pub(super) const PAGE: usize = 512;

/// What carries numbers there and back.
pub(super) struct HostTransfer {
    /// The stream of what is sent ahead.
    ahead: CUstream,
    stage: Mutex<PinnedStage>,
    /// Memory for what is sent ahead, with the point after which it may be overwritten; the one that
    /// was given up first comes first.
    given_up: Mutex<BTreeMap<usize, VecDeque<(CUdeviceptr, Event)>>>,
    pages: Mutex<Vec<PinnedPage>>,
    pub(super) events: EventPool,
}

/// Page-locked memory in two halves: one is filled while what lies in the other arrives.
struct PinnedStage {
    base: *mut u8,
    half: usize,
    used: usize,
    /// Whether something lies in this half that travels on the stream of the work.
    with_work: bool,
    /// For each half, the points on both streams after which it may be filled anew.
    arrived: [Vec<Event>; 2],
}

// SAFETY: the memory is this stage's own.
unsafe impl Send for PinnedStage {}

/// Page-locked memory for numbers that come back.
struct PinnedPage(*mut f32);

// SAFETY: the memory is this page's own.
unsafe impl Send for PinnedPage {}

// SAFETY: a stream's handle may be used from any thread; what changes is behind locks.
unsafe impl Send for HostTransfer {}
// SAFETY: as above.
unsafe impl Sync for HostTransfer {}

impl HostTransfer {
    pub(super) fn open() -> Result<Self, DeviceError> {
        let failed = |what| move |error| DeviceError::refused(what, say(error));
        let ahead =
            result::stream::create(StreamKind::NonBlocking).map_err(failed("make a stream"))?;
        // SAFETY: the memory is only written through `PinnedStage`.
        let base =
            unsafe { result::malloc_host(2 * HALF, 0) }.map_err(failed("lock host memory"))?;
        let arrived = [Vec::new(), Vec::new()];
        let stage = PinnedStage { base: base.cast(), half: 0, used: 0, with_work: false, arrived };
        let (given_up, pages, events) = (Mutex::default(), Mutex::default(), EventPool::default());
        Ok(Self { ahead, stage: Mutex::new(stage), given_up, pages, events })
    }

    /// Copies bytes to the GPU in the order of a stream. Returns before they have arrived.
    fn upload(&self, main: Option<CUstream>, stream: CUstream, bytes: &[u8], to: CUdeviceptr) {
        for (offset, chunk) in bytes.chunks(HALF).enumerate().map(|(at, chunk)| (at * HALF, chunk))
        {
            let mut stage = lock(&self.stage);
            if stage.used + chunk.len() > HALF {
                self.swap(&mut stage, main);
            }
            let start = stage.half * HALF + stage.used;
            // SAFETY: there is room for the chunk, since the stage is held from the check on, and what
            // lies there arrives before `swap` lets it be overwritten.
            let staged = unsafe {
                let place = stage.base.add(start);
                std::ptr::copy_nonoverlapping(chunk.as_ptr(), place, chunk.len());
                std::slice::from_raw_parts(place, chunk.len())
            };
            stage.used += chunk.len().next_multiple_of(64);
            stage.with_work |= main == Some(stream);
            // SAFETY: the caller gives memory for all bytes.
            let copied = unsafe { result::memcpy_htod_async(to + offset as u64, staged, stream) };
            must(copied, "copying to its memory");
        }
    }

    /// Goes over to the other half, when what lies there has arrived.
    fn swap(&self, stage: &mut PinnedStage, main: Option<CUstream>) {
        if let Some(main) = main {
            self.mark_work(stage, main);
        }
        let event = self.events.take();
        event.mark(self.ahead);
        stage.arrived[stage.half].push(event);
        stage.half = 1 - stage.half;
        stage.used = 0;
        for event in std::mem::take(&mut stage.arrived[stage.half]) {
            event.wait();
            self.events.give_back(event);
        }
    }

    /// Records when what lies in the stage and travels on the stream of the work will have arrived: before
    /// a step is captured, since nothing can be marked meanwhile, nor goes that way.
    pub(super) fn before_recording(&self, main: CUstream) {
        self.mark_work(&mut lock(&self.stage), main);
    }

    fn mark_work(&self, stage: &mut PinnedStage, main: CUstream) {
        if std::mem::take(&mut stage.with_work) {
            let event = self.events.take();
            event.mark(main);
            stage.arrived[stage.half].push(event);
        }
    }

    /// What is asked of the stream from now on comes after everything that was sent so far.
    pub(super) fn await_sent(&self, stream: CUstream) {
        let arrived = self.events.take();
        arrived.mark(self.ahead);
        arrived.hold(stream);
        self.events.give_back(arrived);
    }

    /// Memory that may be overwritten after what was asked of the stream so far.
    pub(super) fn give_up(&self, class: usize, pointer: CUdeviceptr, stream: CUstream) {
        let event = self.events.take();
        event.mark(stream);
        lock(&self.given_up).entry(class).or_default().push_back((pointer, event));
    }

    /// Memory that was given up, returned for good: the caller has waited for the GPU.
    pub(super) fn drain(&self) -> Vec<(usize, CUdeviceptr)> {
        let all = std::mem::take(&mut *lock(&self.given_up));
        let spare =
            all.into_iter().flat_map(|(class, list)| list.into_iter().map(move |x| (class, x)));
        spare
            .map(|(class, (pointer, event))| {
                self.events.give_back(event);
                (class, pointer)
            })
            .collect()
    }
}

impl Context {
    /// Copies bytes to the GPU, in the order of its work. Returns before they have arrived.
    pub(super) fn upload(&self, bytes: &[u8], to: CUdeviceptr) {
        let stream = self.prepare();
        self.run_recorded();
        self.transfer.upload(Some(stream), stream, bytes, to);
    }

    /// Sends bytes to memory of their own, ahead of the work that was asked for before.
    pub(super) fn send(self: &Arc<Self>, bytes: &[u8]) -> SentList {
        let stream = self.prepare();
        let transfer = &self.transfer;
        let class = size_class(bytes.len());
        let spare = {
            let mut given_up = lock(&transfer.given_up);
            let fitting = given_up.range_mut(class..class + class / 2);
            let first = |(&class, list): (&usize, &mut VecDeque<(CUdeviceptr, Event)>)| {
                let ready = list.front().is_some_and(|(_, event)| event.is_reached());
                list.pop_front_if(|_| ready).map(|(pointer, event)| (class, pointer, event))
            };
            fitting.into_iter().find_map(first)
        };
        let (class, pointer) = match spare {
            Some((class, pointer, event)) => {
                transfer.events.give_back(event);
                (class, pointer)
            }
            None => (class, self.allocate(class)),
        };
        let recording = self.recorder.is_recording();
        transfer.upload((!recording).then_some(stream), transfer.ahead, bytes, pointer);
        if !recording {
            transfer.await_sent(stream);
        }
        SentList { pointer, class, context: Arc::clone(self) }
    }

    /// Lets numbers come back behind the work that was asked for so far.
    pub(super) fn receive(self: &Arc<Self>, parts: &[(CUdeviceptr, usize)]) -> PendingNumbers {
        let stream = self.prepare();
        self.run_recorded();
        let count = parts.iter().map(|(_, count)| count).sum();
        assert!(count <= PAGE, "a page holds {PAGE} numbers");
        let page = lock(&self.transfer.pages).pop().unwrap_or_else(|| {
            // SAFETY: the memory is only read through `PendingNumbers`, once it was written.
            let page = unsafe { result::malloc_host(PAGE * size_of::<f32>(), 0) };
            PinnedPage(must(page, "locking host memory").cast())
        });
        let mut at = 0;
        for &(from, count) in parts {
            // SAFETY: the page has room for all, and is read only after the mark below.
            let copied = unsafe {
                let to = std::slice::from_raw_parts_mut(page.0.add(at), count);
                result::memcpy_dtoh_async(to, from, stream)
            };
            must(copied, "copying from its memory");
            at += count;
        }
        let event = self.transfer.events.take();
        event.mark(stream);
        PendingNumbers { page: Some((page, event)), count, context: Arc::clone(self) }
    }
}

/// What was sent ahead. Its memory is overwritten only after the work that was asked for until it is
/// dropped.
pub(super) struct SentList {
    pub(super) pointer: CUdeviceptr,
    class: usize,
    pub(super) context: Arc<Context>,
}

impl Drop for SentList {
    fn drop(&mut self) {
        let stream = self.context.prepare();
        if !self.context.recorder.keep_back(self.class, self.pointer) {
            self.context.transfer.give_up(self.class, self.pointer, stream);
        }
    }
}

pub(super) struct PendingNumbers {
    page: Option<(PinnedPage, Event)>,
    count: usize,
    context: Arc<Context>,
}

impl PendingNumbers {
    /// Waits for them.
    pub(super) fn read(mut self) -> Vec<f32> {
        let (page, event) = self.page.take().expect("a page is given back once");
        self.context.prepare();
        event.wait();
        // SAFETY: as many numbers were written, and the mark after them is reached.
        let numbers = unsafe { std::slice::from_raw_parts(page.0, self.count) }.to_vec();
        self.give_back(page, event);
        numbers
    }

    fn give_back(&self, page: PinnedPage, event: Event) {
        self.context.transfer.events.give_back(event);
        lock(&self.context.transfer.pages).push(page);
    }
}

impl Drop for PendingNumbers {
    fn drop(&mut self) {
        if let Some((page, event)) = self.page.take() {
            event.wait();
            self.give_back(page, event);
        }
    }
}
