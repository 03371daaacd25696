//! What comes on a stream, in values that own themselves.

use bytes::Bytes;
use vmcell_wire::{
    Attached, Channel, Entry, Exit, Failure, FailureKind, Kept, Lifetime, PackedBuf, Stage,
    terminal::{Foreground, Size, TerminalState},
};

use super::ServiceState;
use crate::printable::printable;

/// What comes on a stream.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Started { id: u32, pid: u32 },
    Attached(Attached),
    Data(Channel, Bytes),
    Gap(Channel, u64),
    Listed(Box<Listed>),
    Service(Box<ServiceState>),
    Connected,
    Closed(Closing),
}

/// How a stream ended.
#[derive(Clone, Debug)]
pub(crate) enum Closing {
    Exited(Exit),
    Failed(Failed),
    Spawned {
        id: u32,
        pid: u32,
    },
    Pong,
    PoweringOff,
    DiskClean,
    Done,
    EndOfList {
        more: bool,
    },
    Terminal(Box<Looked>),
    Service(Box<ServiceState>),
    /// Something that this version does not know.
    Unknown,
}

/// A [`Failure`] whose text is safe to print.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub(crate) kind: FailureKind,
    pub(crate) errno: u16,
    pub(crate) stage: Stage,
    pub(crate) text: String,
}

impl Failed {
    pub(crate) fn from_wire(failure: &Failure<'_>) -> Self {
        Self {
            kind: failure.kind,
            errno: failure.errno,
            stage: failure.stage,
            text: printable(failure.text.as_bytes()).into_owned(),
        }
    }
}

/// An [`Entry`] of a list.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) id: u32,
    pub(crate) pid: u32,
    pub(crate) tag: String,
    pub(crate) argv: PackedBuf,
    pub(crate) uid: u32,
    pub(crate) lifetime: Lifetime,
    pub(crate) age_ms: u64,
    pub(crate) stdout: Kept,
    pub(crate) stderr: Kept,
    pub(crate) exit: Option<Exit>,
}

impl Listed {
    pub(super) fn from_wire(entry: &Entry<'_>) -> Self {
        Self {
            id: entry.id,
            pid: entry.pid,
            tag: entry.tag.to_owned(),
            argv: entry.argv.into(),
            uid: entry.uid,
            lifetime: entry.lifetime,
            age_ms: entry.age_ms,
            stdout: entry.stdout,
            stderr: entry.stderr,
            exit: entry.exit,
        }
    }

    /// The same as it goes over a link.
    pub(crate) fn as_wire(&self) -> Entry<'_> {
        Entry {
            id: self.id,
            pid: self.pid,
            tag: &self.tag,
            argv: self.argv.as_packed(),
            uid: self.uid,
            lifetime: self.lifetime,
            age_ms: self.age_ms,
            stdout: self.stdout,
            stderr: self.stderr,
            exit: self.exit,
        }
    }
}

/// A [`TerminalState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Looked {
    pub(crate) size: Size,
    pub(crate) echo: bool,
    pub(crate) canonical: bool,
    pub(crate) foreground: Option<LookedForeground>,
}

/// A [`Foreground`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookedForeground {
    pub(crate) pid: u32,
    pub(crate) command: Vec<u8>,
    pub(crate) cwd: Vec<u8>,
}

impl Looked {
    pub(super) fn from_wire(state: &TerminalState<'_>) -> Self {
        Self {
            size: state.size,
            echo: state.echo,
            canonical: state.canonical,
            foreground: state.foreground.map(|foreground| LookedForeground {
                pid: foreground.pid,
                command: foreground.command.to_vec(),
                cwd: foreground.cwd.to_vec(),
            }),
        }
    }

    /// The same as it goes over a link.
    pub(crate) fn as_wire(&self) -> TerminalState<'_> {
        TerminalState {
            size: self.size,
            echo: self.echo,
            canonical: self.canonical,
            foreground: self.foreground.as_ref().map(|foreground| Foreground {
                pid: foreground.pid,
                command: &foreground.command,
                cwd: &foreground.cwd,
            }),
        }
    }
}
