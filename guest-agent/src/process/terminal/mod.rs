//! What a process on a terminal has beyond others.
//!
//! ```text
//!             queue of the input                        line discipline
//!  writers ─────────────────────> ours ══ the kernel's ══ theirs <──> program
//!  readers <────────────────────                pair
//!             ring of the output
//! ```
//!
//! *Readers* are the streams that want its output. While there are any, the
//! ring holds what the fastest of them has not acknowledged, and the program
//! waits. When there are none, [`Unread`] says whether it goes on doing so.
//! *Writers* are the streams that type. A stream can be both.

mod foreground;
mod modes;
mod pty;
mod requests;
mod typing;
mod writers;

use alloc::vec::Vec;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use vmcell_wire::terminal::{Size, Unread};

use super::{Caller, Output, Process};
use crate::link::Place;
use writers::Writers;

pub(super) use pty::open_pty;

/// A terminal that is to be made.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewTerminal {
    pub(super) size: Size,
    pub(super) unread: Unread,
}

/// The terminal of a process. The agent's end of it is the process's input and
/// output.
pub(crate) struct Terminal {
    /// The program's end. While the agent has it open too, the program may
    /// close it and open it again without that being the end of its output.
    /// None: the program has ended.
    theirs: Option<OwnedFd>,
    unread: Unread,
    readers: Vec<Caller>,
    pub(super) writers: Writers,
}

impl Terminal {
    pub(super) fn new(theirs: OwnedFd, unread: Unread, output: &mut Output) -> Self {
        if unread == Unread::Kept {
            output.hold(0, 0);
        }
        Self {
            theirs: Some(theirs),
            unread,
            readers: Vec::new(),
            writers: Writers::default(),
        }
    }

    /// What the program gets as its standard streams.
    pub(super) fn end_of_program(&self) -> Option<BorrowedFd<'_>> {
        self.theirs.as_ref().map(AsFd::as_fd)
    }

    /// The program has ended: its output ends when nobody else has it open.
    pub(super) fn program_ended(&mut self) {
        self.theirs = None;
    }

    /// Whether somebody wants its output.
    pub(super) fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }
}

impl Process {
    /// Whether what this stream acknowledges needs not be held any more.
    pub(crate) fn is_held_for(&self, caller: Caller) -> bool {
        let reads = |terminal: &Terminal| terminal.readers.contains(&caller);
        self.owner == Some(caller) || self.terminal.as_ref().is_some_and(reads)
    }

    /// A stream begins to read its output. Answers whether there may be room for
    /// more now; without a terminal it makes no difference.
    pub(super) fn read_terminal(&mut self, caller: Caller, place: Place) -> bool {
        let Some(terminal) = &mut self.terminal else {
            return false;
        };
        terminal.readers.push(caller);
        self.stdout.hold_too(place.offset, place.size);
        true
    }

    /// A stream is gone. Answers whether the program waits for nobody any more.
    pub(super) fn left_terminal(&mut self, caller: Caller) -> bool {
        let Some(terminal) = &mut self.terminal else {
            return false;
        };
        terminal.writers.leave(caller);
        terminal.readers.retain(|other| *other != caller);
        let released = terminal.unread == Unread::Dropped && terminal.readers.is_empty();
        if released {
            self.stdout.stop_holding();
        }
        released
    }
}
