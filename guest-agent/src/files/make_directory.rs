use rustix::{fd::AsFd, fs::Mode, io::Errno};
use vmcell_wire::files::Owner;

use super::{
    directory::make_directory,
    entry,
    owner::NewOwner,
    resolve::ResolveError,
    root::{Root, SEARCH},
};
use crate::worker::{JobIo, JobResult};

const DEFAULT_MODE: u32 = 0o755;

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    mode: Option<u16>,
    owner: Owner<'_>,
) -> JobResult<()> {
    let owner = NewOwner::find(owner)?;
    let there = root.resolve(path, SEARCH, Mode::empty());
    if matches!(there, Err(ResolveError::Kernel(Errno::NOENT))) {
        let location = root.locate_creating_parents(path, &owner)?;
        let mode = mode.map_or(DEFAULT_MODE, u32::from);
        make_directory(location.directory.as_fd(), location.name, mode, &owner)?;
    }
    let directory = root.open_path(path, SEARCH, Mode::empty())?;
    entry::answer(io, directory.as_fd())
}
