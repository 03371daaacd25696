//! All unsafe code of the library.
#![allow(unsafe_code)]

use std::{
    arch::x86_64::_rdtsc,
    fs::File,
    io,
    os::unix::process::{CommandExt, ExitStatusExt as _},
    process::{Command, ExitStatus},
    time::Duration,
};

use nix::libc;
use rustix::{
    fd::AsFd,
    io::Errno,
    ioctl::{Setter, ioctl, opcode},
    process::{
        Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, prlimit,
        set_parent_process_death_signal, setrlimit,
    },
};

use crate::vmm::ProcessLimits;

/// Makes the kernel kill the command's process when the thread that spawns it
/// ends, and so with the program, however that ends: `PR_SET_PDEATHSIG` of
/// prctl(2).
pub(crate) fn die_with_spawning_thread(command: &mut Command) {
    let parent = getpid();
    let in_child = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the call above.
        if getppid() != Some(parent) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes two system calls. It
    // neither allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// Limits the command's process: setrlimit(2). A write beyond the size of a file fails there, and
/// the process goes on.
pub(crate) fn limit_process(command: &mut Command, limits: ProcessLimits) {
    let set = |resource, limit: Option<u64>| -> io::Result<()> {
        let Some(limit) = limit else {
            return Ok(());
        };
        // Only root may raise it.
        let limit = match getrlimit(resource).maximum {
            Some(maximum) => maximum.min(limit),
            None => limit,
        };
        let both = Rlimit {
            current: Some(limit),
            maximum: Some(limit),
        };
        Ok(setrlimit(resource, both)?)
    };
    let in_child = move || {
        if limits.file_size.is_some() {
            // SAFETY: ignoring a signal runs no code.
            if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
                return Err(io::Error::last_os_error());
            }
        }
        set(Resource::Fsize, limits.file_size)?;
        set(Resource::Cpu, limits.cpu_seconds)
    };
    // SAFETY: between fork and exec the closure makes system calls. It neither
    // allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// Limits the size of files of a process of another user, as that user: prlimit(2) allows it to
/// nobody else without `CAP_SYS_RESOURCE`. Only root can.
pub(crate) fn limit_file_size_as(user: u32, pid: Pid, limit: Rlimit) -> io::Result<()> {
    // What the child reports when it is done, before it would execute the program.
    const DONE: i32 = libc::ECANCELED;
    let in_child = move || {
        prlimit(Some(pid), Resource::Fsize, limit)?;
        Err(io::Error::from_raw_os_error(DONE))
    };
    let mut command = Command::new("/");
    command.uid(user).gid(user);
    // SAFETY: between fork and exec the closure makes one system call. It neither allocates
    // nor takes a lock.
    unsafe { command.pre_exec(in_child) };
    match command.spawn() {
        Err(error) if error.raw_os_error() == Some(DONE) => Ok(()),
        Err(error) => Err(error),
        // A folder is not executed.
        Ok(_) => Err(io::ErrorKind::Other.into()),
    }
}

/// Moves the command's process into the cgroup whose `cgroup.procs` this is: cgroups(7). Call it
/// before anything that changes descriptors in the child.
pub(crate) fn join_cgroup(command: &mut Command, members: File) {
    // 0 is the process that writes it.
    let in_child = move || Ok(rustix::io::write(&members, b"0").map(drop)?);
    // SAFETY: between fork and exec the closure makes one system call. It neither allocates
    // nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// Waits for a child of this program: wait4(2). Returns how it has exited, and the processor
/// time that it has used.
pub(crate) fn wait_for_process(pid: Pid) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: the structure has integers only, for which zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both pointers are of variables that live here, and the call writes these
        // types.
        let result = unsafe {
            libc::wait4(
                pid.as_raw_nonzero().get(),
                &raw mut status,
                0,
                &raw mut usage,
            )
        };
        match result {
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            _ => break,
        }
    }
    let time = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        Duration::from_secs(seconds)
            + Duration::from_micros(u64::try_from(time.tv_usec).unwrap_or(0))
    };
    let cpu_time = time(usage.ru_utime) + time(usage.ru_stime);
    Ok((ExitStatus::from_raw(status), cpu_time))
}

/// Closes every descriptor from `first` on at the exec of the command, including
/// those that were opened without `FD_CLOEXEC`: close_range(2).
///
/// Call it after everything else that changes descriptors in the child: the
/// changes are made in the order of the calls.
pub(crate) fn set_cloexec_from(command: &mut Command, first: u32) {
    let in_child = move || {
        // SAFETY: the call changes a flag of descriptors. It closes nothing
        // before exec, so the standard library keeps the pipe on which it reports
        // a failed exec.
        let result = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                u32::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if result != 0 {
            set_cloexec_one_by_one(first);
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes system calls. It neither
    // allocates nor takes a lock.
    unsafe { command.pre_exec(in_child) };
}

/// As [`set_cloexec_from`], for kernels before Linux 5.11.
fn set_cloexec_one_by_one(first: u32) {
    let limit = getrlimit(Resource::Nofile).current;
    let limit = limit.map_or(i32::MAX, |limit| i32::try_from(limit).unwrap_or(i32::MAX));
    for descriptor in i32::try_from(first).unwrap_or(i32::MAX)..limit {
        // SAFETY: the call changes a flag. It fails if the descriptor is not open.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Reserves a CID for a guest through `/dev/vhost-vsock`:
/// `VHOST_VSOCK_SET_GUEST_CID` of `linux/vhost.h`. The file holds it while it is
/// open.
pub(crate) fn set_guest_cid(device: impl AsFd, cid: u32) -> Result<(), Errno> {
    const SET_GUEST_CID: rustix::ioctl::Opcode = opcode::write::<u64>(0xaf, 0x60);
    // SAFETY: the call reads the 64 bits that it is given, as its opcode says. On
    // a file that is not this device it fails.
    unsafe { ioctl(device, Setter::<SET_GUEST_CID, u64>::new(cid.into())) }
}

/// Reads the processor's time stamp counter (TSC).
pub(crate) fn read_tsc() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and it has no effect
    // but its result.
    unsafe { _rdtsc() }
}
