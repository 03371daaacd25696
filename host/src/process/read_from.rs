use vmcell_wire::Position;

use crate::session::WINDOW;

/// Where to start reading the outputs of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFrom {
    /// At their first bytes. Bytes that are no longer kept are reported as a
    /// gap.
    Start,
    /// At what is printed from now on.
    Now,
    /// At these offsets.
    Offsets(Offsets),
}

/// Offsets in the outputs of a process, in bytes from their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Offsets {
    /// In standard output.
    pub stdout: u64,
    /// In standard error.
    pub stderr: u64,
}

impl ReadFrom {
    pub(super) fn positions(self) -> [Position; 2] {
        let offsets = match self {
            Self::Start => Offsets::default(),
            Self::Now => Offsets {
                stdout: Position::NOW,
                stderr: Position::NOW,
            },
            Self::Offsets(offsets) => offsets,
        };
        [offsets.stdout, offsets.stderr].map(|offset| Position {
            offset,
            window: WINDOW,
        })
    }
}
