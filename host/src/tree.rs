//! Limits, progress and results of transferring trees into a guest and out of
//! it. See [`Files::push`](crate::files::Files::push) and
//! [`Files::pull`](crate::files::Files::pull).

#[cfg(feature = "archive")]
pub use vmcell_tree::transfer::{ArchiveFormat, ArchiveProblem, OtherFormat};
pub use vmcell_tree::transfer::{
    Received, Sent, SkippedEntry, TreeError, TreeLimit, TreeLimits, TreeProgress,
};
