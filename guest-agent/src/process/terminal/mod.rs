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
mod reading;
mod requests;
mod typing;
mod writers;

use alloc::vec::Vec;

use rustix::{
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::Errno,
};
use vmcell_wire::{
    Failure, Stage,
    terminal::{Size, UnreadOutput},
};

use super::{
    Input, Output, Process, ReadPosition,
    spawn::raw_errno,
    streams::{ChildEnds, Streams, set_nonblocking},
};
use crate::ids::Caller;
use pty::open_pty;
use writers::Writers;

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

    /// Returns how much input of a writer was received.
    pub(super) fn received_from(&self, caller: Caller) -> Option<u64> {
        self.writers.received(caller)
    }

    /// Counts the input of a writer. Returns whether it may write.
    pub(super) fn record_input(&mut self, caller: Caller, count: usize) -> bool {
        self.writers.record(caller, count)
    }

    /// Returns whether any stream reads its output.
    pub(super) fn is_read(&self) -> bool {
        !self.readers.is_empty()
    }
}

impl Streams {
    /// Opens a terminal owned by this user, of whose output `keep` bytes are
    /// kept.
    pub(super) fn terminal(
        new: NewTerminal,
        keep: u32,
        uid: u32,
    ) -> Result<Self, Failure<'static>> {
        Self::try_terminal(new, keep, uid).map_err(|errno| {
            let text = "the terminal cannot be created";
            Failure::from_errno(raw_errno(errno), Stage::Terminal, text)
        })
    }

    fn try_terminal(new: NewTerminal, keep: u32, uid: u32) -> Result<Self, Errno> {
        let (master, program_end) = open_pty(new.size, uid)?;
        set_nonblocking(&master)?;
        // epoll registers each descriptor once, whatever it is watched for.
        let typing = rustix::io::fcntl_dupfd_cloexec(&master, 0)?;
        let mut stdout = Output::new(master, keep);
        let terminal = Terminal::new(program_end, new.unread, &mut stdout);
        Ok(Self {
            stdin: Some(Input::new(typing)),
            stdout,
            stderr: Output::ended(),
            child_ends: ChildEnds::Terminal(terminal),
        })
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
