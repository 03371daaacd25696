use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, fstat},
};
use vmcell_wire::files::Owner;

use super::{
    entry,
    owner::{Ids, NewOwner},
    recursive::change_recursively,
    root::{Root, resolve_error},
};
use crate::worker::{JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    owner: Owner<'_>,
    tree: bool,
) -> JobResult<()> {
    let ids = match NewOwner::find(owner)?.owner_for_replaced() {
        Some(ids) => ids,
        None => Ids::of(&fstat(root.locate(path)?.directory).map_err(resolve_error)?),
    };
    let top = root.open_path(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    let operation = "setting its owner";
    change_recursively(io, &top, tree, operation, &|entry, _| {
        ids.chown_path_fd(entry)
    })?;
    entry::answer(io, top.as_fd())
}
