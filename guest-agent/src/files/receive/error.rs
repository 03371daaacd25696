use vmcell_wire::FailureKind;

use crate::worker::{FileError, JobError};

pub(super) fn directory_in_the_way() -> FileError {
    FileError::new(
        FailureKind::Conflict,
        "a directory is in the way: remove it first",
    )
}

pub(super) fn malformed_tree() -> JobError {
    FileError::new(FailureKind::Invalid, "the records do not form a tree").into()
}
