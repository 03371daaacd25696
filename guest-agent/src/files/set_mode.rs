use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, FileType, Mode, OFlags, chmodat},
};

use super::{
    entry::{self, has_type},
    recursive::change_recursively,
    root::Root,
    temporary::path_of,
};
use crate::worker::{JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    mode: u16,
    tree: bool,
) -> JobResult<()> {
    let mode = Mode::from_raw_mode(u32::from(mode) & 0o7777);
    let top = root.open_path(path, OFlags::PATH, Mode::empty())?;
    let operation = "setting its permissions";
    change_recursively(io, &top, tree, operation, &|entry, status| {
        if has_type(status, FileType::Symlink) {
            return Ok(());
        }
        // fchmod(2) does not work on a descriptor with `O_PATH`.
        chmodat(CWD, path_of(entry), mode, AtFlags::empty())
    })?;
    entry::answer(io, top.as_fd())
}
