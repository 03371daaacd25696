//! How processes end, and leave the table.

use rustix::{io::Errno, process::Pid};
use vmcell_wire::{Exit, Lifetime};

use super::Processes;
use crate::{
    cgroup::Cgroup,
    clock::Moment,
    deadlines::Purpose,
    event::Poller,
    process::{Asked, Caller, HOLD_MS, Process, ProcessId, Role, launching::Launching},
    sys::{Reaped, reap},
};

/// So many background processes that have ended are known; the oldest one is
/// forgotten for a new one.
const MAX_ENDED: usize = 256;

/// So much of what they printed is kept, together; the oldest goes first.
const MAX_ENDED_BYTES: usize = 32 * 1024 * 1024;

impl Processes {
    /// Ends a process and its descendants. It is reported as usual.
    pub(crate) fn kill(&mut self, id: ProcessId, asked: Asked) {
        if let Some(process) = self.get_mut(id) {
            process.kill(asked);
            let hold = Moment::now().after_ms(HOLD_MS);
            self.deadlines.add(hold, id, Purpose::Hold);
        }
    }

    /// A stream does not want any more of a process. Answers whether that ends
    /// the process, so that the stream will hear of its exit.
    pub(crate) fn cancel(&mut self, id: ProcessId, caller: Caller) -> bool {
        let owns = self
            .get_mut(id)
            .is_some_and(|process| process.owner == Some(caller));
        if owns {
            self.end_unread(id);
        } else {
            self.leave(id, caller);
        }
        owns
    }

    /// A stream is gone.
    pub(crate) fn leave(&mut self, id: ProcessId, caller: Caller) {
        let grace = self.resume_grace_ms;
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.feeder == Some(caller) {
            process.feeder = None;
        }
        process.observers.retain(|other| *other != caller);
        let reads_on = process.left_terminal(caller);
        if process.owner == Some(caller) {
            process.owner = None;
            let end = Moment::now().after_ms(grace);
            self.deadlines.add(end, id, Purpose::Resume);
            // What it wrote and nobody has read yet is not told again.
            self.busy.push(id);
        } else if reads_on {
            self.read_soon(id);
        }
        self.drop_if_abandoned(id);
    }

    /// The owner knows how the process ended.
    pub(crate) fn acknowledge(&mut self, id: ProcessId, caller: Caller) {
        if let Some(process) = self.get_mut(id)
            && process.owner == Some(caller)
        {
            process.owner = None;
            process.ending.abandoned = true;
            self.drop_if_abandoned(id);
        }
    }

