//! Memory for large copies, in large pages where the system has them.
//!
//! A large vector is memory that is new to the process. The kernel clears it a page at a time when it is first written to, which
//! takes longer than the writing: of 60 MB in pages of 4 KiB, 15,000 interruptions.

#![allow(unsafe_code, reason = "the kernel is told how to map memory that nothing is in yet")]

/// Bytes below which nothing is to be gained: two large pages.
const LARGE: usize = 4 << 20;

/// An empty vector with room for so many elements.
pub fn vec_with_large_pages<T>(capacity: usize) -> Vec<T> {
    let room: Vec<T> = Vec::with_capacity(capacity);
    advise(room.as_ptr().cast(), capacity * size_of::<T>());
    room
}

/// Asks for large pages where there is nothing yet.
#[cfg(target_os = "linux")]
pub(crate) fn advise(start: *const u8, bytes: usize) {
    /// What the kernel maps memory by, or a divisor of it: advice is of whole pages.
    const PAGE: usize = 64 << 10;
    let skipped = start.align_offset(PAGE);
    if bytes < LARGE || skipped >= bytes {
        return;
    }
    let whole = (bytes - skipped) / PAGE * PAGE;
    // SAFETY: the range lies within one allocation, and the advice changes neither what memory holds nor who may use it.
    // Where the kernel does not follow it, everything is as before.
    unsafe { libc::madvise(start.add(skipped).cast_mut().cast(), whole, libc::MADV_HUGEPAGE) };
}

/// Large pages are not asked for on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn advise(_start: *const u8, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_as_in_any_vector() {
        for capacity in [0, 1, LARGE / 4 - 1, LARGE / 4 + 12_345] {
            let mut room = vec_with_large_pages::<u32>(capacity);
            let start = room.as_ptr();
            room.extend(0..capacity as u32);
            assert_eq!(room.as_ptr(), start, "nothing was moved");
            assert!(room.iter().copied().eq(0..capacity as u32));
        }
    }
}
