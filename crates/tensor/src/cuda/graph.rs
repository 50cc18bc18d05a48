//! A whole step as one CUDA graph.
//!
//! Kernels that are launched one by one start a microsecond or so after one another. A step of a fixed
//! shape launches the same kernels again and again, so it is captured as a graph, which the GPU runs
//! without returning to the host: numbers that differ (addresses, the seed of dropout, learning rates) are
//! put into the graph of the last step. What cannot be captured (reading a result, writing a matrix) ends
//! the capture, and the rest of the step runs as usual.

#![allow(unsafe_code, reason = "the driver speaks in raw pointers")]

use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard};

use cudarc::driver::sys::{
    self, CUdeviceptr, CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo_st, CUstreamCaptureMode,
};

use super::context::Context;
use super::fault::must;
use super::lock;

/// Steps that run as usual at first: what they need is then compiled, planned and allocated.
const WARM_UP: u32 = 2;
/// Graphs that may be made anew, because kernels changed, before recording is given up.
const MOST_ANEW: u32 = 16;

#[derive(Default)]
pub(super) struct Recorder(Mutex<State>);

#[derive(Default)]
struct State {
    /// Whether what is asked for is recorded instead of run.
    recording: bool,
    steps: u32,
    made: u32,
    last: Option<Executable>,
    /// Memory of lists that were dropped meanwhile, by size: it may be overwritten after the graph.
    dropped: Vec<(usize, CUdeviceptr)>,
}

struct Executable(CUgraphExec);

// SAFETY: a graph's handle may be used from any thread, one at a time.
unsafe impl Send for Executable {}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }

    pub(super) fn is_recording(&self) -> bool {
        self.state().recording
    }

    /// Keeps dropped memory back while recording; says whether it did.
    pub(super) fn keep_back(&self, class: usize, pointer: CUdeviceptr) -> bool {
        let mut state = self.state();
        if state.recording {
            state.dropped.push((class, pointer));
        }
        state.recording
    }
}

impl Context {
    /// Runs the work of a step: recorded as a graph, where that has worked so far.
    pub(super) fn as_one(self: &Arc<Self>, work: &mut dyn FnMut()) {
        let stream = self.prepare();
        {
            let mut state = self.recorder.state();
            state.steps += 1;
            if state.steps > WARM_UP && state.made <= MOST_ANEW {
                self.transfer.before_recording(stream);
                let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
                // SAFETY: the stream lives as long as the process.
                let begun = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
                must(begun.result(), "recording a step");
                state.recording = true;
            }
        }
        work();
        self.run_recorded();
    }

    /// Ends a recording, where there is one, and runs what was recorded.
    pub(super) fn run_recorded(&self) {
        let mut state = self.recorder.state();
        if !std::mem::take(&mut state.recording) {
            return;
        }
        let stream = self.stream;
        let mut graph: CUgraph = ptr::null_mut();
        // SAFETY: the recording was begun on this stream; the graph is destroyed below.
        must(
            unsafe { sys::cuStreamEndCapture(stream, &raw mut graph) }.result(),
            "recording a step",
        );
        let executable = state.prepare(graph);
        self.transfer.await_sent(stream);
        // SAFETY: the executable graph is kept until it is replaced, and was made for this context.
        must(unsafe { sys::cuGraphLaunch(executable, stream) }.result(), "running a step");
        // SAFETY: the graph was made above and is not used again.
        must(unsafe { sys::cuGraphDestroy(graph) }.result(), "recording a step");
        for (class, pointer) in std::mem::take(&mut state.dropped) {
            self.transfer.give_up(class, pointer, stream);
        }
    }
}

impl State {
    /// The graph of the last step with this one's numbers; made anew where kernels differ.
    fn prepare(&mut self, graph: CUgraph) -> CUgraphExec {
        if let Some(Executable(last)) = &self.last {
            // SAFETY: plain numbers, which the driver overwrites.
            let mut info: CUgraphExecUpdateResultInfo_st = unsafe { std::mem::zeroed() };
            // SAFETY: both graphs exist.
            let updated = unsafe { sys::cuGraphExecUpdate_v2(*last, graph, &raw mut info) };
            if updated.result().is_ok() {
                return *last;
            }
        }
        if let Some(Executable(last)) = self.last.take() {
            // SAFETY: it was made below and is not used again; the driver waits for one that runs.
            must(unsafe { sys::cuGraphExecDestroy(last) }.result(), "forgetting a step");
        }
        self.made += 1;
        let mut made: CUgraphExec = ptr::null_mut();
        // SAFETY: the graph was just recorded.
        let result = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut made, graph, 0) };
        must(result.result(), "making a graph of a step");
        self.last = Some(Executable(made));
        made
    }
}