    /// A service has done with a process. It goes when it has ended, and when
    /// nobody watches it any more.
    pub(crate) fn let_go(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.ending.abandoned = true;
        }
        self.drop_if_abandoned(id);
    }

    /// Ends a process that nobody will hear of.
    pub(crate) fn abandon(&mut self, id: ProcessId) {
        self.end_unread(id);
        if let Some(process) = self.get_mut(id) {
            process.owner = None;
            process.ending.abandoned = true;
        }
        self.drop_if_abandoned(id);
    }

    /// Ends a process whose owner does not read its outputs any more.
    fn end_unread(&mut self, id: ProcessId) {
        self.kill(id, Asked::Host);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        if process.observers.is_empty() {
            process.close_pipes();
        } else {
            // Others look on, for whom the agent reads.
            process.stop_pacing();
            self.read_on(id);
        }
    }

    /// An owner was found for a process.
    pub(in crate::process) fn resumed(&mut self, id: ProcessId) {
        self.deadlines.remove(id, Purpose::Resume);
    }

    /// Collects every child that has ended, ours or an orphan, and wakes those
    /// who may have something to say about it. Answers whether any child is
    /// left.
    pub(crate) fn reap_all(&mut self, mut reaped_too: impl FnMut(Pid)) -> bool {
        let mut orphans = 0usize;
        let children_left = loop {
            match reap() {
                Ok(Some(reaped)) => {
                    reaped_too(reaped.pid);
                    if !self.leader_ended(reaped) {
                        orphans = orphans.saturating_add(1);
                    }
                }
                Ok(None) => break true,
                Err(Errno::INTR) => {}
                Err(_) => break false,
            }
        };
        if orphans > 0 {
            self.left.orphans_ended(orphans);
            self.sweep();
        }
        // From the back, because some may be removed.
        for place in (0..self.table.len()).rev() {
            let Some((id, process)) = self.table.get(place) else {
                continue;
            };
            let (id, paced) = (*id, process.is_paced());
            let settled = process.ending.exit().is_some() && process.cgroup.is_none();
            if !process.has_ended() || settled {
                continue;
            }
            if paced {
                self.wake(id);
            } else {
                self.read_on(id);
            }
            self.drop_if_abandoned(id);
        }
        children_left
    }

    /// Answers whether it was a process of the table.
    fn leader_ended(&mut self, reaped: Reaped) -> bool {
        let is_it = |process: &Process| process.pid == reaped.pid && !process.has_ended();
        let Some(id) = self
            .iter()
            .find(|(_, process)| is_it(process))
            .map(|(id, _)| id)
        else {
            return false;
        };
        // It may have ended because there is no program.
        self.look_at_launch(id);
        if let Some(place) = self.place(id)
            && let Some((_, process)) = self.table.get_mut(place)
            && !process.has_ended()
        {
            process.launching = Launching::Done;
            process.leader_ended(reaped, self.kernel_log.as_mut());
            // Its descendants have their time from now on, even if it was killed
            // a while ago.
            self.deadlines.remove(id, Purpose::Hold);
            let hold = Moment::now().after_ms(HOLD_MS);
            self.deadlines.add(hold, id, Purpose::Hold);
        }
        true
    }

    /// How a process ended, once nothing can change that any more.
    pub(crate) fn settle(&mut self, id: ProcessId) -> Option<Exit> {
        let process = self.get_mut(id)?;
        let known = process.ending.exit();
        if known.is_some() {
            return known;
        }
        let exit = process.settle()?;
        let background = process.lifetime == Lifetime::Background;
        if background {
            process.stdout.finish();
            process.stderr.finish();
        }
        if exit.tree_ended == Some(true) {
            if let Some(cgroup) = process.cgroup.take() {
                self.take_back(cgroup);
            }
        } else {
            self.close_cgroup(id);
        }
        self.deadlines.keep_only_resume(id);
        if background {
            self.bound_the_ended();
        }
        Some(exit)
    }

    /// How a process ended that was killed, once its descendants are gone too.
    pub(crate) fn killed(&mut self, id: ProcessId) -> Option<Exit> {
        if self.get_mut(id)?.has_ended() && !self.get_mut(id)?.is_paced() {
            self.collect(id);
            self.settle(id);
        }
        let process = self.get_mut(id)?;
        let exit = process.killed()?;
        if exit.tree_ended == Some(true)
            && process.ending.exit().is_some()
            && let Some(cgroup) = process.cgroup.take()
        {
            self.take_back(cgroup);
        }
        Some(exit)
    }

    /// The owner was told how a process ended.
    pub(crate) fn told(&mut self, id: ProcessId) {
        if let Some(process) = self.get_mut(id) {
            process.ending.told = true;
        }
    }

    /// When a process must be looked at again.
    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        self.deadlines.next()
    }

    /// Acts on the deadlines that have come.
    pub(crate) fn expire(&mut self, poller: &Poller) {
        if self.deadlines.next().is_none() {
            return;
        }
        let now = Moment::now();
        while let Some((id, purpose)) = self.deadlines.take_due(now) {
            let Some(process) = self.get_mut(id) else {
                continue;
            };
            match purpose {
                Purpose::Hold => {
                    if process.hold_expired() {
                        let hold = now.after_ms(HOLD_MS);
                        self.deadlines.add(hold, id, Purpose::Hold);
                    }
                    self.settle(id);
                }
                Purpose::Launch => self.launch_is_late(id, poller),
                Purpose::Timeout => {
                    if !process.has_ended() {
                        self.kill(id, Asked::Timeout);
                    }
                }
                Purpose::Resume => {
                    if process.owner.is_none() && process.lifetime == Lifetime::Foreground {
                        self.abandon(id);
                    }
                }
            }
            self.wake(id);
            self.drop_if_abandoned(id);
        }
    }

    /// Forgets a process that nobody will ask for, when it is over and nobody
    /// watches it.
    pub(in crate::process) fn drop_if_abandoned(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let nobody = process.ending.abandoned && process.observers.is_empty();
        let failed = process.start_failure().is_some();
        if nobody && (failed || self.settle(id).is_some()) {
            self.forget(id);
        }
    }

    /// Removes a process, whatever it does. What it leaves behind is known as
    /// such.
    pub(in crate::process) fn forget(&mut self, id: ProcessId) {
        // Who still watches it shall hear that it is gone.
        self.wake(id);
        let Some(place) = self.place(id) else {
            return;
        };
        let (_, mut process) = self.table.remove(place);
        self.deadlines.remove_all(id);
        // A child without a program is about to exit, and leaves nobody.
        let has_run = process.start_failure().is_none();
        if has_run && process.tree_ended() == Some(false) {
            self.keep_as_left(id, process);
        } else if let Some(cgroup) = process.cgroup.take() {
            self.take_back(cgroup);
        }
    }

    /// What is left of a process that has ended costs no descriptor.
    fn close_cgroup(&mut self, id: ProcessId) {
        let place = self.place(id);
        if let Some((_, process)) = place.and_then(|place| self.table.get_mut(place))
            && let (Some(cgroup), Some(cgroups)) = (&mut process.cgroup, &mut self.cgroups)
        {
            cgroups.close(cgroup);
        }
    }

    /// Takes back a cgroup without processes.
    pub(super) fn take_back(&mut self, cgroup: Cgroup) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.release(cgroup);
        }
    }

    /// Keeps what ended background processes cost within bounds.
    fn bound_the_ended(&mut self) {
        let (mut count, mut bytes) = (0usize, 0usize);
        let mut oldest = None;
        for (id, process) in self.table.iter_mut().rev() {
            let ended = process.lifetime == Lifetime::Background && process.ending.exit().is_some();
            if !ended || process.role != Role::Ordinary {
                continue;
            }
            count = count.saturating_add(1);
            for output in [&mut process.stdout, &mut process.stderr] {
                bytes = bytes.saturating_add(output.ring().kept());
                if bytes > MAX_ENDED_BYTES && !output.holds_something() {
                    output.clear();
                }
            }
            // One that somebody waits for goes last.
            if oldest.is_none() || !process.stdout.holds_something() {
                oldest = Some(*id);
            }
        }
        if let Some(oldest) = oldest.filter(|_| count > MAX_ENDED) {
            self.forget(oldest);
        }
    }
}
