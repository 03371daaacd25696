use std::io;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

/// Keeps this program from leaving a core dump if it crashes: the values of secrets would be
/// in it. Programs that it starts inherit that.
///
/// The processes of VMs leave none in any case.
///
/// # Errors
/// If the system refuses it.
pub fn disable_core_dumps() -> io::Result<()> {
    disable_core_dumps_of(None)
}

/// Keeps a process from leaving a core dump.
pub(crate) fn disable_core_dumps_of(process: Option<Pid>) -> io::Result<()> {
    let maximum = getrlimit(Resource::Core).maximum;
    // No dump fits into one byte. With zero, the kernel would still pass it to a program that
    // collects dumps.
    let current = Some(maximum.unwrap_or(1).min(1));
    prlimit(process, Resource::Core, Rlimit { current, maximum })?;
    Ok(())
}
