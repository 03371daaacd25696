//! The files of a real guest.

mod changes;
mod destinations;
mod diffs;
mod faults;
mod patches;
mod single;
mod trees;

use vmcell::{
    Error,
    files::{FileFailure, FileFailureKind},
};

fn failure(error: Error) -> FileFailure {
    match error {
        Error::File(failure) => failure,
        other => panic!("{other:?}"),
    }
}

fn kind(error: Error) -> FileFailureKind {
    failure(error).kind
}
