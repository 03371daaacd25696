//! Whole trees on their way into a guest and out of it: their limits, progress and
//! results. See [`Files::push`](crate::files::Files::push) and
//! [`Files::pull`](crate::files::Files::pull).

#[cfg(feature = "archive")]
pub use vmcell_tree::transfer::{ArchiveFormat, ArchiveProblem};
pub use vmcell_tree::transfer::{
    LeftOut, Received, Sent, TreeError, TreeLimit, TreeLimits, TreeProgress,
};
