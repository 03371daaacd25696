use vmcell_wire::Position;

use crate::session::WINDOW;

/// From where on the outputs of a process are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReadFrom {
    /// From their first bytes. Those that are not kept any more are told as a
    /// gap.
    Start,
    /// What comes from now on.
    Now,
    /// From these offsets.
    Offsets(Offsets),
}

/// Places in the outputs of a process, in bytes from their start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
