use rustix::{
    fd::AsFd,
    fs::{FileType, Mode, OFlags},
};

use super::{
    digest::Digester,
    entry::{self, has_type},
    root::{Root, resolve_error},
    target::open_file,
};
use crate::worker::{JobIo, JobResult};

pub(super) fn perform(
    io: &mut JobIo,
    root: &Root,
    path: &[u8],
    follow: bool,
    digest: bool,
) -> JobResult<()> {
    let mut flags = OFlags::PATH;
    flags.set(OFlags::NOFOLLOW, !follow);
    let found = root.open_path(path, flags, Mode::empty())?;
    let status = rustix::fs::fstat(&found).map_err(resolve_error)?;
    if !digest || !has_type(&status, FileType::RegularFile) {
        return entry::answer(io, found.as_fd());
    }
    let (file, _) = open_file(root, path, OFlags::RDONLY)?;
    let digest = Digester::new().digest(io, file.as_fd())?;
    entry::answer_with_digest(io, file.as_fd(), Some(digest))
}
