use alloc::{ffi::CString, vec::Vec};
use core::ffi::CStr;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, chmodat,
        fstat, mkdirat, mknodat, openat, renameat_with, symlinkat, utimensat,
    },
    io::Errno,
};
use vmcell_wire::{FailureKind, files::Owner, limits::MAX_DEPTH};

use super::{
    copy_content::{copy_content, copy_failed},
    directory_stack::{DirectoryStack, Level, Step, open_directory, open_entry},
    entry::{self, has_type},
    owner::{Ids, NewOwner},
    recursive::too_deep,
    remove::remove_tree,
    root::Root,
    target::NO_SIDE_EFFECTS,
    temporary::{path_of, random_name},
};
use crate::worker::{FileError, JobError, JobIo, JobResult};

/// Copies an entry with all that is below it. The copy has a temporary name until
/// it is complete, and is removed if that fails.
pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    from: &[u8],
    to: &[u8],
    owner: Owner<'_>,
) -> JobResult<()> {
    let owner = NewOwner::find(owner)?;
    let (from, to) = (root.locate(from)?, root.locate(to)?);
    let mut copier = Copier {
        io,
        owner,
        destination: fstat(&to.directory).map_err(copy_failed)?,
        top: None,
    };
    let (directory, name) = (to.directory.as_fd(), c_name(from.name)?);
    let temporary = random_name().map_err(copy_failed)?;
    let copied = copier
        .copy(
            from.directory.as_fd(),
            &name,
            directory,
            &c_name(&temporary)?,
        )
        .and_then(|()| {
            let flags = RenameFlags::NOREPLACE;
            renameat_with(directory, &*temporary, directory, to.name, flags).map_err(copy_failed)
        });
    if let Err(error) = copied {
        // The first failure is reported, not one of the removal.
        let _ = remove_tree(directory, &temporary, || Ok(()));
        return Err(error);
    }
    let copy = open_entry(directory, to.name).map_err(copy_failed)?;
    entry::answer(io, copy.as_fd())
}

struct Copier<'l> {
    io: &'l JobIo,
    owner: NewOwner,
    /// The directory that the copy is created in.
    destination: Stat,
    /// The copy, if it is a directory.
    top: Option<Stat>,
}

/// A directory whose entries are being copied.
struct CopiedDirectory {
    status: Stat,
    copy: OwnedFd,
}

impl Copier<'_> {
    fn copy(
        &mut self,
        from: BorrowedFd<'_>,
        name: &CStr,
        to: BorrowedFd<'_>,
        new_name: &CStr,
    ) -> JobResult<()> {
        let mut stack = DirectoryStack::new();
        if let Some((directory, original)) = self.copy_entry(from, name, to, new_name)? {
            self.top = Some(fstat(&original.copy).map_err(copy_failed)?);
            stack.enter(directory, CString::from(name), original);
        }
        while let Some(step) = stack.step().map_err(copy_failed)? {
            self.io.check_cancelled()?;
            let (level, name) = match step {
                Step::Entry { level, name, .. } => (level, name),
                Step::Left(Level { data, .. }) => {
                    self.finish(data.copy.as_fd(), &data.status)?;
                    continue;
                }
            };
            let (from, to) = (level.directory.as_fd(), level.data.copy.as_fd());
            match self.copy_entry(from, &name, to, &name) {
                Ok(None) => {}
                Ok(Some(_)) if stack.depth() > MAX_DEPTH => return Err(too_deep()),
                Ok(Some((directory, original))) => stack.enter(directory, name, original),
                Err(JobError::Failed(failure)) => {
                    return Err(failure.with_path(&stack.path_of(&name)).into());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Copies one entry. A directory is created empty and returned, with the opened
    /// original, for the caller to fill.
    fn copy_entry(
        &self,
        from: BorrowedFd<'_>,
        name: &CStr,
        to: BorrowedFd<'_>,
        new_name: &CStr,
    ) -> JobResult<Option<(OwnedFd, CopiedDirectory)>> {
        let private = Mode::RUSR | Mode::WUSR;
        let entry = open_entry(from, name).map_err(copy_failed)?;
        let status = fstat(&entry).map_err(copy_failed)?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => {
                if self.top.is_some_and(|top| is_same(&top, &status)) {
                    let text = "a directory cannot be copied into itself";
                    return Err(FileError::new(FailureKind::Invalid, text).into());
                }
                let directory = open_directory(entry.as_fd(), c".").map_err(copy_failed)?;
                mkdirat(to, new_name, private | Mode::XUSR).map_err(copy_failed)?;
                let copy = open_directory(to, new_name).map_err(copy_failed)?;
                return Ok(Some((directory, CopiedDirectory { status, copy })));
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | NO_SIDE_EFFECTS;
                let file = openat(from, name, flags, Mode::empty()).map_err(copy_failed)?;
                if !is_same(&fstat(&file).map_err(copy_failed)?, &status) {
                    return Err(copy_failed(Errno::AGAIN));
                }
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let copy = openat(to, new_name, flags, private).map_err(copy_failed)?;
                copy_content(self.io, file.as_fd(), copy.as_fd(), &status)?;
            }
            FileType::Symlink => {
                let target = entry::link_target(entry.as_fd(), c"").map_err(copy_failed)?;
                symlinkat(&*target, to, new_name).map_err(copy_failed)?;
            }
            kind => mknodat(to, new_name, kind, private, status.st_rdev).map_err(copy_failed)?,
        }
        let copy = open_entry(to, new_name).map_err(copy_failed)?;
        self.finish(copy.as_fd(), &status)?;
        Ok(None)
    }

    /// Sets owner, permissions and time.
    fn finish(&self, copy: BorrowedFd<'_>, original: &Stat) -> JobResult<()> {
        let set = || {
            if let Some(ids) = self
                .owner
                .owner_for_new(&self.destination, Some(Ids::of(original)))
            {
                ids.chown_path_fd(copy)?;
            }
            if !has_type(original, FileType::Symlink) {
                let mode = Mode::from_raw_mode(original.st_mode & 0o7777);
                chmodat(CWD, path_of(copy), mode, AtFlags::empty())?;
            }
            utimensat(copy, c"", &times(original), AtFlags::EMPTY_PATH)
        };
        set().map_err(copy_failed)
    }
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Returns the times of the last access and the last modification.
fn times(status: &Stat) -> Timestamps {
    let time = |tv_sec, nanoseconds| Timespec {
        tv_sec,
        tv_nsec: i64::try_from(nanoseconds).unwrap_or(0),
    };
    Timestamps {
        last_access: time(status.st_atime, status.st_atime_nsec),
        last_modification: time(status.st_mtime, status.st_mtime_nsec),
    }
}

fn c_name(name: &[u8]) -> JobResult<CString> {
    CString::new(Vec::from(name)).map_err(|_| copy_failed(Errno::INVAL))
}
