use std::{io, path::PathBuf};

/// Why a snapshot cannot be written, or cannot be restored here. Nothing is left
/// behind, and no VM was started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// Something with the name of the new snapshot exists.
    #[error("{} exists already: choose another path for the snapshot, or remove it", path.display())]
    Exists {
        /// Its path.
        path: PathBuf,
    },

    /// A file of it cannot be read or written.
    #[error("the snapshot {} cannot be used: {doing}", path.display())]
    Io {
        /// The path of the snapshot.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },

    /// It belongs to another user, or others may have changed it.
    #[error(
        "the snapshot {} is not safe to use: {reason}. It contains the memory of a VM: restore \
         only what you have saved yourself",
        path.display()
    )]
    NotPrivate {
        /// The path of the snapshot.
        path: PathBuf,
        /// Why it is not.
        reason: &'static str,
    },

    /// It was written by another version of vmcell.
    #[error(
        "the snapshot {} has format {format}, and this version of vmcell reads format \
         {supported}: restore it with the version that has written it, or take it again",
        path.display()
    )]
    Format {
        /// The path of the snapshot.
        path: PathBuf,
        /// Its format.
        format: u64,
        /// The format that this version reads.
        supported: u64,
    },

    /// It is not as it was written: take it again.
    #[error("the snapshot {} is damaged: {reason}", path.display())]
    Damaged {
        /// The path of the snapshot.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// It was taken on a machine that differs from this one.
    #[error("the snapshot does not fit this machine: {what} was {saved}, here it is {here}")]
    Differs {
        /// What differs.
        what: &'static str,
        /// What it was when the snapshot was taken.
        saved: String,
        /// What it is here.
        here: String,
    },

    /// The image below the VM's disk is missing, or is another one.
    #[error("the image {} of the snapshot {reason}", path.display())]
    Image {
        /// The path of the image.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}
