use std::fmt;

use serde::{Deserialize, Serialize};

/// What becomes of the sandbox after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Retention {
    /// It is gone, with all that was written.
    Destroy,
    /// Its disk stays, as a stopped [workspace](crate::workspace).
    Stop,
    /// Its memory and its disk stay, as a paused workspace. Its processes go on when that is
    /// started.
    Cold,
    /// A snapshot of its disk stays, as a stopped workspace with a recovery point.
    Snapshot,
}

impl Retention {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Destroy, Self::Stop, Self::Cold, Self::Snapshot];

    /// Returns its name in requests and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Destroy => "destroy",
            Self::Stop => "stop",
            Self::Cold => "cold",
            Self::Snapshot => "snapshot",
        }
    }

    /// Returns whether a request must say how long it is kept.
    pub(super) fn needs_ttl(self) -> bool {
        matches!(self, Self::Cold | Self::Snapshot)
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
