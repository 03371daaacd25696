//! Child processes: their pipes, their owners and observers, and how they end.
//!
//! ```text
//!            leader ends               outputs ended, or grace over
//!  Running ---------------> Ended   ----------------------------------> final
//!     |                       |         (killed: the whole tree is gone)
//!     +------- killed --------+
//! ```
//!
//! It can be signalled, killed and watched before it has executed its program:
//! see [`launching`].
//!
//! The exit status is final after the outputs have ended, so a reader that has
//! the exit status has everything. A descendant that keeps an output open
//! delays it by [`TREE_GRACE_MS`] at most, and the exit status reports that.
//!
//! A foreground process has an *owner*, a stream that controls its life and
//! whose reading it waits for. When the owner's link is lost, another stream
//! may resume it for a while; then it is killed. When the owner has
//! acknowledged the exit status, the process is removed. Any number of
//! *observers* watch a process, foreground or background, and it waits for none
//! of them, unless it runs on a [`terminal`](Terminal).

#[cfg(feature = "services")]
mod background;
#[cfg(feature = "services")]
mod context;
mod environment;
mod identity;
mod input;
mod launching;
mod listing;
mod output;
mod read_position;
mod requests;
mod role;
mod spawn;
mod streams;
mod table;
#[cfg(feature = "terminals")]
mod terminal;
#[cfg(not(feature = "terminals"))]
#[path = "no_terminal.rs"]
mod terminal;
mod termination;

use alloc::vec::Vec;

use rustix::process::Pid;
use vmcell_wire::{Channel, Position, ProcessEntry, ProcessMode};

use crate::{
    cgroup::Cgroup,
    clock::Moment,
    ids::{Caller, ProcessId},
};

#[cfg(feature = "services")]
pub(crate) use background::background;
#[cfg(feature = "services")]
pub(crate) use context::Context;
pub(crate) use input::{INPUT_WINDOW, Input, InputState};
pub(crate) use launching::LAUNCH_CHECK_DELAY_MS;
pub(crate) use output::Output;
pub(crate) use read_position::ReadPosition;
pub(crate) use role::Role;
pub(crate) use spawn::{SpawnSettings, raw_errno};
#[cfg(feature = "services")]
pub(crate) use streams::output_pipe;
pub(crate) use table::Processes;
pub(crate) use termination::{KillReason, Termination};

use identity::Identity;
use launching::LaunchState;
use spawn::Spawner;
use terminal::Terminal;

/// How long an ended process waits for descendants that keep its outputs open.
/// For those that were killed it waits longer.
pub(crate) const TREE_GRACE_MS: u64 = 500;

pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) role: Role,
    pub(crate) identity: Identity,
    pub(crate) mode: ProcessMode,
    pub(crate) started: Moment,
    /// The stream that controls it. `None`: it is a background process, or the
    /// owner's link was lost.
    pub(crate) owner: Option<Caller>,
    pub(crate) observers: Vec<Caller>,
    /// The stream whose bytes its standard input accepts.
    pub(crate) stdin_writer: Option<Caller>,
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) launching: LaunchState,
    pub(crate) termination: Termination,
}

impl Process {
    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    pub(crate) fn output_mut(&mut self, channel: Channel) -> Option<&mut Output> {
        match channel {
            Channel::Stdin => None,
            Channel::Stdout => Some(&mut self.stdout),
            Channel::Stderr => Some(&mut self.stderr),
        }
    }

    /// Returns all streams that watch it.
    pub(crate) fn callers(&self) -> impl Iterator<Item = Caller> {
        self.owner.into_iter().chain(self.observers.iter().copied())
    }

    /// Handles an epoll event of a pipe.
    fn on_pipe_ready(&mut self, channel: Channel) {
        match channel {
            Channel::Stdin => {
                if let Some(input) = &mut self.stdin {
                    input.on_ready();
                }
                self.flush_input();
            }
            Channel::Stdout => self.stdout.on_ready(),
            Channel::Stderr => self.stderr.on_ready(),
        }
    }

