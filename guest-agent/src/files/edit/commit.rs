use alloc::{ffi::CString, vec::Vec};

use rustix::{
    fd::{AsFd, BorrowedFd},
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat, chmodat, fstat, renameat_with,
        unlinkat,
    },
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::{
    change::{Action, Change},
    stage::staged_name,
};
use crate::{
    files::{
        directory_stack::{DirectoryStack, Step, open_directory, open_entry},
        entry::{has_type, status_of},
        owner::{Ids, NewOwner},
        root::{Root, resolve_error, split},
        temporary::path_of,
        write::{NEW_MODE, conflict},
    },
    worker::{FileError, JobError, JobResult},
};

/// Applies changes one by one, and can undo them.
pub(super) struct Commit<'a> {
    top: &'a Root,
    staging: BorrowedFd<'a>,
    owner: &'a NewOwner,
    changes: &'a [Change],
    applied: Vec<Applied<'a>>,
}

/// A change that was applied.
enum Applied<'a> {
    /// This directory was created.
    Directory(Vec<u8>),
    /// The entry was moved to the staging directory.
    Removed(usize, &'a Change),
    /// The staged entry was moved to its path.
    Added(usize, &'a Change),
    /// The staged entry and the one at its path were exchanged.
    Exchanged(usize, &'a Change),
    /// The permissions were these before.
    Mode(&'a Change, u32),
}

impl<'a> Commit<'a> {
    pub(super) fn new(
        top: &'a Root,
        staging: BorrowedFd<'a>,
        owner: &'a NewOwner,
        changes: &'a [Change],
    ) -> Self {
        Self {
            top,
            staging,
            owner,
            changes,
            applied: Vec::new(),
        }
    }

    pub(super) fn perform(&mut self) -> JobResult<()> {
        // Removals come first, because a new entry may need the path: a file where
        // a directory was, or the other way round.
        for removals in [true, false] {
            for (index, change) in self.changes.iter().enumerate() {
                if matches!(change.action, Action::Remove) == removals {
                    self.apply(index, change).map_err(|error| match error {
                        JobError::Failed(failure) => failure.with_path(&change.path).into(),
                        error => error,
                    })?;
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, index: usize, change: &'a Change) -> JobResult<()> {
        match change.action {
            Action::Remove => self.remove(index, change),
            Action::SetMode(mode) => self.set_mode(change, u32::from(mode)),
            Action::Put { mode } => self.put(index, change, mode.map(u32::from)),
            Action::PutLink => self.put(index, change, None),
        }
    }

    fn remove(&mut self, index: usize, change: &'a Change) -> JobResult<()> {
        self.move_to_staging(index, change)?;
        self.applied.push(Applied::Removed(index, change));
        self.check_displaced(index, change)
    }

    fn set_mode(&mut self, change: &'a Change, mode: u32) -> JobResult<()> {
        let before = self.change_mode(change, mode)?;
        self.applied.push(Applied::Mode(change, before));
        Ok(())
    }

    fn put(&mut self, index: usize, change: &'a Change, mode: Option<u32>) -> JobResult<()> {
        let (above, name) = split(&change.path)?;
        let mut made = Vec::new();
        let directory = self
            .top
            .make_directories_with(above, self.owner, &mut |path| {
                made.push(Applied::Directory(Vec::from(path)));
            });
        self.applied.append(&mut made);
        let directory = directory?;
        let parent = fstat(&directory).map_err(change_failed)?;
        self.apply_metadata(index, change, &parent, mode)
            .map_err(change_failed)?;
        let flags = match change.before {
            None => RenameFlags::NOREPLACE,
            Some(_) => RenameFlags::EXCHANGE,
        };
        let staged = staged_name(index);
        renameat_with(self.staging, staged.as_c_str(), &directory, name, flags)
            .map_err(change_failed)?;
        if change.before.is_none() {
            self.applied.push(Applied::Added(index, change));
            return Ok(());
        }
        self.applied.push(Applied::Exchanged(index, change));
        self.check_displaced(index, change)
    }

    /// Sets the owner and the permissions of a staged entry.
    fn apply_metadata(
        &self,
        index: usize,
        change: &Change,
        parent: &Stat,
        mode: Option<u32>,
    ) -> Result<(), Errno> {
        // A file does not keep the metadata of a directory that it replaces.
        let before = change
            .before
            .as_ref()
            .filter(|before| !has_type(before, FileType::Directory));
        let staged = open_entry(self.staging, staged_name(index).as_c_str())?;
        let new_owner = match before {
            Some(before) => Some(self.owner.owner_for_replaced().unwrap_or(Ids::of(before))),
            None => self.owner.owner_for_new(parent, None),
        };
        let status = fstat(&staged)?;
        if let Some(ids) = new_owner.filter(|ids| *ids != Ids::of(&status)) {
            ids.chown_path_fd(staged.as_fd())?;
        }
        if matches!(change.action, Action::PutLink) {
            return Ok(());
        }
        let kept = before
            .filter(|before| has_type(before, FileType::RegularFile))
            .map(|before| before.st_mode & 0o7777);
        let mode = Mode::from_raw_mode(mode.or(kept).unwrap_or(NEW_MODE));
        chmodat(CWD, path_of(staged.as_fd()), mode, AtFlags::empty())
    }

    /// Fails unless the entry that was moved to the staging directory is the one that
    /// was checked.
    fn check_displaced(&self, index: usize, change: &Change) -> JobResult<()> {
        let name = staged_name(index);
        let now = status_of(self.staging, name.as_bytes()).map_err(change_failed)?;
        let is_expected = change
            .before
            .is_some_and(|before| is_unchanged(&before, &now));
        if !is_expected {
            return Err(conflict("the file was changed meanwhile"));
        }
        if has_type(&now, FileType::Directory) && !is_empty(self.staging, name.as_bytes())? {
            return Err(conflict("it is a directory, and something is in it"));
        }
        Ok(())
    }

    /// Undoes all changes, the last one first. Returns whether that worked.
    pub(super) fn undo(&mut self) -> bool {
        let mut complete = true;
        while let Some(applied) = self.applied.pop() {
            complete &= self.undo_one(&applied).is_ok();
        }
        complete
    }

    fn undo_one(&self, applied: &Applied<'_>) -> JobResult<()> {
        let (index, change, flags) = match applied {
            Applied::Directory(path) => {
                let location = self.top.locate(path)?;
                // It stays if another process has put something into it.
                let _ = unlinkat(&location.directory, location.name, AtFlags::REMOVEDIR);
                return Ok(());
            }
            Applied::Mode(change, mode) => return self.change_mode(change, *mode).map(|_| ()),
            Applied::Added(index, change) => {
                return self.move_to_staging(*index, change);
            }
            Applied::Removed(index, change) => (*index, change, RenameFlags::NOREPLACE),
            Applied::Exchanged(index, change) => (*index, change, RenameFlags::EXCHANGE),
        };
        let location = self.top.locate(&change.path)?;
        let staged = staged_name(index);
        let to = &location.directory;
        renameat_with(self.staging, staged.as_c_str(), to, location.name, flags)
            .map_err(change_failed)
    }

    /// Moves an entry to the staging directory.
    fn move_to_staging(&self, index: usize, change: &Change) -> JobResult<()> {
        let location = self.top.locate(&change.path)?;
        let (from, staged) = (&location.directory, staged_name(index));
        let flags = RenameFlags::NOREPLACE;
        renameat_with(from, location.name, self.staging, staged.as_c_str(), flags)
            .map_err(change_failed)
    }

    /// Sets the permissions, and returns the previous ones.
    fn change_mode(&self, change: &Change, mode: u32) -> JobResult<u32> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let file = self.top.open_path(&change.path, flags, Mode::empty())?;
        let status = fstat(&file).map_err(resolve_error)?;
        if !change
            .before
            .is_some_and(|before| is_unchanged(&before, &status))
        {
            return Err(conflict("the file was changed meanwhile"));
        }
        let mode = Mode::from_raw_mode(mode);
        chmodat(CWD, path_of(file.as_fd()), mode, AtFlags::empty()).map_err(change_failed)?;
        Ok(status.st_mode & 0o7777)
    }
}

/// Returns whether it is the same file with the same size and modification time. For
/// a directory the latter are ignored, because entries of it may have been removed.
fn is_unchanged(before: &Stat, now: &Stat) -> bool {
    let same = (before.st_dev, before.st_ino) == (now.st_dev, now.st_ino);
    let bytes = (before.st_size, before.st_mtime, before.st_mtime_nsec)
        == (now.st_size, now.st_mtime, now.st_mtime_nsec);
    same && (bytes || has_type(now, FileType::Directory))
}

fn is_empty(above: BorrowedFd<'_>, name: &[u8]) -> JobResult<bool> {
    let mut stack = DirectoryStack::new();
    stack.enter(
        open_directory(above, name).map_err(change_failed)?,
        CString::default(),
        (),
    );
    let step = stack.step().map_err(change_failed)?;
    Ok(matches!(step, Some(Step::Left(_))))
}

#[cold]
fn change_failed(errno: Errno) -> JobError {
    let failure = match errno {
        Errno::XDEV => FileError::new(
            FailureKind::Unsupported,
            "it is on another file system than the directory that is edited",
        ),
        errno => FileError::errno(errno, "changing it"),
    };
    failure.into()
}
