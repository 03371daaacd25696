use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd as _, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags, openat},
    io::{FdFlags, fcntl_setfd},
};
use vmcell_launcher::{Message, Plan};

use crate::sys;

/// The descriptors of the launcher itself. None is left when the VMM is executed.
pub(crate) struct Descriptors {
    plan: File,
    pub(crate) report: File,
    cgroup: Option<OwnedFd>,
}

impl Descriptors {
    /// Takes them over, from the first one on: program, plan, report, cgroup.
    pub(crate) fn take(first: i32) -> io::Result<Self> {
        let take = |number: i32| -> io::Result<OwnedFd> {
            let descriptor = sys::take_descriptor(first.saturating_add(number))?;
            fcntl_setfd(&descriptor, FdFlags::CLOEXEC)?;
            Ok(descriptor)
        };
        drop(take(0)?);
        Ok(Self {
            plan: take(1)?.into(),
            report: take(2)?.into(),
            cgroup: take(3).ok(),
        })
    }

    pub(crate) fn plan(&self) -> io::Result<Plan> {
        let mut bytes = Vec::new();
        (&self.plan).read_to_end(&mut bytes)?;
        Plan::decode(&bytes).map_err(io::Error::other)
    }

    /// Reports to the caller, who has exited if that fails.
    pub(crate) fn report(&self, message: &Message) {
        if let Ok(bytes) = message.encode() {
            let _ = (&self.report).write_all(&bytes);
        }
    }

    /// Moves this process into the cgroup: cgroups(7).
    pub(crate) fn join_cgroup(&self) -> io::Result<()> {
        let cgroup = self.cgroup.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let members = openat(cgroup.as_fd(), "cgroup.procs", flags, Mode::empty())?;
        File::from(members).write_all(b"0")
    }
}
