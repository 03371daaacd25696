//! Processes on a pseudoterminal.
//!
//! ```text
//!             queue of the input                        line discipline
//!  writers ────────────────────> master ══ the kernel's ══ program end <──> program
//!  readers <───────────────────                  pair
//!             ring of the output
//! ```
//!
//! *Readers* are the streams that want its output. While there are any, the
//! ring holds what the fastest of them has not acknowledged, and the program
//! waits. When there are none, [`Unread`] decides whether it still waits.
//! *Writers* are the streams that type. A stream can be both.

mod foreground;
mod modes;
mod pty;
mod requests;
mod typing;
mod writers;

use alloc::vec::Vec;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use vmcell_wire::terminal::{Size, UnreadOutput};

use super::{Output, Process};
use crate::{ids::Caller, link::ReadPosition};
use writers::Writers;

pub(super) use pty::open_pty;

/// The settings of a new terminal.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewTerminal {
    pub(super) size: Size,
    pub(super) unread: UnreadOutput,
}

/// The terminal of a process. Its master is the process's input and output.
pub(crate) struct Terminal {
    /// The program's end. While the agent keeps it open too, the program may
    /// close and reopen it without ending its output. `None`: the program has
    /// ended.
    program_end: Option<OwnedFd>,
    unread: UnreadOutput,
    readers: Vec<Caller>,
    pub(super) writers: Writers,
}

impl Terminal {
    pub(super) fn new(program_end: OwnedFd, unread: UnreadOutput, output: &mut Output) -> Self {
        if unread == UnreadOutput::Block {
            output.hold(0, 0);
        }
        Self {
            program_end: Some(program_end),
            unread,
            readers: Vec::new(),
            writers: Writers::default(),
        }
    }

    /// Returns the program's standard streams.
    pub(super) fn program_end(&self) -> Option<BorrowedFd<'_>> {
        self.program_end.as_ref().map(AsFd::as_fd)
    }

    /// Closes the program's end after the program has ended: its output ends
    /// when no other process has it open.
    pub(super) fn program_ended(&mut self) {
        self.program_end = None;
    }

    /// Returns whether any stream reads its output.
    pub(super) fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }
}

impl Process {
    /// Returns whether output is held until this stream acknowledges it.
    pub(crate) fn is_held_for(&self, caller: Caller) -> bool {
        let reads = |terminal: &Terminal| terminal.readers.contains(&caller);
        self.owner == Some(caller) || self.terminal.as_ref().is_some_and(reads)
    }

    /// Adds a reader of its output. Returns whether there may be room for more
    /// output now, which is only the case with a terminal.
    pub(super) fn add_terminal_reader(&mut self, caller: Caller, position: ReadPosition) -> bool {
        let Some(terminal) = &mut self.terminal else {
            return false;
        };
        terminal.readers.push(caller);
        self.stdout.hold_for_another(position.offset, position.size);
        true
    }

    /// Removes a stream. Returns whether the program waits for no reader any
    /// more.
    pub(super) fn remove_terminal_stream(&mut self, caller: Caller) -> bool {
        let Some(terminal) = &mut self.terminal else {
            return false;
        };
        terminal.writers.detach(caller);
        terminal.readers.retain(|other| *other != caller);
        let released = terminal.unread == UnreadOutput::DropOldest && terminal.readers.is_empty();
        if released {
            self.stdout.stop_holding();
        }
        released
    }
}
