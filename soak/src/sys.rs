//! All unsafe code of this program.
#![allow(unsafe_code)]

/// Returns what was freed to the system, so that it is not taken for a leak: the allocator
/// keeps all that lies below anything in use.
pub(crate) fn return_freed_memory() {
    // SAFETY: it touches only what was freed, and locks what it touches.
    unsafe { libc::malloc_trim(0) };
}
