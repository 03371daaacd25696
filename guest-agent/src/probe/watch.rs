use core::mem::MaybeUninit;

use rustix::{
    event::PollFlags,
    fd::OwnedFd,
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
};

use super::{
    file,
    tcp::{Failed, wait},
};
use crate::clock::Moment;

/// Waits for a path to be there: inotify(7) on the nearest directory above it
/// that there is.
pub(super) struct Watch<'a> {
    path: &'a [u8],
    /// None: the kernel does not tell.
    inotify: Option<OwnedFd>,
    /// The directory that is watched.
    watched: Option<i32>,
}

const CHANGES: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// How much of the kernel's queue is read at once.
const BUFFER: usize = 4096;

impl<'a> Watch<'a> {
    pub(super) fn new(path: &'a [u8]) -> Self {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        Self {
            path,
            inotify: inotify::init(flags).ok(),
            watched: None,
        }
    }

    /// Waits until the path is there, or until this moment.
    pub(super) fn pause(&mut self, until: Moment) {
        loop {
            self.arm();
            // What came before the watch is seen now.
            if file::attempt(self.path).is_ok() {
                return;
            }
            let Some(inotify) = &self.inotify else {
                return super::child::sleep(until);
            };
            match wait(inotify, PollFlags::IN, until) {
                Ok(()) => drain(inotify),
                Err(Failed::Late) => return,
                Err(Failed::Because(_)) => self.inotify = None,
            }
        }
    }

    /// Watches the nearest directory. While that is found, a nearer one may have
    /// been made.
    fn arm(&mut self) {
        while let Some(inotify) = &self.inotify {
            let nearest = ancestors(self.path)
                .find_map(|directory| inotify::add_watch(inotify, directory, CHANGES).ok());
            if nearest == self.watched {
                return;
            }
            if let Some(former) = self.watched {
                // It may be gone with its directory.
                let _ = inotify::remove_watch(inotify, former);
            }
            self.watched = nearest;
        }
    }
}

/// The directories above a path, the nearest first.
fn ancestors(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut left = path;
    core::iter::from_fn(move || {
        let slash = left.iter().rposition(|byte| *byte == b'/')?;
        left = left.get(..slash)?;
        Some(if left.is_empty() { b"/" } else { left })
    })
}

fn drain(inotify: &OwnedFd) {
    let mut buffer = [const { MaybeUninit::uninit() }; BUFFER];
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
