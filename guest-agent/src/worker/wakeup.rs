use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

/// Wakes another process: eventfd(2). A notification stays pending until it is
/// consumed.
pub(crate) struct Wakeup(OwnedFd);

impl Wakeup {
    /// Creates a wakeup and a second descriptor of it, for the other process.
    /// If `nonblocking`, [`consume`](Self::consume) does not wait.
    pub(crate) fn new(nonblocking: bool) -> Result<(Self, OwnedFd), Errno> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        let wakeup = eventfd(0, flags)?;
        let other = rustix::io::fcntl_dupfd_cloexec(&wakeup, 0)?;
        Ok((Self(wakeup), other))
    }

    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    pub(crate) fn notify(&self) {
        // It fails only after 2^64 notifications that were not consumed.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits for a notification and consumes it.
    pub(crate) fn consume(&self) {
        // After a failure the caller checks its condition again.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
