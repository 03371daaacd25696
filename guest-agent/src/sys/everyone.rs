/// Sends a signal to every process of the guest but PID 1, which calls this:
/// kill(2) with -1, which rustix does not offer.
pub(crate) fn signal_everyone(signal: libc::c_int) {
    // SAFETY: a plain system call without memory. It fails only if there is
    // nobody else.
    let _ = unsafe { libc::kill(-1, signal) };
}
