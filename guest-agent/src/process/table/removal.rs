//! The end of processes, and their removal from the table.

use vmcell_wire::{Exit, ProcessMode};

use super::Processes;
use crate::{
    cgroup::Cgroup,
    child_exit::Reaped,
    clock::Moment,
    deadlines::DeadlineKind,
    event::Poller,
    ids::{Caller, ProcessId},
    process::{KillReason, Process, Role, TREE_GRACE_MS, launching::LaunchState},
};

/// The maximum number of ended background processes that are kept; the oldest
/// is removed first.
const MAX_ENDED: usize = 256;

/// The maximum of their outputs that is kept in total; the oldest is dropped
/// first.
const MAX_ENDED_BYTES: usize = 32 * 1024 * 1024;

impl Processes {
    /// Kills a process and its descendants. Its exit is reported as usual.
    pub(crate) fn kill(&mut self, id: ProcessId, reason: KillReason) {
        if let Some(process) = self.get_mut(id) {
            process.kill(reason);
            let grace_end = Moment::now().after_ms(TREE_GRACE_MS);
            self.deadlines.add(grace_end, id, DeadlineKind::TreeGrace);
        }
    }

    /// Cancels a stream's interest in a process. Returns whether that kills the
    /// process, so that the stream will receive its exit status.
    pub(crate) fn cancel(&mut self, id: ProcessId, caller: Caller) -> bool {
        let owns = self
            .get_mut(id)
            .is_some_and(|process| process.owner == Some(caller));
        if owns {
            self.kill_unread(id);
        } else {
            self.remove_stream(id, caller);
        }
        owns
    }

    /// Removes a stream from a process.
    pub(crate) fn remove_stream(&mut self, id: ProcessId, caller: Caller) {
        let grace = self.resume_grace_ms;
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.stdin_writer == Some(caller) {
            process.stdin_writer = None;
        }
        process.observers.retain(|other| *other != caller);
        let is_released = process.remove_terminal_stream(caller);
        if process.owner == Some(caller) {
            process.owner = None;
            let end = Moment::now().after_ms(grace);
            self.deadlines.add(end, id, DeadlineKind::Resume);
            // epoll does not report unread output a second time.
            self.read_queue.push(id);
        } else if is_released {
            self.read_soon(id);
        }
        self.drop_if_abandoned(id);
    }

    /// Handles the owner's acknowledgement of the exit status.
    pub(crate) fn acknowledge(&mut self, id: ProcessId, caller: Caller) {
        if let Some(process) = self.get_mut(id)
            && process.owner == Some(caller)
        {
            process.owner = None;
            process.termination.abandoned = true;
            self.drop_if_abandoned(id);
        }
    }

