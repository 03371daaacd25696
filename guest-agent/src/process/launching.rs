//! From the clone of a child to its program. The agent does not wait meanwhile:
//! a user of the guest can make that last.
//!
//! ```text
//!            executed, or killed before
//!  UnderWay ----------------------------> Done
//!      |     the child tells why not
//!      +--------------------------------> Failed ---> forgotten when all were told
//! ```

use rustix::fd::OwnedFd;
use vmcell_wire::{Failure, Lifetime, Stage};

use super::{Process, ProcessId, Processes, Role, spawn::number};
use crate::{
    clock::Moment,
    deadlines::Purpose,
    event::{Event, Poller},
    sys::{ChildFailure, Launch},
};

/// How far a process is with its start.
pub(crate) enum Launching {
    /// Whether it can execute its program is not known.
    UnderWay {
        launch: Launch,
        /// A pipe that ends when it is known.
        alive: OwnedFd,
    },
    Done,
    Failed(Failure<'static>),
}

impl Process {
    /// Whether somebody waits for its start alone: who asked for a background
    /// process, or is to feed it.
    fn is_awaited(&self) -> bool {
        self.lifetime == Lifetime::Background || self.stdin.is_some()
    }

    /// Answers whether the kernel will tell.
    fn watch_launch(&self, id: ProcessId, poller: &Poller) -> bool {
        match &self.launching {
            Launching::UnderWay { alive, .. } => poller.watch(alive, Event::Launch(id)).is_ok(),
            Launching::Done | Launching::Failed(_) => true,
        }
    }

    /// Whether it has yet to execute its program.
    pub(crate) fn is_starting(&self) -> bool {
        matches!(self.launching, Launching::UnderWay { .. })
    }

    /// Why there is no program. Then there is no process either.
    pub(crate) fn start_failure(&self) -> Option<Failure<'static>> {
        match self.launching {
            Launching::Failed(failure) => Some(failure),
            Launching::UnderWay { .. } | Launching::Done => None,
        }
    }
}

/// How long the start of a foreground process without input goes unwatched.
/// Usually its output or its end tells before that. To wake the agent for the
/// start alone, in the middle of an execve(2), makes a short command 5 to 8
/// percent slower under emulation.
pub(crate) const UNWATCHED_MS: u64 = 20;

/// How long to wait when the kernel has no memory to watch one more.
const RETRY_MS: u64 = 100;

impl Processes {
    /// Has the kernel tell when a new process has executed its program.
    pub(super) fn watch_launch(&mut self, id: ProcessId, started: Moment, poller: &Poller) {
        let watched = match self.get_mut(id) {
            Some(process) if process.is_awaited() => process.watch_launch(id, poller),
            _ => false,
        };
        if !watched {
            let look = started.after_ms(UNWATCHED_MS);
            self.deadlines.add(look, id, Purpose::Launch);
        }
    }

    /// A launch was not watched for a while.
    pub(super) fn launch_is_late(&mut self, id: ProcessId, poller: &Poller) {
        self.look_at_launch(id);
        if let Some(process) = self.get_mut(id)
            && process.is_starting()
            && !process.watch_launch(id, poller)
        {
            let look = Moment::now().after_ms(RETRY_MS);
            self.deadlines.add(look, id, Purpose::Launch);
        }
    }

    /// Looks whether a process has executed its program, and tells those who
    /// wait for that.
    pub(crate) fn look_at_launch(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let (launch, alive) = match core::mem::replace(&mut process.launching, Launching::Done) {
            Launching::UnderWay { launch, alive } => (launch, alive),
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
                process.launching = Launching::UnderWay { launch, alive };
                return;
            }
        }
        self.deadlines.remove(id, Purpose::Launch);
        self.wake(id);
    }

    fn start_failed(&mut self, id: ProcessId, failure: Failure<'static>) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        process.launching = Launching::Failed(failure);
        process.close_pipes();
        let owner = process.owner.take();
        process.observers.extend(owner);
        // A service looks at it and lets it go.
        process.ending.abandoned |= process.role == Role::Ordinary;
        self.deadlines.remove_all(id);
        self.drop_if_abandoned(id);
    }
}

pub(super) fn failure_of(failure: ChildFailure) -> Failure<'static> {
    let text = match failure.stage {
        Stage::Limits => "the resource limits cannot be set",
        Stage::User => "the agent cannot become the user",
        Stage::WorkingDirectory => "the working directory cannot be entered",
        Stage::Exec => "the program cannot be executed",
        Stage::Terminal => "the terminal cannot be the program's",
        Stage::Cgroup => "the cgroup namespace cannot be made",
        _ => "the process cannot be made",
    };
    Failure::from_errno(number(failure.errno), failure.stage, text)
}
