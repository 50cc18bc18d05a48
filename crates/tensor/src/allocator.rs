//! The allocator of the binary: memory that cannot be had ends the process with one sentence, not with an abort.
//!
//! Nothing can be unwound there, since unwinding allocates. It stands in this crate because an allocator is `unsafe`.

#![allow(unsafe_code, reason = "an allocator is unsafe")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io::Write;

/// The system's allocator, for programs that have their process to themselves.
pub struct OrderlyAllocator;

thread_local! {
    /// Whether this thread can go on without the memory that it asks for.
    static TRYING: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C" {
    fn write(file: c_int, bytes: *const c_void, count: usize) -> isize;
    fn _exit(code: c_int) -> !;
}

/// Runs `attempt`, which knows what to do where memory cannot be had.
pub(crate) fn trying<T>(attempt: impl FnOnce() -> T) -> T {
    TRYING.set(true);
    let result = attempt();
    TRYING.set(false);
    result
}

/// The memory, or the end of the process.
fn checked(memory: *mut u8, size: usize) -> *mut u8 {
    if memory.is_null() && !TRYING.try_with(Cell::get).unwrap_or(false) {
        let mut text = [0_u8; 160];
        let mut rest = &mut text[..];
        let _ = writeln!(
            rest,
            "error: {size} bytes of memory cannot be had; give more (ulimit -v, the job's limit), or less to work on"
        );
        let left = rest.len();
        let line = &text[..text.len() - left];
        // SAFETY: the bytes are those of a slice that lives until the process ends; destructors of the process, which may
        // allocate or wait for a lock that this thread holds, are left out.
        unsafe {
            write(2, line.as_ptr().cast(), line.len());
            _exit(1)
        }
    }
    memory
}

// SAFETY: everything is the system's allocator's, whose results are passed on unless the process ends.
unsafe impl GlobalAlloc for OrderlyAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; `memory` came from the system's allocator.
        checked(unsafe { System.realloc(memory, layout, size) }, size)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
