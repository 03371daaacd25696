//! The only unsafe code of the library.
#![allow(unsafe_code)]

use std::{arch::x86_64::_rdtsc, io, os::unix::process::CommandExt, process::Command};

use rustix::{
    fd::AsFd,
    io::Errno,
    ioctl::{Setter, ioctl, opcode},
    process::{Signal, getpid, getppid, set_parent_process_death_signal},
};

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

/// Takes a number for a guest, through `/dev/vhost-vsock`:
/// `VHOST_VSOCK_SET_GUEST_CID` of `linux/vhost.h`. It is the file's as long as
/// that is open.
pub(crate) fn take_guest_cid(device: impl AsFd, cid: u32) -> Result<(), Errno> {
    const SET_GUEST_CID: rustix::ioctl::Opcode = opcode::write::<u64>(0xaf, 0x60);
    // SAFETY: the call reads the 64 bits that it is given, as its number says,
    // and on a file that is no such device it fails.
    unsafe { ioctl(device, Setter::<SET_GUEST_CID, u64>::new(cid.into())) }
}

/// The processor's time stamp counter.
pub(crate) fn time_stamp() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it touches
    // nothing but its result.
    unsafe { _rdtsc() }
}
