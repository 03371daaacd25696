use rustix::process::Pid;

use crate::{
    clock::Moment,
    event::Poller,
    ids::{ConnectionId, LinkId},
};

/// In place of the table of a kind of task that the agent was compiled without:
/// there are none.
pub(crate) struct AbsentTasks;

impl AbsentTasks {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn reaped(&mut self, _: Pid) {}

    pub(crate) fn next_link_to_serve(&mut self) -> Option<LinkId> {
        None
    }

    pub(crate) fn has_links_to_serve(&self) -> bool {
        false
    }

    pub(crate) fn is_busy(&self) -> bool {
        false
    }

    pub(crate) fn next_deadline(&self) -> Option<Moment> {
        None
    }

    // Of jobs.

    pub(crate) fn worker_notified(&mut self, _: u32) {}

    pub(crate) fn notify_workers(&mut self) {}

    pub(crate) fn close(&mut self) {}

    // Of services.

    pub(crate) fn on_log_ready<T>(&mut self, _: T) {}

    pub(crate) fn mark_changed<T>(&mut self, _: T) {}

    // Of connections.

    pub(crate) fn on_connection_ready<T>(&mut self, _: ConnectionId, _: T, _: &Poller) {}

    pub(crate) fn wake_streams<T>(&mut self, _: LinkId, _: T) {}

    // Of the network.

    pub(crate) fn on_ready<S, R>(&mut self, _: S, _: R) {}
}
