use alloc::vec::Vec;

use rustix::fs::Stat;
use vmcell_wire::files::Precondition;

/// A change of a path.
pub(super) struct Change {
    pub(super) path: Vec<u8>,
    pub(super) precondition: Precondition,
    pub(super) action: Action,
    /// The status of the entry at the path, set by the check.
    pub(super) before: Option<Stat>,
}

pub(super) enum Action {
    /// Moves the staged file to the path.
    Put {
        mode: Option<u16>,
    },
    /// Moves the staged link to the path.
    PutLink,
    SetMode(u16),
    Remove,
}
