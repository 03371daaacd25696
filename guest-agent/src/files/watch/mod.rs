mod pending;
mod watches;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, inotify::ReadFlags},
};
use vmcell_wire::{
    FailureKind,
    files::{Change, ChangeKind, FileReply},
    limits::MAX_PATH,
};

use self::{
    pending::{PathEvent, PendingChanges},
    watches::{InotifyEvent, Watches, join},
};
use super::{
    entry::{self, has_type},
    root::{Root, resolve_error},
    walk::READ_DIRECTORY,
};
use crate::{
    clock::Moment,
    worker::{JobError, JobIo, JobResult},
};

/// What is to be watched.
#[derive(Clone, Copy)]
pub(super) struct WatchTarget<'a> {
    /// The root of the job. It is opened each time it is needed: see [`Watches`].
    pub(super) root: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) recursive: bool,
}

/// Reports changes until the job is cancelled or the target is removed.
///
/// Changes are held back for a while after the first one, and then reported
/// together, merged as [`PendingChanges`] describes. The entries of a new directory
/// are reported too, because they may be older than its watch. Those of a removed
/// directory are not.
pub(super) fn perform(io: &mut JobIo, target: WatchTarget<'_>, debounce_ms: u32) -> JobResult<()> {
    let mut watch = Watch::begin(io, target)?;
    entry::answer(io, target.open(&[], OFlags::PATH)?.as_fd())?;
    let mut pending = PendingChanges::default();
    let mut due: Option<Moment> = None;
    loop {
        let wait = due.map(|due| milliseconds_until(due, Moment::now()));
        let mut is_there = true;
        if io.wait_readable(watch.watches.as_fd(), wait)? {
            is_there = watch.read(io, &mut pending)?;
        }
        if due.is_none() && !pending.is_empty() {
            due = Some(Moment::now().after_ms(debounce_ms.into()));
        }
        if !is_there || due.is_some_and(|due| due <= Moment::now()) {
            due = None;
            for (path, kind) in pending.take() {
                send_change(io, kind, &path)?;
            }
        }
        if !is_there {
            return send_change(io, ChangeKind::Removed, &[]);
        }
    }
}

fn send_change(io: &mut JobIo, kind: ChangeKind, path: &[u8]) -> JobResult<()> {
    io.send_answer(&FileReply::Change(Change { kind, path }))
}

fn milliseconds_until(due: Moment, now: Moment) -> u32 {
    let milliseconds = due.nanoseconds_since(now).div_ceil(1_000_000);
    u32::try_from(milliseconds).unwrap_or(u32::MAX)
}

impl WatchTarget<'_> {
    /// Opens the entry at a path below the top, or the top if the path is empty.
    fn open(&self, below: &[u8], flags: OFlags) -> JobResult<OwnedFd> {
        let path = join(self.path, below);
        Root::open(self.root)?.open_path(&path, flags, Mode::empty())
    }
}

struct Watch<'a> {
    target: WatchTarget<'a>,
    watches: Watches,
    /// The watch descriptor of the top.
    top: i32,
    /// The status of the top, to detect that it was replaced.
    status: Stat,
}

impl<'a> Watch<'a> {
    fn begin(io: &JobIo, target: WatchTarget<'a>) -> JobResult<Self> {
        let found = target.open(&[], OFlags::PATH)?;
        let status = fstat(&found).map_err(resolve_error)?;
        let mut watches = Watches::new()?;
        let top = watches.add(found.as_fd(), &[])?;
        if target.recursive && has_type(&status, FileType::Directory) {
            let directory = rustix::fs::openat(&found, c".", READ_DIRECTORY, Mode::empty())
                .map_err(resolve_error)?;
            watches.add_below(io, directory, &[], |_, _| {})?;
        }
        Ok(Self {
            target,
            watches,
            top,
            status,
        })
    }

