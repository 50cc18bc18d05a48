//! Points in the order of a stream, which another stream or this process can wait for.

#![allow(unsafe_code, reason = "the driver speaks in raw pointers")]

use std::sync::Mutex;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult, CUstream};

use super::fault::must;
use super::lock;

/// A point in the order of a stream.
pub(super) struct Event(CUevent);

// SAFETY: an event's handle may be used from any thread.
unsafe impl Send for Event {}

impl Event {
    pub(super) fn mark(&self, stream: CUstream) {
        // SAFETY: event and stream live as long as the process.
        must(unsafe { result::event::record(self.0, stream) }, "marking a point");
    }

    pub(super) fn new() -> Self {
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING;
        Self(must(result::event::create(flags), "making an event"))
    }

    /// What is asked of the stream from now on comes after the mark.
    pub(super) fn hold(&self, stream: CUstream) {
        // SAFETY: as above.
        must(unsafe { sys::cuStreamWaitEvent(stream, self.0, 0) }.result(), "ordering two streams");
    }

    pub(super) fn wait(&self) {
        // SAFETY: as above.
        must(unsafe { sys::cuEventSynchronize(self.0) }.result(), "waiting for a point");
    }

    pub(super) fn is_reached(&self) -> bool {
        // SAFETY: as above.
        unsafe { sys::cuEventQuery(self.0) == CUresult::CUDA_SUCCESS }
    }
}

/// Events that nobody needs at present: making one takes longer than marking with it.
#[derive(Default)]
pub(super) struct EventPool(Mutex<Vec<Event>>);

impl EventPool {
    pub(super) fn take(&self) -> Event {
        let spare = lock(&self.0).pop();
        spare.unwrap_or_else(Event::new)
    }

    pub(super) fn give_back(&self, event: Event) {
        lock(&self.0).push(event);
    }
}
