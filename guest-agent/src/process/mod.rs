//! A child of the agent, its pipes, who watches it and how it ended.
//!
//! ```text
//!            leader ends               outputs ended, or held too long
//!  Running ---------------> Ended   ----------------------------------> settled
//!     |                       |         (killed: the whole tree is gone)
//!     +------- killed --------+
//! ```
//!
//! It can be signalled, killed and watched before it has executed its program:
//! see [`launching`].
//!
//! Exit is settled after the outputs have ended, so a reader that has the exit
//! has everything. A descendant that keeps an output open delays it by
//! [`HOLD_MS`] at most, and the exit says so.
//!
//! A foreground process has an *owner*, a stream that decides over its life and
//! that it waits for. When the owner's link is lost, another stream may resume
//! it for a while; then it is ended. When the owner has acknowledged the exit,
//! it is forgotten. Any number of *observers* watch a process, foreground or
//! background, and it waits for none of them, unless it runs on a
//! [`terminal`](Terminal).

mod ending;
mod environment;
mod identity;
mod input;
mod launching;
mod listing;
mod output;
mod requests;
mod role;
mod spawn;
mod streams;
mod table;
mod terminal;

use alloc::vec::Vec;

use rustix::process::Pid;
use vmcell_wire::{Channel, Entry, Lifetime, Position, StreamId};

use crate::{cgroup::Cgroup, clock::Moment, link::LinkId};

pub(crate) use ending::{Asked, Ending};
pub(crate) use input::{INPUT_WINDOW, Input, Progress};
pub(crate) use launching::UNWATCHED_MS;
pub(crate) use output::Output;
pub(crate) use role::Role;
pub(crate) use spawn::number;
pub(crate) use streams::output_pipe;
pub(crate) use table::Processes;

use identity::Identity;
use launching::Launching;
use spawn::Spawner;
use terminal::Terminal;

/// How long an ended process waits for descendants that hold its outputs, or
/// that are being killed.
pub(crate) const HOLD_MS: u64 = 500;

/// Names a process for as long as the agent lives. Not a pid, which the kernel
/// uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u32);

/// A stream of a link: somebody who is told something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) link: LinkId,
    pub(crate) stream: StreamId,
}

pub(crate) struct Process {
    pub(crate) pid: Pid,
    pub(crate) role: Role,
    pub(crate) identity: Identity,
    pub(crate) lifetime: Lifetime,
    pub(crate) started: Moment,
    /// Whose word ends it. None: it is a background process, or the owner's
    /// link was lost.
    pub(crate) owner: Option<Caller>,
    pub(crate) observers: Vec<Caller>,
    /// Whose bytes its standard input takes.
    pub(crate) feeder: Option<Caller>,
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) cgroup: Option<Cgroup>,
    pub(crate) launching: Launching,
    pub(crate) ending: Ending,
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

    /// Everybody who is told about it.
    pub(crate) fn callers(&self) -> impl Iterator<Item = Caller> {
        self.owner.into_iter().chain(self.observers.iter().copied())
    }

    /// The kernel says that a pipe can be used again.
    fn pipe_is_ready(&mut self, channel: Channel) {
        match channel {
            Channel::Stdin => {
                if let Some(input) = &mut self.stdin {
                    input.is_ready();
                }
                self.flush_input();
            }
            Channel::Stdout => self.stdout.is_ready(),
            Channel::Stderr => self.stderr.is_ready(),
        }
    }

    /// How much of a stream's input came, and how much more may. None: it does
    /// not take input from it.
    fn input_of(&mut self, caller: Caller) -> Option<Position> {
        let input = self.stdin.as_mut().filter(|input| input.is_open())?;
        let offset = match &self.terminal {
            Some(terminal) => terminal.writers.taken(caller)?,
            None if self.feeder == Some(caller) => {
                // What was consumed until now was owed to the stream before this
                // one. The window of this one has it in already.
                input.take_consumed();
                input.taken()
            }
            None => return None,
        };
        let waiting = u32::try_from(input.waiting()).unwrap_or(INPUT_WINDOW);
        Some(Position {
            offset,
            window: INPUT_WINDOW.saturating_sub(waiting),
        })
    }

    /// Takes input from a stream. What it has no right to give is dropped.
    pub(crate) fn give(&mut self, caller: Caller, bytes: &[u8]) {
        let Some(input) = &mut self.stdin else {
            return;
        };
        let may_give = match &mut self.terminal {
            Some(terminal) => terminal.writers.took(caller, bytes.len()),
            None => self.feeder == Some(caller),
        };
        if may_give && input.give(bytes) == Progress::Finished {
            self.stdin = None;
        }
    }

    /// A stream gives no more input.
    pub(crate) fn input_ended(&mut self, caller: Caller) {
        if self.feeder == Some(caller)
            && let Some(input) = &mut self.stdin
            && input.end() == Progress::Finished
        {
            self.stdin = None;
        }
    }

    /// How much of a stream's input needs no more room, of what it was not told
    /// of yet.
    pub(crate) fn consumed_of(&mut self, caller: Caller, untold: u32) -> u32 {
        match (&mut self.stdin, &self.terminal) {
            // Whose bytes wait is not known. When none do, all have gone.
            (Some(input), Some(_)) if input.waiting() > 0 => 0,
            (Some(input), None) if self.feeder == Some(caller) => {
                u32::try_from(input.take_consumed()).unwrap_or(u32::MAX)
            }
            // The process has closed it, or another stream feeds it: the bytes
            // are of no use, but their credit is.
            _ => untold,
        }
    }

    /// Whether something waits for room in its standard input.
    fn has_waiting_input(&self) -> bool {
        self.stdin.as_ref().is_some_and(|input| input.waiting() > 0)
    }

    /// Writes what waits for room in its standard input.
    pub(crate) fn flush_input(&mut self) {
        if let Some(input) = &mut self.stdin
            && input.flush() == Progress::Finished
        {
            self.stdin = None;
        }
    }

    /// Whether somebody's reading paces it. Else the agent reads whenever it
    /// can.
    fn is_paced(&self) -> bool {
        self.owner.is_some() && self.stdout.is_held()
    }

    /// It waits for nobody any more.
    fn stop_pacing(&mut self) {
        self.stdout.stop_holding();
        self.stderr.stop_holding();
    }

    /// From now on it decides itself when it ends, and waits for nobody.
    fn detach(&mut self) {
        if self.lifetime == Lifetime::Foreground {
            self.stop_pacing();
        }
        self.lifetime = Lifetime::Background;
        self.observers.extend(self.owner.take());
    }

    fn entry(&self, id: ProcessId, now: Moment) -> Entry<'_> {
        Entry {
            id: id.0,
            pid: self.pid(),
            tag: self.identity.tag(),
            argv: self.identity.command(),
            uid: self.identity.uid,
            lifetime: self.lifetime,
            age_ms: now.microseconds_since(self.started).div_euclid(1000),
            stdout: self.stdout.kept(),
            stderr: self.stderr.kept(),
            exit: self.ending.exit(),
        }
    }
}
