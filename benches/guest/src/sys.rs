//! The system calls of the baseline's guest.
#![allow(unsafe_code)]

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

/// Does nothing more.
pub(crate) fn pause_forever() -> ! {
    loop {
        // SAFETY: it only waits.
        unsafe { libc::pause() };
    }
}

/// Waits for `events` of poll(2).
pub(crate) fn wait_for(file: &File, events: i16) {
    let mut wanted = libc::pollfd {
        fd: file.as_raw_fd(),
        events,
        revents: 0,
    };
    // SAFETY: one valid entry is passed.
    unsafe { libc::poll(&raw mut wanted, 1, -1) };
}

pub(crate) fn mount(source: &CStr, target: &CStr, kind: &CStr) -> io::Result<()> {
    // SAFETY: valid strings, and no options.
    let result = unsafe {
        libc::mount(
            source.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            0,
            std::ptr::null(),
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Forks, executes `program` without arguments and waits for it. It gets this
/// program's environment, so that it has the same to do as a child of vmcell.
pub(crate) fn fork_exec_wait(program: &CStr) -> io::Result<()> {
    let argv = [program.as_ptr(), std::ptr::null()];
    let mut status = 0;
    // SAFETY: the child only executes, and this program has one thread.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::execv(program.as_ptr(), argv.as_ptr());
            libc::_exit(127);
        }
        libc::waitpid(child, &raw mut status, 0);
    }
    if status != 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(())
}

/// Unlocks the terminal of a `/dev/ptmx` and opens it.
pub(crate) fn terminal_of(keyboard: &File) -> io::Result<OwnedFd> {
    let unlocked: libc::c_int = 0;
    // SAFETY: the first call reads one number, the second one answers with a
    // new descriptor or a negative number.
    unsafe {
        libc::ioctl(keyboard.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked);
        let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        match libc::ioctl(keyboard.as_raw_fd(), libc::TIOCGPTPEER, flags) {
            descriptor @ 0.. => Ok(OwnedFd::from_raw_fd(descriptor)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
