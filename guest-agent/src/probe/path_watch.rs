use core::mem::MaybeUninit;

use rustix::{
    event::PollFlags,
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
};

use super::{
    file,
    tcp::{AttemptError, wait},
};
use crate::clock::Moment;

/// Waits for a path to exist, with inotify(7) on its nearest existing ancestor
/// directory.
pub(super) struct PathWatch<'a> {
    path: &'a [u8],
    /// `None`: inotify is not available.
    inotify: Option<OwnedFd>,
    /// The watch descriptor of that directory.
    watched: Option<i32>,
}

const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// How much of the inotify queue is read at once.
const BUFFER_SIZE: usize = 4096;

impl<'a> PathWatch<'a> {
    pub(super) fn new(path: &'a [u8]) -> Self {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        Self {
            path,
            inotify: inotify::init(flags).ok(),
            watched: None,
        }
    }

    /// Waits until the path exists, or until this moment.
    pub(super) fn pause(&mut self, until: Moment) {
        loop {
            self.arm();
            // Catches a path that was created before the watch.
            if file::attempt(self.path).is_ok() {
                return;
            }
            let Some(inotify) = &self.inotify else {
                return super::child::sleep(until);
            };
            match wait(inotify, PollFlags::IN, until) {
                Ok(()) => drain(inotify),
                Err(AttemptError::TimedOut) => return,
                Err(AttemptError::Failed(_)) => self.inotify = None,
            }
        }
    }

    /// Watches the nearest existing directory. Repeats, because a nearer one
    /// may be created meanwhile.
    fn arm(&mut self) {
        while let Some(inotify) = &self.inotify {
            let nearest = ancestors(self.path)
                .find_map(|directory| inotify::add_watch(inotify, directory, CHANGES).ok());
            if nearest == self.watched {
                return;
            }
            if let Some(former) = self.watched {
                // The kernel may have removed it with its directory.
                let _ = inotify::remove_watch(inotify, former);
            }
            self.watched = nearest;
        }
    }
}

/// Returns the directories above a path, the nearest first.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = path;
    core::iter::from_fn(move || {
        let slash = left.iter().rposition(|byte| *byte == b'/')?;
        left = left.get(..slash)?;
        Some(if left.is_empty() { b"/" } else { left })
    })
}

fn drain(inotify: &OwnedFd) {
    let mut buffer = [const { MaybeUninit::uninit() }; BUFFER_SIZE];
    let mut reader = Reader::new(inotify, &mut buffer);
    while reader.next().is_ok() {}
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn directories_come_nearest_first() {
        let all: Vec<&[u8]> = ancestors(b"/run/app/ready").collect();
        assert_eq!(all, [&b"/run/app"[..], b"/run", b"/"]);
        let all: Vec<&[u8]> = ancestors(b"/ready").collect();
        assert_eq!(all, [b"/"]);
    }
}
