use alloc::{vec, vec::Vec};
use core::mem::MaybeUninit;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        FileType,
        inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags},
    },
    io::Errno,
};
use vmcell_wire::pattern::Selection;

use crate::{
    files::{
        temporary::path_of,
        walk::{Order, READ_DIRECTORY, Step, Traversal},
    },
    worker::{FileError, FileResult, JobIo, JobResult},
};

/// The kernel's watches and their paths: inotify(7).
///
/// No watched entry is held open, because the kernel would not report its removal.
pub(super) struct Watches {
    inotify: OwnedFd,
    /// Paths below the top, in the order of the watch descriptors. A new one is
    /// nearly always the largest.
    paths: Vec<(i32, Vec<u8>)>,
}

/// An event of inotify(7).
pub(super) struct InotifyEvent {
    pub(super) watch: i32,
    pub(super) flags: ReadFlags,
    /// The name in the watched directory; empty for the directory itself.
    pub(super) name: Vec<u8>,
}

const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF);

/// How many directories are watched, even if the kernel allows more.
const MAX_WATCHES: usize = 256 * 1024;

/// How much of the kernel's queue is read at once.
const BUFFER: usize = 16 * 1024;

impl Watches {
    pub(super) fn new() -> FileResult<Self> {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        let inotify =
            inotify::init(flags).map_err(|errno| FileError::errno(errno, "beginning to watch"))?;
        Ok(Self {
            inotify,
            paths: Vec::new(),
        })
    }

    /// Returns the path of a watch.
    pub(super) fn path(&self, watch: i32) -> Option<&[u8]> {
        let (_, path) = self.paths.get(self.find(watch).ok()?)?;
        Some(path)
    }

    /// Watches an open entry, and returns the watch descriptor.
    pub(super) fn add(&mut self, found: BorrowedFd<'_>, path: &[u8]) -> FileResult<i32> {
        let added = if self.paths.len() < MAX_WATCHES {
            inotify::add_watch(&self.inotify, path_of(found), CHANGES)
        } else {
            Err(Errno::NOSPC)
        };
        let watch = added.map_err(|errno| match errno {
            Errno::NOSPC => FileError::errno(
                errno,
                "there are too many directories to watch: watch fewer, \
                 or raise fs.inotify.max_user_watches in the guest",
            ),
            errno => FileError::errno(errno, "watching it"),
        })?;
        let entry = (watch, Vec::from(path));
        match self.find(watch) {
            Err(place) => self.paths.insert(place, entry),
            // It was watched already, under another path.
            Ok(place) => {
                if let Some(known) = self.paths.get_mut(place) {
                    *known = entry;
                }
            }
        }
        Ok(watch)
    }

    fn find(&self, watch: i32) -> Result<usize, usize> {
        self.paths.binary_search_by_key(&watch, |(known, _)| *known)
    }

    /// Watches all directories below one. Calls `found` with every entry, and whether
    /// it is a directory.
    pub(super) fn add_below(
        &mut self,
        io: &JobIo,
        directory: OwnedFd,
        path: &[u8],
        mut found: impl FnMut(&[u8], bool),
    ) -> JobResult<()> {
        let mut traversal = Traversal::new(directory, Order::Any, Selection::Include);
        while let Some(step) = traversal.next() {
            io.check_cancelled()?;
            let below = join(path, traversal.path());
            let Step::Entry(hint) = step.map_err(|failure| failure.with_path(&below))? else {
                continue;
            };
            let opened = match hint {
                FileType::Directory | FileType::Unknown => traversal.open(READ_DIRECTORY),
                _ => Err(Errno::NOTDIR),
            };
            found(&below, opened.is_ok());
            match opened {
                Ok(opened) => {
                    self.add(opened.as_fd(), &below)?;
                    traversal
                        .enter(opened, Selection::Include)
                        .map_err(|failure| failure.with_path(&below))?;
                }
                // It is not a directory, or was removed, which another event reports.
                Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT | Errno::NXIO) => {}
                Err(errno) => {
                    return Err(FileError::errno(errno, "watching it")
                        .with_path(&below)
                        .into());
                }
            }
        }
        Ok(())
    }

    /// Stops watching a directory and all below it, because it was moved or removed.
    pub(super) fn remove(&mut self, path: &[u8]) {
        let inotify = &self.inotify;
        self.paths.retain(|(watch, known)| {
            let is_below = known
                .strip_prefix(path)
                .is_some_and(|rest| matches!(rest.first(), None | Some(b'/')));
            if is_below {
                // The kernel may have removed it already.
                let _ = inotify::remove_watch(inotify, *watch);
            }
            !is_below
        });
    }

    /// Drops a watch that the kernel has removed.
    pub(super) fn forget(&mut self, watch: i32) {
        if let Ok(place) = self.find(watch) {
            self.paths.remove(place);
        }
    }

    /// Reads some of the kernel's events, or none.
    pub(super) fn read(&self) -> FileResult<Vec<InotifyEvent>> {
        let mut buffer = vec![MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let mut events = Vec::new();
        loop {
            match reader.next() {
                Ok(event) => events.push(InotifyEvent {
                    watch: event.wd(),
                    flags: event.events(),
                    name: event
                        .file_name()
                        .map(|name| Vec::from(name.to_bytes()))
                        .unwrap_or_default(),
                }),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(events),
                Err(errno) => return Err(FileError::errno(errno, "watching")),
            }
            if reader.is_buffer_empty() {
                return Ok(events);
            }
        }
    }
}

impl AsFd for Watches {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Joins two paths, of which each may be empty.
pub(super) fn join(above: &[u8], below: &[u8]) -> Vec<u8> {
    let mut path = Vec::from(above);
    if !above.is_empty() && !below.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(below);
    path
}
