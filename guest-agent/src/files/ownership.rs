use rustix::{
    fd::AsFd,
    fs::{Mode, OFlags, fstat},
};
use vmcell_wire::files::Owner;

use super::{
    entry,
    everywhere::change_everywhere,
    owner::{Ids, NewOwner},
    root::{Root, unresolved},
};
use crate::worker::{JobError, JobIo};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    owner: Owner<'_>,
    tree: bool,
) -> Result<(), JobError> {
    let ids = match NewOwner::find(owner)?.successor() {
        Some(ids) => ids,
        None => Ids::of(&fstat(root.place(path)?.directory).map_err(unresolved)?),
    };
    let top = root.open_path(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    let tried = "setting its owner";
    change_everywhere(io, &top, tree, tried, &|entry, _| ids.own_found(entry))?;
    entry::answer(io, top.as_fd())
}
