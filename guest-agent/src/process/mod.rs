//! A child of the agent, its pipes and how it ended.
//!
//! ```text
//!            leader ends               outputs ended, or held too long
//!  Running ---------------> Exited ----------------------------------> reported
//!     |                       |         (killed: the whole tree is gone)
//!     +------- killed --------+
//! ```
//!
//! Exit is reported after the outputs have ended, so a reader that has the
//! exit has everything. A descendant that keeps an output open delays the
//! report by [`HOLD_MS`] at most, and the report says so.

mod input;
mod output;
mod spawn;
mod table;

use rustix::process::{Pid, Signal, kill_process_group};
use vmcell_wire::{Channel, Exit, StreamId};

use crate::{cgroup::Cgroup, clock::Moment, link::LinkId, sys::Reaped};

pub(crate) use input::{INPUT_WINDOW, Input, Progress};
pub(crate) use output::Output;
pub(crate) use table::Processes;

use spawn::Spawner;

/// How long an ended process waits for descendants that hold its outputs, or
/// that are being killed.
pub(crate) const HOLD_MS: u32 = 500;

/// Names a process for as long as the agent lives. Not a pid, which the kernel
/// uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessId(pub(crate) u32);

/// Who is told about a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) link: LinkId,
    pub(crate) stream: StreamId,
}

pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// None once its stream or link is gone.
    pub(crate) owner: Option<Owner>,
    pub(crate) stdin: Option<Input>,
    pub(crate) stdout: Output,
    pub(crate) stderr: Output,
    pub(crate) cgroup: Option<Cgroup>,
    started: Moment,
    ended: Option<Ended>,
    killed: bool,
}

struct Ended {
    usage: Reaped,
    at: Moment,
    /// No more waiting for anything: the process is reported as it is.
    hold_is_over: bool,
}

impl Process {
    pub(crate) fn output_mut(&mut self, channel: Channel) -> Option<&mut Output> {
        match channel {
            Channel::Stdin => None,
            Channel::Stdout => Some(&mut self.stdout),
            Channel::Stderr => Some(&mut self.stderr),
        }
    }

    /// The kernel says that a pipe can be used again.
    pub(crate) fn pipe_is_ready(&mut self, channel: Channel) {
        match channel {
            Channel::Stdin => {
                if let Some(input) = &mut self.stdin {
                    input.is_ready();
                }
            }
            Channel::Stdout => self.stdout.is_ready(),
            Channel::Stderr => self.stderr.is_ready(),
        }
    }

    /// Ends the whole tree at once. Nobody reads its outputs any more.
    pub(crate) fn kill(&mut self) {
        self.killed = true;
        let through_cgroup = self.cgroup.as_ref().map(Cgroup::kill);
        if !matches!(through_cgroup, Some(Ok(()))) && self.ended.is_none() {
            // The pid is still ours: it has not been reaped.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
        // Only now: a process that writes to a closed pipe dies of that.
        self.stdin = None;
        self.stdout.close();
        self.stderr.close();
    }

    /// Asks its process group to end.
    pub(crate) fn terminate(&self) {
        if self.ended.is_none() {
            let _ = kill_process_group(self.pid, Signal::TERM);
        }
    }

    /// Whether the leader has been reaped.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The leader was reaped.
    pub(crate) fn leader_ended(&mut self, usage: Reaped) {
        self.stdin = None;
        // The kernel's word that the pipes have something, if only their end,
        // may still be on its way. No need to wait for it.
        self.stdout.is_ready();
        self.stderr.is_ready();
        self.ended = Some(Ended {
            usage,
            at: Moment::now(),
            hold_is_over: false,
        });
    }

    /// The hold has lasted [`HOLD_MS`]. Answers whether to look once more
    /// after that time, because a slow reader has yet to make room for what
    /// waits in a pipe.
    pub(crate) fn hold_expired(&mut self) -> bool {
        let Some(ended) = &mut self.ended else {
            return false;
        };
        if self.stdout.has_unread() || self.stderr.has_unread() {
            return true;
        }
        ended.hold_is_over = true;
        self.stdout.cut();
        self.stderr.cut();
        false
    }

    /// How it ended, once nothing can change that any more.
    pub(crate) fn report(&self) -> Option<Exit> {
        let ended = self.ended.as_ref()?;
        let outputs_ended = self.stdout.has_ended() && self.stderr.has_ended();
        let tree_ended = self.cgroup.as_ref().map(Cgroup::is_empty);
        let waiting = !outputs_ended || (self.killed && tree_ended == Some(false));
        if waiting && !ended.hold_is_over {
            return None;
        }
        Some(Exit {
            cause: ended.usage.cause,
            user_us: ended.usage.user_us,
            system_us: ended.usage.system_us,
            peak_rss_kib: ended.usage.peak_rss_kib,
            wall_us: ended.at.microseconds_since(self.started),
            stdout_bytes: self.stdout.ring().end(),
            stderr_bytes: self.stderr.ring().end(),
            outputs_cut: self.stdout.was_cut() || self.stderr.was_cut(),
            tree_ended,
        })
    }
}
