use alloc::{format, vec::Vec};

use rustix::{
    fs::{CWD, Mode, OFlags, readlinkat},
    process::Pid,
};
use vmcell_wire::limits::MAX_PATH;

/// The leader of the foreground process group, which reads the terminal's
/// input.
///
/// Only uses what the kernel itself stores. Reading the arguments or the
/// environment of a process means reading its memory, and a hostile process can
/// make that take long.
pub(super) struct ForegroundLeader {
    pub(super) pid: u32,
    /// Empty if it has ended; the others of its group may still run.
    pub(super) command: Vec<u8>,
    /// Empty if it has ended.
    pub(super) cwd: Vec<u8>,
}

/// The kernel's names of programs have up to 15 bytes and a newline.
const MAX_NAME: usize = 16;

impl ForegroundLeader {
    pub(super) fn of(group: Pid) -> Self {
        let pid = group.as_raw_nonzero().get().unsigned_abs();
        Self {
            pid,
            command: command(pid).unwrap_or_default(),
            cwd: cwd(pid).unwrap_or_default(),
        }
    }
}

fn command(pid: u32) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(format!("/proc/{pid}/comm"), flags, Mode::empty()).ok()?;
    let mut name = alloc::vec![0; MAX_NAME];
    let count = rustix::io::read(&file, &mut name).ok()?;
    name.truncate(count);
    if name.last() == Some(&b'\n') {
        name.pop();
    }
    Some(name)
}

fn cwd(pid: u32) -> Option<Vec<u8>> {
    let link = readlinkat(CWD, format!("/proc/{pid}/cwd"), Vec::new()).ok()?;
    Some(link.into_bytes()).filter(|path| path.len() <= MAX_PATH)
}
