use rustix::{
    event::{EventfdFlags, eventfd},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

/// Wakes a process that waits for it. It stays rung until it is heard.
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// Two ends of one bell: for who hears it, and for who rings it. Hearing
    /// does not wait if `nonblocking`.
    pub(crate) fn new(nonblocking: bool) -> Result<(Self, OwnedFd), Errno> {
        let mut flags = EventfdFlags::CLOEXEC;
        flags.set(EventfdFlags::NONBLOCK, nonblocking);
        let bell = eventfd(0, flags)?;
        let other = rustix::io::fcntl_dupfd_cloexec(&bell, 0)?;
        Ok((Self(bell), other))
    }

    pub(crate) fn from_descriptor(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }

    pub(crate) fn ring(&self) {
        // It fails only if it was rung 2^64 times and never heard.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Waits until it is rung, or only looks whether it was.
    pub(crate) fn hear(&self) {
        // Without a bell there is nothing to be told, and who is told nothing
        // looks again.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
