//! The events of a stream, as owned values.

use std::ffi::CStr;

use bytes::Bytes;
use vmcell_wire::{
    Attached, BufferedRange, Channel, Event, Exit, Failure, FailureKind, PackedStringsBuf,
    ProcessEntry, ProcessMode, ProcessTree, Stage,
    terminal::{Foreground, Size, TerminalState},
};

use super::ServiceState;
use vmcell_tree::printable;

/// An event of a stream.
#[derive(Debug)]
pub(crate) enum StreamEvent {
    Started { id: u32, pid: u32 },
    Attached(Attached),
    Data(Channel, Bytes),
    Gap(Channel, u64),
    Listed(Box<ListedProcess>),
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
    Terminal(Box<TerminalSnapshot>),
    Service(Box<ServiceState>),
    /// An outcome that this version does not know.
    Unknown,
}

/// An owned [`Failure`] whose text is safe to print.
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

/// An owned [`ProcessEntry`] of a list of processes.
#[derive(Debug)]
pub(crate) struct ListedProcess {
    pub(crate) id: u32,
    pub(crate) pid: u32,
    pub(crate) tag: String,
    pub(crate) argv: PackedStringsBuf,
    pub(crate) uid: u32,
    pub(crate) mode: ProcessMode,
    pub(crate) age_ms: u64,
    pub(crate) stdout: BufferedRange,
    pub(crate) stderr: BufferedRange,
    pub(crate) exit: Option<Exit>,
    /// The processes that it left behind. `None` if they were not requested.
    pub(crate) left: Option<LeftProcesses>,
}

/// The processes that a command left behind when it ended.
#[derive(Debug)]
pub(crate) struct LeftProcesses {
    pids: Vec<u8>,
    names: PackedStringsBuf,
    pub(crate) more: bool,
}

impl LeftProcesses {
    /// Returns their pids and names.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let (pids, _) = self.pids.as_chunks();
        let names = self.names.as_packed().iter().map(CStr::to_bytes);
        pids.iter().copied().map(u32::from_le_bytes).zip(names)
    }
}

impl ListedProcess {
    pub(super) fn from_tree(tree: &ProcessTree<'_>) -> Self {
        let left = LeftProcesses {
            pids: tree.pids.to_vec(),
            names: tree.names.into(),
            more: tree.more,
        };
        Self {
            left: Some(left),
            ..Self::from_wire(&tree.entry)
        }
    }

    pub(super) fn from_wire(entry: &ProcessEntry<'_>) -> Self {
        Self {
            id: entry.id,
            pid: entry.pid,
            tag: entry.tag.to_owned(),
            argv: entry.argv.into(),
            uid: entry.uid,
            mode: entry.mode,
            age_ms: entry.age_ms,
            stdout: entry.stdout,
            stderr: entry.stderr,
            exit: entry.exit,
            left: None,
        }
    }

    /// Borrows this as a wire message.
    pub(crate) fn as_wire(&self) -> Event<'_> {
        let entry = self.entry();
        match &self.left {
            None => Event::Listed(entry),
            Some(left) => Event::ListedTree(ProcessTree {
                entry,
                pids: &left.pids,
                names: left.names.as_packed(),
                more: left.more,
            }),
        }
    }

    fn entry(&self) -> ProcessEntry<'_> {
        ProcessEntry {
            id: self.id,
            pid: self.pid,
            tag: &self.tag,
            argv: self.argv.as_packed(),
            uid: self.uid,
            mode: self.mode,
            age_ms: self.age_ms,
            stdout: self.stdout,
            stderr: self.stderr,
            exit: self.exit,
        }
    }
}

/// An owned [`TerminalState`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TerminalSnapshot {
    pub(crate) size: Size,
    pub(crate) echo: bool,
    pub(crate) canonical: bool,
    pub(crate) foreground: Option<ForegroundSnapshot>,
}

/// An owned [`Foreground`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForegroundSnapshot {
    pub(crate) pid: u32,
    pub(crate) command: Vec<u8>,
    pub(crate) cwd: Vec<u8>,
}

impl TerminalSnapshot {
    pub(super) fn from_wire(state: &TerminalState<'_>) -> Self {
        Self {
            size: state.size,
            echo: state.echo,
            canonical: state.canonical,
            foreground: state.foreground.map(|foreground| ForegroundSnapshot {
                pid: foreground.pid,
                command: foreground.command.to_vec(),
                cwd: foreground.cwd.to_vec(),
            }),
        }
    }

    /// Borrows this as a wire message.
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
