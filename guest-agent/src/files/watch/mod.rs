mod pending;
mod watches;

use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{FileType, Mode, OFlags, Stat, fstat, inotify::ReadFlags},
};
use vmcell_wire::{
    FailureKind,
    files::{Answer, Change, ChangeKind},
    limits::MAX_PATH,
};

use self::{
    pending::{Happening, Pending},
    watches::{Notice, Watches, join},
};
use super::{
    entry,
    root::{Root, unresolved},
    target::is,
    walk::READ_DIRECTORY,
};
use crate::{
    clock::Moment,
    worker::{JobError, JobIo},
};

/// What is to be watched.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    /// The root of the job. It is opened anew each time: see [`Watches`].
    pub(super) root: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) recursive: bool,
}

/// Tells what changes, until nobody wants to know or there is nothing left to
/// be watched.
///
/// Changes are held back for a while after the first one, and then told
/// together, merged as [`Pending`] says. What is in a directory that is new is
/// told too, for it may have come before the directory was watched. What was
/// in one that is gone is not: it is gone with it.
pub(super) fn perform(
    io: &mut JobIo,
    subject: Subject<'_>,
    debounce_ms: u32,
) -> Result<(), JobError> {
    let mut watch = Watch::begin(io, subject)?;
    entry::answer(io, subject.open(&[], OFlags::PATH)?.as_fd())?;
    let mut pending = Pending::default();
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
                tell(io, kind, &path)?;
            }
        }
        if !is_there {
            return tell(io, ChangeKind::Removed, &[]);
        }
    }
}

fn tell(io: &mut JobIo, kind: ChangeKind, path: &[u8]) -> Result<(), JobError> {
    io.send_answer(&Answer::Change(Change { kind, path }))
}

fn milliseconds_until(due: Moment, now: Moment) -> u32 {
    let milliseconds = due.nanoseconds_since(now).div_ceil(1_000_000);
    u32::try_from(milliseconds).unwrap_or(u32::MAX)
}

impl Subject<'_> {
    /// Opens what is at a path below the top; the top if that is empty.
    fn open(&self, below: &[u8], flags: OFlags) -> Result<OwnedFd, JobError> {
        let path = join(self.path, below);
        Root::open(self.root)?.open_path(&path, flags, Mode::empty())
    }
}

struct Watch<'a> {
    subject: Subject<'a>,
    watches: Watches,
    /// The number of the top's watch.
    top: i32,
    /// What the top is: another one may take its place.
    status: Stat,
}

impl<'a> Watch<'a> {
    fn begin(io: &JobIo, subject: Subject<'a>) -> Result<Self, JobError> {
        let found = subject.open(&[], OFlags::PATH)?;
        let status = fstat(&found).map_err(unresolved)?;
        let mut watches = Watches::new()?;
        let top = watches.add(found.as_fd(), &[])?;
        if subject.recursive && is(&status, FileType::Directory) {
            let directory = rustix::fs::openat(&found, c".", READ_DIRECTORY, Mode::empty())
                .map_err(unresolved)?;
            watches.add_below(io, directory, &[], |_, _| {})?;
        }
        Ok(Self {
            subject,
            watches,
            top,
            status,
        })
    }

    /// Takes what the kernel has to tell. Answers whether the top is still
    /// there.
    fn read(&mut self, io: &JobIo, pending: &mut Pending) -> Result<bool, JobError> {
        for notice in self.watches.read()? {
            if notice.flags.contains(ReadFlags::QUEUE_OVERFLOW) {
                // Directories may have come and gone unseen.
                pending.overflow();
                return self.begin_again(io);
            }
            if !self.note(io, pending, &notice)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn begin_again(&mut self, io: &JobIo) -> Result<bool, JobError> {
        match Self::begin(io, self.subject) {
            Ok(again) => {
                *self = again;
                Ok(true)
            }
            Err(JobError::Failed(failure)) if failure.kind() == FailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes what happened. Answers whether the top is still there.
    fn note(
        &mut self,
        io: &JobIo,
        pending: &mut Pending,
        notice: &Notice,
    ) -> Result<bool, JobError> {
        let Some(above) = self.watches.path(notice.watch) else {
            return Ok(true);
        };
        let flags = notice.flags;
        if notice.name.is_empty() {
            return self.note_itself(pending, notice.watch, flags);
        }
        let path = join(above, &notice.name);
        if path.len() > MAX_PATH {
            pending.overflow();
            return Ok(true);
        }
        let is_directory = flags.contains(ReadFlags::ISDIR);
        let happening = if flags.contains(ReadFlags::CREATE) {
            Happening::Created
        } else if flags.contains(ReadFlags::MOVED_TO) {
            Happening::Arrived
        } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            Happening::Removed
        } else if flags.contains(ReadFlags::MODIFY) {
            Happening::Modified
        } else {
            Happening::Metadata
        };
        pending.add(&path, happening, is_directory);
        if is_directory && self.subject.recursive {
            match happening {
                Happening::Created | Happening::Arrived => self.adopt(io, pending, &path)?,
                Happening::Removed => self.watches.remove(&path),
                Happening::Modified | Happening::Metadata => {}
            }
        }
        Ok(true)
    }

    /// Notes what happened to what is watched itself. The directory that it is
    /// in tells this too, but for the top.
    fn note_itself(
        &mut self,
        pending: &mut Pending,
        watch: i32,
        flags: ReadFlags,
    ) -> Result<bool, JobError> {
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
            pending.add(&[], Happening::Modified, false);
        }
        if flags.contains(ReadFlags::ATTRIB) {
            // A file that is still open somewhere has only fewer names.
            if !self.is_still_there()? {
                return Ok(false);
            }
            pending.add(&[], Happening::Metadata, false);
        }
        Ok(true)
    }

    fn is_still_there(&self) -> Result<bool, JobError> {
        match self.subject.open(&[], OFlags::PATH) {
            Ok(found) => {
                let now = fstat(&found).map_err(unresolved)?;
                Ok((now.st_dev, now.st_ino) == (self.status.st_dev, self.status.st_ino))
            }
            Err(JobError::Failed(failure)) if failure.kind() == FailureKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Watches a new directory, and notes what is in it already.
    fn adopt(&mut self, io: &JobIo, pending: &mut Pending, path: &[u8]) -> Result<(), JobError> {
        let directory = match self.subject.open(path, READ_DIRECTORY) {
            Ok(directory) => directory,
            // It is gone or something else by now, which will be told.
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
                pending.add(path, Happening::Created, is_directory);
            })
    }
}
