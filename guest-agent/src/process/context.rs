use super::Processes;
use crate::{clock::Moment, event::Poller};

/// What services and probes use of the agent, to start and end processes.
pub(crate) struct Context<'a> {
    pub(crate) processes: &'a mut Processes,
    pub(crate) poller: &'a Poller,
    pub(crate) now: Moment,
}
