use vmcell_wire::files::Metadata;

use crate::transfer::TreeError;

/// Writes a received tree. [`Receiver`](super::Receiver) makes sure that the
/// calls are in a valid order and that the limits are kept.
///
/// `name` is a single name, or empty for the top of the tree. `path` is the
/// path of the entry, relative to the top.
pub(in crate::transfer) trait Target: Send {
    /// Returns whether holes are written as zeros, so that they count as bytes.
    fn fills_holes(&self) -> bool;

    /// Creates a directory. The next entries are in it.
    fn enter(
        &mut self,
        name: &[u8],
        meta: Option<&Metadata<'_>>,
        path: &[u8],
    ) -> Result<(), TreeError>;

    /// Completes the directory that was entered last.
    fn leave(&mut self, path: &[u8]) -> Result<(), TreeError>;

    /// Starts a file; its bytes follow. `size` is the size that the guest
    /// announced.
    fn begin_file(
        &mut self,
        name: &[u8],
        meta: &Metadata<'_>,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError>;

    /// Appends bytes to the current file.
    fn data(&mut self, bytes: &[u8], path: &[u8]) -> Result<(), TreeError>;

    /// Appends zeros to the current file.
    fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError>;

    /// Completes the current file.
    fn end_file(&mut self, path: &[u8]) -> Result<(), TreeError>;

    /// Creates a symbolic link.
    fn symlink(
        &mut self,
        name: &[u8],
        meta: &Metadata<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError>;

    /// Creates a hard link to a file of this tree. `to` is the path of that
    /// file.
    fn hard_link(&mut self, name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError>;

    /// Completes the tree. Returns what could not be preserved.
    fn finish(self: Box<Self>) -> Result<Losses, TreeError>;
}

/// What a target could not preserve.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::transfer) struct Losses {
    /// The number of extended attributes that were not set.
    pub(in crate::transfer) xattrs: u64,
    /// The number of files that were truncated or filled up, because they
    /// changed while they were sent.
    pub(in crate::transfer) resized: u64,
}
