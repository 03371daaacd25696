use alloc::collections::BTreeSet;

use crate::{clock::Moment, process::ProcessId};

/// What the agent has promised to look at again, and when.
#[derive(Default)]
pub(crate) struct Deadlines(BTreeSet<(Moment, ProcessId)>);

impl Deadlines {
    pub(crate) fn add(&mut self, at: Moment, process: ProcessId) {
        self.0.insert((at, process));
    }

    /// The process is gone; nothing more needs looking at.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        self.0.retain(|(_, other)| *other != process);
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _)| *at)
    }

    /// A process whose time has come. One that has ended since may be named.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<ProcessId> {
        let (at, process) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some(process)
    }
}
