//! Sockets at paths that another program controls.

use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    path::Path,
};

use rustix::fs::{Mode, OFlags, open};

/// A socket at a path, which is no symbolic link. A VMM in a jail can replace its socket
/// by a link, which would lead this program to any other socket.
pub(crate) struct SocketPath(OwnedFd);

impl SocketPath {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self(open(path, flags, Mode::empty())?))
    }

    /// Returns the path by which it is connected to, as long as this lives.
    pub(crate) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }
}