    /// Releases a process of a service. It is removed when it has ended and no
    /// stream watches it.
    pub(crate) fn release(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.termination.abandoned = true;
        }
        self.drop_if_abandoned(id);
    }

    /// Kills a process whose exit will not be reported.
    pub(crate) fn abandon(&mut self, id: ProcessId) {
        self.kill_unread(id);
        if let Some(process) = self.get_mut(id) {
            process.owner = None;
            process.termination.abandoned = true;
        }
        self.drop_if_abandoned(id);
    }

    /// Kills a process whose owner no longer reads its outputs.
    fn kill_unread(&mut self, id: ProcessId) {
        self.kill(id, KillReason::Host);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.observers.is_empty() {
            process.close_pipes();
        } else {
            // The agent continues to read for the observers.
            process.stop_backpressure();
            self.read_now(id);
        }
    }

    /// Cancels the deadline for a process to be resumed.
    pub(in crate::process) fn cancel_resume_deadline(&mut self, id: ProcessId) {
        self.deadlines.remove(id, DeadlineKind::Resume);
    }

    /// Records that a process may have ended, for the next turn.
    pub(crate) fn check_ended_soon(&mut self) {
        self.may_have_ended = true;
    }

    /// Handles a reaped child, a process of the table or another one.
    pub(crate) fn reaped(&mut self, reaped: Reaped) {
        if !self.leader_ended(reaped) {
            self.orphan_ended();
        }
        self.check_ended_soon();
    }

    /// Records that a descendant of a process may have ended.
    pub(crate) fn orphan_ended(&mut self) {
        self.ended_orphans = self.ended_orphans.saturating_add(1);
    }

    /// Wakes the streams that may have something to report after processes have
    /// ended.
    pub(crate) fn settle_ended(&mut self) {
        if !core::mem::take(&mut self.may_have_ended) {
            return;
        }
        let orphans = core::mem::take(&mut self.ended_orphans);
        if orphans > 0 {
            self.lingering.orphans_ended(orphans);
            self.sweep();
        }
        // Backwards, because some may be removed.
        for index in (0..self.table.len()).rev() {
            let Some((id, process)) = self.table.get(index) else {
                continue;
            };
            let (id, backpressure) = (*id, process.has_backpressure());
            let is_final = process.termination.exit().is_some() && process.cgroup.is_none();
            if !process.has_ended() || is_final {
                continue;
            }
            if backpressure {
                self.wake(id);
            } else {
                self.read_now(id);
            }
            self.drop_if_abandoned(id);
        }
    }

    /// Handles a reaped child. Returns whether it was a process of the table.
    fn leader_ended(&mut self, reaped: Reaped) -> bool {
        let is_it = |process: &Process| process.pid == reaped.pid && !process.has_ended();
        let Some(id) = self
            .iter()
            .find(|(_, process)| is_it(process))
            .map(|(id, _)| id)
        else {
            return false;
        };
        // It may have ended because its execve failed.
        self.check_launch(id);
        if let Some(index) = self.index(id)
            && let Some((_, process)) = self.table.get_mut(index)
            && !process.has_ended()
        {
            process.launching = LaunchState::Done;
            process.leader_ended(reaped, self.kernel_log.as_mut());
            // The time for its descendants begins now, even if it was killed a
            // while ago.
            self.deadlines.remove(id, DeadlineKind::TreeGrace);
            let grace_end = Moment::now().after_ms(TREE_GRACE_MS);
            self.deadlines.add(grace_end, id, DeadlineKind::TreeGrace);
        }
        true
    }

    /// Finalizes and returns the exit status of a process, once nothing can
    /// change it any more.
    pub(crate) fn finalize_exit(&mut self, id: ProcessId) -> Option<Exit> {
        let process = self.get_mut(id)?;
        let known = process.termination.exit();
        if known.is_some() {
            return known;
        }
        let exit = process.finalize_exit()?;
        let background = process.mode == ProcessMode::Background;
        if background {
            process.stdout.finish();
            process.stderr.finish();
        }
        if exit.tree_ended == Some(true) {
            if let Some(cgroup) = process.cgroup.take() {
                self.return_cgroup(cgroup);
            }
        } else {
            self.close_cgroup(id);
        }
        self.deadlines.keep_only_resume(id);
        if background {
            self.limit_ended();
        }
        Some(exit)
    }

    /// Returns the exit status of a process that was killed, once its
    /// descendants have ended too.
    pub(crate) fn exit_after_kill(&mut self, id: ProcessId) -> Option<Exit> {
        if self.get_mut(id)?.has_ended() && !self.get_mut(id)?.has_backpressure() {
            self.read_outputs(id);
            self.finalize_exit(id);
        }
        let process = self.get_mut(id)?;
        let exit = process.exit_after_kill()?;
        if exit.tree_ended == Some(true)
            && process.termination.exit().is_some()
            && let Some(cgroup) = process.cgroup.take()
        {
            self.return_cgroup(cgroup);
        }
        Some(exit)
    }

    /// Records that the exit status was sent to the owner.
    pub(crate) fn exit_reported(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.termination.exit_reported = true;
        }
    }

    /// Returns the next deadline of a process.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.next()
    }

    /// Handles the deadlines that have passed.
    pub(crate) fn expire(&mut self, poller: &Poller) {
        if self.deadlines.next().is_none() {
            return;
        }
        let now = Moment::now();
        while let Some((id, kind)) = self.deadlines.take_due(now) {
            let Some(process) = self.get_mut(id) else {
                continue;
            };
            match kind {
                DeadlineKind::TreeGrace => {
                    if process.tree_grace_expired() {
                        let grace_end = now.after_ms(TREE_GRACE_MS);
                        self.deadlines.add(grace_end, id, DeadlineKind::TreeGrace);
                    }
                    self.finalize_exit(id);
                }
                DeadlineKind::Launch => self.recheck_launch(id, poller),
                DeadlineKind::Timeout => {
                    if !process.has_ended() {
                        self.kill(id, KillReason::Timeout);
                    }
                }
                DeadlineKind::Resume => {
                    if process.owner.is_none() && process.mode == ProcessMode::Foreground {
                        self.abandon(id);
                    }
                }
            }
            self.wake(id);
            self.drop_if_abandoned(id);
        }
    }

    /// Removes an abandoned process when it has ended and no stream watches it.
    pub(in crate::process) fn drop_if_abandoned(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let unwatched = process.termination.abandoned && process.observers.is_empty();
        let failed = process.start_failure().is_some();
        if unwatched && (failed || self.finalize_exit(id).is_some()) {
            self.forget(id);
        }
    }

    /// Removes a process, whatever its state. If descendants are still running,
    /// they are tracked from now on.
    pub(in crate::process) fn forget(&mut self, id: ProcessId) {
        // Streams that still watch it must report that it is gone.
        self.wake(id);
        let Some(index) = self.index(id) else {
            return;
        };
        let (_, mut process) = self.table.remove(index);
        self.deadlines.remove_all(id);
        // A child whose execve failed is about to exit and has no descendants.
        let has_run = process.start_failure().is_none();
        if has_run && process.tree_ended() == Some(false) {
            self.keep_lingering(id, process);
        } else if let Some(cgroup) = process.cgroup.take() {
            self.return_cgroup(cgroup);
        }
    }

    /// Closes the cgroup's descriptors of a process that has ended.
    fn close_cgroup(&mut self, id: ProcessId) {
        let index = self.index(id);
        if let Some((_, process)) = index.and_then(|index| self.table.get_mut(index))
            && let (Some(cgroup), Some(cgroups)) = (&mut process.cgroup, &mut self.cgroups)
        {
            cgroups.close(cgroup);
        }
    }

    /// Returns a cgroup without processes to the pool.
    pub(super) fn return_cgroup(&mut self, cgroup: Cgroup) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.release(cgroup);
        }
    }

    /// Bounds the number and memory of ended background processes.
    fn limit_ended(&mut self) {
        let (mut count, mut bytes) = (0usize, 0usize);
        let mut oldest = None;
        for (id, process) in self.table.iter_mut().rev() {
            let background = process.mode == ProcessMode::Background;
            let ended = background && process.termination.exit().is_some();
            if !ended || process.role != Role::Ordinary {
                continue;
            }
            count = count.saturating_add(1);
            for output in [&mut process.stdout, &mut process.stderr] {
                bytes = bytes.saturating_add(output.ring().kept());
                if bytes > MAX_ENDED_BYTES && !output.has_held_bytes() {
                    output.clear();
                }
            }
            // One with unacknowledged output goes last.
            if oldest.is_none() || !process.stdout.has_held_bytes() {
                oldest = Some(*id);
            }
        }
        if let Some(oldest) = oldest.filter(|_| count > MAX_ENDED) {
            self.forget(oldest);
        }
    }
}
