//! The time between the clone of a child and its execve. The agent does not
//! block meanwhile: a user of the guest can make that take long.
//!
//! ```text
//!           executed, or killed before
//!  Pending ----------------------------> Done
//!     |     the child reports an error
//!     +--------------------------------> Failed ---> removed when all streams know
//! ```

use rustix::fd::OwnedFd;
use vmcell_wire::{Failure, ProcessMode, Stage};

use super::{Process, Processes, Role, spawn::raw_errno};
use crate::{
    clock::Moment,
    deadlines::DeadlineKind,
    event::{Event, Poller},
    ids::ProcessId,
    sys::{ChildFailure, Launch},
};

/// The state of a process's start.
pub(crate) enum LaunchState {
    /// It has not executed its program yet.
    Pending {
        launch: Launch,
        /// A pipe that the child's execve or exit closes.
        pipe: OwnedFd,
    },
    Done,
    Failed(Failure<'static>),
}

impl Process {
    /// Returns whether a stream waits for its start alone: that of a background
    /// process, or one that provides input.
    fn is_awaited(&self) -> bool {
        self.mode == ProcessMode::Background || self.stdin.is_some()
    }

    /// Watches for the execve. Returns whether an event will follow.
    fn watch_launch(&self, id: ProcessId, poller: &Poller) -> bool {
        match &self.launching {
            LaunchState::Pending { pipe, .. } => poller.watch(pipe, Event::Launch(id)).is_ok(),
            LaunchState::Done | LaunchState::Failed(_) => true,
        }
    }

    /// Returns whether it has not executed its program yet.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.launching, LaunchState::Pending { .. })
    }

    /// Returns why the start failed. Then the process has ended, too.
    pub(crate) fn start_failure(&self) -> Option<Failure<'static>> {
        match self.launching {
            LaunchState::Failed(failure) => Some(failure),
            LaunchState::Pending { .. } | LaunchState::Done => None,
        }
    }
}

/// How long the start of a foreground process without input goes unwatched.
/// Usually its output or its end arrives before that. Waking the agent for the
/// start alone, in the middle of an execve(2), makes a short command 5 to 8
/// percent slower under emulation.
pub(crate) const LAUNCH_CHECK_DELAY_MS: u64 = 20;

/// How long to wait before epoll is tried again after it ran out of memory.
const WATCH_RETRY_MS: u64 = 100;

impl Processes {
    /// Arranges for an event or a deadline to check a new process's execve.
    pub(super) fn watch_launch(&mut self, id: ProcessId, started: Moment, poller: &Poller) {
        let watched = match self.get_mut(id) {
            Some(process) if process.is_awaited() => process.watch_launch(id, poller),
            _ => false,
        };
        if !watched {
            let at = started.after_ms(LAUNCH_CHECK_DELAY_MS);
            self.deadlines.add(at, id, DeadlineKind::Launch);
        }
    }

    /// Checks a launch that was not watched, and watches it from now on.
    pub(super) fn recheck_launch(&mut self, id: ProcessId, poller: &Poller) {
        self.check_launch(id);
        if let Some(process) = self.get_mut(id)
            && process.is_starting()
            && !process.watch_launch(id, poller)
        {
            let at = Moment::now().after_ms(WATCH_RETRY_MS);
            self.deadlines.add(at, id, DeadlineKind::Launch);
        }
    }

    /// Checks whether a process has executed its program, and wakes the streams
    /// that wait for that.
    pub(crate) fn check_launch(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let (launch, pipe) = match core::mem::replace(&mut process.launching, LaunchState::Done) {
            LaunchState::Pending { launch, pipe } => (launch, pipe),
            over => {
                process.launching = over;
                return;
            }
        };
        let finished = self.spawner.finish(launch);
        let Some(process) = self.get_mut(id) else {
            return;
        };
        match finished {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => self.start_failed(id, failure_of(failure)),
            Err(launch) => {
                process.launching = LaunchState::Pending { launch, pipe };
                return;
            }
        }
        self.deadlines.remove(id, DeadlineKind::Launch);
        self.wake(id);
    }

    fn start_failed(&mut self, id: ProcessId, failure: Failure<'static>) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        process.launching = LaunchState::Failed(failure);
        process.close_pipes();
        let owner = process.owner.take();
        process.observers.extend(owner);
        // A service reads the failure and releases the process itself.
        process.termination.abandoned |= process.role == Role::Ordinary;
        self.deadlines.remove_all(id);
        self.drop_if_abandoned(id);
    }
}

pub(super) fn failure_of(failure: ChildFailure) -> Failure<'static> {
    let text = match failure.stage {
        Stage::Limits => "the resource limits cannot be set",
        Stage::User => "the user cannot be switched to",
        Stage::WorkingDirectory => "the working directory cannot be entered",
        Stage::Exec => "the program cannot be executed",
        Stage::Terminal => "the terminal cannot be made the controlling terminal",
        Stage::Cgroup => "the cgroup namespace cannot be created",
        _ => "the process cannot be created",
    };
    Failure::from_errno(raw_errno(failure.errno), failure.stage, text)
}
