use vmcell_wire::files::Meta;

use crate::transfer::TreeError;

/// What a tree is made into. [`Receiver`](super::Receiver) sees to it that
/// calls come in an order that makes sense, and that the limits are kept.
///
/// `name` is a single name, or empty for the top of the tree. `path` is where
/// that is, from the top.
pub(in crate::transfer) trait Target: Send {
    /// Whether holes are written out, so that they count as bytes.
    fn fills_holes(&self) -> bool;

    /// A directory; what follows is in it.
    fn enter(&mut self, name: &[u8], meta: Option<&Meta<'_>>, path: &[u8])
    -> Result<(), TreeError>;

    /// The directory that was entered last is complete.
    fn leave(&mut self, path: &[u8]) -> Result<(), TreeError>;

    /// A file; its bytes follow. `size` is what the guest believes it to have.
    fn begin_file(
        &mut self,
        name: &[u8],
        meta: &Meta<'_>,
        size: u64,
        path: &[u8],
    ) -> Result<(), TreeError>;

    /// Bytes of the file that was begun.
    fn data(&mut self, bytes: &[u8], path: &[u8]) -> Result<(), TreeError>;

    /// Zeros of the file that was begun.
    fn hole(&mut self, bytes: u64, path: &[u8]) -> Result<(), TreeError>;

    /// The file that was begun is complete.
    fn end_file(&mut self, path: &[u8]) -> Result<(), TreeError>;

    /// A symbolic link.
    fn symlink(
        &mut self,
        name: &[u8],
        meta: &Meta<'_>,
        target: &[u8],
        path: &[u8],
    ) -> Result<(), TreeError>;

    /// Another name for a file of this tree. `to` is its path.
    fn hard_link(&mut self, name: &[u8], to: &[u8], path: &[u8]) -> Result<(), TreeError>;

    /// All is there. Tells what was lost.
    fn finish(self: Box<Self>) -> Result<Losses, TreeError>;
}

/// What a target could not keep.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::transfer) struct Losses {
    /// Extended attributes.
    pub(in crate::transfer) xattrs: u64,
    /// Files that were cut off or filled up, since they changed on the way.
    pub(in crate::transfer) resized: u64,
}
