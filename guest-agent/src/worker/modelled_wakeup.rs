//! Wakes another process in a model. One that nobody wakes is a deadlock, which loom finds.

use loom::sync::{Arc, Condvar, Mutex};
use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};

/// Stands for a [`Wakeup`](super::wakeup::Wakeup). Clones are the same one.
#[derive(Clone, Default)]
pub(crate) struct Wakeup(Arc<(Mutex<bool>, Condvar)>);

impl Wakeup {
    pub(crate) fn new(_nonblocking: bool) -> Result<(Self, OwnedFd), Errno> {
        Err(Errno::NOSYS)
    }

    pub(crate) fn from_descriptor(_descriptor: OwnedFd) -> Self {
        Self::default()
    }

    pub(crate) fn notify(&self) {
        let (is_pending, changed) = &*self.0;
        *is_pending.lock().expect("nothing panics in it") = true;
        changed.notify_one();
    }

    /// Waits for a notification and consumes it. The agent does this when it has found that
    /// there is one.
    pub(crate) fn consume(&self) {
        let (is_pending, changed) = &*self.0;
        let mut is_pending = is_pending.lock().expect("nothing panics in it");
        while !*is_pending {
            is_pending = changed.wait(is_pending).expect("nothing panics in it");
        }
        *is_pending = false;
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        unreachable!("a model has no descriptors")
    }
}
