use alloc::{format, string::String, vec::Vec};

use rustix::{
    fd::OwnedFd,
    fs::{CWD, OFlags},
    io::Errno,
};
use vmcell_wire::limits::{MAX_LEFT, MAX_LEFT_NAME};

use super::{
    Cgroup, open,
    tree::{MAX_DEPTH, for_each_below, open_directory},
};

/// Processes of a cgroup and of those below it: as many as a list shows.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) list: Vec<Member>,
    /// Whether there are more.
    pub(crate) more: bool,
}

/// A process of a cgroup.
pub(crate) struct Member {
    pub(crate) pid: u32,
    /// What it calls itself: `comm` of proc(5). Its arguments are in its memory,
    /// which it could make us wait for.
    pub(crate) name: Vec<u8>,
}

/// The list is full.
const FULL: Errno = Errno::NOBUFS;

impl Cgroup {
    /// The processes in it.
    pub(crate) fn members(&self) -> Members {
        let mut members = Members::default();
        let name = format!("{}\0", self.number);
        if let Ok(name) = core::ffi::CStr::from_bytes_with_nul(name.as_bytes())
            && let Ok(directory) = open_directory(&self.parent, name)
        {
            // What cannot be read is gone.
            let found = members.add_from(&directory, MAX_DEPTH);
            members.more = found == Err(FULL);
        }
        members
    }
}

impl Members {
    fn add_from(&mut self, directory: &OwnedFd, depth: u32) -> Result<(), Errno> {
        // One of threads has no list of processes: they are in that of the cgroup
        // that they all belong to.
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
        if self.list.len() >= MAX_LEFT {
            return Err(FULL);
        }
        // One without a name has ended a moment ago.
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
    Some(Vec::from(name.get(..MAX_LEFT_NAME).unwrap_or(name)))
}

fn parse(number: &[u8]) -> Option<u32> {
    core::str::from_utf8(number).ok()?.parse().ok()
}
