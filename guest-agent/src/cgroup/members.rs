use alloc::{format, string::String, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, OFlags},
    io::Errno,
};
use vmcell_wire::limits::{MAX_COMMAND_NAME, MAX_DESCENDANTS};

use super::{
    Cgroup, open,
    tree::{MAX_DEPTH, for_each_below, open_directory},
};

/// Processes of a cgroup and of those below it, up to [`MAX_DESCENDANTS`].
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) list: Vec<Member>,
    /// Whether the list is incomplete.
    pub(crate) more: bool,
}

/// A process of a cgroup.
pub(crate) struct Member {
    pub(crate) pid: u32,
    /// `comm` of proc(5). Its arguments are not read: they are in its memory, and
    /// it could block the read.
    pub(crate) name: Vec<u8>,
}

/// The list is full.
const FULL: Errno = Errno::NOBUFS;

impl Cgroup {
    /// Returns the processes in the cgroup.
    pub(crate) fn members(&self) -> Members {
        let mut members = Members::default();
        let name = format!("{}\0", self.number);
        if let Ok(name) = core::ffi::CStr::from_bytes_with_nul(name.as_bytes())
            && let Ok(directory) = open_directory(&self.parent, name)
        {
            // A cgroup that cannot be read was removed.
            let found = members.add_from(&directory, MAX_DEPTH);
            members.more = found == Err(FULL);
        }
        members
    }
}

impl Members {
    fn add_from(&mut self, directory: &OwnedFd, depth: u32) -> Result<(), Errno> {
        // A threaded cgroup has no such list: its processes are listed by the
        // threaded domain above it.
        if let Ok(file) = open(directory, "cgroup.procs", OFlags::RDONLY) {
            let mut text = [0; 1024];
            let count = rustix::io::read(&file, &mut text).unwrap_or(0);
            let numbers = text.get(..count).unwrap_or_default();
            for pid in numbers.split(|byte| *byte == b'\n').filter_map(parse) {
                self.add(pid)?;
            }
        }
        let Some(depth) = depth.checked_sub(1) else {
            return Ok(());
        };
        for_each_below(directory, |name| match open_directory(directory, name) {
            Ok(below) => self.add_from(&below, depth),
            Err(_) => Ok(()),
        })
    }

    fn add(&mut self, pid: u32) -> Result<(), Errno> {
        if self.list.len() >= MAX_DESCENDANTS {
            return Err(FULL);
        }
        // A process without a name has just ended.
        if let Some(name) = name_of(pid) {
            self.list.push(Member { pid, name });
        }
        Ok(())
    }
}

fn name_of(pid: u32) -> Option<Vec<u8>> {
    let path: String = format!("/proc/{pid}/comm");
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, path, flags, rustix::fs::Mode::empty()).ok()?;
    let mut name = [0; 64];
    let count = rustix::io::read(&file, &mut name).ok()?;
    let name = name.get(..count)?;
    let name = name.strip_suffix(b"\n").unwrap_or(name);
    Some(Vec::from(name.get(..MAX_COMMAND_NAME).unwrap_or(name)))
}

fn parse(number: &[u8]) -> Option<u32> {
    core::str::from_utf8(number).ok()?.parse().ok()
}
