use rustix::io::Errno;
use vmcell_wire::{Exit, ExitCause, ProcessMode};

use super::{Output, Process, Role};
use crate::{
    cgroup::{Cgroup, Cgroups},
    child_exit::{Reaped, ResourceUsage},
    clock::Moment,
    kernel_log::KernelLog,
    sys::{signal_group, signal_process},
};

/// The end of a process, as far as it has come.
#[derive(Default)]
pub(crate) struct Termination {
    /// The first reason to kill it, if there was one.
    kill_reason: Option<KillReason>,
    leader: Option<ReapedLeader>,
    /// The time for the descendants to end is over.
    tree_grace_over: bool,
    /// How often killed descendants were given more time.
    extensions: u8,
    exit: Option<Exit>,
    /// The exit status was sent to the owner and is not acknowledged.
    pub(super) exit_reported: bool,
    /// No request will name it again: it is removed as soon as possible.
    pub(super) abandoned: bool,
}

/// Why a process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillReason {
    Host,
    Timeout,
}

/// The process itself after it was reaped.
struct ReapedLeader {
    usage: ResourceUsage,
    cause: ExitCause,
    oom_kills: u32,
    at: Moment,
}

/// Killed descendants have so many times [`TREE_GRACE_MS`](super::TREE_GRACE_MS)
/// more: the kernel takes seconds to end thousands of them on a busy machine.
const MAX_EXTENSIONS: u8 = 9;

const KILL: u8 = 9;
const TERM: u8 = 15;
const HUP: u8 = 1;

const SIGKILL: ExitCause = ExitCause::Signal(KILL);

impl Termination {
    /// Returns whether the leader was reaped.
    pub(crate) fn leader_was_reaped(&self) -> bool {
        self.leader.is_some()
    }

    /// Returns why the leader ended.
    pub(crate) fn cause(&self) -> Option<ExitCause> {
        self.leader.as_ref().map(|leader| leader.cause)
    }

    /// Returns its exit status once that is final.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }
}

impl Process {
    /// Returns whether hosts may name it. A foreground process whose exit was
    /// reported is not visible, though a host may resume it to receive the exit
    /// again.
    pub(super) fn is_visible(&self) -> bool {
        let over = self.mode == ProcessMode::Foreground && self.termination.exit_reported;
        !over && !self.termination.abandoned && self.role != Role::Probe
    }

    /// Returns whether the leader was reaped or never executed a program: then
    /// its pid may be reused.
    pub(crate) fn has_ended(&self) -> bool {
        self.termination.leader_was_reaped() || self.start_failure().is_some()
    }

    /// Sends a signal to its process group.
    pub(crate) fn signal(&self, signal: u8) -> Result<(), Errno> {
        if self.has_ended() {
            return Err(Errno::SRCH);
        }
        match signal_group(self.pid, signal) {
            // It has not created its process group yet.
            Err(Errno::SRCH) if self.is_starting() => signal_process(self.pid, signal),
            sent => sent,
        }
    }

    /// Kills the process and its descendants.
    pub(crate) fn kill(&mut self, reason: KillReason) {
        self.termination.kill_reason.get_or_insert(reason);
        self.termination.tree_grace_over = false;
        let through_cgroup = self.cgroup.as_mut().map(Cgroup::kill);
        if !matches!(through_cgroup, Some(Ok(()))) {
            let _ = self.signal(KILL);
        }
    }

    /// Closes its pipes and drops its outputs.
    ///
    /// Only for a process that was killed: one that writes to a closed pipe
    /// gets SIGPIPE.
    pub(crate) fn close_pipes(&mut self) {
        self.stdin = None;
        self.stdout.close();
        self.stderr.close();
    }

    /// Sends SIGTERM to its process group.
    pub(crate) fn terminate(&self) {
        let _ = self.signal(TERM);
    }

    /// Sends SIGHUP if it runs on a terminal: interactive shells ignore
    /// SIGTERM.
    pub(crate) fn hang_up(&self) {
        if self.terminal.is_some() {
            let _ = self.signal(HUP);
        }
    }

    /// Returns whether its exit status is final while descendants may still
    /// run.
    pub(super) fn is_lingering(&self) -> bool {
        self.termination.exit.is_some() && self.cgroup.is_some()
    }

    /// Keeps it only for its descendants. It is removed when they have ended
    /// and no stream waits for it.
    pub(super) fn keep_for_descendants(&mut self) {
        if self.termination.exit.is_none() {
            self.termination.exit = self.exit_with(Some(false));
        }
        self.termination.abandoned = true;
    }

