use alloc::format;
use core::ops::ControlFlow;

use rustix::{
    fd::OwnedFd,
    fs::{CWD, Mode, OFlags, openat, readlinkat_raw},
    io::Errno,
    process::Pid,
};

use crate::{proc_numbers::for_each_number, sys};

/// The terminal of the process that opens it.
const CONTROLLING_TERMINAL: &[u8] = b"/dev/tty";

/// How many processes and threads are examined, which takes some thousandths of a
/// second.
const MAX_EXAMINED: usize = 4096;

/// Returns whether a thread of the foreground process group is blocked in a read of
/// the terminal with this path. It is true if that is not known.
///
/// `/proc/PID/syscall` contains the number and the arguments of the system call in
/// which a thread is blocked. Which files poll(2) waits for is not known from that,
/// because they are in the memory of the process: a hostile one could make reading
/// them take long. The path of a file is what the kernel stores; its status is not.
pub(super) fn is_read(terminal: &[u8], foreground: Pid) -> bool {
    let group = foreground.as_raw_nonzero().get();
    let mut examined = 0usize;
    let found = open("/proc").and_then(|proc| {
        for_each_number(&proc, |pid| {
            examined = examined.saturating_add(1);
            let is_member = sys::group_of(pid) == Some(group);
            let is_read = is_member && has_reader(pid, terminal, &mut examined);
            break_if(is_read || examined > MAX_EXAMINED)
        })
    });
    // What is beyond the limit is not known either.
    found.map_or(true, |found| found.is_break())
}

fn has_reader(pid: i32, terminal: &[u8], examined: &mut usize) -> bool {
    let found = open(&format!("/proc/{pid}/task")).and_then(|threads| {
        for_each_number(&threads, |thread| {
            *examined = examined.saturating_add(1);
            break_if(reads(thread, terminal) || *examined > MAX_EXAMINED)
        })
    });
    found.map_or_else(is_unknown, |found| found.is_break())
}

/// Returns whether a thread is blocked in a read of the terminal.
fn reads(thread: i32, terminal: &[u8]) -> bool {
    match file_read_by(thread) {
        Ok(None) => false,
        Ok(Some(file)) => {
            let mut path = [0; 64];
            let link = format!("/proc/{thread}/fd/{file}");
            let length = readlinkat_raw(CWD, link, &mut path[..]).unwrap_or(0);
            let path = path.get(..length).unwrap_or_default();
            path == terminal || path == CONTROLLING_TERMINAL
        }
        Err(error) => is_unknown(error),
    }
}

/// Returns the number of the file in whose read(2) a thread is blocked.
fn file_read_by(thread: i32) -> Result<Option<u64>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = openat(CWD, format!("/proc/{thread}/syscall"), flags, Mode::empty())?;
    let mut text = [0; 256];
    let count = rustix::io::read(&file, &mut text)?;
    let text = core::str::from_utf8(text.get(..count).unwrap_or_default());
    let mut words = text.unwrap_or_default().split(' ');
    // "running", "-1" for a thread that is blocked elsewhere, or a number.
    let call = words.next().and_then(|word| word.parse::<i64>().ok());
    let first = words.next().and_then(|word| word.strip_prefix("0x"));
    Ok(match call {
        Some(libc::SYS_read) => first.and_then(|word| u64::from_str_radix(word, 16).ok()),
        _ => None,
    })
}

fn open(path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty())
}

fn break_if(condition: bool) -> ControlFlow<()> {
    match condition {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Returns false if a process cannot be examined because it has ended.
fn is_unknown(error: Errno) -> bool {
    !matches!(error, Errno::NOENT | Errno::SRCH)
}
