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
use vmcell_wire::{Failure, Stage};

use super::{Process, ProcessId, Processes, Role, spawn::number};
use crate::sys::{ChildFailure, Launch};

/// How far a process is with its start.
pub(crate) enum Launching {
    /// Whether it can execute its program is not known.
    UnderWay {
        launch: Launch,
        /// A pipe that ends when it is known.
        _alive: OwnedFd,
    },
    Done,
    Failed(Failure<'static>),
}

impl Process {
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

impl Processes {
    /// Looks whether a process has executed its program, and tells those who
    /// wait for that.
    pub(crate) fn look_at_launch(&mut self, id: ProcessId) {
        let Some(process) = self.get_mut(id) else {
            return;
        };
        let (launch, _alive) = match core::mem::replace(&mut process.launching, Launching::Done) {
            Launching::UnderWay { launch, _alive } => (launch, _alive),
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
            Err(launch) => process.launching = Launching::UnderWay { launch, _alive },
        }
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
        self.deadlines.forget(id);
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
        _ => "the process cannot be made",
    };
    Failure::from_errno(number(failure.errno), failure.stage, text)
}
