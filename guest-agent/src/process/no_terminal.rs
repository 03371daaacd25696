//! In place of `terminal/` in an agent that was compiled without terminals: no
//! process has one.

use rustix::fd::BorrowedFd;
use vmcell_wire::Failure;

use super::{Process, ReadPosition, streams::Streams};
use crate::ids::Caller;

pub(super) enum NewTerminal {}

pub(crate) enum Terminal {}

impl Terminal {
    pub(super) fn program_end(&self) -> Option<BorrowedFd<'_>> {
        match *self {}
    }

    pub(super) fn program_ended(&mut self) {
        match *self {}
    }

    pub(super) fn is_read(&self) -> bool {
        match *self {}
    }

    pub(super) fn received_from(&self, _: Caller) -> Option<u64> {
        match *self {}
    }

    pub(super) fn record_input(&mut self, _: Caller, _: usize) -> bool {
        match *self {}
    }
}

impl Streams {
    pub(super) fn terminal(new: NewTerminal, _: u32, _: u32) -> Result<Self, Failure<'static>> {
        match new {}
    }
}

impl Process {
    /// Returns whether output is held until this stream acknowledges it.
    pub(crate) fn is_held_for(&self, caller: Caller) -> bool {
        self.owner == Some(caller)
    }

    pub(super) fn add_terminal_reader(&mut self, _: Caller, _: ReadPosition) -> bool {
        false
    }

    pub(super) fn remove_terminal_stream(&mut self, _: Caller) -> bool {
        false
    }
}