    /// Returns how much input of a stream was received, and how much more may
    /// be sent. `None`: input from this stream is not accepted.
    fn input_of(&mut self, caller: Caller) -> Option<Position> {
        let input = self.stdin.as_mut().filter(|input| input.is_open())?;
        let offset = match &self.terminal {
            Some(terminal) => terminal.received_from(caller)?,
            None if self.stdin_writer == Some(caller) => {
                // The credit for what was consumed until now was owed to the
                // previous stream. The window of this one includes it already.
                input.take_consumed();
                input.received()
            }
            None => return None,
        };
        let queued = u32::try_from(input.queued()).unwrap_or(INPUT_WINDOW);
        Some(Position {
            offset,
            window: INPUT_WINDOW.saturating_sub(queued),
        })
    }

    /// Takes input from a stream. Drops it if the stream may not write.
    pub(crate) fn push_input(&mut self, caller: Caller, bytes: &[u8]) {
        let Some(input) = &mut self.stdin else {
            return;
        };
        let may_write = match &mut self.terminal {
            Some(terminal) => terminal.record_input(caller, bytes.len()),
            None => self.stdin_writer == Some(caller),
        };
        if may_write && input.push(bytes) == InputState::Finished {
            self.stdin = None;
        }
    }

    /// Handles the end of a stream's input.
    pub(crate) fn input_ended(&mut self, caller: Caller) {
        if self.stdin_writer == Some(caller)
            && let Some(input) = &mut self.stdin
            && input.end() == InputState::Finished
        {
            self.stdin = None;
        }
    }

    /// Returns for how much of a stream's input credit can be returned, out of
    /// `uncredited` bytes without credit so far.
    pub(crate) fn consumed_from(&mut self, caller: Caller, uncredited: u32) -> u32 {
        match (&mut self.stdin, &self.terminal) {
            // It is not recorded whose bytes are queued. When none are, all
            // were written.
            (Some(input), Some(_)) if input.queued() > 0 => 0,
            (Some(input), None) if self.stdin_writer == Some(caller) => {
                u32::try_from(input.take_consumed()).unwrap_or(u32::MAX)
            }
            // The process has closed it, or another stream writes to it: the
            // bytes were dropped, but their credit is returned.
            _ => uncredited,
        }
    }

    /// Returns whether input waits for room in the pipe.
    fn has_queued_input(&self) -> bool {
        self.stdin.as_ref().is_some_and(|input| input.queued() > 0)
    }

    /// Writes queued input, as far as the pipe accepts it.
    pub(crate) fn flush_input(&mut self) {
        if let Some(input) = &mut self.stdin
            && input.flush() == InputState::Finished
        {
            self.stdin = None;
        }
    }

    /// Returns whether its outputs are only read as fast as its owner reads
    /// them. Otherwise the agent reads whenever it can.
    fn has_backpressure(&self) -> bool {
        self.owner.is_some() && self.stdout.is_held()
    }

    /// Stops waiting for readers.
    fn stop_backpressure(&mut self) {
        self.stdout.stop_holding();
        self.stderr.stop_holding();
    }

    /// Turns it into a background process, which no stream controls or slows
    /// down.
    fn detach(&mut self) {
        if self.mode == ProcessMode::Foreground {
            self.stop_backpressure();
        }
        self.mode = ProcessMode::Background;
        self.observers.extend(self.owner.take());
    }

    fn entry(&self, id: ProcessId, now: Moment) -> ProcessEntry<'_> {
        ProcessEntry {
            id: id.0,
            pid: self.pid(),
            tag: self.identity.tag(),
            argv: self.identity.command(),
            uid: self.identity.uid,
            mode: self.mode,
            age_ms: now.microseconds_since(self.started).div_euclid(1000),
            stdout: self.stdout.kept(),
            stderr: self.stderr.kept(),
            exit: self.termination.exit(),
        }
    }
}
