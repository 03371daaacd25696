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
use crate::worker::{Line, Stop};

pub(super) fn perform(
    line: &mut Line,
    root: &Root,
    path: &[u8],
    owner: Owner<'_>,
    tree: bool,
) -> Result<(), Stop> {
    let ids = match NewOwner::find(owner)?.successor() {
        Some(ids) => ids,
        None => Ids::of(&fstat(root.place(path)?.directory).map_err(unresolved)?),
    };
    let top = root.open_path(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
    let tried = "setting its owner";
    change_everywhere(line, &top, tree, tried, &|entry, _| ids.own_found(entry))?;
    entry::answer(line, top.as_fd())
}