    /// Reads the kernel's events. Returns whether the top still exists.
    fn read(&mut self, io: &JobIo, pending: &mut PendingChanges) -> JobResult<bool> {
        for event in self.watches.read()? {
            if event.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                // New directories may have been missed.
                pending.overflow();
                return self.restart(io);
            }
            if !self.handle_event(io, pending, &event)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn restart(&mut self, io: &JobIo) -> JobResult<bool> {
        match Self::begin(io, self.target) {
            Ok(again) => {
                *self = again;
                Ok(true)
            }
            Err(JobError::Failed(failure)) if failure.kind() == FailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Handles an event. Returns whether the top still exists.
    fn handle_event(
        &mut self,
        io: &JobIo,
        pending: &mut PendingChanges,
        event: &InotifyEvent,
    ) -> JobResult<bool> {
        let Some(above) = self.watches.path(event.watch) else {
            return Ok(true);
        };
        let flags = event.flags;
        if event.name.is_empty() {
            return self.handle_self_event(pending, event.watch, flags);
        }
        let path = join(above, &event.name);
        if path.len() > MAX_PATH {
            pending.overflow();
            return Ok(true);
        }
        let is_directory = flags.contains(ReadFlags::ISDIR);
        let event = if flags.contains(ReadFlags::CREATE) {
            PathEvent::Created
        } else if flags.contains(ReadFlags::MOVED_TO) {
            PathEvent::MovedHere
        } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            PathEvent::Removed
        } else if flags.contains(ReadFlags::MODIFY) {
            PathEvent::Modified
        } else {
            PathEvent::Metadata
        };
        pending.add(&path, event, is_directory);
        if is_directory && self.target.recursive {
            match event {
                PathEvent::Created | PathEvent::MovedHere => {
                    self.watch_new_directory(io, pending, &path)?
                }
                PathEvent::Removed => self.watches.remove(&path),
                PathEvent::Modified | PathEvent::Metadata => {}
            }
        }
        Ok(true)
    }

    /// Handles an event of a watched entry itself. It matters only for the top: for
    /// others, the watch of the parent directory reports it too.
    fn handle_self_event(
        &mut self,
        pending: &mut PendingChanges,
        watch: i32,
        flags: ReadFlags,
    ) -> JobResult<bool> {
        if flags.contains(ReadFlags::IGNORED) {
            self.watches.forget(watch);
        }
        if watch != self.top {
            return Ok(true);
        }
        let gone =
            ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED;
        if flags.intersects(gone) {
            return Ok(false);
        }
        if flags.contains(ReadFlags::MODIFY) {
            pending.add(&[], PathEvent::Modified, false);
        }
        if flags.contains(ReadFlags::ATTRIB) {
            // Removing a file that is still open is such a change too.
            if !self.is_still_there()? {
                return Ok(false);
            }
            pending.add(&[], PathEvent::Metadata, false);
        }
        Ok(true)
    }

    fn is_still_there(&self) -> JobResult<bool> {
        match self.target.open(&[], OFlags::PATH) {
            Ok(found) => {
                let now = fstat(&found).map_err(resolve_error)?;
                Ok((now.st_dev, now.st_ino) == (self.status.st_dev, self.status.st_ino))
            }
            Err(JobError::Failed(failure)) if failure.kind() == FailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Watches a new directory, and adds the entries in it as created.
    fn watch_new_directory(
        &mut self,
        io: &JobIo,
        pending: &mut PendingChanges,
        path: &[u8],
    ) -> JobResult<()> {
        let directory = match self.target.open(path, READ_DIRECTORY) {
            Ok(directory) => directory,
            // It was removed or replaced: another event reports that.
            Err(JobError::Failed(failure))
                if matches!(
                    failure.kind(),
                    FailureKind::NotFound | FailureKind::Invalid | FailureKind::Denied
                ) =>
            {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.watches.add(directory.as_fd(), path)?;
        self.watches
            .add_below(io, directory, path, |path, is_directory| {
                pending.add(path, PathEvent::Created, is_directory);
            })
    }
}
