/// Returns the session of a process, or of the caller for pid 0: getsid(2).
/// `None`: there is no such process.
///
/// Kernel threads, and what PID 1 of a VM starts in its own session, are in
/// session 0, which `rustix` cannot represent.
pub(crate) fn session_of(pid: i32) -> Option<i32> {
    // SAFETY: a plain system call without memory.
    let session = unsafe { libc::getsid(pid) };
    (session >= 0).then_some(session)
}

/// Returns the process group of a process: getpgid(2). `None`: there is no such
/// process.
pub(crate) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: a plain system call without memory.
    let group = unsafe { libc::getpgid(pid) };
    (group >= 0).then_some(group)
}
