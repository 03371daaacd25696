use alloc::collections::BTreeSet;

use crate::{clock::Moment, ids::ProcessId};

/// When the agent must check processes again, and for what.
#[derive(Default)]
pub(crate) struct Deadlines(BTreeSet<(Moment, ProcessId, Purpose)>);

/// What is checked at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Whether the child has executed its program.
    Launch,
    /// Whether descendants still hold the output pipes of an ended process open.
    Hold,
    /// Whether the process still runs after its timeout.
    Timeout,
    /// Whether a host has resumed the process.
    Resume,
}

impl Deadlines {
    pub(crate) fn add(&mut self, at: Moment, process: ProcessId, purpose: Purpose) {
        self.0.insert((at, process, purpose));
    }

    /// Removes all deadlines of a process.
    pub(crate) fn remove_all(&mut self, process: ProcessId) {
        self.0.retain(|(_, other, _)| *other != process);
    }

    /// Removes all deadlines of an ended process but that for resuming it.
    pub(crate) fn keep_only_resume(&mut self, process: ProcessId) {
        self.0
            .retain(|(_, other, kind)| *other != process || *kind == Purpose::Resume);
    }

    pub(crate) fn remove(&mut self, process: ProcessId, purpose: Purpose) {
        self.0
            .retain(|(_, other, kind)| (*other, *kind) != (process, purpose));
    }

    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.first().map(|(at, _, _)| *at)
    }

    /// Takes the next deadline that has passed. Its process may have ended since.
    pub(crate) fn take_due(&mut self, now: Moment) -> Option<(ProcessId, Purpose)> {
        let (at, process, purpose) = *self.0.first()?;
        if at > now {
            return None;
        }
        self.0.pop_first();
        Some((process, purpose))
    }
}
