use alloc::collections::BTreeSet;

use crate::{clock::Moment, process::ProcessId};

/// What the agent has promised to look at again, and when.
#[derive(Default)]
pub(crate) struct Deadlines(BTreeSet<(Moment, ProcessId, Purpose)>);

/// What is to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Whether it has executed its program.
    Launch,
    /// Whether descendants still hold it up.
    Hold,
    /// Whether it still runs although its time is over.
    Timeout,
    /// Whether somebody has taken it up again.
    Resume,
}

impl Deadlines {
    pub(crate) fn add(&mut self, at: Moment, process: ProcessId, purpose: Purpose) {
        self.0.insert((at, process, purpose));
    }

    /// The process is gone; nothing more needs looking at.
    pub(crate) fn forget(&mut self, process: ProcessId) {
        self.0.retain(|(_, other, _)| *other != process);
    }

    /// The process has ended; only whether somebody still asks for it remains
    /// to be seen.
    pub(crate) fn settle(&mut self, process: ProcessId) {
        self.0
            .retain(|(_, other, kind)| *other != process || *kind == Purpose::Resume);
    }

    /// Takes a promise back.
    pub(crate) fn remove(&mut self, process: ProcessId, purpose: Purpose) {
        self.0
            .retain(|(_, other, kind)| (*other, *kind) != (process, purpose));
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _, _)| *at)
    }

    /// A process whose time has come. One that has ended since may be named.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(ProcessId, Purpose)> {
        let (at, process, purpose) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some((process, purpose))
    }
}