    /// Records that the leader was reaped.
    pub(super) fn leader_ended(&mut self, reaped: Reaped, log: Option<&mut KernelLog>) {
        self.stdin = None;
        if let Some(terminal) = &mut self.terminal {
            terminal.program_ended();
            self.stdout.grow_for_buffered_output();
        }
        // The events for the rest of the pipes, or their end, may still be
        // pending. There is no need to wait for them.
        self.stdout.on_ready();
        self.stderr.on_ready();
        // OOM kills are only of interest if the program failed.
        let oom_kills = match (&self.cgroup, reaped.cause) {
            (None, _) | (_, ExitCause::Code(0)) => 0,
            (Some(cgroup), cause) => cgroup.oom_kills().unwrap_or_else(|| {
                let unexpected = cause == SIGKILL && self.termination.kill_reason.is_none();
                let oom = |log: &mut KernelLog| log.was_oom_killed(self.pid, self.started);
                u32::from(unexpected && log.is_some_and(oom))
            }),
        };
        let cause = match (reaped.cause, self.termination.kill_reason) {
            (SIGKILL, Some(KillReason::Host)) => ExitCause::Killed,
            (SIGKILL, Some(KillReason::Timeout)) => ExitCause::Timeout,
            (SIGKILL, None) if oom_kills > 0 => ExitCause::OutOfMemory,
            (cause, _) => cause,
        };
        if self.role.is_supervised() && self.tree_ended() != Some(true) {
            // Without a cgroup this kills its process group, whose number
            // cannot have been reused at this point.
            self.kill(KillReason::Host);
        }
        self.termination.leader = Some(ReapedLeader {
            usage: reaped.usage,
            cause,
            oom_kills,
            at: Moment::now(),
        });
    }

    /// Handles the end of the time for its descendants. Returns whether to wait
    /// once more, because the kernel has yet to end all that were killed, or a
    /// slow reader has yet to make room for the rest of a pipe.
    pub(super) fn tree_grace_expired(&mut self) -> bool {
        if !self.has_ended() {
            return false;
        }
        let is_dying = self.termination.kill_reason.is_some() && self.tree_ended() == Some(false);
        if is_dying && self.termination.extensions < MAX_EXTENSIONS {
            self.termination.extensions = self.termination.extensions.saturating_add(1);
            return true;
        }
        self.termination.tree_grace_over = true;
        if self.waits_for_room(&self.stdout) || self.waits_for_room(&self.stderr) {
            return true;
        }
        self.stdout.truncate();
        self.stderr.truncate();
        false
    }

    /// Returns whether there is more of an output and a reader that will make
    /// room for it.
    fn waits_for_room(&self, output: &Output) -> bool {
        match &self.terminal {
            Some(terminal) if !terminal.is_read() => output.can_read(),
            _ => output.has_unread(),
        }
    }

    /// Finalizes its exit status, if nothing can change that any more.
    pub(super) fn finalize_exit(&mut self) -> Option<Exit> {
        let outputs_ended = self.stdout.has_ended() && self.stderr.has_ended();
        if self.termination.exit.is_none() && self.has_ended() && outputs_ended {
            let tree_ended = self.verified_tree_end();
            let waits = self.termination.kill_reason.is_some() && tree_ended == Some(false);
            if !waits || self.termination.tree_grace_over {
                self.termination.exit = self.exit_with(tree_ended);
            }
        }
        self.termination.exit
    }

    /// Returns its exit status once it and its descendants have ended, or the
    /// time for them is over. Its outputs may still be read.
    pub(super) fn exit_after_kill(&mut self) -> Option<Exit> {
        let tree_ended = match (&self.cgroup, self.termination.exit) {
            (None, Some(exit)) => exit.tree_ended,
            (None, None) => None,
            (Some(_), _) => self.verified_tree_end(),
        };
        if tree_ended == Some(false) && !self.termination.tree_grace_over {
            return None;
        }
        if let Some(exit) = &mut self.termination.exit {
            exit.tree_ended = tree_ended;
        }
        self.termination.exit.or_else(|| self.exit_with(tree_ended))
    }

    /// Returns whether its cgroup is empty; `None` without a cgroup.
    pub(super) fn tree_ended(&self) -> Option<bool> {
        self.cgroup.as_ref().map(Cgroup::is_empty)
    }

    /// Returns the same for a report to a host. After a kill, an empty cgroup
    /// alone is not proof: root can have moved a process elsewhere.
    fn verified_tree_end(&self) -> Option<bool> {
        let tree_ended = self.tree_ended();
        let is_proof = tree_ended == Some(true) && self.termination.kill_reason.is_some();
        tree_ended.filter(|_| !is_proof || !Cgroups::may_have_escaped_since(self.started))
    }

    fn exit_with(&self, tree_ended: Option<bool>) -> Option<Exit> {
        let leader = self.termination.leader.as_ref()?;
        Some(Exit {
            cause: leader.cause,
            user_us: leader.usage.user_us,
            system_us: leader.usage.system_us,
            peak_rss_kib: leader.usage.peak_rss_kib,
            wall_us: leader.at.microseconds_since(self.started),
            stdout_bytes: self.stdout.ring().end(),
            stderr_bytes: self.stderr.ring().end(),
            outputs_cut: self.stdout.was_truncated() || self.stderr.was_truncated(),
            oom_kills: leader.oom_kills,
            tree_ended,
        })
    }
}
