//! The only unsafe code of the library.
#![allow(unsafe_code)]

use std::{arch::x86_64::_rdtsc, io, os::unix::process::CommandExt, process::Command};

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// Makes the command's process die when the thread that spawns it ends, and so
/// with the program, however that ends: `PR_SET_PDEATHSIG` of prctl(2).
pub(crate) fn die_with_spawning_thread(command: &mut Command) {
    let parent = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The program may have died before the line above.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls. It
    // neither allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// The processor's time stamp counter.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches
    // nothing but its result.
    unsafe { _rdtsc() }
}
