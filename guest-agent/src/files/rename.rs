use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, RenameFlags, openat, renameat_with},
    io::Errno,
};
use vmcell_wire::FailureKind;

use super::{
    entry,
    root::{Root, resolve_error},
};
use crate::worker::{FileError, JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    from: &[u8],
    to: &[u8],
    replace: bool,
) -> JobResult<()> {
    let (from, to) = (root.locate(from)?, root.locate(to)?);
    let mut flags = RenameFlags::empty();
    flags.set(RenameFlags::NOREPLACE, !replace);
    renameat_with(&from.directory, from.name, &to.directory, to.name, flags).map_err(|errno| {
        match errno {
            Errno::XDEV => FileError::new(
                FailureKind::Unsupported,
                "the new name is on another file system: copy it, then remove it",
            ),
            errno => FileError::errno(errno, "renaming it"),
        }
    })?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let renamed = openat(&to.directory, to.name, flags, Mode::empty()).map_err(resolve_error)?;
    entry::answer(io, renamed.as_fd())
}
